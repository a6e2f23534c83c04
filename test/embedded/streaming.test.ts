import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { Administrator } from '../../src/embedded/administrator.js';
import { type Answer, prefersJson, type StreamedBody } from '../../src/embedded/answer.js';
import { PeerServer, type ServerTimeouts } from '../../src/embedded/server.js';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { until } from '../support/wait.js';
import { rawRequest, send } from './support.js';

const servers: PeerServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

async function serve(
  body: StreamedBody,
  timeouts: Partial<ServerTimeouts> = {},
): Promise<{ readonly url: string; readonly server: PeerServer }> {
  const answer: Answer = { status: 200, type: 'text/plain', body };
  const limits = { body: 1_000, fields: 5 };
  const server = new PeerServer({
    host: '127.0.0.1',
    port: 0,
    routes: new Map([
      ['/', { form: 'html' as const, effect: 'reads' as const, limits, handle: () => answer }],
    ]),
    administrator: new Administrator('password', systemClock),
    requireAuthEverywhere: false,
    bodyBudget: 1_000,
    clock: systemClock,
    log: silentLogger,
    timeouts,
  });
  const { url } = await server.listen();
  servers.push(server);
  return { url, server };
}

/** Opens a connection that asks and never reads. */
function askWithoutReading(url: string): Promise<ReturnType<typeof connect>> {
  const { port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), '127.0.0.1', () => {
      socket.pause();
      socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n', () => resolve(socket));
    });
    socket.on('error', () => undefined);
  });
}

describe('an answer that is made while it is sent', () => {
  it('comes whole, and is ended once', async () => {
    let ended = 0;
    const body: StreamedBody = {
      chunks: () => Array.from({ length: 1_000 }, (_, n) => (n % 2 === 0 ? `${n}\n` : '')),
      end: () => {
        ended += 1;
      },
    };
    const answer = await send(await serve(body), '/');
    expect(answer.headers['transfer-encoding']).toBe('chunked');
    expect(answer.body.trim().split('\n')).toHaveLength(500);
    expect(ended).toBe(1);
  });

  it('tells its size where it is known, also for HEAD, which makes nothing of it', async () => {
    let asked = 0;
    let ended = 0;
    const body: StreamedBody = {
      size: 5,
      chunks: () => {
        asked += 1;
        return [Buffer.from('five!')];
      },
      end: () => {
        ended += 1;
      },
    };
    const peer = await serve(body);
    const head = await send(peer, '/', { method: 'HEAD' });
    expect([head.headers['content-length'], head.body, asked, ended]).toEqual(['5', '', 0, 1]);
    expect((await send(peer, '/')).body).toBe('five!');
  });

  it('is made no faster than it is read', async () => {
    let made = 0;
    let ended = false;
    const body: StreamedBody = {
      *chunks() {
        for (;;) {
          made += 1;
          yield Buffer.alloc(100_000);
        }
      },
      end: () => {
        ended = true;
      },
    };
    const socket = await askWithoutReading((await serve(body)).url);
    let before = -1;
    await until(async () => {
      const still = before === made && made > 0;
      before = made;
      await new Promise((resolve) => setTimeout(resolve, 50));
      return still;
    }, 'the server has stopped making more');
    expect(made).toBeLessThan(500);
    socket.destroy();
    await until(() => ended, 'the answer ends when its client is gone');
  });

  it('is broken off when nobody takes any of it for long', async () => {
    let ended = false;
    const body: StreamedBody = {
      *chunks() {
        for (;;) yield Buffer.alloc(100_000);
      },
      end: () => {
        ended = true;
      },
    };
    const socket = await askWithoutReading((await serve(body, { idle: 100 })).url);
    await until(() => ended, 'the server gives up');
    socket.destroy();
  });

  it.each([
    ['fails', undefined],
    ['is shorter than it said', 100],
    ['is longer than it said', 3],
  ])('never looks whole when it %s', async (_, size) => {
    const body: StreamedBody = {
      ...(size === undefined ? {} : { size }),
      *chunks() {
        yield 'begin';
        if (size === undefined) throw new Error('broken');
      },
    };
    const peer = await serve(body);
    await expect(send(peer, '/')).rejects.toThrow(/aborted|socket hang up/);
    if (size === undefined)
      expect(await rawRequest(peer, 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')).not.toContain('\r\n0\r\n');
  });

  it.each([
    ['while nothing comes of it', ''],
    ['while all of it is taken at once', 'x'.repeat(20_000)],
  ])('lets others have their turn %s', async (_, piece) => {
    let turns = 0;
    let seen = 0;
    const body: StreamedBody = {
      *chunks() {
        const timer = setInterval(() => {
          turns += 1;
        }, 1);
        for (let pieces = 0; pieces < 60; pieces += 1) {
          const made = performance.now() + 3;
          while (performance.now() < made);
          yield piece;
        }
        clearInterval(timer);
        seen = turns;
        yield 'done';
      },
    };
    expect((await send(await serve(body), '/')).body.endsWith('done')).toBe(true);
    expect(seen).toBeGreaterThan(5);
  });

  it('is at its end before the server is closed', async () => {
    let ended = false;
    const body: StreamedBody = {
      async *chunks() {
        for (;;) {
          await new Promise((resolve) => setTimeout(resolve, 5));
          yield 'more';
        }
      },
      end: () => {
        ended = true;
      },
    };
    const { url, server } = await serve(body, { close: 100 });
    const socket = await askWithoutReading(url);
    await server.close();
    expect(ended).toBe(true);
    socket.destroy();
  });

  it('keeps nobody waiting for the connection it came by, when the server closes meanwhile', async () => {
    let finish = (): void => undefined;
    let isAsked = false;
    const body: StreamedBody = {
      async *chunks() {
        isAsked = true;
        yield 'begin';
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
      },
    };
    const { url, server } = await serve(body, { close: 60_000 });
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.resume().write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await until(() => isAsked, 'the answer is under way');
    const closed = server.close();
    finish();
    await closed;
    socket.destroy();
  });
});

describe('a page is asked for as JSON', () => {
  it.each([
    'application/json',
    'application/json, */*;q=0.1',
    'application/json, text/plain, */*',
    'application/json, text/html',
  ])('by %s', (accept) => expect(prefersJson(accept)).toBe(true));

  it.each([
    undefined,
    '',
    '*/*',
    'application/*',
    'text/html, application/json',
    'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  ])('but not by %s', (accept) => expect(prefersJson(accept)).toBe(false));
});
