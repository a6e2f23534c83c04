import type { Clock, Timer } from '../lib/clock.js';
import type { Entry } from '../state/entry.js';
import type { State } from '../state/state.js';
import { type FiguresReport, SAMPLE_MS, type Sample } from './report.js';

/** So many samples are kept: an hour. */
const KEPT = 360;
const RATE_SAMPLES = 6;

export interface FiguresParts {
  readonly state: Pick<State, 'counts' | 'onChange'>;
  readonly clock: Clock;
}

/** What is counted while the daemon works. */
export class Figures {
  readonly #parts: FiguresParts;
  readonly #samples: Sample[] = [];
  readonly #listeners = new Set<(sample: Sample) => void>();
  #confirmed = 0;
  #accepted = 0;
  #lastConfirmedAt: number | undefined;
  #timer: Timer | undefined;
  #unsubscribe: () => void = () => {};

  constructor(parts: FiguresParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#unsubscribe = this.#parts.state.onChange((after, before) => this.#saw(after, before));
    this.#plan();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#unsubscribe();
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

  report(): FiguresReport {
    const last = this.#samples.slice(-RATE_SAMPLES);
    const confirmed = last.reduce((sum, sample) => sum + sample.confirmed, 0);
    return {
      timeToSearch: [],
      confirmedPerSecond: last.length === 0 ? 0 : (confirmed * 1000) / (last.length * SAMPLE_MS),
      ...(this.#lastConfirmedAt === undefined ? {} : { lastConfirmedAt: this.#lastConfirmedAt }),
      alerts: [],
    };
  }

  #saw(after: Entry | undefined, before: Entry | undefined): void {
    if (after === undefined || after.status === before?.status) return;
    if (after.status === 'accepted') this.#accepted += 1;
    if (after.status !== 'confirmed') return;
    this.#confirmed += 1;
    this.#lastConfirmedAt = after.since;
  }

  #plan(): void {
    this.#timer = this.#parts.clock.after(
      SAMPLE_MS,
      () => {
        this.#sample();
        this.#plan();
      },
      { background: true },
    );
  }

  #sample(): void {
    const { state, clock } = this.#parts;
    const { pending, accepted } = state.counts();
    const sample: Sample = {
      at: clock.now(),
      confirmed: this.#confirmed,
      accepted: this.#accepted,
      waiting: pending + accepted,
    };
    this.#confirmed = 0;
    this.#accepted = 0;
    this.#samples.push(sample);
    if (this.#samples.length > KEPT) this.#samples.shift();
    for (const listener of this.#listeners) listener(sample);
  }
}
