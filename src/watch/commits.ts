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
  #running: Promise<void> | undefined;
  #timer: Timer | undefined;
  #failure: unknown;
  #stopped = false;

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
    return this.#running !== undefined || (this.#changes > 0 && this.#failure === undefined);
  }

  /** Why the last commit failed, if it did. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Something was put into state. */
  changed(): void {
    this.#changes += 1;
    if (this.#running || this.#failure !== undefined) return;
    if (this.#changes >= GROUP_SIZE) void this.#run();
    else this.#runIn(GROUP_MS);
  }

  /** Commits what is left, once; what cannot be written now is said in the log. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#running;
    if (this.#changes > 0) await this.#run();
  }

  #runIn(ms: number): void {
    if (this.#stopped) return;
    this.#timer ??= this.#clock.after(ms, () => void this.#run());
  }

  /** Only called when none is running. */
  #run(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#running = this.#commitOnce().then(() => {
      this.#running = undefined;
      if (this.#failure !== undefined) this.#runIn(RETRY_MS);
      else if (this.#changes > 0) this.#runIn(GROUP_MS);
      if (!this.busy) this.#onQuiet();
    });
    return this.#running;
  }

  async #commitOnce(): Promise<void> {
    const changes = this.#changes;
    this.#changes = 0;
    try {
      await this.#commit();
      if (this.#failure !== undefined) this.#log.info({}, 'The state can be written again.');
      this.#failure = undefined;
    } catch (error) {
      this.#changes += changes;
      if (this.#failure === undefined) {
        const code = systemCode(error);
        this.#log.error({ code }, `What changed on disk cannot be recorded: ${messageOf(error)}`);
      }
      this.#failure = error;
    }
  }
}
