import { isDeepStrictEqual } from 'node:util';
import type { FolderConfig } from '../config/config.js';
import type { Timer } from '../lib/clock.js';
import { messageOf, systemCode } from '../lib/errors.js';
import type { HealthCheck } from '../lib/health.js';
import type { Place } from '../state/entries.js';
import { type FolderStatus, FolderWatch, type ScanReport, type Standing } from './folder-watch.js';
import { DirectoryEvents, type EventListener, type FsEvents } from './fs-events.js';
import { type List, listHere } from './lister.js';
import { HashQueue, type ReadGroup, readGroupNow, WATCH_POLICY, type WatchDeps } from './reconciler.js';
import type { PathProblem } from './rules.js';

export type { FolderStatus, PathProblem, ScanReport };

/** What may change while it watches. */
export interface WatchSettings {
  readonly folders: readonly FolderConfig[];
  /** Whether to watch for changes, or to find them by scans alone. */
  readonly hints: boolean;
  readonly rescanMs: number;
}

export interface WatcherOptions
  extends WatchSettings,
    Pick<WatchDeps, 'state' | 'clock' | 'log' | 'accepts'> {
  /** Brings all changes of the state so far to the disk. */
  readonly commit: () => Promise<void>;
  /** Called when `standing` may say something else of a folder than before. */
  readonly onStanding?: () => void;
  /** Reads small files. @default in this thread */
  readonly readGroup?: ReadGroup;
  /** Lists directories. @default in this thread */
  readonly list?: List;
  readonly policy?: Partial<WatchDeps['policy']>;
  /** Another source of fs events. */
  readonly openEvents?: (listener: EventListener) => FsEvents;
}

/**
 * So many fs events in one turn of the event loop may have been more: the system's queue holds 16,384 and drops the rest
 * without a word.
 */
const BURST = 10_000;
/** What looks at a folder that is let go has so long to end, in ms. */
const LETTING_GO_MS = 10_000;
/** The changes of so many milliseconds go to the disk together. */
const COMMIT_MS = 50;
/** How often is asked whether nothing is left to do, in ms. */
const IDLE_CHECK_MS = 20;
/** How soon a failed commit is tried again, in ms. */
const COMMIT_AGAIN_MS = 5_000;

/**
 * Brings what changes in the folders into state: files at rest are read and become `pending`, removed ones `gone`.
 *
 * It begins with a full scan of each folder, and scans again after a time and when fs events may have been lost. In between
 * it follows fs events. One watcher is started once and stopped once; `watch` may change what it watches in between.
 */
export class Watcher {
  readonly #deps: WatchDeps;
  #folders: ReadonlyMap<string, FolderWatch>;
  #settings: WatchSettings;
  #stopped = false;
  #eventsThisTurn = 0;
  #isUnsaved = false;
  #saving: Timer | undefined;
  /** Why the last commit failed, if it did. */
  #failure: unknown;

  constructor(private readonly options: WatcherOptions) {
    const { state, clock, log, accepts, list = listHere, readGroup = readGroupNow } = options;
    const { folders, hints, rescanMs, onStanding = () => {} } = options;
    const policy = { ...WATCH_POLICY, ...options.policy, rescanMs };
    const changed = () => {
      this.#isUnsaved = true;
      if (this.#failure === undefined) this.#saveIn(COMMIT_MS);
    };
    const hashQueue = new HashQueue(policy, readGroup);
    this.#deps = { state, clock, log, accepts, list, hashQueue, changed, onStanding, policy };
    this.#settings = options;
    this.#folders = new Map(folders.map((folder) => [folder.name, this.#open(folder, hints)]));
  }

  /** Begins to watch; the first scan goes on in the background, see `idle`. */
  start(): void {
    for (const folder of this.#folders.values()) folder.start();
  }

  /**
   * Watches other folders, or in another way, from now on. A folder that is as before goes on undisturbed; any other is let go,
   * and one of that name begins anew with a scan. Resolves when nothing looks at what was let go any more, but for what waits
   * for a disk that does not answer.
   *
   * One after the other: to be asked for after `start`, and awaited before the next call and before `stop`.
   */
  async watch(settings: WatchSettings): Promise<void> {
    const before = this.#settings;
    const stays = (folder: FolderConfig) =>
      settings.hints === before.hints &&
      before.folders.some((known) => known.name === folder.name && isDeepStrictEqual(known, folder));
    const staying = new Set(settings.folders.filter(stays).map(({ name }) => name));
    const leaving = [...this.#folders].filter(([name]) => !staying.has(name));
    await Promise.all(leaving.map(([name, watch]) => this.#letGo(name, watch)));
    if (this.#stopped) return;
    this.#settings = settings;
    this.#deps.policy.rescanMs = settings.rescanMs;
    const folders = new Map<string, FolderWatch>();
    for (const folder of settings.folders) {
      const stayed = staying.has(folder.name) ? this.#folders.get(folder.name) : undefined;
      const watch = stayed ?? this.#open(folder, settings.hints);
      folders.set(folder.name, watch);
      if (stayed === undefined) watch.start();
    }
    this.#folders = folders;
    this.#deps.onStanding();
  }

  /** Scans all folders, or one, whatever directory stands in its place now. Unknown folders are left out. */
  async rescan(folder?: string): Promise<readonly ScanReport[]> {
    const chosen = [...this.#folders].filter(([name]) => folder === undefined || name === folder);
    return await Promise.all(chosen.map(([, watch]) => watch.rescan(folder !== undefined)));
  }

  /** Looks at a path in its turn, also when nothing says that it changed: what could not be read is tried again. */
  lookSoon({ folder, path }: Place): void {
    this.#folders.get(folder)?.look(path);
  }

  /**
   * Resolves when no scan runs, nothing settles and nothing waits to be read: all that was seen is in state and on disk.
   *
   * @throws whatever `commit` failed with, when what was seen could not be brought to the disk
   */
  async idle(): Promise<void> {
    const isBusy = () =>
      (this.#saving !== undefined && this.#failure === undefined) ||
      [...this.#folders.values()].some(({ busy }) => busy);
    while (!this.#stopped && isBusy()) await this.#deps.clock.sleep(IDLE_CHECK_MS);
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** How the root of a folder stands; undefined for one that is not watched, or not any more. */
  standing(folder: string): Standing | undefined {
    return this.#folders.get(folder)?.standing;
  }

  status(): readonly FolderStatus[] {
    return [...this.#folders.values()].map((folder) => folder.status());
  }

  problems(): readonly PathProblem[] {
    return [...this.#folders.values()].flatMap((folder) => folder.problems);
  }

  /** What must not stand still while it watches. */
  get health(): readonly HealthCheck[] {
    return [this.#deps.hashQueue.health, ...[...this.#folders.values()].map(({ health }) => health)];
  }

  /** Ends everything, and commits what is in state. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#folders.values()].map((folder) => folder.stop()));
    this.#saving?.cancel();
    await this.#save();
  }

  #open(folder: FolderConfig, hints: boolean): FolderWatch {
    const { openEvents = (listener) => new DirectoryEvents(listener) } = this.options;
    const counted = (listener: EventListener) =>
      openEvents((directory, name) => {
        this.#countEvent();
        listener(directory, name);
      });
    return new FolderWatch(folder, this.#deps, hints ? counted : undefined);
  }

  /** What looks at a disk that does not answer may never end; it ends by itself should the disk answer. */
  async #letGo(name: string, watch: FolderWatch): Promise<void> {
    const { clock, log } = this.#deps;
    const ended = new AbortController();
    const isOver = await Promise.race([
      watch.stop().then(() => true),
      clock.sleep(LETTING_GO_MS, ended.signal).then(() => false),
    ]).finally(() => ended.abort());
    if (!isOver)
      log.warn(
        { event: 'disk-silent', folder: name },
        `the folder ${name} is let go, though not all that looks at it has ended: its disk may not answer`,
      );
  }

  /**
   * All events that the system has are delivered in one turn of the event loop. So many that its queue may have been full
   * show that some were lost, however long the loop was held up; fewer show that none was.
   */
  #countEvent(): void {
    if (this.#eventsThisTurn === 0) {
      setImmediate(() => {
        this.#eventsThisTurn = 0;
      });
    }
    this.#eventsThisTurn += 1;
    if (this.#eventsThisTurn !== BURST) return;
    const words = 'Very many changes came at once, some may have been missed; all folders are scanned again.';
    this.#deps.log.info({}, words);
    void this.rescan();
  }

  #saveIn(ms: number): void {
    if (this.#stopped) return;
    this.#saving ??= this.#deps.clock.after(ms, async () => {
      await this.#save();
      this.#saving = undefined;
      if (this.#isUnsaved) this.#saveIn(this.#failure === undefined ? COMMIT_MS : COMMIT_AGAIN_MS);
    });
  }

  /** What could not be written stays in state and is tried again. */
  async #save(): Promise<void> {
    const { log } = this.#deps;
    this.#isUnsaved = false;
    try {
      await this.options.commit();
      if (this.#failure !== undefined) log.info({}, 'The state can be written again.');
      this.#failure = undefined;
    } catch (error) {
      this.#isUnsaved = true;
      const words = `What changed on disk cannot be recorded: ${messageOf(error)}`;
      if (this.#failure === undefined) log.error({ code: systemCode(error) }, words);
      this.#failure = error;
    }
  }
}
