import { isDeepStrictEqual } from 'node:util';
import type { FolderConfig } from '../config/config.js';
import type { HashQueue } from '../content/hash-queue.js';
import type { Fingerprint } from '../content/reader.js';
import { NO_WORDS } from '../content/words.js';
import { type Clock, wallAheadMs } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import {
  directoryOf,
  ENCODINGS,
  type Encoding,
  type FileStat,
  fileStat,
  joinPath,
  sameStat,
} from '../lib/file.js';
import type { HealthCheck } from '../lib/health.js';
import type { Logger } from '../lib/logger.js';
import {
  type Entry,
  EXCLUDED,
  type Failure,
  gone,
  hasContent,
  isAway,
  isExcluded,
  isItem,
  isMissing,
  itemName,
  keptOutFor,
  mayHaveDocument,
  quarantined,
  read,
  skipped,
  stillKeptOut,
  wasSkippedFor,
} from '../state/entry.js';
import type { State } from '../state/state.js';
import type { Debouncer } from './debouncer.js';
import type { FsEvents } from './fs-events.js';
import type { List } from './lister.js';
import type { Renames } from './renames.js';
import { failures, PRIVATE_KEY, SAME_DOCUMENT } from './rules/failures.js';
import type { FolderRules, Taken } from './rules/folder-rules.js';
import type { Problems } from './rules/problems.js';

/** The numbers of watching. */
export const WATCH_POLICY = {
  /** Milliseconds between two full scans of a folder. */
  rescanMs: 3_600_000,
  /** How often a folder is scanned that cannot be watched, in ms. */
  degradedRescanMs: 60_000,
  /** How often the root of each folder is checked, in ms. */
  rootCheckMs: 3_000,
  /** Large files that are read at once, over all folders. */
  readers: 8,
  /** From so many files that wait to be read on, scans wait too. */
  backpressureAt: 500,
  /**
   * So long after a file was found to be gone a scan shows whether it still is, in ms; for others
   * may go with it.
   */
  deletionPauseMs: 1_000,
  /** Between two such scans of a folder, in ms. */
  deletionScanMs: 10_000,
};

/** What all folders share. */
export interface WatchDeps {
  readonly state: State;
  readonly clock: Clock;
  readonly log: Logger;
  readonly list: List;
  readonly hashQueue: HashQueue;
  readonly renames: Renames;
  /**
   * Whether the peer can take text in an encoding: nothing, or why it cannot. Depends on the
   * encoding alone.
   */
  readonly accepts: (encoding: Encoding) => Failure | undefined;
  /**
   * Whether the peer is an embedded one; undefined while that is not known, and then the peer is
   * asked. To be called where it decides.
   */
  readonly isEmbedded: () => boolean | undefined;
  /** To be called after a change of state, which is on disk a moment later. */
  readonly changed: () => void;
  /** Called when the root of a folder stands otherwise than before. */
  readonly onFolderStateChange?: () => void;
  readonly policy: typeof WATCH_POLICY;
}

/** What the parts of one folder share. */
export interface FolderDeps extends WatchDeps {
  readonly folder: FolderConfig;
  readonly rules: FolderRules;
  readonly debouncer: Debouncer;
  readonly problems: Problems;
  /** Undefined where changes are found by scans alone. */
  readonly events: FsEvents | undefined;
  /**
   * What the last scan found, by directory: one with the same digest is left alone. It is deleted
   * when something in the directory is *open*: changed, not at rest, not readable, waiting for
   * another name.
   */
  readonly digests: Map<string, number>;
  /** Of the scans and looks. */
  readonly health: HealthCheck;
  /** Of the watches that are opened. */
  readonly opening: HealthCheck;
  /** Whether the folder may be looked at. */
  readonly mayLook: () => boolean;
  /**
   * Whether a path is on a file system below the root that is away: nothing is taken
   * there, and nothing counts as removed.
   */
  readonly isUnmounted: (path: string) => boolean;
  /**
   * Checks the root and what is mounted below it; resolves to whether it is certainly the folder,
   * so that what is not there was removed.
   */
  readonly isCertain: () => Promise<boolean>;
  /** Where a path of the folder stands, links on the way to the folder resolved. */
  readonly absolute: (path: string) => string;
}

/**
 * Compares what was found at a path of one folder with what state knows of it, and brings into
 * state what differs. Scans and fs events end here.
 *
 * A file that looks the same as when it was read is left alone, unless the configuration changed
 * what is to become of it. Any other is read as soon as it is at rest. A scan and an fs event may
 * find the same path at the same time: everything here is decided anew at the moment when it is put
 * into state.
 */
export class Reconciler {
  /** When the last full scan began that went to its end, in ms since the epoch. */
  scannedFrom = Number.NEGATIVE_INFINITY;
  readonly #beganAt: number;
  readonly #reading = new Map<string, FileStat>();

  constructor(private readonly deps: FolderDeps) {
    this.#beganAt = deps.clock.now();
  }

  /** The files that are read, or wait for it, as they were found. */
  get reading(): ReadonlyMap<string, FileStat> {
    return this.#reading;
  }

  /** Whether files are read, or wait for it. */
  get busy(): boolean {
    return this.#reading.size > 0;
  }

  /**
   * A regular file.
   *
   * @param file where to read it: the absolute path, or of a followed link the target
   * @param isAsked whether it is to be read though it looks as it did
   * @param isInNew whether its directory is watched only since a moment ago: it was made, or moved
   *   there
   */
  file(path: string, file: string, stat: FileStat, isAsked: boolean, isInNew = false): void {
    const { folder, rules, state, clock, debouncer, isUnmounted, mayLook } = this.deps;
    if (!mayLook() || isUnmounted(path)) return;
    const decision = rules.decideEntered(path);
    if (!decision.take) {
      this.excluded(path, decision.rule);
      return;
    }
    const bySize = this.#troubleOfSize(stat);
    const before = state.get(folder.name, path);
    const isSame = before !== undefined && !isMissing(before) && sameStat(before.version, stat);
    if (isSame && bySize === undefined && !isAsked && this.#isSettled(before, decision)) return;
    if (!debouncer.atRest(path, stat)) this.#open(path);
    else if (bySize !== undefined) this.#keepOut(path, stat, bySize);
    else {
      // At first everything is new, and counts from when it was at rest.
      const isLater = isInNew && this.scannedFrom >= this.#beganAt;
      void this.#read(path, file, stat, isLater ? clock.now() : this.scannedFrom);
    }
  }

  /**
   * Whether the size of a file keeps it from being read, and that is not known yet. Nothing but a
   * look of now shows it: a list may be old, and no reading compares what it says with the file.
   */
  isDecidedBySize(path: string, stat: FileStat): boolean {
    if (this.#troubleOfSize(stat) === undefined) return false;
    const before = this.deps.state.get(this.deps.folder.name, path);
    return (
      keptOutFor(before) === undefined || before === undefined || !sameStat(before.version, stat)
    );
  }

  #troubleOfSize({ size }: FileStat): Failure | undefined {
    const { maxFileSize } = this.deps.folder;
    if (size === 0) return failures.empty();
    return size > maxFileSize ? failures.tooLarge(size, maxFileSize) : undefined;
  }

  /** A rule keeps the path out: what the peer was sent of it is remembered, and nothing else. */
  excluded(path: string, rule: string): void {
    const { clock, folder, state, mayLook, log } = this.deps;
    const before = state.get(folder.name, path);
    if (!mayLook() || before === undefined || isAway(before) || isExcluded(before)) return;
    const at = { folder: folder.name, path };
    const after = skipped(
      before,
      at,
      fileStat(before.version),
      failures.excluded(folder.name),
      clock.now(),
    );
    if (mayHaveDocument(after)) {
      state.put(after);
      const words = `skipped ${itemName(at)}: ${rule}. The peer keeps what it was sent of it.`;
      log.info({ event: 'skipped', ...at, code: EXCLUDED }, `${words} ${after.failure.hint}`);
    } else {
      state.remove(folder.name, path);
      log.debug(at, `${itemName(at)} is skipped from now on: ${rule}.`);
    }
    this.#freed(path);
  }

  /**
   * Files that were certainly not there a moment ago. None counts as removed while the root is not
   * certain.
   */
  async removed(entries: readonly Entry[]): Promise<void> {
    const { folder, state, clock, renames, rules, isCertain, isUnmounted } = this.deps;
    const isKept = (entry: Entry) => isExcluded(entry) && !rules.decide(entry.path).take;
    const live = entries.filter((entry) => !isMissing(entry) && !isKept(entry));
    if (live.length === 0) return;
    const certain = await isCertain();
    for (const { path, version } of live) {
      const known = state.get(folder.name, path);
      // Another version means that the file was found again meanwhile; another status is only the
      // peer's word on it.
      if (known === undefined || isMissing(known) || !isDeepStrictEqual(known.version, version))
        continue;
      // The same file may come back with its directory, which then looks as it did.
      this.#open(path);
      if (certain && !isUnmounted(path)) {
        if (!mayHaveDocument(known)) state.remove(folder.name, path);
        else if (known.status !== 'gone' && known.status !== 'removed') {
          const item = gone(known, clock.now());
          state.put(item);
          renames.went(item);
        }
        this.#freed(path);
      }
    }
  }

  /** The next scan is to compare the path again, though nothing about it changed. */
  #open(path: string): void {
    this.deps.digests.delete(directoryOf(path));
  }

  /** Whether nothing is left to do for a file that looks as it did. */
  #isSettled(before: Entry, to: Taken): boolean {
    const { accepts, folder } = this.deps;
    const { path } = before;
    const keptOut = keptOutFor(before);
    if (keptOut !== undefined) {
      const { code, message } = keptOut;
      if (code === PRIVATE_KEY) return folder.ignoreDefaults;
      return (
        code === NO_WORDS || ENCODINGS.some((encoding) => accepts(encoding)?.message === message)
      );
    }
    if (!isItem(before)) return false;
    if (isWaitingForName(before)) {
      this.#open(path);
      return this.#holderOf(path) !== undefined;
    }
    if (!hasContent(before.version)) {
      this.#open(path);
      return false;
    }
    const isAccepted = accepts(before.version.encoding) === undefined;
    return isAccepted && before.url === to.url && before.collection === to.collection;
  }

  /** Reads a file, once at a time: what was written behind the reading is found by another look. */
  async #read(path: string, file: string, stat: FileStat, notBefore: number): Promise<void> {
    const { absolute, folder, hashQueue, debouncer, mayLook, log } = this.deps;
    if (this.#reading.has(path)) {
      debouncer.raced(path, stat);
      return;
    }
    this.#reading.set(path, stat);
    try {
      const linksWithin = folder.followSymlinks ? absolute('') : undefined;
      const found = await hashQueue.read({ file, stat, linksWithin }, mayLook);
      if (found?.kind !== 'version') this.#open(path);
      if (found !== undefined && mayLook()) this.#wasRead(path, stat, found, notBefore);
    } catch (error) {
      this.#open(path);
      const at = { folder: folder.name, path };
      log.error(
        { ...at, err: error },
        `${itemName(at)} could not be taken up: ${messageOf(error)}`,
      );
    } finally {
      this.#reading.delete(path);
    }
  }

  #wasRead(path: string, stat: FileStat, found: Fingerprint, notBefore: number): void {
    const { folder, state, clock, debouncer, renames, rules, accepts } = this.deps;
    if (found.kind === 'raced' || found.kind === 'busy') {
      debouncer.raced(path, stat);
      return;
    }
    if (found.kind === 'vanished' || found.kind === 'notRegular') {
      debouncer.look(path);
      return;
    }
    const decision = rules.decide(path);
    if (!decision.take) {
      this.excluded(path, decision.rule);
      return;
    }
    if (found.kind === 'unreadable') {
      this.#keepOut(path, stat, failures.unreadable(found.code), decision);
      return;
    }
    const { version } = found;
    const isSecret = found.holdsPrivateKey && folder.ignoreDefaults;
    const refusal = isSecret ? failures.privateKey(folder.name) : accepts(version.encoding);
    const holder = refusal === undefined ? this.#holderOf(path) : undefined;
    if (refusal !== undefined) this.#keepOut(path, version, refusal);
    else if (holder !== undefined)
      this.#keepOut(path, version, failures.sameDocument(holder), decision);
    else {
      const before = state.get(folder.name, path);
      const restedAt = this.#restedAt(before, version, notBefore);
      const item = read(
        before,
        { ...decision, folder: folder.name, path },
        version,
        clock.now(),
        restedAt,
      );
      this.#put(item);
      if (before === undefined || isMissing(before)) renames.came(item);
    }
  }

  /**
   * Since when a file has been at rest: it had not changed (by its ctime, which a rename sets too)
   * for `settle`; not before its folder was watched, and not while it was gone. A new one that came
   * later than its own times say, for it was moved in with its directory, or was not there or was
   * kept out by a rule when everything was scanned, counts from now on.
   */
  #restedAt(before: Entry | undefined, { ctimeMs }: FileStat, notBefore: number): number {
    const { clock, folder } = this.deps;
    const now = clock.now();
    const isNew = before === undefined || isMissing(before);
    if (isNew && notBefore > this.#beganAt && ctimeMs + folder.settle < notBefore) return now;
    const settledAt = Math.round(ctimeMs) - wallAheadMs(clock) + folder.settle;
    const goneAt = before !== undefined && isMissing(before) ? before.since : 0;
    return Math.min(now, Math.max(settledAt, this.#beganAt, goneAt));
  }

  /** Keeps a file from the peer: in quarantine where it was to be taken, or else skipped. */
  #keepOut(
    path: string,
    { size, mtimeMs, ctimeMs, ino }: FileStat,
    why: Failure,
    to?: Taken,
  ): void {
    const { folder, state, clock, log } = this.deps;
    const stat = { size, mtimeMs, ctimeMs, ino };
    const before = state.get(folder.name, path);
    const known = before?.status === 'quarantined' ? before.failure : keptOutFor(before);
    const isAlike = (before?.status === 'quarantined') === (to !== undefined);
    if (
      before !== undefined &&
      isAlike &&
      known?.message === why.message &&
      sameStat(before.version, stat)
    )
      return;
    const at = { folder: folder.name, path };
    if (to === undefined) {
      const isLeaving = before?.status === 'removing' && before.keptOut !== undefined;
      const after = isLeaving
        ? stillKeptOut(before, stat, why)
        : skipped(before, at, stat, why, clock.now());
      state.put(after);
      this.#freed(path);
      if (!wasSkippedFor(before, why)) this.#tellSkipped(path, why);
      return;
    }
    this.#put(quarantined(before, { ...to, ...at }, stat, why, clock.now()));
    const words = `quarantined ${itemName(at)}: ${why.message} ${why.hint}`;
    log.warn({ event: 'quarantined', ...at, code: why.code }, words);
  }

  #tellSkipped(path: string, why: Failure): void {
    const { folder, log } = this.deps;
    const at = { folder: folder.name, path };
    const level = why.code === PRIVATE_KEY ? 'warn' : 'info';
    const words = `skipped ${itemName(at)}: ${why.message} ${why.hint}`;
    log[level]({ event: 'skipped', ...at, code: why.code }, words);
  }

  #put(entry: Entry): void {
    this.deps.state.put(entry);
    this.deps.changed();
  }

  /** The path gave up its document, which another name may wait for. */
  #freed(path: string): void {
    const { folder, state, debouncer, changed } = this.deps;
    changed();
    for (const other of otherForms(path))
      if (isWaitingForName(state.get(folder.name, other))) debouncer.look(other);
  }

  /**
   * The other path that holds the document of `path`, if one does: files whose paths are the same
   * but for their Unicode form have one URL, so they would be one document, now with the one
   * content and now with the other. The first that is taken holds it; the others wait in quarantine
   * until it is gone or skipped.
   */
  #holderOf(path: string): string | undefined {
    const { folder, state } = this.deps;
    return otherForms(path).find((other) => {
      const entry = state.get(folder.name, other);
      const isFree = entry === undefined || isAway(entry) || entry.status === 'skipped';
      return !isFree && !isWaitingForName(entry);
    });
  }
}

const ASCII = /^[\0-\x7f]*$/;

/**
 * So many other paths are looked for: there are twice as many with each name that has two forms.
 */
const MOST_FORMS = 256;

/**
 * The paths that differ only in the Unicode form of their names: `ü` as one character (NFC) or as
 * two (NFD).
 */
function otherForms(path: string): string[] {
  if (ASCII.test(path)) return [];
  let all = [''];
  for (const name of path.split('/')) {
    const forms = [...new Set([name, name.normalize('NFC'), name.normalize('NFD')])];
    all = all.flatMap((above) => forms.map((form) => joinPath(above, form))).slice(0, MOST_FORMS);
  }
  return all.filter((form) => form !== path);
}

/** Whether another name has the document of this file. */
function isWaitingForName(entry: Entry | undefined): boolean {
  return entry?.status === 'quarantined' && entry.failure.code === SAME_DOCUMENT;
}
