import { type Clock, wallAheadMs } from '../lib/clock.js';
import type { FileStat } from '../lib/file.js';
import type { Entry } from '../state/entry.js';
import type { Debouncer } from './debouncer.js';

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
