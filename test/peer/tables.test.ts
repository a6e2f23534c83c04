import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PeerTables } from '../../src/peer/tables.js';
import { ANY_CHARACTER, realAnswer, serving } from './support.js';

type Cells = Record<string, string>;

/** The faults of a peer. */
interface Faults {
  /** Returns all rows whichever is requested. */
  readonly ignoresKeys?: boolean;
  /** Returns the cell that the peer stores for the one that it was given. */
  readonly keep?: (cell: string) => string | undefined;
  readonly ignoresDeletes?: boolean;
  /** Sends this many bytes as the answer to a change, and never ends it. */
  readonly words?: number;
  readonly dropsEmptyTables?: boolean;
}

/** A peer with these tables, which records the parameters of each request. */
async function tablePeer(
  faults: Faults = {},
  given: Readonly<Record<string, Record<string, Cells>>> = {},
  options: Parameters<typeof serving>[1] = {},
) {
  const all = new Map(
    Object.entries(given).map(([name, rows]) => [name, new Map(Object.entries(rows))]),
  );
  const asked: { readonly path: string; readonly fields: [string, string][] }[] = [];
  const { keep = (cell: string) => cell, ignoresDeletes = false, words } = faults;
  const { client } = await serving(({ method, url, body }, response) => {
    const form = new URLSearchParams(body);
    const [table, pk] = [form.get('table') ?? '', form.get('pk') ?? ''];
    asked.push({ path: `${method} ${url}`, fields: [...form] });
    if (form.has('commitrow')) {
      const cells = [...form].flatMap(([name, value]) =>
        name.startsWith('col_') ? [[name.slice(4), keep(value)] as const] : [],
      );
      const kept = cells.filter((cell): cell is [string, string] => cell[1] !== undefined);
      const rows = all.get(table) ?? new Map<string, Cells>();
      all.set(
        table,
        rows.set(pk, Object.fromEntries([...Object.entries(rows.get(pk) ?? {}), ...kept])),
      );
    }
    const rows = all.get(table);
    if (form.has('deleterows') && !ignoresDeletes)
      for (const [name, value] of form) if (name.startsWith('item_')) rows?.delete(value.slice(3));
    if (form.has('deletetable') && !ignoresDeletes) all.delete(table);
    if (faults.dropsEmptyTables && rows?.size === 0) all.delete(table);
    if (table === '') response.end(JSON.stringify({ tables: [...all.keys()] }));
    else if (rows === undefined) response.writeHead(404).end('no such table');
    else if (url === READ.slice(5)) {
      const shown = [...rows].filter(
        ([key]) => faults.ignoresKeys || !form.has('pk') || key === pk,
      );
      response.end(
        JSON.stringify({ table, rows: shown.map(([key, cells]) => ({ pk: key, cells })) }),
      );
    } else if (words === undefined) response.end('done');
    else response.write('w'.repeat(words));
  }, options);
  const keys = (table: string) => [...(all.get(table)?.keys() ?? [])];
  return { tables: client.tables, asked, keys };
}

const row = (pk: string, cells: Cells = {}) => ({ pk, cells: new Map(Object.entries(cells)) });
const NOT_DONE = { code: 'PEER_NOT_DONE' };
const READ = 'POST /api/table_p.html';
const numbered = (count: number) =>
  Array.from({ length: count }, (_, n) => row(`k${n}`, { a: `${n}` }));

describe('tables that are read', () => {
  it('are complete, with all columns in order of appearance; undefined if there is no such table', async () => {
    const { tables } = await tablePeer({}, { T: { k2: { b: 'x' }, k1: { a: 'y', b: '' } } });
    expect(await tables.read({ table: 'T' })).toEqual({
      name: 'T',
      columns: ['b', 'a'],
      rows: [row('k2', { b: 'x' }), row('k1', { a: 'y', b: '' })],
    });
    expect(
      await tables.stream({ table: 'U' }, () => Promise.reject(new Error('used'))),
    ).toBeUndefined();
    const reading = tables.read({ table: 'T' }, { maxBytes: 20 });
    await expect(reading).rejects.toMatchObject({ code: 'PEER_ANSWER_TOO_LARGE' });
  });

  it('throw in the middle if the answer breaks off there', async () => {
    const part = `{"table":"T","rows":[\n${'{"pk":"k","cells":{}},\n'.repeat(5_000)}{"pk":`;
    const { client } = await serving((_, response) => response.end(part));
    let rows = 0;
    const reading = client.tables.stream({ table: 'T' }, async (table) => {
      for await (const group of table.rows) rows += group.length;
    });
    const firstBytes = expect.stringContaining('{"pk":"k"');
    await expect(reading).rejects.toMatchObject({ code: 'PEER_ANSWER', status: 200, firstBytes });
    expect(rows).toBeGreaterThan(0);
  });
});

describe('the list of tables', () => {
  const listOf = async (body: string | Buffer) =>
    (await serving((_, response) => response.end(body))).client.tables.list();
  const CHOICES =
    '<select name="count"><option>10</select><select name=table><option value="x y">X</select>';
  const PAGE = realAnswer('tables.html');

  it.each([
    ['{"tables":["b","a",""]}', ['b', 'a']],
    ['{"tables":[]}', []],
    [`<html>${CHOICES}</html>`, ['x y']],
    [PAGE, ['../../x', 'UPPER', 'a b', 'pkcounter', 'with/slash', 'stats', 'é', 'robots', 'api']],
  ])('is read: %#', async (body, names) => {
    expect(await listOf(body)).toEqual(names);
  });

  it.each([
    '{"error":"no"}',
    '<html>Welcome</html>',
    '',
    PAGE.subarray(0, PAGE.indexOf('with/slash')),
  ])('is never read from another page, or from part of one: %#', async (body) => {
    await expect(listOf(body)).rejects.toMatchObject({ code: 'PEER_ANSWER' });
  });
});

describe('rows that are set', () => {
  it('are read back one by one if they are few, and in one pass if they are many', async () => {
    const { asked, tables } = await tablePeer();
    await tables.set('T', numbered(3));
    const one = (pk: string) => ({
      path: READ,
      fields: [
        ['table', 'T'],
        ['pk', pk],
      ],
    });
    expect(asked.slice(3)).toEqual(['k0', 'k1', 'k2'].map(one));
    await tables.set('T', numbered(40));
    expect(asked.slice(46)).toEqual([{ path: READ, fields: [['table', 'T']] }]);
  });

  it('are read back in one request from a peer that always returns all rows', async () => {
    const { asked, tables } = await tablePeer({ ignoresKeys: true }, {}, { maxAnswer: 50 });
    expect(await tables.set('T', numbered(3))).toEqual(numbered(3));
    expect(asked).toHaveLength(4);
  });

  it('keep their other cells, may be set twice, and may have empty cells that the peer drops', async () => {
    const { tables } = await tablePeer(
      { keep: (cell) => cell || undefined },
      { T: { k: { c: 'stays' } } },
    );
    const seen = await tables.set('T', [row('k', { a: '1', b: '' }), row('k', { a: '2' })]);
    expect(seen).toEqual([row('k', { c: 'stays', a: '2' })]);
  });

  it('fail if a cell reads back with another text, however long both are', async () => {
    const { tables } = await tablePeer({ keep: (cell) => cell.slice(0, 5_000).trimEnd() });
    const set = (a: string) => tables.set('T', [row('k 1', { b: 'ok', a })]);
    const words =
      'was asked to set column "a" of row "k 1" of the table "T" to "x ", and shows "x"';
    const message = expect.stringContaining(words);
    await expect(set('x ')).rejects.toMatchObject({ ...NOT_DONE, delivered: 'yes', message });
    await expect(set('y'.repeat(1_000_000))).rejects.toThrow(/\(from character 4975 on\)$/);
    const reason = await set('\u001b[2J'.repeat(9_000)).catch((error: Error) => error.message);
    expect(reason).not.toContain('\u001b');
    expect(String(reason).length).toBeLessThan(2_500);
  });

  it('fail if the row is missing when read back', async () => {
    const { client } = await serving((_, response) => response.end('{"rows":[]}'));
    const expected = { ...NOT_DONE, message: expect.stringContaining('does not show that row') };
    await expect(client.tables.set('T', numbered(1))).rejects.toMatchObject(expected);
  });

  it('do not wait for the end of the peer’s answer to a change', async () => {
    const { tables } = await tablePeer({ words: 100_000 });
    expect(await tables.set('T', numbered(1))).toEqual(numbered(1));
  });

  it('read back as they were set, whatever they contain', async () => {
    const { tables } = await tablePeer();
    const text = fc.string({ unit: ANY_CHARACTER });
    const name = fc
      .oneof(
        fc.string({ unit: ANY_CHARACTER, minLength: 1, maxLength: 20 }),
        fc.constantFrom('__proto__', 'x'.repeat(500)),
      )
      .filter((any) => !any.endsWith('\0'));
    await fc.assert(
      fc.asyncProperty(name, name, name, text, async (table, pk, column, cell) => {
        const [seen] = await tables.set(table, [{ pk, cells: new Map([[column, cell]]) }]);
        expect([seen?.pk, seen?.cells.get(column)]).toEqual([pk, cell]);
      }),
      { numRuns: 30 },
    );
    const half = row('k', { a: 'half \ud83d' });
    expect(await tables.set('U', [half])).toEqual([row('k', { a: 'half \ufffd' })]);
  });
});

describe('a row that is added', () => {
  it('gets a new key that sorts by time', async () => {
    const { keys, tables } = await tablePeer();
    const [first, second] = [
      await tables.add('T', new Map()),
      await tables.add('T', new Map([['a', 'x']])),
    ];
    expect(first.pk).toMatch(/^[0-9a-z]{12}$/);
    expect(second.pk.slice(0, 8) >= first.pk.slice(0, 8)).toBe(true);
    expect(second.cells).toEqual(new Map([['a', 'x']]));
    expect(keys('T')).toEqual([first.pk, second.pk]);
  });

  it('is not added under a key that is taken', async () => {
    const { server, client } = await serving(({ body }, response) =>
      response.end(JSON.stringify({ rows: [{ pk: new URLSearchParams(body).get('pk') }] })),
    );
    await expect(client.tables.add('T', new Map())).rejects.toMatchObject(NOT_DONE);
    expect(server.requests).toMatchObject([{ url: '/api/table_p.html' }]);
  });
});

describe('rows that are deleted', () => {
  it('are exactly the named ones, a hundred per request, and are looked up afterwards', async () => {
    const all = Array.from({ length: 250 }, (_, n) => `k${n}`);
    const rows = Object.fromEntries([...all, 'left'].map((pk) => [pk, {}]));
    const { asked, keys, tables } = await tablePeer({}, { T: rows });
    expect(await tables.deleteRows('T', [...all, 'k0', 'nowhere'])).toEqual([...all, 'nowhere']);
    const items = asked.map(({ fields }) => fields.filter(([name]) => name.startsWith('item_')));
    expect(items.map(({ length }) => length)).toEqual([100, 100, 51, 0]);
    expect(items[2]?.at(-1)).toEqual(['item_50', 'pk_nowhere']);
    expect(keys('T')).toEqual(['left']);
  });

  it('fail if one is still there, and the error names it', async () => {
    const { tables } = await tablePeer({ ignoresDeletes: true }, { T: { a: {}, b: {} } });
    const words = 'to delete row "a" of the table "T" and 1 more, and still shows it';
    const expected = { ...NOT_DONE, message: expect.stringContaining(words) };
    await expect(tables.deleteRows('T', ['a', 'b'])).rejects.toMatchObject(expected);
  });

  it('count as deleted if the peer drops the empty table and no longer lists it', async () => {
    const { tables } = await tablePeer({ dropsEmptyTables: true }, { T: { a: {} } });
    expect(await tables.deleteRows('T', ['a'])).toEqual(['a']);
    const { client } = await serving(({ url }, response) =>
      response.writeHead(url === '/api/table_p.html' ? 404 : 200).end('{"tables":["T"]}'),
    );
    await expect(client.tables.deleteRows('T', ['a'])).rejects.toMatchObject(NOT_DONE);
  });
});

it('dropping a table returns the remaining tables, without it', async () => {
  const both = { T: {}, U: {} };
  expect(await (await tablePeer({}, both)).tables.drop('T')).toEqual(['U']);
  const { tables } = await tablePeer({ ignoresDeletes: true }, both);
  await expect(tables.drop('T')).rejects.toMatchObject(NOT_DONE);
});

it('a change is refused if the peer has no page for it', async () => {
  const { client } = await serving((_, response) => response.writeHead(404).end('no'));
  const refused = { code: 'PEER_REFUSED', status: 404 };
  await expect(client.tables.set('T', [row('k')])).rejects.toMatchObject(refused);
});

type Call = (tables: PeerTables, bad: string, signal?: AbortSignal) => Promise<unknown>;
const OF_A_TABLE: readonly Call[] = [
  (tables, table, signal) => tables.read({ table }, { signal }),
  (tables, table, signal) => tables.set(table, [row('k')], { signal }),
  (tables, table, signal) => tables.add(table, new Map(), { signal }),
  (tables, table, signal) => tables.deleteRows(table, ['k'], { signal }),
  (tables, table, signal) => tables.drop(table, { signal }),
];
const OF_KEYS: readonly Call[] = [
  (tables, bad) => tables.set('T', [row('k'), row(bad)]),
  (tables, bad) => tables.deleteRows('T', ['k', bad]),
];

it.each<[RegExp, readonly string[], readonly Call[]]>([
  [/^a table has 1 to 500 well-formed/, ['', 'x'.repeat(501), 'half \ud83d'], OF_A_TABLE],
  [/^a key has/, ['', 'x'.repeat(501)], OF_KEYS],
  [/^a column has/, [''], [(tables, bad) => tables.set('T', [row('k', { [bad]: 'x' })])]],
  [/does not end with NUL/, ['k\0'], OF_KEYS],
  [/needs the keys/, [''], [(tables) => tables.deleteRows('T', [])]],
])(
  'names that no peer can have are mistakes of the caller, and nothing is asked: %s',
  async (why, bads, calls) => {
    const { asked, tables } = await tablePeer({}, { T: { k: {} } });
    for (const call of calls)
      for (const bad of bads) {
        const error = await call(tables, bad).catch((e: unknown) => e);
        expect(error).toBeInstanceOf(TypeError);
        expect(String(error)).toMatch(new RegExp(why.source.replace('^', '^TypeError: ')));
      }
    expect(asked).toEqual([]);
  },
);

it('a request about tables ends when it is aborted', async () => {
  const { client } = await serving(() => {});
  const stop = new AbortController();
  const { tables } = client;
  const asked = [...OF_A_TABLE.map((call) => call(tables, 'T', stop.signal)), tables.list(stop)];
  const aborted = asked.map((each) => expect(each).rejects.toMatchObject({ code: 'PEER_ABORTED' }));
  stop.abort();
  await Promise.all(aborted);
});
