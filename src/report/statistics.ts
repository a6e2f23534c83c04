import { Histogram as Counted } from 'prom-client';
import type { Config } from '../config/config.js';
import { type Clock, type Timer, wallAheadMs } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { AcceptedItem, Entry, PendingItem } from '../state/entry.js';
import type { State } from '../state/state.js';
import { isRemembered } from '../state/transitions.js';
import { type Alert, Alerts } from './alerts.js';
import { atRestSince, Watches } from './at-rest.js';
import { countAbove, newHistogram, type Percentiles, percentilesOf, RecentDurations } from './durations.js';
import { type KeptStatistics, readStatistics, writeStatistics } from './statistics-file.js';
import { WaitingItems } from './waiting.js';

/** The time from *at rest* to *confirmed* of the files of one collection. Times are ms since the epoch. */
export interface TimeToSearch {
  readonly collection: string;
  readonly hour: Percentiles;
  readonly day: Percentiles;
  /** Pending and accepted items. */
  readonly waiting: number;
  /** About when the one that has waited longest was at rest. */
  readonly oldestSince?: number;
}

/** What happened in one slot of `SAMPLE_MS`. */
export interface Sample {
  /** The end of the slot, in ms since the epoch. */
  readonly at: number;
  /** Items confirmed in it. */
  readonly confirmed: number;
  /** Items that the peer accepted in it. */
  readonly accepted: number;
  /** Pending and accepted items at its end. */
  readonly waiting: number;
  /** Of what was confirmed in it, at rest to confirmed, in ms. */
  readonly p50Ms?: number;
  readonly p95Ms?: number;
}

export interface StatisticsReport {
  readonly timeToSearch: readonly TimeToSearch[];
  /** Documents confirmed a second, over the last minute. */
  readonly confirmedPerSecond: number;
  /** When an item was last confirmed, in ms since the epoch; also by an earlier run. */
  readonly lastConfirmedAt?: number;
  readonly alerts: readonly Alert[];
}

/** How much happened since the daemon began. */
export interface Totals {
  readonly accepted: number;
  readonly confirmed: number;
  readonly quarantined: number;
}

export interface StatisticsDeps {
  readonly state: Pick<State, 'counts' | 'entries' | 'onChange'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** As they are now; a reload may change them. */
  readonly settings: () => Pick<Config, 'folders' | 'alerts'>;
  /** Where statistics outlive a restart. */
  readonly dir: string;
  /** Whether a person paused peersync. */
  readonly paused: () => boolean;
}

export const SAMPLE_MS = 10_000;
const HOUR_MS = 3_600_000;
/** The present speed is that of so long, in ms. */
const SPEED_MS = 60_000;
/** How often what outlives a restart is written, but never for more than a hundredth of the time. */
const KEEP_MS = 120_000;
const KEEP_SHARE = 100;
/** The count at the start pauses after so many records if it has gone on for so long, in ms. */
const SLICE = 250;
const WITHOUT_PAUSE_MS = 5;
/** So many collections have statistics of their own; the others are counted together, under a name that no collection can have. */
const MOST_COLLECTIONS = 100;
const OTHERS = '(others)';
/** The upper ends of the buckets that monitoring reads, in seconds: from half a second to a day. */
const BUCKETS_S = [0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400];

/** Time-to-search since the start, as monitoring counts it. */
export function timeToSearchHistogram(): Counted<'collection'> {
  return new Counted({
    name: 'peersync_time_to_search_seconds',
    help: 'Time from a file being at rest until it is confirmed, since the start.',
    labelNames: ['collection'],
    buckets: BUCKETS_S,
    registers: [],
  });
}

interface CollectionStatistics {
  readonly took: RecentDurations;
  readonly waiting: WaitingItems;
}

/**
 * What is counted while the daemon works: the time from *at rest* to *confirmed* by collection, what waits, samples of the
 * last hour, and the alerts that follow. All times are steady, so that a wall clock that is set makes nothing late or empty.
 *
 * Life: `start` takes up what an earlier run kept and counts what waits; from then on every change of the state is seen.
 * `stop` writes what is to outlive it.
 */
export class Statistics {
  readonly histogram = timeToSearchHistogram();
  readonly #deps: StatisticsDeps;
  readonly #startedAt: number;
  readonly #watches = new Watches();
  readonly #alerts: Alerts;
  readonly #collections = new Map<string, CollectionStatistics>();
  readonly #totals = { accepted: 0, confirmed: 0, quarantined: 0 };
  readonly #listeners = new Set<(sample: Sample) => void>();
  #samples: Sample[] = [];
  /** Of the present sample. */
  readonly #slot = { durations: newHistogram(), accepted: 0 };
  #wallAheadMs = 0;
  #lastConfirmedAt: number | undefined;
  #timer: Timer | undefined;
  #unsubscribe: () => void = () => {};
  #isStarted = false;
  /** When it is written next. */
  #keepAt = 0;
  #hasNews = false;
  #keeping: Promise<void> = Promise.resolve();

  constructor(deps: StatisticsDeps) {
    this.#deps = deps;
    this.#startedAt = deps.clock.now();
    this.#alerts = new Alerts(deps.clock, deps.log);
  }

  async start(): Promise<void> {
    const { clock, dir, log } = this.#deps;
    this.reconfigured();
    const kept = await readStatistics(dir, log);
    if (kept !== undefined) this.#restore(kept, clock.now());
    await this.#takeStock();
    this.#isStarted = true;
    this.#hasNews = true;
    this.#plan();
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#unsubscribe();
    await this.#keeping;
    if (this.#isStarted) await this.#keep();
  }

  /** The folders of the configuration may be others from now on. */
  reconfigured(): void {
    const { clock, settings } = this.#deps;
    const { folders } = settings();
    this.#watches.set(folders, clock.now(), this.#wallAheadMs);
    for (const { collection, rules } of folders) {
      this.#of(collection);
      for (const rule of rules) if ('collection' in rule) this.#of(rule.collection);
    }
  }

  /** The last hour, oldest first. */
  samples(): readonly Sample[] {
    return this.#samples;
  }

  /** Calls `listener` with each new sample; returns how to stop that. */
  onSample(listener: (sample: Sample) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Since the daemon began. */
  totals(): Totals {
    return this.#totals;
  }

  report(): StatisticsReport {
    const now = this.#deps.clock.now();
    return {
      timeToSearch: [...this.#collections].map(([collection, { took, waiting }]) => ({
        collection,
        hour: percentilesOf(took.hour(now)),
        day: percentilesOf(took.day(now)),
        ...this.#waiting(waiting, now),
      })),
      confirmedPerSecond: this.#confirmedPerSecond(now),
      ...(this.#lastConfirmedAt === undefined ? {} : { lastConfirmedAt: this.#lastConfirmedAt }),
      alerts: this.#alerts.list(),
    };
  }

  /** Counts what waits, and follows what changes from there. */
  async #takeStock(): Promise<void> {
    const { state } = this.#deps;
    let changed = false;
    this.#unsubscribe = state.onChange(() => {
      changed = true;
    });
    await this.#count(WITHOUT_PAUSE_MS);
    this.#unsubscribe();
    // As a rule nothing else works yet. Where it does, one pass without a pause is sure.
    if (changed) void this.#count(Number.POSITIVE_INFINITY);
    this.#unsubscribe = state.onChange((after, before) => this.#onChange(after, before));
  }

  async #count(withoutPauseMs: number): Promise<void> {
    const { clock, state } = this.#deps;
    for (const { waiting } of this.#collections.values()) waiting.clear();
    let seen = 0;
    let began = clock.now();
    for (const entry of state.entries.all()) {
      seen += 1;
      if (seen % SLICE === 0 && clock.now() - began >= withoutPauseMs) {
        await clock.sleep(0);
        began = clock.now();
      }
      if (isWaiting(entry)) this.#of(entry.collection).waiting.add(this.#restSince(entry));
      else if (entry.status === 'confirmed') this.#wasConfirmed(entry.since);
    }
  }

  #onChange(after: Entry | undefined, before: Entry | undefined): void {
    const { clock } = this.#deps;
    const aheadMs = wallAheadMs(clock);
    if (Math.abs(aheadMs - this.#wallAheadMs) >= 1_000) {
      this.#wallAheadMs = aheadMs;
      this.#watches.set(this.#deps.settings().folders, after?.history.at(-1)?.at ?? clock.now(), aheadMs);
    }
    if (isWaiting(before)) this.#of(before.collection).waiting.remove(this.#restSince(before));
    if (isWaiting(after)) this.#of(after.collection).waiting.add(this.#restSince(after));
    if (after === undefined || after.status === before?.status) return;
    const { status } = after;
    if (status === 'quarantined') this.#totals.quarantined += 1;
    if (status === 'accepted' && !isRemembered(after)) this.#accepted();
    if (status !== 'confirmed') return;
    // Whether its push arrived was not known until now.
    if (before?.status === 'pending') this.#accepted();
    const now = clock.now();
    const since = this.#restSince(after);
    // One from the future was written by an earlier run, before the clock was set back.
    const tookMs = now - (since > now ? this.#startedAt : since);
    this.#of(after.collection).took.add(tookMs, now);
    this.histogram.observe({ collection: this.#nameOf(after.collection) }, tookMs / 1_000);
    this.#slot.durations.recordValue(Math.round(tookMs));
    this.#totals.confirmed += 1;
    this.#lastConfirmedAt = now;
    this.#hasNews = true;
  }

  /** Something was confirmed then, by an earlier run; what lies in the future was dated before the clock was set back. */
  #wasConfirmed(at: number): void {
    const now = this.#deps.clock.now();
    if (at > now) this.#lastConfirmedAt ??= now;
    else if (at > (this.#lastConfirmedAt ?? 0)) this.#lastConfirmedAt = at;
  }

  #accepted(): void {
    this.#totals.accepted += 1;
    this.#slot.accepted += 1;
  }

  #restSince(item: Parameters<typeof atRestSince>[0]): number {
    return atRestSince(item, (folder, at) => this.#watches.at(folder, at));
  }

  #nameOf(collection: string): string {
    if (this.#collections.has(collection)) return collection;
    return this.#collections.size >= MOST_COLLECTIONS ? OTHERS : collection;
  }

  #of(collection: string): CollectionStatistics {
    const name = this.#nameOf(collection);
    let known = this.#collections.get(name);
    if (known === undefined) {
      known = { took: new RecentDurations(), waiting: new WaitingItems() };
      this.#collections.set(name, known);
    }
    return known;
  }

  #waiting(items: WaitingItems, now: number): Pick<TimeToSearch, 'waiting' | 'oldestSince'> {
    const oldestSince = items.oldestSince(now, this.#startedAt);
    return { waiting: items.count, ...(oldestSince === undefined ? {} : { oldestSince }) };
  }

  #plan(): void {
    this.#timer = this.#deps.clock.after(SAMPLE_MS, () => this.#tick(), { background: true });
  }

  #tick(): void {
    this.#plan();
    const { clock, paused, settings } = this.#deps;
    const now = clock.now();
    this.#takeSample(now);
    const limitMs = settings().alerts.timeToSearch;
    if (limitMs === undefined) this.#alerts.clear();
    else {
      for (const [collection, { took, waiting }] of this.#collections) {
        const hour = took.hour(now);
        const { count, p95Ms = 0 } = percentilesOf(hour);
        const longer = p95Ms > limitMs ? countAbove(hour, limitMs) : 0;
        const delay = { collection, count, p95Ms, longer, ...this.#waiting(waiting, now) };
        this.#alerts.check(delay, limitMs, paused());
      }
    }
    if (!this.#hasNews || clock.now() < this.#keepAt) return;
    this.#keepAt = Number.POSITIVE_INFINITY;
    this.#keeping = this.#keeping.then(() => this.#keep());
  }

  #takeSample(at: number): void {
    const { pending, accepted: taken } = this.#deps.state.counts();
    const { accepted, durations } = this.#slot;
    const { count: confirmed, p50Ms, p95Ms } = percentilesOf(durations);
    const percentiles = p50Ms === undefined || p95Ms === undefined ? {} : { p50Ms, p95Ms };
    const sample: Sample = { at, confirmed, accepted, waiting: pending + taken, ...percentiles };
    durations.reset();
    this.#slot.accepted = 0;
    this.#samples = [...this.#samples.filter((one) => one.at > at - HOUR_MS), sample];
    for (const listener of this.#listeners) listener(sample);
  }

  #confirmedPerSecond(now: number): number {
    const last = this.#samples.filter(({ at }) => at > now - SPEED_MS);
    if (last.length === 0) return 0;
    return (last.reduce((sum, { confirmed }) => sum + confirmed, 0) * 1000) / (last.length * SAMPLE_MS);
  }

  #restore(kept: KeptStatistics, now: number): void {
    const { collections, lastConfirmedAt, samples, wallAheadMs: aheadMs, watches } = kept;
    if (lastConfirmedAt !== undefined) this.#wasConfirmed(lastConfirmedAt + aheadMs);
    // Records are dated by the steady time of their run, and so is how they were watched then.
    this.#watches.restore(watches);
    this.#samples = samples
      .map(({ p50Ms, p95Ms, ...sample }) => ({
        ...sample,
        at: sample.at + aheadMs,
        ...(p50Ms === undefined || p95Ms === undefined ? {} : { p50Ms, p95Ms }),
      }))
      .filter(({ at }) => at > now - HOUR_MS && at <= now);
    for (const [collection, slots] of Object.entries(collections))
      this.#of(collection).took.restore(
        slots.map(([start, histogram]) => [start + aheadMs, histogram]),
        now,
      );
  }

  async #keep(): Promise<void> {
    const { clock, dir, log } = this.#deps;
    const now = clock.now();
    this.#hasNews = false;
    try {
      const collections: KeptStatistics['collections'] = {};
      for (const [collection, { took }] of this.#collections) {
        const slots = took.slots(now);
        if (slots.length > 0) collections[collection] = slots;
        await clock.sleep(0);
      }
      await writeStatistics(dir, {
        ...{ version: 2, wallAheadMs: wallAheadMs(clock), collections },
        watches: this.#watches.kept(),
        samples: this.#samples,
        lastConfirmedAt: this.#lastConfirmedAt,
      });
    } catch (error) {
      log.debug({ dir }, `the figures could not be kept: ${messageOf(error)}`);
    }
    const ended = clock.now();
    this.#keepAt = ended + Math.max(KEEP_MS, KEEP_SHARE * (ended - now));
  }
}

function isWaiting(entry: Entry | undefined): entry is PendingItem | AcceptedItem {
  return entry?.status === 'pending' || entry?.status === 'accepted';
}
