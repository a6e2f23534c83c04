import { type AddressInfo, connect, type Socket } from 'node:net';
import { fastify } from 'fastify';
import { describe, expect, it } from 'vitest';
import { apiRoutes, type PageDeps } from '../../src/page/api.js';
import { LiveFeed, type LiveLine } from '../../src/report/answers.js';
import type { Live, StatusReport } from '../../src/report/status.js';
import { pendingRecord } from '../state/records.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/wait.js';
import { PageAtWork } from './page-at-work.js';

/** What came on one connection that follows, as a browser would read it. */
class Following {
  text = '';
  readonly #socket: Socket;
  isClosed = false;

  /** @param times how often it is asked for, at once */
  constructor(port: number, times = 1) {
    this.#socket = connect(port, '127.0.0.1');
    this.#socket.setEncoding('utf8');
    this.#socket.on('data', (text) => {
      this.text += text;
    });
    this.#socket.on('error', () => {});
    this.#socket.on('close', () => {
      this.isClosed = true;
    });
    this.#socket.write(`GET /api/live HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`.repeat(times));
    afterwards('test', () => void this.#socket.destroy());
  }

  get status(): number {
    return Number(/^HTTP\/1\.1 (\d+)/.exec(this.text)?.[1]);
  }

  of(kind: string): unknown[] {
    return [...this.text.matchAll(/event: (\w+)\r?\ndata: (.*)\r?\n/g)]
      .filter(([, name]) => name === kind)
      .map(([, , data = '']) => JSON.parse(data));
  }

  end(): void {
    this.#socket.destroy();
  }
}

describe('GET /api/live', () => {
  it('tells everything first, then what changes', async () => {
    const page = await PageAtWork.start();
    page.samples.push({ at: 1, confirmed: 2, waiting: 4 });
    page.log.info({ event: 'x' }, 'a line\nwith two lines');
    const following = new Following(page.port);
    await until(() => following.of('recents').length === 1, 'the first events came');
    expect(following.text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(following.text).toMatch(/content-type: text\/event-stream/i);
    expect(following.text).toMatch(/content-security-policy: default-src/i);
    expect(following.text).toMatch(/x-accel-buffering: no/i);
    expect(following.of('status')).toMatchObject([{ running: true, items: { pending: 0 } }]);
    expect(following.of('samples')).toEqual([page.samples]);
    expect(following.of('recents')[0]).toContainEqual(
      expect.objectContaining({ message: 'a line\nwith two lines' }),
    );
    page.state.put(pendingRecord('a.md'));
    await until(() => following.of('status').length === 2, 'the change came');
    expect(following.of('status')[1]).toMatchObject({ items: { pending: 1 } });
  });

  it('lets go who left, and takes no more than it says', async () => {
    const page = await PageAtWork.start();
    const all = Array.from({ length: 32 }, () => new Following(page.port));
    await until(() => all.every(({ status }) => status === 200), 'all of them follow');
    const refused = await page.fetch('/api/live');
    expect([refused.status, await refused.json()]).toMatchObject([
      503,
      { error: { code: 'TOO_MANY_FOLLOWERS' } },
    ]);
    all[0]?.end();
    let another = new Following(page.port);
    await until(() => {
      if (another.status === 503) another = new Following(page.port);
      return another.status === 200;
    }, 'there is room again');
  });

  it('takes nobody who waits behind another answer, and would never be seen to leave', async () => {
    const page = await PageAtWork.start();
    const following = new Following(page.port, 40);
    await until(() => following.of('status').length === 1, 'the first one follows');
    const followers = async () =>
      /^peersync_page_followers (\d+)$/m.exec(await (await page.fetch('/metrics')).text())?.[1];
    expect(await followers()).toBe('1');
    following.end();
    await until(async () => (await followers()) === '0', 'it is gone');
  });

  it('ends when the page does, at once', async () => {
    const page = await PageAtWork.start();
    const all = [1, 2, 3].map(() => new Following(page.port));
    await until(() => all.every(({ status }) => status === 200), 'all of them follow');
    const started = performance.now();
    await page.page.stop();
    // A request may take 30 s to arrive; a machine that is busy needs a moment.
    expect(performance.now() - started).toBeLessThan(10_000);
    await until(() => all.every(({ isClosed }) => isClosed), 'all connections are closed');
  });
});

/** A server that follows a feed of these lines, and somebody who follows it. */
async function talkative(lines: () => AsyncGenerator<LiveLine>, slowMs: number) {
  const app = fastify({ forceCloseConnections: true });
  const followers = new Set<AbortController>();
  const feed = { follow: () => lines(), textOf: (line: LiveLine) => JSON.stringify(line) };
  apiRoutes(app, { feed } as unknown as PageDeps, followers, slowMs);
  await app.listen({ host: '127.0.0.1', port: 0 });
  afterwards('test', () => app.close());
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
  afterwards('test', () => void socket.destroy());
  socket.on('error', () => {});
  socket.write('GET /api/live HTTP/1.1\r\nHost: x\r\n\r\n');
  return { followers, socket };
}

const MEGABYTE = 'x'.repeat(1024 * 1024);

describe('who follows and does not read', () => {
  it('is let go, and nothing more is made for them meanwhile', async () => {
    let made = 0;
    async function* lines(): AsyncGenerator<LiveLine> {
      for (;;) {
        made += 1;
        yield { kind: 'status', status: { version: `${made}${MEGABYTE}` } as StatusReport };
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    const { followers, socket } = await talkative(lines, 300);
    socket.pause();
    await until(() => followers.size === 1, 'it follows');
    await until(() => followers.size === 0, 'it was let go');
    // The system's buffers take some megabytes, and one event waits in ours.
    expect(made).toBeLessThan(32);
  });

  it('stays as long as they read, be it slowly', async () => {
    let made = 0;
    async function* lines(): AsyncGenerator<LiveLine> {
      for (; made < 20; ) {
        made += 1;
        yield { kind: 'status', status: { version: `${made}${MEGABYTE}` } as StatusReport };
      }
    }
    const { followers, socket } = await talkative(lines, 20_000);
    let bytes = 0;
    socket.on('data', (chunk) => {
      bytes += chunk.length;
      socket.pause();
      setTimeout(() => socket.resume(), 1);
    });
    await until(() => made === 20 && followers.size === 0, 'the end came');
    await until(() => bytes > 20 * MEGABYTE.length, 'all of it came');
  });
});

it('a status is made, and put into words, once for all who follow', async () => {
  let [made, serialized] = [0, 0];
  const status = () => {
    made += 1;
    return {
      toJSON: () => {
        serialized += 1;
        return {};
      },
    } as unknown as StatusReport;
  };
  const live = { status, clock: new FakeClock(), recents: [], parts: { statistics: { samples: [] } } };
  const feed = new LiveFeed(live as unknown as Live);
  for (let i = 0; i < 3; i += 1)
    for await (const line of feed.follow(new AbortController().signal)) {
      expect(feed.textOf(line)).toBe('{}');
      break;
    }
  expect([made, serialized]).toEqual([1, 1]);
});
