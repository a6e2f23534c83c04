import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../lib/clock.js';

/** Work between two turns of the loop, in milliseconds. */
const SLICE_MS = 8;

/** Cuts long work into slices: everybody else has a turn at a `pause` that comes after SLICE_MS of work. */
export class Slices {
  readonly #clock: Clock;
  readonly #signal: AbortSignal | undefined;
  #began: number;

  constructor(clock: Clock, signal?: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
    this.#began = clock.now();
  }

  /** @throws the reason of the signal, once it is aborted */
  async pause(): Promise<void> {
    if (this.#clock.now() - this.#began < SLICE_MS) return;
    await nextTurn();
    this.#signal?.throwIfAborted();
    this.#began = this.#clock.now();
  }
}
