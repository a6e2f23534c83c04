import { describe, expect, it } from 'vitest';
import { clientOf, HttpServer, ITEM } from './servers.js';

const RECORD =
  '<?xml version="1.0"?>\n<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><record>' +
  '<dc:identifier SCHEME="yacy:urlhash"></dc:identifier><dc:format.extent></dc:format.extent></record></metadata>';
const PAGE =
  '<html><head><title>Welcome</title></head><body><h1>Welcome</h1><p>This is our portal.</p></body></html>';
const DOCUMENT = '{"url":"","urlhash":"","size":""}';

type Reply = readonly [status: number, body: string, headers?: Record<string, string>];

const NOT_THERE: Reply = [404, '<html><body><h2>HTTP ERROR 404</h2></body></html>'];
const PORTAL: Reply = [200, PAGE];

/** A peer that answers so for YaCy's page and for that of the specification. */
async function peerWith(ofYacy: Reply, ofStandard: Reply) {
  const server = await HttpServer.start(({ url }, response) => {
    const [status, body, headers] = url.startsWith('/api/yacydoc.xml') ? ofYacy : ofStandard;
    response.writeHead(status, headers).end(body);
  });
  return { server, client: clientOf(server.url, { dialect: 'auto' }) };
}

describe('the dialect is found out', () => {
  it.each<[string, Reply, Reply, 'yacy' | 'standard']>([
    ['YaCy’s page alone', [200, RECORD], NOT_THERE, 'yacy'],
    ['YaCy’s page, and something that answers for all others', [200, RECORD], PORTAL, 'yacy'],
    ['YaCy’s page, and a failure', [200, RECORD], [500, 'oops'], 'yacy'],
    ['the other page alone, which shows nothing', NOT_THERE, [200, DOCUMENT], 'standard'],
    ['the other page alone, which asks for a document', NOT_THERE, [400, 'Name the document.'], 'standard'],
    ['the other page, and something that answers for all others', PORTAL, [200, DOCUMENT], 'standard'],
    ['the other page alone, which is for people', NOT_THERE, PORTAL, 'standard'],
  ])('by %s', async (_, ofYacy, ofStandard, dialect) => {
    const { server, client } = await peerWith(ofYacy, ofStandard);
    expect(await client.detect()).toBe(dialect);
    expect(client.dialect).toBe(dialect);
    expect(server.requests.every(({ method, url }) => method === 'GET' && !url.includes('?'))).toBe(true);
  });

  it.each<[string, Reply, Reply, string]>([
    ['has neither page', NOT_THERE, NOT_THERE, 'PEER_ANSWER'],
    ['has both', [200, RECORD], [200, DOCUMENT], 'PEER_ANSWER'],
    ['is something that answers 200 to everything', PORTAL, PORTAL, 'PEER_ANSWER'],
    ['wants a password for everything', [401, ''], [401, ''], 'PEER_AUTH'],
    ['lets nobody in', [403, ''], [403, ''], 'PEER_AUTH'],
    ['redirects', [302, '', { location: '/x' }], [302, '', { location: '/x' }], 'PEER_ANSWER'],
    ['fails', [500, 'oops'], [500, 'oops'], 'PEER_FAILED'],
    ['has no time now', [503, ''], [503, ''], 'PEER_BUSY'],
    ['has no time after the first question', NOT_THERE, [503, ''], 'PEER_BUSY'],
    ['has no time for the first question', [503, ''], PORTAL, 'PEER_BUSY'],
    ['is away behind a gateway for one question', [504, ''], [200, DOCUMENT], 'PEER_TIMEOUT'],
    ['is a gateway to a peer that is away', [502, ''], [502, ''], 'PEER_UNREACHABLE'],
  ])('not where the peer %s: nothing is remembered', async (_, ofYacy, ofStandard, code) => {
    const { client } = await peerWith(ofYacy, ofStandard);
    await expect(client.detect()).rejects.toMatchObject({ code });
    expect(client.dialect).toBeUndefined();
  });

  it.each<[string, Reply, Reply, RegExp]>([
    ['neither', NOT_THERE, NOT_THERE, /^http:\/\/127\.0\.0\.1:\d+\/ has neither /],
    ['both', [200, RECORD], [200, DOCUMENT], /^http:\/\/127\.0\.0\.1:\d+\/ has both /],
    ['anything', PORTAL, PORTAL, /^http:\/\/127\.0\.0\.1:\d+\/ answers for /],
  ])(
    'or the peer itself is said to have %s of the pages, not one of them',
    async (_, ofYacy, ofStandard, says) => {
      const { client } = await peerWith(ofYacy, ofStandard);
      await expect(client.detect()).rejects.toMatchObject({ message: expect.stringMatching(says) });
    },
  );

  it('with the credentials of the client, where the whole peer wants them', async () => {
    const server = await HttpServer.start(({ url, headers }, response) => {
      if (headers.authorization === undefined)
        response.writeHead(401, { 'www-authenticate': 'Basic realm="all"' }).end();
      else if (url === '/api/yacydoc.xml') response.end(RECORD);
      else response.writeHead(404).end();
    });
    const credentials = { username: 'u', password: 'p' };
    expect(await clientOf(server.url, { dialect: 'auto', credentials }).detect()).toBe('yacy');
  });

  it('once, by whatever is asked first, for all who wait; one who gives up does not stop the others', async () => {
    const { server, client } = await peerWith([200, RECORD], NOT_THERE);
    const stop = new AbortController();
    const given = client.peerdoc({ url: ITEM.url }, { signal: stop.signal });
    const others = [client.peerdoc({ url: ITEM.url }), client.peerdoc({ url: ITEM.url })];
    stop.abort();
    await expect(given).rejects.toMatchObject({ code: 'PEER_ABORTED' });
    expect(await Promise.all(others)).toEqual([undefined, undefined]);
    await client.peerdoc({ url: ITEM.url });
    const asked = server.requests.map(({ method, url }) => `${method} ${url}`);
    expect(asked.filter((each) => each.startsWith('GET'))).toEqual([
      'GET /api/yacydoc.xml',
      'GET /api/peerdoc.html',
    ]);
    expect(asked.filter((each) => each === 'POST /api/yacydoc.xml')).toHaveLength(3);
    expect(client.requests).toEqual({ push: 0, peerdoc: 3, other: 2 });
  });

  it('not by asking, where it is told; anew, where it is asked for', async () => {
    const { server, client: unknown } = await peerWith(NOT_THERE, [200, DOCUMENT]);
    const client = clientOf(server.url, { dialect: 'yacy' });
    expect(client.dialect).toBe('yacy');
    await expect(client.peerdoc({ url: ITEM.url })).rejects.toMatchObject({
      code: 'PEER_REFUSED',
      status: 404,
    });
    expect(server.requests).toHaveLength(1);
    expect(await client.detect()).toBe('standard');
    expect(client.dialect).toBe('standard');
    expect(unknown.dialect).toBeUndefined();
  });
});
