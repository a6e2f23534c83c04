import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { int } from '../../src/embedded/database.js';
import { TableStore } from '../../src/embedded/table-store.js';
import { systemClock } from '../../src/lib/clock.js';
import { newRowKey } from '../../src/lib/row-key.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import {
  TABLES as API,
  AskedTable,
  answered,
  ask,
  basic,
  openDatabase,
  openPeer,
  type Parameters,
  send,
} from './support.js';

/** The table `t` of a new peer, with these rows by their keys. */
async function tableWith(rows: Readonly<Record<string, Parameters>> = {}): Promise<AskedTable> {
  const table = new AskedTable(await openPeer());
  for (const [pk, cells] of Object.entries(rows)) await table.commit(pk, cells);
  return table;
}

describe('a table', () => {
  it('has a link to all rows on its page if some are not shown', async () => {
    const t = await tableWith({ a: { x: '1' }, b: { x: '2' } });
    const page = async (more = '') =>
      (
        await send(t.peer, `/Tables_p.html?table=t${more}`, {
          headers: { authorization: basic(t.peer) },
        })
      ).body;
    expect(await page()).not.toMatch(/All rows|Next rows/);
    expect(await page('&count=2')).not.toMatch(/All rows|Next rows/);
    expect(await page('&count=1')).toMatch(/Next rows .*All rows/);
    expect(await page('&pk=a')).toContain('All rows');
  });

  it('is created by its first row, and by no read request', async () => {
    const t = await tableWith();
    expect(await t.refusal({})).toEqual([404, 'There is no table "t".']);
    for (const action of [
      { addrow: '1', edittable: 'Edit Table' },
      { deletetable: '1' },
    ] as Parameters[])
      expect(await t.ask(action)).toBe(404);
    expect(await t.delete('a')).toBe(404);
    expect(await t.names()).toEqual([]);
    const rows = [{ pk: 'k', cells: { a: 'x' } }];
    expect(await t.commit('k', { a: 'x', b: '' })).toEqual({
      table: 't',
      columns: ['a', 'b'],
      rows,
    });
    expect(await t.names()).toEqual(['t']);
  });

  it('merges the given cells into an existing row; an empty value clears a cell', async () => {
    const t = await tableWith({ k: { a: '1', b: '2', c: '3' } });
    await t.commit('k', { b: 'two', c: '', d: '4' });
    expect(await t.ask()).toEqual({
      table: 't',
      columns: ['a', 'b', 'c', 'd'],
      rows: [{ pk: 'k', cells: { a: '1', b: 'two', d: '4' } }],
    });
  });

  it('gives a row without a key a new one, as `table add` does: 12 of 0-9a-z, which sort by time', async () => {
    const t = await tableWith({ '000000000002': { a: 'numbered' } });
    const before = newRowKey(Date.now() - 1).slice(0, 8);
    const made = [await t.add(), await t.add(), await t.add()];
    expect(new Set(made).size).toBe(3);
    for (const key of made) {
      expect(key).toMatch(/^[0-9a-z]{12}$/);
      expect(String(key) > before).toBe(true);
    }
  });

  it('survives a restart', async () => {
    const dir = temporaryDirectory();
    const first = new AskedTable(await openPeer({ dir }));
    await first.add({ col_a: 'kept' });
    await (first.peer as Awaited<ReturnType<typeof openPeer>>).close();
    const second = new AskedTable(await openPeer({ dir }));
    expect(await second.ask()).toMatchObject({
      table: 't',
      columns: ['a'],
      rows: [{ cells: { a: 'kept' } }],
    });
  });

  it('is sorted by the code points of its keys', async () => {
    const sorted = [' ', '0', '10', '9', 'A', 'a', 'aa', 'é', '\uffee', '😀'];
    const t = await tableWith(Object.fromEntries(sorted.toReversed().map((pk) => [pk, { a: pk }])));
    expect(await t.keys()).toEqual(sorted);
  });

  it('shows the selected rows', async () => {
    const t = await tableWith({
      k1: { a: 'Straße', b: 'x' },
      k2: { a: '.*', b: 'ÄPFEL' },
      K3: { a: 'ascii' },
    });
    for (const [asked, keys] of [
      [{ count: 'all' }, 'K3 k1 k2'],
      [{ count: '2' }, 'K3 k1'],
      [{ count: '0' }, ''],
      [{ count: '' }, 'K3 k1 k2'],
      [{ search: 'äpfel' }, 'k2'],
      [{ search: '.*' }, 'k2'],
      [{ search: 'k3' }, 'K3'],
      [{ search: 'nothing' }, ''],
      [{ search: 'k', count: '1' }, 'K3'],
      [{ pk: 'k1' }, 'k1'],
      [{ pk: 'k' }, ''],
      [{ pk: 'k1', search: 'ÄPFEL' }, ''],
      [{ after: 'K3' }, 'k1 k2'],
    ] as [Parameters, string][])
      expect([asked, (await t.keys(asked)).join(' ')]).toEqual([asked, keys]);
    expect((await t.refusal({ count: '-1' }))[1]).toMatch(/count has to be a number from 0/);
  });

  it('is read and written on both paths, by GET and POST, in all forms', async () => {
    const t = await tableWith();
    const headers = { authorization: basic(t.peer) };
    for (const path of ['/api/table_p.html', API, '/Tables_p.html', '/Tables_p.json']) {
      const fields = (pk: string) => ({ table: 't', commitrow: '1', pk, col_a: `made by ${pk}` });
      const [posted, got] = [fields(`POST ${path}`), fields(`GET ${path}`)];
      const answers = [
        await ask(t.peer, path, posted),
        await send(t.peer, `${path}?${new URLSearchParams(got)}`, { headers }),
      ];
      for (const [n, { pk }] of [posted, got].entries()) {
        expect([answers[n]?.status, answers[n]?.body]).toEqual([
          200,
          expect.stringContaining(`made by ${pk}`),
        ]);
        expect(await t.keys({ search: pk })).toEqual([pk]);
      }
    }
  });

  it('answers HEAD, and is not changed by it', async () => {
    const t = await tableWith({ k: { a: '1' } });
    const options = { method: 'HEAD', headers: { authorization: basic(t.peer) } };
    const head = await send(t.peer, `${API}?table=t`, options);
    expect([head.status, head.body]).toEqual([200, '']);
    expect((await send(t.peer, `${API}?table=t&deletetable=1`, options)).status).toBe(405);
    expect(await t.names()).toEqual(['t']);
  });

  it('refuses a key that ends with NUL, which readers take for padding', async () => {
    const t = await tableWith({ k: { a: 'x' } });
    expect(await t.commit('k\0', { a: 'y' })).toBe(400);
    expect([await t.keys(), await t.keys({ pk: 'k\0' })]).toEqual([['k'], []]);
  });
});

describe('rows are deleted', () => {
  it('by their exact keys, which the answer lists; the columns stay after the last one', async () => {
    const t = await tableWith({ k: { a: 'x' }, k1: {}, k2: {}, pk_k: { b: 'y' } });
    const { deleted, rows } = await t.delete('k', 'nobody', 'k2');
    expect([deleted, rows.map(({ pk }) => pk)]).toEqual([
      ['k', 'k2'],
      ['k1', 'pk_k'],
    ]);
    await t.delete('k1', 'pk_k');
    expect(await t.ask()).toEqual({ table: 't', columns: ['a', 'b'], rows: [] });
  });

  it('only by name: an empty request deletes nothing', async () => {
    const t = await tableWith({ k: { a: 'pk_k' } });
    for (const more of [{}, { pk: 'k' }, { item: 'pk_k' }, { col_a: 'pk_k' }] as Parameters[])
      expect(await t.refusal({ deleterows: '1', ...more })).toEqual([
        400,
        expect.stringMatching(/^Nothing was deleted/),
      ]);
    for (const item of ['', 'k', 'pk_', 'PK_k', `pk_${'k'.repeat(501)}`])
      expect(await t.ask({ deleterows: '1', item_0: item })).toBe(400);
    expect(await t.keys()).toEqual(['k']);
  });

  it('by hundreds', async () => {
    const keys = Array.from({ length: 250 }, (_, n) => `k${n}`);
    const t = await tableWith(Object.fromEntries(keys.map((pk) => [pk, {}])));
    const { deleted } = await t.delete(...keys.filter((_, n) => n % 2 === 0));
    expect([deleted?.length, (await t.keys()).length]).toEqual([125, 125]);
  });
});

describe('a table is deleted', () => {
  it('only by its exact name, and a new one of this name is empty', async () => {
    const t = await tableWith({ k: { a: 'x' } });
    await new AskedTable(t.peer, 'T').commit('k', { a: 'x' });
    for (const [named, status] of [
      [{}, 400],
      [{ table: '' }, 400],
      [{ table: 't ' }, 404],
    ] as [Parameters, number][])
      expect(await answered(t.peer, API, { ...named, deletetable: '1' })).toBe(status);
    expect(await t.names()).toEqual(['T', 't']);
    expect(await t.ask({ deletetable: '1' })).toEqual({ tables: ['T'] });
    const rows = [{ pk: 'new', cells: { b: 'y' } }];
    expect(await t.commit('new', { b: 'y' })).toEqual({ table: 't', columns: ['b'], rows });
  });

  it('neither by an empty field, nor together with another action', async () => {
    const t = await tableWith({ k: { a: 'x' } });
    const all = { edittable: '', addrow: '', commitrow: '', deleterows: '', deletetable: '' };
    expect((await t.ask(all)).rows).toHaveLength(1);
    const both = await t.refusal({ ...all, deleterows: '1', deletetable: '1', item_0: 'pk_k' });
    expect(both).toEqual([400, 'One at a time: deleterows, deletetable.']);
    expect(await t.keys()).toEqual(['k']);
  });

  it('while it is read: the reader never takes a part for the whole', async () => {
    const t = await tableWith();
    for (let n = 0; n < 40; n += 1) await t.commit(`k${n}`, { a: 'x'.repeat(300_000) });
    const headers = { authorization: basic(t.peer) };
    const reader = (await fetch(`${t.peer.url}${API}?table=t`, { headers })).body?.getReader();
    await reader?.read();
    await t.ask({ deletetable: '1' });
    const rest = async (): Promise<void> => {
      while (!(await reader?.read())?.done);
    };
    await expect(rest()).rejects.toThrow();
  });

  it('and its rows are removed, also if the peer ended before', async () => {
    const dir = temporaryDirectory();
    const before = openDatabase(dir);
    const store = new TableStore(before, systemClock, 1_000);
    for (let n = 0; n < 120; n += 1) store.commit('t', undefined, new Map([['a', 'x']]));
    store.commit('other', undefined, new Map([['a', 'x']]));
    const dropped = store.find('t');
    if (dropped) store.drop(dropped);
    before.close();
    const left = (): number[] => {
      const database = openDatabase(dir);
      const count = (of: string): number =>
        int(database.row(`SELECT count(*) AS n FROM ${of}`), 'n');
      const counts = [count('table_rows'), count('dropped_tables')];
      database.close();
      return counts;
    };
    expect(left()).toEqual([121, 1]);
    await until(async () => {
      const peer = await openPeer({ dir });
      expect(await new AskedTable(peer).names()).toEqual(['other']);
      await peer.close();
      return left()[1] === 0;
    }, 'nothing is left');
    expect(left()).toEqual([1, 0]);
  });
});

it('a page of another site cannot write a table, also not by GET, but may link to it', async () => {
  const t = await tableWith({ k: { a: 'x' } });
  const agent = 'Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0';
  const statusOf = async (path: string, from: Parameters) =>
    (
      await send(t.peer, path, {
        headers: { authorization: basic(t.peer), 'user-agent': agent, ...from },
      })
    ).status;
  const writes = ['commitrow=1&pk=new', 'deleterows=1&item_0=pk_k', 'deletetable=1'];
  const sites = [
    { origin: 'http://evil.example' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ];
  for (const path of ['/api/table_p.html?table=t', '/Tables_p.json?table=t'])
    for (const from of sites as Parameters[]) {
      for (const write of writes) expect(await statusOf(`${path}&${write}`, from)).toBe(403);
      expect(await statusOf(path, from)).toBe(200);
    }
  expect(await t.keys()).toEqual(['k']);
  expect(await statusOf('/Tables_p.json?table=t&commitrow=1&pk=k', {})).toBe(200);
});

it('a link that a browser follows from another program cannot change a table, a form can', async () => {
  const t = await tableWith({ k: { a: 'x' } });
  const authorization = basic(t.peer);
  const browsers = [
    { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' },
    { 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-dest': 'document' },
  ];
  for (const browser of browsers as Parameters[])
    for (const write of ['commitrow=1&pk=new', 'deleterows=1&item_0=pk_k', 'deletetable=1'])
      for (const method of ['GET', 'HEAD']) {
        const path = `/Tables_p.json?table=t&${write}`;
        const answer = await send(t.peer, path, { method, headers: { authorization, ...browser } });
        expect(answer.status).toBe(405);
        if (method === 'GET')
          expect(answer.json().message).toMatch(/use the forms of the page \/Tables_p\.html/);
      }
  expect(await t.keys()).toEqual(['k']);
  const form = { table: 't', commitrow: '1', pk: 'new', col_a: 'y' };
  for (const site of ['same-origin', 'none'])
    expect((await ask(t.peer, '/Tables_p.json', form, { 'sec-fetch-site': site })).status).toBe(
      200,
    );
  expect(await t.keys()).toEqual(['k', 'new']);
});

describe('the bounds of a table', () => {
  it('are reported, and a request beyond them changes nothing', async () => {
    const t = new AskedTable(await openPeer({ maxBody: 100_000 }));
    const long = 'x'.repeat(501);
    await t.commit('k', { a: 'x'.repeat(60_000) });
    for (const [status, parameters] of [
      [400, { table: long }],
      [400, { pk: long }],
      [400, { [`col_${long}`]: '' }],
      [400, { col_: 'x' }],
      [413, { pk: 'k', col_b: 'x'.repeat(60_000) }],
      [413, { table: 'u', col_a: 'x'.repeat(100_001) }],
    ] as [number, Parameters][])
      expect(await t.ask({ commitrow: '1', ...parameters })).toBe(status);
    const wide = Object.fromEntries(Array.from({ length: 1_001 }, (_, n) => [`col_c${n}`, '']));
    const refused = await t.refusal({ table: 'u', commitrow: '1', ...wide });
    expect(refused).toEqual([400, 'A table has at most 1000 columns.']);
    expect([await t.names(), (await t.ask()).columns]).toEqual([['t'], ['a']]);
    const edge = '☃'.repeat(500);
    const rows = [{ pk: edge, cells: { [edge]: edge } }];
    expect(await new AskedTable(t.peer, edge).commit(edge, { [edge]: edge })).toMatchObject({
      table: edge,
      rows,
    });
  });

  it('allow a cell of 5 MB', async () => {
    const value = `ü\0"<&>\n${'x'.repeat(5_000_000)}`;
    const t = await tableWith({ k: { a: value } });
    expect((await t.ask()).rows[0]?.cells).toEqual({ a: value });
  });
});

/** Texts that formats trip over, and any other. */
const ODD = [
  '"',
  "'",
  '<',
  '&',
  '>',
  ']]>',
  '&amp;',
  '\0',
  '\n',
  '\r',
  '\r\n',
  '\t',
  ' ',
  '\u0085',
  '\u2028',
];
const ODDER = [
  '\ufffe',
  '\ufffd',
  '😀',
  'é',
  'שלום',
  'مرحبا',
  '__proto__',
  'constructor',
  '=1+1',
  '\\',
  '\u007f',
];
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.array(fc.constantFrom(...ODD, ...ODDER), { maxLength: 6 }).map((parts) => parts.join('')),
);
const name = text.filter((value) => value !== '');
const key = name.filter((value) => !value.endsWith('\0'));

describe('any names, keys and cells', () => {
  it('are read back as they were written', async () => {
    const peer = await openPeer();
    const first = { selector: ([one]: [string, unknown]) => one, maxLength: 4 };
    const cells = fc.uniqueArray(fc.tuple(name, text), first);
    const rows = fc.uniqueArray(fc.tuple(key, cells), { ...first, minLength: 1 });
    await fc.assert(
      fc.asyncProperty(name, rows, async (name, given) => {
        const table = new AskedTable(peer, name);
        for (const left of await table.names())
          await new AskedTable(peer, left).ask({ deletetable: '1' });
        for (const [pk, cells] of given) await table.commit(pk, Object.fromEntries(cells));
        const read = await table.ask();
        const found = read.rows.map(({ pk, cells }): [string, unknown] => [
          pk,
          new Map(Object.entries(cells)),
        ]);
        const filled = (cells: [string, string][]) =>
          new Map(cells.filter(([, value]) => value !== ''));
        expect(new Map(found)).toEqual(new Map(given.map(([pk, cells]) => [pk, filled(cells)])));
        expect([read.table, ...(await table.names())]).toEqual([name, name]);
        expect((await ask(peer, '/api/table_p.html', { table: name })).body).toMatch(/<\/html>\n$/);
        await table.delete(...given.map(([pk]) => pk));
        expect(await table.keys()).toEqual([]);
      }),
      { numRuns: 25 },
    );
  });

  it('keep their line ends in a text area of a browser if nobody edited them', async () => {
    const t = await tableWith({ k: { unix: 'a\nb', dos: 'a\r\nb', new: 'a' } });
    const edited = { page: 'true', col_unix: 'a\r\nb', col_dos: 'a\r\nb', col_new: 'a\r\nc' };
    await ask(t.peer, '/Tables_p.html', { table: 't', pk: 'k', commitrow: '1', ...edited });
    expect((await t.ask()).rows[0]?.cells).toEqual({ unix: 'a\nb', dos: 'a\r\nb', new: 'a\nc' });
    const form = await ask(t.peer, '/Tables_p.html', {
      table: 't',
      edittable: 'Edit Table',
      pk: 'k',
    });
    expect(form.body).toContain(
      '<textarea name="col_dos" dir="auto" rows="2">\na&#13;\nb</textarea>',
    );
  });
});
