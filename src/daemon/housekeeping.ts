import type { Config } from '../config/config.js';
import type { Timer } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import { counted, quoted, shellWord } from '../lib/text.js';
import { gone, isAway, mayHaveDocument } from '../state/entry.js';
import { isToBeRemoved } from '../watch/deletion-candidates.js';
import type { WatchDeps } from '../watch/deps.js';

const DAY_MS = 86_400_000;

/**
 * Takes out of state what nobody works on any more, so that it does not grow for ever.
 *
 * `keep`, at the start and at each change of the configuration, lets the files of folders that left
 * it be gone, and forgets what has been gone for long; the latter again every day. `stop` ends all
 * of it; the next run does what is left.
 */
export class Housekeeping {
  #kept: Pick<Config, 'folders' | 'state'> | undefined;
  #timer: Timer | undefined;
  #last: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(private readonly deps: Pick<WatchDeps, 'state' | 'clock' | 'log' | 'isEmbedded'>) {}

  /**
   * This is the configuration now. To be told when nothing looks at the folders that left it any
   * more.
   *
   * @throws StateError when what changed cannot be brought to the disk
   */
  async keep(config: Pick<Config, 'folders' | 'state'>): Promise<void> {
    this.#kept = config;
    const configured = new Set(config.folders.map(({ name }) => name));
    for (const folder of [...this.deps.state.entries.folders()])
      if (!configured.has(folder)) await this.#retire(folder);
    this.#forget();
    await this.#last;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#last;
  }

  /**
   * What the peer was sent stays known for a while, so that a folder that comes back costs no
   * pushes.
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
    if (files > 0)
      log.info(
        { event: 'retired', folder, files },
        `the folder ${quoted(folder)} is not in the configuration any more: what it held (${counted(files, 'file')}) counts as gone; the peer keeps its documents until \`peersync forget ${shellWord(folder)} --remove\``,
      );
  }

  /** Now, and every day from now on. */
  #forget(): void {
    const { clock, isEmbedded, log, state } = this.deps;
    this.#timer?.cancel();
    if (this.#stopped) return;
    this.#timer = clock.after(DAY_MS, () => this.#forget(), { background: true });
    this.#last = this.#last
      .then(() => {
        const { folders, state: kept } = this.#kept ?? {
          folders: [],
          state: { keepGone: Infinity },
        };
        const byName = new Map(folders.map((folder) => [folder.name, folder]));
        // As long as nobody knows what the peer is, its documents may still be to be removed.
        const mayBeEmbedded = isEmbedded() ?? true;
        return state.forgetGone(kept.keepGone, (item) =>
          isToBeRemoved(item, byName.get(item.folder), mayBeEmbedded),
        );
      })
      .then(
        (files) =>
          log.debug(
            { event: 'forgotten', files },
            `${counted(files, 'file')} gone for long: forgotten`,
          ),
        (error: unknown) =>
          log.warn({}, `what was gone for long could not be forgotten yet: ${messageOf(error)}`),
      );
  }
}
