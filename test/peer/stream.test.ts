import { randomBytes } from 'node:crypto';
import { getEventListeners } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ShareStream } from '../../src/peer/share.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/wait.js';
import { CREDENTIALS, DigestServer } from './auth-server.js';
import { ACCEPTED, clientOf, HttpServer, http, ITEM, onRequest, RawServer } from './servers.js';

const QUERY = { data: 'x' };
const MIB = 1024 * 1024;

/** Reads to the end. */
async function textOf({ chunks }: ShareStream): Promise<string> {
  const read: Uint8Array[] = [];
  for await (const chunk of chunks) read.push(chunk);
  return Buffer.concat(read).toString();
}

/** Takes one piece, and lets the peer know no more. */
async function firstOf({ chunks }: ShareStream): Promise<string> {
  for await (const chunk of chunks) return Buffer.from(chunk).toString();
  return '';
}

/** A server of bytes that answers each request with these, and leaves the connection open. */
async function saying(...pieces: readonly string[]): Promise<RawServer> {
  return await RawServer.start((socket) =>
    onRequest(socket, () => {
      for (const piece of pieces) socket.write(piece);
    }),
  );
}

/** Writes for as long as the client takes it; says how many bytes that were. */
function endlessly(response: ServerResponse, written: (bytes: number) => void): void {
  const block = Buffer.alloc(64 * 1024, 'x');
  const go = (): void => {
    while (!response.destroyed) {
      const goesOn = response.write(block);
      written(block.length);
      if (!goesOn) {
        response.once('drain', go);
        return;
      }
    }
  };
  go();
}

/** The value of a number that grows, once it stands still. */
async function stillStanding(value: () => number): Promise<number> {
  let before = -1;
  let rounds = 0;
  await until(() => {
    rounds = value() === before && before > 0 ? rounds + 1 : 0;
    before = value();
    return rounds === 10;
  }, 'it stands still');
  return before;
}

describe('an answer that is read as it comes', () => {
  it('is with the reader before the peer has ended it', async () => {
    const open: ServerResponse[] = [];
    const server = await HttpServer.start((_, response) => {
      response.write('one,');
      open.push(response);
    });
    const read: string[] = [];
    await clientOf(server.url).share(QUERY, async ({ chunks }) => {
      for await (const chunk of chunks) {
        read.push(Buffer.from(chunk).toString());
        if (read.length === 1) open[0]?.write('two,');
        else open[0]?.end();
      }
    });
    expect(read).toEqual(['one,', 'two,']);
  });

  it('gives what its reader makes of it, and leaves a connection that is used again', async () => {
    const server = await HttpServer.start((_, response) => response.end('content'));
    const client = clientOf(server.url);
    for (let i = 0; i < 3; i += 1) expect(await client.share(QUERY, textOf)).toBe('content');
    expect(server.connections).toBe(1);
  });

  it.each([
    ['of a known length', (body: Buffer) => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`],
    ['that ends with its connection', () => 'HTTP/1.1 200 OK\r\n\r\n'],
  ])('is what the peer sent, however it is cut and however slowly it is read: %s', async (_, head) => {
    const lengths = fc.array(fc.oneof(fc.nat(10), fc.nat(300_000)), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(lengths, fc.integer({ min: 1, max: 5 }), async (some, pause) => {
        const parts = some.map((length) => randomBytes(length));
        const body = Buffer.concat(parts);
        const server = await RawServer.start((socket) =>
          onRequest(socket, () => {
            socket.write(head(body));
            for (const part of parts) socket.write(part);
            socket.end();
          }),
        );
        const read: Uint8Array[] = [];
        await clientOf(server.url).share(
          QUERY,
          async ({ chunks }) => {
            for await (const chunk of chunks) {
              read.push(chunk);
              if (read.length % pause === 0) await new Promise((resolve) => setImmediate(resolve));
            }
          },
          { maxBytes: 10 * MIB },
        );
        expect(Buffer.concat(read).equals(body)).toBe(true);
      }),
      { numRuns: 20 },
    );
  });

  it('of the last piece, read slowly, ends well although the peer has closed the connection', async () => {
    const server = await RawServer.start((socket) =>
      onRequest(socket, () => void socket.end(`HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(400_000)}`)),
    );
    let length = 0;
    await clientOf(server.url).share(QUERY, async ({ chunks }) => {
      for await (const chunk of chunks) {
        length += chunk.length;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    });
    expect(length).toBe(400_000);
  });

  it('cannot be read any more once its reader is through', async () => {
    const server = await HttpServer.start((_, response) => void response.write('beginning'));
    const kept = await clientOf(server.url).share(QUERY, async (share) => share);
    await expect(kept && textOf(kept)).rejects.toMatchObject({ code: 'PEER_ABORTED' });
  });
});

describe('an answer that is not whole', () => {
  const cut = (head: string, ...more: readonly string[]) => [`HTTP/1.1 200 OK\r\n${head}\r\n`, ...more];

  it.each([
    ['its length is not met', cut('Content-Length: 100\r\n', 'half of it'), (s: Socket) => s.end()],
    [
      'its last chunk is missing',
      cut('Transfer-Encoding: chunked\r\n', 'a\r\nhalf of it\r\n'),
      (s: Socket) => s.end(),
    ],
    ['a chunk is cut', cut('Transfer-Encoding: chunked\r\n', 'ff\r\nhalf of it'), (s: Socket) => s.end()],
    [
      'its last chunk is missing where the connection ends anyway',
      cut('Connection: close\r\nTransfer-Encoding: chunked\r\n', 'a\r\nhalf of it\r\n'),
      (s: Socket) => s.end(),
    ],
    [
      'its length is not met where the connection ends anyway',
      cut('Connection: close\r\nContent-Length: 100\r\n', 'half of it'),
      (s: Socket) => s.end(),
    ],
    ['it is reset', cut('Content-Length: 100\r\n', 'half of it'), (s: Socket) => s.resetAndDestroy()],
    [
      'it is reset where only the end of the connection ends it',
      cut('Connection: close\r\n', 'half of it'),
      (s: Socket) => s.resetAndDestroy(),
    ],
    [
      'its chunks are none',
      cut('Transfer-Encoding: chunked\r\n', 'a\r\nhalf of it\r\nnonsense\r\n'),
      (_: Socket) => {},
    ],
  ])('never just ends: %s', async (_, pieces, end) => {
    const server = await saying(...pieces);
    const read: string[] = [];
    const failed = clientOf(server.url).share(QUERY, async ({ chunks }) => {
      for await (const chunk of chunks) {
        read.push(Buffer.from(chunk).toString());
        for (const socket of server.sockets) end(socket);
      }
      return 'ended';
    });
    await expect(failed).rejects.toMatchObject({
      code: 'PEER_ANSWER',
      status: 200,
      delivered: 'yes',
      firstBytes: expect.stringContaining('half of it'),
    });
    expect(read).toEqual(['half of it']);
    await until(() => server.sockets.every((socket) => socket.destroyed), 'the connection was ended');
  });

  it('is not waited for beyond its limit between two pieces', async () => {
    const clock = new FakeClock();
    const server = await saying('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf');
    const client = clientOf(server.url, {
      clock,
      timeouts: { connect: 5_000, headers: 600_000, body: 10_000, total: 600_000 },
    });
    let read = '';
    const failed = expect(
      client.share(QUERY, async ({ chunks }) => {
        for await (const chunk of chunks) read += String(chunk);
      }),
    ).rejects.toMatchObject({ code: 'PEER_TIMEOUT', status: 200, delivered: 'yes' });
    await until(() => read !== '', 'half was read');
    await clock.advance(10_000);
    await failed;
    expect(clock.waiting).toBe(0);
  });

  it('may take 12 times as long as one that is not streamed, and no longer', async () => {
    const clock = new FakeClock();
    const server = await saying('HTTP/1.1 200 OK\r\n\r\nx');
    const client = clientOf(server.url, {
      clock,
      timeouts: { connect: 5_000, headers: 60_000, body: 30_000, total: 20_000 },
    });
    let read = 0;
    const failed = expect(
      client.share(QUERY, async ({ chunks }) => {
        for await (const chunk of chunks) read += chunk.length;
      }),
    ).rejects.toMatchObject({
      code: 'PEER_TIMEOUT',
      message: expect.stringContaining('a complete answer within 240000 ms'),
    });
    for (let pieces = 1; pieces <= 12; pieces += 1) {
      await until(() => read === pieces, 'it was read');
      await clock.advance(20_000);
      server.sockets[0]?.write('x');
    }
    await failed;
    expect(clock.waiting).toBe(0);
  });

  it('is refused by what it announces, before anybody reads it', async () => {
    const server = await saying('HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n');
    let asked = false;
    const failed = clientOf(server.url).share(
      QUERY,
      async () => {
        asked = true;
      },
      { maxBytes: 1999 },
    );
    await expect(failed).rejects.toMatchObject({
      code: 'PEER_ANSWER_TOO_LARGE',
      message: expect.stringContaining('more than 1999 bytes'),
    });
    expect(asked).toBe(false);
  });

  it('is refused while it comes, where it does not end', async () => {
    const server = await HttpServer.start((_, response) => endlessly(response, () => {}));
    let read = 0;
    const failed = clientOf(server.url).share(
      QUERY,
      async ({ chunks }) => {
        for await (const chunk of chunks) read += chunk.length;
      },
      { maxBytes: 3 * MIB },
    );
    await expect(failed).rejects.toMatchObject({
      code: 'PEER_ANSWER_TOO_LARGE',
      firstBytes: expect.stringMatching(/^x+/),
    });
    expect(read).toBeLessThanOrEqual(3 * MIB);
    await until(() => server.sockets.size === 0, 'the connection was ended');
  });

  it('is refused at the limit of all answers, unless another is given', async () => {
    const server = await HttpServer.start((_, response) => response.end('x'.repeat(2000)));
    const client = clientOf(server.url, { maxAnswer: 1000 });
    await expect(client.share(QUERY, textOf)).rejects.toMatchObject({ code: 'PEER_ANSWER_TOO_LARGE' });
    expect(await client.share(QUERY, textOf, { maxBytes: 2000 })).toHaveLength(2000);
  });

  it('is one in an encoding that nobody asked for', async () => {
    const server = await HttpServer.start((_, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end('\x1f\x8b'),
    );
    const client = clientOf(server.url);
    const failure = { code: 'PEER_ANSWER', message: expect.stringContaining('(gzip)') };
    await expect(client.share(QUERY, textOf)).rejects.toMatchObject(failure);
    await expect(client.peerdoc({ url: ITEM.url })).rejects.toMatchObject(failure);
    expect(server.requests.map(({ headers }) => headers['accept-encoding'])).toEqual([undefined, undefined]);
  });
});

describe('a reader', () => {
  it('who is slow makes the peer wait, has all the time, and is given the rest afterwards', async () => {
    const clock = new FakeClock();
    const size = 64 * MIB;
    let sent = 0;
    const server = await HttpServer.start((_, response) => {
      const block = Buffer.alloc(64 * 1024, 'x');
      const go = (): void => {
        while (sent < size) {
          sent += block.length;
          if (!response.write(block)) {
            response.once('drain', go);
            return;
          }
        }
        response.end();
      };
      go();
    });
    const client = clientOf(server.url, {
      clock,
      timeouts: { connect: 5_000, headers: 5_000, body: 5_000, total: 600_000 },
    });
    let read = 0;
    let held = 0;
    await client.share(
      QUERY,
      async ({ chunks }) => {
        for await (const chunk of chunks) {
          read += chunk.length;
          if (held > 0) continue;
          held = await stillStanding(() => sent);
          await clock.advance(60_000);
        }
      },
      { maxBytes: size },
    );
    expect(read).toBe(size);
    expect(held).toBeLessThan(size / 2);
    expect(await client.share(QUERY, textOf)).toBe('');
    expect(server.connections).toBe(1);
    expect(clock.waiting).toBe(0);
  });

  it.each([
    ['stops', firstOf],
    [
      'does not begin',
      async () => {
        await new Promise((resolve) => setImmediate(resolve));
        return 'x';
      },
    ],
  ])('who %s is not sent the rest', async (_, reader) => {
    const server = await HttpServer.start((_request, response) => endlessly(response, () => {}));
    const client = clientOf(server.url);
    expect(await client.share(QUERY, reader, { maxBytes: 1e12 })).toMatch(/^x+$/);
    await until(() => server.sockets.size === 0, 'the connection was ended');
  });

  it('who fails is not sent the rest, and his error is told', async () => {
    const server = await HttpServer.start((_, response) => endlessly(response, () => {}));
    const failure = new Error('the disk is full');
    const failed = clientOf(server.url).share(
      QUERY,
      async ({ chunks }) => {
        for await (const _ of chunks) throw failure;
      },
      { maxBytes: 1e12 },
    );
    await expect(failed).rejects.toBe(failure);
    await until(() => server.sockets.size === 0, 'the connection was ended');
  });

  it.each([
    ['is called off', (controller: AbortController) => controller.abort('no more')],
    ['loses the client', (_: AbortController, client: { close(): Promise<void> }) => void client.close()],
  ])('who %s in the middle is told at once', async (_, stop) => {
    const server = await HttpServer.start((_request, response) => void response.write('beginning'));
    const client = clientOf(server.url);
    const controller = new AbortController();
    const { signal } = controller;
    const failed = client.share(
      QUERY,
      async ({ chunks }) => {
        for await (const _chunk of chunks) stop(controller, client);
      },
      { signal },
    );
    await expect(failed).rejects.toMatchObject({ code: 'PEER_ABORTED', delivered: 'yes' });
    await until(() => server.sockets.size === 0, 'the connection was ended');
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('who is called off when all has come already leaves no broken connection behind', async () => {
    const server = await HttpServer.start((_, response) => {
      response.write('one,');
      setTimeout(() => response.end('two'), 20);
    });
    const client = clientOf(server.url);
    const controller = new AbortController();
    const failed = client.share(
      QUERY,
      async ({ chunks }) => {
        for await (const _chunk of chunks) {
          await new Promise((resolve) => setTimeout(resolve, 100));
          controller.abort();
        }
      },
      { signal: controller.signal },
    );
    await expect(failed).rejects.toMatchObject({ code: 'PEER_ABORTED' });
    expect(await client.share(QUERY, textOf)).toBe('one,two');
  });
});

describe('a request whose answer is read as it comes', () => {
  it('is sent again with what the peer asks for, and only the answer is handed over', async () => {
    const server = await DigestServer.start();
    const client = clientOf(server.url, { credentials: CREDENTIALS });
    const read: string[] = [];
    for (let i = 0; i < 2; i += 1)
      await client.share(QUERY, async (share) => {
        read.push(await textOf(share));
      });
    expect(read).toEqual([ACCEPTED, ACCEPTED]);
    expect(server.log).toEqual(['POST -', 'POST 1', 'POST 2']);
    expect(server.http.bodies).toEqual(['data=x', 'data=x', 'data=x']);
    expect(client.requests).toEqual({ push: 0, peerdoc: 0, other: 3 });
  });

  it('is refused like any other', async () => {
    const server = await DigestServer.start();
    const wrong = clientOf(server.url, { credentials: { username: 'admin', password: 'x' } });
    await expect(wrong.share(QUERY, textOf)).rejects.toMatchObject({ code: 'PEER_AUTH', status: 401 });
  });

  it.each([
    [403, 'PEER_AUTH'],
    [429, 'PEER_BUSY'],
    [500, 'PEER_FAILED'],
    [302, 'PEER_ANSWER'],
  ])('fails by its status: %i', async (status, code) => {
    const server = await HttpServer.start((_, response) => response.writeHead(status).end('not for you'));
    await expect(clientOf(server.url).share(QUERY, textOf)).rejects.toMatchObject({ code, status });
  });

  it('fails by its status at whatever length', async () => {
    const server = await HttpServer.start((_, response) => {
      response.writeHead(500);
      endlessly(response, () => {});
    });
    const failed = clientOf(server.url).share(QUERY, textOf, { maxBytes: 1e12 });
    await expect(failed).rejects.toMatchObject({
      code: 'PEER_FAILED',
      firstBytes: expect.stringMatching(/^x/),
    });
    await until(() => server.sockets.size === 0, 'the connection was ended');
  });

  it('is not sent again after the head of an answer', async () => {
    const server = await RawServer.start((socket, n) =>
      onRequest(socket, (_, k) => {
        if (n === 0 && k === 1) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n');
        else socket.write(http(`answer ${n}`));
      }),
    );
    const client = clientOf(server.url);
    expect(await client.share(QUERY, textOf)).toBe('answer 0');
    await expect(client.share(QUERY, textOf)).rejects.toMatchObject({ code: 'PEER_ANSWER' });
    expect(server.connections).toBe(1);
  });
});
