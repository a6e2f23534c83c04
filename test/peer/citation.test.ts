import { describe, expect, it } from 'vitest';
import type { CitationOptions, CitationQuery } from '../../src/peer/citation.js';
import { clientOf, HttpServer } from './servers.js';

const EMPTY = '{"sentences":[],"citing":[],"similar":[]}';
const URL = 'https://docs.example.org/a.txt';

describe('citations', () => {
  it.each<[string, CitationQuery, CitationOptions]>([
    ['url=https%3A%2F%2Fdocs.example.org%2Fa.txt', { url: URL }, {}],
    ['hash=y4Zp-1x_', { hash: 'y4Zp-1x_' }, {}],
    ['filter=true&hash=h', { hash: 'h' }, { filter: true }],
    ['filter=false&hash=h', { hash: 'h' }, { filter: false }],
    ['ch=0&hash=h', { hash: 'h' }, { ch: 0 }],
    ['url=https%3A%2F%2Fdocs.example.org%2Fa.txt&filter=true&ch=10', { url: URL }, { filter: true, ch: 10 }],
  ])('are asked for with what is given, and no more: %s', async (body, query, options) => {
    const server = await HttpServer.start((_, response) => response.end(EMPTY));
    const client = clientOf(server.url);
    expect(await client.citation(query, options)).toMatchObject({ sentences: [] });
    expect(server.requests).toMatchObject([{ method: 'POST', url: '/api/citation.html', body }]);
    expect(server.requests[0]?.headers).toMatchObject({
      'content-type': 'application/x-www-form-urlencoded',
      accept: expect.stringMatching(/^application\/json,/),
    });
    expect(client.requests).toEqual({ push: 0, peerdoc: 0, other: 1 });
  });

  it('of a document that the peer does not have are undefined', async () => {
    const server = await HttpServer.start((_, response) => response.writeHead(404).end());
    expect(await clientOf(server.url).citation({ url: URL })).toBeUndefined();
  });

  it('fail with a peer that fails', async () => {
    const server = await HttpServer.start((_, response) => response.writeHead(500).end());
    await expect(clientOf(server.url).citation({ url: URL })).rejects.toMatchObject({ code: 'PEER_FAILED' });
  });

  it('that are called off are not asked for', async () => {
    const server = await HttpServer.start((_, response) => response.end(EMPTY));
    const failed = clientOf(server.url).citation({ url: URL }, { signal: AbortSignal.abort() });
    await expect(failed).rejects.toMatchObject({ code: 'PEER_ABORTED', delivered: 'no' });
    expect(server.connections).toBe(0);
  });
});
