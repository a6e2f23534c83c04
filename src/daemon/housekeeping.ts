import type { Clock, Timer } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { isItem } from '../state/entry.js';
import type { State } from '../state/state.js';
import { gone } from '../state/transitions.js';

const DAY_MS = 86_400_000;

/** After so many changed records they are brought to the disk: one write of them takes some milliseconds. */
const UNSAVED = 250;
/** How long it goes on without a pause, in ms; looked at after so many records. */
const WITHOUT_PAUSE_MS = 5;
const LOOK = 25;

export interface HousekeepingParts {
  readonly state: Pick<State, 'entries' | 'put' | 'remove' | 'forgetGone'>;
  /** Brings all changes of the state so far to the disk. */
  readonly commit: () => Promise<void>;
  /** The names of the folders in the configuration. */
  readonly folders: readonly string[];
  /** How long a file that is gone is remembered, in ms. */
  readonly keepGoneMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Takes out of state what nobody works on any more, so that it does not grow for ever.
 *
 * `start` lets the files of folders that left the configuration be gone, and forgets what has been gone for long; the
 * latter again every day. `keep` does both when the configuration changes in between. `stop` ends all of it; the next run
 * does what is left.
 */
export class Housekeeping {
  readonly #parts: HousekeepingParts;
  #keepGoneMs: number;
  #timer: Timer | undefined;
  #forgetting: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(parts: HousekeepingParts) {
    this.#parts = parts;
    this.#keepGoneMs = parts.keepGoneMs;
  }

  /** @throws StateError when what changed cannot be brought to the disk */
  async start(): Promise<void> {
    const { state, folders } = this.#parts;
    await this.#retireOthers(folders);
    await state.forgetGone(this.#keepGoneMs);
    this.#planNext();
  }

  /**
   * These folders are in the configuration now, and this is how long what is gone is remembered. To be told when nothing
   * looks at the others any more.
   *
   * @throws StateError when what changed cannot be brought to the disk
   */
  async keep(folders: readonly string[], keepGoneMs: number): Promise<void> {
    const isShorter = keepGoneMs < this.#keepGoneMs;
    this.#keepGoneMs = keepGoneMs;
    await this.#retireOthers(folders);
    if (isShorter) this.#forgetSoon();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#forgetting;
  }

  async #retireOthers(folders: readonly string[]): Promise<void> {
    const configured = new Set(folders);
    for (const folder of [...this.#parts.state.entries.folders()]) {
      if (!configured.has(folder) && !this.#stopped) await this.#retire(folder);
    }
  }

  /** What the peer was sent stays known for a while, so that a folder that comes back costs no pushes. */
  async #retire(folder: string): Promise<void> {
    const { state, commit, clock, log } = this.#parts;
    let [seen, files, unsaved] = [0, 0, 0];
    let began = clock.now();
    for (const entry of state.entries.all(folder)) {
      seen += 1;
      if (entry.status !== 'gone') {
        if (isItem(entry)) state.put(gone(entry, clock.now(), 'its folder left the configuration'));
        else state.remove(folder, entry.path);
        files += 1;
        unsaved += 1;
      }
      // What comes next is as it is after the pause.
      if (seen % LOOK > 0 || clock.now() - began < WITHOUT_PAUSE_MS) continue;
      if (unsaved < UNSAVED) {
        await clock.sleep(0);
      } else {
        await commit();
        unsaved = 0;
      }
      if (this.#stopped) return;
      began = clock.now();
    }
    await commit();
    if (files > 0)
      log.info(
        { event: 'retired', folder, files },
        `the folder ${folder} is not in the configuration any more: its ${files} files count as gone; the peer keeps their documents`,
      );
  }

  #planNext(): void {
    if (this.#stopped) return;
    const { clock } = this.#parts;
    this.#timer = clock.after(
      DAY_MS,
      () => {
        this.#planNext();
        this.#forgetSoon();
      },
      { background: true },
    );
  }

  #forgetSoon(): void {
    this.#forgetting = this.#forgetting.then(() => this.#forget());
  }

  async #forget(): Promise<void> {
    const { state, log } = this.#parts;
    try {
      const forgotten = await state.forgetGone(this.#keepGoneMs);
      log.debug({ event: 'forgotten', forgotten }, `${forgotten} files were gone for long and are forgotten`);
    } catch (error) {
      log.warn(
        { error: messageOf(error) },
        `what was gone for long could not be forgotten yet: ${messageOf(error)}`,
      );
    }
  }
}
