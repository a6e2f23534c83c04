import type { ServerResponse } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PeerClient } from '../../src/peer/client.js';
import { realAnswer } from './answers.js';
import { clientOf, HttpServer, type Recorded } from './servers.js';

type Cells = Record<string, string>;

/** What a peer gets wrong. */
interface Faults {
  /** It gives all rows whichever is asked for. */
  readonly ignoresKeys?: boolean;
  /** What it does with a cell that it is told to keep. */
  readonly keep?: (cell: string, column: string) => string | undefined;
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
  readonly #faults: Faults;
  url = '';
  server: HttpServer | undefined;

  private constructor(faults: Faults) {
    this.#faults = faults;
  }

  static async start(faults: Faults = {}): Promise<{ peer: TablePeer; client: PeerClient }> {
    const peer = new TablePeer(faults);
    peer.server = await HttpServer.start((request, response) => peer.#answer(request, response));
    return { peer, client: clientOf(peer.server.url) };
  }

  /** The paths that were asked for, as often as they were. */
  get paths(): string[] {
    return (this.server?.requests ?? []).map(({ method, url }) => `${method} ${url}`);
  }

  put(table: string, pk: string, cells: Cells): void {
    const rows = this.tables.get(table) ?? new Map<string, Cells>();
    this.tables.set(table, rows.set(pk, { ...rows.get(pk), ...cells }));
  }

  #answer(request: Recorded, response: ServerResponse): void {
    const form = new URLSearchParams(request.body);
    this.asked.push([...form]);
    const table = form.get('table') ?? '';
    if (request.url === '/Tables_p.html') this.#edit(table, form, response);
    else this.#show(table, form, response);
  }

  #edit(table: string, form: URLSearchParams, response: ServerResponse): void {
    const { keep = (cell: string) => cell, ignoresDeletes, ignoresDrops, words } = this.#faults;
    if (table === '') {
      json(response, { tables: [...this.tables.keys()] });
      return;
    }
    if (form.has('commitrow')) {
      const cells = new Map<string, string>();
      for (const [name, value] of form) {
        if (!name.startsWith('col_')) continue;
        const kept = keep(value, name.slice(4));
        if (kept !== undefined) cells.set(name.slice(4), kept);
      }
      // Not one by one: to set `__proto__` of an object adds nothing to it.
      this.put(table, form.get('pk') ?? '', Object.fromEntries(cells));
    }
    const rows = this.tables.get(table);
    if (rows === undefined) {
      response.statusCode = 404;
      response.end('no such table');
      return;
    }
    if (form.has('deleterows') && !ignoresDeletes) {
      for (const [name, value] of form) if (name.startsWith('item_')) rows.delete(value.slice(3));
      if (this.#faults.dropsEmptyTables && rows.size === 0) this.tables.delete(table);
    }
    if (form.has('deletetable') && !ignoresDrops) this.tables.delete(table);
    if (words === undefined) response.end('done');
    else response.write('w'.repeat(words));
  }

  #show(table: string, form: URLSearchParams, response: ServerResponse): void {
    const rows = this.tables.get(table);
    if (rows === undefined) response.statusCode = 404;
    const pk = this.#faults.ignoresKeys ? null : form.get('pk');
    const shown = [...(rows ?? [])].filter(([key]) => pk === null || key === pk);
    json(response, { table, rows: shown.map(([key, cells]) => ({ pk: key, cells })) });
  }
}

function json(response: ServerResponse, value: unknown): void {
  response.end(JSON.stringify(value));
}

const cells = (values: Cells) => new Map(Object.entries(values));
const NOT_DONE = { code: 'PEER_NOT_DONE' };

describe('tables that are read', () => {
  it('come whole, with all columns in the order in which they were shown', async () => {
    const { peer, client } = await TablePeer.start();
    peer.put('T', 'k2', { b: 'x' });
    peer.put('T', 'k1', { a: 'y', b: '' });
    expect(await client.tables.read({ table: 'T' })).toEqual({
      name: 'T',
      columns: ['b', 'a'],
      rows: [
        { pk: 'k2', cells: cells({ b: 'x' }) },
        { pk: 'k1', cells: cells({ a: 'y', b: '' }) },
      ],
    });
  });

  it('are undefined where the peer has none of the name', async () => {
    const { client } = await TablePeer.start();
    expect(await client.tables.read({ table: 'T' })).toBeUndefined();
    expect(
      await client.tables.stream({ table: 'T' }, () => Promise.reject(new Error('used'))),
    ).toBeUndefined();
  });

  it('are refused beyond the bytes that were allowed', async () => {
    const { peer, client } = await TablePeer.start();
    peer.put('T', 'k', { a: 'x'.repeat(10_000) });
    const reading = client.tables.read({ table: 'T' }, { maxBytes: 5_000 });
    await expect(reading).rejects.toMatchObject({ code: 'PEER_ANSWER_TOO_LARGE' });
  });

  it('throw in the middle where the answer breaks off there', async () => {
    const server = await HttpServer.start((_, response) => {
      response.end(`{"table":"T","rows":[\n${'{"pk":"k","cells":{}},\n'.repeat(5_000)}{"pk":`);
    });
    let rows = 0;
    const reading = clientOf(server.url).tables.stream({ table: 'T' }, async (table) => {
      for await (const group of table.rows) rows += group.length;
    });
    await expect(reading).rejects.toMatchObject({
      code: 'PEER_ANSWER',
      status: 200,
      firstBytes: expect.stringContaining('{"pk":"k"'),
    });
    expect(rows).toBeGreaterThan(0);
  });
});

describe('the list of tables', () => {
  const listOf = async (body: string | Buffer) => {
    const server = await HttpServer.start((_, response) => response.end(body));
    return clientOf(server.url).tables.list();
  };

  it.each([
    ['{"tables":["b","a",""]}', ['b', 'a']],
    ['{"tables":[]}', []],
    [
      '<html><select name="count"><option>10</select><select name=table><option value="x y">X</select></html>',
      ['x y'],
    ],
  ])('is read from %s', async (body, names) => {
    expect(await listOf(body)).toEqual(names);
  });

  it('is read from a real page', async () => {
    const names = ['../../x', 'UPPER', 'a b', 'pkcounter', 'with/slash', 'stats', 'é', 'robots', 'api'];
    expect(await listOf(realAnswer('tables.html'))).toEqual(names);
  });

  it.each(['{"error":"no"}', '{"tables":["a"', '<html><body>Welcome</body></html>', '<a>'.repeat(1_000), ''])(
    'is never taken from something else: %#',
    async (body) => {
      await expect(listOf(body)).rejects.toMatchObject({ code: 'PEER_ANSWER' });
    },
  );

  it('is never taken from a part of a page', async () => {
    const page = realAnswer('tables.html');
    await expect(listOf(page.subarray(0, page.indexOf('with/slash')))).rejects.toMatchObject({
      code: 'PEER_ANSWER',
    });
  });
});

describe('rows that are set', () => {
  it('are committed one by one with the cells that are given, and read back', async () => {
    const { peer, client } = await TablePeer.start();
    peer.put('T', 'k1', { a: 'old', b: 'stays' });
    const seen = await client.tables.set('T', [
      { pk: 'k2', cells: cells({ a: 'new' }) },
      { pk: 'k1', cells: cells({ a: 'x & y' }) },
    ]);
    expect(seen).toEqual([
      { pk: 'k2', cells: cells({ a: 'new' }) },
      { pk: 'k1', cells: cells({ a: 'x & y', b: 'stays' }) },
    ]);
    expect(
      peer.asked.slice(0, 2).map((fields) => fields.filter(([name]) => name.startsWith('col_'))),
    ).toEqual([[['col_a', 'new']], [['col_a', 'x & y']]]);
  });

  it('are read back one by one where they are few, and in one pass where they are many', async () => {
    const { peer, client } = await TablePeer.start();
    const rows = (count: number) =>
      Array.from({ length: count }, (_, n) => ({ pk: `k${n}`, cells: cells({ a: `${n}` }) }));
    await client.tables.set('T', rows(3));
    expect(peer.paths.slice(3)).toEqual(Array(3).fill('POST /api/table_p.html'));
    expect(peer.asked.slice(3).map((fields) => new Map(fields).get('pk'))).toEqual(['k0', 'k1', 'k2']);
    await client.tables.set('T', rows(40));
    expect(peer.paths.slice(46)).toEqual(['POST /api/table_p.html']);
    expect(peer.asked.at(-1)).toEqual([['table', 'T']]);
  });

  it('are read once from a peer that gives all rows whichever is asked for', async () => {
    const { peer, client } = await TablePeer.start({ ignoresKeys: true });
    const rows = [1, 2, 3].map((n) => ({ pk: `k${n}`, cells: cells({ a: `${n}` }) }));
    expect(await client.tables.set('T', rows)).toEqual(rows);
    expect(peer.paths).toHaveLength(4);
  });

  it('may be set twice, and have empty cells that the peer does not keep', async () => {
    const { client } = await TablePeer.start({ keep: (cell) => cell || undefined });
    const seen = await client.tables.set('T', [
      { pk: 'k', cells: cells({ a: '1', b: '' }) },
      { pk: 'k', cells: cells({ a: '2' }) },
    ]);
    expect(seen).toEqual([{ pk: 'k', cells: cells({ a: '2' }) }]);
  });

  it('are not done where a cell is seen with another text, however long both are', async () => {
    const { client } = await TablePeer.start({ keep: (cell) => cell.slice(0, 5_000).trimEnd() });
    const set = (a: string) => client.tables.set('T', [{ pk: 'k 1', cells: cells({ b: 'ok', a }) }]);
    await expect(set('x ')).rejects.toMatchObject({
      ...NOT_DONE,
      delivered: 'yes',
      message: expect.stringContaining(
        'was told to set column "a" of row "k 1" of the table "T" to "x ", and shows "x"',
      ),
    });
    await expect(set('y'.repeat(1_000_000))).rejects.toThrow(/\(from character 4975 on\)$/);
    const { message } = (await set('\u001b[2J'.repeat(9_000)).catch((error: Error) => error)) as Error;
    expect(message.length).toBeLessThan(2_500);
    expect(message).not.toContain('\u001b');
  });

  it('are not done where the row is not seen', async () => {
    const server = await HttpServer.start((_, response) => response.end('{"rows":[]}'));
    const set = clientOf(server.url).tables.set('T', [{ pk: 'k', cells: cells({ a: 'x' }) }]);
    await expect(set).rejects.toMatchObject(NOT_DONE);
    await expect(set).rejects.toThrow('does not show that row');
  });

  it('have names, keys and columns that a peer can have', async () => {
    const { peer, client } = await TablePeer.start();
    const set = (table: string, pk: string, column: string) =>
      client.tables.set(table, [{ pk, cells: cells({ [column]: 'half \ud83d' }) }]);
    for (const name of ['', 'x'.repeat(501), 'half \ud83d']) {
      await expect(set(name, 'k', 'a')).rejects.toThrow(/^a table has 1 to 500 well-formed characters/);
      await expect(set('T', name, 'a')).rejects.toThrow(/^a key has/);
      await expect(set('T', 'k', name)).rejects.toThrow(/^a column has/);
    }
    await expect(set('T', 'k\0', 'a')).rejects.toThrow('does not end with NUL');
    expect(peer.asked).toEqual([]);
    expect(await set('T', 'k', 'x'.repeat(500))).toEqual([
      { pk: 'k', cells: cells({ ['x'.repeat(500)]: 'half \ufffd' }) },
    ]);
  });

  it('are refused where the peer has no page for them', async () => {
    const server = await HttpServer.start((_, response) => {
      response.statusCode = 404;
      response.end('no');
    });
    const { tables } = clientOf(server.url);
    const refused = { code: 'PEER_REFUSED', status: 404 };
    await expect(tables.set('T', [{ pk: 'k', cells: new Map() }])).rejects.toMatchObject(refused);
    await expect(tables.deleteRows('T', ['k'])).rejects.toMatchObject(refused);
    await expect(tables.drop('T')).rejects.toMatchObject(refused);
  });

  it('do not wait for the end of what the peer says to a change', async () => {
    const { client } = await TablePeer.start({ words: 100_000 });
    const row = { pk: 'k', cells: cells({ a: 'x' }) };
    expect(await client.tables.set('T', [row])).toEqual([row]);
  });

  it('come back as they went, whatever they hold', async () => {
    const { client } = await TablePeer.start();
    const name = fc
      .string({ unit: 'binary', minLength: 1, maxLength: 20 })
      .filter((text) => !text.endsWith('\0'));
    const cell = fc.string({ unit: 'binary', maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(name, name, name, cell, async (table, pk, column, text) => {
        const [seen] = await client.tables.set(table, [{ pk, cells: new Map([[column, text]]) }]);
        expect(seen?.pk).toBe(pk);
        expect(seen?.cells.get(column)).toBe(text);
      }),
      {
        numRuns: 20,
        examples: [
          ['T', 'k', '__proto__', ''],
          ['__proto__', '__proto__', '__proto__', 'x'],
        ],
      },
    );
  });
});

describe('a row that is added', () => {
  it('gets a new key that sorts by time', async () => {
    const { peer, client } = await TablePeer.start();
    const first = await client.tables.add('T', cells({ a: 'x' }));
    const second = await client.tables.add('T', cells({ a: 'x' }));
    expect(first.pk).toMatch(/^[0-9a-z]{12}$/);
    expect(second.pk.slice(0, 8) >= first.pk.slice(0, 8)).toBe(true);
    expect(second.pk).not.toBe(first.pk);
    expect([...(peer.tables.get('T') ?? [])]).toEqual([
      [first.pk, { a: 'x' }],
      [second.pk, { a: 'x' }],
    ]);
  });

  it('never gets a key that is taken', async () => {
    const server = await HttpServer.start(({ body }, response, n) => {
      const pk = new URLSearchParams(body).get('pk');
      const isTaken = n !== 1;
      response.end(JSON.stringify({ rows: isTaken ? [{ pk, cells: { a: 'x' } }] : [] }));
    });
    const { pk } = await clientOf(server.url).tables.add('T', cells({ a: 'x' }));
    const keys = server.bodies.map((body) => new URLSearchParams(body).get('pk'));
    expect(keys[0]).not.toBe(pk);
    expect(keys.slice(1)).toEqual([pk, pk, pk]);
  });

  it('is not added where the peer shows a row under every key', async () => {
    const server = await HttpServer.start(({ body }, response) => {
      response.end(JSON.stringify({ rows: [{ pk: new URLSearchParams(body).get('pk') }] }));
    });
    await expect(clientOf(server.url).tables.add('T', cells({}))).rejects.toMatchObject(NOT_DONE);
    expect(server.requests.every(({ url }) => url === '/api/table_p.html')).toBe(true);
  });
});

describe('rows that are deleted', () => {
  it('are named a hundred a request', async () => {
    const { peer, client } = await TablePeer.start();
    peer.put('T', 'stays', {});
    const keys = Array.from({ length: 250 }, (_, n) => `k${n}`);
    await client.tables.deleteRows('T', keys);
    const deletes = peer.asked.filter((fields) => new Map(fields).has('deleterows'));
    const items = deletes.map((fields) => fields.filter(([name]) => name.startsWith('item_')));
    expect(items.map(({ length }) => length)).toEqual([100, 100, 50]);
    expect(items[2]?.at(-1)).toEqual(['item_49', 'pk_k249']);
  });

  it('are exactly those that were named, and are looked for afterwards', async () => {
    const { peer, client } = await TablePeer.start();
    for (const pk of ['a', 'b', 'c']) peer.put('T', pk, { x: pk });
    expect(await client.tables.deleteRows('T', ['c', 'a', 'c', 'nowhere'])).toEqual(['c', 'a', 'nowhere']);
    expect([...(peer.tables.get('T')?.keys() ?? [])]).toEqual(['b']);
    expect(peer.paths.slice(1)).toEqual(Array(3).fill('POST /api/table_p.html'));
  });

  it('are many in few requests', async () => {
    const { peer, client } = await TablePeer.start();
    const keys = Array.from({ length: 250 }, (_, n) => `k${n}`);
    for (const pk of [...keys, 'left']) peer.put('T', pk, { x: pk });
    await client.tables.deleteRows('T', keys);
    expect([...(peer.tables.get('T')?.keys() ?? [])]).toEqual(['left']);
    expect(peer.paths).toHaveLength(4);
  });

  it('are not done where one is still seen, and it is named', async () => {
    const { peer, client } = await TablePeer.start({ ignoresDeletes: true });
    for (const pk of ['a', 'b']) peer.put('T', pk, { x: pk });
    const deleting = client.tables.deleteRows('T', ['a', 'b']);
    await expect(deleting).rejects.toMatchObject(NOT_DONE);
    await expect(deleting).rejects.toThrow(
      'to delete row "a" of the table "T" and 1 more, and still shows it',
    );
  });

  it('are gone with a table that is not kept empty, when it is not in the list any more', async () => {
    const { peer, client } = await TablePeer.start({ dropsEmptyTables: true });
    peer.put('T', 'a', { x: 'y' });
    expect(await client.tables.deleteRows('T', ['a'])).toEqual(['a']);
    const server = await HttpServer.start(({ url }, response) => {
      if (url === '/api/table_p.html') response.statusCode = 404;
      response.end('{"tables":["T"]}');
    });
    await expect(clientOf(server.url).tables.deleteRows('T', ['a'])).rejects.toMatchObject(NOT_DONE);
  });

  it('are never all: without keys it is a mistake of the caller, and nothing is asked', async () => {
    const { peer, client } = await TablePeer.start();
    peer.put('T', 'a', { x: 'y' });
    await expect(client.tables.deleteRows('T', [])).rejects.toThrow(TypeError);
    expect(peer.paths).toEqual([]);
  });

  it('are not asked for by a key that ends with NUL, which would be read back as another', async () => {
    const { peer, client } = await TablePeer.start();
    const rows = [{ pk: 'a\0', cells: cells({ x: 'y' }) }];
    await expect(client.tables.deleteRows('T', ['a\0'])).rejects.toThrow(TypeError);
    await expect(client.tables.set('T', rows)).rejects.toThrow(TypeError);
    expect(peer.paths).toEqual([]);
  });
});

describe('a table that is dropped', () => {
  it('is not in the list afterwards, which is returned', async () => {
    const { peer, client } = await TablePeer.start();
    peer.put('T', 'a', { x: 'y' });
    peer.put('U', 'a', { x: 'y' });
    expect(await client.tables.drop('T')).toEqual(['U']);
  });

  it('is not done where it is still in the list', async () => {
    const { peer, client } = await TablePeer.start({ ignoresDrops: true });
    peer.put('T', 'a', { x: 'y' });
    await expect(client.tables.drop('T')).rejects.toMatchObject(NOT_DONE);
  });
});

describe('names that no peer can have', () => {
  it.each(['', 'x'.repeat(501), 'half \ud83d'])(
    'are mistakes of the caller, and nothing is asked: %#',
    async (bad) => {
      const { peer, client } = await TablePeer.start();
      const { tables } = client;
      const row = { pk: 'k', cells: cells({ a: 'x' }) };
      for (const wrong of [
        () => tables.read({ table: bad }),
        () => tables.set(bad, [row]),
        () => tables.set('T', [row, { ...row, pk: bad }]),
        () => tables.set('T', [{ pk: 'k', cells: cells({ [bad]: 'x' }) }]),
        () => tables.add(bad, row.cells),
        () => tables.deleteRows(bad, ['k']),
        () => tables.deleteRows('T', ['k', bad]),
        () => tables.drop(bad),
      ]) {
        await expect(wrong()).rejects.toThrow(TypeError);
      }
      expect(peer.paths).toEqual([]);
    },
  );
});

describe('a request about tables', () => {
  it('ends when it is called off', async () => {
    const server = await HttpServer.start(() => {});
    const stop = new AbortController();
    const { tables } = clientOf(server.url);
    const { signal } = stop;
    const asked = [
      tables.list({ signal }),
      tables.read({ table: 'T' }, { signal }),
      tables.set('T', [{ pk: 'k', cells: new Map() }], { signal }),
      tables.add('T', new Map(), { signal }),
      tables.deleteRows('T', ['k'], { signal }),
      tables.drop('T', { signal }),
    ].map((each) => expect(each).rejects.toMatchObject({ code: 'PEER_ABORTED' }));
    stop.abort();
    await Promise.all(asked);
  });
});
