import { lstat, opendir, realpath, stat } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import type { FolderConfig } from '../config/config.js';
import { messageOf, systemCode } from '../lib/errors.js';
import { ENCODINGS } from '../lib/file.js';
import { HealthCheck } from '../lib/health.js';
import { isWithin } from '../lib/text.js';
import type { Trouble } from '../state/entry.js';
import type { StateView } from '../state/state.js';
import { Debouncer } from './debouncer.js';
import type { EventListener, FsEvents } from './fs-events.js';
import { joinPath } from './lister.js';
import { type FolderDeps, Reconciler, type WatchDeps } from './reconciler.js';
import { FolderRules, Problems, trouble } from './rules.js';
import { Scanner } from './scanner.js';

/**
 * How the root of a folder stands. `missing`: it is not there, or cannot be listed, or was not looked at yet; then nothing is
 * looked at. `doubtful`: another directory that looks as if something were not mounted; new files are taken, none counts as
 * removed.
 */
export type Standing = 'there' | 'doubtful' | 'missing';

/** Distinguishes a directory from others. A type and not an interface, for it is kept as JSON. */
type Identity = { readonly dev: number; readonly ino: number };

/** What is remembered of the root. */
type Known = Identity & {
  readonly path: string;
  /** A directory that stood there and was not accepted: files may have come into it since, so that they show nothing. */
  readonly doubted?: Identity;
};

/** So many known files are looked for to recognise a file system under another device number. */
const SAMPLE = 20;

/**
 * The directory of a folder, recognised by device and inode across restarts. The folder is *held* while it is `missing` or
 * `doubtful`.
 *
 * Another directory is still the folder when it is not empty and either on the same device (somebody replaced the
 * directory) or with a known file in it (device numbers change with a reboot). Without records nothing is at stake and
 * every directory is fine; so it is when the configuration names another path.
 */
class Root {
  standing: Standing = 'missing';
  /** Why the folder is held, if it is. */
  held: Trouble | undefined;
  /** Since when it stands like this, in ms since the epoch. */
  since: number;
  /** The path of the directory, links resolved, when it was checked last. */
  real: string;
  /** Another one for each directory that is taken for the folder. */
  identity = '';
  /** Somebody said that the directory which stands there now, if it is not empty, is to be the folder. */
  isMeant = false;

  constructor(
    private readonly folder: FolderConfig,
    private readonly deps: Pick<WatchDeps, 'state' | 'log' | 'clock'>,
  ) {
    this.real = folder.path;
    this.since = deps.clock.now();
  }

  /** Looks at the root, and takes it for the folder if it is. */
  async check(): Promise<void> {
    const { path, name } = this.folder;
    const { state } = this.deps;
    const { isMeant } = this;
    this.isMeant = false;
    try {
      const { dev, ino } = await stat(path);
      const isEmpty = await isEmptyDirectory(path);
      this.real = await realpath(path);
      const known = knownOf(this.folder, state);
      // Under another path, what was just looked for at the old one proves nothing.
      const isKnown = known?.path === path;
      const isSame = isKnown && known.dev === dev && known.ino === ino;
      if (isKnown && !isSame && hasRecords(this.folder, state)) {
        const isDoubted = isDeepStrictEqual(known.doubted, { dev, ino });
        const isOurs = isMeant || known.dev === dev || (!isDoubted && (await this.#hasKnownFiles()));
        if (isEmpty || !isOurs) {
          if (!isDoubted) state.setMeta(keyOf(name), { ...known, doubted: { dev, ino } });
          this.#stand('doubtful', trouble.rootReplaced(path, name));
          return;
        }
      }
      // Goes to the disk with the next commit; if that never comes, the next start looks again.
      if (!isSame) state.setMeta(keyOf(name), { path, dev, ino });
      this.identity = `${this.real}:${dev}:${ino}`;
      this.#stand('there');
    } catch (error) {
      const wasThere = wasSeen(this.folder, state);
      this.#stand('missing', trouble.rootMissing(path, systemCode(error) ?? 'UNKNOWN', wasThere));
    }
  }

  #stand(standing: Standing, held?: Trouble): void {
    const before = this.held;
    this.standing = standing;
    this.held = held;
    if (held?.code === before?.code) return;
    this.since = this.deps.clock.now();
    const { name, path } = this.folder;
    if (held === undefined)
      this.deps.log.info({ folder: name }, `The folder ${path} is back and is scanned.`);
    else this.deps.log.warn({ folder: name, code: held.code }, `${held.message} ${held.hint}`);
  }

  /** Whether a file is as it is known, but for its inode: a copy on another disk has others. */
  async #hasKnownFiles(): Promise<boolean> {
    let left = SAMPLE;
    for (const { path, status, version } of this.deps.state.entries.all(this.folder.name)) {
      if (status === 'gone') continue;
      const found = await lstat(`${this.folder.path}/${path}`).catch(() => undefined);
      if (found?.size === version.size && found.mtimeMs === version.mtimeMs) return true;
      left -= 1;
      if (left === 0) return false;
    }
    return false;
  }
}

type FolderName = Pick<FolderConfig, 'name' | 'path'>;

/** Whether the folder was there before, or files of it are known: where it is away, something has to come back. */
export function wasSeen(folder: FolderName, state: StateView): boolean {
  return knownOf(folder, state)?.path === folder.path || hasRecords(folder, state);
}

function hasRecords({ name }: FolderName, state: StateView): boolean {
  const { gone: _, ...live } = state.counts(name);
  return Object.values(live).some((count) => count > 0);
}

function knownOf({ name }: FolderName, state: StateView): Known | undefined {
  return state.meta(keyOf(name)) as Known | undefined;
}

function keyOf(name: string): string {
  return `watch.root.${name}`;
}

async function isEmptyDirectory(path: string): Promise<boolean> {
  for await (const _ of await opendir(path)) return false;
  return true;
}

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
   * doubtful; `degraded`: the system's watch limit is reached, changes are found by rescans.
   */
  readonly state: 'scanning' | 'watching' | 'unwatched' | 'held' | 'degraded';
  readonly since: number;
  readonly trouble?: Trouble | undefined;
  readonly lastScan?: (ScanReport & { readonly at: number }) | undefined;
  readonly directoriesWatched: number;
  /** Files that were written a moment ago and are waited for. */
  readonly settling: number;
  /** Paths that could not be looked at, besides those that are named; only where there are too many. */
  readonly unnamedProblems?: number | undefined;
}

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
 */
export class FolderWatch {
  readonly root: Root;
  readonly deps: FolderDeps;
  readonly #reconciler: Reconciler;
  readonly #scanner: Scanner;
  #isScanning = false;
  #lastScan: FolderStatus['lastScan'];
  /** Settled when no scan runs or is to follow. */
  #scans: Promise<unknown> = Promise.resolve();
  #nextScan: Promise<ScanReport> | undefined;
  /** What the peer refused at the last scan: what it takes decides what is to be read. */
  #refused = '';
  #degraded: { readonly since: number; readonly trouble: Trouble } | undefined;
  /** The present scan met a directory that a limit keeps from being watched. */
  #isLimitMet = false;
  readonly #stopping = new AbortController();

  /** @param openEvents undefined where changes are to be found by scans alone */
  constructor(
    readonly folder: FolderConfig,
    deps: WatchDeps,
    openEvents: ((listener: EventListener) => FsEvents) | undefined,
  ) {
    const { clock, log } = deps;
    const { name } = folder;
    this.root = new Root(folder, deps);
    this.deps = {
      ...{ ...deps, folder, rules: new FolderRules(folder), digests: new Map() },
      problems: new Problems(name, clock, log),
      health: new HealthCheck(`folder ${name}`, `the scan of ${name} does not go on`, {
        limitMs: LONGEST_STEP_MS,
        busy: () => this.#isLooking,
      }),
      debouncer: new Debouncer(folder.settle, clock, (path, isAsked) => this.#lookAt(path, isAsked)),
      events: openEvents?.((directory, at) => this.#onEvent(directory, at)),
      mayLook: () => !this.#isStopped && this.root.standing !== 'missing',
      isCertain: async () => !(await this.#follow()) && this.root.standing === 'there' && this.deps.mayLook(),
      absolute: (path) => joinPath(this.root.real, path),
      onUnwatched: (code) => this.#unwatched(code),
    };
    this.#reconciler = new Reconciler(this.deps);
    this.#scanner = new Scanner(this.deps, this.#reconciler);
  }

  /** Whether something is being looked at, read, waited for, or due to be. */
  get busy(): boolean {
    if (this.#isStopped) return false;
    const isScanned = this.#isScanning || this.#nextScan !== undefined;
    return isScanned || this.deps.debouncer.busy || this.#reconciler.busy;
  }

  status(): FolderStatus {
    const { events, debouncer, problems } = this.deps;
    return {
      name: this.folder.name,
      ...this.#state(),
      trouble: this.root.held ?? this.#degraded?.trouble,
      lastScan: this.#lastScan,
      directoriesWatched: events?.watched ?? 0,
      settling: debouncer.settling,
      unnamedProblems: problems.unnamed === 0 ? undefined : problems.unnamed,
    };
  }

  start(): void {
    void this.rescan();
    void this.#keepChecking();
  }

  /**
   * Scans the whole folder, after the running scan; who asks meanwhile shares the next one. Never rejects.
   *
   * @param isMeant whether a directory that stands in the place of the folder's, and is not empty, is to be the folder
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

  /** Looks at a path and reads it, also when nothing says that it changed. */
  look(path: string): void {
    this.deps.debouncer.look(path, true);
  }

  /** Resolves when nothing of this watch is looked at any more: another one may take the folder over. */
  async stop(): Promise<void> {
    const { events, debouncer } = this.deps;
    this.#stopping.abort();
    await Promise.all([events?.close(), debouncer.stop(), this.#scans]);
  }

  #state(): Pick<FolderStatus, 'state' | 'since'> {
    const { held, since } = this.root;
    if (held !== undefined) return { state: 'held', since };
    if (this.#degraded !== undefined) return { state: 'degraded', since: this.#degraded.since };
    if (this.#isScanning || this.#lastScan === undefined) return { state: 'scanning', since };
    return { state: this.deps.events === undefined ? 'unwatched' : 'watching', since: this.#lastScan.at };
  }

  get #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  get #isLooking(): boolean {
    const { hashQueue, debouncer } = this.deps;
    return !this.#isStopped && !hashQueue.isCrowded && (this.#isScanning || debouncer.isLooking);
  }

  async #keepChecking(): Promise<void> {
    const { clock, policy, mayLook } = this.deps;
    for (;;) {
      await clock.sleep(Math.min(policy.rootCheckMs, policy.rescanMs), this.#stopping.signal);
      if (this.#isStopped) return;
      await this.#follow();
      const { at = clock.now(), directories = 0 } = this.#lastScan ?? {};
      const interval = this.#degraded === undefined ? policy.rescanMs : policy.degradedRescanMs;
      // A scan that met nothing could not list the root, though that was there a moment before.
      const isDue = directories === 0 || clock.now() - at >= interval;
      if (isDue && !this.#isScanning && mayLook()) void this.rescan();
    }
  }

  /** Checks the root, and scans everything when it is there and not what it was. @returns whether it is not */
  async #follow(): Promise<boolean> {
    const isOther = await this.#checkRoot();
    if (isOther && this.deps.mayLook()) void this.rescan();
    return isOther;
  }

  /** @returns whether the root stands otherwise than before, or is another one */
  async #checkRoot(): Promise<boolean> {
    const { digests, debouncer, events, changed, onStanding } = this.deps;
    const { standing, identity, real } = this.root;
    await this.root.check();
    const isSame = this.root.standing === standing && this.root.identity === identity;
    if (this.#isStopped || isSame) return false;
    digests.clear();
    changed();
    // Where it is another one or none, no watch of it lives.
    events?.unwatch(real);
    if (this.root.standing === 'missing') debouncer.clear();
    if (this.root.standing !== standing) onStanding?.();
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
        this.#isLimitMet = false;
        problems.beginScan();
        met = await this.#scanner.all();
        problems.endScan();
      }
      if (this.deps.mayLook()) {
        this.#reconciler.scannedFrom = began;
        if (this.#degraded !== undefined && !this.#isLimitMet) {
          this.#degraded = undefined;
          log.info({ folder: name }, `${name}: all directories are watched again.`);
        }
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
      this.#failed(`Looking at ${path}`, error);
      void this.rescan();
    }
  }

  #onEvent(directory: string, name: string | undefined): void {
    const { real } = this.root;
    if (!this.deps.mayLook() || !isWithin(directory, real)) return;
    if (directory === real && name === undefined) void this.#follow();
    this.deps.debouncer.changed(directory.slice(real.length + 1), name);
  }

  /** @param code the system's, for a directory that cannot be watched */
  #unwatched(code: string): void {
    const { clock, log, folder } = this.deps;
    const { name } = folder;
    // Any other code (EACCES) is met, and reported, by the listing that follows.
    if (!LIMITS.has(code)) return;
    this.#isLimitMet = true;
    if (this.#degraded !== undefined) return;
    this.#degraded = { since: clock.now(), trouble: trouble.watchLimit(code) };
    const { message, hint } = this.#degraded.trouble;
    log.error({ folder: name, code }, `${name}: ${message} ${hint}`);
  }

  #failed(what: string, error: unknown): void {
    const { name } = this.folder;
    this.deps.log.error({ folder: name, err: error }, `${what} in ${name} failed: ${messageOf(error)}`);
  }
}
