import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { PeerClient } from '../../src/peer/client.js';
import { openPeer } from '../embedded/support.js';
import { lifeOf, pendingRecord } from '../state/records.js';
import { afterwards } from '../support/afterwards.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { Engine } from './engine.js';

/** Mirrors of an embedded peer. */
async function atRealPeer() {
  const dir = temporaryDirectory();
  const box = await openPeer({ dir });
  const client = new PeerClient({ dialect: 'standard', baseUrl: box.url, credentials: box.credentials });
  afterwards('test', () => client.close());
  const put = (name: string, content: string) => {
    mkdirSync(dirname(join(dir, 'shares', name)), { recursive: true });
    writeFileSync(join(dir, 'shares', name), content);
  };
  return { client, put, engine: new Engine(client) };
}

it('a share follows the embedded peer: it comes, changes, and is missed', async () => {
  const { engine, put } = await atRealPeer();
  put('lists/words.txt', 'one\n');
  await engine.open({ shares: [{ data: 'words.txt', c: 'lists' }, { data: 'nothing.txt' }] });
  const [words, nothing] = (await engine.run()).toSorted((a, b) => Number(b.changed) - Number(a.changed));
  expect(words).toMatchObject({ name: 'lists/words.txt', changed: true, bytes: 4, type: 'text/plain' });
  expect(nothing).toMatchObject({ name: 'nothing.txt', failure: { code: 'MIRROR_NOTHING' } });
  expect(engine.read('shares/lists/words.txt')).toBe('one\n');
  put('lists/words.txt', 'two\n');
  expect(await engine.once('lists/words.txt')).toMatchObject({ changed: true });
  put('lists/words.txt', '');
  expect(await engine.once('lists/words.txt')).toMatchObject({ alarm: { code: 'SHARE_EMPTY' } });
  expect(engine.read('shares/lists/words.txt')).toBe('two\n');
});

it('tables follow the embedded peer, also when they are dropped, and accepting that forgets them', async () => {
  const { engine, client } = await atRealPeer();
  const cells = new Map([
    ['name', 'Äpfel "süß", <rot> & 🍎'],
    ['note', 'two\nlines'],
  ]);
  await client.tables.set('fruit', [{ pk: 'k1', cells }]);
  await client.tables.set('price', [{ pk: 'p', cells: new Map([['eur', '3']]) }]);
  await engine.open({ tables: [{ table: '*' }] });
  await engine.run();
  expect(engine.files()).toEqual(['tables/fruit.csv', 'tables/price.csv']);
  expect(engine.read('tables/fruit.csv')).toBe(
    'pk,name,note\r\nk1,"Äpfel ""süß"", <rot> & 🍎","two\nlines"\r\n',
  );
  await client.tables.drop('price');
  const reports = await engine.run();
  expect(reports.find(({ name }) => name === 'price')).toMatchObject({ alarm: { code: 'TABLE_GONE' } });
  expect(engine.read('tables/price.csv')).toContain('p,3');
  await engine.mirrors.accept('price');
  expect(engine.files()).toEqual(['tables/fruit.csv']);
});

it('a table that is configured and was never there is a failure', async () => {
  const { engine } = await atRealPeer();
  await engine.open({ tables: [{ table: 'none' }] });
  expect(await engine.once('none')).toMatchObject({ failure: { code: 'MIRROR_NOTHING' } });
});

it('citations follow the embedded peer', async () => {
  const { engine, client } = await atRealPeer();
  const sentence = 'This is a sentence that is long enough to stand in two documents.';
  const paths = ['a.txt', 'b.txt'];
  await client.push(
    paths.map((path) => ({
      url: pendingRecord(path).url,
      collection: 'inbox',
      data: Buffer.from(`${sentence} And something of ${path} alone, which nobody else has written.`),
    })),
    { synchronous: true, commit: true },
  );
  await engine.open({ citations: [{ folder: 'inbox' }] });
  for (const path of paths) engine.state.put(lifeOf(pendingRecord(path))[2]);
  await until(async () => {
    await engine.once('citations/inbox');
    return engine.files().length === 2;
  }, 'both documents are known');
  await engine.once('citations/inbox');
  const known = JSON.parse(engine.read('citations/inbox/a.txt.json'));
  expect(known).toMatchObject({ url: pendingRecord('a.txt').url });
  expect(JSON.stringify(known.sentences)).toContain(pendingRecord('b.txt').url);
  expect(await engine.once('citations/inbox')).toMatchObject({ changed: false, rows: 2 });
});

it('an edited table reaches the embedded peer', async () => {
  const { engine, client } = await atRealPeer();
  await client.tables.set('fruit', [{ pk: 'k1', cells: new Map([['name', 'Apple']]) }]);
  await engine.open({ tables: [{ table: 'fruit', edit: true, format: 'ndjson' }] });
  await engine.once('fruit');
  engine.write('tables/fruit.ndjson', `${engine.read('tables/fruit.ndjson')}{"pk":"k2","name":"Pear"}\n`);
  await until(async () => {
    await engine.once('fruit');
    const table = await client.tables.read({ table: 'fruit' });
    return table?.rows.length === 2;
  }, 'the new row reached the peer');
  expect(engine.read('tables/fruit.ndjson')).toContain('"k2"');
});

it('an object is not sent again while it is the same; one of the same size and second is', async () => {
  const dir = temporaryDirectory();
  const box = await openPeer({ dir });
  const client = new PeerClient({ baseUrl: box.url, credentials: box.credentials });
  afterwards('test', () => client.close());
  const put = (content: string) => {
    mkdirSync(join(dir, 'shares'), { recursive: true });
    writeFileSync(join(dir, 'shares/words.txt'), content);
  };
  put('one');
  const engine = new Engine(client);
  await engine.open({ shares: [{ data: 'words.txt' }] });
  await engine.once('words.txt');
  expect(engine.mirrors.status()[0]?.version).toMatchObject({ etag: expect.stringMatching(/^"/) });
  expect(await engine.once('words.txt')).toMatchObject({ changed: false, bytes: 3 });
  put('two');
  expect(await engine.once('words.txt')).toMatchObject({ changed: true });
  expect(engine.read('shares/words.txt')).toBe('two');
});
