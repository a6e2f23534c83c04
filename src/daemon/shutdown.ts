import type { Clock } from '../lib/clock.js';
import { messageOf, PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';

/** What takes so long may wait for a disk, in ms. */
const SUSPECT_MS = 2_000;
/** How long each step may take once a disk is known to be silent: what does not need that disk ends in no time. In ms. */
const SHORT_MS = 300;

interface Step {
  readonly what: string;
  readonly end: () => Promise<void> | void;
  readonly blocks: boolean;
}

export interface ShutdownDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** The directory whose disk does not answer, if there is one. */
  readonly silentDisk: () => Promise<string | undefined>;
}

/**
 * What a stop has to undo: the last that was begun is ended first, and each is waited for. What does not end because a disk
 * does not answer is left as it is, for it may never end.
 */
export class ShutdownSteps {
  readonly #parts: ShutdownDeps;
  readonly #steps: Step[] = [];
  readonly #left: string[] = [];
  #silent: string | undefined;

  constructor(parts: ShutdownDeps) {
    this.#parts = parts;
  }

  add(what: string, end: () => Promise<void> | void): void {
    this.#steps.push({ what, end, blocks: false });
  }

  /** Something that writes to a disk in this very thread: once one is silent it is not even begun. */
  addBlocking(what: string, end: () => Promise<void> | void): void {
    this.#steps.push({ what, end, blocks: true });
  }

  /**
   * Undoes everything, also where some of it fails.
   *
   * @throws what failed, an AggregateError when that was more than one thing; DISK_SILENT where something was left
   */
  async all(): Promise<void> {
    const failures: unknown[] = [];
    for (const { what, end, blocks } of this.#steps.splice(0).reverse()) {
      if (blocks && this.#silent !== undefined) {
        this.#left.push(what);
        continue;
      }
      try {
        await this.#inTime(what, Promise.resolve().then(end));
      } catch (error) {
        this.#parts.log.error(
          { what, error: messageOf(error) },
          `stopping the ${what} failed: ${messageOf(error)}`,
        );
        failures.push(error);
      }
    }
    if (this.#silent !== undefined && this.#left.length > 0)
      failures.push(leftError(this.#silent, [...new Set(this.#left)]));
    if (failures.length === 1) throw failures[0];
    if (failures.length > 1) throw new AggregateError(failures, 'the daemon did not stop cleanly');
  }

  /** Resolves when it ended, or is left because of a disk. */
  async #inTime(what: string, ending: Promise<void>): Promise<void> {
    const { clock, log, silentDisk } = this.#parts;
    let isEnded = false;
    const ended = (): void => {
      isEnded = true;
    };
    ending.then(ended, ended);
    for (;;) {
      const enough = new AbortController();
      const isOver = await Promise.race([
        ending.then(() => true),
        clock.sleep(this.#silent === undefined ? SUSPECT_MS : SHORT_MS, enough.signal).then(() => false),
      ]).finally(() => enough.abort());
      if (isOver) return;
      const silent = this.#silent ?? (await silentDisk());
      // What ended meanwhile did not wait for that disk, which may only be slow to answer.
      if (silent === undefined || isEnded) continue;
      this.#silent = silent;
      // It may fail when nobody listens any more.
      ending.catch(() => {});
      this.#left.push(what);
      if (this.#left.length === 1)
        log.warn(
          { event: 'disk-silent', path: this.#silent },
          `the ${what} cannot be stopped: the disk of ${this.#silent} does not answer; what waits for it is left as it is`,
        );
      return;
    }
  }
}

/** Whether this, or something in it, says that work was left because of a disk. */
export function isLeft(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isLeft);
  return error instanceof PeersyncError && error.code === 'DISK_SILENT';
}

function leftError(disk: string, left: readonly string[]): PeersyncError {
  return new PeersyncError({
    code: 'DISK_SILENT',
    message: `Stopped without waiting for the disk of ${disk}, which does not answer (left as it is: ${left.join(', ')}).`,
    hint: 'Nothing is lost: the next start looks up what was under way. See whether the disk is well first.',
  });
}
