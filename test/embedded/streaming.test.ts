import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { Administrator } from '../../src/embedded/access.js';
import { FormReader } from '../../src/embedded/form.js';
import {
  type Body,
  openServer,
  type PeerDeps,
  type PeerServer,
  type ServerTimeouts,
} from '../../src/embedded/server.js';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { until } from '../support/wait.js';
import { rawRequest, send } from './support.js';

const servers: PeerServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

async function serve(body: () => Body, timeouts: Partial<ServerTimeouts> = {}): Promise<PeerServer> {
  const server = await openServer(
    { '/': body },
    { port: 0, requireAuthEverywhere: false, timeouts },
    // Its only page needs no more.
    {
      administrator: new Administrator('password', systemClock),
      forms: new FormReader(),
      clock: systemClock,
      log: silentLogger,
    } as Partial<PeerDeps> as PeerDeps,
  );
  servers.push(server);
  return server;
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
  it('comes whole, and nothing of it is made for HEAD', async () => {
    let made = 0;
    const peer = await serve(() =>
      (function* () {
        made += 1;
        for (let n = 0; n < 1_000; n += 1) yield n % 2 === 0 ? `${n}\n` : '';
      })(),
    );
    const head = await send(peer, '/', { method: 'HEAD' });
    expect([head.status, head.body, made]).toEqual([200, '', 0]);
    const answer = await send(peer, '/');
    expect(answer.headers['transfer-encoding']).toBe('chunked');
    expect(answer.body.trim().split('\n')).toHaveLength(500);
  });

  it.each([
    ['is made no faster than it is read, and ended when its client is gone', {}],
    ['is broken off when nobody takes any of it for long', { idle: 100 }],
  ])('%s', async (_, timeouts: Partial<ServerTimeouts>) => {
    let made = 0;
    let ended = false;
    const { url } = await serve(
      () =>
        (function* () {
          try {
            for (;;) {
              made += 1;
              yield 'x'.repeat(100_000);
            }
          } finally {
            ended = true;
          }
        })(),
      timeouts,
    );
    const socket = await askWithoutReading(url);
    let before = -1;
    await until(async () => {
      const still = before === made && made > 0;
      before = made;
      await new Promise((resolve) => setTimeout(resolve, 50));
      return still;
    }, 'the server has stopped making more');
    expect(made).toBeLessThan(500);
    if (timeouts.idle === undefined) socket.destroy();
    await until(() => ended, 'the answer ends');
    socket.destroy();
  });

  it('never looks whole when it fails', async () => {
    const peer = await serve(() =>
      (function* () {
        yield 'begin'.repeat(20_000);
        throw new Error('broken');
      })(),
    );
    await expect(send(peer, '/')).rejects.toThrow(/aborted|socket hang up/);
    const raw = await rawRequest(peer, 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    expect(raw).not.toContain('\r\n0\r\n');
  });

  it.each([
    ['while nothing comes of it', ''],
    ['while all of it is taken at once', 'x'.repeat(20_000)],
  ])('lets others have their turn %s', async (_, piece) => {
    let turns = 0;
    const peer = await serve(() =>
      (function* () {
        const timer = setInterval(() => {
          turns += 1;
        }, 1);
        for (let pieces = 0; pieces < 60; pieces += 1) {
          const made = performance.now() + 3;
          while (performance.now() < made);
          yield piece;
        }
        clearInterval(timer);
        yield 'done';
      })(),
    );
    expect((await send(peer, '/')).body.endsWith('done')).toBe(true);
    expect(turns).toBeGreaterThan(5);
  });

  it('is at its end before the server is closed', async () => {
    let isAsked = false;
    let ended = false;
    const server = await serve(
      () =>
        (async function* () {
          isAsked = true;
          try {
            for (;;) {
              await new Promise((resolve) => setTimeout(resolve, 5));
              yield 'more';
            }
          } finally {
            ended = true;
          }
        })(),
      { close: 100 },
    );
    const socket = await askWithoutReading(server.url);
    await until(() => isAsked, 'the answer is under way');
    await server.close();
    await until(() => ended, 'nothing more is made');
    socket.destroy();
  });

  it('keeps nobody waiting for the connection it came by, when the server closes meanwhile', async () => {
    let finish = (): void => undefined;
    let isAsked = false;
    const server = await serve(
      () =>
        (async function* () {
          isAsked = true;
          yield 'begin';
          await new Promise<void>((resolve) => {
            finish = resolve;
          });
        })(),
      { close: 60_000 },
    );
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    socket.resume().write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await until(() => isAsked, 'the answer is under way');
    const closed = server.close();
    finish();
    await closed;
    socket.destroy();
  });
});
