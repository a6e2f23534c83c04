import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Fingerprint } from '../content/reader.js';
import { NO_WORDS } from '../content/words.js';
import { wallAheadMs } from '../lib/clock.js';
import { ENCODINGS } from '../lib/encodings.js';
import {
  type Entry,
  type FileStat,
  hasContent,
  isItem,
  sameStat,
  type Trouble,
  type Version,
} from '../state/entry.js';
import { broughtIn, gone, passedOver, quarantined, read } from '../state/transitions.js';
import type { Purpose, Seen } from './debouncer.js';
import type { FolderDeps } from './deps.js';
import type { WatchState } from './root.js';
import type { Decision } from './rules.js';
import { trouble } from './trouble.js';

export interface ReconcilerOptions {
  /** When the last full scan began that went to its end, in ms since the epoch. */
  readonly scannedFrom: () => number | undefined;
  /** A path is not done with: the next scan is to compare it again, though nothing about it changed. */
  readonly onOpen: (path: string) => void;
}

/** What is known of a file beside its stat. */
export interface Circumstances {
  /** How it looked earlier. */
  readonly seen?: Seen | undefined;
  /** When a directory that it stands in was last moved, as far as is known; in ms since the epoch. */
  readonly movedAt?: number;
}

type Taken = Extract<Decision, { take: true }>;

/**
 * Compares what was found at a path of one folder with what state knows of it, and brings into state what differs. Scans
 * and fs events end here.
 *
 * A file that looks the same as when it was read is left alone, unless the configuration changed what is to become of
 * it. Any other is read as soon as it is at rest. A scan and an fs event may find the same path at the same time:
 * everything here is decided anew at the moment when it is put into state.
 */
export class Reconciler {
  readonly #deps: FolderDeps;
  readonly #scannedFrom: () => number | undefined;
  readonly #onOpen: (path: string) => void;
  readonly #conflicts: NameConflicts;
  readonly #beganAt: number;

  constructor(deps: FolderDeps, { scannedFrom, onOpen }: ReconcilerOptions) {
    this.#deps = deps;
    this.#scannedFrom = scannedFrom;
    this.#onOpen = onOpen;
    this.#conflicts = new NameConflicts(deps.folder.name, deps.state);
    this.#beganAt = deps.clock.now();
  }

  /** Resolves when the names in state are known; to be awaited before anything is reconciled. */
  ready(): Promise<void> {
    return this.#conflicts.load();
  }

  /**
   * A regular file.
   *
   * @param file where to read it: the absolute path, or of a followed link the target
   */
  file(path: string, file: string, stat: FileStat, purpose: Purpose, known: Circumstances): void {
    const { folder, rules, state, debouncer, hashQueue } = this.#deps;
    const decision = rules.decideEntered(path);
    if (!decision.take) {
      this.excluded(path, decision.rule);
      return;
    }
    const before = state.get(folder.name, path);
    if (before !== undefined && before.status !== 'gone' && sameStat(before.version, stat)) {
      if (purpose !== 'asked' && this.#isSettledFor(before, decision, stat, purpose)) return;
    }
    if (!debouncer.atRest(path, stat, known.seen)) {
      this.#onOpen(path);
      return;
    }
    if (stat.size === 0) this.#passOver(path, stat, trouble.empty());
    else if (stat.size > folder.maxFileSize) {
      this.#passOver(path, stat, trouble.tooLarge(stat.size, folder.maxFileSize));
    } else {
      const cameLater = this.#cameLater(stat, known.movedAt);
      const wasRead = (found: Fingerprint) => {
        if (found.kind !== 'version') this.#onOpen(path);
        try {
          this.#wasRead(path, stat, found, cameLater);
        } catch (error) {
          this.#onOpen(path);
          throw error;
        }
      };
      hashQueue.add({ folder: folder.name, path, file, stat, read: wasRead });
    }
  }

  /** A directory, a link that is not followed, or a special file; nothing of it is remembered. */
  async noFile(path: string): Promise<void> {
    const before = this.#deps.state.get(this.#deps.folder.name, path);
    if (before !== undefined && before.status !== 'gone') await this.removed([before]);
  }

  /** A rule keeps the path out: there is nothing to remember of it. */
  excluded(path: string, rule: string): void {
    const { folder, state, commits, log } = this.#deps;
    const before = state.get(folder.name, path);
    if (before === undefined || before.status === 'gone') return;
    state.remove(folder.name, path);
    commits.changed();
    this.#freed(path);
    log.debug({ folder: folder.name, path }, `${path} is passed over from now on: ${rule}.`);
  }

  /** Files that were certainly not there a moment ago. Nothing is concluded while the root is not certain. */
  async removed(entries: readonly Entry[]): Promise<void> {
    const { folder, root, state, commits, clock } = this.#deps;
    if ((await root.check()).kind !== 'same') {
      for (const { path } of entries) this.#onOpen(path);
      return;
    }
    for (const { path, version } of entries) {
      const known = state.get(folder.name, path);
      // Another version means that the file was found again meanwhile; another status is only the peer's word on it.
      if (known === undefined || known.status === 'gone' || !sameVersion(known.version, version)) continue;
      if (isItem(known)) state.put(gone(known, clock.now()));
      else state.remove(folder.name, path);
      commits.changed();
      this.#freed(path);
    }
  }

  /** Whether nothing is left to do for a file that looks as it did; does what needs no reading. */
  #isSettledFor(before: Entry, to: Taken, stat: FileStat, purpose: Purpose): boolean {
    const { folder, state, clock, commits, accepts } = this.#deps;
    if (!isItem(before)) return this.#isStillPassed(before.trouble, stat);
    if (stat.size > folder.maxFileSize) return false;
    if (isWaitingForName(before)) {
      this.#onOpen(before.path);
      return this.#conflicts.holderOf(before.path) !== undefined;
    }
    if (!hasContent(before.version)) {
      this.#onOpen(before.path);
      return purpose === 'change';
    }
    const refusal = accepts(before.version.encoding);
    if (refusal !== undefined) {
      this.#passOver(before.path, stat, refusal);
    } else if (before.url !== to.url || before.collection !== to.collection) {
      const { url, collection } = to;
      const destination = { folder: folder.name, path: before.path, url, collection };
      state.put(read(before, destination, before.version, clock.now()));
      commits.changed();
    }
    return true;
  }

  /** Whether the reason for passing a file over still holds in this configuration. */
  #isStillPassed(why: Trouble, stat: FileStat): boolean {
    const { folder, accepts } = this.#deps;
    if (stat.size === 0 || why.code === NO_WORDS) return true;
    if (why.code === trouble.tooLarge(0, 0).code || stat.size > folder.maxFileSize) {
      return (
        why.message === trouble.tooLarge(stat.size, folder.maxFileSize).message &&
        stat.size > folder.maxFileSize
      );
    }
    return ENCODINGS.some((encoding) => {
      const refusal = accepts(encoding);
      return refusal?.code === why.code && refusal.message === why.message;
    });
  }

  /**
   * Whether a file that is new here came later than its own times say: it was moved in with its directory, or was not
   * there, or was kept out by a rule, when everything was scanned.
   */
  #cameLater({ ctimeMs }: FileStat, movedAt = Number.NEGATIVE_INFINITY): boolean {
    const { folder } = this.#deps;
    const notBefore = Math.max(movedAt, this.#scannedFrom() ?? Number.NEGATIVE_INFINITY);
    return notBefore > this.#beganAt && ctimeMs + folder.settle < notBefore;
  }

  /**
   * Since when a file has been at rest: it had not changed (by its ctime, which a rename sets too) for `settle`; not before its
   * folder was watched, and not while it was gone.
   */
  #restedAt(before: Entry | undefined, { ctimeMs }: FileStat): number {
    const { clock, folder } = this.#deps;
    const goneAt = before?.status === 'gone' ? before.since : 0;
    return Math.max(Math.round(ctimeMs) - wallAheadMs(clock) + folder.settle, this.#beganAt, goneAt);
  }

  #wasRead(path: string, stat: FileStat, found: Fingerprint, cameLater: boolean): void {
    const { debouncer } = this.#deps;
    switch (found.kind) {
      case 'version':
        this.#hasVersion(path, found.version, cameLater);
        return;
      case 'unreadable':
        this.#isUnreadable(path, stat, found.code);
        return;
      case 'raced':
      case 'busy':
        debouncer.raced(path, stat);
        return;
      case 'vanished':
      case 'notRegular':
        debouncer.look(path, 'change');
        return;
    }
  }

  #hasVersion(path: string, version: Version, cameLater: boolean): void {
    const { folder, rules, state, clock, commits, accepts } = this.#deps;
    const decision = rules.decide(path);
    if (!decision.take) {
      this.excluded(path, decision.rule);
      return;
    }
    const refusal = accepts(version.encoding);
    if (refusal !== undefined) {
      const { size, mtimeMs, ctimeMs, ino } = version;
      this.#passOver(path, { size, mtimeMs, ctimeMs, ino }, refusal);
      return;
    }
    const { url, collection } = decision;
    const holder = this.#conflicts.holderOf(path);
    if (holder !== undefined) {
      this.#quarantine(path, decision, version, trouble.sameDocument(holder));
      return;
    }
    const before = state.get(folder.name, path);
    const isBroughtIn = cameLater && (before === undefined || before.status === 'gone');
    const now = clock.now();
    const restedAt = isBroughtIn ? now : Math.min(now, this.#restedAt(before, version));
    const item = read(before, { folder: folder.name, path, url, collection }, version, now, restedAt);
    state.put(isBroughtIn ? broughtIn(item) : item);
    this.#conflicts.met(path);
    commits.changed();
  }

  #isUnreadable(path: string, stat: FileStat, code: string): void {
    const decision = this.#deps.rules.decide(path);
    if (decision.take) this.#quarantine(path, decision, stat, trouble.unreadable(code));
    else this.excluded(path, decision.rule);
  }

  #quarantine(path: string, { url, collection }: Taken, found: FileStat, why: Trouble): void {
    const { folder, state, clock, commits, log } = this.#deps;
    const { size, mtimeMs, ctimeMs, ino } = found;
    const stat = { size, mtimeMs, ctimeMs, ino };
    const before = state.get(folder.name, path);
    if (
      before?.status === 'quarantined' &&
      before.trouble.message === why.message &&
      sameStat(before.version, stat)
    ) {
      return;
    }
    state.put(quarantined(before, { folder: folder.name, path, url, collection }, stat, why, clock.now()));
    this.#conflicts.met(path);
    commits.changed();
    log.warn(
      { event: 'quarantined', folder: folder.name, path, code: why.code },
      `quarantined ${folder.name}/${path}: ${why.message} ${why.hint}`,
    );
  }

  #passOver(path: string, stat: FileStat, why: Trouble): void {
    const { folder, state, clock, commits } = this.#deps;
    const before = state.get(folder.name, path);
    if (
      before?.status === 'passed' &&
      before.trouble.message === why.message &&
      sameStat(before.version, stat)
    ) {
      return;
    }
    state.put(passedOver(before, { folder: folder.name, path }, stat, why, clock.now()));
    commits.changed();
    this.#freed(path);
  }

  /** The path gave up its document, which another name may wait for. */
  #freed(path: string): void {
    for (const other of this.#conflicts.waitingFor(path)) this.#deps.debouncer.look(other, 'change');
  }
}

const ASCII = /^[\0-\x7f]*$/;
/** So many names are gone through without a pause. */
const SLICE = 500;

/**
 * Files of one folder whose paths are the same but for their Unicode form: `ü` as one character (NFC) or as two (NFD).
 * They have one URL, so they would be one document, now with the one content and now with the other.
 *
 * The first that is taken *holds* the document; the others wait in quarantine until it is gone or passed over.
 */
class NameConflicts {
  readonly #folder: string;
  readonly #state: WatchState;
  /** Paths that are not in NFC, by their NFC form; those in NFC are found in state. */
  readonly #others = new Map<string, Set<string>>();
  #loading: Promise<void> | undefined;

  constructor(folder: string, state: WatchState) {
    this.#folder = folder;
    this.#state = state;
  }

  /** Goes through all names that state knows, once, in slices. */
  load(): Promise<void> {
    this.#loading ??= inSlices(this.#state.entries.all(this.#folder), SLICE, (entries) => {
      for (const { path } of entries) this.met(path);
    });
    return this.#loading;
  }

  /** To be called with every path that is put into state. */
  met(path: string): void {
    if (ASCII.test(path)) return;
    const form = path.normalize('NFC');
    if (form === path) return;
    const known = this.#others.get(form);
    if (known === undefined) this.#others.set(form, new Set([path]));
    else known.add(path);
  }

  /** The other path that holds the document of `path`, if one does. */
  holderOf(path: string): string | undefined {
    return this.#otherNames(path).find((other) => {
      const entry = this.#state.get(this.#folder, other);
      if (entry === undefined || isWaitingForName(entry)) return false;
      return entry.status !== 'gone' && entry.status !== 'passed';
    });
  }

  /** The paths that wait for the document of `path`. */
  waitingFor(path: string): string[] {
    return this.#otherNames(path).filter((other) => {
      const entry = this.#state.get(this.#folder, other);
      return entry !== undefined && isWaitingForName(entry);
    });
  }

  #otherNames(path: string): string[] {
    if (ASCII.test(path)) return [];
    const form = path.normalize('NFC');
    return [form, ...(this.#others.get(form) ?? [])].filter((other) => other !== path);
  }
}

/** Whether another name has the document of this file. */
function isWaitingForName(entry: Entry): boolean {
  return entry.status === 'quarantined' && entry.trouble.code === trouble.sameDocument('').code;
}

function sameVersion(a: Version | FileStat, b: Version | FileStat): boolean {
  return sameStat(a, b) && (hasContent(a) ? a.sha256 : undefined) === (hasContent(b) ? b.sha256 : undefined);
}

/** Does `work` for all items, so many at a time, with room for other work in between. */
export async function inSlices<T>(
  items: Iterable<T>,
  size: number,
  work: (slice: readonly T[]) => Promise<void> | void,
): Promise<void> {
  let slice: T[] = [];
  for (const item of items) {
    slice.push(item);
    if (slice.length < size) continue;
    await work(slice);
    slice = [];
    await nextTurn();
  }
  if (slice.length > 0) await work(slice);
}
