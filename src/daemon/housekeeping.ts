import type { Config } from '../config/config.js';
import type { Timer } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import { counted, quoted, shellWord } from '../lib/text.js';
import { isAway, mayHaveDocument } from '../state/entry.js';
import { gone } from '../state/transitions.js';
import { isToBeRemoved } from '../watch/deletion-candidates.js';
import type { WatchDeps } from '../watch/deps.js';

const DAY_MS = 86_400_000;

/** The part of the configuration that housekeeping reads. */
type HousekeepingConfig = Pick<Config, 'folders' | 'state'>;

interface HousekeepingDeps extends Pick<WatchDeps, 'state' | 'clock' | 'log'> {
  /** Whether the peer is an embedded one; undefined while that is unknown. */
  readonly isEmbedded: () => boolean | undefined;
}

/**
 * Removes obsolete records from the state, so that it does not grow for ever.
 *
 * `configure` is called at the start and after each change of the configuration. It *retires* the
 * folders that left the configuration: their files become `gone`, and the peer keeps their
 * documents until a person decides (`api/forget.ts`). It also removes the records of files that
 * have been `gone` for longer than `state.keepGone`, and repeats that every day. `stop` ends both;
 * the next run does the rest.
 */
export class Housekeeping {
  #config: HousekeepingConfig | undefined;
  #timer: Timer | undefined;
  #last: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(private readonly deps: HousekeepingDeps) {}

  /**
   * Applies a configuration. Must be called after the watcher has released the folders that left
   * the configuration.
   *
   * @throws StateError if the changes cannot be written to the disk
   */
  async configure(config: HousekeepingConfig): Promise<void> {
    this.#config = config;
    const configured = new Set(config.folders.map(({ name }) => name));
    for (const folder of [...this.deps.state.entries.folders()])
      if (!configured.has(folder)) await this.#retire(folder);
    this.#removeOldRecords();
    await this.#last;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#last;
  }

  /**
   * Marks the files of a folder as gone. Their records remain for a while, so that a folder that
   * comes back causes no pushes.
   */
  async #retire(folder: string): Promise<void> {
    const { state, clock, log } = this.deps;
    let files = 0;
    for await (const slice of state.entries.slices({ folder })) {
      if (this.#stopped) return;
      for (const entry of slice) {
        if (isAway(entry)) continue;
        if (mayHaveDocument(entry))
          state.put(gone(entry, clock.now(), 'its folder left the configuration'));
        else state.remove(folder, entry.path);
        files += 1;
      }
      if (state.figures().unsaved > 0) await state.commit();
    }
    if (files === 0) return;
    const counts = files === 1 ? '1 file counts' : `${counted(files, 'file')} count`;
    log.info(
      { event: 'retired', folder, files },
      `the folder ${quoted(folder)} is not in the configuration any more: its ${counts} as gone; the peer keeps its documents until \`peersync forget ${shellWord(folder)} --remove\``,
    );
  }

  /** Removes old records of gone files now, and then every day. */
  #removeOldRecords(): void {
    const { clock, log } = this.deps;
    this.#timer?.cancel();
    if (this.#stopped) return;
    this.#timer = clock.after(DAY_MS, () => this.#removeOldRecords(), { background: true });
    this.#last = this.#last
      .then(() => this.#forgetGone())
      .then(
        (files) =>
          log.debug(
            { event: 'forgotten', files },
            `${counted(files, 'file')} gone for long: forgotten`,
          ),
        (error: unknown) =>
          log.warn(
            {},
            `the records of files that are gone for long could not be removed yet: ${messageOf(error)}`,
          ),
      );
  }

  /** Returns the number of removed records. */
  async #forgetGone(): Promise<number> {
    const { isEmbedded, state } = this.deps;
    if (this.#config === undefined) return 0;
    const byName = new Map(this.#config.folders.map((folder) => [folder.name, folder]));
    // While the kind of peer is unknown, its documents may still have to be removed.
    const mayBeEmbedded = isEmbedded() ?? true;
    return await state.forgetGone(this.#config.state.keepGone, (item) =>
      isToBeRemoved(item, byName.get(item.folder), mayBeEmbedded),
    );
  }
}
