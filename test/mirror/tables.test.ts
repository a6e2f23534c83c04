import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { records } from '../../src/mirror/plan.js';
import type { Json } from '../../src/state/rows.js';
import type { State } from '../../src/state/state.js';
import { FakePeer, failing, type Rows } from '../support/fake-peer.js';
import {
  A_MINUTE_LATER,
  filesBelow,
  type MirrorWorld,
  openBelow,
} from '../support/mirror-world.js';
import { until } from '../support/wait.js';
import { world } from '../support/world.js';

const ROWS = { k1: { name: 'Apple', price: '3' }, k2: { name: 'Pear', price: '4' } };
const TURNED = { k2: { price: '4', name: 'Pear' }, k1: { price: '3', name: 'Apple' } };
const FILE = 'tables/fruit.csv';
const TEXT = 'pk,name,price\nk1,Apple,3\nk2,Pear,4\n';

/** The table `fruit`, mirrored once. */
async function fruit(more: object = {}, rows: Rows = ROWS) {
  const settings = { tables: [{ table: 'fruit', ...more }] };
  const peer = new FakePeer({ tables: { fruit: rows } });
  const w = await world({ mirrors: settings, peer, clock: A_MINUTE_LATER });
  await w.run();
  return { peer, w, once: () => w.once('fruit'), settings };
}

describe('a mirrored table', () => {
  it('becomes a file ordered by key, and an unchanged table keeps its mtime', async () => {
    const { peer, w, once } = await fruit({}, TURNED);
    const turned = 'pk,price,name\nk1,3,Apple\nk2,4,Pear\n';
    expect(w.read(FILE)).toBe(turned);
    const before = w.mtime(FILE);
    peer.table('fruit', ROWS);
    expect(await once()).toMatchObject({
      changed: false,
      rows: 2,
      columns: ['price', 'name'],
      path: FILE,
    });
    expect([w.mtime(FILE), w.read(FILE)]).toEqual([before, turned]);
  });

  it('has lines that end with LF or CRLF as configured, and is written once after a change of that', async () => {
    const { w, settings, once } = await fruit({ newline: 'crlf' });
    expect(w.read(FILE)).toBe(TEXT.replaceAll('\n', '\r\n'));
    expect(await once()).toMatchObject({ changed: false });
    await w.open({ tables: [{ ...settings.tables[0], newline: 'lf' }] });
    expect(await once()).toMatchObject({ changed: true });
    expect(w.read(FILE)).toBe(TEXT);
    expect(await once()).toMatchObject({ changed: false });
  });

  it('keeps the order of its columns, and appends new ones, even after a restart', async () => {
    const { peer, w, once, settings } = await fruit();
    peer.table('fruit', { k1: { ...ROWS.k1, colour: 'red', age: '1' } });
    await once();
    expect(w.read(FILE)).toBe('pk,name,price,colour,age\nk1,Apple,3,red,1\n');
    await w.open(settings);
    expect(await once()).toMatchObject({ changed: false });
  });

  it('leaves no temporary file open, after a success or a condition', async () => {
    const { peer, w, once } = await fruit();
    peer.tableRows.get('fruit')?.clear();
    expect((await once()).condition?.code).toBe('TABLE_EMPTY');
    expect(openBelow(join(w.stateDir, 'mirrors'))).toEqual([]);
  });

  it('has the columns that the peer names, even empty ones', async () => {
    const { peer, w, once } = await fruit();
    peer.columns = ['empty', 'name', 'price'];
    await once();
    expect(w.read(FILE)).toMatch(/^pk,name,price,empty\nk1,Apple,3,\n/);
    peer.columns = ['name', 'price'];
    expect((await once()).condition?.code).toBe('COLUMNS_LOST');
  });

  it('has the configured columns in that order, and notes one that the peer does not show', async () => {
    const { w, once } = await fruit({ columns: ['price', 'weight'] });
    expect(w.read(FILE)).toBe('pk,price,weight\nk1,3,\nk2,4,\n');
    const { condition, notes } = await once();
    expect([condition, notes]).toEqual([undefined, ['The peer shows no column "weight".']]);
  });

  it('is sorted and requested as configured', async () => {
    const { peer, w, once } = await fruit({
      sortBy: ['name'],
      columns: ['name'],
      search: 'red',
      count: 5,
    });
    const queries: unknown[] = [];
    const { stream } = peer.tables;
    peer.tables.stream = (query, use) => {
      queries.push(query);
      return stream(query, use);
    };
    peer.table('fruit', { k1: { name: 'Pear' }, k2: { name: 'Apple' } });
    await once();
    expect(w.read(FILE)).toBe('pk,name\nk2,Apple\nk1,Pear\n');
    expect(queries).toEqual([{ table: 'fruit', search: 'red', count: 5 }]);
  });

  it('is not written again if its record was lost in a crash, or is older than the file', async () => {
    const { peer, w, once } = await fruit();
    const older = w.state.meta('mirror/fruit');
    peer.table('fruit', { ...ROWS, k3: { name: 'Plum', price: '5' } });
    await once();
    const before = w.mtime(FILE);
    for (const record of [undefined, older]) {
      w.state.setMeta('mirror/fruit', record);
      expect(await once()).toMatchObject({
        changed: false,
        rows: 3,
        succeededAt: expect.any(Number),
      });
      expect(w.mtime(FILE)).toBe(before);
    }
    expect(w.logged.join()).not.toContain('put back');
  });

  it('is not emptied if its record was lost', async () => {
    const { peer, w, once } = await fruit();
    w.state.setMeta('mirror/fruit', undefined);
    peer.table('fruit', {});
    for (let i = 0; i < 2; i += 1)
      expect(await once()).toMatchObject({ condition: { code: 'TABLE_EMPTY' } });
    expect(w.read(FILE)).toBe(TEXT);
    expect(filesBelow(join(w.stateDir, 'mirrors')), 'where rows waited').toEqual([]);
    await w.mirrors.accept('fruit');
    expect(w.read(FILE)).toBe('pk\n');
  });

  it('reports a condition if it is larger than maxSize, and a person may accept it once', async () => {
    const { peer, w, once } = await fruit({ maxSize: '1 KiB' });
    const { stream } = peer.tables;
    const limits: number[] = [];
    peer.tables.stream = (query, use, { maxBytes = 0 }: { readonly maxBytes?: number } = {}) => {
      limits.push(maxBytes);
      if (maxBytes === 1024) throw failing('PEER_ANSWER_TOO_LARGE');
      return stream(query, use);
    };
    expect(await once()).toMatchObject({ condition: { code: 'MIRROR_TOO_LARGE' }, rows: 2 });
    expect((await w.mirrors.accept('fruit')).condition).toBeUndefined();
    expect(limits[1]).toBeGreaterThan(1024);
  });

  it('fails if the peer never had it, and is an empty file if the peer has it without rows', async () => {
    const settings = { tables: [{ table: 'empty' }, { table: 'none' }] };
    const w = await world({ mirrors: settings, peer: new FakePeer({ tables: { empty: {} } }) });
    await w.run();
    expect(w.status('empty')).toMatchObject({ rows: 0, changedAt: expect.any(Number) });
    expect(w.read('tables/empty.csv')).toBe('pk\n');
    expect(w.status('none')).toMatchObject({
      failure: {
        code: 'MIRROR_NOTHING',
        hint: 'Check its name in the configuration, or put it there: `peersync table set none --pk KEY COLUMN=VALUE` sets its first row. The peer is asked for it again.',
      },
    });
  });
});

describe.each<[string, Rows | undefined, string | undefined]>([
  ['TABLE_GONE', undefined, undefined],
  ['TABLE_EMPTY', {}, 'pk,name,price\n'],
  ['COLUMNS_LOST', { k1: { name: 'Apple' }, k2: { name: 'Pear' } }, 'pk,name\nk1,Apple\nk2,Pear\n'],
])('%s', (code, rows, accepted) => {
  it.each([false, true])(
    'keeps the old file, and ends with the table or when a person accepts it (edit: %s)',
    async (edit) => {
      const { peer, w, once } = await fruit({ edit });
      const mtime = w.mtime(FILE);
      const spoil = () =>
        rows === undefined ? peer.tableRows.delete('fruit') : peer.table('fruit', rows);
      spoil();
      expect(await once()).toMatchObject({ condition: { code }, rows: 2, changed: false });
      expect([w.read(FILE), w.mtime(FILE)]).toEqual([TEXT, mtime]);
      peer.table('fruit', ROWS);
      expect((await once()).condition).toBeUndefined();
      expect(w.mtime(FILE)).toBe(mtime);
      spoil();
      await once();
      expect(await w.mirrors.accept('fruit')).toMatchObject({ changed: true });
      expect(w.has(FILE) ? w.read(FILE) : undefined).toBe(accepted);
      expect((await once()).condition).toBeUndefined();
      peer.table('fruit', ROWS);
      expect(await once()).toMatchObject({ changed: true, rows: 2 });
      expect(w.read(FILE)).toBe(TEXT);
    },
  );
});

const MANY = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`k${n}`, { name: `n${n}` }]));
const first = (count: number) => Object.fromEntries(Object.entries(MANY).slice(0, count));

describe('a valid answer with less than the whole table', () => {
  it.each([
    ['ROWS_LOST', false, (peer: FakePeer) => peer.table('fruit', first(14))],
    ['ROWS_LOST', true, (peer: FakePeer) => peer.table('fruit', first(14))],
    [
      'TABLE_NOT_UTF8',
      false,
      (peer: FakePeer) => Object.assign(peer, { isUtf8: false }).table('fruit', first(29)),
    ],
    [
      'TABLE_NOT_UTF8',
      true,
      (peer: FakePeer) => Object.assign(peer, { isUtf8: false }).table('fruit', first(29)),
    ],
    ['KEYS_TWICE', false, (peer: FakePeer) => Object.assign(peer, { twice: ['k3'] })],
  ])('reports %s (edit: %s) until a person accepts it', async (code, edit, spoil) => {
    const { peer, w, once } = await fruit({ edit }, MANY);
    const before = w.read(FILE);
    spoil(peer);
    for (let i = 0; i < 2; i += 1) expect((await once()).condition?.code).toBe(code);
    expect(w.read(FILE)).toBe(before);
    expect(await w.mirrors.accept('fruit')).toMatchObject({ changed: true });
    for (let i = 0; i < 2; i += 1) expect((await once()).condition).toBeUndefined();
    Object.assign(peer, { isUtf8: true, twice: [] }).table('fruit', MANY);
    expect((await once()).condition).toBeUndefined();
    expect(w.read(FILE)).toBe(before);
  });

  it('is no condition if half of the rows are left, or only a few are missing', async () => {
    const { peer, once } = await fruit({}, MANY);
    for (const count of [15, 8, 1]) {
      peer.table('fruit', first(count));
      const { rows, condition } = await once();
      expect([rows, condition]).toEqual([count, undefined]);
    }
  });

  it('with duplicate keys is found in any order of rows', async () => {
    const { peer, once } = await fruit({ sortBy: ['name'] }, MANY);
    peer.twice = ['k3'];
    expect((await once()).condition?.code).toBe('KEYS_TWICE');
  });
});

it('the condition about lost columns names them, and counts only the configured ones', async () => {
  const { peer, w, once } = await fruit();
  peer.table('fruit', { k1: { colour: 'red' } });
  expect((await once()).condition?.message).toContain('"name", "price"');
  await w.open({ tables: [{ table: 'fruit', columns: ['colour'] }] });
  expect(await once()).toMatchObject({ changed: true });
});

describe('a record of an older release', () => {
  /** Renames a key of the record, as it was in an older release. */
  function rename(state: State, from: 'condition' | 'accepted', to: string): void {
    const { [from]: value, ...rest } = records.of(state, 'fruit') ?? { kind: 'table', path: '' };
    expect(value).toBeDefined();
    state.setMeta('mirror/fruit', { ...rest, [to]: value } as Json);
  }

  it('loses its condition, which the next run finds again', async () => {
    const { peer, w, settings, once } = await fruit();
    peer.table('fruit', {});
    await once();
    rename(w.state, 'condition', 'alarm');
    await w.open(settings);
    expect(w.status('fruit')?.condition).toBeUndefined();
    expect(await once()).toMatchObject({ condition: { code: 'TABLE_EMPTY' }, rows: 2 });
    expect(w.read(FILE)).toBe(TEXT);
    const { condition, rows } = await w.mirrors.accept('fruit');
    expect([condition, rows]).toEqual([undefined, 0]);
  });

  it('keeps what was accepted', async () => {
    const { peer, w, settings, once } = await fruit();
    peer.isUtf8 = false;
    await once();
    await w.mirrors.accept('fruit');
    rename(w.state, 'accepted', 'tolerated');
    await w.open(settings);
    const { condition, accepted } = await once();
    expect([condition, accepted]).toEqual([undefined, ['TABLE_NOT_UTF8']]);
  });
});

describe('an edited table', () => {
  const EDITED = 'pk,name\nk1,Quince\nk2,Pear\n';

  async function edited(more: object = {}) {
    const tables = { fruit: { k1: { name: 'Apple' }, k2: { name: 'Pear' } } };
    const settings = { tables: [{ table: 'fruit', edit: true, ...more }] };
    const peer = new FakePeer({ tables });
    const w = await world({ mirrors: settings, peer, clock: A_MINUTE_LATER });
    await w.run();
    return {
      peer,
      w,
      once: () => w.once('fruit'),
      edit: (text: string) => w.write(FILE, text),
    };
  }

  it('may lose all its rows by an edit, up to maxDeletes without a condition', async () => {
    for (const maxDeletes of [2, 1]) {
      const { peer, w, once, edit } = await edited({ deletes: true, maxDeletes });
      edit('pk,name\n');
      const report = await once();
      if (maxDeletes === 1) {
        expect(report).toMatchObject({ condition: { code: 'EDIT_DELETES' }, changed: false });
        expect(peer.writes).toEqual([]);
        await w.mirrors.accept('fruit');
      }
      expect(w.status()).toMatchObject({ rows: 0 });
      expect(w.status()?.condition).toBeUndefined();
      expect(peer.tableRows.get('fruit')?.size).toBe(0);
      expect((await once()).condition).toBeUndefined();
    }
  });

  it('that is gone changes nothing if its file was removed as well', async () => {
    const { peer, w, once } = await edited();
    peer.tableRows.delete('fruit');
    await once();
    rmSync(join(w.root, FILE));
    const accepted = await w.mirrors.accept('fruit');
    expect(accepted).toMatchObject({ changed: false, absentSince: expect.any(Number) });
  });

  it('shows its conflicts, and logs them once', async () => {
    const { peer, w, once, edit } = await edited();
    edit(EDITED);
    peer.table('fruit', { k1: { name: 'Banana' }, k2: { name: 'Pear' } });
    const { conflicts: [conflict] = [] } = await once();
    await once();
    expect(conflict).toMatchObject({ pk: 'k1', column: 'name' });
    expect(w.read(FILE)).toContain('Banana');
    expect(w.read(conflict?.file ?? '')).toBe(EDITED);
    expect(w.logged.filter((line) => line.startsWith('warn: '))).toEqual([
      `warn: mirror fruit: what was changed on both sides stays as the peer has it; the file as it was edited is ${conflict?.file}`,
    ]);
    expect(w.logged.join()).not.toContain('put back');
  });

  it('is not emptied if the peer shows no rows right after a push', async () => {
    const { peer, w, once, edit } = await edited();
    edit(EDITED);
    peer.onRequest = (what) => what.startsWith('did') && peer.table('fruit', {});
    expect(await once()).toMatchObject({ condition: { code: 'TABLE_EMPTY' } });
    expect(w.read(FILE)).toBe(EDITED);
  });

  it.each(['is written over', 'is removed'])(
    'saves edits that did not reach the peer when `edit` is switched off and the file %s',
    async (how) => {
      const { peer, w, once, edit } = await edited();
      edit(EDITED);
      await w.configure({ tables: [{ table: 'fruit' }] });
      if (how === 'is removed') peer.tableRows.delete('fruit');
      await once();
      if (how === 'is removed') await w.mirrors.accept('fruit');
      expect(w.has(FILE)).toBe(how === 'is written over');
      expect(peer.writes).toEqual([]);
      const [conflict, ...others] = w.status()?.conflicts ?? [];
      expect(others).toEqual([]);
      expect(w.read(conflict?.file ?? '')).toBe(EDITED);
      expect(w.logged.join()).toContain(conflict?.file);
      peer.table('fruit', { k1: { name: 'Banana' } });
      await once();
      rmSync(join(w.root, conflict?.file ?? ''));
      edit('pk,name\nk1,a word\n');
      const [other] = (await once()).conflicts ?? [];
      expect(w.read(other?.file ?? '')).toBe('pk,name\nk1,a word\n');
      expect(w.files()).toEqual([FILE, other?.file]);
    },
  );

  it('saves no conflict file when `edit` is switched off and all edits were pushed', async () => {
    const { w, once } = await edited();
    await w.configure({ tables: [{ table: 'fruit' }] });
    expect((await once()).conflicts ?? []).toEqual([]);
    expect(w.files()).toEqual([FILE]);
  });

  it('that is not configured any more leaves only its file after the next start, and loses no edit if it comes back', async () => {
    const { peer, w, once, edit } = await edited();
    const kept = () => readdirSync(join(w.stateDir, 'mirrors')).length;
    const settings = { tables: [{ table: 'fruit', edit: true }] };
    await w.open(settings);
    expect(kept()).toBe(1);
    edit(EDITED);
    await w.open({});
    expect(kept()).toBe(0);
    expect(w.read(FILE)).toBe(EDITED);
    await w.open(settings);
    const { conflicts: [conflict] = [] } = await once();
    expect(w.read(conflict?.file ?? '')).toBe(EDITED);
    expect(peer.writes).toEqual([]);
  });
});

describe('a pattern over tables', () => {
  const TABLES = {
    'price-a': { k: { a: '1' } },
    'price-b': { k: { b: '1' } },
    other: { k: { c: '1' } },
  };
  const patterned = async (...more: object[]) => {
    const peer = new FakePeer({ tables: TABLES });
    const w = await world({ mirrors: { tables: [{ table: 'price-*' }, ...more] }, peer });
    await w.run();
    return { peer, w };
  };

  it('mirrors each table that it matches, later ones too, and remembers them after a restart', async () => {
    const { peer, w } = await patterned();
    expect(w.files()).toEqual(['tables/price-a.csv', 'tables/price-b.csv']);
    peer.table('price-c', { k: { a: '1' } });
    await w.run('price-*');
    expect(w.files()).toContain('tables/price-c.csv');
    await w.open({ tables: [{ table: 'price-*' }] });
    expect(w.names).toEqual(['price-*', 'price-a', 'price-b', 'price-c']);
    expect(await w.once('price-a')).toMatchObject({ changed: false });
    await w.open({ tables: [{ table: 'price-*', name: 'prices' }] });
    await w.run();
    expect(w.names).toEqual(['prices', 'prices/price-a', 'prices/price-b', 'prices/price-c']);
  });

  it('is reported with the path of its files, and a table with its own path before its first run', async () => {
    const pathsOf = (w: MirrorWorld) =>
      w.mirrors.status().map(({ name, path }) => `${name} ${path}`);
    const { w } = await patterned();
    const files = ['price-a tables/price-a.csv', 'price-b tables/price-b.csv'];
    expect(pathsOf(w)).toEqual(['price-* tables/price-*.csv', ...files]);
    const later = await world({ mirrors: { tables: [{ table: 'later' }] } });
    expect(pathsOf(later)).toEqual(['later tables/later.csv']);
  });

  it('leaves out a table that has its own entry', async () => {
    const { w } = await patterned({ table: 'price-a', path: 'own.csv' });
    expect(w.files()).toEqual(['own.csv', 'tables/price-b.csv']);
  });

  it('creates no second mirror of a table with an entry under another name', async () => {
    const tables = [{ table: 'price-*' }, { table: 'price-a', name: 'own', path: 'own.csv' }];
    const peer = new FakePeer({ tables: { 'price-a': { k: { a: '1' } } } });
    peer.tables.list = async () => [];
    const w = await world({ mirrors: { tables }, peer });
    await w.run();
    await w.open({ tables });
    expect(w.names).toEqual(['price-*', 'own']);
  });

  it('keeps the path of a file when similar tables come later', async () => {
    const { peer, w } = await patterned();
    for (const name of ['Price-a', 'price-A']) peer.table(name, { k: { a: name } });
    let files: string[] = [];
    for (let i = 0; i < 2; i += 1) {
      await w.open({ tables: [{ table: '?rice-*' }] });
      await w.run();
      expect(w.read('tables/price-a.csv')).toContain('k,1');
      if (i === 1) expect(w.files()).toEqual(files);
      files = w.files();
      expect(files).toHaveLength(4);
    }
  });

  it.each(['unknown to the peer', 'without rows'])(
    'reports a table that is not listed any more, %s',
    async (how) => {
      const { peer, w } = await patterned();
      if (how === 'without rows') peer.table('price-a', {});
      else peer.tableRows.delete('price-a');
      peer.tables.list = async () => ['price-b'];
      await w.run();
      expect(w.status('price-a')).toMatchObject({ condition: { code: 'TABLE_GONE' } });
      expect(w.files()).toEqual(['tables/price-a.csv', 'tables/price-b.csv']);
      expect(await w.mirrors.accept('price-a')).toMatchObject({ isOver: true, changed: true });
      expect(w.files()).toEqual(['tables/price-b.csv']);
      await w.run();
      expect(w.names).toEqual(['price-*', 'price-b']);
    },
  );

  it('forgets a table that went before it was read, and touches no file at its path', async () => {
    const { peer, w } = await patterned();
    w.write('tables/price-c.csv', 'of somebody else');
    const { list } = peer.tables;
    peer.tables.list = async () => [...(await list()), 'price-c'];
    await w.run('price-*');
    expect(w.status('price-c')).toMatchObject({ failure: { code: 'MIRROR_NOTHING' } });
    peer.tables.list = list;
    const report = (await w.run()).find(({ name }) => name === 'price-c');
    expect(report).toMatchObject({ isOver: true, changed: false });
    expect(w.names).toEqual(['price-*', 'price-a', 'price-b']);
    expect(w.read('tables/price-c.csv')).toBe('of somebody else');
  });

  it('follows 10,000 tables without blocking the event loop, and fails for more', async () => {
    const peer = new FakePeer();
    for (let i = 0; i < 10_000; i += 1) peer.table(`t-${i}`, {});
    const mirrors = { tables: [{ table: 't-*', versions: 1, every: '1h' }] };
    const w = await world({ mirrors, peer });
    // The list comes at once, and its tables one after the other.
    w.random = () => (w.names.length > 1 ? Math.random() : 0);
    let turns = 0;
    const count = () => {
      turns += 1;
      if (w.names.length < 10_001) setImmediate(count);
    };
    peer.onRequest = (what) => what === 'list' && setImmediate(count);
    w.start();
    await until(() => w.names.length === 10_001, 'all are followed');
    expect(turns).toBeGreaterThan(200);
    peer.table('t-10000', {});
    const { value: pattern } = await w.mirrors.run(['t-*']).next();
    expect(pattern).toMatchObject({ failure: { code: 'MIRROR_TOO_MANY' } });
    expect(w.names).toHaveLength(10_001);
  });

  it('reports a peer without a list, and its tables go on', async () => {
    const { peer, w } = await patterned();
    peer.onRequest = (what) => what === 'list' && Promise.reject(failing('PEER_ANSWER'));
    const reports = await w.run();
    expect(reports.map(({ failure }) => failure?.code)).toEqual([
      'PEER_ANSWER',
      undefined,
      undefined,
    ]);
  });
});

it('files of hostile table names stay below the root and apart, with a note each', async () => {
  const NAMES = [
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
  const tables = Object.fromEntries(NAMES.map((name) => [name, { k: { of: name } }]));
  const w = await world({
    mirrors: { tables: [{ table: '*' }] },
    peer: new FakePeer({ tables }),
  });
  await w.run();
  const reports = w.mirrors.status().filter(({ name }) => name !== '*');
  expect(reports.filter(({ succeededAt }) => succeededAt !== undefined)).toHaveLength(NAMES.length);
  const files = w.files();
  expect(files).toHaveLength(NAMES.length);
  expect(new Set(files.map((file) => file.normalize('NFC').toLowerCase())).size).toBe(NAMES.length);
  expect(reports.find(({ table }) => table === '../../etc/passwd')?.notes?.join()).toContain(
    'passwd',
  );
  for (const { name, notes = [] } of reports) expect([name, ...notes].join()).not.toMatch(/\p{C}/u);
  await w.open({ tables: [{ table: '*' }] });
  expect((await w.run()).filter(({ changed }) => changed)).toEqual([]);
  expect(w.files()).toEqual(files);
});
