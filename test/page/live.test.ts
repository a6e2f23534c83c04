import { type AddressInfo, connect, type Socket } from 'node:net';
import { fastify } from 'fastify';
import { describe, expect, it } from 'vitest';
import { LiveFeed, type LiveLine } from '../../src/api/live-feed.js';
import { apiRoutes, Followers, type PageDeps } from '../../src/page/api.js';
import type { Live } from '../../src/report/live.js';
import type { StatusReport } from '../../src/report/status-report.js';
import { pendingRecord } from '../state/records.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/wait.js';
import { PageAtWork } from './page-at-work.js';

/** One follower: collects the event stream as a browser reads it. */
class Following {
  text = '';
  isClosed = false;
  readonly socket: Socket;

  /** @param times how often it is asked for, at once */
  constructor(port: number, times = 1) {
    this.socket = connect(port, '127.0.0.1').on('error', () => {});
    this.socket.setEncoding('utf8').on('data', (text) => {
      this.text += text;
    });
    this.socket.on('close', () => {
      this.isClosed = true;
    });
    this.socket.write(`GET /api/live HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`.repeat(times));
    afterwards('test', () => void this.socket.destroy());
  }

  /** Several that all follow. */
  static async all(page: PageAtWork, count: number): Promise<Following[]> {
    const all = Array.from({ length: count }, () => new Following(page.port));
    await until(() => all.every(({ status }) => status === 200), 'all of them follow');
    return all;
  }

  get status(): number {
    return Number(/^HTTP\/1\.1 (\d+)/.exec(this.text)?.[1]);
  }

  of(kind: string): unknown[] {
    return [...this.text.matchAll(/event: (\w+)\r?\ndata: (.*)\r?\n/g)]
      .filter(([, name]) => name === kind)
      .map(([, , data = '']) => JSON.parse(data));
  }
}

describe('GET /api/live', () => {
  it('sends everything first, and then the changes', async () => {
    const page = await PageAtWork.start();
    page.samples.push({ at: 1, confirmed: 2, waiting: 4 });
    const message = 'a line\nwith two lines';
    page.log.info({ event: 'x' }, message);
    const following = new Following(page.port);
    await until(() => following.of('recents').length === 1, 'the first events came');
    for (const head of [
      /^HTTP\/1\.1 200 OK\r\n/,
      /content-type: text\/event-stream/i,
      /x-accel-buffering: no/i,
    ])
      expect(following.text).toMatch(head);
    expect(following.text).toMatch(/content-security-policy: default-src/i);
    expect(following.of('status')).toMatchObject([{ running: true, items: { pending: 0 } }]);
    expect(following.of('samples')).toEqual([page.samples]);
    expect(following.of('recents')[0]).toContainEqual(expect.objectContaining({ message }));
    page.state.put(pendingRecord('a.md'));
    await page.state.commit();
    await until(() => following.of('status').length === 2, 'the change came');
    expect(following.of('status')[1]).toMatchObject({ items: { pending: 1 } });
  });

  it('releases followers that left, and limits their number', async () => {
    const page = await PageAtWork.start();
    const [first] = await Following.all(page, 32);
    expect(await page.refusal('/api/live')).toEqual([503, 'TOO_MANY_FOLLOWERS']);
    first?.socket.destroy();
    let another = new Following(page.port);
    await until(() => {
      if (another.status === 503) another = new Following(page.port);
      return another.status === 200;
    }, 'there is room again');
  });

  it('refuses a pipelined request, whose end could not be detected', async () => {
    const page = await PageAtWork.start();
    const following = new Following(page.port, 40);
    await until(() => following.of('status').length === 1, 'the first one follows');
    const followers = async () =>
      /^peersync_page_followers (\d+)$/m.exec(await (await page.fetch('/metrics')).text())?.[1];
    expect(await followers()).toBe('1');
    following.socket.destroy();
    await until(async () => (await followers()) === '0', 'it is gone');
  });

  it('ends at once when the page stops', async () => {
    const page = await PageAtWork.start();
    const all = await Following.all(page, 3);
    const started = performance.now();
    await page.page.stop();
    // A request may take 30 s to arrive; a machine that is busy needs a moment.
    expect(performance.now() - started).toBeLessThan(10_000);
    await until(() => all.every(({ isClosed }) => isClosed), 'all connections are closed');
  });
});

const MEGABYTE = 'x'.repeat(1024 * 1024);

/** A server whose feed has so many lines of 1 MB, and somebody who follows it. */
async function talkative(lines: number, slowMs: number) {
  const made = { lines: 0 };
  async function* follow(): AsyncGenerator<LiveLine> {
    while (made.lines < lines) {
      made.lines += 1;
      yield { kind: 'status', status: { version: `${made.lines}${MEGABYTE}` } as StatusReport };
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  const app = fastify({ forceCloseConnections: true });
  const followers = new Followers();
  const feed = { follow, textOf: (line: LiveLine) => JSON.stringify(line) };
  apiRoutes(app, { feed } as unknown as PageDeps, followers, slowMs);
  await app.listen({ host: '127.0.0.1', port: 0 });
  afterwards('test', () => app.close());
  const { socket } = new Following((app.server.address() as AddressInfo).port);
  return { followers, socket, made };
}

describe('a follower that does not read', () => {
  it('is released, and nothing is queued for it meanwhile', async () => {
    const { followers, made, socket } = await talkative(Number.POSITIVE_INFINITY, 300);
    socket.pause();
    await until(() => followers.size === 1, 'it follows');
    await until(() => followers.size === 0, 'it was let go');
    // The system's buffers take some megabytes, and one event waits in ours.
    expect(made.lines).toBeLessThan(32);
  });

  it('stays as long as it reads, even slowly', async () => {
    const { followers, made, socket } = await talkative(20, 20_000);
    let bytes = 0;
    socket.on('data', (chunk) => {
      bytes += chunk.length;
      socket.pause();
      setTimeout(() => socket.resume(), 1);
    });
    await until(() => made.lines === 20 && followers.size === 0, 'the end came');
    await until(() => bytes > 20 * MEGABYTE.length, 'all of it came');
  });
});

it('a status is computed and serialised once for all followers', async () => {
  let [made, serialized] = [0, 0];
  const toJSON = () => {
    serialized += 1;
    return {};
  };
  const status = () => {
    made += 1;
    return { toJSON } as unknown as StatusReport;
  };
  const live = {
    status,
    clock: new FakeClock(),
    recents: [],
    parts: { statistics: { samples: [] } },
  };
  const feed = new LiveFeed(live as unknown as Live);
  for (let i = 0; i < 3; i += 1)
    for await (const line of feed.follow(new AbortController().signal)) {
      expect(feed.textOf(line)).toBe('{}');
      break;
    }
  expect([made, serialized]).toEqual([1, 1]);
});
