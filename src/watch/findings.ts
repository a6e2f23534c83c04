import type { FolderConfig } from '../config/config.js';
import type { Fingerprint } from '../content/reader.js';
import { NO_WORDS } from '../content/words.js';
import type { Clock } from '../lib/clock.js';
import { ENCODINGS, type Encoding } from '../lib/encodings.js';
import type { Logger } from '../lib/logger.js';
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
import type { Commits } from './commits.js';
import type { HashQueue } from './hash-queue.js';
import type { Root } from './root.js';
import type { Decision, FolderRules } from './rules.js';
import type { Seen, Settling } from './settling.js';
import { trouble } from './trouble.js';
import { Twins } from './twins.js';
import type { WatchState } from './watch-state.js';

/** Whether the peer can take text in an encoding: nothing, or why it cannot. Depends on the encoding alone. */
export type Accepts = (encoding: Encoding) => Trouble | undefined;

/**
 * Why a path is looked at. A rescan also tries again what could not be read, though nothing about it changed; what was
 * `asked` for is read in any case.
 */
export type Purpose = 'change' | 'rescan' | 'asked';

export interface FindingsParts {
  readonly folder: FolderConfig;
  readonly rules: FolderRules;
  readonly root: Root;
  readonly state: WatchState;
  readonly settling: Settling;
  readonly hashQueue: HashQueue;
  readonly commits: Commits;
  readonly accepts: Accepts;
  readonly clock: Clock;
  readonly log: Logger;
  /** When the last full scan began that went to its end, in ms since the epoch. */
  readonly scannedFrom: () => number | undefined;
  /** The path is to be looked at once more: what was found is out of date. */
  readonly lookAgain: (path: string) => void;
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
 * Compares what was found at a path of one folder with what state knows of it, and brings into state what differs.
 *
 * A file that looks the same as when it was read is left alone, unless the configuration changed what is to become of
 * it. Any other is read as soon as it is at rest. Scans and hints may find the same path at the same time: everything
 * here is decided anew at the moment when it is put into state.
 */
export class Findings {
  readonly #parts: FindingsParts;
  readonly #twins: Twins;
  readonly #beganAt: number;

  constructor(parts: FindingsParts) {
    this.#parts = parts;
    this.#twins = new Twins(parts.folder.name, parts.state);
    this.#beganAt = parts.clock.now();
  }

  /**
   * A regular file.
   *
   * @param file where to read it: the absolute path, or of a followed link the target
   */
  regularFile(path: string, file: string, stat: FileStat, purpose: Purpose, known: Circumstances): void {
    const { folder, rules, state, settling, hashQueue } = this.#parts;
    const decision = rules.decideEntered(path);
    if (!decision.take) {
      this.excluded(path, decision.rule);
      return;
    }
    const before = state.get(folder.name, path);
    if (before !== undefined && before.status !== 'gone' && sameStat(before.version, stat)) {
      if (purpose !== 'asked' && this.#isSettledFor(before, decision, stat, purpose)) return;
    }
    if (!settling.atRest(path, stat, known.seen)) return;
    if (stat.size === 0) this.#passOver(path, stat, trouble.empty());
    else if (stat.size > folder.maxFileSize) {
      this.#passOver(path, stat, trouble.tooLarge(stat.size, folder.maxFileSize));
    } else {
      const cameLater = this.#cameLater(stat, known.movedAt);
      hashQueue.add({
        folder: folder.name,
        path,
        file,
        stat,
        read: (fingerprint) => this.#wasRead(path, stat, fingerprint, cameLater),
      });
    }
  }

  /** A directory, a link that is not followed, or a special file; nothing of it is remembered. */
  async noFile(path: string): Promise<void> {
    const before = this.#parts.state.get(this.#parts.folder.name, path);
    if (before !== undefined && before.status !== 'gone') await this.removed([before]);
  }

  /** A rule keeps the path out: there is nothing to remember of it. */
  excluded(path: string, rule: string): void {
    const { folder, state, commits, log } = this.#parts;
    const before = state.get(folder.name, path);
    if (before === undefined || before.status === 'gone') return;
    state.remove(folder.name, path);
    commits.changed();
    this.#freed(path);
    log.debug({ folder: folder.name, path }, `${path} is passed over from now on: ${rule}.`);
  }

  /** Files that were certainly not there a moment ago. Nothing is concluded while the root is not certain. */
  async removed(entries: readonly Entry[]): Promise<void> {
    const { folder, root, state, commits, clock } = this.#parts;
    if ((await root.check()).kind !== 'same') return;
    for (const { path, version } of entries) {
      const known = state.get(folder.name, path);
      // Another version means that the file was found again meanwhile; another status is only the peer's word on it.
      if (known === undefined || known.status === 'gone' || known.version !== version) continue;
      if (isItem(known)) state.put(gone(known, clock.now()));
      else state.remove(folder.name, path);
      commits.changed();
      this.#freed(path);
    }
  }

  /** Whether nothing is left to do for a file that looks as it did; does what needs no reading. */
  #isSettledFor(before: Entry, to: Taken, stat: FileStat, purpose: Purpose): boolean {
    const { folder, state, clock, commits, accepts } = this.#parts;
    if (!isItem(before)) return this.#isStillPassed(before.trouble, stat);
    if (stat.size > folder.maxFileSize) return false;
    if (Twins.waits(before)) return this.#twins.holderOf(before.path) !== undefined;
    if (!hasContent(before.version)) return purpose === 'change';
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
    const { folder, accepts } = this.#parts;
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
    const { folder, scannedFrom } = this.#parts;
    const notBefore = Math.max(movedAt, scannedFrom() ?? Number.NEGATIVE_INFINITY);
    return notBefore > this.#beganAt && ctimeMs + folder.settle < notBefore;
  }

  #wasRead(path: string, stat: FileStat, fingerprint: Fingerprint, cameLater: boolean): void {
    const { settling, lookAgain } = this.#parts;
    switch (fingerprint.kind) {
      case 'version':
        this.#hasVersion(path, fingerprint.version, cameLater);
        return;
      case 'unreadable':
        this.#isUnreadable(path, stat, fingerprint.code);
        return;
      case 'raced':
      case 'busy':
        settling.again(path, stat);
        return;
      case 'vanished':
      case 'notRegular':
        lookAgain(path);
        return;
    }
  }

  #hasVersion(path: string, version: Version, cameLater: boolean): void {
    const { folder, rules, state, clock, commits, accepts } = this.#parts;
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
    const twin = this.#twins.holderOf(path);
    if (twin !== undefined) {
      this.#quarantine(path, decision, version, trouble.sameDocument(twin));
      return;
    }
    const before = state.get(folder.name, path);
    const item = read(before, { folder: folder.name, path, url, collection }, version, clock.now());
    const isNew = before === undefined || before.status === 'gone';
    state.put(isNew && cameLater ? broughtIn(item) : item);
    this.#twins.met(path);
    commits.changed();
  }

  #isUnreadable(path: string, stat: FileStat, code: string): void {
    const decision = this.#parts.rules.decide(path);
    if (decision.take) this.#quarantine(path, decision, stat, trouble.unreadable(code));
    else this.excluded(path, decision.rule);
  }

  #quarantine(path: string, { url, collection }: Taken, found: FileStat, why: Trouble): void {
    const { folder, state, clock, commits, log } = this.#parts;
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
    this.#twins.met(path);
    commits.changed();
    log.warn(
      { event: 'quarantined', folder: folder.name, path, code: why.code },
      `quarantined ${folder.name}/${path}: ${why.message} ${why.hint}`,
    );
  }

  #passOver(path: string, stat: FileStat, why: Trouble): void {
    const { folder, state, clock, commits } = this.#parts;
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

  /** The path gave up its document, which a twin may have been waiting for. */
  #freed(path: string): void {
    for (const twin of this.#twins.waitingFor(path)) this.#parts.lookAgain(twin);
  }
}
