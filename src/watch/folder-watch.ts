import type { FolderConfig } from '../config/config.js';
import type { Timer } from '../lib/clock.js';
import { ENCODINGS } from '../lib/encodings.js';
import { messageOf } from '../lib/errors.js';
import { HealthCheck } from '../lib/health.js';
import type { Trouble } from '../state/entry.js';
import { Debouncer } from './debouncer.js';
import type { FolderDeps, WatchDeps } from './deps.js';
import type { EventListener, FsEvents } from './fs-events.js';
import { type PathProblem, Problems } from './problems.js';
import { Reconciler } from './reconciler.js';
import { LONGEST_STEP_MS, Root, RootGuard, type Standing } from './root.js';
import { FolderRules } from './rules.js';
import { type Met, Scanner } from './scanner.js';
import { trouble } from './trouble.js';

/** What a scan met; `directory` is where it began, `''` the whole folder. */
export interface ScanReport {
  readonly folder: string;
  readonly directory: string;
  readonly files: number;
  readonly directories: number;
  readonly durationMs: number;
}

/** What a folder's watch is doing. Times are ms since the epoch. */
export interface FolderStatus {
  readonly name: string;
  /**
   * `scanning` and `watching` speak for themselves; `unwatched`: fs events are turned off; `held`: the root is missing or
   * doubtful; `degraded`: the system's watch limit is reached, changes are found by rescans; `stopped`.
   */
  readonly state: 'scanning' | 'watching' | 'unwatched' | 'held' | 'degraded' | 'stopped';
  readonly since: number;
  readonly trouble?: Trouble;
  readonly lastScan?: ScanReport & { readonly at: number };
  readonly directoriesWatched: number;
  /** Files that were written a moment ago and are waited for. */
  readonly settling: number;
  /** Paths that could not be looked at, besides those that are named; only where there are too many. */
  readonly unnamedProblems?: number;
}

const NOTHING_MET: Met = { files: 0, directories: 0 };
/** The system's codes for a limit of watches that is reached. */
const LIMITS = new Set(['ENOSPC', 'EMFILE', 'ENFILE', 'ENOMEM']);

/**
 * Watches one folder.
 *
 * - *Scanning*: a full scan runs; fs events are followed meanwhile. Then *watching*: fs events say where to look, and the
 *   files that were written a moment ago settle.
 * - *Held*: the root is missing or doubtful, see RootGuard. A full scan follows when it is back.
 * - *Degraded*, entered when a limit of the system keeps directories from being watched: the folder is scanned every so
 *   often, until a full scan has watched all that it met.
 * - *Stopped*: for good.
 */
export class FolderWatch {
  readonly #health: HealthCheck;
  readonly #folder: FolderConfig;
  readonly #deps: WatchDeps;
  readonly #events: FsEvents | undefined;
  readonly #root: Root;
  readonly #guard: RootGuard;
  readonly #debouncer: Debouncer;
  readonly #problems: Problems;
  readonly #reconciler: Reconciler;
  readonly #scanner: Scanner;
  #scanning: Promise<ScanReport> | undefined;
  #queued: Promise<ScanReport> | undefined;
  #lastScan: FolderStatus['lastScan'];
  #scannedFrom: number | undefined;
  /** What the peer refused at the last scan: what it takes decides what is to be read. */
  #refused = '';
  #degraded: Trouble | undefined;
  /** Whether the present scan met a directory that a limit keeps from being watched. */
  #isOverLimit = false;
  #degradedTimer: Timer | undefined;
  /** Looks that a caller waits for. */
  readonly #looks = new Set<Promise<unknown>>();
  #stopped = false;
  #state: FolderStatus['state'] = 'scanning';
  #since: number;

  /** @param openEvents undefined where changes are to be found by scans alone */
  constructor(
    folder: FolderConfig,
    deps: WatchDeps,
    openEvents: ((listener: EventListener) => FsEvents) | undefined,
  ) {
    const { state, clock, log, policy } = deps;
    this.#folder = folder;
    this.#deps = deps;
    this.#since = clock.now();
    this.#health = new HealthCheck(`folder ${folder.name}`, `the scan of ${folder.name} does not go on`, {
      limitMs: LONGEST_STEP_MS,
      busy: () => this.#isLooking,
    });
    this.#events = openEvents?.((directory, name) => this.#onEvent(directory, name));
    this.#root = new Root(folder, state);
    this.#guard = new RootGuard({
      ...{ folder, clock, log, root: this.#root, intervalMs: policy.rootCheckMs },
      onChanged: () => {
        this.#scanner.reopenAll();
        void this.rescan();
      },
      onRemembered: () => deps.commits.changed(),
      onMissing: () => this.#letGo(),
      onStanding: deps.onStanding,
    });
    this.#problems = new Problems(folder.name, clock, log);
    this.#debouncer = new Debouncer({
      ...{ name: folder.name, settleMs: folder.settle, clock },
      ...{ gatherMs: policy.gatherMs, looksAtOnce: policy.looksAtOnce },
      lookAt: async (path, purpose, seen) => {
        if (this.#mayLook()) await this.#scanner.path(path, purpose, seen);
      },
      lookIn: async (directory) => {
        if (this.#mayLook()) await this.#scanner.directory(directory);
      },
      onError: (error, path) => {
        this.#failed(`Looking at ${path}`, error);
        void this.rescan();
      },
      onQuiet: () => this.#quiet(),
    });
    const shared: FolderDeps = {
      ...{ ...deps, folder, root: this.#root, rules: new FolderRules(folder), debouncer: this.#debouncer },
      problems: this.#problems,
      events: this.#events,
    };
    this.#reconciler = new Reconciler(shared, {
      scannedFrom: () => this.#scannedFrom,
      onOpen: (path) => this.#scanner.reopen(path),
    });
    this.#scanner = new Scanner(shared, this.#reconciler, {
      onUnwatched: (code) => this.#unwatched(code),
      onRootUnseen: () => this.#guard.wasUnseen(),
      isStopped: () => !this.#mayLook(),
      onStep: () => this.#health.progress(),
    });
  }

  get health(): readonly HealthCheck[] {
    return [this.#health, this.#guard.health];
  }

  /** Whether something is being looked at, waited for, or due to be. */
  get busy(): boolean {
    if (this.#stopped) return false;
    return this.#scanning !== undefined || this.#queued !== undefined || this.#debouncer.busy;
  }

  /** How the root stands. */
  get standing(): Standing {
    return this.#guard.standing;
  }

  get problems(): readonly PathProblem[] {
    return this.#problems.list();
  }

  status(): FolderStatus {
    const why = this.#guard.held ?? this.#degraded;
    return {
      name: this.#folder.name,
      state: this.#state,
      since: this.#since,
      ...(why === undefined ? {} : { trouble: why }),
      ...(this.#lastScan === undefined ? {} : { lastScan: this.#lastScan }),
      directoriesWatched: this.#events?.watched ?? 0,
      settling: this.#debouncer.settling,
      ...(this.#problems.unnamed === 0 ? {} : { unnamedProblems: this.#problems.unnamed }),
    };
  }

  start(): void {
    void this.rescan();
    this.#guard.start();
  }

  /** Scans the whole folder; a scan that waits for the running one to end is shared. Never rejects. */
  rescan(): Promise<ScanReport> {
    if (this.#queued !== undefined) return this.#queued;
    if (this.#scanning === undefined) {
      this.#scanning = this.#scan();
      return this.#scanning;
    }
    this.#queued = this.#scanning.then(() => {
      this.#queued = undefined;
      this.#scanning = this.#scan();
      return this.#scanning;
    });
    return this.#queued;
  }

  /** Scans one directory and all below it. */
  async rescanBelow(directory: string): Promise<ScanReport> {
    const { clock } = this.#deps;
    const started = clock.now();
    const met = await this.#unlessAway(() => this.#scanner.tree(directory, 'rescan'));
    const durationMs = clock.now() - started;
    return { folder: this.#folder.name, directory, ...(met ?? NOTHING_MET), durationMs };
  }

  /** Looks at one path and reads it, also when nothing says that it changed. */
  async look(path: string): Promise<void> {
    await this.#unlessAway(() => this.#scanner.path(path, 'asked'));
  }

  /** The same in its turn, for a caller that does not wait. */
  lookSoon(path: string): void {
    this.#debouncer.look(path, 'asked');
  }

  /** Resolves when nothing of this watch is looked at or read any more: another one may take the folder over. */
  async stop(): Promise<void> {
    const { hashQueue } = this.#deps;
    this.#stopped = true;
    this.#degradedTimer?.cancel();
    this.#guard.stop();
    this.#become('stopped');
    // A scan may wait for room among the files that wait to be read.
    hashQueue.forget(this.#folder.name);
    await Promise.all([this.#events?.close(), this.#debouncer.stop(), this.#queued ?? this.#scanning]);
    await Promise.allSettled(this.#looks);
    hashQueue.forget(this.#folder.name);
  }

  #mayLook(): boolean {
    return !this.#stopped && !this.#guard.missing;
  }

  /** Does what was asked for if the root is there. */
  async #unlessAway<T>(work: () => Promise<T>): Promise<T | undefined> {
    const looking = this.#guard.follow().then(async () => {
      await this.#reconciler.ready();
      return this.#mayLook() ? await work() : undefined;
    });
    this.#looks.add(looking);
    try {
      return await looking;
    } finally {
      this.#looks.delete(looking);
    }
  }

  async #scan(): Promise<ScanReport> {
    const { clock, log, accepts } = this.#deps;
    const { name } = this.#folder;
    const began = clock.now();
    let met = NOTHING_MET;
    try {
      await this.#reconciler.ready();
      await this.#guard.check();
      this.#update();
      if (this.#mayLook()) {
        const refused = JSON.stringify(ENCODINGS.map((encoding) => accepts(encoding)?.message));
        if (refused !== this.#refused) this.#scanner.reopenAll();
        this.#refused = refused;
        this.#isOverLimit = false;
        this.#problems.beginScan();
        met = await this.#scanner.tree('', 'rescan');
        this.#problems.endScan();
        if (this.#mayLook()) this.#scannedFrom = began;
        if (!this.#guard.missing && !this.#isOverLimit) this.#allWatched();
      }
    } catch (error) {
      this.#failed('The scan', error);
    }
    const report = { folder: name, directory: '', ...met, durationMs: clock.now() - began };
    this.#lastScan = { ...report, at: clock.now() };
    this.#scanning = undefined;
    log.debug(report, `Scanned ${name}: ${met.files} files in ${met.directories} directories.`);
    this.#update();
    this.#quiet();
    return report;
  }

  #onEvent(directory: string, name: string | undefined): void {
    if (!this.#mayLook()) return;
    const root = this.#root.real;
    if (directory === root) {
      if (name === undefined) void this.#guard.follow();
      this.#debouncer.changed('', name);
    } else if (directory.startsWith(`${root}/`)) {
      this.#debouncer.changed(directory.slice(root.length + 1), name);
    }
  }

  /** The root went away: there is nothing to wait for, and no watch of it lives. */
  #letGo(): void {
    this.#debouncer.clear();
    this.#events?.unwatch(this.#root.real);
    this.#update();
    this.#quiet();
  }

  /** Any code but those of a limit (EACCES) is met, and reported, by the listing that follows. */
  #unwatched(code: string): void {
    if (!LIMITS.has(code)) return;
    this.#isOverLimit = true;
    if (this.#degraded !== undefined || this.#stopped) return;
    const { log, clock, policy } = this.#deps;
    const { name } = this.#folder;
    this.#degraded = trouble.watchLimit(code);
    log.error({ folder: name, code }, `${name}: ${this.#degraded.message} ${this.#degraded.hint}`);
    const rescanIn = (ms: number) => {
      this.#degradedTimer = clock.after(ms, () => {
        void this.rescan();
        rescanIn(ms);
      });
    };
    rescanIn(policy.degradedRescanMs);
  }

  #allWatched(): void {
    if (this.#degraded === undefined) return;
    this.#degraded = undefined;
    this.#degradedTimer?.cancel();
    const { name } = this.#folder;
    this.#deps.log.info({ folder: name }, `${name}: all directories are watched again.`);
  }

  #failed(what: string, error: unknown): void {
    const { name } = this.#folder;
    this.#deps.log.error({ folder: name, err: error }, `${what} in ${name} failed: ${messageOf(error)}`);
  }

  /** Whether anything is being looked at; where too many files wait to be read, it waits for them. */
  get #isLooking(): boolean {
    if (this.#stopped || this.#deps.hashQueue.isCrowded) return false;
    const isScanning = this.#scanning !== undefined || this.#queued !== undefined;
    return isScanning || this.#looks.size > 0 || this.#debouncer.isLooking;
  }

  #update(): void {
    if (this.#stopped) return;
    if (this.#guard.held !== undefined) this.#become('held');
    else if (this.#degraded !== undefined) this.#become('degraded');
    else if (this.#scanning !== undefined || this.#lastScan === undefined) this.#become('scanning');
    else this.#become(this.#events === undefined ? 'unwatched' : 'watching');
  }

  #become(state: FolderStatus['state']): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#since = this.#deps.clock.now();
  }

  #quiet(): void {
    if (!this.busy) this.#deps.onQuiet();
  }
}
