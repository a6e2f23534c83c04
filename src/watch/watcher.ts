import { isDeepStrictEqual } from 'node:util';
import type { FolderConfig } from '../config/config.js';
import type { Clock, Timer } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { Duty } from '../lib/pulse.js';
import type { Place } from '../state/entries.js';
import { Commits } from './commits.js';
import { watcherDuties } from './duties.js';
import type { Accepts } from './findings.js';
import { FolderWatch } from './folder-watch.js';
import { HashQueue, type ReadGroup, readGroupNow } from './hash-queue.js';
import { ChokidarHints, type HintListener, type Hints } from './hints.js';
import { Looks } from './looks.js';
import type { PathProblem } from './problems.js';
import type { Standing } from './root-guard.js';
import type { FolderStatus, ScanReport } from './status.js';
import { WATCH_POLICY, type WatchPolicy } from './watch-policy.js';
import type { WatchState } from './watch-state.js';

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
  readonly policy?: Partial<WatchPolicy>;
  /** Another source of hints than chokidar. */
  readonly openHints?: (listener: HintListener) => Hints;
}

/** The timer of full scans is moved by up to this share, so that many daemons do not scan at once. */
const JITTER = 0.1;

/** What of a watcher's options may change while it watches. */
export type WatchSettings = Pick<WatcherOptions, 'folders' | 'hints' | 'rescanMs'>;

/**
 * Brings what changes in the folders into state: files at rest are read and become `pending`, removed ones `gone`.
 *
 * It begins with a full scan of each folder, and scans again on a timer, after a stall of the event loop and whenever
 * hints may have been lost. In between it follows hints. One watcher is started once and stopped once; `watch` may change
 * what it watches in between.
 */
export class Watcher {
  readonly #options: WatcherOptions;
  readonly #policy: WatchPolicy;
  readonly #onStanding: () => void;
  readonly #hashQueue: HashQueue;
  readonly #commits: Commits;
  readonly #open: (folder: FolderConfig, hints: boolean) => FolderWatch;
  #settings: WatchSettings;
  #folders: ReadonlyMap<string, FolderWatch>;
  readonly #looks: Looks;
  #started = false;
  #stopped = false;
  #rescanTimer: Timer | undefined;
  #rescanDueAt = Number.POSITIVE_INFINITY;
  #rescansPlanned = 0;
  #stallTimer: Timer | undefined;
  #hintsThisTurn = 0;
  #lastStallRescan = Number.NEGATIVE_INFINITY;
  /** The longest stall that no rescan has made up for. */
  #stoodStillMs: number | undefined;
  #waitsForQuiet: { resolve: () => void; reject: (error: unknown) => void }[] = [];

  constructor(options: WatcherOptions) {
    const { state, clock, log, accepts, onStanding = () => {} } = options;
    this.#options = options;
    this.#onStanding = onStanding;
    this.#policy = { ...WATCH_POLICY, ...options.policy };
    const onQuiet = () => this.#checkQuiet();
    this.#commits = new Commits({ commit: () => state.commit(), clock, log, onQuiet });
    this.#hashQueue = new HashQueue({
      readers: this.#policy.readers,
      readGroup: options.readGroup ?? readGroupNow,
      crowd: this.#policy.crowd,
      onQuiet,
      onError: (error, { folder, path }) => {
        log.error(
          { folder, path, err: error },
          `${folder}/${path} could not be taken up: ${messageOf(error)}`,
        );
      },
    });
    this.#looks = new Looks(({ folder, path }) => this.look(folder, path), log);
    const open = options.openHints ?? ((listener) => new ChokidarHints(listener));
    const openHints = (listener: HintListener) =>
      open((directory, name) => {
        this.#countHint();
        listener(directory, name);
      });
    const shared = {
      ...{ state, clock, log, accepts, onQuiet, onStanding },
      ...{ hashQueue: this.#hashQueue, commits: this.#commits, policy: this.#policy },
    };
    this.#open = (folder, hints) =>
      new FolderWatch({ ...shared, folder, openHints: hints ? openHints : undefined });
    const { folders, hints, rescanMs } = options;
    this.#settings = { folders, hints, rescanMs };
    this.#folders = new Map(folders.map((folder) => [folder.name, this.#open(folder, hints)]));
  }

  /** Begins to watch; the first scan goes on in the background, see `idle`. */
  async start(): Promise<void> {
    this.#started = true;
    for (const folder of this.#folders.values()) folder.start();
    this.#planRescan();
    this.#watchForStalls();
  }

  /**
   * Watches other folders, or in another way, from now on. A folder that is as before goes on undisturbed; any other is let go,
   * and one of that name begins anew with a scan. Resolves when nothing looks at what was let go any more.
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
    await Promise.all(leaving.map((watch) => watch.stop()));
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

  /** Looks at a path in its turn, for somebody who does not wait for it. */
  lookSoon(place: Place): void {
    this.#looks.add(place);
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
  get duties(): readonly Duty[] {
    const { clock } = this.#options;
    const folders = [...this.#folders.values()];
    return [
      ...folders.flatMap(({ duties }) => duties),
      ...watcherDuties({
        ...{ hashQueue: this.#hashQueue, commits: this.#commits, looks: this.#looks },
        steps: () => folders.reduce((sum, { steps }) => sum + steps, 0),
        isRescanOverdue: () => !this.#stopped && clock.monotonic() > this.#rescanDueAt,
        rescans: () => this.#rescansPlanned,
      }),
    ];
  }

  /** Ends everything, and commits what is in state. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#rescanTimer?.cancel();
    this.#stallTimer?.cancel();
    this.#hashQueue.stop();
    await this.#looks.stop();
    await Promise.all([...this.#folders.values()].map((folder) => folder.stop()));
    await this.#commits.stop();
    this.#checkQuiet();
  }

  #planRescan(): void {
    const { clock } = this.#options;
    this.#rescanTimer?.cancel();
    const moved = this.#settings.rescanMs * (1 + JITTER * (2 * Math.random() - 1));
    this.#rescanDueAt = clock.monotonic() + moved;
    this.#rescansPlanned += 1;
    this.#rescanTimer = clock.after(moved, () => {
      void this.rescan();
      this.#planRescan();
    });
  }

  /** While the event loop stands still the system's queue of events may overflow, and it does not say so. */
  #watchForStalls(): void {
    const { clock, log } = this.#options;
    const { stallCheckMs, stallMs, stallRescanGapMs } = this.#policy;
    const asked = clock.monotonic();
    this.#stallTimer = clock.after(stallCheckMs, () => {
      const late = clock.monotonic() - asked - stallCheckMs;
      if (late >= stallMs) this.#stoodStillMs = Math.max(this.#stoodStillMs ?? 0, late);
      // Too soon after the last it is made up for later.
      if (
        this.#settings.hints &&
        this.#stoodStillMs !== undefined &&
        clock.monotonic() - this.#lastStallRescan >= stallRescanGapMs
      ) {
        this.#lastStallRescan = clock.monotonic();
        const lateMs = Math.round(this.#stoodStillMs);
        this.#stoodStillMs = undefined;
        log.info({ lateMs }, 'The process stood still for a moment; all folders are scanned again.');
        void this.rescan();
      }
      this.#watchForStalls();
    });
  }

  /** All events that the system has are delivered in one turn of the event loop. */
  #countHint(): void {
    if (this.#hintsThisTurn === 0) {
      setImmediate(() => {
        this.#hintsThisTurn = 0;
      });
    }
    this.#hintsThisTurn += 1;
    if (this.#hintsThisTurn !== this.#policy.burst) return;
    this.#options.log.info(
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
