import { EventEmitter, on } from 'node:events';
import { resolve } from 'node:path';
import type { LiveFeed, LiveLine } from '../../src/api/live-feed.js';
import type { Answerer } from '../../src/api/requests.js';
import { systemClock } from '../../src/lib/clock.js';
import { PeersyncError } from '../../src/lib/errors.js';
import { silentLogger } from '../../src/lib/logger.js';
import type { ItemLine } from '../../src/page/api.js';
import { StatusPage } from '../../src/page/status-page.js';
import type { Live, RecentEvent } from '../../src/report/live.js';
import type { Sample } from '../../src/report/statistics.js';
import type { StatusReport } from '../../src/report/status-report.js';
import type { WhyReport } from '../../src/report/why.js';
import { afterwards } from '../support/afterwards.js';
import { until } from '../support/wait.js';

/** The answers of a stand-in. */
export interface Script {
  readonly status: StatusReport;
  readonly samples?: readonly Sample[];
  readonly recents?: readonly RecentEvent[];
  /** Returns the items of a status on demand. */
  item?(index: number, status: string): ItemLine;
  readonly why?: WhyReport;
}

/** A query for one page of files. */
type ItemsQuery = Readonly<Partial<Record<'status' | 'name' | 'after' | 'limit', string>>>;

/**
 * The real page of a simulated daemon, for situations that a real one rarely has. It records the
 * requests of the page.
 */
export class StandIn {
  /** The names that the page searched for. */
  readonly items: (string | undefined)[] = [];
  /** Duration of a query for a list of files, in ms. */
  listMs = 0;
  /** Maximum number of such queries at the same time so far. */
  mostLists = 0;
  #lists = 0;
  /** Whether queries for lists of files fail. */
  isBroken = false;
  /** The commands that the page sent. */
  readonly asked: { readonly ask: string; readonly parameters: unknown }[] = [];
  readonly #lines = new EventEmitter().setMaxListeners(0);
  readonly #page: StatusPage;

  private constructor(private readonly script: Script) {
    const live = {
      clock: systemClock,
      log: silentLogger,
      current: { config: { status: { listen: '127.0.0.1:0' } } },
      parts: { queue: { status: () => ({}) }, state: {}, statistics: {} },
    } as unknown as Live;
    const feed = {
      follow: (signal: AbortSignal) => this.#follow(signal),
      textOf: (line: LiveLine) => JSON.stringify(Object.values(line)[1]),
    } as unknown as LiveFeed;
    const answer: Answerer = ({ name }, question) => this.#answer(name, question);
    const assetsDirectory = resolve(import.meta.dirname, '../../dist/page/browser');
    this.#page = new StatusPage({ live, answer, feed, env: {}, assetsDirectory });
    this.#page.configure();
  }

  static async start(script: Script): Promise<StandIn> {
    const standIn = new StandIn(script);
    afterwards('test', () => standIn.#page.stop());
    await until(() => standIn.#page.url !== undefined, 'the page is open');
    return standIn;
  }

  get url(): string {
    return this.#page.url ?? '';
  }

  /** Sends a line to all followers. */
  send(line: LiveLine): void {
    this.#lines.emit('line', line);
  }

  async *#answer(ask: string, parameters: unknown): AsyncGenerator<readonly unknown[]> {
    if (ask === 'status') yield [this.script.status];
    else if (ask === 'items' && !this.isBroken) {
      this.#lists += 1;
      this.mostLists = Math.max(this.mostLists, this.#lists);
      await systemClock.sleep(this.listMs);
      this.#lists -= 1;
      yield [this.#items(parameters as ItemsQuery)];
    } else if (ask === 'why' && this.script.why) yield [this.script.why];
    else if (ask === 'items' || ask === 'why')
      throw new PeersyncError({ code: 'X', message: 'There is no such thing.', hint: 'Go back.' });
    else {
      this.asked.push({ ask, parameters });
      yield [{ retried: 1, toRead: 0 }];
    }
  }

  async *#follow(signal: AbortSignal): AsyncGenerator<LiveLine> {
    const lines = on(this.#lines, 'line', { signal });
    const { status, samples, recents } = this.script;
    yield { kind: 'status', status };
    if (samples) yield { kind: 'samples', samples };
    if (recents) yield { kind: 'recents', recents };
    for await (const [line] of lines) yield line as LiveLine;
  }

  #items({ status: of = '', name, after = '0', limit }: ItemsQuery): unknown {
    const { status, item } = this.script;
    this.items.push(name);
    const total = Object.entries(status.items).find(([status]) => status === of)?.[1] ?? 0;
    const first = Number(after);
    const end = Math.min(total, first + Number(limit));
    const items = item ? Array.from({ length: end - first }, (_, i) => item(first + i, of)) : [];
    return end < total ? { items, next: String(end) } : { items };
  }
}
