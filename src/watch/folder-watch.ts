import type { FolderConfig } from '../config/config.js';
import { messageOf } from '../lib/errors.js';
import { ENCODINGS, joinPath } from '../lib/file.js';
import { HealthCheck } from '../lib/health.js';
import { escapeInvisible, isWithin, quoted } from '../lib/text.js';
import type { Failure } from '../state/entry.js';
import { Debouncer } from './debouncer.js';
import { Deletions } from './deletions.js';
import type { EventListener, FsEvents } from './fs-events.js';
import { FolderMounts } from './mounts.js';
import { type FolderDeps, Reconciler, type WatchDeps } from './reconciler.js';
import { FolderRoot } from './root.js';
import { FolderRules } from './rules/folder-rules.js';
import { type PathProblem, Problems } from './rules/problems.js';
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
   * `scanning` and `watching` speak for themselves; `unwatched`: fs events are turned off; `held`:
   * the root is missing or another one; `degraded`: the system's watch limit is reached, changes
   * are found by rescans.
   */
  readonly state: 'scanning' | 'watching' | 'unwatched' | 'held' | 'degraded';
  readonly since: number;
  readonly failure?: Failure | undefined;
  readonly lastScan?: (ScanReport & { readonly at: number }) | undefined;
  readonly directoriesWatched: number;
  /** Files that were written a moment ago and are waited for. */
  readonly settling: number;
  /**
   * Paths that could not be looked at, besides those that are named; only where there are too many.
   */
  readonly unnamedProblems?: number | undefined;
}

/** One step of a look: a disk that is far away may take long for it. In ms. */
const LONGEST_STEP_MS = 15 * 60_000;

/**
 * Watches one folder.
 *
 * - *Scanning*: a full scan runs; fs events are followed meanwhile. Then *watching*: fs events say
 *   where to look, and the files that were written a moment ago settle. Every few seconds the root
 *   is checked, and after a time everything is scanned again.
 * - *Held*: the root is missing or another one, see FolderRoot. A full scan follows when it is
 *   back. What is mounted below the root is held by itself, see FolderMounts.
 * - *Degraded*, entered when a limit of the system keeps directories from being watched: the folder
 *   is scanned more often, until a full scan has watched all that it met. A file of rules that
 *   cannot be read is tried every few seconds.
 */
export class FolderWatch {
  readonly root: FolderRoot;
  readonly mounts: FolderMounts;
  readonly deps: FolderDeps;
  readonly #reconciler: Reconciler;
  readonly #scanner: Scanner;
  readonly #deletions: Deletions;
  #isScanning = false;
  #lastScan: FolderStatus['lastScan'];
  /** Settled when no scan runs or is to follow. */
  #scans: Promise<unknown> = Promise.resolve();
  #nextScan: Promise<ScanReport> | undefined;
  /** What the peer refused at the last scan: what it takes decides what is to be read. */
  #refused = '';
  readonly #stopping = new AbortController();
  /** Ends following what changes in state. */
  #unfollow = () => {};

  /** @param openEvents undefined where changes are to be found by scans alone */
  constructor(
    readonly folder: FolderConfig,
    deps: WatchDeps,
    openEvents: ((listener: EventListener) => FsEvents) | undefined,
  ) {
    const { clock, log } = deps;
    const { name } = folder;
    this.root = new FolderRoot(folder, deps);
    this.mounts = new FolderMounts(folder, deps);
    this.deps = {
      ...deps,
      folder,
      rules: new FolderRules(folder),
      digests: new Map(),
      problems: new Problems(name, clock, log),
      health: new HealthCheck(
        `folder ${name}`,
        `the scan of folder ${quoted(name)} does not go on`,
        {
          limitMs: LONGEST_STEP_MS,
          busy: () => this.#isLooking,
        },
      ),
      opening: new HealthCheck(
        `watches of ${name}`,
        `a directory of ${name} does not come to be watched`,
      ),
      debouncer: new Debouncer(folder.settle, clock, (path, isAsked) =>
        this.#lookAt(path, isAsked),
      ),
      events: openEvents?.((directory, at) => this.#onEvent(directory, at)),
      mayLook: () => !this.#isStopped && this.root.isThere,
      isUnmounted: (path) => this.mounts.isUnmounted(path),
      isCertain: async () => !(await this.#follow()) && this.deps.mayLook(),
      absolute: (path) => joinPath(this.root.real, path),
    };
    this.#reconciler = new Reconciler(this.deps);
    this.#deletions = new Deletions(this.deps, this.#reconciler.reading, () => this.rescan());
    this.#scanner = new Scanner(this.deps, this.#reconciler, this.mounts);
  }

  /** Whether something is being looked at, read, waited for, or due to be. */
  get busy(): boolean {
    if (this.#isStopped) return false;
    const isScanned = this.#isScanning || this.#nextScan !== undefined;
    return (
      isScanned || this.#deletions.isWaiting || this.deps.debouncer.busy || this.#reconciler.busy
    );
  }

  status(): FolderStatus {
    const { events, debouncer, problems } = this.deps;
    const [limit] = problems.find('WATCH_LIMIT');
    return {
      name: this.folder.name,
      ...this.#state(limit),
      failure: this.root.held ?? limit?.failure,
      lastScan: this.#lastScan,
      directoriesWatched: events?.watched ?? 0,
      settling: debouncer.settling,
      unnamedProblems: problems.unnamed === 0 ? undefined : problems.unnamed,
    };
  }

  start(): void {
    const { state } = this.deps;
    this.#unfollow = state.onChange((after, before, { folder }) => {
      if (folder === this.folder.name) this.#deletions.changed(after, before);
    });
    void this.rescan();
    void this.#keepChecking();
  }

  /**
   * Scans the whole folder, after the running scan; who asks meanwhile shares the next one. Never
   * rejects.
   *
   * @param isMeant whether a directory that stands in the place of the folder's, and is not empty,
   *   is to be the folder
   */
  rescan(isMeant = false): Promise<ScanReport> {
    this.root.isMeant ||= isMeant;
    this.#nextScan ??= this.#scans.then(() => {
      this.#nextScan = undefined;
      return this.#scan();
    });
    this.#scans = this.#nextScan;
    return this.#nextScan;
  }

  /**
   * Resolves when nothing of this watch is looked at any more: another one may take the folder
   * over.
   */
  async stop(): Promise<void> {
    const { events, debouncer } = this.deps;
    this.#stopping.abort();
    this.#deletions.stop();
    this.#unfollow();
    await Promise.all([events?.close(), debouncer.stop(), this.#scans]);
  }

  #state(limit: PathProblem | undefined): Pick<FolderStatus, 'state' | 'since'> {
    const { held, since } = this.root;
    if (held !== undefined) return { state: 'held', since };
    if (limit !== undefined) return { state: 'degraded', since: limit.since };
    if (this.#isScanning || this.#lastScan === undefined) return { state: 'scanning', since };
    return {
      state: this.deps.events === undefined ? 'unwatched' : 'watching',
      since: this.#lastScan.at,
    };
  }

  get #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  get #isLooking(): boolean {
    const { hashQueue, debouncer } = this.deps;
    return !this.#isStopped && !hashQueue.isCrowded && (this.#isScanning || debouncer.isLooking);
  }

  async #keepChecking(): Promise<void> {
    const { clock, policy, mayLook, problems, debouncer, folder } = this.deps;
    for (;;) {
      await clock.sleep(Math.min(policy.rootCheckMs, policy.rescanMs), this.#stopping.signal);
      if (this.#isStopped) return;
      await this.#follow();
      const { at = clock.now(), directories = 0 } = this.#lastScan ?? {};
      const isDegraded = problems.find('WATCH_LIMIT').length > 0;
      const interval = isDegraded ? policy.degradedRescanMs : policy.rescanMs;
      // A scan that met nothing could not list the root, though that was there a moment before.
      const isDue = directories === 0 || clock.now() - at >= interval;
      if (isDue && !this.#isScanning && mayLook()) void this.rescan();
      // No event may tell that a file can be read again.
      for (const { path } of problems.find('RULES_UNREADABLE'))
        debouncer.look(path.slice(folder.path.length + 1));
    }
  }

  /**
   * Checks the root and what is mounted below it, and scans everything when that is there and not
   * what it was. @returns whether it is not
   */
  async #follow(): Promise<boolean> {
    const isOther = await this.#checkRoot();
    if (isOther && this.deps.mayLook()) void this.rescan();
    return isOther;
  }

  /**
   * @returns whether the root, or what is mounted below it, stands otherwise than before, or is
   *   another one
   */
  async #checkRoot(): Promise<boolean> {
    const { digests, debouncer, events, changed, onFolderStateChange: onStanding } = this.deps;
    const { isMeant, real } = this.root;
    const isOtherRoot = await this.root.check();
    const isOther = (this.root.isThere && (await this.mounts.check(isMeant))) || isOtherRoot;
    if (this.#isStopped || !isOther) return false;
    digests.clear();
    changed();
    // Where it is another one or none, no watch of it lives.
    events?.unwatch(real);
    if (!this.root.isThere) debouncer.clear();
    onStanding?.();
    return true;
  }

  async #scan(): Promise<ScanReport> {
    const { clock, log, accepts, digests, problems } = this.deps;
    const { name } = this.folder;
    const began = clock.now();
    let met = { files: 0, directories: 0 };
    this.#isScanning = true;
    try {
      await this.#checkRoot();
      if (this.deps.mayLook()) {
        const refused = JSON.stringify(ENCODINGS.map((encoding) => accepts(encoding)?.message));
        if (refused !== this.#refused) digests.clear();
        this.#refused = refused;
        problems.beginScan();
        met = await this.#scanner.all();
        problems.endScan();
      }
      if (this.deps.mayLook()) {
        this.#reconciler.scannedFrom = began;
        await this.#deletions.decide(began);
      }
    } catch (error) {
      this.#failed('The scan', error);
    }
    const at = clock.now();
    const { files, directories } = met;
    const report = { folder: name, files, directories, durationMs: at - began };
    this.#lastScan = { ...report, at };
    this.#isScanning = false;
    log.debug(report, `Scanned ${name}: ${files} files in ${directories} directories.`);
    return report;
  }

  async #lookAt(path: string, isAsked: boolean): Promise<void> {
    try {
      if (this.deps.mayLook()) await this.#scanner.path(path, isAsked);
    } catch (error) {
      this.#failed(`Looking at ${escapeInvisible(path)}`, error);
      void this.rescan();
    }
  }

  #onEvent(directory: string, name: string | undefined): void {
    const { real } = this.root;
    if (!this.deps.mayLook() || !isWithin(directory, real)) return;
    this.deps.debouncer.changed(directory.slice(real.length + 1), name);
  }

  #failed(what: string, error: unknown): void {
    const { name } = this.folder;
    this.deps.log.error(
      { folder: name, err: error },
      `${what} in folder ${quoted(name)} failed: ${messageOf(error)}`,
    );
  }
}
