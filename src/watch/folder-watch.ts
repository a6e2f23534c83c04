import type { FolderConfig } from '../config/config.js';
import type { Timer } from '../lib/clock.js';
import { ENCODINGS } from '../lib/encodings.js';
import { messageOf } from '../lib/errors.js';
import { HealthCheck } from '../lib/health.js';
import type { Trouble } from '../state/entry.js';
import { Debouncer } from './debouncer.js';
import type { EventListener, FsEvents } from './fs-events.js';
import { type PathProblem, Problems, trouble } from './problems.js';
import { type FolderDeps, Reconciler, type WatchDeps } from './reconciler.js';
import { Root, type Standing } from './root.js';
import { FolderRules } from './rules.js';
import { Scanner } from './scanner.js';

/** What a scan met. */
export interface ScanReport {
  readonly folder: string;
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

export interface FolderWatchOptions {
  readonly deps: WatchDeps;
  /** Undefined where changes are to be found by scans alone. */
  readonly openEvents: ((listener: EventListener) => FsEvents) | undefined;
  /** How often the root is checked, in ms. */
  readonly rootCheckMs: number;
  /** How often the folder is scanned, and how often while it cannot be watched, in ms. */
  readonly rescanMs: () => number;
  readonly degradedRescanMs: number;
  /** Called when the root stands otherwise than before. */
  readonly onStanding: () => void;
}

/** Scans are moved by up to this share of their interval, so that many daemons do not scan at once. */
const JITTER = 0.1;
/** One step of a look: a disk that is far away may take long for it. In ms. */
const LONGEST_STEP_MS = 15 * 60_000;
/** The system's codes for a limit of watches that is reached. */
const LIMITS = new Set(['ENOSPC', 'EMFILE', 'ENFILE', 'ENOMEM']);

/**
 * Watches one folder.
 *
 * - *Scanning*: a full scan runs; fs events are followed meanwhile. Then *watching*: fs events say where to look, and the
 *   files that were written a moment ago settle. Every few seconds the root is checked, and after a time everything is
 *   scanned again.
 * - *Held*: the root is missing or doubtful, see Root. A full scan follows when it is back.
 * - *Degraded*, entered when a limit of the system keeps directories from being watched: the folder is scanned more often,
 *   until a full scan has watched all that it met.
 * - *Stopped*: for good.
 */
export class FolderWatch {
  readonly #folder: FolderConfig;
  readonly #options: FolderWatchOptions;
  readonly #deps: FolderDeps;
  readonly #rootHealth: HealthCheck;
  readonly #reconciler: Reconciler;
  readonly #scanner: Scanner;
  readonly #stopped = new AbortController();
  readonly #jitter = 1 + JITTER * (2 * Math.random() - 1);
  #scanning: Promise<ScanReport> | undefined;
  #queued: Promise<ScanReport> | undefined;
  #lastScan: FolderStatus['lastScan'];
  /** What the peer refused at the last scan: what it takes decides what is to be read. */
  #refused = '';
  #degraded: Trouble | undefined;
  /** Whether the present scan met a directory that a limit keeps from being watched. */
  #isOverLimit = false;
  /** Whether the last scan saw nothing, though the root was there a moment before. */
  #isScanDue = false;
  #timer: Timer | undefined;
  #state: FolderStatus['state'] = 'scanning';
  #since: number;

  constructor(folder: FolderConfig, options: FolderWatchOptions) {
    const { clock, log, state } = options.deps;
    const { name } = folder;
    this.#folder = folder;
    const limitMs = LONGEST_STEP_MS;
    this.#rootHealth = new HealthCheck(`root ${name}`, `the folder ${name} is not checked`, { limitMs });
    this.#options = options;
    this.#since = clock.now();
    const ifThere = async (look: () => Promise<void>) => {
      if (this.#mayLook()) await look();
    };
    this.#deps = {
      ...options.deps,
      folder,
      root: new Root(folder, state, log),
      rules: new FolderRules(folder),
      debouncer: new Debouncer({
        ...{ settleMs: folder.settle, clock, onQuiet: options.deps.onQuiet },
        lookAt: (...look) => ifThere(() => this.#scanner.path(...look)),
        lookIn: (directory) => ifThere(() => this.#scanner.directory(directory)),
        onError: (error, path) => {
          this.#failed(`Looking at ${path}`, error);
          void this.rescan();
        },
      }),
      problems: new Problems(name, clock, log),
      events: options.openEvents?.((directory, name) => this.#onEvent(directory, name)),
      digests: new Map(),
      stopped: this.#stopped.signal,
      health: new HealthCheck(`folder ${name}`, `the scan of ${name} does not go on`, {
        limitMs,
        busy: () => this.#isLooking,
      }),
      mayLook: () => this.#mayLook(),
      isCertain: async () => !(await this.#follow()) && this.standing === 'there' && this.#mayLook(),
    };
    this.#reconciler = new Reconciler(this.#deps);
    this.#scanner = new Scanner(this.#deps, this.#reconciler, (code) => this.#unwatched(code));
  }

  get health(): readonly HealthCheck[] {
    return [this.#deps.health, this.#rootHealth];
  }

  /** Whether something is being looked at, read, waited for, or due to be. */
  get busy(): boolean {
    if (this.#stopped.signal.aborted) return false;
    return this.#scanning !== undefined || this.#deps.debouncer.busy || this.#reconciler.busy;
  }

  get standing(): Standing {
    return this.#deps.root.standing;
  }

  get problems(): readonly PathProblem[] {
    return this.#deps.problems.list();
  }

  status(): FolderStatus {
    const { root, problems, events, debouncer } = this.#deps;
    const why = root.held ?? this.#degraded;
    return {
      name: this.#folder.name,
      state: this.#state,
      since: this.#since,
      ...(why === undefined ? {} : { trouble: why }),
      ...(this.#lastScan === undefined ? {} : { lastScan: this.#lastScan }),
      directoriesWatched: events?.watched ?? 0,
      settling: debouncer.settling,
      ...(problems.unnamed === 0 ? {} : { unnamedProblems: problems.unnamed }),
    };
  }

  start(): void {
    void this.rescan();
    this.#checkLater();
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

  /** Looks at a path and reads it, also when nothing says that it changed. */
  look(path: string): void {
    this.#deps.debouncer.look(path, 'asked');
  }

  /** Resolves when nothing of this watch is looked at or read any more: another one may take the folder over. */
  async stop(): Promise<void> {
    const { hashQueue, events, debouncer } = this.#deps;
    this.#stopped.abort();
    this.#timer?.cancel();
    this.#become('stopped');
    // A scan may wait for room among the files that wait to be read.
    hashQueue.forget();
    await Promise.all([events?.close(), debouncer.stop(), this.#queued ?? this.#scanning]);
  }

  #mayLook(): boolean {
    return !this.#stopped.signal.aborted && this.standing !== 'missing';
  }

  #checkLater(): void {
    const { rootCheckMs, rescanMs, degradedRescanMs } = this.#options;
    const { clock } = this.#deps;
    this.#timer = clock.after(Math.min(rootCheckMs, rescanMs()), async () => {
      await this.#follow();
      const { at = clock.now() } = this.#lastScan ?? {};
      const interval = this.#degraded === undefined ? rescanMs() : degradedRescanMs;
      const isDue = this.#isScanDue || clock.now() - at >= interval * this.#jitter;
      if (isDue && this.#scanning === undefined && this.#mayLook()) void this.rescan();
      if (!this.#stopped.signal.aborted) this.#checkLater();
    });
  }

  /** Checks the root, and scans everything when it is there and not what it was. */
  async #follow(): Promise<boolean> {
    const isOther = await this.#checkRoot();
    if (isOther && this.#mayLook()) void this.rescan();
    return isOther;
  }

  /** @returns whether it is not what it was */
  async #checkRoot(): Promise<boolean> {
    const { root, digests, debouncer, events, onQuiet } = this.#deps;
    const before = root.standing;
    const isOther = await this.#rootHealth.during(() => root.check());
    if (this.#stopped.signal.aborted || (!isOther && root.standing === before)) return false;
    digests.clear();
    this.#deps.changed();
    if (root.standing === 'missing') {
      // There is nothing to wait for, and no watch of it lives.
      debouncer.clear();
      events?.unwatch(root.real);
    }
    this.#update();
    if (root.standing !== before) this.#options.onStanding();
    onQuiet();
    return isOther;
  }

  async #scan(): Promise<ScanReport> {
    const { clock, log, accepts, digests, problems, onQuiet } = this.#deps;
    const { name } = this.#folder;
    const [began, started] = [clock.now(), clock.now()];
    let met = { files: 0, directories: 0 };
    try {
      await this.#checkRoot();
      this.#update();
      if (this.#mayLook()) {
        const refused = JSON.stringify(ENCODINGS.map((encoding) => accepts(encoding)?.message));
        if (refused !== this.#refused) digests.clear();
        this.#refused = refused;
        this.#isOverLimit = false;
        problems.beginScan();
        met = await this.#scanner.all();
        problems.endScan();
        this.#isScanDue = met.directories === 0;
        if (this.#mayLook()) this.#reconciler.scannedFrom = began;
        if (this.#mayLook() && !this.#isOverLimit) this.#allWatched();
      }
    } catch (error) {
      this.#failed('The scan', error);
    }
    const { files, directories } = met;
    const report = { folder: name, files, directories, durationMs: clock.now() - started };
    this.#lastScan = { ...report, at: clock.now() };
    this.#scanning = undefined;
    log.debug(report, `Scanned ${name}: ${files} files in ${directories} directories.`);
    this.#update();
    onQuiet();
    return report;
  }

  #onEvent(directory: string, name: string | undefined): void {
    if (!this.#mayLook()) return;
    const { root, debouncer } = this.#deps;
    if (directory === root.real) {
      if (name === undefined) void this.#follow();
      debouncer.changed('', name);
    } else if (directory.startsWith(`${root.real}/`)) {
      debouncer.changed(directory.slice(root.real.length + 1), name);
    }
  }

  /** Any code but those of a limit (EACCES) is met, and reported, by the listing that follows. */
  #unwatched(code: string): void {
    if (!LIMITS.has(code)) return;
    this.#isOverLimit = true;
    if (this.#degraded !== undefined) return;
    const { name } = this.#folder;
    this.#degraded = trouble.watchLimit(code);
    const { message, hint } = this.#degraded;
    this.#deps.log.error({ folder: name, code }, `${name}: ${message} ${hint}`);
  }

  #allWatched(): void {
    if (this.#degraded === undefined) return;
    this.#degraded = undefined;
    const { name } = this.#folder;
    this.#deps.log.info({ folder: name }, `${name}: all directories are watched again.`);
  }

  #failed(what: string, error: unknown): void {
    const { name } = this.#folder;
    this.#deps.log.error({ folder: name, err: error }, `${what} in ${name} failed: ${messageOf(error)}`);
  }

  get #isLooking(): boolean {
    const { hashQueue, debouncer } = this.#deps;
    if (this.#stopped.signal.aborted || hashQueue.isCrowded) return false;
    return this.#scanning !== undefined || debouncer.isLooking;
  }

  #update(): void {
    if (this.#stopped.signal.aborted) return;
    if (this.#deps.root.held !== undefined) this.#become('held');
    else if (this.#degraded !== undefined) this.#become('degraded');
    else if (this.#scanning !== undefined || this.#lastScan === undefined) this.#become('scanning');
    else this.#become(this.#deps.events === undefined ? 'unwatched' : 'watching');
  }

  #become(state: FolderStatus['state']): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#since = this.#deps.clock.now();
  }
}
