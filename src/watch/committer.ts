import type { Clock } from '../lib/clock.js';
import { messageOf, systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { State } from '../state/state.js';

/** The changes of this time reach the disk in one commit, in ms. */
const COMMIT_MS = 50;
/** Pause before a failed commit is repeated, in ms. */
const RETRY_MS = 1_000;

/**
 * Commits state soon after it changed, many changes at a time. A failed commit is repeated until it
 * succeeds, because nothing else may cause a commit for hours.
 */
export class Committer {
  readonly #stopping = new AbortController();
  #committing: Promise<void> | undefined;
  /** The error of the last commit, if it failed. */
  #failure: unknown;

  constructor(
    private readonly state: State,
    private readonly clock: Clock,
    private readonly log: Logger,
  ) {}

  /** Whether a commit is due or under way, and the last one did not fail. */
  get busy(): boolean {
    return this.#committing !== undefined && this.#failure === undefined;
  }

  /** The error of the last commit; undefined if it succeeded. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Commits the changes of state so far, soon. */
  commitSoon(): void {
    this.#committing ??= this.#commit();
  }

  /** Commits a last time, at once. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.commitSoon();
    await this.#committing;
  }

  async #commit(): Promise<void> {
    const { clock, log, state } = this;
    const { signal } = this.#stopping;
    do {
      await clock.sleep(this.#failure === undefined ? COMMIT_MS : RETRY_MS, signal);
      try {
        await state.commit();
        this.#failure = undefined;
      } catch (error) {
        if (this.#failure === undefined)
          log.error(
            { code: systemCode(error) },
            `Changes of the folders cannot be recorded: ${messageOf(error)}`,
          );
        this.#failure = error;
      }
    } while (state.figures().unsaved > 0 && !signal.aborted);
    this.#committing = undefined;
  }
}
