import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Clock } from '../lib/clock.js';
import type { LiveFeed, LiveLine } from '../report/live-feed.js';
import type { StatusReport } from '../report/status.js';
import { PageError } from './errors.js';

/** So many follow at a time. */
const MOST = 32;
/** Who has not read what was sent for so long is not there any more, in ms. */
const SLOW_MS = 10_000;

export interface FollowersParts {
  readonly feed: Pick<LiveFeed, 'follow'>;
  readonly clock: Clock;
  /** @default 32 */
  readonly most?: number;
  /** @default 10,000 */
  readonly slowMs?: number;
}

/**
 * Browsers that follow the daemon by server-sent events.
 *
 * Each is sent one event at a time, and the next only when it has read that: what happens meanwhile waits in the feed, which
 * keeps no more than it needs. Who does not read at all is let go; its browser connects again and begins anew.
 */
export class Followers {
  readonly #parts: FollowersParts;
  readonly #ends = new Set<AbortController>();
  /** A status is put into words once for all of them. */
  readonly #texts = new WeakMap<StatusReport, string>();
  #isClosed = false;

  constructor(parts: FollowersParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#ends.size;
  }

  /**
   * Takes one more; `serve` is to be called with what this returns.
   *
   * @throws PageError TOO_MANY_FOLLOWERS
   */
  admit(): AbortController {
    const { most = MOST } = this.#parts;
    if (this.#isClosed || this.#ends.size >= most) throw new PageError('TOO_MANY_FOLLOWERS');
    const end = new AbortController();
    this.#ends.add(end);
    return end;
  }

  /** Follows for `response` until it is closed. */
  async serve(response: ServerResponse, end: AbortController, headers: OutgoingHttpHeaders): Promise<void> {
    const { feed } = this.#parts;
    const onClose = () => end.abort();
    response.on('close', onClose);
    response.on('error', onClose);
    try {
      response.writeHead(200, {
        ...headers,
        'content-type': 'text/event-stream; charset=utf-8',
        // A server in between is not to collect events before it passes them on.
        'x-accel-buffering': 'no',
      });
      response.flushHeaders();
      for await (const line of feed.follow(end.signal)) {
        if (!response.write(this.#textOf(line)) && !(await this.#drained(response, end.signal))) break;
      }
    } finally {
      this.#ends.delete(end);
      response.destroy();
    }
  }

  /** Lets all of them go, and takes no more. */
  close(): void {
    this.#isClosed = true;
    for (const end of this.#ends) end.abort();
  }

  /** Whether the reader has read everything, before it was too late. */
  async #drained(response: ServerResponse, signal: AbortSignal): Promise<boolean> {
    const { clock, slowMs = SLOW_MS } = this.#parts;
    const done = new AbortController();
    const finish = () => done.abort();
    response.once('drain', finish);
    signal.addEventListener('abort', finish, { once: true });
    await clock.sleep(slowMs, done.signal);
    response.off('drain', finish);
    signal.removeEventListener('abort', finish);
    return done.signal.aborted && !signal.aborted;
  }

  #textOf(line: LiveLine): string {
    if (line.kind === 'samples') return event('samples', JSON.stringify(line.samples));
    if (line.kind === 'recents') return event('recents', JSON.stringify(line.recents));
    const known = this.#texts.get(line.status);
    if (known !== undefined) return known;
    const text = event('status', JSON.stringify(line.status));
    this.#texts.set(line.status, text);
    return text;
  }
}

/** JSON has no line breaks of its own, which would end the event. */
function event(kind: LiveLine['kind'], data: string): string {
  return `event: ${kind}\ndata: ${data}\n\n`;
}
