import { isDeepStrictEqual } from 'node:util';
import type { FolderConfig } from '../config/config.js';
import { HashQueue, type ReadGroup } from '../content/hash-queue.js';
import { messageOf, systemCode } from '../lib/errors.js';
import type { HealthCheck } from '../lib/health.js';
import type { ItemKey } from '../state/entries.js';
import { type FolderStatus, FolderWatch, type ScanReport } from './folder-watch.js';
import { DirectoryEvents, type EventListener, type FsEvents } from './fs-events.js';
import type { UnmountedPart } from './mounts.js';
import { WATCH_POLICY, type WatchDeps } from './reconciler.js';
import { Renames } from './renames.js';
import type { PathProblem } from './rules/problems.js';

export type { FolderStatus, PathProblem, ScanReport, UnmountedPart };

/** What may change while it watches. */
export interface WatchSettings {
  readonly folders: readonly FolderConfig[];
  /** Whether to watch for changes, or to find them by scans alone. */
  readonly hints: boolean;
  readonly rescanMs: number;
}

export interface WatcherOptions
  extends WatchSettings,
    Omit<WatchDeps, 'changed' | 'hashQueue' | 'policy' | 'renames'> {
  /** Reads small files. */
  readonly readGroup: ReadGroup;
  readonly policy?: Partial<WatchDeps['policy']>;
  /** Another source of fs events. */
  readonly openEvents?: (listener: EventListener) => FsEvents;
}

/**
 * So many fs events in one turn of the event loop may have been more: the system's queue holds
 * 16,384 and drops the rest without a word.
 */
const BURST = 10_000;
/** The changes of so many milliseconds go to the disk together. */
const COMMIT_MS = 50;
/** How soon a failed commit is tried again, in ms. */
const COMMIT_AGAIN_MS = 1_000;
/** How often is asked whether nothing is left to do, in ms. */
const IDLE_CHECK_MS = 20;

/**
 * Brings what changes in the folders into state: files at rest are read and become `pending`,
 * removed ones `gone`.
 *
 * It begins with a full scan of each folder, and scans again after a time and when fs events may
 * have been lost. In between it follows fs events. One watcher is started once and stopped once;
 * `watch` may change what it watches in between.
 */
export class Watcher {
  readonly #deps: WatchDeps;
  readonly #stopping = new AbortController();
  #folders: ReadonlyMap<string, FolderWatch>;
  #hints: boolean;
  #eventsThisTurn = 0;
  #saving: Promise<void> | undefined;
  /** Why the last commit failed, if it did. */
  #failure: unknown;

  constructor(private readonly options: WatcherOptions) {
    const { folders, hints, rescanMs, readGroup } = options;
    const policy = { ...WATCH_POLICY, ...options.policy, rescanMs };
    const hashQueue = new HashQueue(readGroup, policy.readers, policy.backpressureAt);
    const renames = new Renames(options.state, options.clock, options.log);
    this.#deps = { ...options, policy, hashQueue, renames, changed: () => this.#changed() };
    this.#hints = hints;
    this.#folders = new Map(folders.map((folder) => [folder.name, this.#open(folder)]));
  }

  /** Begins to watch; the first scan goes on in the background, see `idle`. */
  start(): void {
    for (const folder of this.#folders.values()) folder.start();
  }

  /**
   * Watches other folders, or in another way, from now on. A folder that is as before goes on
   * undisturbed; any other is let go, and one of that name begins anew with a scan. What still
   * waits for the disk of one that was let go concludes nothing any more, should that disk ever
   * answer.
   */
  watch({ folders, hints, rescanMs }: WatchSettings): void {
    if (this.#stopping.signal.aborted) return;
    const before = this.#folders;
    const isOther = hints !== this.#hints;
    this.#hints = hints;
    this.#deps.policy.rescanMs = rescanMs;
    const watches = folders.map((folder): [string, FolderWatch] => {
      const known = before.get(folder.name);
      const stays = !isOther && known !== undefined && isDeepStrictEqual(known.folder, folder);
      return [folder.name, stays ? known : this.#open(folder)];
    });
    this.#folders = new Map(watches);
    for (const [name, watch] of before) if (this.#folders.get(name) !== watch) void watch.stop();
    for (const [name, watch] of watches) if (before.get(name) !== watch) watch.start();
    this.#deps.onFolderStateChange?.();
  }

  /**
   * Scans all folders, or one, whatever directory stands in its place now. Unknown folders are left
   * out.
   */
  async rescan(folder?: string): Promise<readonly ScanReport[]> {
    const chosen = [...this.#folders].filter(([name]) => folder === undefined || name === folder);
    return await Promise.all(chosen.map(([, watch]) => watch.rescan(folder !== undefined)));
  }

  /** Scans a folder as it is. Nothing of an unknown one. */
  async scan(folder: string): Promise<void> {
    await this.#folders.get(folder)?.rescan();
  }

  /**
   * Looks at a path in its turn. @param isAsked whether it is read also when nothing says that it
   * changed
   */
  lookSoon({ folder, path }: ItemKey, isAsked = true): void {
    this.#folders.get(folder)?.deps.debouncer.look(path, isAsked);
  }

  /**
   * Resolves when no scan runs, nothing settles and nothing waits to be read: all that was seen is
   * in state and on disk.
   *
   * @throws whatever `commit` failed with, when what was seen could not be brought to the disk
   */
  async idle(): Promise<void> {
    const isSaving = () => this.#saving !== undefined && this.#failure === undefined;
    const isBusy = () => isSaving() || [...this.#folders.values()].some(({ busy }) => busy);
    while (!this.#stopping.signal.aborted && isBusy()) await this.#deps.clock.sleep(IDLE_CHECK_MS);
    if (this.#failure !== undefined) throw this.#failure;
  }

  /**
   * Whether the root of a folder is there, so that its files say something; undefined for one that
   * is not watched.
   */
  folderState(folder: string): 'there' | 'missing' | undefined {
    const root = this.#folders.get(folder)?.root;
    return root && (root.isThere ? 'there' : 'missing');
  }

  /** The path of a folder's root, links resolved; undefined for a folder that is not watched. */
  rootOf(folder: string): string | undefined {
    return this.#folders.get(folder)?.root.real;
  }

  /** The file systems, mounted below the roots of folders, that are away. */
  unmounted(): readonly UnmountedPart[] {
    return [...this.#folders.values()].flatMap(({ mounts }) => mounts.parts);
  }

  /** Whether a file is on a file system, mounted below the root of its folder, that is away. */
  isUnmounted({ folder, path }: ItemKey): boolean {
    return this.#folders.get(folder)?.mounts.isUnmounted(path) === true;
  }

  status(): readonly FolderStatus[] {
    return [...this.#folders.values()].map((folder) => folder.status());
  }

  /**
   * Paths that could not be looked at; a limit of the system is told by the status of its folder.
   */
  problems(): readonly PathProblem[] {
    const folders = [...this.#folders.values()];
    const all = folders.flatMap(({ deps, mounts }) => [...mounts.parts, ...deps.problems.list()]);
    return all.filter(({ failure }) => failure.code !== 'WATCH_LIMIT');
  }

  /** What must not stand still while it watches. */
  get health(): readonly HealthCheck[] {
    const ofFolders = [...this.#folders.values()].flatMap(({ deps }) => [
      deps.health,
      deps.opening,
    ]);
    return [this.#deps.hashQueue.health, ...ofFolders];
  }

  /** Ends everything, and commits what is in state. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#folders.values()].map((folder) => folder.stop()));
    this.#changed();
    await this.#saving;
  }

  #open(folder: FolderConfig): FolderWatch {
    const { openEvents = (listener) => new DirectoryEvents(listener, this.#deps.clock) } =
      this.options;
    const counted = (listener: EventListener) =>
      openEvents((directory, name) => {
        this.#countEvent();
        listener(directory, name);
      });
    return new FolderWatch(folder, this.#deps, this.#hints ? counted : undefined);
  }

  /**
   * All events that the system has are delivered in one turn of the event loop. So many that its
   * queue may have been full show that some were lost, however long the loop was held up; fewer
   * show that none was.
   */
  #countEvent(): void {
    if (this.#eventsThisTurn === 0) {
      setImmediate(() => {
        this.#eventsThisTurn = 0;
      });
    }
    this.#eventsThisTurn += 1;
    if (this.#eventsThisTurn !== BURST) return;
    const words =
      'Very many changes came at once, some may have been missed; all folders are scanned again.';
    this.#deps.log.info({}, words);
    void this.rescan();
  }

  #changed(): void {
    this.#saving ??= this.#saveSoon();
  }

  /**
   * What could not be written stays in state and is tried again: nobody else may commit for hours.
   */
  async #saveSoon(): Promise<void> {
    const { clock, log, state } = this.#deps;
    const { signal } = this.#stopping;
    do {
      await clock.sleep(this.#failure === undefined ? COMMIT_MS : COMMIT_AGAIN_MS, signal);
      try {
        await state.commit();
        this.#failure = undefined;
      } catch (error) {
        const words = `What changed on disk cannot be recorded: ${messageOf(error)}`;
        if (this.#failure === undefined) log.error({ code: systemCode(error) }, words);
        this.#failure = error;
      }
    } while (state.figures().unsaved > 0 && !signal.aborted);
    this.#saving = undefined;
  }
}
