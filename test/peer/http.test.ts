import { getEventListeners } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { TextSource } from '../../src/peer/form.js';
import { CREDENTIALS } from '../support/digest.js';
import { FakeClock } from '../support/fake-clock.js';
import { HttpPeer, http } from '../support/http-peer.js';
import { deferred, until } from '../support/wait.js';
import { ACCEPTED, clientOf, ITEM, OK, raw, serving } from './support.js';

const HEAD = 'HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n';
const like = (text: string) => expect.stringContaining(text);

/** Sends bytes until the peer has enough of them; returns how it was read. */
function endless() {
  const state = { reads: 0, open: 0, given: 0 };
  const source: TextSource = {
    size: 64 * 1024 * 1024,
    async *chunks() {
      state.reads += 1;
      state.open += 1;
      try {
        for (state.given = 0; state.given < 1024; state.given += 1)
          yield Buffer.alloc(64 * 1024, 'x');
      } finally {
        state.open -= 1;
      }
    },
  };
  return { state, item: { ...ITEM, data: source } };
}

it('a peer that does not run is unreachable, and nothing was delivered', async () => {
  const { server, client } = await raw(() => {});
  server.stopListening();
  await expect(client.push([ITEM])).rejects.toMatchObject({
    code: 'PEER_UNREACHABLE',
    exitCode: 4,
    delivered: 'no',
    message: expect.stringMatching(/^http:.*\/api\/push_p\.html cannot be reached: .*ECONNREFUSED/),
  });
});

describe('time limits', () => {
  it('end a connection that is not established', async () => {
    const server = await HttpPeer.raw(() => {});
    const client = clientOf(server.url.replace('http:', 'https:'), { timeouts: { connect: 200 } });
    const expected = {
      code: 'PEER_TIMEOUT',
      exitCode: 4,
      delivered: 'no',
      message: like('after 200 ms'),
    };
    await expect(client.push([ITEM])).rejects.toMatchObject(expected);
  });

  it.each([
    ['a silence after the request', '', {}, 'maybe', 'an answer within 30000 ms'],
    [
      'a silence in the answer',
      `${HEAD}{`,
      { body: 10_000 },
      'yes',
      'the rest of the answer within 10000 ms',
    ],
    [
      'an answer that drips for ever',
      HEAD,
      { total: 20_000 },
      'yes',
      'a complete answer within 20000 ms',
    ],
  ])('end %s', async (_, begin, timeouts, delivered, words) => {
    const clock = new FakeClock();
    const { server, client } = await raw((socket) => socket.write(begin || '\r\n'), {
      clock,
      timeouts,
    });
    const expected = { code: 'PEER_TIMEOUT', delivered, message: like(`did not give ${words}`) };
    const failed = expect(client.push([ITEM])).rejects.toMatchObject(expected);
    await until(() => (server.sockets[0]?.bytesWritten ?? 0) > 0, 'asked');
    await until(async () => {
      if (begin === HEAD) server.sockets[0]?.write('x');
      await clock.advance(5_000);
      return clock.waiting === 0;
    }, 'given up');
    await failed;
    await until(() => server.open === 0, 'the connection was ended');
  });

  it('do not end a slow upload that makes progress', async () => {
    const clock = new FakeClock();
    const timeouts = { headers: 1_000, body: 1_000 };
    const { client } = await serving((_, response) => response.end(ACCEPTED), { clock, timeouts });
    let [reads, over] = [0, false];
    const slow: TextSource = {
      size: 20,
      async *chunks() {
        reads += 1;
        for (let i = 0; i < 20; i += 1) {
          if (reads > 1) await clock.sleep(450);
          yield Buffer.from('x');
        }
      },
    };
    const pushed = client.push([{ ...ITEM, data: slow }]).finally(() => {
      over = true;
    });
    await until(async () => {
      if (reads > 1 && clock.waiting > 1) await clock.advance(450);
      return over;
    }, 'pushed');
    expect(await pushed).toMatchObject(OK);
    expect(clock.elapsed()).toBe(9_000);
  });
});

describe('a connection', () => {
  const used = (close: (socket: Socket) => unknown) => (socket: Socket, _: string, n: number) =>
    n === 0 ? socket.write(http(ACCEPTED)) : close(socket);

  it.each<[string, Parameters<typeof raw>[0], string, string]>([
    ['before an answer', (socket) => socket.resetAndDestroy(), 'maybe', 'without an answer'],
    [
      'in the middle of it',
      (socket) => socket.end(`${HEAD}{"count"`),
      'yes',
      'in the middle of its answer',
    ],
    ['that had been used before', used((socket) => socket.end()), 'maybe', 'without an answer'],
    [
      'after the first byte of an answer',
      used((socket) => socket.end('HTTP/1.1 200')),
      'maybe',
      '',
    ],
  ])(
    'that breaks is reported, and nothing is sent again: %s',
    async (_, answer, delivered, words) => {
      const { server, client } = await raw(answer);
      const data: TextSource = {
        size: 4,
        async *chunks() {
          yield Buffer.from('four');
        },
      };
      const pushes = async () => {
        for (const item of [{ ...ITEM, data }, ITEM]) expect(await client.push([item])).toEqual(OK);
      };
      const expected = { code: 'PEER_UNREACHABLE', delivered, message: like(words) };
      await expect(pushes()).rejects.toMatchObject(expected);
      expect(server.connections).toBe(1);
    },
  );

  it.each([
    ['is broken', 'PEER_UNREACHABLE', (socket: Socket) => socket.resetAndDestroy()],
    [
      'is called off',
      'PEER_ABORTED',
      (socket: Socket, stop: AbortController) => stop.abort(socket.pause()),
    ],
  ])(
    'that %s while the body goes out delivers nothing, and the text is closed',
    async (_, code, end) => {
      const stop = new AbortController();
      const server = await HttpPeer.raw((socket) => socket.once('data', () => end(socket, stop)));
      const { state, item } = endless();
      const pushed = clientOf(server.url).push([item], { signal: stop.signal });
      await expect(pushed).rejects.toMatchObject({ code, delivered: 'no' });
      expect(state.reads).toBe(2);
      await until(() => state.open === 0, 'the text was closed');
    },
  );
});

describe('connections', () => {
  it('are reused, and closed by the client after a moment, before the peer closes them during a request', async () => {
    const { server, client } = await serving((_, response) => response.end(ACCEPTED));
    for (let i = 0; i < 3; i += 1) await client.push([ITEM]);
    expect(server.connections).toBe(1);
    await until(() => server.open === 0, 'closed');
    expect(await client.push([ITEM])).toMatchObject(OK);
    expect(server.connections).toBe(2);
  });

  it('are closed by `close`, which also ends requests under way', async () => {
    const { server, client } = await serving(() => {});
    const aborted = { code: 'PEER_ABORTED', delivered: 'maybe' };
    const failed = expect(client.push([ITEM])).rejects.toMatchObject(aborted);
    await until(() => server.requests.length === 1, 'asked');
    await client.close();
    await failed;
    await until(() => server.open === 0, 'no connection is left');
    await expect(client.push([ITEM])).rejects.toMatchObject({ ...aborted, delivered: 'no' });
    expect(server.connections).toBe(1);
  });
});

describe('a request', () => {
  it('ends at once when it is aborted, and its connection too', async () => {
    const { server, client } = await serving(() => {});
    const stop = new AbortController();
    const aborted = { code: 'PEER_ABORTED', delivered: 'maybe', cause: 'no more' };
    const failed = expect(client.push([ITEM], { signal: stop.signal })).rejects.toMatchObject(
      aborted,
    );
    await until(() => server.requests.length === 1, 'asked');
    stop.abort('no more');
    await failed;
    await until(() => server.open === 0, 'no connection is left');
    const before = client.push([ITEM], { signal: stop.signal });
    await expect(before).rejects.toMatchObject({ ...aborted, delivered: 'no' });
    expect(client.requests.push).toBe(1);
  });

  it('leaves no listener on a signal that many requests share', async () => {
    const { client } = await serving((_, response) => response.end(ACCEPTED), {
      credentials: CREDENTIALS,
    });
    const { signal } = new AbortController();
    for (let i = 0; i < 3; i += 1) await client.push([ITEM], { signal });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('is never completed if its text changes while it is sent', async () => {
    const complete: string[] = [];
    const { server, client } = await raw((_, request) => complete.push(request));
    let reads = 0;
    const changing: TextSource = {
      size: 4,
      async *chunks() {
        reads += 1;
        yield Buffer.from(reads === 1 ? 'four' : 'fo');
      },
    };
    const failed = client.push([ITEM, { ...ITEM, data: changing }]);
    await expect(failed).rejects.toMatchObject({ code: 'PEER_SOURCE', item: 1, delivered: 'no' });
    await until(() => server.open === 0, 'the connection was ended');
    expect(complete).toEqual([]);
  });

  it('waits for its admission before the first byte and before each piece, and arrives whole', async () => {
    const { server, client } = await serving((_, response) => response.end(ACCEPTED));
    const admitted: number[] = [];
    const { promise, resolve } = deferred();
    const admit = async (bytesBefore: number) => {
      admitted.push(bytesBefore);
      if (bytesBefore === 0) await promise;
    };
    const data = Buffer.alloc(150 * 1024, 'x');
    const pushing = client.push([{ ...ITEM, data }], { admit });
    await until(() => admitted.length > 0, 'it asked for its admission');
    expect(server.requests).toEqual([]);
    resolve();
    await pushing;
    expect(admitted).toEqual([0, 64 * 1024, 128 * 1024]);
    expect(server.requests[0]?.body).toContain('x'.repeat(150 * 1024));
  });

  it('is never completed if a piece is not admitted', async () => {
    let received = 0;
    const server = await HttpPeer.raw((socket) => {
      socket.on('data', (chunk) => {
        received += chunk.length;
        // It takes no more for the moment.
        socket.pause();
      });
    });
    const { state, item } = endless();
    let isOver = false;
    const admit = () => {
      if (isOver) throw new Error('it is too late');
    };
    const failed = expect(clientOf(server.url).push([item], { admit })).rejects.toMatchObject({
      code: 'PEER_ABORTED',
      delivered: 'no',
    });
    let given = -1;
    await until(() => {
      const isStill = received > 0 && state.reads === 2 && state.given === given;
      given = state.given;
      return isStill;
    }, 'the connection takes no more');
    isOver = true;
    for (const socket of server.sockets) socket.resume().removeAllListeners('data');
    await failed;
    expect(state.open).toBe(0);
  });
});

describe('an answer', () => {
  const LONG = `HTTP/1.1 200 OK\r\n\r\n${'{"count":"1"'.repeat(1000)}`;
  it.each<[string, string, object]>([
    [
      'too long by what it announces',
      http('x'.repeat(2000)),
      { code: 'PEER_ANSWER_TOO_LARGE', delivered: 'yes' },
    ],
    [
      'too long while it comes',
      LONG,
      { code: 'PEER_ANSWER_TOO_LARGE', firstBytes: like('{"count":"1"') },
    ],
    [
      'a long failure',
      http('Stack '.repeat(1000), 'HTTP/1.1 500 No'),
      { code: 'PEER_FAILED', status: 500 },
    ],
    [
      'not HTTP',
      '\x1b[2JSSH-2.0\r\n',
      { code: 'PEER_ANSWER', firstBytes: like('\\u{1b}[2JSSH-2.0') },
    ],
  ])('is refused if it is %s', async (_, text, error) => {
    const { client } = await raw((socket) => socket.end(text), { maxAnswer: 1000 });
    await expect(client.push([ITEM])).rejects.toMatchObject(error);
  });

  it('is shown and not followed if it redirects, and the target gets no credentials', async () => {
    const { server: elsewhere } = await serving((_, response) => response.end(ACCEPTED));
    const location = `${elsewhere.url}/api/push_p.html`;
    const redirect = (_: unknown, response: ServerResponse) =>
      void response.writeHead(302, { location }).end();
    const { client } = await serving(redirect, { credentials: CREDENTIALS });
    const message = like(`a redirect to ${location}`);
    await expect(client.push([ITEM])).rejects.toMatchObject({
      code: 'PEER_ANSWER',
      status: 302,
      message,
    });
    expect(elsewhere.connections).toBe(0);
  });
});

it('every kind of request ends when it is aborted', async () => {
  const { client } = await serving(() => {});
  const stop = new AbortController();
  const { url } = ITEM;
  const asked = [
    client.push([ITEM], stop),
    client.remove([url], stop),
    client.ping(stop),
    client.shares(stop),
    client.peerdoc({ url }, stop),
    client.peerdocs([url], stop),
    client.citation({ url }, stop),
    client.search({ words: 'gulls', limit: 1 }, stop),
    client.share({ data: 'x' }, async () => 'read', stop),
  ];
  const aborted = asked.map((each) => expect(each).rejects.toMatchObject({ code: 'PEER_ABORTED' }));
  stop.abort();
  await Promise.all(aborted);
});

describe('a status', () => {
  it.each([
    ['PEER_REFUSED', [400, 404]],
    ['PEER_AUTH', [401, 403]],
    ['PEER_TIMEOUT', [408, 504]],
    ['PEER_TOO_LARGE', [413]],
    ['PEER_BUSY', [429, 503]],
    ['PEER_FAILED', [500]],
    ['PEER_UNREACHABLE', [502]],
    ['PEER_ANSWER', [304]],
  ])('is %s: %j', async (code, statuses) => {
    const encoded = { 'content-encoding': 'gzip' };
    const { client } = await serving((_, response, n) =>
      response.writeHead(statuses[n] ?? 0, encoded).end(),
    );
    for (const status of statuses) {
      const message = like(status === 401 ? 'none is configured' : '');
      const expected = { code, status, delivered: 'yes', message };
      await expect(client.push([ITEM])).rejects.toMatchObject(expected);
    }
  });

  it.each([
    ['17', 17_000],
    ['Sat, 21 Nov 2026 03:25:30 GMT', 30_000],
    ['Sat, 21 Nov 2026 03:24:00 GMT', 0],
    ['soon', undefined],
  ])('of a busy peer says how long to wait: %s', async (retryAfter, retryAfterMs) => {
    const headers = { date: 'Sat, 21 Nov 2026 03:25:00 GMT', 'retry-after': retryAfter };
    const { client } = await serving((_, response) => response.writeHead(429, headers).end());
    await expect(client.push([ITEM])).rejects.toMatchObject({ code: 'PEER_BUSY', retryAfterMs });
  });
});

it('the peer’s clock dates the start of a push, never too late, if the answer has a date', async () => {
  const clock = new FakeClock(Date.UTC(2030, 0, 1));
  const answer = async (_: unknown, response: ServerResponse) => {
    await clock.advance(4_300);
    response.writeHead(200, { date: 'Sat, 21 Nov 2026 03:25:10 GMT' }).end(ACCEPTED);
  };
  const { client } = await serving(answer, { clock });
  expect((await client.push([ITEM])).peerTime).toBe(Date.UTC(2026, 10, 21, 3, 25, 5));
  const { client: undated } = await raw((socket) => socket.end(http(ACCEPTED)));
  expect(await undated.push([ITEM])).toEqual(OK);
});

it('a ping is answered by any page of the peer, and fails with a peer that fails', async () => {
  const statuses = [200, 401, 404, 500, 429];
  const { server, client } = await serving((_, response, n) =>
    response.writeHead(statuses[n] ?? 0, { server: 'Peer/1' }).end(),
  );
  for (let n = 0; n < 3; n += 1)
    expect(await client.ping()).toEqual({ ms: expect.any(Number), server: 'Peer/1' });
  expect(server.requests[0]).toMatchObject({ method: 'GET', url: '/api/peerdoc.html', body: '' });
  for (const code of ['PEER_FAILED', 'PEER_BUSY'])
    await expect(client.ping()).rejects.toMatchObject({ code });
  expect(client.requests).toEqual({ push: 0, peerdoc: 0, other: 5 });
});

describe('a client', () => {
  it('counts the requests that it sent', async () => {
    const { server, client } = await serving(({ url }, response) =>
      response.end(url.includes('peerdoc') ? '{"url":""}' : ACCEPTED),
    );
    await client.push([ITEM]);
    await client.peerdoc({ url: ITEM.url });
    await client.ping();
    expect(client.requests).toEqual({ push: 1, peerdoc: 1, other: 1 });
    expect(client.pushedBytes).toBe(server.requests[0]?.body.length);
  });

  it('treats 404 as a missing document or search, and other failures as errors', async () => {
    const { client } = await serving((_, response, n) =>
      response.writeHead(n < 3 ? 404 : 500).end(),
    );
    const asks: (() => Promise<unknown>)[] = [
      () => client.peerdoc({ url: ITEM.url }),
      () => client.citation({ url: ITEM.url }),
      () => client.search({ words: 'gulls', limit: 1 }),
    ];
    for (const ask of asks) expect(await ask()).toBeUndefined();
    for (const ask of [...asks, () => client.peerdocs([ITEM.url])])
      await expect(ask()).rejects.toMatchObject({ code: 'PEER_FAILED' });
  });
});
