import type { FolderConfig } from '../config/config.js';
import type { Clock, Timer } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { Trouble } from '../state/entry.js';
import type { Commits } from './commits.js';
import { type Accepts, Findings } from './findings.js';
import type { HintListener, Hints } from './hints.js';
import type { Intake } from './intake.js';
import { forEachLimited } from './limited.js';
import { type PathProblem, Problems } from './problems.js';
import { Root } from './root.js';
import { FolderRules } from './rules.js';
import { Scanner } from './scan.js';
import { type Seen, Settling } from './settling.js';
import { trouble } from './trouble.js';
import type { WatchPolicy } from './watch-policy.js';
import type { WatchState } from './watch-state.js';

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
   * `scanning` and `watching` speak for themselves; `unwatched`: hints are turned off; `held`: the root is missing or
   * doubtful; `degraded`: the system's watch limit is reached, changes are found by rescans; `stopped`.
   */
  readonly state: 'scanning' | 'watching' | 'unwatched' | 'held' | 'degraded' | 'stopped';
  readonly since: number;
  readonly trouble?: Trouble;
  readonly lastScan?: ScanReport & { readonly at: number };
  readonly directoriesWatched: number;
  /** Files that were written a moment ago and are waited for. */
  readonly settling: number;
}

export interface FolderWatchParts {
  readonly folder: FolderConfig;
  readonly state: WatchState;
  readonly intake: Intake;
  readonly commits: Commits;
  readonly accepts: Accepts;
  readonly policy: WatchPolicy;
  readonly clock: Clock;
  readonly log: Logger;
  /** Undefined where changes are to be found by scans alone. */
  readonly openHints: ((listener: HintListener) => Hints) | undefined;
  /** Called when something ended that `busy` spoke of. */
  readonly onQuiet: () => void;
}

/** The system's codes for a limit of watches that is reached. */
const LIMITS = new Set(['ENOSPC', 'EMFILE', 'ENFILE', 'ENOMEM']);

/**
 * Watches one folder.
 *
 * - *Scanning*: a full scan runs; hints are followed meanwhile. Then *watching*: hints say where to look, and the files
 *   that were written a moment ago settle.
 * - *Held*: the root is missing, then nothing is looked at; or it is doubtful, then new files are taken and none counts
 *   as removed. The root is checked every few seconds, and a full scan follows when it is back.
 * - *Degraded*: directories could not be watched for a limit of the system. Full scans every minute until one could
 *   watch them all.
 * - *Stopped*: for good.
 */
export class FolderWatch {
  readonly #parts: FolderWatchParts;
  readonly #hints: Hints | undefined;
  readonly #root: Root;
  readonly #settling: Settling;
  readonly #problems: Problems;
  readonly #scanner: Scanner;

  /** Where hints say that something changed: names by directory, or a whole directory. */
  readonly #changes = new Map<string, Set<string> | 'all'>();
  #changedNames = 0;
  /** Settled files and those that were found out of date. */
  #again: { path: string; seen: Seen | undefined }[] = [];
  #looking = false;
  #lookTimer: Timer | undefined;

  #scanning: Promise<ScanReport> | undefined;
  #queued: Promise<ScanReport> | undefined;
  #lastScan: FolderStatus['lastScan'];

  #held: Trouble | undefined;
  #rootIsMissing = false;
  #degraded: Trouble | undefined;
  /** Directories that no watch could be had for in the present scan. */
  #unwatched = 0;
  /** Directories that can never be watched; they are listed every so often instead. */
  readonly #blind = new Set<string>();
  #rootTimer: Timer | undefined;
  #blindTimer: Timer | undefined;
  #stopped = false;
  #state: FolderStatus['state'] = 'scanning';
  #since: number;

  constructor(parts: FolderWatchParts) {
    const { folder, state, clock, log } = parts;
    this.#parts = parts;
    this.#since = clock.now();
    this.#hints = parts.openHints?.((directory, name) => this.#hint(directory, name));
    this.#root = new Root(folder, state);
    this.#problems = new Problems(folder.name, clock, log);
    this.#settling = new Settling({
      settleMs: folder.settle,
      clock,
      lookAgain: (path, seen) => this.#lookAgain(path, seen),
      lookAtDirectory: (directory) => this.#changed(directory, undefined),
    });
    const shared = { ...parts, root: this.#root, rules: new FolderRules(folder), settling: this.#settling };
    const findings = new Findings({ ...shared, lookAgain: (path) => this.#lookAgain(path, undefined) });
    this.#scanner = new Scanner({
      ...shared,
      findings,
      problems: this.#problems,
      hints: this.#hints,
      onUnwatched: (directory, code) => this.#notWatched(directory, code),
      isStopped: () => this.#stopped || this.#rootIsMissing,
    });
  }

  /** Whether something is being looked at, waited for, or due to be. */
  get busy(): boolean {
    if (this.#stopped) return false;
    return (
      this.#scanning !== undefined ||
      this.#looking ||
      this.#changes.size > 0 ||
      this.#again.length > 0 ||
      this.#settling.size > 0
    );
  }

  get problems(): readonly PathProblem[] {
    return this.#problems.list();
  }

  status(): FolderStatus {
    const problem = this.#held ?? this.#degraded;
    return {
      name: this.#parts.folder.name,
      state: this.#state,
      since: this.#since,
      ...(problem === undefined ? {} : { trouble: problem }),
      ...(this.#lastScan === undefined ? {} : { lastScan: this.#lastScan }),
      directoriesWatched: this.#hints?.watched ?? 0,
      settling: this.#settling.size,
    };
  }

  start(): void {
    void this.rescan();
    this.#keepRootChecked();
    this.#blindTimer = this.#parts.clock.after(this.#parts.policy.degradedRescanMs, () =>
      this.#lookAtBlind(),
    );
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
    const { clock, folder } = this.#parts;
    const started = clock.monotonic();
    await this.#checkRoot();
    const met = this.#rootIsMissing
      ? { files: 0, directories: 0 }
      : await this.#scanner.tree(directory, 'rescan');
    return { folder: folder.name, directory, ...met, durationMs: clock.monotonic() - started };
  }

  /** Looks at one path, also when nothing says that it changed. */
  async look(path: string): Promise<void> {
    await this.#checkRoot();
    if (!this.#rootIsMissing) await this.#scanner.path(path, 'rescan');
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#lookTimer?.cancel();
    this.#rootTimer?.cancel();
    this.#blindTimer?.cancel();
    this.#settling.stop();
    this.#changes.clear();
    this.#again = [];
    this.#become('stopped');
    await Promise.all([this.#hints?.close(), this.#queued ?? this.#scanning]);
  }

  async #scan(): Promise<ScanReport> {
    const { clock, folder, log } = this.#parts;
    const started = clock.monotonic();
    let met = { files: 0, directories: 0 };
    this.#update();
    try {
      await this.#checkRoot();
      if (!this.#rootIsMissing && !this.#stopped) {
        this.#unwatched = 0;
        this.#problems.beginScan();
        met = await this.#scanner.tree('', 'rescan');
        this.#problems.endScan();
        if (this.#unwatched === 0 && !this.#rootIsMissing) this.#endDegraded();
      }
    } catch (error) {
      log.error(
        { folder: folder.name, err: error },
        `The scan of ${folder.name} ended early: ${messageOf(error)}`,
      );
    }
    const report = { folder: folder.name, directory: '', ...met, durationMs: clock.monotonic() - started };
    this.#lastScan = { ...report, at: clock.now() };
    this.#scanning = undefined;
    log.debug({ ...report }, `Scanned ${folder.name}: ${met.files} files in ${met.directories} directories.`);
    this.#update();
    this.#quiet();
    return report;
  }

  #hint(directory: string, name: string | undefined): void {
    const root = this.#root.real;
    if (directory === root) {
      if (name === undefined) void this.#checkRoot();
      this.#changed('', name);
    } else if (directory.startsWith(`${root}/`)) {
      this.#changed(directory.slice(root.length + 1), name);
    }
  }

  #changed(directory: string, name: string | undefined): void {
    if (this.#stopped || this.#rootIsMissing) return;
    const known = this.#changes.get(directory);
    // A name that is not valid UTF-8 cannot be looked up.
    if (name === undefined || name.includes('\ufffd') || known === 'all') {
      this.#changes.set(directory, 'all');
    } else if (known === undefined) {
      this.#changes.set(directory, new Set([name]));
    } else {
      known.add(name);
    }
    this.#changedNames += 1;
    if (this.#changedNames > this.#parts.policy.overflowHints) this.#overflow();
    this.#lookSoon();
  }

  /** So many hints at once may have been more: the system drops what does not fit into its queue without a word. */
  #overflow(): void {
    this.#changes.clear();
    this.#changedNames = 0;
    void this.rescan();
  }

  #lookAgain(path: string, seen: Seen | undefined): void {
    if (this.#stopped) return;
    this.#again.push({ path, seen });
    this.#lookSoon();
  }

  #lookSoon(): void {
    if (this.#looking) return;
    this.#lookTimer ??= this.#parts.clock.after(this.#parts.policy.gatherMs, () => void this.#lookAround());
  }

  async #lookAround(): Promise<void> {
    this.#lookTimer = undefined;
    this.#looking = true;
    while ((this.#changes.size > 0 || this.#again.length > 0) && !this.#stopped) {
      const again = this.#again;
      const changes = [...this.#changes];
      this.#again = [];
      this.#changes.clear();
      this.#changedNames = 0;
      const { looksAtOnce } = this.#parts.policy;
      await this.#guarded(async () => {
        await forEachLimited(again, looksAtOnce, ({ path, seen }) =>
          this.#scanner.path(path, 'change', seen),
        );
        for (const [directory, names] of changes) {
          if (names === 'all') await this.#scanner.directory(directory);
          else {
            await forEachLimited(names, looksAtOnce, (name) =>
              this.#scanner.path(directory === '' ? name : `${directory}/${name}`, 'change'),
            );
          }
        }
      });
    }
    this.#looking = false;
    this.#quiet();
  }

  async #guarded(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const { log, folder } = this.#parts;
      log.error(
        { folder: folder.name, err: error },
        `Looking at changes in ${folder.name} failed: ${messageOf(error)}`,
      );
      void this.rescan();
    }
  }

  #keepRootChecked(): void {
    const { clock, policy } = this.#parts;
    this.#rootTimer = clock.after(policy.rootCheckMs, async () => {
      await this.#checkRoot();
      if (!this.#stopped) this.#keepRootChecked();
    });
  }

  /** Finds out whether the root is there and is what it was; a full scan follows when it is back. */
  async #checkRoot(): Promise<void> {
    const { folder, log } = this.#parts;
    const found = await this.#root.check();
    if (this.#stopped) return;
    const before = this.#held;
    if (found.kind === 'missing') this.#held = trouble.rootMissing(folder.path, found.code);
    else if (found.kind === 'doubtful') this.#held = trouble.rootReplaced(folder.path);
    else this.#held = undefined;
    const wasMissing = this.#rootIsMissing;
    this.#rootIsMissing = found.kind === 'missing';
    if (this.#rootIsMissing && !wasMissing) this.#letGo();
    if (this.#held !== undefined && this.#held.code !== before?.code) {
      log.warn({ folder: folder.name, code: this.#held.code }, `${this.#held.message} ${this.#held.hint}`);
    }
    if (this.#held === undefined && before !== undefined) {
      log.info({ folder: folder.name }, `The folder ${folder.path} is back and is scanned.`);
    }
    if (found.kind === 'replaced') {
      log.info({ folder: folder.name }, `The folder ${folder.path} is another directory now; it is scanned.`);
    }
    if (before?.code !== this.#held?.code || found.kind === 'replaced') {
      this.#update();
      if (!this.#rootIsMissing) void this.rescan();
    }
  }

  /** The root went away: there is nothing to wait for, and no watch of it lives. */
  #letGo(): void {
    this.#settling.stop();
    this.#changes.clear();
    this.#again = [];
    this.#hints?.unwatch(this.#root.real);
    this.#quiet();
  }

  #notWatched(directory: string, code: string): void {
    const { folder, log } = this.#parts;
    if (code === 'NOT_WATCHABLE') {
      this.#blind.add(directory.slice(this.#root.real.length + 1));
      this.#problems.report(directory, trouble.notWatchable());
    }
    // Any other code (EACCES) is met, and told, by the listing that follows.
    if (!LIMITS.has(code)) return;
    this.#unwatched += 1;
    if (this.#degraded !== undefined) return;
    this.#degraded = trouble.watchLimit(code);
    log.error(
      { folder: folder.name, code },
      `${folder.name}: ${this.#degraded.message} ${this.#degraded.hint}`,
    );
  }

  #endDegraded(): void {
    if (this.#degraded === undefined) return;
    this.#degraded = undefined;
    const { folder, log } = this.#parts;
    log.info({ folder: folder.name }, `${folder.name}: all directories are watched again.`);
  }

  /** What no watch tells of is looked at every so often. */
  #lookAtBlind(): void {
    const { clock, policy } = this.#parts;
    if (this.#degraded !== undefined) void this.rescan();
    else for (const directory of this.#blind) this.#changed(directory, undefined);
    this.#blind.clear();
    this.#blindTimer = clock.after(policy.degradedRescanMs, () => this.#lookAtBlind());
  }

  #update(): void {
    if (this.#stopped) return;
    if (this.#held !== undefined) this.#become('held');
    else if (this.#degraded !== undefined) this.#become('degraded');
    else if (this.#scanning !== undefined || this.#lastScan === undefined) this.#become('scanning');
    else this.#become(this.#hints === undefined ? 'unwatched' : 'watching');
  }

  #become(state: FolderStatus['state']): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#since = this.#parts.clock.now();
  }

  #quiet(): void {
    if (!this.busy) this.#parts.onQuiet();
  }
}
