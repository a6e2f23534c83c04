import { describe, expect, it } from 'vitest';
import { FormReader } from '../../src/embedded/form.js';
import { Site } from '../../src/embedded/markup.js';
import {
  type Body,
  openServer,
  type PeerDeps,
  type PeerServer,
  type ServerTimeouts,
} from '../../src/embedded/server.js';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { afterwards } from '../support/afterwards.js';
import { until } from '../support/wait.js';
import { Connection, send } from './support.js';

/**
 * A server whose only page is made of these pieces; what was made of it, and whether that is over.
 */
async function serve(
  pieces: () => Iterable<string> | AsyncIterable<string>,
  timeouts: Partial<ServerTimeouts> = {},
) {
  const made = { begun: 0, pieces: 0, isOver: false };
  async function* counted(): AsyncGenerator<string> {
    made.begun += 1;
    try {
      for await (const piece of pieces()) {
        made.pieces += 1;
        yield piece;
      }
    } finally {
      made.isOver = true;
    }
  }
  // The page needs no more.
  const site = new Site('', '', '');
  const shared = { clock: systemClock, log: silentLogger };
  const administrator = { password: 'password', passwordFile: '/peer/admin-password' };
  const deps = { administrator, forms: new FormReader(), site, ...shared };
  const body = (): Body => counted();
  const server: PeerServer = await openServer(
    { '/': body },
    { port: 0, timeouts },
    deps as unknown as PeerDeps,
  );
  afterwards('test', () => server.close());
  return { server, made };
}

const GET = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n';

/** A client that asks and reads nothing of the answer. */
function askWithoutReading(server: PeerServer): Connection {
  const connection = new Connection(server, GET);
  connection.socket.pause();
  return connection;
}

describe('an answer that is made while it is sent', () => {
  it('arrives whole, and is not made for HEAD', async () => {
    const { server, made } = await serve(() =>
      Array.from({ length: 1_000 }, (_, n) => (n % 2 ? '' : `${n}\n`)),
    );
    const head = await send(server, '/', { method: 'HEAD' });
    expect([head.status, head.body, made.begun]).toEqual([200, '', 0]);
    const answer = await send(server, '/');
    expect(answer.headers['transfer-encoding']).toBe('chunked');
    expect(answer.body.trim().split('\n')).toHaveLength(500);
  });

  it.each([
    ['is made no faster than it is read, and ended when its client is gone', {}],
    ['is broken off when nobody takes any of it for long', { idle: 100 }],
  ])('%s', async (_, timeouts: Partial<ServerTimeouts>) => {
    function* endless(): Generator<string> {
      for (;;) yield 'x'.repeat(100_000);
    }
    const { server, made } = await serve(endless, timeouts);
    const { socket } = askWithoutReading(server);
    let before = -1;
    await until(async () => {
      const isStill = before === made.pieces && before > 0;
      before = made.pieces;
      await new Promise((resolve) => setTimeout(resolve, 50));
      return isStill;
    }, 'the server has stopped making more');
    expect(made.pieces).toBeLessThan(500);
    if (timeouts.idle === undefined) socket.destroy();
    await until(() => made.isOver, 'the answer ends');
  });

  it('never looks complete if it fails', async () => {
    function* broken(): Generator<string> {
      yield 'begin'.repeat(20_000);
      throw new Error('broken');
    }
    const { server } = await serve(broken);
    await expect(send(server, '/')).rejects.toThrow(/aborted|socket hang up/);
    expect(await new Connection(server, GET).closed).not.toContain('\r\n0\r\n');
  });

  it.each([
    ['while nothing comes of it', ''],
    ['while all of it is taken at once', 'x'.repeat(20_000)],
  ])('lets the event loop run %s', async (_, piece) => {
    let turns = 0;
    function* slow(): Generator<string> {
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
    }
    const { server } = await serve(slow);
    expect((await send(server, '/')).body.endsWith('done')).toBe(true);
    expect(turns).toBeGreaterThan(5);
  });

  it('ends before the server is closed', async () => {
    async function* endless(): AsyncGenerator<string> {
      for (;;) {
        await new Promise((resolve) => setTimeout(resolve, 5));
        yield 'more';
      }
    }
    const { server, made } = await serve(endless, { close: 100 });
    askWithoutReading(server);
    await until(() => made.begun > 0, 'the answer is under way');
    await server.close();
    await until(() => made.isOver, 'nothing more is made');
  });

  it('does not keep its connection open when the server closes meanwhile', async () => {
    let finish = (): void => undefined;
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    async function* patient(): AsyncGenerator<string> {
      yield 'begin';
      await finished;
    }
    const { server, made } = await serve(patient, { close: 60_000 });
    new Connection(server, GET);
    await until(() => made.pieces > 0, 'the answer is under way');
    const closed = server.close();
    finish();
    await closed;
  });
});
