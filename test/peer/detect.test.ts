import { describe, expect, it } from 'vitest';
import { CREDENTIALS } from '../support/digest.js';
import { clientOf, ITEM, serving } from './support.js';

const RECORD =
  '<?xml version="1.0"?>\n<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><record>' +
  '<dc:identifier SCHEME="yacy:urlhash"></dc:identifier><dc:format.extent></dc:format.extent></record></metadata>';

type Reply = readonly [status: number, body: string];

const YACY: Reply = [200, RECORD];
const DOCUMENT: Reply = [200, '{"url":"","urlhash":"","size":""}'];
const NOT_THERE: Reply = [404, '<html><body><h2>HTTP ERROR 404</h2></body></html>'];
const PORTAL: Reply = [
  200,
  '<html><head><title>Welcome</title></head><body><h1>Welcome</h1></body></html>',
];

/** A peer with these answers for the page of YaCy and that of the specification. */
const peerWith = (ofYacy: Reply, ofStandard: Reply) =>
  serving(
    ({ url }, response) => {
      const [status, body] = url.startsWith('/api/yacydoc.xml') ? ofYacy : ofStandard;
      response.writeHead(status).end(body);
    },
    { dialect: 'auto' },
  );

describe('the dialect is detected', () => {
  it.each<[string, Reply, Reply, 'yacy' | 'standard']>([
    ['YaCy’s page alone', YACY, NOT_THERE, 'yacy'],
    ['YaCy’s page, and something that answers for all others', YACY, PORTAL, 'yacy'],
    ['the other page alone, which asks for a document', NOT_THERE, [400, 'Name it.'], 'standard'],
    ['the other page, and something that answers for all others', PORTAL, DOCUMENT, 'standard'],
    ['the other page alone, which is for people', NOT_THERE, PORTAL, 'standard'],
  ])('by %s', async (_, ofYacy, ofStandard, dialect) => {
    const { server, client } = await peerWith(ofYacy, ofStandard);
    expect(await client.detect()).toBe(dialect);
    expect(client.dialect).toBe(dialect);
    expect(server.requests.every(({ method, url }) => method === 'GET' && !url.includes('?'))).toBe(
      true,
    );
  });

  it.each<[string, Reply, Reply, string, RegExp?]>([
    [
      'has neither page',
      NOT_THERE,
      NOT_THERE,
      'PEER_ANSWER',
      /^http:\/\/[\d.:]+\/ has no page of a peer /,
    ],
    [
      'has both',
      YACY,
      DOCUMENT,
      'PEER_ANSWER',
      /^http:\/\/[\d.:]+\/ answers as several kinds of peer: /,
    ],
    [
      'answers 200 to everything',
      PORTAL,
      PORTAL,
      'PEER_ANSWER',
      /^http:\/\/[\d.:]+\/ answers for /,
    ],
    ['wants a password for everything', [401, ''], [401, ''], 'PEER_AUTH'],
    ['fails', [500, 'oops'], [500, 'oops'], 'PEER_FAILED'],
    ['has no time after the first question', NOT_THERE, [503, ''], 'PEER_BUSY'],
    ['has no time for the first question', [503, ''], PORTAL, 'PEER_BUSY'],
    ['is a gateway to a peer that is away', [502, ''], [502, ''], 'PEER_UNREACHABLE'],
  ])(
    'by no answer if the peer %s, and nothing is remembered',
    async (_, ofYacy, ofStandard, code, says = /^/) => {
      const { client } = await peerWith(ofYacy, ofStandard);
      await expect(client.detect()).rejects.toMatchObject({
        code,
        message: expect.stringMatching(says),
      });
      expect(client.dialect).toBeUndefined();
    },
  );

  it('by requests with the credentials of the client, if every page needs them', async () => {
    const challenge = { 'www-authenticate': 'Basic realm="all"' };
    const { client } = await serving(
      ({ url, headers }, response) => {
        const found = url === '/api/yacydoc.xml' ? 200 : 404;
        response.writeHead(headers.authorization ? found : 401, challenge).end(RECORD);
      },
      { dialect: 'auto', credentials: CREDENTIALS },
    );
    expect(await client.detect()).toBe('yacy');
  });

  it('once, by the first request, for all requests that wait; an aborted one does not stop the others', async () => {
    const { server, client } = await peerWith(YACY, NOT_THERE);
    const stop = new AbortController();
    const given = client.peerdoc({ url: ITEM.url }, { signal: stop.signal });
    const others = [client.peerdoc({ url: ITEM.url }), client.peerdoc({ url: ITEM.url })];
    stop.abort();
    await expect(given).rejects.toMatchObject({ code: 'PEER_ABORTED' });
    expect(await Promise.all(others)).toEqual([undefined, undefined]);
    await client.peerdoc({ url: ITEM.url });
    const asked = server.requests.map(({ method, url }) => `${method} ${url}`);
    const looked = Array(3).fill('POST /api/yacydoc.xml');
    expect(asked).toEqual(['GET /api/yacydoc.xml', 'GET /api/peerdoc.html', ...looked]);
    expect(client.requests).toEqual({ push: 0, peerdoc: 3, other: 2 });
  });

  it('by a request only if the options do not name it, or if `detect` is called', async () => {
    const { server } = await peerWith(NOT_THERE, DOCUMENT);
    const client = clientOf(server.url, { dialect: 'yacy' });
    expect(client.dialect).toBe('yacy');
    const refused = { code: 'PEER_REFUSED', status: 404 };
    await expect(client.peerdoc({ url: ITEM.url })).rejects.toMatchObject(refused);
    expect(server.requests).toHaveLength(1);
    expect(await client.detect()).toBe('standard');
    expect(client.dialect).toBe('standard');
    await client.detect();
    expect(server.requests).toHaveLength(5);
  });
});
