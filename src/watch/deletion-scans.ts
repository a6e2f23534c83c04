import type { Timer } from '../lib/clock.js';
import type { FolderDeps } from './folder-deps.js';

/** Pause after a scan, as a multiple of its duration: scans take a twentieth of the time. */
const PAUSE_FACTOR = 19;

/**
 * Requests the full scans that confirm the absence of removed files, a moment after a file was
 * noticed to be gone, and not too often.
 */
export class DeletionScans {
  /** Set while a scan is due that was not requested yet. */
  #timer: Timer | undefined;
  /** No scan is requested before this, in ms since the epoch. */
  #nextAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly deps: FolderDeps) {}

  get isDue(): boolean {
    return this.#timer !== undefined;
  }

  /** Has a scan requested soon. */
  scanSoon(): void {
    const { clock, modes, policy } = this.deps;
    if (this.#timer !== undefined || modes.is('stopped')) return;
    this.#wait(Math.max(policy.deletionPauseMs, this.#nextAt - clock.now()));
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #wait(ms: number): void {
    const { clock } = this.deps;
    this.#timer = clock.after(ms, () => {
      this.#timer = undefined;
      const now = clock.now();
      // A scan that ended meanwhile may have moved the time.
      if (now < this.#nextAt) this.#wait(this.#nextAt - now);
      else void this.#scan(now);
    });
  }

  async #scan(now: number): Promise<void> {
    const { clock, debouncer, modes, policy, scans } = this.deps;
    this.#nextAt = now + policy.deletionScanMs;
    // Files that were removed together are decided on together.
    await debouncer.caughtUp(policy.deletionScanMs);
    if (modes.is('stopped')) return;
    const { durationMs } = await scans.request();
    this.#nextAt = Math.max(this.#nextAt, clock.now() + PAUSE_FACTOR * durationMs);
  }
}
