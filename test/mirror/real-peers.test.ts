import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PeerClient, type PeerClientOptions } from '../../src/peer/client.js';
import { openPeer } from '../embedded/support.js';
import { lifeOf, pendingRecord } from '../state/records.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { timing } from '../wire/yacy/timing.js';
import { YacyModel } from '../wire/yacy/yacy-model.js';
import { Engine, row } from './engine.js';

const SENTENCE = 'This is a sentence that is long enough to stand in two documents.';

function engineAt(options: PeerClientOptions, clock?: FakeClock) {
  const client = new PeerClient(options);
  afterwards('test', () => client.close());
  return { client, engine: new Engine(client, clock) };
}

/** Documents of the folder `inbox` that have a sentence in common. */
async function push(client: PeerClient, paths: readonly string[], more: object = {}): Promise<void> {
  const documents = paths.map((path) => ({
    url: pendingRecord(path).url,
    ...{ collection: 'inbox', contentType: 'text/plain' },
    data: Buffer.from(`${SENTENCE} And something of ${path} alone, which nobody else has written.`),
  }));
  await client.push(documents, more);
}

describe('mirrors of the embedded peer', () => {
  async function atEmbedded() {
    const dir = temporaryDirectory();
    const { url, credentials } = await openPeer({ dir });
    const put = (name: string, content: string) => {
      mkdirSync(dirname(join(dir, 'shares', name)), { recursive: true });
      writeFileSync(join(dir, 'shares', name), content);
    };
    return { put, ...engineAt({ dialect: 'standard', baseUrl: url, credentials }) };
  }

  it('follow a shared object: it comes, changes, also within its size and second, and is missed', async () => {
    const { engine, put } = await atEmbedded();
    put('lists/words.txt', 'one\n');
    await engine.open({ shares: [{ data: 'words.txt', c: 'lists' }, { data: 'nothing.txt' }] });
    await engine.run();
    expect(engine.status('lists/words.txt')).toMatchObject({
      ...{ bytes: 4, type: 'text/plain' },
      version: { etag: expect.stringMatching(/^"/) },
    });
    expect(engine.status('nothing.txt')).toMatchObject({ failure: { code: 'MIRROR_NOTHING' } });
    const once = () => engine.once('lists/words.txt');
    expect(await once()).toMatchObject({ changed: false, bytes: 4 });
    put('lists/words.txt', 'two\n');
    expect(await once()).toMatchObject({ changed: true });
    put('lists/words.txt', '');
    expect(await once()).toMatchObject({ alarm: { code: 'SHARE_EMPTY' } });
    expect(engine.read('shares/lists/words.txt')).toBe('two\n');
  });

  it('follow tables, also when they are dropped, and accepting that forgets them', async () => {
    const { engine, client } = await atEmbedded();
    await client.tables.set('fruit', [row('k1', { name: 'Äpfel "süß", <rot> & 🍎', note: 'two\nlines' })]);
    await client.tables.set('price', [row('p', { eur: '3' })]);
    await engine.open({ tables: [{ table: '*' }, { table: 'none' }] });
    await engine.run();
    expect(engine.status('none')).toMatchObject({ failure: { code: 'MIRROR_NOTHING' } });
    expect(engine.files()).toEqual(['tables/fruit.csv', 'tables/price.csv']);
    const text = 'pk,name,note\nk1,"Äpfel ""süß"", <rot> & 🍎","two\nlines"\n';
    expect(engine.read('tables/fruit.csv')).toBe(text);
    await client.tables.drop('price');
    await engine.run();
    expect(engine.status('price')).toMatchObject({ alarm: { code: 'TABLE_GONE' } });
    expect(engine.read('tables/price.csv')).toContain('p,3');
    await engine.mirrors.accept('price');
    expect(engine.files()).toEqual(['tables/fruit.csv']);
  });

  it('follow citations', async () => {
    const { engine, client } = await atEmbedded();
    const paths = ['a.txt', 'b.txt'];
    await push(client, paths, { synchronous: true, commit: true });
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

  it('bring the edits of a table there', async () => {
    const { engine, client } = await atEmbedded();
    await client.tables.set('birds', [row('k1', { name: 'Gull' })]);
    await engine.open({ tables: [{ table: 'birds', edit: true, format: 'ndjson' }] });
    await engine.once('birds');
    edit(engine, `${engine.read('tables/birds.ndjson')}{"pk":"k2","name":"Tern"}\n`);
    await engine.once('birds');
    expect((await client.tables.read({ table: 'birds' }))?.rows).toHaveLength(2);
    expect(engine.read('tables/birds.ndjson')).toContain('"k2"');
  });
});

/** As a person does, a while ago. */
function edit(engine: Engine<PeerClient>, text: string): void {
  const path = join(engine.root, 'tables/birds.ndjson');
  writeFileSync(`${path}~`, text);
  const at = Date.now() / 1000 - 60;
  utimesSync(`${path}~`, at, at);
  renameSync(`${path}~`, path);
}

const AN_HOUR_AGO = Date.now() - 3_600_000;
const DUMP = 'dump/yacy_dump_x_ts.xml.gz';
const FILE = `shares/${DUMP}`;

async function atYacy(clock?: FakeClock) {
  const peer = await YacyModel.start({ timing: timing(20) });
  return { peer, ...engineAt({ baseUrl: peer.url }, clock) };
}

describe('a file that a YaCy shares', () => {
  /** The file, mirrored once. */
  async function dump(content: string, at = AN_HOUR_AGO, clock?: FakeClock) {
    const { peer, engine } = await atYacy(clock);
    peer.share.put(DUMP, content, at);
    await engine.open({ shares: [{ data: DUMP }] });
    await engine.once(DUMP);
    const asked = () =>
      peer.served.filter(({ target }) => target.startsWith('/share/')).map(({ status }) => status);
    return { peer, engine, asked, once: () => engine.once(DUMP) };
  }

  it('is asked for only if it changed, and costs nothing while it did not', async () => {
    const { peer, engine, asked, once } = await dump('gulls');
    const first = engine.status();
    expect(first).toMatchObject({ bytes: 5, type: 'application/gzip' });
    expect(await once()).toMatchObject({ changed: false, bytes: 5, sha256: first?.sha256 });
    peer.share.put(DUMP, 'terns', Date.now());
    expect(await once()).toMatchObject({ changed: true });
    expect(engine.read(FILE)).toBe('terns');
    expect(asked()).toEqual([200, 304, 200]);
  });

  it('that changed twice in one second is not missed', async () => {
    const { peer, engine, once } = await dump('gulls', Date.now());
    peer.share.put(DUMP, 'terns', Date.now());
    await once();
    expect(engine.read(FILE)).toBe('terns');
  });

  it('comes whole where the file here is another, or is of another peer', async () => {
    const { peer, engine, asked, once } = await dump('gulls');
    engine.write(FILE, 'mine!');
    expect(await once()).toMatchObject({ changed: true });
    expect(engine.read(FILE)).toBe('gulls');
    peer.share.put('other', 'terns', AN_HOUR_AGO);
    await engine.open({ shares: [{ data: 'other', name: DUMP, path: FILE }] });
    await once();
    expect(engine.read(FILE)).toBe('terns');
    expect(asked()).toEqual([200, 200, 200]);
  });

  it('comes whole once a week, since an older one in its place looks unchanged', async () => {
    const clock = new FakeClock(Date.now());
    const { peer, engine, once } = await dump('gulls', AN_HOUR_AGO, clock);
    peer.share.put(DUMP, 'terns', AN_HOUR_AGO - 1_000);
    await once();
    expect(engine.read(FILE)).toBe('gulls');
    await clock.advance(8 * 86_400_000);
    await once();
    expect(engine.read(FILE)).toBe('terns');
  });

  it('that breaks off leaves the old file and nothing else, and comes whole the next time', async () => {
    const { peer, engine, once } = await dump('old');
    const content = randomBytes(3 * 2 ** 20);
    peer.share.put(DUMP, content, Date.now());
    peer.share.breakOff(DUMP, 2 * 2 ** 20);
    expect((await once()).failure).toBeDefined();
    expect([engine.read(FILE), engine.files()]).toEqual(['old', [FILE]]);
    await once();
    expect(readFileSync(join(engine.root, FILE)).equals(content)).toBe(true);
  });
});

describe('a pattern over what a YaCy shares', () => {
  it('follows all that match, through directories, and those that come later', async () => {
    const { peer, engine } = await atYacy();
    for (const name of ['dump/a.gz', 'dump/old/b.gz', 'list.txt']) peer.share.put(name, name, AN_HOUR_AGO);
    await engine.open({ shares: [{ data: 'dump/*' }] });
    await engine.run();
    expect(engine.status('dump/*')?.notes).toEqual(['Follows 2 shared objects of the peer.']);
    expect(engine.files()).toEqual(['shares/dump/a.gz', 'shares/dump/old/b.gz']);
    peer.share.put('dump/ä #%.gz', 'd', AN_HOUR_AGO);
    await engine.run('dump/*');
    expect(engine.read('shares/dump/ä #%.gz')).toBe('d');
    expect(peer.served.map(({ target }) => target)).toContain('/share/dump/%C3%A4%20%23%25.gz');
  });

  it('keeps what it found when it is gone, until a person accepts that, and does so after a restart', async () => {
    const { peer, engine } = await atYacy();
    peer.share.put('dump/a.gz', 'a', AN_HOUR_AGO);
    const settings = { shares: [{ data: '*.gz', c: 'dump', name: 'dumps', path: 'd/{data}' }] };
    await engine.open(settings);
    await engine.run();
    expect(engine.files()).toEqual(['d/a.gz']);
    peer.share.remove('dump/a.gz');
    await engine.open(settings);
    await engine.run();
    const name = 'dumps/dump/a.gz';
    expect(engine.status(name)).toMatchObject({ share: 'dump/a.gz', alarm: { code: 'SHARE_GONE' } });
    expect(engine.read('d/a.gz')).toBe('a');
    await engine.mirrors.accept(name);
    expect([engine.files(), engine.names]).toEqual([[], ['dumps']]);
  });
});

describe('a table of a YaCy', () => {
  /** The table, mirrored once so that it can be edited. */
  async function birds(...rows: ReturnType<typeof row>[]) {
    const { peer, client, engine } = await atYacy();
    await client.tables.set('birds', rows);
    await engine.open({ tables: [{ table: 'birds', edit: true, deletes: true, format: 'ndjson' }] });
    await engine.once('birds');
    return { peer, client, engine };
  }

  it('is mirrored whole, with keys that are filled with NUL and cells that no XML can hold', async () => {
    const { client, engine } = await atYacy();
    const rows = Array.from({ length: 120 }, (_, i) => row(`r${i}`, { name: `n${i}` }));
    await client.tables.set('birds', [...rows, row('a<&"k', { name: 'bell \u0007 and <&>' })]);
    await engine.open({ tables: [{ table: '*', format: 'ndjson' }] });
    await engine.run();
    expect(engine.files()).toEqual(expect.arrayContaining(['tables/api.ndjson', 'tables/robots.ndjson']));
    const lines = engine.read('tables/birds.ndjson').trimEnd().split('\n');
    expect(lines).toHaveLength(121);
    const parsed = lines.map((line) => JSON.parse(line));
    expect(parsed).toContainEqual({ pk: 'a<&"k', name: 'bell \u0007 and <&>' });
    expect(parsed).toContainEqual({ pk: 'r119', name: 'n119' });
  });

  it('that is edited takes new rows, with keys of 12 bytes, changes and deletions', async () => {
    const { peer, client, engine } = await birds(row('k1', { name: 'Gull' }), row('k2', { name: 'Tern' }));
    edit(engine, '{"pk":"k1","name":"Herring gull"}\n{"name":"Knot"}\n{"pk":"twelve_bytes","name":"Ruff"}\n');
    await engine.once('birds');
    expect(peer.tables.row('birds', 'k1')?.name).toBe('Herring gull');
    const shown = await client.tables.read({ table: 'birds' });
    const names = new Map(shown?.rows.map(({ pk, cells }) => [cells.get('name'), pk]));
    expect([...names.keys()].sort()).toEqual(['Herring gull', 'Knot', 'Ruff']);
    expect(names.get('Knot')).toMatch(/^[0-9a-z]{12}$/);
    expect(engine.read('tables/birds.ndjson')).toContain(names.get('Knot'));
  });

  it('does not take a key that it would cut: an alarm names the line, and nothing is written', async () => {
    const { peer, engine } = await birds(row('k1', { name: 'Gull' }));
    const text = '{"pk":"k1","name":"Gull!"}\n{"pk":"ééééééé","name":"Knot"}\n';
    edit(engine, text);
    const before = peer.served.length;
    const { alarm } = await engine.once('birds');
    expect(alarm?.code).toBe('EDIT_UNREADABLE');
    expect(alarm?.message).toContain('line 2: the key "ééééééé" has 14 bytes');
    expect(peer.served.slice(before).filter(({ target }) => target.startsWith('/api/table_p'))).toEqual([]);
    expect(engine.read('tables/birds.ndjson')).toBe(text);
  });
});

it('citations of a YaCy come for what it knows, and a document that it does not know is no failure', async () => {
  const { client, engine, peer } = await atYacy();
  await push(client, ['a.txt', 'b.txt']);
  await until(() => peer.search('sentence').length === 2, 'both are committed');
  await engine.open({ citations: [{ folder: 'inbox' }] });
  for (const path of ['a.txt', 'b.txt', 'c.txt']) engine.state.put(lifeOf(pendingRecord(path))[2]);
  const { failure, notes } = await engine.once('citations/inbox');
  expect([failure, notes]).toEqual([undefined, undefined]);
  expect(engine.files()).toEqual(['citations/inbox/a.txt.json', 'citations/inbox/b.txt.json']);
  expect(engine.read('citations/inbox/a.txt.json')).toContain(pendingRecord('b.txt').url);
});
