import type { ServerResponse } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PeerClient } from '../../src/peer/client.js';
import { ANY_CHARACTER, clientOf, type Recorded, realAnswer, serving, TestServer } from './support.js';

type Cells = Record<string, string>;

/** What a peer gets wrong. */
interface Faults {
  /** It gives all rows whichever is asked for. */
  readonly ignoresKeys?: boolean;
  /** What it does with a cell that it is told to keep. */
  readonly keep?: (cell: string) => string | undefined;
  readonly ignoresDeletes?: boolean;
  readonly ignoresDrops?: boolean;
  /** It answers to changes with so many bytes, and does not come to an end. */
  readonly words?: number;
  readonly dropsEmptyTables?: boolean;
}

/** A peer that has tables, and keeps the parameters of each request. */
class TablePeer {
  readonly asked: (readonly [string, string])[][] = [];
  readonly tables = new Map<string, Map<string, Cells>>();
  readonly paths: string[] = [];

  private constructor(private readonly faults: Faults) {}

  /** With these tables: rows by key. */
  static async start(faults: Faults = {}, tables: Readonly<Record<string, Record<string, Cells>>> = {}) {
    const peer = new TablePeer(faults);
    for (const [name, rows] of Object.entries(tables)) peer.tables.set(name, new Map(Object.entries(rows)));
    const server = await TestServer.http((request, response) => peer.#answer(request, response));
    const client = clientOf(server.url);
    return { peer, tables: client.tables };
  }

  keys(table: string): string[] {
    return [...(this.tables.get(table)?.keys() ?? [])];
  }

  #answer({ method, url, body }: Recorded, response: ServerResponse): void {
    const form = new URLSearchParams(body);
    this.paths.push(`${method} ${url}`);
    this.asked.push([...form]);
    const table = form.get('table') ?? '';
    if (url === '/Tables_p.html') this.#edit(table, form, response);
    else this.#show(table, form, response);
  }

  #edit(table: string, form: URLSearchParams, response: ServerResponse): void {
    const { keep = (cell: string) => cell, ignoresDeletes, ignoresDrops, words } = this.faults;
    if (table === '') {
      response.end(JSON.stringify({ tables: [...this.tables.keys()] }));
      return;
    }
    if (form.has('commitrow')) {
      const columns = [...form].filter(([name]) => name.startsWith('col_'));
      const kept = columns.map(([name, value]) => [name.slice(4), keep(value)] as const);
      const rows = this.tables.get(table) ?? new Map<string, Cells>();
      const pk = form.get('pk') ?? '';
      // Not one by one: to set `__proto__` of an object adds nothing to it.
      const cells = Object.fromEntries(kept.filter(([, value]) => value !== undefined)) as Cells;
      this.tables.set(table, rows.set(pk, { ...rows.get(pk), ...cells }));
    }
    const rows = this.tables.get(table);
    if (rows === undefined) {
      response.writeHead(404).end('no such table');
      return;
    }
    if (form.has('deleterows') && !ignoresDeletes) {
      for (const [name, value] of form) if (name.startsWith('item_')) rows.delete(value.slice(3));
      if (this.faults.dropsEmptyTables && rows.size === 0) this.tables.delete(table);
    }
    if (form.has('deletetable') && !ignoresDrops) this.tables.delete(table);
    if (words === undefined) response.end('done');
    else response.write('w'.repeat(words));
  }

  #show(table: string, form: URLSearchParams, response: ServerResponse): void {
    const rows = this.tables.get(table);
    const pk = this.faults.ignoresKeys ? null : form.get('pk');
    const shown = [...(rows ?? [])].filter(([key]) => pk === null || key === pk);
    const answer = { table, rows: shown.map(([key, cells]) => ({ pk: key, cells })) };
    response.writeHead(rows === undefined ? 404 : 200).end(JSON.stringify(answer));
  }
}

const row = (pk: string, cells: Cells = {}) => ({ pk, cells: new Map(Object.entries(cells)) });
const NOT_DONE = { code: 'PEER_NOT_DONE' };
const READ = 'POST /api/table_p.html';
const numbered = (count: number) => Array.from({ length: count }, (_, n) => row(`k${n}`, { a: `${n}` }));

describe('tables that are read', () => {
  it('come whole, with all columns in the order in which they were shown; undefined where there is none', async () => {
    const { tables } = await TablePeer.start({}, { T: { k2: { b: 'x' }, k1: { a: 'y', b: '' } } });
    expect(await tables.read({ table: 'T' })).toEqual({
      ...{ name: 'T', columns: ['b', 'a'] },
      rows: [row('k2', { b: 'x' }), row('k1', { a: 'y', b: '' })],
    });
    expect(await tables.stream({ table: 'U' }, () => Promise.reject(new Error('used')))).toBeUndefined();
    const reading = tables.read({ table: 'T' }, { maxBytes: 20 });
    await expect(reading).rejects.toMatchObject({ code: 'PEER_ANSWER_TOO_LARGE' });
  });

  it('throw in the middle where the answer breaks off there', async () => {
    const { client } = await serving((_, response) =>
      response.end(`{"table":"T","rows":[\n${'{"pk":"k","cells":{}},\n'.repeat(5_000)}{"pk":`),
    );
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
  const CHOICES = '<select name="count"><option>10</select><select name=table><option value="x y">X</select>';
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
    ...['{"error":"no"}', '{"tables":["a"', '<html><body>Welcome</body></html>', '<a>'.repeat(1_000), ''],
    PAGE.subarray(0, PAGE.indexOf('with/slash')),
  ])('is never taken from something else, or a part: %#', async (body) => {
    await expect(listOf(body)).rejects.toMatchObject({ code: 'PEER_ANSWER' });
  });
});

describe('rows that are set', () => {
  it('are committed one by one with the cells that are given, and read back', async () => {
    const { peer, tables } = await TablePeer.start({}, { T: { k1: { a: 'old', b: 'stays' } } });
    const seen = await tables.set('T', [row('k2', { a: 'new' }), row('k1', { a: 'x & y' })]);
    expect(seen).toEqual([row('k2', { a: 'new' }), row('k1', { a: 'x & y', b: 'stays' })]);
    const sent = peer.asked.map((fields) => fields.filter(([name]) => name.startsWith('col_')));
    expect(sent.slice(0, 2)).toEqual([[['col_a', 'new']], [['col_a', 'x & y']]]);
  });

  it('are read back one by one where they are few, and in one pass where they are many', async () => {
    const { peer, tables } = await TablePeer.start();
    await tables.set('T', numbered(3));
    expect(peer.paths.slice(3)).toEqual([READ, READ, READ]);
    expect(peer.asked.slice(3).map((fields) => new Map(fields).get('pk'))).toEqual(['k0', 'k1', 'k2']);
    await tables.set('T', numbered(40));
    expect(peer.paths.slice(46)).toEqual([READ]);
    expect(peer.asked.at(-1)).toEqual([['table', 'T']]);
  });

  it('are read once from a peer that gives all rows whichever is asked for', async () => {
    const { peer, tables } = await TablePeer.start({ ignoresKeys: true });
    expect(await tables.set('T', numbered(3))).toEqual(numbered(3));
    expect(peer.paths).toHaveLength(4);
  });

  it('may be set twice, and have empty cells that the peer does not keep', async () => {
    const { tables } = await TablePeer.start({ keep: (cell) => cell || undefined });
    const seen = await tables.set('T', [row('k', { a: '1', b: '' }), row('k', { a: '2' })]);
    expect(seen).toEqual([row('k', { a: '2' })]);
  });

  it('are not done where a cell is seen with another text, however long both are', async () => {
    const { tables } = await TablePeer.start({ keep: (cell) => cell.slice(0, 5_000).trimEnd() });
    const set = (a: string) => tables.set('T', [row('k 1', { b: 'ok', a })]);
    const words = 'was told to set column "a" of row "k 1" of the table "T" to "x ", and shows "x"';
    const message = expect.stringContaining(words);
    await expect(set('x ')).rejects.toMatchObject({ ...NOT_DONE, delivered: 'yes', message });
    await expect(set('y'.repeat(1_000_000))).rejects.toThrow(/\(from character 4975 on\)$/);
    const told = (await set('\u001b[2J'.repeat(9_000)).catch((error: Error) => error)) as Error;
    expect(told.message.length).toBeLessThan(2_500);
    expect(told.message).not.toContain('\u001b');
  });

  it('are not done where the row is not seen', async () => {
    const { client } = await serving((_, response) => response.end('{"rows":[]}'));
    const message = expect.stringContaining('does not show that row');
    await expect(client.tables.set('T', [row('k', { a: 'x' })])).rejects.toMatchObject({
      ...NOT_DONE,
      message,
    });
  });

  it('do not wait for the end of what the peer says to a change', async () => {
    const { tables } = await TablePeer.start({ words: 100_000 });
    expect(await tables.set('T', numbered(1))).toEqual(numbered(1));
  });

  it('come back as they went, whatever they hold', async () => {
    const { tables } = await TablePeer.start();
    const name = fc
      .string({ unit: ANY_CHARACTER, minLength: 1, maxLength: 20 })
      .filter((text) => !text.endsWith('\0'));
    const proto = '__proto__';
    await fc.assert(
      fc.asyncProperty(
        name,
        name,
        name,
        fc.string({ unit: ANY_CHARACTER }),
        async (table, pk, column, text) => {
          const [seen] = await tables.set(table, [{ pk, cells: new Map([[column, text]]) }]);
          expect(seen?.pk).toBe(pk);
          expect(seen?.cells.get(column)).toBe(text);
        },
      ),
      {
        numRuns: 20,
        examples: [
          ['T', 'k', proto, ''],
          [proto, proto, proto, 'x'],
          ['T', 'k', 'x'.repeat(500), ''],
        ],
      },
    );
    expect(await tables.set('U', [row('k', { a: 'half \ud83d' })])).toMatchObject([
      row('k', { a: 'half \ufffd' }),
    ]);
  });
});

describe('a row that is added', () => {
  it('gets a new key that sorts by time', async () => {
    const { peer, tables } = await TablePeer.start();
    const [first, second] = [await tables.add('T', new Map()), await tables.add('T', new Map([['a', 'x']]))];
    expect(first.pk).toMatch(/^[0-9a-z]{12}$/);
    expect(second.pk.slice(0, 8) >= first.pk.slice(0, 8)).toBe(true);
    expect(second.cells).toEqual(new Map([['a', 'x']]));
    expect(peer.keys('T')).toEqual([first.pk, second.pk]);
  });

  it('is not added under a key that is taken', async () => {
    const { server, client } = await serving(({ body }, response) =>
      response.end(JSON.stringify({ rows: [{ pk: new URLSearchParams(body).get('pk') }] })),
    );
    await expect(client.tables.add('T', new Map())).rejects.toMatchObject(NOT_DONE);
    expect(server.requests.map(({ url }) => url)).toEqual(['/api/table_p.html']);
  });
});

describe('rows that are deleted', () => {
  it('are exactly those that were named, and are looked for afterwards', async () => {
    const { peer, tables } = await TablePeer.start({}, { T: { a: {}, b: {}, c: {} } });
    expect(await tables.deleteRows('T', ['c', 'a', 'c', 'nowhere'])).toEqual(['c', 'a', 'nowhere']);
    expect(peer.keys('T')).toEqual(['b']);
    expect(peer.paths.slice(1)).toEqual([READ, READ, READ]);
  });

  it('are named a hundred a request', async () => {
    const keys = Array.from({ length: 250 }, (_, n) => `k${n}`);
    const rows = Object.fromEntries([...keys, 'left'].map((pk) => [pk, {}]));
    const { peer, tables } = await TablePeer.start({}, { T: rows });
    await tables.deleteRows('T', keys);
    const items = peer.asked.map((fields) => fields.filter(([name]) => name.startsWith('item_')));
    expect(items.map(({ length }) => length)).toEqual([100, 100, 50, 0]);
    expect(items[2]?.at(-1)).toEqual(['item_49', 'pk_k249']);
    expect(peer.keys('T')).toEqual(['left']);
  });

  it('are not done where one is still seen, and it is named', async () => {
    const { tables } = await TablePeer.start({ ignoresDeletes: true }, { T: { a: {}, b: {} } });
    const words = 'to delete row "a" of the table "T" and 1 more, and still shows it';
    const message = expect.stringContaining(words);
    await expect(tables.deleteRows('T', ['a', 'b'])).rejects.toMatchObject({ ...NOT_DONE, message });
  });

  it('are gone with a table that is not kept empty, when it is not in the list any more', async () => {
    const { tables } = await TablePeer.start({ dropsEmptyTables: true }, { T: { a: {} } });
    expect(await tables.deleteRows('T', ['a'])).toEqual(['a']);
    const { client } = await serving(({ url }, response) =>
      response.writeHead(url === '/api/table_p.html' ? 404 : 200).end('{"tables":["T"]}'),
    );
    await expect(client.tables.deleteRows('T', ['a'])).rejects.toMatchObject(NOT_DONE);
  });
});

it('a table that is dropped is not in the list afterwards, which is returned', async () => {
  const both = { T: {}, U: {} };
  expect(await (await TablePeer.start({}, both)).tables.drop('T')).toEqual(['U']);
  const { tables } = await TablePeer.start({ ignoresDrops: true }, both);
  await expect(tables.drop('T')).rejects.toMatchObject(NOT_DONE);
});

it('a change is refused where the peer has no page for it', async () => {
  const { client } = await serving((_, response) => response.writeHead(404).end('no'));
  const { tables } = client;
  const changes = [
    () => tables.set('T', [row('k')]),
    () => tables.deleteRows('T', ['k']),
    () => tables.drop('T'),
  ];
  for (const change of changes)
    await expect(change()).rejects.toMatchObject({ code: 'PEER_REFUSED', status: 404 });
});

type Call = (tables: PeerClient['tables'], bad: string) => Promise<unknown>;
const BAD = ['', 'x'.repeat(501), 'half \ud83d'];

it.each<[RegExp, readonly string[], Call]>([
  [/^a table has 1 to 500 well-formed/, BAD, (tables, table) => tables.read({ table })],
  [/^a table has/, BAD, (tables, bad) => tables.set(bad, [row('k')])],
  [/^a table has/, BAD, (tables, bad) => tables.add(bad, new Map())],
  [/^a table has/, BAD, (tables, bad) => tables.deleteRows(bad, ['k'])],
  [/^a table has/, BAD, (tables, bad) => tables.drop(bad)],
  [/^a key has/, BAD, (tables, bad) => tables.set('T', [row('k'), row(bad)])],
  [/^a key has/, BAD, (tables, bad) => tables.deleteRows('T', ['k', bad])],
  [/^a column has/, BAD, (tables, bad) => tables.set('T', [row('k', { [bad]: 'x' })])],
  [/does not end with NUL/, ['k\0'], (tables, bad) => tables.set('T', [row(bad)])],
  [/does not end with NUL/, ['k\0'], (tables, bad) => tables.deleteRows('T', [bad])],
  [/needs the keys/, [''], (tables) => tables.deleteRows('T', [])],
])(
  'names that no peer can have are mistakes of the caller, and nothing is asked: %s %#',
  async (why, bads, call) => {
    const { peer, tables } = await TablePeer.start({}, { T: { k: {} } });
    for (const bad of bads) {
      await expect(call(tables, bad)).rejects.toThrow(TypeError);
      await expect(call(tables, bad)).rejects.toThrow(why);
    }
    expect(peer.paths).toEqual([]);
  },
);

it('a request about tables ends when it is called off', async () => {
  const { client } = await serving(() => {});
  const stop = new AbortController();
  const { tables } = client;
  const { signal } = stop;
  const asked = [
    tables.list({ signal }),
    tables.read({ table: 'T' }, { signal }),
    tables.set('T', [row('k')], { signal }),
    tables.add('T', new Map(), { signal }),
    tables.deleteRows('T', ['k'], { signal }),
    tables.drop('T', { signal }),
  ].map((each) => expect(each).rejects.toMatchObject({ code: 'PEER_ABORTED' }));
  stop.abort();
  await Promise.all(asked);
});
