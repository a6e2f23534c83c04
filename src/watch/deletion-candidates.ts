import type { FolderConfig } from '../config/config.js';
import { documentUrl } from '../config/url.js';
import { type Clock, wallAheadMs } from '../lib/clock.js';
import { type FileStat, sameStat } from '../lib/file.js';
import { nextTurn, Pace } from '../lib/slices.js';
import {
  type Entry,
  type GoneItem,
  isExcluded,
  type Sent,
  type SkippedFile,
} from '../state/entry.js';
import { isSkippedUnsent, sinceOf } from '../state/line.js';
import type { Debouncer } from './debouncer.js';
import type { FolderDeps } from './folder-deps.js';
import { isAbsence, look } from './lister.js';

/** Number of records that are tested without a pause. */
const RECORDS_PER_SLICE = 50;

/** A record whose document may have to be removed: its file is gone or skipped (size, content). */
export type Candidate = (GoneItem | SkippedFile) & { readonly sent: Sent };

/**
 * Whether the documents of removed files are removed from the peer. Unless the folder says so, they
 * are removed from an embedded peer only, and not while the kind of peer is unknown.
 *
 * @param isEmbedded whether the peer is an embedded one; undefined while that is unknown
 */
export function removesDocuments(
  { onDelete }: Pick<FolderConfig, 'onDelete'>,
  isEmbedded: boolean | undefined,
): boolean {
  return onDelete === undefined ? isEmbedded === true : onDelete === 'remove';
}

/**
 * Whether the document of a file that is gone, or skipped for its size or content, has to be
 * removed from the peer as soon as that is certain. A document whose file has another URL by now
 * stays. So does that of a file which a rule of paths keeps out, because a rule may be mistaken.
 */
export function isToBeRemoved(
  entry: Entry,
  folder: Pick<FolderConfig, 'onDelete' | 'url'> | undefined,
  isEmbedded: boolean | undefined,
): entry is Candidate {
  if (folder === undefined || !isOutOfFolder(entry)) return false;
  if (!removesDocuments(folder, isEmbedded)) return false;
  return entry.sent.url === documentUrl(folder.url, entry.path);
}

/** Whether a file with a document in the peer is gone, or skipped for its size or content. */
function isOutOfFolder(entry: Entry): entry is Candidate {
  const isOut = entry.status === 'gone' || (entry.status === 'skipped' && !isExcluded(entry));
  return isOut && entry.sent !== undefined;
}

/** The records of one folder whose documents may have to be removed. */
export class DeletionCandidates {
  constructor(private readonly deps: FolderDeps) {}

  /** Whether the document of a record has to be removed; see `isToBeRemoved`. */
  includes(entry: Entry): entry is Candidate {
    const { folder, peer } = this.deps;
    // The kind of peer is asked only if it decides.
    if (!isOutOfFolder(entry)) return false;
    const isEmbedded = folder.onDelete === undefined ? peer.isEmbedded() : undefined;
    return isToBeRemoved(entry, folder, isEmbedded);
  }

  /**
   * Returns when a file went, in ms since the epoch. A time in the future comes from an earlier run
   * whose clock was wrong, so the file went before this run began.
   */
  goneSince({ since }: Pick<Candidate, 'since'>): number {
    return since > this.deps.clock.now() ? Number.NEGATIVE_INFINITY : since;
  }

  /** Yields the candidates whose files went before a time, in ms since the epoch. */
  async *goneBefore(before: number, unread: UnreadFiles): AsyncGenerator<Candidate> {
    const { folder, state } = this.deps;
    const { gone, skipped } = state.counts(folder.name);
    if (folder.onDelete === 'keep' || gone + skipped === 0) return;
    const status = ['gone', 'skipped'] as const;
    const where = (line: string) =>
      this.goneSince({ since: sinceOf(line) }) < before && !isSkippedUnsent(line);
    const pace = new Pace(RECORDS_PER_SLICE);
    for await (const slice of state.entries.slices({ folder: folder.name, status, where })) {
      for (const entry of slice) {
        if (pace.step()) await nextTurn();
        if (!this.includes(entry)) continue;
        if (state.entries.ownerOf(entry.sent.url, entry) !== undefined) continue;
        if (this.#wasScanned(entry, unread) || (await this.isStillOut(entry))) yield entry;
      }
    }
  }

  /**
   * Whether there is no file at the path, or the same one that is kept out. A path that cannot be
   * looked at proves nothing, and neither does a link in a folder that follows links: its target
   * may be back.
   */
  async isStillOut({ path, status, version }: Candidate): Promise<boolean> {
    const { folder, guard } = this.deps;
    const isFollowed = status === 'skipped' && folder.followSymlinks;
    const found = await look(guard.absolute(path), isFollowed);
    if ('code' in found) return isAbsence(found.code);
    if (status === 'skipped' && found.kind === 'file') return sameStat(found.stat, version);
    return found.kind !== 'file' && !(found.kind === 'link' && folder.followSymlinks);
  }

  /**
   * Whether the full scan looked at the path. It did not if a rule keeps the path out, and it does
   * not count if the file may be back and waits to be read.
   */
  #wasScanned({ path }: Candidate, unread: UnreadFiles): boolean {
    return unread.isComplete && !unread.has(path) && this.deps.rules.decide(path).take;
  }
}

/** The longest wait for the looks at everything that events have named so far, in ms. */
const MAX_LOOK_MS = 10_000;

/** The largest normal difference between steady time and the times of files, in ms. */
const MAX_CLOCK_SKEW_MS = 2_000;

/** Unread files of one size. */
interface SameSize {
  readonly inodes: Set<number>;
  /** The ctime of the oldest, in ms since the epoch, by the wall clock. */
  oldestMs: number;
}

/**
 * The files of one folder that were found and not read yet, at one moment. Any of them may be a
 * removed file under its new name.
 *
 * The size, inode and ctime of a file are known before it is read. They distinguish it from nearly
 * every removed file: a rename keeps size and inode, and a copy is complete before its original is
 * removed.
 */
export class UnreadFiles {
  readonly #paths = new Set<string>();
  readonly #bySize = new Map<number, SameSize>();

  private constructor(
    /** False if names wait that were never looked at. Any of them may be any file. */
    readonly isComplete: boolean,
    private readonly aheadMs: number,
  ) {}

  /** Gathers the unread files after a full scan, which found everything that was there. */
  static async of(
    debouncer: Debouncer,
    reading: ReadonlyMap<string, FileStat>,
    clock: Clock,
  ): Promise<UnreadFiles> {
    const isCaughtUp = await debouncer.caughtUp(MAX_LOOK_MS);
    const waiting = [...debouncer.waiting()];
    const hasUnlisted = waiting.some(([path]) => path.endsWith('/'));
    const unread = new UnreadFiles(isCaughtUp && !hasUnlisted, wallAheadMs(clock));
    for (const [path, stat] of waiting) unread.#add(path, stat);
    for (const [path, stat] of reading) unread.#add(path, stat);
    return unread;
  }

  has(path: string): boolean {
    return this.#paths.has(path);
  }

  /**
   * Whether one of the unread files may be this removed file, here or under another name. For a
   * file that is kept out, its earlier version counts.
   */
  mayBe({ path, sent, since, status, version }: Entry): boolean {
    if (!this.isComplete || this.has(path)) return true;
    const size = status === 'skipped' ? sent?.size : version.size;
    const sameSize = this.#bySize.get(size ?? 0);
    if (sameSize === undefined) return false;
    const isOlder = sameSize.oldestMs - this.aheadMs <= since + MAX_CLOCK_SKEW_MS;
    return sameSize.inodes.has(version.ino) || isOlder;
  }

  /** @param stat undefined if the file was not looked at yet */
  #add(path: string, stat: FileStat | undefined): void {
    this.#paths.add(path);
    if (stat === undefined) return;
    const { size, ino, ctimeMs } = stat;
    const sameSize = this.#bySize.get(size) ?? { inodes: new Set(), oldestMs: ctimeMs };
    sameSize.inodes.add(ino);
    sameSize.oldestMs = Math.min(sameSize.oldestMs, ctimeMs);
    this.#bySize.set(size, sameSize);
  }
}
