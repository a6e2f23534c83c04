import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { until } from '../support/wait.js';
import { Engine, FakePeer, filesBelow, peerError } from './engine.js';

const ROWS = { k1: { name: 'Apple', price: '3' }, k2: { name: 'Pear', price: '4' } };
const FILE = 'tables/fruit.csv';

/** A table that was mirrored once. */
async function mirrored(more: object = {}) {
  const peer = new FakePeer();
  const engine = new Engine(peer);
  peer.table('fruit', ROWS);
  await engine.open({ tables: [{ table: 'fruit', ...more }] });
  const first = await engine.once('fruit');
  return { peer, engine, first };
}

describe('a mirrored table', () => {
  it('becomes a file by key, with its columns as the peer has them', async () => {
    const peer = new FakePeer();
    const engine = new Engine(peer);
    peer.table('fruit', { k2: { price: '4', name: 'Pear' }, k1: { price: '3', name: 'Apple' } });
    await engine.open({ tables: [{ table: 'fruit' }] });
    expect(await engine.once('fruit')).toMatchObject({
      changed: true,
      rows: 2,
      columns: ['price', 'name'],
      path: FILE,
    });
    expect(engine.read(FILE)).toBe('pk,price,name\r\nk1,3,Apple\r\nk2,4,Pear\r\n');
  });

  it('that is the same keeps its mtime, in whatever order the peer tells it', async () => {
    const { peer, engine } = await mirrored();
    const before = engine.mtime(FILE);
    peer.table('fruit', { k2: { price: '4', name: 'Pear' }, k1: { price: '3', name: 'Apple' } });
    expect(await engine.once('fruit')).toMatchObject({ changed: false, rows: 2 });
    expect(engine.mtime(FILE)).toBe(before);
  });

  it('keeps its columns where they are, and puts new ones behind them, also after a restart', async () => {
    const { peer, engine } = await mirrored();
    peer.table('fruit', { k1: { ...ROWS.k1, colour: 'red', age: '1' } });
    await engine.once('fruit');
    expect(engine.read(FILE)).toMatch(/^pk,name,price,colour,age\r\n/);
    await engine.open({ tables: [{ table: 'fruit' }] });
    expect(await engine.once('fruit')).toMatchObject({ changed: false });
  });

  it('has the columns that the peer names, also where no cell stands in them', async () => {
    const { peer, engine } = await mirrored();
    peer.columns = ['empty', 'name', 'price'];
    await engine.once('fruit');
    expect(engine.read(FILE)).toMatch(/^pk,name,price,empty\r\nk1,Apple,3,\r\n/);
    peer.columns = ['name', 'price'];
    expect((await engine.once('fruit')).alarm?.code).toBe('COLUMNS_LOST');
  });

  it('has the configured columns in that order, also one that the peer does not show, which is noted', async () => {
    const { engine, first } = await mirrored({ columns: ['price', 'weight'] });
    expect(engine.read(FILE)).toBe('pk,price,weight\r\nk1,3,\r\nk2,4,\r\n');
    expect(first.notes).toEqual(['The peer shows no column "weight".']);
    expect((await engine.once('fruit')).alarm).toBeUndefined();
  });

  it('is sorted by the columns that are asked for', async () => {
    const { peer, engine } = await mirrored({ sortBy: ['name'], columns: ['name'] });
    peer.table('fruit', { k1: { name: 'Pear' }, k2: { name: 'Apple' } });
    await engine.once('fruit');
    expect(engine.read(FILE)).toBe('pk,name\r\nk2,Apple\r\nk1,Pear\r\n');
  });

  it('asks for what is configured, and for nothing else', async () => {
    const { peer, engine } = await mirrored({ search: 'red', count: 5 });
    const queries: unknown[] = [];
    const stream = peer.tables.stream;
    peer.tables.stream = (query, use) => {
      queries.push(query);
      return stream(query, use);
    };
    await engine.once('fruit');
    expect(queries).toEqual([{ table: 'fruit', search: 'red', count: 5 }]);
  });

  it('that was removed by somebody comes back', async () => {
    const { engine } = await mirrored();
    rmSync(join(engine.root, FILE));
    expect(await engine.once('fruit')).toMatchObject({ changed: true });
    expect(engine.read(FILE)).toContain('Apple');
    expect(engine.said.join()).toContain('removed tables/fruit.csv, and it was put back');
  });

  it('whose record was lost in a crash is found as it should be, and not written again', async () => {
    const { engine } = await mirrored();
    const before = engine.mtime(FILE);
    engine.state.setMeta('mirror/fruit', undefined);
    expect(await engine.once('fruit')).toMatchObject({ changed: false, rows: 2 });
    expect(engine.mtime(FILE)).toBe(before);
  });

  it('whose record is older than the file, as after a crash, is not written again either', async () => {
    const { peer, engine } = await mirrored();
    const older = engine.state.meta('mirror/fruit');
    peer.table('fruit', { ...ROWS, k3: { name: 'Plum', price: '5' } });
    await engine.once('fruit');
    const before = engine.mtime(FILE);
    engine.state.setMeta('mirror/fruit', older);
    expect(await engine.once('fruit')).toMatchObject({ changed: false, rows: 3 });
    expect(engine.mtime(FILE)).toBe(before);
    expect(engine.said.join()).not.toContain('put back');
  });

  it('is not emptied where its record was lost', async () => {
    const { peer, engine } = await mirrored();
    engine.state.setMeta('mirror/fruit', undefined);
    peer.table('fruit', {});
    expect(await engine.once('fruit')).toMatchObject({ alarm: { code: 'TABLE_EMPTY' } });
    expect(await engine.once('fruit')).toMatchObject({ alarm: { code: 'TABLE_EMPTY' } });
    expect(engine.read(FILE)).toContain('Apple');
    await engine.mirrors.accept('fruit');
    expect(engine.read(FILE)).toBe('pk\r\n');
  });

  it('that is larger than maxSize is an alarm, and a person may take it once', async () => {
    const { peer, engine } = await mirrored({ maxSize: '1 KiB' });
    const stream = peer.tables.stream;
    const limits: (number | undefined)[] = [];
    peer.tables.stream = (query, use, options: { readonly maxBytes?: number } = {}) => {
      limits.push(options.maxBytes);
      if (options.maxBytes === 1024) throw peerError('PEER_ANSWER_TOO_LARGE');
      return stream(query, use);
    };
    expect(await engine.once('fruit')).toMatchObject({ alarm: { code: 'MIRROR_TOO_LARGE' }, rows: 2 });
    expect((await engine.mirrors.accept('fruit')).alarm).toBeUndefined();
    expect(limits[1]).toBeGreaterThan(1024);
  });

  it('leaves nothing where rows waited, whether it went well or not', async () => {
    const { peer, engine } = await mirrored();
    peer.table('fruit', {});
    await engine.once('fruit');
    expect(filesBelow(join(engine.stateDir, 'mirrors'))).toEqual([]);
  });

  it('that the peer never had is a failure; an empty one is an empty file', async () => {
    const peer = new FakePeer();
    const engine = new Engine(peer);
    peer.table('empty', {});
    await engine.open({ tables: [{ table: 'empty' }, { table: 'none' }] });
    expect(await engine.once('empty')).toMatchObject({ changed: true, rows: 0 });
    expect(engine.read('tables/empty.csv')).toBe('pk\r\n');
    expect(await engine.once('none')).toMatchObject({ failure: { code: 'MIRROR_NOTHING' } });
  });
});

describe.each([
  { code: 'TABLE_GONE', rows: undefined, accepted: undefined },
  { code: 'TABLE_EMPTY', rows: {}, accepted: 'pk,name,price\r\n' },
  {
    code: 'COLUMNS_LOST',
    rows: { k1: { name: 'Apple' }, k2: { name: 'Pear' } },
    accepted: 'pk,name\r\nk1,Apple\r\nk2,Pear\r\n',
  },
])('$code', ({ code, rows, accepted }) => {
  const take = (peer: FakePeer) =>
    rows === undefined ? peer.tableRows.delete('fruit') : peer.table('fruit', rows as typeof ROWS);

  it('leaves the old file, is told once, and is over when the table is back', async () => {
    const { peer, engine } = await mirrored();
    const [text, mtime] = [engine.read(FILE), engine.mtime(FILE)];
    take(peer);
    const raised = await engine.once('fruit');
    expect(raised).toMatchObject({ alarm: { code }, rows: 2, changed: false });
    expect((await engine.once('fruit')).alarm).toEqual(raised.alarm);
    await engine.open({ tables: [{ table: 'fruit' }] });
    expect((await engine.once('fruit')).alarm).toEqual(raised.alarm);
    expect([engine.read(FILE), engine.mtime(FILE)]).toEqual([text, mtime]);
    expect(engine.said.filter((line) => line.startsWith('warn:'))).toHaveLength(1);
    peer.table('fruit', ROWS);
    expect((await engine.once('fruit')).alarm).toBeUndefined();
    expect(engine.mtime(FILE)).toBe(mtime);
  });

  it('is over when a person accepts it, and the table may come back', async () => {
    const { peer, engine } = await mirrored();
    take(peer);
    await engine.once('fruit');
    expect(await engine.mirrors.accept('fruit')).toMatchObject({ changed: true });
    if (accepted === undefined) expect(engine.files()).toEqual([]);
    else expect(engine.read(FILE)).toBe(accepted);
    const calm = await engine.once('fruit');
    expect([calm.alarm, calm.failure, calm.changed]).toEqual([undefined, undefined, false]);
    peer.table('fruit', ROWS);
    expect(await engine.once('fruit')).toMatchObject({ changed: true, rows: 2 });
    expect(engine.read(FILE)).toContain('price');
  });
});

it('names the columns that were lost, and speaks only of those that are wanted', async () => {
  const { peer, engine } = await mirrored();
  peer.table('fruit', { k1: { colour: 'red' } });
  expect((await engine.once('fruit')).alarm?.message).toContain('"name", "price"');
  await engine.open({ tables: [{ table: 'fruit', columns: ['colour'] }] });
  expect(await engine.once('fruit')).toMatchObject({ changed: true });
});

describe('a pattern', () => {
  async function patterned(more: object = {}) {
    const peer = new FakePeer();
    const engine = new Engine(peer);
    peer.table('price-a', { k: { a: '1' } });
    peer.table('price-b', { k: { b: '1' } });
    peer.table('other', { k: { c: '1' } });
    await engine.open({ tables: [{ table: 'price-*', ...more }] });
    await engine.run();
    return { peer, engine };
  }
  const names = (engine: Engine) => engine.mirrors.status().map(({ name }) => name);

  it('mirrors each table that it matches, also those that come later', async () => {
    const { peer, engine } = await patterned();
    expect(engine.files()).toEqual(['tables/price-a.csv', 'tables/price-b.csv']);
    peer.table('price-c', { k: { a: '1' } });
    await engine.run('price-*');
    expect(engine.files()).toContain('tables/price-c.csv');
    expect(names(engine)).toEqual(['price-*', 'price-a', 'price-b', 'price-c']);
  });

  it('knows its tables after a restart, before the peer is asked', async () => {
    const { engine } = await patterned();
    await engine.open({ tables: [{ table: 'price-*' }] });
    expect(names(engine)).toEqual(['price-*', 'price-a', 'price-b']);
    expect(await engine.once('price-a')).toMatchObject({ changed: false });
  });

  it('gives its tables a name of its own where it has one', async () => {
    const { engine } = await patterned({ name: 'prices' });
    expect(names(engine)).toEqual(['prices', 'prices/price-a', 'prices/price-b']);
  });

  it('leaves a table alone that is configured by itself', async () => {
    const peer = new FakePeer();
    const engine = new Engine(peer);
    peer.table('price-a', { k: { a: '1' } });
    await engine.open({ tables: [{ table: 'price-*' }, { table: 'price-a', path: 'own.csv' }] });
    await engine.run();
    expect(engine.files()).toEqual(['own.csv']);
  });

  it('makes no second mirror of a table that is only configured under another name', async () => {
    const peer = new FakePeer();
    const engine = new Engine(peer);
    peer.table('price-a', { k: { a: '1' } });
    peer.tables.list = async () => [];
    const tables = [{ table: 'price-*' }, { table: 'price-a', name: 'own', path: 'own.csv' }];
    await engine.open({ tables });
    await engine.run();
    await engine.open({ tables });
    expect(names(engine)).toEqual(['price-*', 'own']);
  });

  it('leaves a file where it is, whatever table comes later', async () => {
    const { peer, engine } = await patterned();
    peer.table('Price-a', { k: { a: '2' } });
    peer.table('price-A', { k: { a: '3' } });
    const open = () => engine.open({ tables: [{ table: '?rice-*' }] });
    await open();
    await engine.run();
    expect(engine.read('tables/price-a.csv')).toContain('k,1');
    const files = engine.files();
    expect(files).toHaveLength(4);
    await open();
    await engine.run();
    expect(engine.files()).toEqual(files);
    expect(engine.read('tables/price-a.csv')).toContain('k,1');
  });

  it.each(['unknown to the peer', 'without rows'])(
    'raises the alarm of a table off the list, %s',
    async (how) => {
      const { peer, engine } = await patterned();
      if (how === 'without rows') {
        peer.table('price-a', {});
        peer.tables.list = async () => ['price-b'];
      } else {
        peer.tableRows.delete('price-a');
      }
      const reports = await engine.run();
      expect(reports.find(({ name }) => name === 'price-a')).toMatchObject({ alarm: { code: 'TABLE_GONE' } });
      expect(engine.files()).toEqual(['tables/price-a.csv', 'tables/price-b.csv']);
      expect(await engine.mirrors.accept('price-a')).toMatchObject({ isOver: true, changed: true });
      expect(engine.files()).toEqual(['tables/price-b.csv']);
      await engine.run();
      expect(names(engine)).toEqual(['price-*', 'price-b']);
    },
  );

  it('forgets a table that went before it was ever read, and touches no file in its place', async () => {
    const { peer, engine } = await patterned();
    engine.write('tables/price-c.csv', 'of somebody else');
    const list = peer.tables.list;
    peer.tables.list = async () => [...(await list()), 'price-c'];
    await engine.run('price-*');
    expect(await engine.once('price-c')).toMatchObject({ failure: { code: 'MIRROR_NOTHING' } });
    peer.tables.list = list;
    const reports = await engine.run();
    const report = reports.find(({ name }) => name === 'price-c');
    expect(report).toMatchObject({ isOver: true, changed: false });
    expect(names(engine)).toEqual(['price-*', 'price-a', 'price-b']);
    expect(engine.read('tables/price-c.csv')).toBe('of somebody else');
  });

  it('that matches 10,000 tables is followed in slices, so that the event loop is not held up', async () => {
    const peer = new FakePeer();
    for (let i = 0; i < 10_000; i += 1) peer.table(`t-${i}`, {});
    const engine = new Engine(peer);
    engine.random = Math.random;
    await engine.open({ tables: [{ table: 't-*', versions: 1, every: '1h' }] });
    let turns = 0;
    const count = () => {
      turns += 1;
      if (engine.mirrors.names.length < 10_001) setImmediate(count);
    };
    peer.onAsk = (what) => {
      if (what === 'list') setImmediate(count);
    };
    engine.start();
    await until(() => engine.mirrors.names.length === 10_001, 'all are followed');
    expect(turns).toBeGreaterThan(200);
  });

  it('that matches more tables than anybody made is a failure, and the others go on', async () => {
    const { peer, engine } = await patterned();
    peer.tables.list = async () => Array.from({ length: 10_001 }, (_, i) => `price-${i}`);
    const reports = await engine.run();
    expect(reports[0]).toMatchObject({ failure: { code: 'MIRROR_TOO_MANY' } });
    expect(names(engine)).toEqual(['price-*', 'price-a', 'price-b']);
  });

  it('that cannot be listed says so, and its tables go on', async () => {
    const { peer, engine } = await patterned();
    peer.onAsk = (what) => {
      if (what === 'list') throw peerError('PEER_ANSWER');
    };
    const reports = await engine.run();
    expect(reports.map(({ failure }) => failure?.code)).toEqual(['PEER_ANSWER', undefined, undefined]);
  });
});

describe('hostile names', () => {
  const HOSTILE = [
    '../../etc/passwd',
    '/etc/passwd',
    '..',
    '.',
    'a/../../b',
    'a\\..\\b',
    'con',
    'x\0y',
    '\u202eevil',
    '.peersync-0123456789abcdef.tmp',
    'a'.repeat(400),
    'Fruit',
    'fruit',
    'cafe\u0301',
    'caf\u00e9',
    'nested',
    'nested.csv/x',
    'fruit.csv.1',
  ];

  it('stay below the root, apart from each other, and are told', async () => {
    const peer = new FakePeer();
    const engine = new Engine(peer);
    for (const name of HOSTILE) peer.table(name, { k: { of: name } });
    await engine.open({ tables: [{ table: '*' }] });
    const reports = (await engine.run()).filter(({ name }) => name !== '*');
    expect(reports).toHaveLength(HOSTILE.length);
    expect(reports.filter(({ succeededAt }) => succeededAt === undefined)).toEqual([]);
    expect(engine.files()).toHaveLength(HOSTILE.length);
    expect(new Set(engine.files().map((file) => file.normalize('NFC').toLowerCase())).size).toBe(
      HOSTILE.length,
    );
    expect(reports.find(({ table }) => table === '../../etc/passwd')?.notes?.join()).toContain('passwd');
    for (const { name, notes = [] } of reports) expect([name, ...notes].join()).not.toMatch(/\p{C}/u);
    const files = engine.files();
    await engine.open({ tables: [{ table: '*' }] });
    expect((await engine.run()).filter(({ changed }) => changed)).toEqual([]);
    expect(engine.files()).toEqual(files);
  });
});

it('a mirror that is configured no more is forgotten, and its file stays', async () => {
  const { engine } = await mirrored();
  await engine.open({ tables: [] });
  await engine.run();
  expect(engine.state.metaNames('mirror/')).toEqual([]);
  expect(engine.files()).toEqual([FILE]);
});
