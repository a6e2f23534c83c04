import { isDeepStrictEqual } from 'node:util';
import type { FolderConfig } from '../config/config.js';
import type { Clock, Timer } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { HealthCheck } from '../lib/health.js';
import type { Logger } from '../lib/logger.js';
import type { Place } from '../state/entries.js';
import { Commits } from './commits.js';
import { type Accepts, WATCH_POLICY, type WatchPolicy } from './deps.js';
import { type FolderStatus, FolderWatch, type ScanReport } from './folder-watch.js';
import { DirectoryEvents, type EventListener, type FsEvents } from './fs-events.js';
import { HashQueue, type ReadGroup, readGroupNow } from './hash-queue.js';
import { type Lister, listHere } from './lister.js';
import type { PathProblem } from './problems.js';
import type { Standing, WatchState } from './root.js';

export type { FolderStatus, PathProblem, ScanReport };

export interface WatcherOptions {
  readonly folders: readonly FolderConfig[];
  readonly state: WatchState;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether the peer can take text in an encoding: nothing, or why it cannot. Depends on the encoding alone. */
  readonly accepts: Accepts;
  /** Whether to watch for changes, or to find them by scans alone. */
  readonly hints: boolean;
  /** Milliseconds between two full scans of every folder. */
  readonly rescanMs: number;
  /** Called when `standing` may say something else of a folder than before. */
  readonly onStanding?: () => void;
  /** Reads small files. @default in this thread */
  readonly readGroup?: ReadGroup;
  /** Lists directories. @default in this thread */
  readonly lister?: Lister;
  readonly policy?: Partial<WatchPolicy>;
  /** Another source of fs events. */
  readonly openEvents?: (listener: EventListener) => FsEvents;
}

/** The timer of full scans is moved by up to this share, so that many daemons do not scan at once. */
const JITTER = 0.1;
/** What looks at a folder that is let go has so long to end, in ms. */
const LETTING_GO_MS = 10_000;

/** What of a watcher's options may change while it watches. */
export type WatchSettings = Pick<WatcherOptions, 'folders' | 'hints' | 'rescanMs'>;

/**
 * Brings what changes in the folders into state: files at rest are read and become `pending`, removed ones `gone`.
 *
 * It begins with a full scan of each folder, and scans again on a timer and when fs events may have been lost. In between
 * it follows fs events. One watcher is started once and stopped once; `watch` may change what it watches in between.
 */
export class Watcher {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #policy: WatchPolicy;
  readonly #onStanding: () => void;
  readonly #hashQueue: HashQueue;
  readonly #commits: Commits;
  readonly #open: (folder: FolderConfig, hints: boolean) => FolderWatch;
  #settings: WatchSettings;
  #folders: ReadonlyMap<string, FolderWatch>;
  #started = false;
  #stopped = false;
  #rescanTimer: Timer | undefined;
  #eventsThisTurn = 0;
  #waitsForQuiet: { resolve: () => void; reject: (error: unknown) => void }[] = [];

  constructor(options: WatcherOptions) {
    const { state, clock, log, accepts, onStanding = () => {}, lister = listHere } = options;
    const { readGroup = readGroupNow, openEvents = (listener) => new DirectoryEvents(listener) } = options;
    this.#clock = clock;
    this.#log = log;
    this.#onStanding = onStanding;
    this.#policy = { ...WATCH_POLICY, ...options.policy };
    const onQuiet = () => this.#checkQuiet();
    this.#commits = new Commits({ commit: () => state.commit(), clock, log, onQuiet });
    this.#hashQueue = new HashQueue({
      ...{ readers: this.#policy.readers, crowd: this.#policy.crowd, readGroup, onQuiet },
      onError: (error, { folder, path }) => {
        log.error(
          { folder, path, err: error },
          `${folder}/${path} could not be taken up: ${messageOf(error)}`,
        );
      },
    });
    const counted = (listener: EventListener) =>
      openEvents((directory, name) => {
        this.#countEvent();
        listener(directory, name);
      });
    const deps = {
      ...{ state, clock, log, accepts, lister, onQuiet, onStanding },
      ...{ hashQueue: this.#hashQueue, commits: this.#commits, policy: this.#policy },
    };
    this.#open = (folder, hints) => new FolderWatch(folder, deps, hints ? counted : undefined);
    const { folders, hints, rescanMs } = options;
    this.#settings = { folders, hints, rescanMs };
    this.#folders = new Map(folders.map((folder) => [folder.name, this.#open(folder, hints)]));
  }

  /** Begins to watch; the first scan goes on in the background, see `idle`. */
  async start(): Promise<void> {
    this.#started = true;
    for (const folder of this.#folders.values()) folder.start();
    this.#planRescan();
  }

  /**
   * Watches other folders, or in another way, from now on. A folder that is as before goes on undisturbed; any other is let go,
   * and one of that name begins anew with a scan. Resolves when nothing looks at what was let go any more, but for what waits
   * for a disk that does not answer.
   *
   * One after the other: to be awaited before the next call, and before `stop`.
   */
  async watch(settings: WatchSettings): Promise<void> {
    const before = this.#settings;
    const known = new Map(before.folders.map((folder) => [folder.name, folder]));
    const stays = (folder: FolderConfig) =>
      settings.hints === before.hints && isDeepStrictEqual(known.get(folder.name), folder);
    const staying = new Set(settings.folders.filter(stays).map(({ name }) => name));
    const leaving = [...this.#folders].filter(([name]) => !staying.has(name)).map(([, watch]) => watch);
    await Promise.all(leaving.map((watch) => this.#letGo(watch)));
    if (this.#stopped) return;
    const added: FolderWatch[] = [];
    const open = (folder: FolderConfig) => {
      const watch = this.#open(folder, settings.hints);
      added.push(watch);
      return watch;
    };
    this.#settings = settings;
    this.#folders = new Map(
      settings.folders.map((folder) => {
        const stayed = staying.has(folder.name) ? this.#folders.get(folder.name) : undefined;
        return [folder.name, stayed ?? open(folder)];
      }),
    );
    if (this.#started) {
      for (const watch of added) watch.start();
      if (settings.rescanMs !== before.rescanMs) this.#planRescan();
    }
    this.#onStanding();
    this.#checkQuiet();
  }

  /** What looks at a disk that does not answer may never end; it ends by itself should the disk answer. */
  async #letGo(watch: FolderWatch): Promise<void> {
    const clock = this.#clock;
    const log = this.#log;
    const { name } = watch.status();
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

  /** Scans a folder, or only a directory in it (relative), or all folders. Unknown folders are left out. */
  async rescan(folder?: string, directory?: string): Promise<readonly ScanReport[]> {
    const chosen = [...this.#folders].filter(([name]) => folder === undefined || name === folder);
    return await Promise.all(
      chosen.map(([, watch]) =>
        directory === undefined || directory === '' ? watch.rescan() : watch.rescanBelow(directory),
      ),
    );
  }

  /** Looks at one path of a folder, also when nothing says that it changed: what could not be read is tried again. */
  async look(folder: string, path: string): Promise<void> {
    await this.#folders.get(folder)?.look(path);
  }

  /** Looks at a path in its turn, for a caller that does not wait. */
  lookSoon({ folder, path }: Place): void {
    this.#folders.get(folder)?.lookSoon(path);
  }

  /**
   * Resolves when no scan runs, nothing settles and nothing waits to be read: all that was seen is in state and on disk.
   *
   * @throws whatever `commit` of state failed with, when what was seen could not be brought to the disk
   */
  idle(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waitsForQuiet.push({ resolve, reject });
      this.#checkQuiet();
    });
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
    return [this.#hashQueue.health, ...[...this.#folders.values()].flatMap(({ health }) => health)];
  }

  /** Ends everything, and commits what is in state. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#rescanTimer?.cancel();
    this.#hashQueue.stop();
    await Promise.all([...this.#folders.values()].map((folder) => folder.stop()));
    await this.#commits.stop();
    this.#checkQuiet();
  }

  #planRescan(): void {
    this.#rescanTimer?.cancel();
    const moved = this.#settings.rescanMs * (1 + JITTER * (2 * Math.random() - 1));
    this.#rescanTimer = this.#clock.after(moved, () => {
      void this.rescan();
      this.#planRescan();
    });
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
    if (this.#eventsThisTurn !== this.#policy.burst) return;
    this.#log.info(
      {},
      'Very many changes came at once, some may have been missed; all folders are scanned again.',
    );
    void this.rescan();
  }

  #checkQuiet(): void {
    if (this.#waitsForQuiet.length === 0) return;
    if (this.#hashQueue.size > 0 || this.#commits.busy) return;
    for (const folder of this.#folders.values()) if (folder.busy) return;
    const waiting = this.#waitsForQuiet;
    this.#waitsForQuiet = [];
    const { failure } = this.#commits;
    for (const { resolve, reject } of waiting) {
      if (failure === undefined) resolve();
      else reject(failure);
    }
  }
}
