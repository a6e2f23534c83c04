import type { State } from '../state/state.js';
import { type Deps, succeeds } from './deps.js';

const VISIBLE_META = 'timeToVisibleMs';
/** Number of latest samples from which the time is learned. */
const MAX_SAMPLES = 64;
const INITIAL_TYPICAL_MS = 1_000;
const MIN_SAMPLE_MS = 50;

/**
 * The time from a push until the peer first shows the document, learned from samples: the third
 * quartile of the latest 64. The state keeps it, so a later run begins with it.
 */
export class TimeToVisible {
  readonly #state: Pick<State, 'meta' | 'setMeta'>;
  readonly #samplesMs: number[] = [];
  #typicalMs = INITIAL_TYPICAL_MS;

  constructor(state: Pick<State, 'meta' | 'setMeta'>) {
    this.#state = state;
    const known = state.meta(VISIBLE_META);
    if (typeof known === 'number') this.learn(known);
  }

  /** The learned time in ms; 1 s until the first sample. */
  get typicalMs(): number {
    return this.#typicalMs;
  }

  /** The learned time in ms; undefined until the first sample. */
  get learnedMs(): number | undefined {
    return this.#samplesMs.length === 0 ? undefined : this.#typicalMs;
  }

  /** Learns from a sample. The state is changed only if the time differs by a fifth. */
  learn(ms: number): void {
    this.#samplesMs.push(Math.max(MIN_SAMPLE_MS, ms));
    if (this.#samplesMs.length > MAX_SAMPLES) this.#samplesMs.shift();
    const sorted = this.#samplesMs.toSorted((a, b) => a - b);
    this.#typicalMs = sorted[Math.floor((sorted.length - 1) * 0.75)] ?? INITIAL_TYPICAL_MS;
    const typical = Math.round(this.#typicalMs);
    const known = this.#state.meta(VISIBLE_META);
    if (typeof known === 'number' && Math.abs(known - typical) < known / 5) return;
    this.#state.setMeta(VISIBLE_META, typical);
  }
}

/**
 * Asks the peer to commit its index: afterwards it shows everything that it has indexed. Callers
 * share a commit that is under way.
 */
export class IndexCommits {
  readonly #deps: Deps;
  #lastAt = Number.NEGATIVE_INFINITY;
  #lastSucceeded = false;
  #underWay: Promise<void> | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** The time when the last commit ended, whether it succeeded or not, in ms since the epoch. */
  get lastAt(): number {
    return this.#lastAt;
  }

  get lastSucceeded(): boolean {
    return this.#lastSucceeded;
  }

  /**
   * Asks for a commit, unless one ended after `since`.
   * @returns whether it succeeded; if not, the caller has to wait for the usual time
   */
  async since(since: number): Promise<boolean> {
    if (this.#lastAt <= since) {
      this.#underWay ??= this.#commit();
      await this.#underWay;
    }
    return this.#lastSucceeded;
  }

  async #commit(): Promise<void> {
    const { clock, peer, queue } = this.#deps;
    this.#lastSucceeded = await succeeds(
      queue.run('confirm', (signal) => peer.commitIndex({ signal })),
    );
    this.#lastAt = clock.now();
    this.#underWay = undefined;
  }
}
