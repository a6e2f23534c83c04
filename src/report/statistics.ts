import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import type { Config } from '../config/config.js';
import type { Clock, Timer } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { Rate } from '../lib/rate.js';
import { Pace } from '../lib/slices.js';
import { numberText } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import { type Failure, type Item, isItem } from '../state/entry.js';
import { beginningOf, isAcceptedWithoutPush } from '../state/history.js';
import { sinceOf, type Work, workOf } from '../state/line.js';
import type { State } from '../state/state.js';

/**
 * Set while the files of a collection take longer to become searchable than `alerts.timeToSearch`.
 * `since` is in ms since the epoch.
 */
export type SlowCollection = Failure & { readonly collection: string; readonly since: number };

/** The time from *at rest* to *confirmed* of the files of one collection. */
export interface TimeToSearch {
  readonly collection: string;
  readonly hour: Percentiles;
  readonly day: Percentiles;
  /** The number of files that are not confirmed yet. */
  readonly waiting: number;
  /** When the oldest of them was at rest, in ms since the epoch. */
  readonly oldestSince?: number | undefined;
}

export interface StatisticsReport {
  readonly timeToSearch: readonly TimeToSearch[];
  /**
   * Documents confirmed a second, over the last half minute or since the backlog more than doubled;
   * 0 while none are confirmed or too little is known.
   */
  readonly confirmedPerSecond: number;
  /** When an item was last confirmed, by this or an earlier run, in ms since the epoch. */
  readonly lastConfirmedAt?: number | undefined;
  readonly alerts: readonly SlowCollection[];
}

interface StatisticsDeps {
  readonly state: Pick<State, 'committed' | 'onCommit'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Returns the present settings. A reload may change them. */
  readonly settings: () => Pick<Config, 'folders' | 'alerts'>;
}

/** The numbers of 10 s. */
export interface Sample {
  /** The end of the 10 s, in ms since the epoch. */
  readonly at: number;
  /** Items confirmed in them. */
  readonly confirmed: number;
  /** Pending and accepted items at the end. */
  readonly waiting: number;
  /** The times from *at rest* to *confirmed* of these items, in ms. */
  readonly p50Ms?: number | undefined;
  readonly p95Ms?: number | undefined;
}

const SAMPLE_MS = 10_000;
/** Samples in the half minute that a rate looks back. */
const SAMPLES_OF_RATE = 3;
/** A growth by fewer waiting items than this begins no new backlog. */
const NOTABLE_GROWTH = 10;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/**
 * An alert ends after the collection has been fast for this time, in ms, so that alerts do not
 * flap.
 */
const WELL_MS = 300_000;
/**
 * The number of collections with statistics of their own. The others are counted together, under a
 * name that no collection can have.
 */
const MAX_COLLECTIONS = 100;
const OTHERS = '(others)';

/** Durations in ms, at least 1, exact to 1 %. The percentiles are absent if nothing was counted. */
export interface Percentiles {
  readonly count: number;
  readonly p50Ms?: number | undefined;
  readonly p95Ms?: number | undefined;
  readonly p99Ms?: number | undefined;
}

/** Longer than two years is two years. */
const LONGEST_MS = 2 ** 36;

/** Creates a histogram of 20 KB. */
function newHistogram(): RecordableHistogram {
  return createHistogram({ lowest: 1, highest: LONGEST_MS, figures: 2 });
}

function record(histogram: RecordableHistogram, ms: number): void {
  histogram.record(Math.min(Math.max(1, Math.round(ms)), LONGEST_MS));
}

/** A percentile is the smallest value that so many of a hundred do not exceed. */
function percentilesOf(histogram: RecordableHistogram): Percentiles {
  const { count } = histogram;
  if (count === 0) return { count };
  const at = (part: number) => histogram.percentile((100 * Math.ceil(part * count)) / count);
  return { count, p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99) };
}

const SLOTS = 12;

/**
 * Durations of what ended in the last hour or day, counted in twelve slots. The oldest slot is
 * dropped as a whole.
 */
export class RecentDurations {
  readonly #slotMs: number;
  readonly #slots = new Map<number, RecordableHistogram>();
  #newest = Number.NEGATIVE_INFINITY;
  /**
   * The sum of all slots. Adding them up for each status would take 20 ms with a hundred
   * collections.
   */
  #sum = newHistogram();

  constructor(lastsMs: number) {
    this.#slotMs = lastsMs / SLOTS;
  }

  /** @param endedAt in ms since the epoch; also long ago */
  add(ms: number, endedAt: number): void {
    const number = Math.floor(endedAt / this.#slotMs);
    if (number <= this.#newest - SLOTS) return;
    const slot = this.#slots.get(number) ?? newHistogram();
    this.#slots.set(number, slot);
    for (const histogram of [slot, this.#sum]) record(histogram, ms);
    this.#dropOld(number);
  }

  at(now: number): Percentiles {
    this.#dropOld(Math.floor(now / this.#slotMs));
    return percentilesOf(this.#sum);
  }

  #dropOld(newest: number): void {
    if (newest <= this.#newest) return;
    this.#newest = newest;
    const old = [...this.#slots.keys()].filter((number) => number <= newest - SLOTS);
    if (old.length === 0) return;
    for (const number of old) this.#slots.delete(number);
    this.#sum = newHistogram();
    for (const slot of this.#slots.values()) this.#sum.add(slot);
  }
}

/**
 * The pause after each thousand records while what was confirmed before is counted, in ms. With
 * 1,000,000 records that takes half a minute, and leaves the event loop to the first scan: without
 * a pause, the scan takes 3 s longer.
 */
const RECALL_PAUSE_MS = 20;

/** The resolution of the time since which items wait, in ms. */
const STEP_MS = 5_000;

/**
 * The number of waiting items of a collection, by the time since which they wait. Only numbers are
 * kept, one for each step of time.
 */
class WaitingItems {
  readonly #steps = new Map<number, number>();

  /** @param by 1 for one more that was at rest then, -1 for one that waits no longer */
  add(restSince: number, by: 1 | -1): void {
    const step = Math.floor(restSince / STEP_MS);
    const count = (this.#steps.get(step) ?? 0) + by;
    if (count === 0) this.#steps.delete(step);
    else this.#steps.set(step, count);
  }

  /**
   * `oldestSince` is about when the one that has waited longest was at rest: up to 5 s later than
   * it was.
   */
  read(): { readonly waiting: number; readonly oldestSince?: number } {
    let [waiting, first] = [0, Number.POSITIVE_INFINITY];
    for (const [step, count] of this.#steps) {
      waiting += count;
      first = Math.min(first, step + 1);
    }
    return waiting === 0 ? { waiting } : { waiting, oldestSince: first * STEP_MS };
  }
}

/**
 * Since when a file has been *at rest* in the version that its item is about, in ms since the
 * epoch: since when the present work on it counts. It follows from the record alone, so that it is
 * the same after a restart.
 */
export function atRestSince({ history, since }: Pick<Item, 'history' | 'since'>): number {
  return history[Math.max(0, beginningOf(history))]?.at ?? since;
}

interface CollectionStatistics {
  readonly collection: string;
  readonly hour: RecentDurations;
  readonly day: RecentDurations;
  readonly waiting: WaitingItems;
  slow?: SlowCollection | undefined;
  /** Since when the collection has been fast again. Set while there is an alert. */
  wellSince?: number | undefined;
}

/**
 * Counts the work of the daemon: the time from *at rest* to *confirmed* by collection, waiting
 * items, samples of the last hour, and the collections that are slow. A change counts when it is on
 * disk. All times are by a steady clock, so setting the wall clock distorts nothing.
 *
 * Life: `start` counts the waiting items, and from then on every committed change. What was
 * confirmed in the last day before the start is counted in the background, from the records, so
 * nothing else has to be saved.
 *
 * A collection is slow by `alerts.timeToSearch` when more than 5 % of its files of the last hour
 * took longer than that, or one file waits for longer. That is logged as a warning. It ends when
 * neither has been true for 5 minutes, which is logged too; or without a log line when the limit
 * leaves the configuration.
 */
export class Statistics {
  readonly #collections = new Map<string, CollectionStatistics>();
  /** The numbers of items that entered each status since the daemon started. */
  readonly totals = { accepted: 0, confirmed: 0, quarantined: 0 };
  /** Called with each item that is confirmed, and how long after it was at rest. */
  onConfirmed: (collection: string, tookMs: number) => void = () => {};
  /** The samples of this run in the last hour, one each 10 s, oldest first. */
  samples: readonly Sample[] = [];
  /** Resolves when the confirmations of earlier runs are counted. */
  recalled: Promise<void> = Promise.resolve();
  #isRecalled = false;
  /** The durations of the present sample. */
  readonly #durations = newHistogram();
  readonly #rate = new Rate();
  /** Items that wait now. */
  #waiting = 0;
  /** The size of the backlog that the rate was measured with. */
  #usualWaiting = 0;
  #lastConfirmedAt: number | undefined;
  #timer: Timer | undefined;
  #unsubscribe: (() => void) | undefined;

  constructor(private readonly deps: StatisticsDeps) {}

  /** Must be called before the state changes. */
  async start(): Promise<void> {
    const { clock, log, state } = this.deps;
    this.#plan();
    this.#rate.note(clock.now(), this.totals.confirmed);
    for await (const slice of state.committed.entries.slices({ status: ['pending', 'accepted'] }))
      for (const entry of slice) if (isItem(entry)) this.#countWaiting(entry, 1);
    this.#unsubscribe = state.onCommit((after, before) => this.#onCommit(after, before));
    this.recalled = this.#recall()
      .catch((error) => {
        const reason = messageOf(error);
        log.error({ err: error }, `what was confirmed before cannot be counted: ${reason}`);
      })
      .finally(() => {
        this.#isRecalled = true;
      });
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    await this.recalled;
  }

  report(): StatisticsReport {
    const now = this.deps.clock.now();
    const all = [...this.#collections.values()];
    return {
      timeToSearch: all.map(({ collection, day, hour, waiting }) => {
        return { collection, hour: hour.at(now), day: day.at(now), ...waiting.read() };
      }),
      confirmedPerSecond: this.#rate.perSecond(now, this.totals.confirmed) ?? 0,
      lastConfirmedAt: this.#lastConfirmedAt,
      alerts: all.flatMap(({ slow }) => slow ?? []),
    };
  }

  /**
   * Counts what was confirmed before the start. Older records are parsed only if they may be the
   * last confirmation.
   */
  async #recall(): Promise<void> {
    const { clock, state } = this.deps;
    const startedAt = clock.now();
    const { entries } = state.committed;
    const pace = new Pace();
    for (const [, , , line] of entries.lines()) {
      if (pace.step()) await clock.sleep(RECALL_PAUSE_MS);
      if (this.#unsubscribe === undefined) return;
      if (sinceOf(line) <= Math.min(startedAt - DAY_MS, this.#lastConfirmedAt ?? 0)) continue;
      const work = workOf(line, entries.bases);
      if (work !== undefined) this.#recallItem(work, startedAt);
    }
  }

  #recallItem({ collection, history }: Work, startedAt: number): void {
    for (const [i, { at, status }] of history.entries()) {
      if (status !== 'confirmed') continue;
      this.#lastConfirmedAt = Math.max(Math.min(at, startedAt), this.#lastConfirmedAt ?? 0);
      if (at <= startedAt - DAY_MS || at > startedAt) continue;
      const restSince = atRestSince({ history: history.slice(0, i + 1), since: at });
      this.#count(collection, at - restSince, at);
    }
  }

  #onCommit(after: Work | undefined, before: Work | undefined): void {
    this.#countWaiting(before, -1);
    this.#countWaiting(after, 1);
    if (after === undefined || after.status === before?.status) return;
    if (after.status === 'quarantined') this.totals.quarantined += 1;
    // A pending item is confirmed directly if its push was never answered.
    const isNews = after.status === 'confirmed' && before?.status === 'pending';
    if (isNews || (after.status === 'accepted' && !isAcceptedWithoutPush(after)))
      this.totals.accepted += 1;
    if (after.status !== 'confirmed') return;
    this.totals.confirmed += 1;
    const now = this.deps.clock.now();
    this.#lastConfirmedAt = now;
    this.#rate.note(now, this.totals.confirmed);
    const tookMs = Math.max(0, now - atRestSince(after));
    record(this.#durations, tookMs);
    this.onConfirmed(this.#count(after.collection, tookMs, now), tookMs);
  }

  /** @returns the name that the collection is counted under */
  #count(name: string, tookMs: number, at: number): string {
    const { collection, day, hour } = this.#of(name);
    for (const window of [hour, day]) window.add(Math.max(0, tookMs), at);
    return collection;
  }

  #countWaiting(work: Work | undefined, by: 1 | -1): void {
    if (work?.status !== 'pending' && work?.status !== 'accepted') return;
    this.#of(work.collection).waiting.add(atRestSince(work), by);
    this.#waiting += by;
    if (this.#waiting <= 2 * this.#usualWaiting + NOTABLE_GROWTH) return;
    // The speed of a few single files says nothing about the end of a large backlog.
    this.#usualWaiting = this.#waiting;
    this.#rate.restart(this.deps.clock.now(), this.totals.confirmed);
  }

  #of(name: string): CollectionStatistics {
    const isKept = this.#collections.has(name) || this.#collections.size < MAX_COLLECTIONS;
    const collection = isKept ? name : OTHERS;
    const known = this.#collections.get(collection);
    if (known !== undefined) return known;
    const windows = { hour: new RecentDurations(HOUR_MS), day: new RecentDurations(DAY_MS) };
    const made = { collection, ...windows, waiting: new WaitingItems() };
    this.#collections.set(collection, made);
    return made;
  }

  #plan(): void {
    // Configured collections have statistics before anything is counted.
    for (const { collection, rules } of this.deps.settings().folders)
      for (const name of [collection, ...rules.flatMap((rule) => rule.collection ?? [])])
        this.#of(name);
    this.#timer = this.deps.clock.after(SAMPLE_MS, () => this.#tick(), { background: true });
  }

  #tick(): void {
    this.#plan();
    const { clock, settings } = this.deps;
    const now = clock.now();
    this.#takeSample(now);
    const limitMs = settings().alerts.timeToSearch;
    for (const one of this.#collections.values()) {
      if (limitMs === undefined) one.slow = undefined;
      else this.#checkAlert(one, limitMs, now);
    }
  }

  #takeSample(at: number): void {
    const { pending, accepted } = this.deps.state.committed.counts();
    const { count, p50Ms, p95Ms } = percentilesOf(this.#durations);
    const sample = { at, confirmed: count, waiting: pending + accepted, p50Ms, p95Ms };
    this.samples = [...this.samples.filter((one) => one.at > at - HOUR_MS), sample];
    this.#durations.reset();
    const recent = this.samples.slice(-SAMPLES_OF_RATE);
    this.#usualWaiting = Math.max(...recent.map(({ waiting }) => waiting));
  }

  #checkAlert(one: CollectionStatistics, limitMs: number, now: number): void {
    const { log } = this.deps;
    const { slow, collection, hour } = one;
    const { count, p95Ms = 0 } = hour.at(now);
    const { waiting, oldestSince = now } = one.waiting.read();
    const late: string[] = [];
    // A part of the last hour may be slower than the whole.
    if (this.#isRecalled && p95Ms > limitMs)
      late.push(`95 % of ${numberText(count)} in the last hour took up to ${durationText(p95Ms)}`);
    if (now - oldestSince > limitMs)
      late.push(
        `of ${numberText(waiting)} waiting, the oldest waits for ${durationText(now - oldestSince)}`,
      );
    if (late.length > 0) {
      const limit = `${durationText(limitMs)} (\`alerts.timeToSearch\`)`;
      one.wellSince = undefined;
      one.slow = {
        code: 'TIME_TO_SEARCH',
        collection,
        since: slow?.since ?? now,
        message: `Files of the collection "${collection}" become searchable later than ${limit}: ${late.join('; ')}.`,
        hint: 'See `peersync status` for the peer and what waits, and `peersync why PATH` for one file.',
      };
      const { code, hint } = one.slow;
      if (slow === undefined)
        log.warn({ event: 'alert', code, collection }, `ALERT: ${one.slow.message} ${hint}`);
    } else if (slow !== undefined) {
      one.wellSince ??= now;
      if (now - one.wellSince < WELL_MS) return;
      one.slow = undefined;
      log.info(
        { event: 'alert-over', code: slow.code, collection },
        `files of the collection "${collection}" are searchable in time again; the alert lasted ${durationText(now - slow.since)}`,
      );
    }
  }
}
