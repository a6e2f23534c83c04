import { describe, expect, it } from 'vitest';
import type { Asking, PeerRequest, StreamRequest } from '../../src/peer/asking.js';
import { TableAsking, whole } from '../../src/peer/table-asking.js';
import { standardTables, type TableDialect } from '../../src/peer/table-requests.js';

type Rows = Record<string, Record<string, string>>;
type Asked = StreamRequest & { readonly form: URLSearchParams };

const SIGNAL = new AbortController().signal;

/** What is asked of a peer with these rows in its table `T`, and nothing else. */
function askingOf(rows: Rows, deviations: Partial<TableDialect> & { readonly ignoresKeys?: boolean } = {}) {
  const asked: Asked[] = [];
  const given = { chunks: 0 };
  const { ignoresKeys = false, ...dialect } = deviations;
  const note = (request: PeerRequest): URLSearchParams => {
    const query = request.path.split('?')[1] ?? request.body?.bytes?.toString() ?? '';
    const form = new URLSearchParams(query);
    asked.push({ ...request, form });
    return form;
  };
  const answerTo = (form: URLSearchParams): string | undefined => {
    if (!form.has('table')) return JSON.stringify({ tables: ['T', 'U'] });
    if (form.get('table') !== 'T') return undefined;
    if (form.has('edittable')) return '<form><input name="col_a"><input name="col_b"></form>';
    const pk = form.get('pk');
    const shown = Object.entries(rows).filter(([key]) => pk === null || ignoresKeys || key === pk);
    return JSON.stringify({ table: 'T', rows: shown.map(([key, cells]) => ({ pk: key, cells })) });
  };
  const peer: Asking = {
    maxAnswer: 1_000_000,
    url: (path) => `http://peer${path}`,
    ask: async (request) => {
      const text = answerTo(note(request));
      return {
        ...{ url: `http://peer${request.path}`, status: text === undefined ? 404 : 200, headers: {} },
        ...{ body: Buffer.from(text ?? ''), at: 0, peerAt: undefined, tookMs: 1, delivered: 'yes' },
      };
    },
    stream: async (request, use) => {
      const text = answerTo(note(request));
      if (text === undefined) return undefined;
      async function* chunks(all: string) {
        for (let at = 0; at < all.length; at += 1_000) {
          given.chunks += 1;
          yield Buffer.from(all.slice(at, at + 1_000));
        }
      }
      return await use({ url: 'http://peer/', status: 200, headers: {}, at: 0, chunks: chunks(text) });
    },
  };
  return { asking: new TableAsking(peer, { ...standardTables, ...dialect }, SIGNAL), asked, given };
}

const MANY = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`k${i}`, { a: `${i}` }]));
const keysOf = (rows: ReadonlyMap<string, unknown> | undefined) => [...(rows?.keys() ?? [])];

describe('what a peer is asked about tables', () => {
  it('is for the administrator alone, and ends with the signal of the caller', async () => {
    const { asking, asked } = askingOf(MANY);
    await asking.list();
    await asking.columns('T');
    await asking.read({ table: 'T' }, whole);
    await asking.lookUp('T', ['k1']);
    await asking.commit('T', { pk: 'k1', cells: new Map() });
    await asking.deleteRows('T', ['k1']);
    await asking.drop('T');
    expect(asked).toHaveLength(7);
    for (const request of asked) expect(request).toMatchObject({ isProtected: true, signal: SIGNAL });
  });

  it('is undefined where there is no such table', async () => {
    const { asking } = askingOf({});
    expect(await asking.read({ table: 'V' }, whole)).toBeUndefined();
    expect(await asking.columns('V')).toBeUndefined();
    expect(await asking.lookUp('V', ['k'])).toBeUndefined();
  });

  it('is the list of the tables', async () => {
    expect(await askingOf({}).asking.list()).toEqual(['T', 'U']);
  });

  it('travels in the address or in a body, and is no longer than the caller allows', async () => {
    const { asking, asked } = askingOf({ k: { a: '1' } });
    const query = { table: 'T', count: 5, search: 'x y' };
    for (const method of ['GET', 'POST'] as const) await asking.read(query, whole, { method, maxBytes: 7 });
    expect(asked.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'GET /api/table_p.html?table=T&count=5&search=x+y',
      'POST /api/table_p.html',
    ]);
    for (const { form, maxBytes } of asked)
      expect([[...form], maxBytes]).toEqual([Object.entries({ ...query, count: '5' }), 7]);
  });

  it('is the columns of its editor, or of a row where the editor would change the table', async () => {
    expect(await askingOf({ k: { c: '1' } }).asking.columns('T')).toEqual(['a', 'b']);
    const { asking, asked } = askingOf({ k: { c: '1' } }, { formFields: () => undefined });
    expect(await asking.columns('T')).toEqual(['c']);
    expect(asked[0]?.form.get('count')).toBe('1');
  });
});

describe('rows that are looked up', () => {
  it('are those that are there, asked for one by one where they are few', async () => {
    const { asking, asked } = askingOf(MANY);
    expect(keysOf(await asking.lookUp('T', ['k3', 'away', 'k1']))).toEqual(['k3', 'k1']);
    expect(asked.map(({ form }) => form.get('pk'))).toEqual(['k3', 'away', 'k1']);
  });

  it.each([
    ['many', 17, {}],
    ['of a peer that gives no single row', 2, { readsOneRow: false }],
  ])('are %s: then in one pass', async (_, count, dialect) => {
    const { asking, asked } = askingOf(MANY, dialect);
    const keys = Object.keys(MANY).slice(0, count);
    expect(keysOf(await asking.lookUp('T', keys))).toEqual(keys);
    expect(asked.map(({ form }) => form.get('pk'))).toEqual([null]);
    expect(asked[0]?.maxBytes).toBe(Number.MAX_SAFE_INTEGER);
  });

  it('are asked for once of a peer that gives all whichever is asked for', async () => {
    const { asking, asked } = askingOf(MANY, { ignoresKeys: true });
    expect(keysOf(await asking.lookUp('T', ['k3', 'k1']))).toEqual(['k1', 'k3']);
    expect(asked).toHaveLength(1);
  });

  it('are not read further than they stand', async () => {
    const long = Object.fromEntries(
      Array.from({ length: 2_000 }, (_, i) => [`k${i}`, { a: 'x'.repeat(500) }]),
    );
    const { asking, given } = askingOf(long, { readsOneRow: false });
    await asking.lookUp('T', ['k1']);
    expect(given.chunks).toBeLessThan(500);
  });
});

describe('a change', () => {
  it('deletes a hundred rows a request', async () => {
    const { asking, asked } = askingOf(MANY);
    await asking.deleteRows(
      'T',
      Array.from({ length: 250 }, (_, i) => `k${i}`),
    );
    const counts = asked.map(
      ({ form }) => [...form.keys()].filter((name) => name.startsWith('item_')).length,
    );
    expect(counts).toEqual([100, 100, 50]);
    expect(asked[2]?.form.get('item_49')).toBe('pk_k249');
  });

  it('does not wait for the end of what is answered', async () => {
    const large = { k: { a: 'x'.repeat(1_000_000) } };
    const { asking, given } = askingOf(large);
    await asking.commit('T', { pk: 'k', cells: new Map([['a', '1']]) });
    expect(given.chunks).toBeLessThan(100);
  });

  it('of what the peer does not have is refused', async () => {
    const { asking } = askingOf({});
    await expect(asking.drop('V')).rejects.toMatchObject({ code: 'PEER_REFUSED', status: 404 });
  });

  it('that is not seen afterwards is told with the page that it was asked of', () => {
    const error = askingOf({}).asking.notDone('still lists the table "T"');
    expect(error).toMatchObject({ code: 'PEER_NOT_DONE', delivered: 'yes' });
    expect(error.message).toContain('http://peer/Tables_p.html');
  });

  it('is not asked for with a key that the peer would cut: bytes count, and not characters', () => {
    const { asking } = askingOf({}, { maxKeyBytes: 4 });
    expect(() => asking.refuseLongKey('four')).not.toThrow();
    expect(() => asking.refuseLongKey('füür')).toThrow(
      expect.objectContaining({ code: 'PEER_KEY', delivered: 'no' }),
    );
    expect(() => askingOf({}).asking.refuseLongKey('x'.repeat(1_000))).not.toThrow();
  });
});

it('a whole table has the columns that were named ahead, and those that its rows have besides', async () => {
  async function* rows() {
    yield [{ pk: 'k1', cells: new Map([['b', '1']]) }];
    yield [{ pk: 'k2', cells: new Map([['c', '2']]) }];
  }
  const table = await whole({ name: 'T', columns: ['a', 'b'], rows: rows() });
  expect(table).toMatchObject({ name: 'T', columns: ['a', 'b', 'c'] });
  expect(table.rows.map(({ pk }) => pk)).toEqual(['k1', 'k2']);
});
