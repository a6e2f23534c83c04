import type { Clock } from '../lib/clock.js';
import type { RecentEvent, RecentEvents } from './recent-events.js';
import type { Sample, Statistics } from './statistics.js';
import type { StatusReport } from './status.js';

/**
 * What follows a running daemon, one at a time: first everything (`status`, all samples, all recent events), then what
 * changes. A `status` comes at most once a second, and at least every 15 s.
 */
export type LiveLine =
  | { readonly kind: 'status'; readonly status: StatusReport }
  | { readonly kind: 'samples'; readonly samples: readonly Sample[] }
  | { readonly kind: 'recents'; readonly recents: readonly RecentEvent[] };

/** How often it is looked at what changed. */
const TICK_MS = 1_000;
/** A status comes at least this often, so that who follows knows that the daemon is alive. */
const QUIET_MS = 15_000;
const MOST_EVENTS = 200;

export interface LiveFeedParts {
  status(): StatusReport;
  readonly statistics: Pick<Statistics, 'samples' | 'onSample'>;
  readonly recents: Pick<RecentEvents, 'list' | 'onEvent'>;
  readonly clock: Clock;
}

/** What the daemon does, for as many as want to follow it; a status is made once for all of them. */
export class LiveFeed {
  readonly #parts: LiveFeedParts;
  #status: { readonly at: number; readonly status: StatusReport; readonly text: string } | undefined;

  constructor(parts: LiveFeedParts) {
    this.#parts = parts;
  }

  /** Follows until `signal` aborts. What comes faster than it is read is put together, and nothing else is kept. */
  async *follow(signal: AbortSignal): AsyncGenerator<LiveLine, void> {
    const { statistics, recents, clock } = this.#parts;
    const samples: Sample[] = [...statistics.samples()];
    let events: RecentEvent[] = [...recents.list()];
    const unsubscribe = [
      statistics.onSample((sample) => samples.push(sample)),
      recents.onEvent((event) => {
        events.push(event);
        if (events.length > MOST_EVENTS) events = events.slice(-MOST_EVENTS);
      }),
    ];
    try {
      let told = '';
      let toldAt = Number.NEGATIVE_INFINITY;
      while (!signal.aborted) {
        const { status, text } = this.#now();
        if (text !== told || clock.now() - toldAt >= QUIET_MS) {
          told = text;
          toldAt = clock.now();
          yield { kind: 'status', status };
        }
        if (samples.length > 0) yield { kind: 'samples', samples: samples.splice(0) };
        if (events.length > 0) yield { kind: 'recents', recents: events.splice(0) };
        await clock.sleep(TICK_MS, signal);
      }
    } finally {
      for (const each of unsubscribe) each();
    }
  }

  #now() {
    const { clock, status } = this.#parts;
    const at = clock.now();
    if (this.#status === undefined || at - this.#status.at >= TICK_MS / 2) {
      const report = status();
      this.#status = { at, status: report, text: JSON.stringify(report) };
    }
    return this.#status;
  }
}
