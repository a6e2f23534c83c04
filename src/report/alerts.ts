import type { Clock } from '../lib/clock.js';
import { durationText } from '../lib/duration-text.js';
import type { Logger } from '../lib/logger.js';

/** Something that a person should hear of, raised by `alerts`; it stays while it is so. */
export interface Alert {
  readonly code: 'TIME_TO_SEARCH';
  readonly collection: string;
  readonly message: string;
  readonly hint: string;
  /** In ms since the epoch. */
  readonly since: number;
}

/** What an alert is about: how one collection does. */
export interface Delay {
  readonly collection: string;
  /** How many were confirmed in the last hour. */
  readonly count: number;
  readonly p95Ms: number;
  /** How many of them took longer than the limit. */
  readonly longer: number;
  readonly waiting: number;
  readonly oldestSince?: number;
}

/** An alert is over when all was well for so long, in ms, so that it does not come and go. */
const WELL_MS = 300_000;

/**
 * The promise `alerts.timeToSearch`, by collection.
 *
 * - *Kept*: until more than 5 % of the files of the last hour took longer than the limit, or one waits for longer.
 * - *Raised*: logged once as a warning; until it has been kept again for 5 minutes, which is logged once too.
 *
 * Of fewer than 20 files one is more than 5 %: a single late file is an alert where few come. Forgotten without a word when the
 * limit is taken out of the configuration.
 */
export class Alerts {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #log: Logger;
  /** `wellSince`: since when the promise has been kept again. */
  readonly #raised = new Map<string, { readonly alert: Alert; wellSince: number | undefined }>();

  constructor(clock: Pick<Clock, 'now'>, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  list(): readonly Alert[] {
    return [...this.#raised.values()].map(({ alert }) => alert);
  }

  /** There is no limit any more. */
  clear(): void {
    this.#raised.clear();
  }

  /** @param paused whether a person paused peersync */
  check(delay: Delay, limitMs: number, paused: boolean): void {
    const words = wordsOf(delay, limitMs, this.#clock.now());
    if (words === undefined) this.#isWell(delay.collection);
    else this.#isLate(delay, words, limitMs, paused);
  }

  #isLate({ collection }: Delay, words: string, limitMs: number, paused: boolean): void {
    const before = this.#raised.get(collection);
    const alert: Alert = {
      code: 'TIME_TO_SEARCH',
      collection,
      message: `${words} The limit (\`alerts.timeToSearch\`) is ${durationText(limitMs)}.${paused ? ' A person paused peersync.' : ''}`,
      hint: paused
        ? 'Nothing is lost; `peersync resume` lets the work go on.'
        : 'See `peersync status` for the peer and what waits, and `peersync why PATH` for one file.',
      since: before?.alert.since ?? this.#clock.now(),
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
    const now = this.#clock.now();
    raised.wellSince ??= now;
    if (now - raised.wellSince < WELL_MS) return;
    this.#raised.delete(collection);
    const lasted = durationText(now - raised.alert.since);
    this.#log.info(
      { event: 'alert-over', code: raised.alert.code, collection },
      `files of the collection "${collection}" are searchable in time again; the alert lasted ${lasted}`,
    );
  }
}

/** What is late, or undefined where nothing is. */
function wordsOf(delay: Delay, limitMs: number, now: number): string | undefined {
  const { collection, count, p95Ms, longer, waiting, oldestSince = now } = delay;
  const waitedMs = now - oldestSince;
  const sentences: string[] = [];
  if (p95Ms > limitMs)
    sentences.push(
      `${longer} of the ${count} files of the collection "${collection}" that became searchable in the last hour took longer than promised (95 % took up to ${durationText(p95Ms)}).`,
    );
  if (waitedMs > limitMs)
    sentences.push(
      `${waiting === 1 ? 'One file' : `${waiting} files`} of the collection "${collection}" ${waiting === 1 ? 'waits' : 'wait'} to become searchable, the oldest for ${durationText(waitedMs)}.`,
    );
  return sentences.length === 0 ? undefined : sentences.join(' ');
}
