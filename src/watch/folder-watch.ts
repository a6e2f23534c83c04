import type { FolderConfig } from '../config/config.js';
import { messageOf } from '../lib/errors.js';
import { ENCODINGS } from '../lib/file.js';
import type { HealthCheck } from '../lib/health.js';
import { escapeInvisible, quoted } from '../lib/text.js';
import type { Failure } from '../state/entry.js';
import type { ReadMode } from './debouncer.js';
import { Deletions } from './deletions.js';
import type { WatchDeps } from './deps.js';
import { type FolderDeps, folderDeps, type OpenEvents } from './folder-deps.js';
import type { UnmountedPart } from './mounts.js';
import { Reconciler } from './reconciler.js';
import type { PathProblem } from './rules/problems.js';
import type { ScanReport } from './scan-queue.js';
import { Scanner } from './scanner.js';

/** The status of a folder's watch. Times are ms since the epoch. */
export interface FolderStatus {
  readonly name: string;
  /**
   * - `scanning`: a full scan runs, or is about to begin.
   * - `watching`: fs events are followed.
   * - `unwatched`: fs events are turned off, so changes are found by scans alone.
   * - `held`: the root is missing or replaced.
   * - `degraded`: the system's limit of watches is reached, so some changes are found by scans
   *   alone.
   */
  readonly state: 'scanning' | 'watching' | 'unwatched' | 'held' | 'degraded';
  readonly since: number;
  readonly failure?: Failure | undefined;
  readonly lastScan?: (ScanReport & { readonly at: number }) | undefined;
  readonly directoriesWatched: number;
  /** Number of files that were written a moment ago and are not at rest yet. */
  readonly settling: number;
  /** Number of problems with paths beyond those that are listed; undefined if there are none. */
  readonly unnamedProblems?: number | undefined;
}

/**
 * Watches one folder. It is in one of five modes:
 *
 * - *starting*: the first mode. The root was not checked yet, and nothing is looked at. The first
 *   scan leaves it for *scanning* or *held*.
 * - *scanning*: a full scan runs, and fs events are followed meanwhile. Every scan that finds the
 *   root enters it. It is left for *following* when the scan ends, and for *held* when a check does
 *   not find the root.
 * - *following*: fs events say where to look, and files that were written a moment ago settle. It
 *   is entered when a scan ends. It is left for *scanning* when a scan is requested or due, and for
 *   *held* when a check does not find the root.
 * - *held*: the root is missing or replaced (see FolderRoot). Nothing is looked at, and nothing
 *   counts as removed. Every check of the root may enter it. A check that finds the root again
 *   requests a scan, and that scan leaves it for *scanning*.
 * - *stopped*: the last mode. `stop` enters it from any other.
 *
 * The root is checked every few seconds, before each scan and before each removal. A file system
 * that is mounted below the root is checked on its own (see FolderMounts).
 *
 * A folder is *degraded* in addition to its mode while the system's limit of watches is reached. It
 * is then scanned more often, until one full scan has watched every directory.
 */
export class FolderWatch {
  readonly #deps: FolderDeps;
  readonly #reconciler: Reconciler;
  readonly #scanner: Scanner;
  readonly #deletions: Deletions;
  readonly #stopping = new AbortController();
  #lastScan: FolderStatus['lastScan'];
  /**
   * The programs that read documents at the last scan, and the encodings that the peer refused, as
   * text.
   */
  #takenBy = '';
  /** Stops following the changes of state. */
  #unfollow = () => {};

  /** @param openEvents undefined if changes are found by scans alone */
  constructor(
    readonly folder: FolderConfig,
    deps: WatchDeps,
    openEvents: OpenEvents | undefined,
  ) {
    this.#deps = folderDeps(folder, deps, openEvents);
    this.#reconciler = new Reconciler(this.#deps);
    this.#scanner = new Scanner(this.#deps, this.#reconciler);
    this.#deletions = new Deletions(this.#deps, this.#reconciler);
  }

  /** Whether something is being scanned, looked at or read, or is due to be. */
  get busy(): boolean {
    const { modes, scans, debouncer } = this.#deps;
    if (modes.is('stopped')) return false;
    return scans.busy || debouncer.busy || this.#deletions.isWaiting || this.#reconciler.busy;
  }

  /** Whether the root is there, so that its files mean something. */
  get isThere(): boolean {
    return this.#deps.root.isThere;
  }

  /** The path of the root, links resolved. */
  get realPath(): string {
    return this.#deps.root.real;
  }

  /** The file systems below the root that are away. */
  get unmounted(): readonly UnmountedPart[] {
    return this.#deps.mounts.parts;
  }

  /** The paths that could not be looked at, and the file systems that are away. */
  get problems(): readonly PathProblem[] {
    return [...this.#deps.mounts.parts, ...this.#deps.problems.list()];
  }

  get health(): readonly HealthCheck[] {
    return [this.#deps.scanHealth, this.#deps.openingHealth];
  }

  status(): FolderStatus {
    const { debouncer, events, problems, root } = this.#deps;
    const [limit] = problems.find('WATCH_LIMIT');
    return {
      name: this.folder.name,
      ...this.#state(limit),
      failure: root.held ?? limit?.failure,
      lastScan: this.#lastScan,
      directoriesWatched: events?.watched ?? 0,
      settling: debouncer.settling,
      unnamedProblems: problems.unnamed === 0 ? undefined : problems.unnamed,
    };
  }

  isUnmounted(path: string): boolean {
    return this.#deps.guard.isUnmounted(path);
  }

  start(): void {
    const { debouncer, scans, state } = this.#deps;
    this.#unfollow = state.onChange((after, before, { folder }) => {
      if (folder === this.folder.name) this.#deletions.changed(after, before);
    });
    scans.start(() => this.#scan());
    debouncer.start((path, read) => this.#lookAt(path, read));
    void scans.request();
    void this.#keepChecking();
  }

  /** Scans the whole folder; see ScanQueue. Never rejects. */
  async rescan(): Promise<ScanReport> {
    return await this.#deps.scans.request();
  }

  /** Does a `rescan` that accepts whatever directory stands at the path now, unless it is empty. */
  async rescanAnyRoot(): Promise<ScanReport> {
    this.#deps.guard.acceptAnyRoot();
    return await this.rescan();
  }

  /** Looks at a path soon. */
  lookSoon(path: string, read: ReadMode): void {
    this.#deps.debouncer.look(path, read);
  }

  /** Resolves when nothing is looked at any more. Another watch may then take the folder over. */
  async stop(): Promise<void> {
    const { debouncer, events, guard, scans } = this.#deps;
    guard.stop();
    this.#stopping.abort();
    this.#deletions.stop();
    this.#unfollow();
    await Promise.all([events?.close(), debouncer.stop(), scans.settled()]);
  }

  #state(limit: PathProblem | undefined): Pick<FolderStatus, 'state' | 'since'> {
    const { events, modes, root } = this.#deps;
    if (root.held !== undefined) return { state: 'held', since: root.since };
    if (limit !== undefined) return { state: 'degraded', since: limit.since };
    // In the mode held, the root is back at this point, and its scan is about to begin.
    if (!modes.is('following') || this.#lastScan === undefined)
      return { state: 'scanning', since: root.since };
    const state = events === undefined ? 'unwatched' : 'watching';
    return { state, since: this.#lastScan.at };
  }

  async #keepChecking(): Promise<void> {
    const { clock, debouncer, folder, guard, modes, policy, problems, scans } = this.#deps;
    for (;;) {
      // The interval of scans sets the pace if it is shorter than that of the checks of the root.
      await clock.sleep(Math.min(policy.rootCheckMs, policy.rescanMs), this.#stopping.signal);
      if (modes.is('stopped')) return;
      await guard.check();
      if (modes.is('following') && this.#isScanDue()) void scans.request();
      // No event says that an ignore file can be read again.
      for (const { path } of problems.find('RULES_UNREADABLE'))
        debouncer.look(path.slice(folder.path.length + 1));
    }
  }

  #isScanDue(): boolean {
    const { clock, policy, problems } = this.#deps;
    // A scan without directories could not list the root, though the check before it found it.
    if (this.#lastScan === undefined || this.#lastScan.directories === 0) return true;
    const isDegraded = problems.find('WATCH_LIMIT').length > 0;
    const intervalMs = isDegraded ? policy.degradedRescanMs : policy.rescanMs;
    return clock.now() - this.#lastScan.at >= intervalMs;
  }

  async #scan(): Promise<ScanReport> {
    const { clock, guard, log } = this.#deps;
    const { name } = this.folder;
    const began = clock.now();
    let met = { files: 0, directories: 0 };
    try {
      if (await guard.beginScan()) met = await this.#scanAll();
      if (guard.mayLook) await this.#conclude(began);
    } catch (error) {
      this.#logError('The scan', error);
    }
    const at = clock.now();
    const report = { folder: name, ...met, durationMs: at - began };
    this.#lastScan = { ...report, at };
    guard.endScan();
    log.debug(report, `Scanned ${name}: ${met.files} files in ${met.directories} directories.`);
    return report;
  }

  async #scanAll() {
    const { digests, peer, problems, programs } = this.#deps;
    programs.onScan();
    // A file that was refused before may be taken now, though it did not change.
    const refusals = ENCODINGS.map((encoding) => peer.refusalOf(encoding)?.message);
    const takenBy = JSON.stringify([programs.current, refusals]);
    if (takenBy !== this.#takenBy) digests.clear();
    this.#takenBy = takenBy;
    problems.beginScan();
    const met = await this.#scanner.all();
    problems.endScan();
    return met;
  }

  /** Concludes a scan that went to its end: files that it did not find may be removed. */
  async #conclude(began: number): Promise<void> {
    this.#reconciler.scannedFrom = began;
    await this.#deletions.decide(began);
  }

  async #lookAt(path: string, read: ReadMode): Promise<void> {
    const { guard, scans } = this.#deps;
    try {
      if (guard.mayLook) await this.#scanner.path(path, read);
    } catch (error) {
      this.#logError(`Looking at ${escapeInvisible(path)}`, error);
      void scans.request();
    }
  }

  #logError(action: string, error: unknown): void {
    const { name } = this.folder;
    this.#deps.log.error(
      { folder: name, err: error },
      `${action} in folder ${quoted(name)} failed: ${messageOf(error)}`,
    );
  }
}
