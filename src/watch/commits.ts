import type { Clock, Timer } from '../lib/clock.js';
import { messageOf, systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';

/** So many changes go to the disk together, or those of so many milliseconds. */
const GROUP_SIZE = 200;
const GROUP_MS = 50;
/** How soon a failed commit is tried again. */
const RETRY_MS = 5_000;

/** Brings changes of state to the disk in groups. What could not be written stays in state and is tried again. */
export class Commits {
  readonly #commit: () => Promise<void>;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #onQuiet: () => void;
  #changes = 0;
  #running = false;
  #timer: Timer | undefined;
  #failure: unknown;

  constructor(parts: {
    readonly commit: () => Promise<void>;
    readonly clock: Clock;
    readonly log: Logger;
    readonly onQuiet: () => void;
  }) {
    this.#commit = parts.commit;
    this.#clock = parts.clock;
    this.#log = parts.log;
    this.#onQuiet = parts.onQuiet;
  }

  /** Whether a change is not on disk yet, leaving out those that wait for a failed disk. */
  get busy(): boolean {
    return this.#running || (this.#changes > 0 && this.#failure === undefined);
  }

  /** Why the last commit failed, if it did. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Something was put into state. */
  changed(): void {
    this.#changes += 1;
    if (this.#failure !== undefined) return;
    if (this.#changes >= GROUP_SIZE) void this.#run();
    else this.#timer ??= this.#clock.after(GROUP_MS, () => void this.#run());
  }

  /** Commits what is left, once; what cannot be written now is said in the log. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    if (this.#changes > 0) await this.#run();
    this.#timer?.cancel();
  }

  async #run(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#running) return;
    this.#running = true;
    const changes = this.#changes;
    this.#changes = 0;
    try {
      await this.#commit();
      if (this.#failure !== undefined) this.#log.info({}, 'The state can be written again.');
      this.#failure = undefined;
    } catch (error) {
      this.#changes += changes;
      if (this.#failure === undefined) {
        this.#log.error(
          { code: systemCode(error) },
          `What changed on disk cannot be recorded: ${messageOf(error)}`,
        );
      }
      this.#failure = error;
    }
    this.#running = false;
    if (this.#failure !== undefined) this.#timer ??= this.#clock.after(RETRY_MS, () => void this.#run());
    else if (this.#changes > 0) this.#timer ??= this.#clock.after(GROUP_MS, () => void this.#run());
    else this.#onQuiet();
    if (this.#failure !== undefined) this.#onQuiet();
  }
}
