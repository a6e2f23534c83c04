import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  build,
  decodeFromCompressedBase64,
  encodeIntoCompressedBase64,
  type Histogram,
} from 'hdr-histogram-js';
import { Histogram as Counted } from 'prom-client';
import { z } from 'zod';
import type { Config } from '../config/config.js';
import { writeFileAtomic } from '../lib/atomic.js';
import type { Clock, Timer } from '../lib/clock.js';
import { messageOf, systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { durationText } from '../lib/units.js';
import type { ConfirmedItem, Entry, Item, Trouble } from '../state/entry.js';
import type { State } from '../state/state.js';
import { beginningOf, isRemembered } from '../state/transitions.js';

/** Something that a person should hear of, raised by `alerts`; it stays while it is so. `since` is in ms since the epoch. */
export type Alert = Trouble & { readonly collection: string; readonly since: number };

/** Times are ms since the epoch. */
export type StatisticsReport = ReturnType<Statistics['report']>;
/** The time from *at rest* to *confirmed* of the files of one collection. */
export type TimeToSearch = StatisticsReport['timeToSearch'][number];

export interface StatisticsDeps {
  readonly state: Pick<State, 'counts' | 'entries' | 'onChange' | 'onSync'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** As they are now; a reload may change them. */
  readonly settings: () => Pick<Config, 'folders' | 'alerts'>;
  /** Where statistics outlive a restart. */
  readonly dir: string;
}

const sampleSchema = z.object({
  /** The end of the 10 s, in ms since the epoch. */
  at: z.number(),
  /** Items confirmed in them. */
  confirmed: z.number(),
  /** Items that the peer accepted in them. */
  accepted: z.number(),
  /** Pending and accepted items at the end. */
  waiting: z.number(),
  /** Of what was confirmed in them, at rest to confirmed, in ms. */
  p50Ms: z.number().exactOptional(),
  p95Ms: z.number().exactOptional(),
});

/** What happened in 10 s. */
export type Sample = Readonly<z.infer<typeof sampleSchema>>;

/** What outlives a restart. Nothing but statistics depends on it. */
const keptSchema = z.object({
  version: z.literal(3),
  samples: z.array(sampleSchema),
  collections: z.record(z.string(), z.array(z.tuple([z.number(), z.string()]).readonly()).readonly()),
  lastConfirmedAt: z.number().optional(),
});

const FILE = 'figures.json';
const SAMPLE_MS = 10_000;
const HOUR_MS = 3_600_000;
/** The present speed is that of so long, in ms. */
const SPEED_MS = 60_000;
/** How often what outlives a restart is written, in ms. */
const KEEP_MS = 120_000;
/** An alert is over when all was well for so long, in ms, so that it does not come and go. */
const WELL_MS = 300_000;
/** So many collections have statistics of their own; the others are counted together, under a name that no collection can have. */
const MOST_COLLECTIONS = 100;
const OTHERS = '(others)';
/** The upper ends of the buckets that monitoring reads, in seconds: from half a second to a day. */
const BUCKETS_S = [0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400];

/** What monitoring counts itself, from the start: the time to search, and how long the disk took to make changes durable. */
export function histograms() {
  return {
    timeToSearch: new Counted({
      name: 'peersync_time_to_search_seconds',
      help: 'Time from a file being at rest until it is confirmed, since the start.',
      labelNames: ['collection'],
      buckets: BUCKETS_S,
      registers: [],
    }),
    stateSync: new Counted({
      name: 'peersync_state_sync_seconds',
      help: 'How long the disk took to make changes durable (fdatasync).',
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
      registers: [],
    }),
  };
}

/** How long it took; the percentiles are absent while nothing was counted in that time. In ms, exact to 1 %. */
export interface Percentiles {
  readonly count: number;
  readonly p50Ms?: number;
  readonly p95Ms?: number;
  readonly p99Ms?: number;
}

/** The durations that ended in one slot: when it began, in ms since the epoch, and an encoded histogram. */
export type DurationSlot = readonly [start: number, histogram: string];

const SLOT_MS = 300_000;
const DAY_MS = 86_400_000;
const WINDOWS = [['hour', HOUR_MS] as const, ['day', DAY_MS] as const];

function newHistogram(): Histogram {
  return build({
    bitBucketSize: 32,
    highestTrackableValue: 2 ** 36,
    numberOfSignificantValueDigits: 2,
    useWebAssembly: false,
  });
}

/** A percentile is the smallest value that so many of a hundred do not exceed. */
export function percentilesOf(histogram: Histogram): Percentiles {
  const { totalCount: count } = histogram;
  if (count === 0) return { count };
  const at = (part: number) => histogram.getValueAtPercentile((100 * Math.ceil(part * count)) / count);
  return { count, p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99) };
}

/**
 * How long things took in the last hour and the last day.
 *
 * Durations are counted in slots of 5 minutes, of which the oldest is dropped whole: the hour is between 55 and 60 minutes.
 * The sums of both windows are kept as histograms; a slot that is over is kept encoded, in some hundred bytes.
 */
export class RecentDurations {
  readonly #sums = { hour: newHistogram(), day: newHistogram() };
  readonly #open = newHistogram();
  #openStart = Number.NEGATIVE_INFINITY;
  /** Those that are over, oldest first. */
  #slots: DurationSlot[] = [];

  add(ms: number, now: number): void {
    for (const histogram of [...Object.values(this.at(now)), this.#open])
      histogram.recordValue(Math.round(ms));
  }

  at(now: number): { readonly hour: Histogram; readonly day: Histogram } {
    const [before, start] = [this.#openStart, Math.floor(now / SLOT_MS) * SLOT_MS];
    if (start <= before) return this.#sums;
    this.#openStart = start;
    if (this.#open.totalCount > 0) this.#slots.push([before, encodeIntoCompressedBase64(this.#open)]);
    this.#open.reset();
    for (const [name, lastsMs] of WINDOWS)
      for (const [at, text] of this.#slots)
        if (at > before - lastsMs && at <= start - lastsMs)
          this.#sums[name].subtract(decodeFromCompressedBase64(text, 32));
    this.#slots = this.#slots.filter(([at]) => at > start - DAY_MS);
    return this.#sums;
  }

  slots(now: number): readonly DurationSlot[] {
    this.at(now);
    if (this.#open.totalCount === 0) return this.#slots;
    return [...this.#slots, [this.#openStart, encodeIntoCompressedBase64(this.#open)]];
  }

  /** Takes up what an earlier run kept; what lies in the future or cannot be read is dropped. */
  restore(slots: readonly DurationSlot[], now: number): void {
    this.at(now);
    for (const slot of slots) {
      const [start, text] = slot;
      if (start > now || start <= this.#openStart - DAY_MS) continue;
      try {
        const histogram = decodeFromCompressedBase64(text, 32);
        for (const [name, lastsMs] of WINDOWS)
          if (start > this.#openStart - lastsMs) this.#sums[name].add(histogram);
        this.#slots.push(slot);
      } catch {}
    }
  }
}

/** Items that wait are told apart by when they were at rest only as finely as this, in ms. */
const STEP_MS = 5_000;

/** How many items of a collection wait, and since when: a number for each step of time, and not the items. */
export class WaitingItems {
  readonly #steps = new Map<number, number>();

  /** @param by 1 for one more that was at rest then, -1 for one that waits no longer */
  add(restSince: number, by: 1 | -1): void {
    const step = Math.floor(restSince / STEP_MS);
    const count = (this.#steps.get(step) ?? 0) + by;
    if (count === 0) this.#steps.delete(step);
    else this.#steps.set(step, count);
  }

  /** `oldestSince` is about when the one that has waited longest was at rest: up to 5 s later than it was. */
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
 * Since when a file has been *at rest* in the version that its item is about, in ms since the epoch: since when the present work on
 * it counts. It follows from the record alone, so that it is the same after a restart.
 */
export function atRestSince({ history, since }: Item): number {
  return history[Math.max(0, beginningOf(history))]?.at ?? since;
}

interface CollectionStatistics {
  readonly collection: string;
  readonly took: RecentDurations;
  readonly waiting: WaitingItems;
  alert?: Alert | undefined;
  /** Since when the promise of `alerts` has been kept again, while there is an alert. */
  wellSince?: number | undefined;
}

/**
 * What is counted while the daemon works: the time from *at rest* to *confirmed* by collection, what waits, samples of the
 * last hour, and the alerts that follow. All times are steady, so that a wall clock that is set makes nothing late or empty.
 *
 * Life: `start` takes up what an earlier run kept and counts what waits; from then on every change of the state is seen.
 * `stop` writes what is to outlive it.
 *
 * An alert by `alerts.timeToSearch` is raised for a collection once more than 5 % of its files of the last hour took longer than
 * that, or one waits for longer, which is logged as a warning. It is over when neither has been so for 5 minutes, which is
 * logged too; and without a word when the limit is taken out of the configuration.
 */
export class Statistics {
  readonly histograms = histograms();
  readonly #deps: StatisticsDeps;
  readonly #collections = new Map<string, CollectionStatistics>();
  /** How many items became so since the daemon began. */
  readonly totals = { accepted: 0, confirmed: 0, quarantined: 0 };
  /** The last hour, a sample each 10 s, oldest first. */
  samples: readonly Sample[] = [];
  /** Of the present sample. */
  readonly #slot = { durations: newHistogram(), accepted: 0 };
  #lastConfirmedAt: number | undefined;
  #timer: Timer | undefined;
  #unsubscribe: () => void = () => {};
  /** When what is new is written; undefined where nothing is. */
  #keepAt: number | undefined;
  #keeping: Promise<void> = Promise.resolve();

  constructor(deps: StatisticsDeps) {
    this.#deps = deps;
    deps.state.onSync = (seconds) => this.histograms.stateSync.observe(seconds);
  }

  /** To be called before anything else changes the state. */
  async start(): Promise<void> {
    const { state } = this.#deps;
    await this.#restore();
    this.#plan();
    for await (const slice of state.entries.slices({ status: ['pending', 'accepted'] }))
      for (const entry of slice) this.#countWaiting(entry, 1);
    this.#unsubscribe = state.onChange((after, before) => this.#onChange(after, before));
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#unsubscribe();
    await this.#keeping;
    await this.#keep();
  }

  report() {
    const now = this.#deps.clock.now();
    const all = [...this.#collections.values()];
    const last = this.samples.filter(({ at }) => at > now - SPEED_MS);
    const confirmed = last.reduce((sum, sample) => sum + sample.confirmed, 0);
    return {
      timeToSearch: all.map(({ collection, took, waiting }) => {
        const { hour, day } = took.at(now);
        return { collection, hour: percentilesOf(hour), day: percentilesOf(day), ...waiting.read() };
      }),
      /** Documents confirmed a second, over the last minute. */
      confirmedPerSecond: last.length === 0 ? 0 : (confirmed * 1_000) / (last.length * SAMPLE_MS),
      /** When an item was last confirmed, in ms since the epoch; also by an earlier run. */
      lastConfirmedAt: this.#lastConfirmedAt,
      alerts: all.flatMap(({ alert }) => alert ?? []),
    };
  }

  #onChange(after: Entry | undefined, before: Entry | undefined): void {
    this.#countWaiting(before, -1);
    this.#countWaiting(after, 1);
    if (after === undefined || after.status === before?.status) return;
    if (after.status === 'quarantined') this.totals.quarantined += 1;
    // Whether the push of one that was pending arrived was not known until now.
    const isNews = after.status === 'confirmed' && before?.status === 'pending';
    if (isNews || (after.status === 'accepted' && !isRemembered(after))) {
      this.totals.accepted += 1;
      this.#slot.accepted += 1;
    }
    if (after.status === 'confirmed') this.#confirmed(after);
  }

  #confirmed(item: ConfirmedItem): void {
    const now = this.#deps.clock.now();
    const tookMs = Math.max(0, now - atRestSince(item));
    const { collection, took } = this.#of(item.collection);
    took.add(tookMs, now);
    this.histograms.timeToSearch.observe({ collection }, tookMs / 1_000);
    this.#slot.durations.recordValue(Math.round(tookMs));
    this.totals.confirmed += 1;
    this.#lastConfirmedAt = now;
    this.#keepAt ??= now + KEEP_MS;
  }

  #countWaiting(entry: Entry | undefined, by: 1 | -1): void {
    if (entry?.status === 'pending' || entry?.status === 'accepted')
      this.#of(entry.collection).waiting.add(atRestSince(entry), by);
  }

  #of(collection: string): CollectionStatistics {
    const hasRoom = this.#collections.size < MOST_COLLECTIONS;
    const known = this.#collections.get(collection) ?? (hasRoom ? undefined : this.#collections.get(OTHERS));
    if (known !== undefined) return known;
    const name = hasRoom ? collection : OTHERS;
    const made = { collection: name, took: new RecentDurations(), waiting: new WaitingItems() };
    this.#collections.set(name, made);
    return made;
  }

  #plan(): void {
    // Those of the configuration have statistics before anything was counted.
    for (const { collection, rules } of this.#deps.settings().folders)
      for (const name of [collection, ...rules.flatMap((rule) => rule.collection ?? [])]) this.#of(name);
    this.#timer = this.#deps.clock.after(SAMPLE_MS, () => this.#tick(), { background: true });
  }

  #tick(): void {
    this.#plan();
    const { clock, settings } = this.#deps;
    const now = clock.now();
    this.#takeSample(now);
    const limitMs = settings().alerts.timeToSearch;
    for (const one of this.#collections.values()) {
      if (limitMs === undefined) one.alert = undefined;
      else this.#checkAlert(one, limitMs, now);
    }
    if (this.#keepAt === undefined || now < this.#keepAt) return;
    this.#keepAt = undefined;
    this.#keeping = this.#keeping.then(() => this.#keep());
  }

  #takeSample(at: number): void {
    const { pending, accepted } = this.#deps.state.counts();
    const { count, p50Ms, p95Ms } = percentilesOf(this.#slot.durations);
    const percentiles = p50Ms === undefined || p95Ms === undefined ? {} : { p50Ms, p95Ms };
    const made = { at, confirmed: count, accepted: this.#slot.accepted, waiting: pending + accepted };
    this.samples = [...this.samples.filter((one) => one.at > at - HOUR_MS), { ...made, ...percentiles }];
    this.#slot.durations.reset();
    this.#slot.accepted = 0;
  }

  #checkAlert(one: CollectionStatistics, limitMs: number, now: number): void {
    const { log } = this.#deps;
    const { alert, collection, took } = one;
    const { count, p95Ms = 0 } = percentilesOf(took.at(now).hour);
    const { waiting, oldestSince = now } = one.waiting.read();
    const late: string[] = [];
    if (p95Ms > limitMs) late.push(`95 % of ${count} in the last hour took up to ${durationText(p95Ms)}`);
    if (now - oldestSince > limitMs)
      late.push(`of ${waiting} waiting, the oldest waits for ${durationText(now - oldestSince)}`);
    if (late.length > 0) {
      const limit = `${durationText(limitMs)} (\`alerts.timeToSearch\`)`;
      one.wellSince = undefined;
      one.alert = {
        ...{ code: 'TIME_TO_SEARCH', collection, since: alert?.since ?? now },
        message: `Files of the collection "${collection}" become searchable later than ${limit}: ${late.join('; ')}.`,
        hint: 'See `peersync status` for the peer and what waits, and `peersync why PATH` for one file.',
      };
      const { code, hint } = one.alert;
      if (alert === undefined)
        log.warn({ event: 'alert', code, collection }, `ALERT: ${one.alert.message} ${hint}`);
    } else if (alert !== undefined) {
      one.wellSince ??= now;
      if (now - one.wellSince < WELL_MS) return;
      one.alert = undefined;
      log.info(
        { event: 'alert-over', code: alert.code, collection },
        `files of the collection "${collection}" are searchable in time again; the alert lasted ${durationText(now - alert.since)}`,
      );
    }
  }

  async #restore(): Promise<void> {
    const { clock, dir, log } = this.#deps;
    const now = clock.now();
    try {
      const kept = keptSchema.parse(JSON.parse(await readFile(join(dir, FILE), 'utf8')));
      this.#lastConfirmedAt = kept.lastConfirmedAt && Math.min(now, kept.lastConfirmedAt);
      this.samples = kept.samples.filter(({ at }) => at > now - HOUR_MS && at <= now);
      for (const [collection, slots] of Object.entries(kept.collections))
        this.#of(collection).took.restore(slots, now);
    } catch (error) {
      if (systemCode(error) !== 'ENOENT')
        log.debug({ dir, err: error }, 'the kept figures cannot be read, and begin anew');
    }
  }

  async #keep(): Promise<void> {
    const { clock, dir, log } = this.#deps;
    const temporary = join(dir, `${FILE}.tmp`);
    try {
      const collections: z.infer<typeof keptSchema>['collections'] = {};
      for (const { collection, took } of this.#collections.values()) {
        const slots = took.slots(clock.now());
        if (slots.length > 0) collections[collection] = slots;
        await clock.sleep(0);
      }
      const { samples } = this;
      const kept = { version: 3, samples, collections, lastConfirmedAt: this.#lastConfirmedAt };
      // A kill in the middle of a write leaves an unfinished file.
      await rm(temporary, { force: true });
      await writeFileAtomic(join(dir, FILE), `${JSON.stringify(kept)}\n`, { temporary });
    } catch (error) {
      log.debug({ dir }, `the figures could not be kept: ${messageOf(error)}`);
    }
  }
}
