import type { Clock } from '../lib/clock.js';
import { durationText } from '../lib/duration-text.js';
import type { Logger } from '../lib/logger.js';
import type { SteadyTime } from './steady-time.js';
import type { Alert } from './time-to-search.js';

/** What an alert is about: the figures of one collection. In steady time. */
export interface Standing {
  readonly collection: string;
  /** How many were confirmed in the last hour. */
  readonly count: number;
  readonly p95Ms?: number;
  /** How many of them took longer than the limit. */
  readonly longer: number;
  readonly waiting: number;
  readonly oldestSince?: number;
}

interface Raised {
  /** Its `since` is in steady time. */
  readonly alert: Alert;
  /** Since when it has been as promised again, on the monotonic clock. */
  wellSince: number | undefined;
}

/** An alert is over when all was well for so long, in ms: one that comes and goes would be heard by nobody. */
const WELL_MS = 300_000;

/**
 * The promise `alerts.timeToSearch`, by collection.
 *
 * - *Kept*: until more than 5 % of the files of the last hour took longer than the limit, or one waits for longer.
 * - *Raised*: said once as a warning; until it has been kept again for 5 minutes, which is said once too.
 *
 * Of fewer than 20 files one is more than 5 %: a single late file is an alert where few come. Forgotten without a word when the limit is taken out of the configuration.
 */
export class Alerts {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #time: SteadyTime;
  readonly #log: Logger;
  readonly #raised = new Map<string, Raised>();

  constructor(clock: Pick<Clock, 'monotonic'>, time: SteadyTime, log: Logger) {
    this.#clock = clock;
    this.#time = time;
    this.#log = log;
  }

  list(): readonly Alert[] {
    return [...this.#raised.values()].map(({ alert }) => ({
      ...alert,
      since: this.#time.dated(alert.since),
    }));
  }

  /** @param paused whether a person paused peersync */
  check(standings: readonly Standing[], limitMs: number | undefined, paused: boolean): void {
    if (limitMs === undefined) {
      this.#raised.clear();
      return;
    }
    for (const standing of standings) {
      const words = wordsOf(standing, limitMs, this.#time.now());
      if (words === undefined) this.#isWell(standing.collection);
      else this.#isLate(standing, words, limitMs, paused);
    }
  }

  #isLate({ collection }: Standing, words: string, limitMs: number, paused: boolean): void {
    const before = this.#raised.get(collection);
    const alert: Alert = {
      code: 'TIME_TO_SEARCH',
      collection,
      message: `${words} The limit (\`alerts.timeToSearch\`) is ${durationText(limitMs)}.${paused ? ' A person paused peersync.' : ''}`,
      hint: paused
        ? 'Nothing is lost; `peersync resume` lets the work go on.'
        : 'See `peersync status` for the peer and what waits, and `peersync why PATH` for one file.',
      since: before?.alert.since ?? this.#time.now(),
    };
    this.#raised.set(collection, { alert, wellSince: undefined });
    if (before === undefined)
      this.#log.warn(
        { event: 'alert', code: alert.code, collection },
        `ALERT: ${alert.message} ${alert.hint}`,
      );
  }

  #isWell(collection: string): void {
    const raised = this.#raised.get(collection);
    if (raised === undefined) return;
    const now = this.#clock.monotonic();
    raised.wellSince ??= now;
    if (now - raised.wellSince < WELL_MS) return;
    this.#raised.delete(collection);
    const lasted = durationText(this.#time.now() - raised.alert.since);
    this.#log.info(
      { event: 'alert-over', code: raised.alert.code, collection },
      `files of the collection "${collection}" are searchable in time again; the alert lasted ${lasted}`,
    );
  }
}

/** What is late, or undefined where nothing is. */
function wordsOf(standing: Standing, limitMs: number, now: number): string | undefined {
  const { collection, count, p95Ms = 0, longer, waiting, oldestSince = now } = standing;
  const waitedMs = now - oldestSince;
  const sentences = [
    ...(p95Ms > limitMs
      ? [
          `${longer} of the ${count} files of the collection "${collection}" that became searchable in the last hour took longer than promised (95 % took up to ${durationText(p95Ms)}).`,
        ]
      : []),
    ...(waitedMs > limitMs
      ? [
          `${waiting === 1 ? 'One file' : `${waiting} files`} of the collection "${collection}" ${waiting === 1 ? 'waits' : 'wait'} to become searchable, the oldest for ${durationText(waitedMs)}.`,
        ]
      : []),
  ];
  return sentences.length === 0 ? undefined : sentences.join(' ');
}
