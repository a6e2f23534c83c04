import { isDeepStrictEqual } from 'node:util';
import type { Fingerprint } from '../content/file-reader.js';
import { isThereNow } from '../content/helpers/programs.js';
import { AWAITS_PROGRAM, encodingWith, isReadableNow } from '../content/helpers/readable.js';
import { NO_WORDS } from '../content/words.js';
import { wallAheadMs } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import { directoryOf, ENCODINGS, type FileStat, sameStat } from '../lib/file.js';
import {
  type Entry,
  type Failure,
  hasContent,
  type Item,
  isExcluded,
  isItem,
  isMissing,
  itemName,
  keptOutFor,
  mayHaveDocument,
  type Version,
} from '../state/entry.js';
import { mayLack, unchangedItem } from '../state/line.js';
import { gone, read, readAgain } from '../state/transitions.js';
import { Exclusions, isWaitingForName, ownerOfDocument } from './exclusions.js';
import type { FolderDeps } from './folder-deps.js';
import { failureOfStat, failures, PRIVATE_KEY } from './rules/failures.js';
import type { Taken } from './rules/folder-rules.js';

/**
 * The way in which a file was found:
 *
 * - `look`: by a scan, or by a look that an fs event caused.
 * - `newDirectory`: by the first listing of a directory that is watched only since a moment ago. It
 *   was created, or moved there with the file.
 * - `request`: by a look that somebody requested. The file is read even if it did not change.
 */
export type FoundBy = 'look' | 'newDirectory' | 'request';

/**
 * Compares what was found at a path of one folder with what state knows of it, and brings the
 * difference into state. Scans and fs events end here.
 *
 * Path rules decide whether the file is taken. Then its stat decides whether it is skipped, and
 * what state knows of it decides whether it is new. A file with an unchanged stat is left alone,
 * unless the configuration changed what becomes of it. Any other file is read as soon as it is at
 * rest. A scan and an fs event may find the same path at the same time, so every decision is made
 * anew when its result is put into state.
 *
 * Files of a directory that did not change since the last scan do not come here, because the
 * scanner does not compare it. Where something in a directory stays to be done, though nothing in
 * it may change, `#reopen` has the next scan compare it again.
 */
export class Reconciler {
  /** The start of the last full scan that went to its end, in ms since the epoch. */
  scannedFrom = Number.NEGATIVE_INFINITY;
  readonly #exclusions: Exclusions;
  readonly #beganAt: number;
  readonly #reading = new Map<string, FileStat>();

  constructor(private readonly deps: FolderDeps) {
    this.#exclusions = new Exclusions(deps);
    this.#beganAt = deps.clock.now();
  }

  /** The files that are being read or wait to be read, as they were found. */
  get reading(): ReadonlyMap<string, FileStat> {
    return this.#reading;
  }

  /** Whether files are being read or wait to be read. */
  get busy(): boolean {
    return this.#reading.size > 0;
  }

  /**
   * Whether state knows a regular file as it was found, and nothing is left to do for it. Scans ask
   * this before they call `file`. The answer comes from the text of the record, which takes 1 µs
   * where `file` takes 12. If that text does not show it, `file` has to decide.
   */
  isDone(path: string, stat: FileStat): boolean {
    const { folder, peer, rules, state } = this.deps;
    const line = state.entries.line(folder.name, path);
    const item = line === undefined ? undefined : unchangedItem(line, stat);
    if (item?.encoding === undefined || failureOfStat(stat, folder) !== undefined) return false;
    if (peer.refusalOf(item.encoding) !== undefined) return false;
    if (line !== undefined && item.encoding === 'document' && mayLack(line)) return false;
    const base = state.entries.bases[item.base];
    return base?.url === folder.url && base.collection === rules.collectionEntered(path);
  }

  /**
   * Takes up a regular file that was found.
   *
   * @param file the path to read: absolute, and the target of a link that is followed
   */
  file(path: string, file: string, stat: FileStat, foundBy: FoundBy): void {
    const { clock, debouncer, folder, guard, rules, state } = this.deps;
    if (!guard.mayLook || guard.isUnmounted(path)) return;
    const decision = rules.decideEntered(path);
    if (!decision.take) {
      this.#exclusions.exclude(path, decision.rule);
      return;
    }
    const statFailure = failureOfStat(stat, folder);
    const before = state.get(folder.name, path);
    const isUnchanged =
      before !== undefined && !isMissing(before) && sameStat(before.version, stat);
    const mustBeJudged = statFailure !== undefined || foundBy === 'request';
    if (isUnchanged && !mustBeJudged && this.#needsNothing(before, decision)) return;
    if (!debouncer.atRest(path, stat)) this.#reopen(path);
    else if (statFailure !== undefined) this.#exclusions.skip(path, stat, statFailure);
    else {
      // During the first scan every directory is new, and that proves nothing.
      const hasJustCome = foundBy === 'newDirectory' && this.scannedFrom >= this.#beganAt;
      void this.#read(path, file, stat, hasJustCome ? clock.now() : this.scannedFrom);
    }
  }

  /**
   * Whether a file needs a fresh lstat, because its stat keeps it out and a listing may be stale. A
   * file that is read needs none: reading compares the stat. Nor does a file of which state knows
   * already that it is kept out.
   */
  needsFreshStat(path: string, stat: FileStat): boolean {
    const { folder, state } = this.deps;
    if (failureOfStat(stat, folder) === undefined) return false;
    const before = state.get(folder.name, path);
    if (before === undefined || keptOutFor(before) === undefined) return true;
    return !sameStat(before.version, stat);
  }

  /** Excludes a path by a rule; see Exclusions. */
  excluded(path: string, rule: string): void {
    this.#exclusions.exclude(path, rule);
  }

  /**
   * Takes up that files were absent a moment ago. None counts as removed unless the root is
   * certainly the folder.
   */
  async removed(entries: readonly Entry[]): Promise<void> {
    const { folder, guard, rules, state } = this.deps;
    const isExcludedStill = (entry: Entry) => isExcluded(entry) && !rules.decide(entry.path).take;
    const live = entries.filter((entry) => !isMissing(entry) && !isExcludedStill(entry));
    if (live.length === 0) return;
    const isCertain = await guard.isCertain();
    for (const { path, version } of live) {
      const known = state.get(folder.name, path);
      // Another version means that the file was found again meanwhile. Another status does not: it
      // comes from the answers of the peer.
      if (known === undefined || isMissing(known)) continue;
      if (!isDeepStrictEqual(known.version, version)) continue;
      // The same file may come back with its directory, which then has the digest that it had.
      this.#reopen(path);
      if (isCertain && !guard.isUnmounted(path)) this.#markGone(known);
    }
  }

  #markGone(known: Entry): void {
    const { clock, folder, renames, state } = this.deps;
    if (!mayHaveDocument(known)) state.remove(folder.name, known.path);
    else if (known.status !== 'gone' && known.status !== 'removed') {
      const item = gone(known, clock.now());
      state.put(item);
      renames.went(item);
    }
    this.#exclusions.documentFreed(known.path);
  }

  /** Has the next scan compare the directory of a path again, though nothing in it may change. */
  #reopen(path: string): void {
    this.deps.digests.delete(directoryOf(path));
  }

  /** Whether nothing is left to do for a file with an unchanged stat. */
  #needsNothing(before: Entry, taken: Taken): boolean {
    const { path } = before;
    const keptOut = keptOutFor(before);
    if (keptOut !== undefined) return this.#isStillKeptOut(path, keptOut);
    if (!isItem(before)) return false;
    if (isWaitingForName(before)) {
      this.#reopen(path);
      return this.#ownerOf(path) !== undefined;
    }
    if (!hasContent(before.version)) {
      this.#reopen(path);
      return false;
    }
    const isAccepted = this.deps.peer.refusalOf(before.version.encoding) === undefined;
    if (!isAccepted || before.url !== taken.url || before.collection !== taken.collection)
      return false;
    this.#takeAgain(before);
    return true;
  }

  /** Has a document pushed again if a program is there now that was missing when it was read. */
  #takeAgain(item: Item): void {
    const { clock, committer, programs, state } = this.deps;
    if (item.status !== 'accepted' && item.status !== 'confirmed') return;
    if (!isThereNow(programs.current, item.sent.lacks)) return;
    state.put(readAgain(item, clock.now()));
    committer.commitSoon();
  }

  /**
   * Whether the reason for which an unchanged file was skipped still applies. A skip by size is
   * judged by `failureOfStat` instead.
   */
  #isStillKeptOut(path: string, { code }: Failure): boolean {
    const { folder, peer, programs } = this.deps;
    if (isReadableNow(programs.current, path, code)) return false;
    if (code === PRIVATE_KEY) return folder.ignoreDefaults;
    if (code === NO_WORDS || AWAITS_PROGRAM.has(code)) return true;
    return ENCODINGS.some((encoding) => peer.refusalOf(encoding)?.code === code);
  }

  /** Reads a file that is not being read already. If it is, another look follows. */
  async #read(path: string, file: string, stat: FileStat, notBefore: number): Promise<void> {
    const { debouncer, folder, guard, hashQueue, log } = this.deps;
    if (this.#reading.has(path)) {
      debouncer.raced(path, stat);
      return;
    }
    this.#reading.set(path, stat);
    try {
      const linksWithin = folder.followSymlinks ? guard.absolute('') : undefined;
      const found = await hashQueue.read({ file, stat, linksWithin }, () => guard.mayLook);
      if (found?.kind !== 'version') this.#reopen(path);
      if (found !== undefined && guard.mayLook) this.#wasRead(path, stat, found, notBefore);
    } catch (error) {
      this.#reopen(path);
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
    const { debouncer, rules } = this.deps;
    if (found.kind === 'raced' || found.kind === 'busy') {
      debouncer.raced(path, stat);
      return;
    }
    if (found.kind === 'vanished' || found.kind === 'notRegular') {
      debouncer.look(path);
      return;
    }
    // The rules may have changed while the file was read.
    const decision = rules.decide(path);
    if (!decision.take) this.#exclusions.exclude(path, decision.rule);
    else if (found.kind === 'unreadable')
      this.#exclusions.quarantine(path, stat, failures.unreadable(found.code), decision);
    else this.#takeVersion(path, found, decision, notBefore);
  }

  #takeVersion(
    path: string,
    found: Extract<Fingerprint, { kind: 'version' }>,
    taken: Taken,
    notBefore: number,
  ): void {
    const { folder, peer, programs } = this.deps;
    const { holdsPrivateKey, typeName } = found;
    const encoding = encodingWith(programs.current, path, found.version.encoding);
    const version = { ...found.version, encoding };
    const isSecret = holdsPrivateKey && folder.ignoreDefaults;
    const refusal = isSecret
      ? failures.privateKey(folder.name)
      : peer.refusalOf(version.encoding, typeName);
    if (refusal !== undefined) {
      this.#exclusions.skip(path, version, refusal);
      return;
    }
    const owner = this.#ownerOf(path);
    if (owner !== undefined)
      this.#exclusions.quarantine(path, version, failures.sameDocument(owner), taken);
    else this.#putVersion(path, version, taken, notBefore);
  }

  #putVersion(path: string, version: Version, taken: Taken, notBefore: number): void {
    const { clock, committer, folder, renames, state } = this.deps;
    const before = state.get(folder.name, path);
    const restedAt = this.#restedAt(before, version, notBefore);
    const destination = { ...taken, folder: folder.name, path };
    const item = read(before, destination, version, clock.now(), restedAt);
    state.put(item);
    committer.commitSoon();
    if (before === undefined || isMissing(before)) renames.came(item);
  }

  /**
   * Returns the time at which a file came to rest, in ms since the epoch: `settle` after its ctime
   * (a rename sets that too), but not before its folder was watched, and not while it was gone.
   *
   * A new file may have come later than its own times say: it was moved in with its directory, or
   * was absent or excluded when everything was scanned. Its time of rest is now.
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

  #ownerOf(path: string): string | undefined {
    return ownerOfDocument(this.deps.state, this.deps.folder.name, path);
  }
}
