import { isDeepStrictEqual } from 'node:util';
import type { FolderConfig } from '../config/config.js';
import { HashQueue, type ReadGroup } from '../content/hash-queue.js';
import type { HealthCheck } from '../lib/health.js';
import type { ItemKey } from '../state/entries.js';
import { Committer } from './committer.js';
import type { ReadMode } from './debouncer.js';
import { WATCH_POLICY, type WatchDeps } from './deps.js';
import type { OpenEvents } from './folder-deps.js';
import { type FolderStatus, FolderWatch } from './folder-watch.js';
import { DirectoryEvents, type EventListener, maxByChokidar } from './fs-events.js';
import type { UnmountedPart } from './mounts.js';
import { Renames } from './renames.js';
import type { PathProblem } from './rules/problems.js';
import type { ScanReport } from './scan-queue.js';

export type { FolderStatus, PathProblem, ScanReport, UnmountedPart };

/** The settings that may change while the watcher runs. */
export interface WatchSettings {
  readonly folders: readonly FolderConfig[];
  /** Whether fs events are followed. If not, changes are found by scans alone. */
  readonly hints: boolean;
  readonly rescanMs: number;
}

export interface WatcherOptions
  extends WatchSettings,
    Omit<WatchDeps, 'committer' | 'hashQueue' | 'policy' | 'renames'> {
  /** Reads small files. */
  readonly readGroup: ReadGroup;
  readonly policy?: Partial<WatchDeps['policy']>;
  /** Opens another source of fs events. @default DirectoryEvents */
  readonly openEvents?: OpenEvents;
}

/**
 * Number of fs events in one turn of the event loop that may be the rest of even more. The queue of
 * the system holds 16,384 and drops the others silently.
 */
const BURST = 10_000;
/** Time between two checks of whether work is left, in ms. */
const IDLE_CHECK_MS = 20;

/**
 * Brings the changes in the folders into state: files at rest are read and become `pending`,
 * removed ones become `gone`.
 *
 * Each folder is scanned completely at the start, then after a time, and when fs events may have
 * been lost. In between, fs events are followed. A watcher is started once and stopped once.
 * `configure` changes what it watches in between.
 */
export class Watcher {
  readonly #deps: WatchDeps;
  readonly #openEvents: OpenEvents;
  readonly #stopping = new AbortController();
  #folders: ReadonlyMap<string, FolderWatch>;
  #hints: boolean;
  #eventsThisTurn = 0;

  constructor(options: WatcherOptions) {
    const { clock, folders, hints, log, readGroup, rescanMs, state } = options;
    const policy = { ...WATCH_POLICY, ...options.policy, rescanMs };
    this.#deps = {
      ...options,
      policy,
      hashQueue: new HashQueue(readGroup, policy.readers, policy.backpressureAt),
      renames: new Renames(state, clock, log),
      committer: new Committer(state, clock, log),
    };
    this.#openEvents =
      options.openEvents ??
      ((listener, directories) => new DirectoryEvents(listener, clock, maxByChokidar(directories)));
    this.#hints = hints;
    this.#folders = new Map(folders.map((folder) => [folder.name, this.#open(folder)]));
  }

  /** Begins to watch. The first scan goes on in the background, see `idle`. */
  start(): void {
    for (const folder of this.#folders.values()) folder.start();
  }

  /**
   * Changes the settings. An unchanged folder goes on undisturbed. Any other is stopped, and a new
   * watch of the same name begins with a scan. A stopped watch whose disk does not answer concludes
   * nothing, even if the disk answers later.
   */
  configure({ folders, hints, rescanMs }: WatchSettings): void {
    if (this.#stopping.signal.aborted) return;
    const before = this.#folders;
    const areHintsChanged = hints !== this.#hints;
    this.#hints = hints;
    this.#deps.policy.rescanMs = rescanMs;
    const watches = folders.map((folder): [string, FolderWatch] => {
      const known = before.get(folder.name);
      const stays =
        !areHintsChanged && known !== undefined && isDeepStrictEqual(known.folder, folder);
      return [folder.name, stays ? known : this.#open(folder)];
    });
    this.#folders = new Map(watches);
    for (const [name, watch] of before) if (this.#folders.get(name) !== watch) void watch.stop();
    for (const [name, watch] of watches) if (before.get(name) !== watch) watch.start();
    this.#deps.onFolderStateChange?.();
  }

  /** Scans all folders. */
  async scanAll(): Promise<readonly ScanReport[]> {
    return await Promise.all([...this.#folders.values()].map((watch) => watch.rescan()));
  }

  /** Scans one folder, and accepts the directory that is at its path now. */
  async scanAcceptingRoot(folder: string): Promise<readonly ScanReport[]> {
    const watch = this.#folders.get(folder);
    return watch === undefined ? [] : [await watch.rescanAnyRoot()];
  }

  /** Scans a folder. Does nothing if it is unknown. */
  async scan(folder: string): Promise<void> {
    await this.#folders.get(folder)?.rescan();
  }

  /** Looks at a path in its turn. */
  lookSoon({ folder, path }: ItemKey, read: ReadMode = 'always'): void {
    this.#folders.get(folder)?.lookSoon(path, read);
  }

  /**
   * Resolves when no scan runs, nothing settles and nothing waits to be read. Everything that was
   * seen is then in state and on disk.
   *
   * @throws the error of the commit, if it failed
   */
  async idle(): Promise<void> {
    const { clock, committer } = this.#deps;
    const isBusy = () => committer.busy || [...this.#folders.values()].some(({ busy }) => busy);
    while (!this.#stopping.signal.aborted && isBusy()) await clock.sleep(IDLE_CHECK_MS);
    if (committer.failure !== undefined) throw committer.failure;
  }

  /**
   * Whether the root of a folder is there, so that its files mean something; undefined for a folder
   * that is not watched.
   */
  folderState(folder: string): 'there' | 'missing' | undefined {
    const watch = this.#folders.get(folder);
    if (watch === undefined) return undefined;
    return watch.isThere ? 'there' : 'missing';
  }

  /** The path of a folder's root, links resolved; undefined for a folder that is not watched. */
  rootOf(folder: string): string | undefined {
    return this.#folders.get(folder)?.realPath;
  }

  /** The file systems, mounted below the roots of folders, that are away. */
  unmounted(): readonly UnmountedPart[] {
    return [...this.#folders.values()].flatMap(({ unmounted }) => unmounted);
  }

  /** Whether a file is on a file system, mounted below the root of its folder, that is away. */
  isUnmounted({ folder, path }: ItemKey): boolean {
    return this.#folders.get(folder)?.isUnmounted(path) === true;
  }

  status(): readonly FolderStatus[] {
    return [...this.#folders.values()].map((folder) => folder.status());
  }

  /** Paths that could not be looked at. The limit of watches is part of `status` instead. */
  problems(): readonly PathProblem[] {
    const all = [...this.#folders.values()].flatMap(({ problems }) => problems);
    return all.filter(({ failure }) => failure.code !== 'WATCH_LIMIT');
  }

  /** The health checks of everything that must not stop while the watcher runs. */
  get health(): readonly HealthCheck[] {
    const ofFolders = [...this.#folders.values()].flatMap(({ health }) => health);
    return [this.#deps.hashQueue.health, ...ofFolders];
  }

  /** Stops all watches, and commits the state. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#folders.values()].map((folder) => folder.stop()));
    await this.#deps.committer.stop();
  }

  #open(folder: FolderConfig): FolderWatch {
    const openEvents: OpenEvents = (listener, directories) =>
      this.#openEvents(this.#counted(listener), directories);
    return new FolderWatch(folder, this.#deps, this.#hints ? openEvents : undefined);
  }

  #counted(listener: EventListener): EventListener {
    return (directory, name) => {
      this.#countEvent();
      listener(directory, name);
    };
  }

  /**
   * Counts the fs events of one turn of the event loop, in which all events that the system has are
   * delivered. If there are so many that its queue may have been full, some were lost. If there are
   * fewer, none was, however long the event loop was blocked.
   */
  #countEvent(): void {
    if (this.#eventsThisTurn === 0) {
      setImmediate(() => {
        this.#eventsThisTurn = 0;
      });
    }
    this.#eventsThisTurn += 1;
    if (this.#eventsThisTurn !== BURST) return;
    this.#deps.log.info(
      {},
      'Very many changes came at once, and some may have been missed. All folders are scanned again.',
    );
    void this.scanAll();
  }
}
