import { describe, expect, it } from 'vitest';
import type { PeerClient } from '../../src/index.js';
import { VERSION } from '../../src/lib/process.js';
import { clientOf, raw } from '../peer/support.js';
import { HttpPeer, http } from '../support/http-peer.js';

/** Every parameter of the specification's tables, as a server that only records sees it. */

/** No record of anything, in every shape at once. */
const NOTHING =
  '{"error":"not found","tables":[],"columns":[],"rows":[],"sentences":[],"citing":[],"similar":[]}';

type Ask = (client: PeerClient) => Promise<unknown>;

/** Returns the requests of one call of the client: method, address and body. */
async function sentFor(ask: Ask): Promise<string[]> {
  const server = await HttpPeer.start((_, response) => response.end(NOTHING));
  await ask(clientOf(server.url)).catch(() => undefined);
  for (const { method, headers, body } of server.requests) {
    // 4, rule 1: form-encoded bodies.
    const type = method === 'POST' ? 'application/x-www-form-urlencoded' : undefined;
    expect(headers['content-type']).toBe(type);
    expect(headers['content-length']).toBe(type && String(body.length));
  }
  return server.requests.map(({ method, url, body }) => [method, url, body].join(' ').trimEnd());
}

const URL_ = 'https://files.example.org/a b/%C3%BC.txt?x=1&y=2';
const URL_SENT = 'https%3A%2F%2Ffiles.example.org%2Fa+b%2F%25C3%25BC.txt%3Fx%3D1%26y%3D2';
const HASH = 'He4f+Sb/qd =';
const HASH_SENT = 'He4f%2BSb%2Fqd+%3D';
const cells = (values: Record<string, string>) => new Map(Object.entries(values));
const drain: Parameters<PeerClient['share']>[1] = async ({ chunks }) => {
  for await (const chunk of chunks) void chunk;
};

const NOTE = {
  url: 'https://files.example.org/inbox/note.txt',
  collection: 'inbox',
  data: Buffer.from('Hello, peer & world!\n'),
};
const UMLAUT = {
  url: 'https://files.example.org/inbox/%C3%BCber%20uns%20%231.md',
  collection: 'notes_2026',
  data: Buffer.from('50 % für „uns“ + 1 = 🙂\r\n~*-._'),
};
const NOTE_SENT =
  'data-0=Hello%2C+peer+%26+world%21%0A&url-0=https%3A%2F%2Ffiles.example.org%2Finbox%2Fnote.txt&collection-0=inbox';
const UMLAUT_SENT = [
  'data-1=50+%25+f%C3%BCr+%E2%80%9Euns%E2%80%9C+%2B+1+%3D+%F0%9F%99%82%0D%0A%7E*-._',
  'url-1=https%3A%2F%2Ffiles.example.org%2Finbox%2F%25C3%25BCber%2520uns%2520%25231.md',
  'collection-1=notes_2026',
].join('&');

/**
 * Table and row of the specification, the call, and what is sent: nothing that was not given (4,
 * rule 2), in the order of the request shapes.
 */
const SENT: readonly (readonly [string, Ask, readonly string[]])[] = [
  ['4.1 url', (c) => c.citation({ url: URL_ }), [`POST /api/citation.html url=${URL_SENT}`]],
  [
    '4.1 filter and ch',
    (c) => c.citation({ url: URL_ }, { filter: true, ch: 0 }),
    [`POST /api/citation.html url=${URL_SENT}&filter=true&ch=0`],
  ],
  [
    '4.1 hash, and no filter',
    (c) => c.citation({ hash: HASH }, { filter: false }),
    [`POST /api/citation.html filter=false&hash=${HASH_SENT}`],
  ],
  ['4.2 url', (c) => c.peerdoc({ url: URL_ }), [`POST /api/peerdoc.html url=${URL_SENT}`]],
  [
    '4.2 urlhash and html',
    (c) => c.peerdoc({ urlhash: HASH }, { html: 'ü&' }),
    [`POST /api/peerdoc.html urlhash=${HASH_SENT}&html=%C3%BC%26`],
  ],
  [
    '4.3 items numbered from 0, and no flag that was not asked for',
    (c) => c.push([NOTE, UMLAUT], { synchronous: false, commit: false }),
    [`POST /api/push_p.html count=2&${NOTE_SENT}&${UMLAUT_SENT}`],
  ],
  [
    '4.3 synchronous and commit',
    (c) => c.push([NOTE], { synchronous: true, commit: true }),
    [`POST /api/push_p.html synchronous=true&commit=true&count=1&${NOTE_SENT}`],
  ],
  ['4.4 data', (c) => c.share({ data: 'a/b.bin' }, drain), ['POST /api/share.html data=a%2Fb.bin']],
  [
    '4.4 c',
    (c) => c.share({ data: 'b.bin', c: 'my group' }, drain),
    ['POST /api/share.html data=b.bin&c=my+group'],
  ],
  [
    '4.5 table, by POST',
    (c) => c.tables.read({ table: 'a b&ü' }),
    ['POST /api/table_p.html table=a+b%26%C3%BC'],
  ],
  [
    '4.5 table and count, by GET',
    (c) => c.tables.read({ table: 'a b&ü', count: 0 }, { method: 'GET' }),
    ['GET /api/table_p.html?table=a+b%26%C3%BC&count=0'],
  ],
  [
    '4.5 count and search',
    (c) => c.tables.read({ table: 'T', search: 'a=b', count: 20 }),
    ['POST /api/table_p.html table=T&count=20&search=a%3Db'],
  ],
  ['4.5 no parameter: the list', (c) => c.tables.list(), ['POST /Tables_p.html']],
  [
    '4.5 commitrow, and the row read back',
    (c) => c.tables.set('T', [{ pk: 'k 1', cells: cells({ 'a=b': 'x&y', c: '' }) }]),
    [
      'POST /Tables_p.html table=T&commitrow=Commit&count=1&pk=k+1&col_a%3Db=x%26y&col_c=',
      'POST /api/table_p.html table=T&pk=k+1',
    ],
  ],
  [
    '4.5 deleterows, and the rows looked for',
    (c) => c.tables.deleteRows('T', ['k 1', 'pk_2']),
    [
      'POST /Tables_p.html table=T&count=1&deleterows=Delete+Selected+Rows&item_0=pk_k+1&item_1=pk_pk_2',
      'POST /api/table_p.html table=T&pk=k+1',
      'POST /api/table_p.html table=T&pk=pk_2',
    ],
  ],
  [
    '4.5 deletetable, and the list read',
    (c) => c.tables.drop('T'),
    ['POST /Tables_p.html table=T&deletetable=Delete+Table', 'POST /Tables_p.html'],
  ],
];

describe('the client sends', () => {
  it.each(SENT)('%s', async (_, ask, expected) => {
    expect(await sentFor(ask)).toEqual(expected);
  });

  it('each byte of a push as the specification has it, and nothing else', async () => {
    const requests: string[] = [];
    const { server, client } = await raw((socket, request) => {
      requests.push(request);
      socket.write(http(NOTHING));
    });
    await client.push([NOTE]).catch(() => undefined);
    const head = [
      'POST /api/push_p.html HTTP/1.1',
      `host: ${new URL(server.url).host}`,
      'connection: keep-alive',
      expect.stringMatching(/^accept: application\/json, /),
      `user-agent: peersync/${VERSION}`,
      'content-type: application/x-www-form-urlencoded',
      `content-length: ${NOTE_SENT.length + 'count=1&'.length}`,
    ];
    expect(requests.map((request) => request.split('\r\n'))).toEqual([
      [...head, '', `count=1&${NOTE_SENT}`],
    ]);
  });

  it('requests below the path of the base URL', async () => {
    const server = await HttpPeer.start((_, response) => response.end(NOTHING));
    const client = clientOf(`${server.url}/peer/`);
    await client.tables.list();
    await client.tables.read({ table: 'T', count: 1 }, { method: 'GET' });
    expect(server.requests.map(({ url }) => url)).toEqual([
      '/peer/Tables_p.html',
      '/peer/api/table_p.html?table=T&count=1',
    ]);
  });

  it('credentials for the pages of tables, which are the administrator’s (5), and none for the others', async () => {
    const server = await HttpPeer.start(({ url, headers }, response) => {
      if (url.includes('_p.html') && headers.authorization === undefined) {
        response.writeHead(401, { 'www-authenticate': 'Basic realm="peer"' });
      }
      response.end(NOTHING);
    });
    const client = clientOf(server.url, { credentials: { username: 'admin', password: 'secret' } });
    await client.citation({ url: URL_ });
    await client.share({ data: 'x' }, drain);
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
      undefined,
      undefined,
    ]);
    await client.tables.read({ table: 'T' });
    await client.tables.list();
    const basic = `Basic ${Buffer.from('admin:secret').toString('base64')}`;
    expect(
      server.requests.slice(2).map(({ url, headers, body }) => [url, headers.authorization, body]),
    ).toEqual([
      // Nothing is told before the peer lets us in.
      ['/api/table_p.html', undefined, ''],
      ['/api/table_p.html', basic, ''],
      ['/api/table_p.html', basic, 'table=T'],
      ['/Tables_p.html', basic, ''],
    ]);
  });
});
