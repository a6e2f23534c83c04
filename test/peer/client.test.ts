import { describe, expect, it } from 'vitest';
import { PeerClient, PeerError, PeersyncError } from '../../src/index.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/wait.js';
import { CREDENTIALS, DigestServer } from './auth-server.js';
import { ACCEPTED, clientOf, HttpServer, ITEM, RawServer } from './servers.js';

describe('a ping', () => {
  it.each([200, 401, 404, 405])(
    'is answered, with whatever the peer says to a question that asks nothing: %i',
    async (status) => {
      const server = await HttpServer.start((_, response) =>
        response.writeHead(status, { server: 'Peer/1' }).end(),
      );
      const client = clientOf(server.url);
      expect(await client.ping()).toEqual({ ms: expect.any(Number), server: 'Peer/1' });
      expect(server.requests).toMatchObject([{ method: 'GET', url: '/api/peerdoc.html', body: '' }]);
      expect(client.requests).toEqual({ push: 0, peerdoc: 0, other: 1 });
    },
  );

  it.each([
    [500, 'PEER_FAILED'],
    [502, 'PEER_UNREACHABLE'],
    [503, 'PEER_BUSY'],
    [429, 'PEER_BUSY'],
  ])('fails with a peer that fails: %i', async (status, code) => {
    const server = await HttpServer.start((_, response) => response.writeHead(status).end());
    await expect(clientOf(server.url).ping()).rejects.toMatchObject({ code });
  });
});

describe('the administrator’s access', () => {
  it('is checked by asking for the push page, with nothing to push', async () => {
    const server = await DigestServer.start();
    await clientOf(server.url, { credentials: CREDENTIALS }).checkAdmin();
    expect(server.http.requests).toMatchObject([
      { method: 'GET', url: '/api/push_p.html', body: '' },
      { method: 'GET', url: '/api/push_p.html', body: '' },
    ]);
  });

  it('is refused for a wrong password, and without one', async () => {
    const server = await DigestServer.start();
    const wrong = clientOf(server.url, { credentials: { username: 'admin', password: 'x' } });
    await expect(wrong.checkAdmin()).rejects.toMatchObject({ code: 'PEER_AUTH' });
    await expect(clientOf(server.url).checkAdmin()).rejects.toMatchObject({ code: 'PEER_AUTH' });
  });

  it('is there where the peer only finds the question too short', async () => {
    const server = await HttpServer.start((_, response) => response.writeHead(405).end());
    await expect(clientOf(server.url).checkAdmin()).resolves.toBeUndefined();
  });

  it('is not there where there is no such page', async () => {
    const server = await HttpServer.start((_, response) => response.writeHead(404).end());
    await expect(clientOf(server.url).checkAdmin()).rejects.toMatchObject({
      code: 'PEER_REFUSED',
      status: 404,
    });
  });
});

describe('a client', () => {
  it('finds the API below its base URL, with or without a slash', async () => {
    const server = await HttpServer.start((_, response) => response.end(ACCEPTED));
    for (const base of ['', '/', '/search/peer', '/search/peer/'])
      await clientOf(server.url + base).push([ITEM]);
    expect(server.requests.map(({ url }) => url)).toEqual([
      '/api/push_p.html',
      '/api/push_p.html',
      '/search/peer/api/push_p.html',
      '/search/peer/api/push_p.html',
    ]);
  });

  it('learns from a push of nothing whether the peer takes pushes', async () => {
    const answers = [
      '{"count":"0","successall":"true","countsuccess":0,"countfail":0}',
      '{}',
      '<h1>Welcome</h1>',
    ];
    const server = await HttpServer.start((_, response, n) => response.end(answers[n]));
    const client = clientOf(server.url);
    expect(await client.push([])).toMatchObject({ results: [] });
    expect(server.bodies).toEqual(['count=0']);
    await expect(client.push([])).rejects.toMatchObject({ code: 'PEER_ANSWER' });
    await expect(client.push([])).rejects.toMatchObject({ code: 'PEER_ANSWER' });
  });

  it('counts what it really sent', async () => {
    const server = await HttpServer.start(({ url }, response) =>
      response.end(url.includes('peerdoc') ? '{"error":"not found"}' : ACCEPTED),
    );
    const client = clientOf(server.url);
    await client.push([ITEM]);
    expect(await client.peerdoc({ url: ITEM.url })).toBeUndefined();
    expect(await client.peerdoc({ urlhash: 'abc' })).toBeUndefined();
    await client.ping();
    expect(client.requests).toEqual({ push: 1, peerdoc: 2, other: 1 });
    const pushed = server.requests.findIndex(({ url }) => url.includes('push'));
    expect(client.pushedBytes).toBe(server.bodies[pushed]?.length);
    expect(server.requests).toHaveLength(4);
  });

  it('takes 404 for a document that is not there, and other failures for failures', async () => {
    let status = 404;
    const server = await HttpServer.start((_, response) => response.writeHead(status).end());
    const client = clientOf(server.url);
    expect(await client.peerdoc({ url: ITEM.url })).toBeUndefined();
    status = 500;
    await expect(client.peerdoc({ url: ITEM.url })).rejects.toMatchObject({ code: 'PEER_FAILED' });
  });

  it('is usable alone, as a library', async () => {
    const client = new PeerClient({ baseUrl: 'http://127.0.0.1:1/' });
    const failed = client.ping();
    await expect(failed).rejects.toBeInstanceOf(PeerError);
    await expect(failed).rejects.toBeInstanceOf(PeersyncError);
    await client.close();
  });

  it('takes single limits, and leaves the others as they are', async () => {
    const clock = new FakeClock();
    const server = await RawServer.start(() => {});
    const client = new PeerClient({
      dialect: 'standard',
      baseUrl: server.url,
      clock,
      timeouts: { headers: 1_000 },
    });
    const slow = expect(client.ping()).rejects.toMatchObject({ code: 'PEER_TIMEOUT' });
    await until(() => server.connections === 1, 'asked');
    await clock.advance(1_000);
    await slow;
    await client.close();
  });
});
