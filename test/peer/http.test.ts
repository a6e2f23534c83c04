import { getEventListeners } from 'node:events';
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { TextSource } from '../../src/peer/form.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/wait.js';
import { ACCEPTED, clientOf, HttpServer, http, ITEM, onRequest, RawServer } from './servers.js';

const OK = { results: [{ ok: true }] };

describe('a peer that is not there', () => {
  it('is unreachable, and nothing was delivered', async () => {
    const server = await RawServer.start(() => {});
    server.stopListening();
    const failed = clientOf(server.url).push([ITEM]);
    await expect(failed).rejects.toMatchObject({
      code: 'PEER_UNREACHABLE',
      exitCode: 4,
      delivered: 'no',
      message: expect.stringMatching(
        /^http:\/\/127\.0\.0\.1:\d+\/api\/push_p\.html cannot be reached: .*ECONNREFUSED/,
      ),
    });
  });

  it('is unreachable where its name is unknown', async () => {
    // No resolver is asked for a label of more than 63 characters.
    const failed = clientOf(`http://${'x'.repeat(64)}.invalid/`).push([ITEM]);
    await expect(failed).rejects.toMatchObject({ code: 'PEER_UNREACHABLE', delivered: 'no' });
  });
});

describe('time limits', () => {
  it('end a connection that does not come to stand', async () => {
    const server = await RawServer.start(() => {});
    const client = clientOf(server.url.replace('http:', 'https:'), {
      timeouts: { connect: 200, headers: 60_000, body: 60_000, total: 600_000 },
    });
    await expect(client.push([ITEM])).rejects.toMatchObject({
      code: 'PEER_TIMEOUT',
      exitCode: 4,
      delivered: 'no',
      message: expect.stringContaining('no connection after 200 ms'),
    });
  });

  it('end a silence after the request; it may have been delivered', async () => {
    const clock = new FakeClock();
    const received: string[] = [];
    const server = await RawServer.start((socket) => onRequest(socket, (request) => received.push(request)));
    const client = clientOf(server.url, {
      clock,
      timeouts: { connect: 5_000, headers: 30_000, body: 60_000, total: 600_000 },
    });
    const failed = expect(client.push([ITEM])).rejects.toMatchObject({
      code: 'PEER_TIMEOUT',
      delivered: 'maybe',
      message: expect.stringContaining('did not give an answer within 30000 ms'),
    });
    await until(() => received.length === 1, 'the request came');
    await clock.advance(30_000);
    await failed;
    await until(() => server.sockets[0]?.destroyed === true, 'the connection was ended');
    expect(clock.waiting).toBe(0);
  });

  it('end a silence in the middle of the answer; the peer had the request', async () => {
    const clock = new FakeClock();
    const server = await RawServer.start((socket) =>
      onRequest(socket, () => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"count"')),
    );
    const client = clientOf(server.url, {
      clock,
      timeouts: { connect: 5_000, headers: 600_000, body: 10_000, total: 600_000 },
    });
    const failed = expect(client.push([ITEM])).rejects.toMatchObject({
      code: 'PEER_TIMEOUT',
      delivered: 'yes',
      status: 200,
      message: expect.stringContaining('the rest of the answer within 10000 ms'),
    });
    await until(() => server.connections === 1, 'connected');
    await until(async () => {
      await clock.advance(500);
      return clock.waiting === 0;
    }, 'given up');
    await failed;
  });

  it('end an answer that drips for ever', async () => {
    const clock = new FakeClock();
    let began = false;
    const server = await RawServer.start((socket) =>
      onRequest(socket, () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n');
        began = true;
      }),
    );
    const client = clientOf(server.url, {
      clock,
      timeouts: { connect: 5_000, headers: 60_000, body: 5_000, total: 20_000 },
    });
    const failed = expect(client.push([ITEM])).rejects.toMatchObject({
      code: 'PEER_TIMEOUT',
      message: expect.stringContaining('a complete answer within 20000 ms'),
    });
    await until(() => began, 'the answer began');
    await until(async () => {
      server.sockets[0]?.write('x');
      await clock.advance(400);
      return clock.waiting === 0;
    }, 'given up');
    await failed;
  });

  it('do not end a slow upload that goes on', async () => {
    const clock = new FakeClock();
    const server = await HttpServer.start((_, response) => response.end(ACCEPTED));
    const client = clientOf(server.url, {
      clock,
      timeouts: { connect: 5_000, headers: 1_000, body: 1_000, total: 600_000 },
    });
    let reads = 0;
    let reading = 0;
    const slow: TextSource = {
      size: 20,
      async *chunks() {
        reads += 1;
        for (let i = 0; i < 20; i += 1) {
          if (reads > 1) {
            reading += 1;
            await clock.sleep(450);
            reading -= 1;
          }
          yield Buffer.from('x');
        }
      },
    };
    let over = false;
    const pushed = client.push([{ ...ITEM, data: slow }]).finally(() => {
      over = true;
    });
    await until(async () => {
      if (reading > 0) await clock.advance(450);
      return over;
    }, 'pushed');
    expect(await pushed).toMatchObject(OK);
    expect(clock.elapsed()).toBe(9_000);
  });
});

describe('a broken connection', () => {
  it('before an answer, on a new connection: not sent again, and possibly delivered', async () => {
    const server = await RawServer.start((socket) => onRequest(socket, () => socket.resetAndDestroy()));
    await expect(clientOf(server.url).push([ITEM])).rejects.toMatchObject({
      code: 'PEER_UNREACHABLE',
      delivered: 'maybe',
      message: expect.stringContaining('without an answer'),
    });
    expect(server.connections).toBe(1);
  });

  it('in the middle of the answer: the peer had the request', async () => {
    const server = await RawServer.start((socket) =>
      onRequest(socket, () => void socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"count":"1"')),
    );
    await expect(clientOf(server.url).push([ITEM])).rejects.toMatchObject({
      code: 'PEER_UNREACHABLE',
      delivered: 'yes',
      status: 200,
      message: expect.stringContaining('in the middle of its answer'),
    });
  });

  it('while the body goes out: nothing was delivered', async () => {
    const server = await RawServer.start((socket) => socket.once('data', () => socket.resetAndDestroy()));
    let reads = 0;
    const endless: TextSource = {
      size: 64 * 1024 * 1024,
      async *chunks() {
        reads += 1;
        for (let i = 0; i < 1024; i += 1) yield Buffer.alloc(64 * 1024, 'x');
      },
    };
    await expect(clientOf(server.url).push([{ ...ITEM, data: endless }])).rejects.toMatchObject({
      code: 'PEER_UNREACHABLE',
      delivered: 'no',
    });
    expect(reads).toBe(2);
  });

  it.each([
    ['reset', (socket: Socket) => socket.resetAndDestroy()],
    ['closed', (socket: Socket) => socket.end()],
    ['closed after the first byte of an answer', (socket: Socket) => socket.end('HTTP/1.1 200')],
  ])(
    'that had been used before, %s by the peer: not sent again, and possibly delivered',
    async (_, close) => {
      const server = await RawServer.start((socket) =>
        onRequest(socket, (_request, n) => {
          if (n === 0) socket.write(http(ACCEPTED));
          else close(socket);
        }),
      );
      const client = clientOf(server.url);
      await client.push([ITEM]);
      await expect(client.push([ITEM])).rejects.toMatchObject({
        code: 'PEER_UNREACHABLE',
        delivered: 'maybe',
      });
      expect(client.requests.push).toBe(2);
      expect(server.connections).toBe(1);
    },
  );
});

describe('connections', () => {
  it('are used again one after the other', async () => {
    const server = await HttpServer.start((_, response) => response.end(ACCEPTED));
    const client = clientOf(server.url);
    for (let i = 0; i < 5; i += 1) await client.push([ITEM]);
    expect(server.connections).toBe(1);
  });

  it('that nobody used for a moment are closed by us, before the peer closes them under a request', async () => {
    const server = await HttpServer.start((_, response) => response.end(ACCEPTED));
    const client = clientOf(server.url);
    await client.push([ITEM]);
    await until(() => server.sockets.size === 0, 'closed');
    expect(await client.push([ITEM])).toMatchObject(OK);
    expect(server.connections).toBe(2);
  });

  it('carry requests side by side', async () => {
    const answers: (() => void)[] = [];
    const server = await HttpServer.start((_, response) => void answers.push(() => response.end(ACCEPTED)));
    const client = clientOf(server.url);
    const pushes = Promise.all([1, 2, 3].map(() => client.push([ITEM])));
    await until(() => answers.length === 3, 'three requests at a time');
    for (const answer of answers) answer();
    expect(await pushes).toHaveLength(3);
  });

  it('are ended by close, and what is under way with them', async () => {
    const server = await HttpServer.start(() => {});
    const client = clientOf(server.url);
    const failed = expect(client.push([ITEM])).rejects.toMatchObject({
      code: 'PEER_ABORTED',
      delivered: 'maybe',
    });
    await until(() => server.requests.length === 1, 'asked');
    await client.close();
    await failed;
    await until(() => server.sockets.size === 0, 'no connection is left');
    await expect(client.push([ITEM])).rejects.toMatchObject({ code: 'PEER_ABORTED', delivered: 'no' });
    expect(server.connections).toBe(1);
  });
});

describe('a request', () => {
  it('that is called off ends at once, and its connection with it', async () => {
    const server = await HttpServer.start(() => {});
    const client = clientOf(server.url);
    const controller = new AbortController();
    const failed = expect(client.push([ITEM], { signal: controller.signal })).rejects.toMatchObject({
      code: 'PEER_ABORTED',
      delivered: 'maybe',
      cause: 'no more',
    });
    await until(() => server.requests.length === 1, 'asked');
    controller.abort('no more');
    await failed;
    await until(() => server.sockets.size === 0, 'no connection is left');
  });

  it('that is called off before it begins is not sent', async () => {
    const server = await HttpServer.start((_, response) => response.end(ACCEPTED));
    const client = clientOf(server.url);
    const failed = client.push([ITEM], { signal: AbortSignal.abort() });
    await expect(failed).rejects.toMatchObject({ code: 'PEER_ABORTED', delivered: 'no' });
    expect(server.connections).toBe(0);
    expect(client.requests.push).toBe(0);
  });

  it.each([
    ['is called off', (_: RawServer, controller: AbortController) => controller.abort()],
    ['loses its connection', (server: RawServer) => server.sockets[0]?.resetAndDestroy()],
  ])('that %s while the peer takes nothing more closes the text it was reading', async (_, stop) => {
    const server = await RawServer.start((socket) => socket.pause());
    let given = 0;
    let open = 0;
    const endless: TextSource = {
      size: 64 * 1024 * 1024,
      async *chunks() {
        open += 1;
        try {
          for (let i = 0; i < 1024; i += 1) {
            given = i;
            yield Buffer.alloc(64 * 1024, 'x');
          }
        } finally {
          open -= 1;
        }
      },
    };
    const controller = new AbortController();
    const failed = expect(
      clientOf(server.url).push([{ ...ITEM, data: endless }], { signal: controller.signal }),
    ).rejects.toMatchObject({ delivered: 'no' });
    let before = -1;
    await until(async () => {
      const stands = open === 1 && server.connections === 1 && given === before;
      before = given;
      return stands;
    }, 'the peer takes no more');
    stop(server, controller);
    await failed;
    await until(() => open === 0, 'the text was closed');
  });

  it('leaves nothing behind on a signal that it shares with many', async () => {
    const server = await HttpServer.start((_, response) => response.end(ACCEPTED));
    const client = clientOf(server.url, { credentials: { username: 'admin', password: 'x' } });
    const { signal } = new AbortController();
    for (let i = 0; i < 3; i += 1) await client.push([ITEM], { signal });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('whose text changes on the way is never completed', async () => {
    const complete: string[] = [];
    const server = await RawServer.start((socket) => onRequest(socket, (request) => complete.push(request)));
    let reads = 0;
    const changing: TextSource = {
      size: 4,
      async *chunks() {
        reads += 1;
        yield Buffer.from(reads === 1 ? 'four' : 'fo');
      },
    };
    const failed = clientOf(server.url).push([ITEM, { ...ITEM, data: changing }]);
    await expect(failed).rejects.toMatchObject({ code: 'PEER_SOURCE', item: 1, delivered: 'no' });
    await until(() => server.sockets.every((socket) => socket.destroyed), 'the connection was ended');
    expect(complete).toEqual([]);
  });
});

describe('an answer', () => {
  async function answering(text: string, options: { maxAnswer?: number } = {}): Promise<unknown> {
    const server = await RawServer.start((socket) => onRequest(socket, () => void socket.end(text)));
    return clientOf(server.url, options)
      .push([ITEM])
      .catch((error: unknown) => error);
  }

  it('of more bytes than allowed is refused by what it announces', async () => {
    expect(await answering(http('x'.repeat(2000)), { maxAnswer: 1000 })).toMatchObject({
      code: 'PEER_ANSWER_TOO_LARGE',
      delivered: 'yes',
      message: expect.stringContaining('more than 1000 bytes'),
    });
  });

  it('of more bytes than allowed is refused while it comes', async () => {
    const endless = `HTTP/1.1 200 OK\r\n\r\n${'{"count":"1"'.repeat(1000)}`;
    expect(await answering(endless, { maxAnswer: 1000 })).toMatchObject({
      code: 'PEER_ANSWER_TOO_LARGE',
      firstBytes: expect.stringContaining('{"count":"1"'),
    });
  });

  it('that fails at great length is a failure all the same', async () => {
    const long = http('Stack '.repeat(1000), 'HTTP/1.1 500 Server Error');
    expect(await answering(long, { maxAnswer: 1000 })).toMatchObject({ code: 'PEER_FAILED', status: 500 });
  });

  it('that is not HTTP is shown, with nothing that could move a cursor', async () => {
    expect(await answering('\x1b[2JSSH-2.0-OpenSSH_9.2\r\n')).toMatchObject({
      code: 'PEER_ANSWER',
      firstBytes: expect.stringMatching(/^\\u\{1b\}\[2JSSH-2\.0-OpenSSH_9\.2/),
    });
  });

  it('that redirects is shown and not followed, and gets no credentials', async () => {
    const elsewhere = await HttpServer.start((_, response) => response.end(ACCEPTED));
    const server = await HttpServer.start((_, response) => {
      response.writeHead(302, { location: `${elsewhere.url}/api/push_p.html` }).end();
    });
    const client = clientOf(server.url, { credentials: { username: 'admin', password: 'secret' } });
    await expect(client.push([ITEM])).rejects.toMatchObject({
      code: 'PEER_ANSWER',
      status: 302,
      message: expect.stringContaining(`a redirect to ${elsewhere.url}/api/push_p.html`),
    });
    expect(elsewhere.connections).toBe(0);
  });
});

describe('a status', () => {
  it.each([
    [400, 'PEER_REFUSED'],
    [403, 'PEER_AUTH'],
    [404, 'PEER_REFUSED'],
    [408, 'PEER_TIMEOUT'],
    [413, 'PEER_TOO_LARGE'],
    [429, 'PEER_BUSY'],
    [500, 'PEER_FAILED'],
    [502, 'PEER_UNREACHABLE'],
    [503, 'PEER_BUSY'],
    [504, 'PEER_TIMEOUT'],
    [304, 'PEER_ANSWER'],
  ])('of %i is %s', async (status, code) => {
    const server = await HttpServer.start((_, response) => response.writeHead(status).end());
    await expect(clientOf(server.url).push([ITEM])).rejects.toMatchObject({ code, status, delivered: 'yes' });
  });

  it('of 401 without credentials says that some are needed', async () => {
    const server = await HttpServer.start((_, response) =>
      response.writeHead(401, { 'www-authenticate': 'Basic realm="peer"' }).end(),
    );
    await expect(clientOf(server.url).push([ITEM])).rejects.toMatchObject({
      code: 'PEER_AUTH',
      message: expect.stringContaining('none is configured'),
    });
  });

  it.each([
    ['17', 17_000],
    ['Sat, 21 Nov 2026 03:25:30 GMT', 30_000],
    ['Sat, 21 Nov 2026 03:24:00 GMT', 0],
    ['soon', undefined],
    [undefined, undefined],
  ])('of a busy peer says how long to wait: %s', async (retryAfter, ms) => {
    const server = await HttpServer.start((_, response) => {
      if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter);
      response.writeHead(429, { date: 'Sat, 21 Nov 2026 03:25:00 GMT' }).end();
    });
    await expect(clientOf(server.url).push([ITEM])).rejects.toMatchObject({
      code: 'PEER_BUSY',
      retryAfterMs: ms,
    });
  });
});

describe('the peer’s clock', () => {
  it('dates the beginning of a push, never too late', async () => {
    const clock = new FakeClock(Date.UTC(2030, 0, 1));
    const server = await HttpServer.start(async (_, response) => {
      await clock.advance(4_300);
      response.writeHead(200, { date: 'Sat, 21 Nov 2026 03:25:10 GMT' }).end(ACCEPTED);
    });
    const answer = await clientOf(server.url, { clock }).push([ITEM]);
    expect(answer.peerTime).toBe(Date.UTC(2026, 10, 21, 3, 25, 5));
  });

  it('is unknown where answers carry no date', async () => {
    const server = await RawServer.start((socket) =>
      onRequest(socket, () => void socket.end(http(ACCEPTED))),
    );
    expect(await clientOf(server.url).push([ITEM])).toEqual(OK);
  });
});
