import type { Config } from '../config/config.js';
import type { Clock, Timer } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { AcceptedItem, Entry, PendingItem } from '../state/entry.js';
import { isRemembered } from '../state/history.js';
import type { State } from '../state/state.js';
import { Alerts } from './alerts.js';
import { atRestSince } from './at-rest.js';
import type { TimeHistogram } from './durations.js';
import { readKept, writeKept } from './kept.js';
import { Samples } from './samples.js';
import { SteadyTime } from './steady-time.js';
import { type FiguresReport, SAMPLE_MS, type Sample } from './time-to-search.js';
import { TimesToSearch } from './times-to-search.js';
import { Watches } from './watches.js';

/** How often what outlives a restart is written, but never for more than a hundredth of the time. */
const KEEP_MS = 120_000;
const KEEP_SHARE = 100;
/** After so many records it is looked whether a pause is due, which is after so long, in ms. */
const SLICE = 250;
const WITHOUT_PAUSE_MS = 5;
export interface FiguresParts {
  readonly state: Pick<State, 'counts' | 'entries' | 'onChange'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** As they are now; a reload may change them. */
  readonly settings: () => Pick<Config, 'folders' | 'alerts'>;
  /** Where figures outlive a restart. */
  readonly dir: string;
  /** Whether a person paused peersync. */
  readonly paused: () => boolean;
}

/** How much happened since the daemon began. */
export interface Totals {
  readonly accepted: number;
  readonly confirmed: number;
  readonly quarantined: number;
}

/**
 * What is counted while the daemon works: the time from *at rest* to *confirmed* by collection, what waits, samples of the
 * last hour, and the alerts that follow. All of it is reckoned in steady time, and told and kept by the clock on the wall as it
 * stands then, so that a clock that is set makes nothing late, empty or of the future.
 *
 * Life: `start` takes up what an earlier run kept and counts what waits; from then on every change of the state is seen.
 * `stop` keeps what is to outlive it.
 */
export class Figures {
  readonly #parts: FiguresParts;
  readonly #time: SteadyTime;
  readonly #times: TimesToSearch;
  readonly #watches = new Watches();
  readonly #samples = new Samples();
  readonly #alerts: Alerts;
  #totals = { accepted: 0, confirmed: 0, quarantined: 0 };
  #lastConfirmedAt: number | undefined;
  #timer: Timer | undefined;
  #unsubscribe: () => void = () => {};
  #isStarted = false;
  /** When it is written next, on the monotonic clock. */
  #keepAt = 0;
  #isToKeep = false;
  #keeping: Promise<void> = Promise.resolve();

  constructor(parts: FiguresParts) {
    this.#parts = parts;
    this.#time = new SteadyTime(parts.clock);
    this.#times = new TimesToSearch(this.#time);
    this.#alerts = new Alerts(parts.clock, this.#time, parts.log);
  }

  async start(): Promise<void> {
    const { dir, log } = this.#parts;
    this.reconfigured();
    const kept = await readKept(dir, log);
    if (kept !== undefined) {
      const now = this.#time.now();
      if (kept.lastConfirmedAt !== undefined) this.#wasConfirmed(kept.lastConfirmedAt);
      this.#watches.restore(kept.watches);
      this.#samples.restore(kept.samples, now);
      this.#times.restore(kept.collections, now);
    }
    await this.#takeStock();
    this.#isStarted = true;
    this.#isToKeep = true;
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
    const { clock, settings } = this.#parts;
    const { folders } = settings();
    this.#watches.are(folders, clock.now());
    this.#times.configured(
      folders.flatMap(({ collection, rules }) => [
        collection,
        ...rules.flatMap((rule) => ('collection' in rule ? [rule.collection] : [])),
      ]),
    );
  }

  /** The last hour, oldest first. */
  samples(): readonly Sample[] {
    return this.#samples.list().map((sample) => this.#dated(sample));
  }

  /** Calls `listener` with each new sample; returns how to stop that. */
  onSample(listener: (sample: Sample) => void): () => void {
    return this.#samples.onSample((sample) => listener(this.#dated(sample)));
  }

  /** Since the daemon began. */
  totals(): Totals {
    return this.#totals;
  }

  /** Time-to-search by collection, since the daemon began. */
  histograms(): readonly TimeHistogram[] {
    return this.#times.histograms();
  }

  report(): FiguresReport {
    const now = this.#time.now();
    return {
      timeToSearch: this.#times.rows(now).map((row) => ({
        ...row,
        ...(row.oldestSince === undefined ? {} : { oldestSince: this.#time.dated(row.oldestSince) }),
      })),
      confirmedPerSecond: this.#samples.confirmedPerSecond(now),
      ...(this.#lastConfirmedAt === undefined
        ? {}
        : { lastConfirmedAt: this.#time.dated(this.#lastConfirmedAt) }),
      alerts: this.#alerts.list(),
    };
  }

  /** Counts what waits, and follows what changes from there. */
  async #takeStock(): Promise<void> {
    const { state } = this.#parts;
    let changed = false;
    this.#unsubscribe = state.onChange(() => {
      changed = true;
    });
    await this.#count(WITHOUT_PAUSE_MS);
    this.#unsubscribe();
    // As a rule nothing else works yet. Where it does, one pass without a pause is sure.
    if (changed) void this.#count(Number.POSITIVE_INFINITY);
    this.#unsubscribe = state.onChange((after, before) => this.#saw(after, before));
  }

  async #count(withoutPauseMs: number): Promise<void> {
    const { clock, state } = this.#parts;
    this.#times.nothingWaits();
    let seen = 0;
    let began = clock.monotonic();
    for (const entry of state.entries.all()) {
      seen += 1;
      if (seen % SLICE === 0 && clock.monotonic() - began >= withoutPauseMs) {
        await clock.sleep(0);
        began = clock.monotonic();
      }
      if (isWaiting(entry)) this.#times.enters(entry.collection, this.#restSince(entry));
      else if (entry.status === 'confirmed') this.#wasConfirmed(entry.since);
    }
  }

  #saw(after: Entry | undefined, before: Entry | undefined): void {
    if (isWaiting(before)) this.#times.leaves(before.collection, this.#restSince(before));
    if (isWaiting(after)) this.#times.enters(after.collection, this.#restSince(after));
    if (after === undefined || after.status === before?.status) return;
    const { status } = after;
    if (status === 'quarantined') this.#totals.quarantined += 1;
    if (status === 'accepted' && !isRemembered(after)) this.#wasAccepted();
    if (status !== 'confirmed') return;
    // Its push was in doubt until now.
    if (before?.status === 'pending') this.#wasAccepted();
    const now = this.#time.now();
    const tookMs = Math.max(0, now - this.#time.of(this.#restSince(after)));
    this.#times.took(after.collection, tookMs, now);
    this.#samples.confirmed(tookMs);
    this.#totals.confirmed += 1;
    this.#lastConfirmedAt = now;
    this.#isToKeep = true;
  }

  /** Something was confirmed then, by an earlier run. What lies in the future was before the clock was set back. */
  #wasConfirmed(at: number): void {
    if (at <= (this.#lastConfirmedAt ?? Number.NEGATIVE_INFINITY)) return;
    const now = this.#time.now();
    if (at > now) this.#lastConfirmedAt ??= now;
    else this.#lastConfirmedAt = at;
  }

  #wasAccepted(): void {
    this.#totals.accepted += 1;
    this.#samples.accepted();
  }

  #dated(sample: Sample): Sample {
    return { ...sample, at: this.#time.dated(sample.at) };
  }

  /** By the clock on the wall. */
  #restSince(item: Parameters<typeof atRestSince>[0]): number {
    return atRestSince(item, (folder, at) => this.#watches.at(folder, at));
  }

  #plan(): void {
    this.#timer = this.#parts.clock.after(SAMPLE_MS, () => this.#tick(), { background: true });
  }

  #tick(): void {
    this.#plan();
    const { clock, paused, settings, state } = this.#parts;
    const now = this.#time.now();
    const { pending, accepted } = state.counts();
    this.#samples.take(pending + accepted, now);
    const limitMs = settings().alerts.timeToSearch;
    const standings = limitMs === undefined ? [] : this.#times.standings(limitMs, now);
    this.#alerts.check(standings, limitMs, paused());
    if (!this.#isToKeep || clock.monotonic() < this.#keepAt) return;
    this.#keepAt = Number.POSITIVE_INFINITY;
    this.#keeping = this.#keeping.then(() => this.#keep());
  }

  async #keep(): Promise<void> {
    const { clock, dir, log } = this.#parts;
    const [now, began] = [this.#time.now(), clock.monotonic()];
    this.#isToKeep = false;
    try {
      const [watches, collections] = [this.#watches.kept(), this.#times.kept(now)];
      const samples = this.samples();
      const lastConfirmedAt = this.#lastConfirmedAt && this.#time.dated(this.#lastConfirmedAt);
      await writeKept(dir, { watches, collections, samples, lastConfirmedAt }, clock);
    } catch (error) {
      log.debug({ dir }, `the figures could not be kept: ${messageOf(error)}`);
    }
    const ended = clock.monotonic();
    this.#keepAt = ended + Math.max(KEEP_MS, KEEP_SHARE * (ended - began));
  }
}

function isWaiting(entry: Entry | undefined): entry is PendingItem | AcceptedItem {
  return entry?.status === 'pending' || entry?.status === 'accepted';
}
