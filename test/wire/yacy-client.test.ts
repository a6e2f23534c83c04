import { describe, expect, it } from 'vitest';
import { PeerClient, type PeerClientOptions } from '../../src/peer/client.js';
import { PeerError } from '../../src/peer/errors.js';
import type { ShareOptions } from '../../src/peer/share.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/wait.js';
import { pdfOf } from './yacy/pdf-files.js';
import { timing } from './yacy/timing.js';
import { YacyModel, type YacyOptions } from './yacy/yacy-model.js';

/** The client as a library, at a YaCy peer whose time stands still until the test moves it. */
class Setting {
  readonly clock = new FakeClock();

  private constructor(
    readonly peer: YacyModel,
    readonly client: PeerClient,
    readonly move: (ms: number) => void,
  ) {}

  static async start(
    options: YacyOptions & { readonly client?: Partial<PeerClientOptions> } = {},
  ): Promise<Setting> {
    let time = 0;
    const peer = await YacyModel.start({ now: () => time, ...options });
    const client = new PeerClient({ baseUrl: peer.url, ...options.client });
    afterwards('test', () => client.close());
    return new Setting(peer, client, (ms) => {
      time += ms;
    });
  }
}

const PASSWORD = { username: 'admin', password: 'sécret' };

function item(name: string, text: string, others: Readonly<Record<string, unknown>> = {}) {
  const url = `http://notes.example.org/${name}`;
  return {
    url,
    collection: 'notes',
    data: Buffer.from(text),
    contentType: 'text/plain; charset=UTF-8',
    ...others,
  };
}

async function errorOf(promise: Promise<unknown>): Promise<PeerError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof PeerError)) throw new Error(`no PeerError but ${error}`);
  return error;
}

describe('a push', () => {
  it('arrives byte for byte: plain text, text that looks like base64, PDF, nothing, several at once', async () => {
    const { client, peer } = await Setting.start();
    const texts = { a: 'Plain ASCII text.', b: 'QUJD', c: 'Größe', d: pdfOf('Willow'), e: '' };
    const items = Object.entries(texts).map(([name, text]) => item(name, text));
    const { results } = await client.push(items);
    expect(results).toEqual(items.map(() => ({ ok: true })));
    for (const [name, text] of Object.entries(texts)) {
      expect(peer.kept(`http://notes.example.org/${name}`)?.size).toBe(Buffer.byteLength(text));
    }
    expect(peer.kept('http://notes.example.org/a')?.text).toBe('Plain ASCII text.');
    expect(peer.kept('http://notes.example.org/b')?.text).toBe('QUJD');
  });

  it('of one document that is streamed in pieces of any size arrives byte for byte', async () => {
    const { client, peer } = await Setting.start();
    const pieces = ['a', 'bc', 'defg', 'hijkl', 'mnopqrstu', 'v'].map((text) =>
      Buffer.from(text.repeat(1_000)),
    );
    const size = pieces.reduce((sum, { length }) => sum + length, 0);
    const data = {
      size,
      async *chunks() {
        yield* pieces;
      },
    };
    await client.push([item('streamed', '', { data })]);
    const kept = peer.kept('http://notes.example.org/streamed');
    expect(kept).toMatchObject({ size, text: Buffer.concat(pieces).toString() });
  });

  it('of more than 200,000 bytes, and of more than 1,000 parameters, is taken', async () => {
    const { client, peer } = await Setting.start();
    await client.push([item('large', 'word '.repeat(100_000))]);
    expect(peer.kept('http://notes.example.org/large')?.words).toBe(100_000);
    const many = Array.from({ length: 300 }, (_, n) => item(`many/${n}`, `number ${n}`));
    await client.push(many);
    expect(many.filter(({ url }) => peer.kept(url)?.words === 2)).toHaveLength(300);
  });

  it('says when a file was changed, and the peer shows it to the second', async () => {
    const { client, move } = await Setting.start();
    const lastModified = Date.UTC(2023, 10, 14, 22, 13, 20, 789);
    await client.push([item('a', 'alpha bravo', { lastModified })]);
    move(60);
    expect(await client.peerdoc({ url: 'http://notes.example.org/a' })).toMatchObject({
      lastModified: Date.UTC(2023, 10, 14, 22, 13, 20),
      size: 11,
      collections: ['notes'],
    });
  });

  it('of a URL that the peer cannot read is refused for this item alone', async () => {
    const { client, peer } = await Setting.start();
    const items = [item('a', 'a'), { ...item('b', 'b'), url: 'foo://host/x.txt' }, item('c', 'c')];
    const { results } = await client.push(items);
    expect(results.map(({ ok }) => ok)).toEqual([true, false, true]);
    expect(JSON.stringify(results[1])).toContain('unknown protocol');
    expect(peer.kept('http://notes.example.org/c')).toBeDefined();
  });

  it('of URLs with quotes in them is understood, though the answer is no JSON then', async () => {
    const { client } = await Setting.start();
    const quoted = { ...item('b', 'b'), url: 'http://notes.example.org/q"uo<te>.txt' };
    const { results } = await client.push([item('a', 'a'), quoted, item('c', 'c')]);
    expect(results).toEqual([{ ok: true }, { ok: true }, { ok: true }]);
  });

  it('that the peer could not read is no success, though it answers 200', async () => {
    const { client, peer } = await Setting.start();
    peer.loseNext('/api/push_p.json');
    expect((await errorOf(client.push([item('a', 'a')]))).code).toBe('PEER_ANSWER');
    expect(peer.kept('http://notes.example.org/a')).toBeUndefined();
  });

  it('that fails says so, and does not say what became of the items', async () => {
    const { client } = await Setting.start();
    const items = [item('a', 'a'), { ...item('b', 'b'), url: 'http://vault.local/b' }];
    expect(await errorOf(client.push(items, { synchronous: true }))).toMatchObject({
      code: 'PEER_FAILED',
      status: 500,
    });
  });
});

describe('a document that is not there', () => {
  it('is not found, though the peer answers 200 with a record', async () => {
    const { client, move } = await Setting.start();
    expect(await client.peerdoc({ url: 'http://notes.example.org/none' })).toBeUndefined();
    await client.push([item('a', 'a')]);
    expect(await client.peerdoc({ url: 'http://notes.example.org/a' })).toBeUndefined();
    move(60);
    expect(await client.peerdoc({ url: 'http://notes.example.org/a' })).toBeDefined();
  });

  it('has no citations, though the peer answers 500; nothing is committed by asking', async () => {
    const { client, peer, move } = await Setting.start();
    await client.push([item('a', 'a')]);
    move(2_000);
    expect(await client.citation({ url: 'http://notes.example.org/a' })).toBeUndefined();
    expect(peer.shown('http://notes.example.org/a')).toBeUndefined();
    move(20_000);
    expect(await client.citation({ url: 'http://notes.example.org/a' })).toMatchObject({ citing: [] });
  });
});

describe('citations', () => {
  it('are read as the peer writes them', async () => {
    const { client, move } = await Setting.start();
    const sentence = 'This is a long enough sentence about the habits of northern sea birds.';
    await client.push([item('one', `${sentence} Short.`), item('two', `Before. ${sentence}`)]);
    move(20_000);
    const cited = await client.citation({ url: 'http://notes.example.org/one' }, { filter: true });
    expect(JSON.stringify(cited?.citing)).toContain('http://notes.example.org/two');
    expect(JSON.stringify(cited)).toContain(sentence);
  });
});

describe('tables', () => {
  const row = (pk: string, cells: Readonly<Record<string, string>>) => ({
    pk,
    cells: new Map(Object.entries(cells)),
  });

  it('are written, read, listed and dropped, with keys that are shorter than 12 bytes', async () => {
    const { client, peer } = await Setting.start();
    expect(await client.tables.set('woods', [row('oak', { price: '1', note: 'a <b> & "c"' })])).toEqual([
      row('oak', { price: '1', note: 'a <b> & "c"' }),
    ]);
    await client.tables.set('woods', [row('oak', { price: '2' }), row('éééééé', { price: '3' })]);
    const table = await client.tables.read({ table: 'woods' });
    expect(table?.rows.map(({ pk, cells }) => [pk, cells.get('price'), cells.get('note')])).toEqual([
      ['oak', '2', 'a <b> & "c"'],
      ['éééééé', '3', ''],
    ]);
    expect(await client.tables.list()).toEqual(['pkcounter', 'stats', 'robots', 'api', 'woods']);
    expect(await client.tables.deleteRows('woods', ['oak'])).toEqual(['oak']);
    expect(peer.tables.row('woods', 'oak')).toBeUndefined();
    expect(peer.tables.row('woods', 'éééééé')).toBeDefined();
    expect(await client.tables.drop('woods')).not.toContain('woods');
  });

  it('are read though keys end in NUL or hold quotes, and cells hold control characters', async () => {
    const { client } = await Setting.start();
    await client.tables.set('odd', [
      row('a"b<c>&', { bell: 'x\u0007y', end: 'z' }),
      row('plain', { end: 'w' }),
    ]);
    const table = await client.tables.read({ table: 'odd' });
    expect(
      table?.rows.map(({ pk, cells }) => [pk, cells.get('bell')?.replace(/\W/, ''), cells.get('end')]),
    ).toEqual([
      ['a"b<c>&', 'xy', 'z'],
      ['plain', '', 'w'],
    ]);
  });

  it('do not get keys of more than 12 bytes, which the peer would cut', async () => {
    const { client, peer } = await Setting.start();
    await client.tables.set('woods', [row('abcdefghijkl', { price: '1' })]);
    const asked = peer.served.length;
    for (const pk of ['abcdefghijklm', 'ééééééé']) {
      const rows = [row('short', { price: '2' }), row(pk, { price: '2' })];
      await expect(client.tables.set('woods', rows)).rejects.toThrow(/at most 12/);
      await expect(client.tables.deleteRows('woods', ['short', pk])).rejects.toThrow(/at most 12/);
    }
    expect(peer.served.length).toBe(asked);
    expect(peer.tables.row('woods', 'abcdefghijkl')).toEqual({ price: '1' });
  });

  it('that do not exist are not found, though the peer answers 200', async () => {
    const { client } = await Setting.start();
    expect(await client.tables.read({ table: 'none' })).toBeUndefined();
  });

  it('are changed without the whole table as the answer', async () => {
    const { client, peer } = await Setting.start();
    const rows = Array.from({ length: 5 }, (_, n) => row(`row ${n}`, { text: 'x'.repeat(100) }));
    await client.tables.set('woods', rows);
    const writes = peer.served.filter(({ target }) => target.startsWith('/api/table_p'));
    expect(writes).toHaveLength(5);
    for (const { parameters } of writes) expect(parameters?.get('count')).toEqual(['1']);
  });
});

describe('what a peer shares', () => {
  const bytes = Buffer.from(Array.from({ length: 5_000 }, (_, i) => (i * 167) % 256));
  const long = Date.UTC(2024, 0, 1);

  async function read(client: PeerClient, data: string, options: ShareOptions = {}) {
    return client.share(
      { data },
      async ({ chunks, ...share }) => {
        const read: Uint8Array[] = [];
        const error = await (async () => {
          for await (const chunk of chunks) read.push(chunk);
        })().catch((reason: unknown) => reason);
        return { ...share, bytes: Buffer.concat(read), error };
      },
      options,
    );
  }

  it('are files in directories, listed and read byte for byte', async () => {
    const { client, peer } = await Setting.start();
    const names = ['dump/yacy_dump_a_ts.xml.gz', 'a b&c<d>.txt', 'größe/50 % #1.txt'];
    for (const name of names) peer.share.put(name, bytes, long);
    expect((await client.shares())?.toSorted()).toEqual(names.toSorted());
    for (const name of names) expect((await read(client, name))?.bytes).toEqual(bytes);
    expect(await read(client, 'dump/none.xml.gz')).toBeUndefined();
  });

  it('are not read again while they stay as they are', async () => {
    const { client, peer } = await Setting.start();
    peer.share.put('a.txt', 'old', long);
    const ifModifiedSince = (await read(client, 'a.txt'))?.peerAt ?? 0;
    expect(await read(client, 'a.txt', { ifModifiedSince })).toMatchObject({ isUnchanged: true });
    peer.share.put('a.txt', 'new', ifModifiedSince + 2_000);
    expect((await read(client, 'a.txt', { ifModifiedSince }))?.bytes.toString()).toBe('new');
  });
});

describe('Digest', () => {
  it('proves the password without a body first, and anew before the nonce is 60 s old', async () => {
    const clock = new FakeClock();
    const now = () => clock.elapsed();
    const { client, peer } = await Setting.start({
      password: PASSWORD.password,
      now,
      client: { credentials: PASSWORD, clock },
    });
    for (let n = 0; n < 20; n += 1) {
      await client.push([item(`${n}`, `note ${n}`)]);
      await clock.advance(7_300);
    }
    const withBody = peer.served.filter(({ target, size }) => target.startsWith('/api/push_p') && size > 0);
    expect(withBody.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
  });

  it('uses each count of a nonce once, also in many requests at once, and not the 1,024th', async () => {
    const { client, peer } = await Setting.start({
      password: PASSWORD.password,
      client: { credentials: PASSWORD },
    });
    for (let round = 0; round < 70; round += 1) {
      await Promise.all(Array.from({ length: 16 }, (_, n) => client.push([item(`${round}/${n}`, 'a')])));
    }
    const bodies = peer.served.filter(({ size }) => size > 0);
    expect(bodies.filter(({ status }) => status !== 200)).toEqual([]);
    expect(bodies).toHaveLength(1_120);
  });

  it('says that the password is wrong, and sends no document', async () => {
    const credentials = { username: 'admin', password: 'wrong' };
    const { client, peer } = await Setting.start({ password: 'right', client: { credentials } });
    expect((await errorOf(client.push([item('a', 'a')]))).code).toMatch(/^PEER_/);
    expect(peer.served.filter(({ size }) => size > 0)).toEqual([]);
  });

  it('is not needed where the administrator sits at the peer, who comes from no other page', async () => {
    const { client, peer } = await Setting.start();
    await client.push([item('a', 'a')]);
    await client.tables.list();
    expect(peer.served.filter(({ status }) => status === 401)).toEqual([]);
    expect(peer.served.filter(({ headers }) => headers.referer !== undefined)).toEqual([]);
  });
});

describe('the kind of peer', () => {
  it('is found out, once, by questions that change nothing', async () => {
    const { client, peer } = await Setting.start();
    expect(client.dialect).toBeUndefined();
    await Promise.all([client.peerdoc({ url: 'http://x.example/' }), client.detect(), client.tables.list()]);
    expect(client.dialect).toBe('yacy');
    const questions = peer.served.filter(({ target }) => target.startsWith('/api/peerdoc'));
    expect(questions).toHaveLength(1);
  });
});

describe('a connection', () => {
  it('that the peer closed because it was idle costs nothing', async () => {
    const { client, peer } = await Setting.start({ timing: timing(1, { idle: 300 }) });
    for (let n = 0; n < 3; n += 1) {
      await client.push([item(`${n}`, `note ${n}`)]);
      await until(async () => (await peer.connections()) === 0, 'the peer closed the connection');
    }
    expect(peer.served.filter(({ target }) => target.startsWith('/api/push_p'))).toHaveLength(3);
  });
});
