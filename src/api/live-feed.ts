import { jsonWithConfig } from '../lib/hint.js';
import type { Live, RecentEvent } from '../report/live.js';
import type { Sample } from '../report/statistics.js';
import type { StatusReport } from '../report/status-report.js';

/**
 * A line for those who follow a running daemon: first everything (the status, all samples, all
 * recent events), then each change. A status comes at most once a second and at least every 15 s.
 */
export type LiveLine =
  | { readonly kind: 'status'; readonly status: StatusReport }
  | { readonly kind: 'samples'; readonly samples: readonly Sample[] }
  | { readonly kind: 'recents'; readonly recents: readonly RecentEvent[] };

/** The interval at which changes are looked for. */
const TICK_MS = 1_000;
/** The longest time between two statuses. It shows followers that the daemon is alive. */
const MAX_SILENCE_MS = 15_000;

/**
 * Tells any number of followers what the daemon does. All of them share one status and its text.
 */
export class LiveFeed {
  #latest:
    | { readonly at: number; readonly status: StatusReport; readonly text: string }
    | undefined;

  constructor(private readonly live: Live) {}

  /**
   * Follows until `signal` aborts. Changes that come faster than they are read are combined, and
   * nothing is buffered for a reader.
   */
  async *follow(signal: AbortSignal): AsyncGenerator<LiveLine, void> {
    const { clock, parts, recents } = this.live;
    let [sampledAt, eventId] = [0, 0];
    let [sentText, sentAt] = ['', 0];
    while (!signal.aborted) {
      const { status, text } = this.#now();
      if (text !== sentText || clock.now() - sentAt >= MAX_SILENCE_MS) {
        [sentText, sentAt] = [text, clock.now()];
        yield { kind: 'status', status };
      }
      const samples = parts.statistics.samples.filter(({ at }) => at > sampledAt);
      sampledAt = samples.at(-1)?.at ?? sampledAt;
      if (samples.length > 0) yield { kind: 'samples', samples };
      const events = recents.filter(({ id }) => id > eventId);
      eventId = events.at(-1)?.id ?? eventId;
      if (events.length > 0) yield { kind: 'recents', recents: events };
      await clock.sleep(TICK_MS, signal);
    }
  }

  /** Returns the data of a line as JSON. */
  textOf(line: LiveLine): string {
    if (line.kind === 'samples') return JSON.stringify(line.samples);
    if (line.kind === 'recents') return this.#json(line.recents);
    return line.status === this.#latest?.status ? this.#latest.text : this.#json(line.status);
  }

  #json(value: unknown): string {
    return jsonWithConfig(value, this.live.configFile);
  }

  #now() {
    const at = this.live.clock.now();
    if (this.#latest === undefined || at - this.#latest.at >= TICK_MS / 2) {
      const status = this.live.status();
      this.#latest = { at, status, text: this.#json(status) };
    }
    return this.#latest;
  }
}
