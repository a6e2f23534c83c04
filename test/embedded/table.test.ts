import { describe, expect, it } from 'vitest';
import { Database, int } from '../../src/embedded/database.js';
import type { PeerInstance } from '../../src/embedded/peer-instance.js';
import { TableStore } from '../../src/embedded/table-store.js';
import { systemClock } from '../../src/lib/clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { basic, openPeer, type RawAnswer, send } from './support.js';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

type Peer = Pick<PeerInstance, 'url' | 'credentials'>;
type Parameters = Readonly<Record<string, string>>;

/** Asks as the administrator, by POST. */
function ask(peer: Peer, path: string, parameters: Parameters, headers: Parameters = {}): Promise<RawAnswer> {
  const body = new URLSearchParams(parameters).toString();
  return send(peer, path, {
    method: 'POST',
    headers: { ...FORM, authorization: basic(peer), ...headers },
    body,
  });
}

interface TableJson {
  readonly table: string;
  readonly columns: string[];
  readonly deleted?: string[];
  readonly rows: { readonly pk: string; readonly cells: Record<string, string> }[];
}

async function table(peer: Peer, parameters: Parameters, path = '/api/table_p.json'): Promise<TableJson> {
  const answer = await ask(peer, path, parameters);
  if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.body}`);
  return JSON.parse(answer.body) as TableJson;
}

async function refused(peer: Peer, parameters: Parameters): Promise<[status: number, message: string]> {
  const answer = await ask(peer, '/api/table_p.json', parameters);
  return [answer.status, (JSON.parse(answer.body) as { message: string }).message];
}

async function commit(peer: Peer, name: string, pk: string, cells: Parameters): Promise<TableJson> {
  const columns = Object.entries(cells).map(([column, value]) => [`col_${column}`, value]);
  return table(peer, { table: name, pk, commitrow: '1', ...Object.fromEntries(columns) });
}

async function names(peer: Peer): Promise<string[]> {
  const answer = await ask(peer, '/Tables_p.json', {});
  return (JSON.parse(answer.body) as { tables: string[] }).tables;
}

async function keys(peer: Peer, parameters: Parameters): Promise<string[]> {
  return (await table(peer, parameters)).rows.map((row) => row.pk);
}

describe('a table', () => {
  it('comes into being with its first row, and with no question', async () => {
    const peer = await openPeer();
    expect(await names(peer)).toEqual([]);
    expect(await refused(peer, { table: 't' })).toEqual([404, 'There is no table "t".']);
    expect((await refused(peer, { table: 't', addrow: '1', edittable: 'Edit Table' }))[0]).toBe(404);
    expect((await refused(peer, { table: 't', deletetable: '1' }))[0]).toBe(404);
    expect((await refused(peer, { table: 't', deleterows: '1', item_0: 'pk_a' }))[0]).toBe(404);
    expect(await names(peer)).toEqual([]);
    expect(await commit(peer, 't', 'k', { a: 'x', b: '' })).toEqual({
      table: 't',
      columns: ['a', 'b'],
      rows: [{ pk: 'k', cells: { a: 'x' } }],
    });
    expect(await names(peer)).toEqual(['t']);
  });

  it('has one row a line in JSON', async () => {
    const peer = await openPeer();
    await commit(peer, 't', 'k1', { a: 'x\ny' });
    await commit(peer, 't', 'k2', { b: '{' });
    const { body } = await ask(peer, '/api/table_p.json', { table: 't' });
    expect(body).toBe(
      '{"table":"t","columns":["a","b"],"rows":[\n{"pk":"k1","cells":{"a":"x\\ny"}},\n{"pk":"k2","cells":{"b":"{"}}\n]}\n',
    );
  });

  it('merges the cells that are given into a row that is there; an empty one empties', async () => {
    const peer = await openPeer();
    await commit(peer, 't', 'k', { a: '1', b: '2', c: '3' });
    await commit(peer, 't', 'k', { b: 'two', c: '', d: '4' });
    expect(await table(peer, { table: 't' })).toEqual({
      table: 't',
      columns: ['a', 'b', 'c', 'd'],
      rows: [{ pk: 'k', cells: { a: '1', b: 'two', d: '4' } }],
    });
  });

  it('gives a row without a key the next free number, as YaCy does', async () => {
    const peer = await openPeer();
    await commit(peer, 't', '000000000002', { a: 'taken' });
    const made: string[] = [];
    for (let n = 0; n < 3; n += 1)
      made.push(...(await table(peer, { table: 't', commitrow: '1', col_a: `${n}` })).rows.map((r) => r.pk));
    expect(made).toEqual(['000000000001', '000000000003', '000000000004']);
    await table(peer, { table: 't', deleterows: '1', item_0: 'pk_000000000004' });
    expect((await table(peer, { table: 't', commitrow: '1' })).rows[0]?.pk).toBe('000000000005');
  });

  it('is sorted by the code points of its keys', async () => {
    const peer = await openPeer();
    const sorted = ['', ' ', '0', '10', '9', 'A', 'a', 'aa', 'é', '\uffee', '😀'].filter((k) => k !== '');
    for (const pk of [...sorted].reverse()) await commit(peer, 't', pk, { a: pk });
    expect(await keys(peer, { table: 't' })).toEqual(sorted);
  });

  it('shows the rows that are asked for', async () => {
    const peer = await openPeer();
    await commit(peer, 't', 'k1', { a: 'Straße', b: 'x' });
    await commit(peer, 't', 'k2', { a: '.*', b: 'ÄPFEL' });
    await commit(peer, 't', 'K3', { a: 'ascii' });
    const all = ['K3', 'k1', 'k2'];
    expect(await keys(peer, { table: 't', count: 'all' })).toEqual(all);
    expect(await keys(peer, { table: 't', count: '2' })).toEqual(all.slice(0, 2));
    expect(await keys(peer, { table: 't', count: '0' })).toEqual([]);
    expect(await keys(peer, { table: 't', count: '' })).toEqual(all);
    expect(await keys(peer, { table: 't', search: 'äpfel' })).toEqual(['k2']);
    expect(await keys(peer, { table: 't', search: '.*' })).toEqual(['k2']);
    expect(await keys(peer, { table: 't', search: 'k3' })).toEqual(['K3']);
    expect(await keys(peer, { table: 't', search: 'nothing' })).toEqual([]);
    expect(await keys(peer, { table: 't', search: 'k', count: '1' })).toEqual(['K3']);
    expect(await keys(peer, { table: 't', pk: 'k1' })).toEqual(['k1']);
    expect(await keys(peer, { table: 't', pk: 'k' })).toEqual([]);
    expect(await keys(peer, { table: 't', pk: 'k1', search: 'ÄPFEL' })).toEqual([]);
    expect(await keys(peer, { table: 't', after: 'K3' })).toEqual(['k1', 'k2']);
    expect((await refused(peer, { table: 't', count: '-1' }))[1]).toMatch(/count has to be a number from 0/);
  });

  it('is read and written alike by both paths, by GET and by POST, in all forms', async () => {
    const peer = await openPeer();
    const headers = { authorization: basic(peer) };
    let n = 0;
    for (const path of ['/api/table_p', '/Tables_p']) {
      for (const as of ['html', 'json']) {
        for (const method of ['GET', 'POST']) {
          n += 1;
          const write = `table=t&commitrow=1&pk=k${n}&col_a=v${n}`;
          const url = `${path}.${as}`;
          const wrote =
            method === 'GET'
              ? await send(peer, `${url}?${write}`, { headers })
              : await send(peer, url, { method, headers: { ...headers, ...FORM }, body: write });
          expect([wrote.status, wrote.body.includes(`v${n}`)]).toEqual([200, true]);
          expect(await keys(peer, { table: 't', search: `v${n}` })).toContain(`k${n}`);
        }
      }
    }
    const multipart = new FormData();
    for (const [name, value] of Object.entries({ table: 't', commitrow: '1', pk: 'm', 'col_ü "x"': 'é\r\n' }))
      multipart.set(name, value);
    const made = await fetch(`${peer.url}/api/table_p.json`, { method: 'POST', headers, body: multipart });
    expect(((await made.json()) as TableJson).rows).toHaveLength(1);
  });

  it('answers a page as JSON to who prefers that, refusals too', async () => {
    const peer = await openPeer();
    await commit(peer, 't', 'k', { a: '1' });
    const accept = { accept: 'application/json' };
    for (const path of ['/api/table_p.html', '/Tables_p.html']) {
      const { body, headers } = await ask(peer, path, { table: 't' }, accept);
      expect(headers['content-type']).toBe('application/json; charset=utf-8');
      expect(JSON.parse(body)).toMatchObject({ rows: [{ pk: 'k' }] });
      expect((await ask(peer, path, { table: 't' }, { accept: '*/*' })).headers['content-type']).toMatch(
        /html/,
      );
      const none = await ask(peer, path, { table: 'none' }, accept);
      expect([none.status, JSON.parse(none.body)]).toMatchObject([404, { status: 404 }]);
    }
  });

  it('tells by HEAD that it is there, and is not changed by it', async () => {
    const peer = await openPeer();
    await commit(peer, 't', 'k', { a: '1' });
    const headers = { authorization: basic(peer) };
    const head = await send(peer, '/api/table_p.json?table=t', { method: 'HEAD', headers });
    expect([head.status, head.body]).toEqual([200, '']);
    const path = '/api/table_p.json?table=t&deletetable=1';
    expect((await send(peer, path, { method: 'HEAD', headers })).status).toBe(405);
    expect(await names(peer)).toEqual(['t']);
  });

  it('has no key that ends with NUL, which readers take for padding and so for another key', async () => {
    const peer = await openPeer();
    await commit(peer, 't', 'k', { a: 'x' });
    const answer = await ask(peer, '/Tables_p.json', { table: 't', commitrow: '1', pk: 'k\0', col_a: 'y' });
    expect(answer.status).toBe(400);
    expect(await keys(peer, { table: 't' })).toEqual(['k']);
    expect(await keys(peer, { table: 't', pk: 'k\0' })).toEqual([]);
  });

  it('survives a restart, with the keys that it gave', async () => {
    const dir = temporaryDirectory();
    const first = await openPeer({ dir });
    await table(first, { table: 't', commitrow: '1', col_a: 'kept' });
    await table(first, { table: 't', deleterows: '1', item_0: 'pk_000000000001' });
    await first.close();
    const second = await openPeer({ dir });
    expect(await table(second, { table: 't' })).toEqual({ table: 't', columns: ['a'], rows: [] });
    expect((await table(second, { table: 't', commitrow: '1' })).rows[0]?.pk).toBe('000000000002');
  });
});

describe('rows are deleted', () => {
  it('by their exact keys, and what went is told', async () => {
    const peer = await openPeer();
    for (const pk of ['k', 'k1', 'k2', 'pk_k']) await commit(peer, 't', pk, { a: 'x' });
    const answer = await table(peer, {
      table: 't',
      deleterows: 'Delete',
      item_0: 'pk_k',
      item_7: 'pk_nobody',
      item_9: 'pk_k2',
    });
    expect(answer.deleted).toEqual(['k', 'k2']);
    expect(answer.rows.map((row) => row.pk)).toEqual(['k1', 'pk_k']);
  });

  it('to the last one, which leaves the table and its columns', async () => {
    const peer = await openPeer();
    await commit(peer, 't', 'k', { a: 'x', b: 'y' });
    await table(peer, { table: 't', deleterows: '1', item_0: 'pk_k' });
    expect(await table(peer, { table: 't' })).toEqual({ table: 't', columns: ['a', 'b'], rows: [] });
  });

  it('only where they are named: nothing given deletes nothing', async () => {
    const peer = await openPeer();
    await commit(peer, 't', 'k', { a: 'pk_k' });
    for (const more of [{}, { pk: 'k' }, { item: 'pk_k' }, { col_a: 'pk_k' }]) {
      const [status, message] = await refused(peer, { table: 't', deleterows: '1', ...more } as Parameters);
      expect([status, message]).toEqual([400, expect.stringMatching(/^Nothing was deleted/)]);
    }
    for (const item of ['', 'k', 'pk_', 'PK_k', `pk_${'k'.repeat(501)}`])
      expect((await refused(peer, { table: 't', deleterows: '1', item_0: item }))[0]).toBe(400);
    expect(await keys(peer, { table: 't' })).toEqual(['k']);
  });

  it('by hundreds', async () => {
    const peer = await openPeer();
    const items: [string, string][] = [];
    for (let n = 0; n < 250; n += 1) {
      await commit(peer, 't', `k${n}`, {});
      if (n % 2 === 0) items.push([`item_${n}`, `pk_k${n}`]);
    }
    const answer = await table(peer, {
      table: 't',
      deleterows: '1',
      count: '0',
      ...Object.fromEntries(items),
    });
    expect([answer.deleted?.length, answer.rows]).toEqual([125, []]);
    expect(await keys(peer, { table: 't' })).toHaveLength(125);
  });
});

describe('a table is deleted', () => {
  it('by its exact name alone, and another one of this name begins anew', async () => {
    const peer = await openPeer();
    await commit(peer, 't', 'k', { a: 'x' });
    await commit(peer, 'T', 'k', { a: 'x' });
    expect((await refused(peer, { deletetable: '1' }))[0]).toBe(400);
    expect((await refused(peer, { table: '', deletetable: '1' }))[0]).toBe(400);
    expect((await refused(peer, { table: 't ', deletetable: '1' }))[0]).toBe(404);
    expect(await names(peer)).toEqual(['T', 't']);
    const left = await ask(peer, '/api/table_p.json', { table: 't', deletetable: '1' });
    expect(JSON.parse(left.body)).toEqual({ tables: ['T'] });
    await commit(peer, 't', 'new', { b: 'y' });
    expect(await table(peer, { table: 't' })).toEqual({
      table: 't',
      columns: ['b'],
      rows: [{ pk: 'new', cells: { b: 'y' } }],
    });
  });

  it('not by a form that sends the field empty, and not together with something else', async () => {
    const peer = await openPeer();
    await commit(peer, 't', 'k', { a: 'x' });
    const all = { table: 't', edittable: '', addrow: '', commitrow: '', deleterows: '', deletetable: '' };
    expect((await table(peer, all)).rows).toHaveLength(1);
    const both = await refused(peer, { ...all, deleterows: '1', deletetable: '1', item_0: 'pk_k' });
    expect(both).toEqual([400, 'One at a time: deleterows, deletetable.']);
    expect(await keys(peer, { table: 't' })).toEqual(['k']);
  });

  it('while it is read: the reader never takes the part it has for the whole', async () => {
    const peer = await openPeer();
    for (let n = 0; n < 40; n += 1) await commit(peer, 't', `k${n}`, { a: 'x'.repeat(300_000) });
    const response = await fetch(`${peer.url}/api/table_p.json?table=t`, {
      headers: { authorization: basic(peer) },
    });
    const reader = response.body?.getReader();
    await reader?.read();
    await ask(peer, '/api/table_p.json', { table: 't', deletetable: '1' });
    const rest = async (): Promise<void> => {
      while (!(await reader?.read())?.done);
    };
    await expect(rest()).rejects.toThrow();
  });
});

describe('a table of a page of another site', () => {
  it('is not written, by GET neither, but may be linked to', async () => {
    const peer = await openPeer();
    await commit(peer, 't', 'k', { a: 'x' });
    const writes = ['commitrow=1&pk=new', 'deleterows=1&item_0=pk_k', 'deletetable=1'];
    const browser = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0' };
    const elsewhere = [
      { origin: 'http://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
      { ...browser, 'sec-fetch-site': 'same-site' },
    ];
    for (const path of ['/api/table_p.html', '/Tables_p.json']) {
      for (const from of elsewhere as Record<string, string>[]) {
        const headers = { authorization: basic(peer), ...from };
        for (const write of writes)
          expect((await send(peer, `${path}?table=t&${write}`, { headers })).status).toBe(403);
        expect((await send(peer, `${path}?table=t`, { headers })).status).toBe(200);
      }
    }
    expect(await keys(peer, { table: 't' })).toEqual(['k']);
    for (const own of [{ 'sec-fetch-site': 'same-origin' }, { 'sec-fetch-site': 'none' }]) {
      const headers = { authorization: basic(peer), ...browser, ...own } as Record<string, string>;
      const path = '/Tables_p.json?table=t&commitrow=1&pk=k&col_a=y';
      expect((await send(peer, path, { headers })).status).toBe(200);
    }
  });
});

describe('the bounds of a table', () => {
  it('are told, and what passes them changes nothing', async () => {
    const peer = await openPeer({ maxBody: 100_000 });
    const long = 'x'.repeat(501);
    await commit(peer, 't', 'k', { a: 'x'.repeat(60_000) });
    for (const [parameters, status] of [
      [{ table: long, commitrow: '1' }, 400],
      [{ table: 't', commitrow: '1', pk: long }, 400],
      [{ table: 't', commitrow: '1', [`col_${long}`]: '' }, 400],
      [{ table: 't', commitrow: '1', col_: 'x' }, 400],
      [{ table: 't', commitrow: '1', pk: 'k', col_b: 'x'.repeat(60_000) }, 413],
      [{ table: 'u', commitrow: '1', col_a: 'x'.repeat(100_001) }, 413],
    ] as [Parameters, number][])
      expect((await refused(peer, parameters))[0]).toBe(status);
    const wide = Object.fromEntries(Array.from({ length: 1_001 }, (_, n) => [`col_c${n}`, '']));
    expect(await refused(peer, { table: 'u', commitrow: '1', ...wide })).toEqual([
      400,
      'A table has at most 1000 columns.',
    ]);
    expect(await names(peer)).toEqual(['t']);
    expect((await table(peer, { table: 't' })).columns).toEqual(['a']);
    const edge = '☃'.repeat(500);
    expect(await commit(peer, edge, edge, { [edge]: edge })).toEqual({
      table: edge,
      columns: [edge],
      rows: [{ pk: edge, cells: { [edge]: edge } }],
    });
  });

  it('let a cell of 5 MB through', async () => {
    const peer = await openPeer();
    const value = 'ü\0"<&>\n'.repeat(800_000);
    await commit(peer, 't', 'k', { a: value });
    expect((await table(peer, { table: 't' })).rows[0]?.cells).toEqual({ a: value });
  });
});

describe('the rows of a deleted table', () => {
  it('are cleared away, also where the peer ended before it got to them', async () => {
    const dir = temporaryDirectory();
    const before = new Database(dir);
    const store = new TableStore(before, systemClock, 1_000);
    for (let n = 0; n < 120; n += 1) store.commit('t', undefined, new Map([['a', 'x']]));
    store.commit('other', undefined, new Map([['a', 'x']]));
    const dropped = store.find('t');
    if (dropped) store.drop(dropped);
    before.close();
    const left = (): [rows: number, refuse: number] => {
      const database = new Database(dir);
      const count = (of: string): number => int(database.row(`SELECT count(*) AS n FROM ${of}`), 'n');
      const counts: [number, number] = [count('table_rows'), count('table_refuse')];
      database.close();
      return counts;
    };
    expect(left()).toEqual([121, 1]);
    await until(async () => {
      const peer = await openPeer({ dir });
      for (let n = 0; n < 5; n += 1) expect(await names(peer)).toEqual(['other']);
      await peer.close();
      return left()[1] === 0;
    }, 'nothing is left');
    expect(left()).toEqual([1, 0]);
  });
});
