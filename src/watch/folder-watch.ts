import type { FolderConfig } from '../config/config.js';
import type { Clock } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { Moment } from '../lib/moment.js';
import type { Duty } from '../lib/pulse.js';
import { BlindSpots } from './blind-spots.js';
import type { Commits } from './commits.js';
import { folderDuties } from './duties.js';
import { type Accepts, Findings } from './findings.js';
import { Gathering } from './gathering.js';
import type { HashQueue } from './hash-queue.js';
import type { HintListener, Hints } from './hints.js';
import { type PathProblem, Problems } from './problems.js';
import { Root } from './root.js';
import { RootGuard, type Standing } from './root-guard.js';
import { FolderRules } from './rules.js';
import { type Met, Scanner } from './scan.js';
import { Settling } from './settling.js';
import type { FolderStatus, ScanReport } from './status.js';
import { Steps } from './steps.js';
import type { WatchPolicy } from './watch-policy.js';
import type { WatchState } from './watch-state.js';

export interface FolderWatchParts {
  readonly folder: FolderConfig;
  readonly state: WatchState;
  readonly hashQueue: HashQueue;
  readonly commits: Commits;
  readonly accepts: Accepts;
  readonly policy: WatchPolicy;
  readonly clock: Clock;
  readonly log: Logger;
  /** Undefined where changes are to be found by scans alone. */
  readonly openHints: ((listener: HintListener) => Hints) | undefined;
  /** Called when something ended that `busy` spoke of. */
  readonly onQuiet: () => void;
  /** Called when the root stands otherwise than before. */
  readonly onStanding: () => void;
}

const NOTHING_MET: Met = { files: 0, directories: 0 };

/**
 * Watches one folder.
 *
 * - *Scanning*: a full scan runs; hints are followed meanwhile. Then *watching*: hints say where to look, and the files
 *   that were written a moment ago settle.
 * - *Held*: the root is missing or doubtful, see RootGuard. A full scan follows when it is back.
 * - *Degraded*: directories could not be watched for a limit of the system, see BlindSpots.
 * - *Stopped*: for good.
 */
export class FolderWatch {
  readonly #parts: FolderWatchParts;
  readonly #hints: Hints | undefined;
  readonly #root: Root;
  readonly #guard: RootGuard;
  readonly #settling: Settling;
  readonly #gathering: Gathering;
  readonly #problems: Problems;
  readonly #blindSpots: BlindSpots;
  readonly #scanner: Scanner;
  readonly #steps = new Steps();
  readonly duties: readonly Duty[];
  #scanning: Promise<ScanReport> | undefined;
  #queued: Promise<ScanReport> | undefined;
  #lastScan: FolderStatus['lastScan'];
  #scannedFrom: number | undefined;
  /** Looks that somebody else asked for. */
  readonly #looks = new Set<Promise<unknown>>();
  #stopped = false;
  #state: FolderStatus['state'] = 'scanning';
  #since: Moment;

  constructor(parts: FolderWatchParts) {
    const { folder, state, clock, log, policy } = parts;
    this.#parts = parts;
    this.#since = new Moment(clock);
    this.#hints = parts.openHints?.((directory, name) => this.#hint(directory, name));
    this.#root = new Root(folder, state);
    this.#guard = new RootGuard({
      ...{ folder, clock, log, root: this.#root, intervalMs: policy.rootCheckMs },
      onChanged: () => void this.rescan(),
      onRemembered: () => parts.commits.changed(),
      onMissing: () => this.#letGo(),
      onStanding: parts.onStanding,
    });
    this.#problems = new Problems(folder.name, clock, log);
    this.#blindSpots = new BlindSpots({
      ...{ folder: folder.name, root: this.#root, problems: this.#problems, clock, log },
      everyMs: policy.degradedRescanMs,
      lookAt: (directory) => this.#gathering.add(directory, undefined),
      rescan: () => void this.rescan(),
    });
    this.#settling = new Settling({
      settleMs: folder.settle,
      clock,
      lookAgain: (path, seen) => this.#gathering.again(path, seen),
      lookAtDirectory: (directory) => this.#gathering.add(directory, undefined),
    });
    const shared = {
      ...{ ...parts, root: this.#root, rules: new FolderRules(folder) },
      ...{ settling: this.#settling, steps: this.#steps },
    };
    this.#scanner = new Scanner({
      ...shared,
      findings: new Findings({
        ...shared,
        lookAgain: (path) => this.#gathering.again(path, undefined),
        scannedFrom: () => this.#scannedFrom,
      }),
      problems: this.#problems,
      hints: this.#hints,
      onUnwatched: (directory, code) => this.#blindSpots.met(directory, code),
      onRootUnseen: () => this.#guard.wasUnseen(),
      isStopped: () => this.#stopped || this.#guard.missing,
    });
    this.#gathering = new Gathering({
      ...{ scanner: this.#scanner, policy, clock },
      onTooMuch: () => void this.rescan(),
      onError: (error) => {
        this.#failed('Looking at changes', error);
        void this.rescan();
      },
      onQuiet: () => this.#quiet(),
    });
    this.duties = folderDuties({
      ...{ name: folder.name, steps: this.#steps, guard: this.#guard, hashQueue: parts.hashQueue },
      ...{ gathering: this.#gathering, settling: this.#settling, looking: () => this.#looking() },
    });
  }

  /** How far the looks at this folder have got. */
  get steps(): number {
    return this.#steps.taken;
  }

  /** Whether something is being looked at, waited for, or due to be. */
  get busy(): boolean {
    if (this.#stopped) return false;
    const scans = this.#scanning !== undefined || this.#queued !== undefined;
    return scans || this.#gathering.busy || this.#settling.size > 0;
  }

  /** How the root stands. */
  get standing(): Standing {
    return this.#guard.standing;
  }

  get problems(): readonly PathProblem[] {
    return this.#problems.list();
  }

  status(): FolderStatus {
    const trouble = this.#guard.held ?? this.#blindSpots.degraded;
    return {
      name: this.#parts.folder.name,
      state: this.#state,
      since: this.#since.at,
      ...(trouble === undefined ? {} : { trouble }),
      ...(this.#lastScan === undefined ? {} : { lastScan: this.#lastScan }),
      directoriesWatched: this.#hints?.watched ?? 0,
      settling: this.#settling.size,
      ...(this.#problems.unnamed === 0 ? {} : { unnamedProblems: this.#problems.unnamed }),
    };
  }

  start(): void {
    void this.rescan();
    this.#guard.start();
    this.#blindSpots.start();
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
    const met = await this.#unlessAway(() => this.#scanner.tree(directory, 'rescan'));
    return {
      folder: folder.name,
      directory,
      ...(met ?? NOTHING_MET),
      durationMs: clock.monotonic() - started,
    };
  }

  /** Looks at one path and reads it, also when nothing says that it changed. */
  async look(path: string): Promise<void> {
    await this.#unlessAway(() => this.#scanner.path(path, 'asked'));
  }

  /** Resolves when nothing of this watch is looked at or read any more: another one may take the folder over. */
  async stop(): Promise<void> {
    const { folder, hashQueue } = this.#parts;
    this.#stopped = true;
    this.#blindSpots.stop();
    this.#guard.stop();
    this.#settling.stop();
    this.#become('stopped');
    // A scan may wait for room among the files that wait to be read.
    hashQueue.forget(folder.name);
    await Promise.all([this.#hints?.close(), this.#gathering.stop(), this.#queued ?? this.#scanning]);
    await Promise.allSettled(this.#looks);
    hashQueue.forget(folder.name);
  }

  /** Does what somebody asked for where the root is there. */
  async #unlessAway<T>(work: () => Promise<T>): Promise<T | undefined> {
    const mayLook = () => !this.#stopped && !this.#guard.missing;
    const looking = this.#guard.follow().then(() => (mayLook() ? work() : undefined));
    this.#looks.add(looking);
    try {
      return await looking;
    } finally {
      this.#looks.delete(looking);
    }
  }

  async #scan(): Promise<ScanReport> {
    const { clock, folder, log } = this.#parts;
    const [began, started] = [clock.now(), clock.monotonic()];
    let met = NOTHING_MET;
    try {
      await this.#guard.check();
      this.#update();
      if (!this.#guard.missing && !this.#stopped) {
        this.#blindSpots.beginScan();
        this.#problems.beginScan();
        met = await this.#scanner.tree('', 'rescan');
        this.#problems.endScan();
        if (!this.#guard.missing && !this.#stopped) this.#scannedFrom = began;
        if (!this.#guard.missing) this.#blindSpots.endScan();
      }
    } catch (error) {
      this.#failed('The scan', error);
    }
    const report = { folder: folder.name, directory: '', ...met, durationMs: clock.monotonic() - started };
    this.#lastScan = { ...report, at: clock.now() };
    this.#scanning = undefined;
    log.debug(report, `Scanned ${folder.name}: ${met.files} files in ${met.directories} directories.`);
    this.#update();
    this.#quiet();
    return report;
  }

  #hint(directory: string, name: string | undefined): void {
    if (this.#stopped || this.#guard.missing) return;
    const root = this.#root.real;
    if (directory === root) {
      if (name === undefined) void this.#guard.follow();
      this.#gathering.add('', name);
    } else if (directory.startsWith(`${root}/`)) {
      this.#gathering.add(directory.slice(root.length + 1), name);
    }
  }

  /** The root went away: there is nothing to wait for, and no watch of it lives. */
  #letGo(): void {
    this.#settling.clear();
    this.#gathering.clear();
    this.#hints?.unwatch(this.#root.real);
    this.#update();
    this.#quiet();
  }

  #failed(what: string, error: unknown): void {
    const { log, folder } = this.#parts;
    log.error({ folder: folder.name, err: error }, `${what} in ${folder.name} failed: ${messageOf(error)}`);
  }

  #looking(): string | undefined {
    const { name } = this.#parts.folder;
    if (this.#stopped) return undefined;
    if (this.#scanning !== undefined || this.#queued !== undefined)
      return `the scan of ${name} does not go on`;
    if (this.#looks.size > 0) return `a look at ${name} does not end`;
    return this.#gathering.busy && !this.#gathering.waits
      ? `a look at changes in ${name} does not end`
      : undefined;
  }

  #update(): void {
    if (this.#stopped) return;
    if (this.#guard.held !== undefined) this.#become('held');
    else if (this.#blindSpots.degraded !== undefined) this.#become('degraded');
    else if (this.#scanning !== undefined || this.#lastScan === undefined) this.#become('scanning');
    else this.#become(this.#hints === undefined ? 'unwatched' : 'watching');
  }

  #become(state: FolderStatus['state']): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#since = new Moment(this.#parts.clock);
  }

  #quiet(): void {
    if (!this.busy) this.#parts.onQuiet();
  }
}
