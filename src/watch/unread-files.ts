import { type Clock, wallAheadMs } from '../lib/clock.js';
import type { FileStat } from '../lib/file.js';
import type { Entry } from '../state/entry.js';
import type { Debouncer } from './debouncer.js';

/** How long is waited until what events have named was looked at, in ms. */
const LONGEST_LOOK_MS = 10_000;

/** Steady time and the times of files may be so far apart, in ms. */
const CLOCKS_APART_MS = 2_000;

/** Unread files of one size. */
interface SameSize {
  readonly inodes: Set<number>;
  /** The ctime of the oldest, in ms since the epoch, by the wall clock. */
  oldestMs: number;
}

/**
 * The files of one folder that were found and not read yet, at one moment: any of them may be a
 * removed file under its new name.
 *
 * A file is found before it is read, so its size, inode and ctime are known. They tell it from
 * nearly every removed file: a rename keeps size and inode, and a copy was whole before its
 * original went.
 */
export class UnreadFiles {
  readonly #paths = new Set<string>();
  readonly #bySize = new Map<number, SameSize>();

  private constructor(
    /** False where names wait that were never looked at: then any of them may be any file. */
    readonly isComplete: boolean,
    private readonly aheadMs: number,
  ) {}

  /** To be called after a full scan: that found whatever was there when it began. */
  static async of(
    debouncer: Debouncer,
    reading: ReadonlyMap<string, FileStat>,
    clock: Clock,
  ): Promise<UnreadFiles> {
    const isCaughtUp = await debouncer.caughtUp(LONGEST_LOOK_MS);
    const waiting = [...debouncer.waiting()];
    const isUnlisted = waiting.some(([path]) => path.endsWith('/'));
    const unread = new UnreadFiles(isCaughtUp && !isUnlisted, wallAheadMs(clock));
    for (const [path, seen] of waiting) unread.#add(path, seen);
    for (const [path, stat] of reading) unread.#add(path, stat);
    return unread;
  }

  has(path: string): boolean {
    return this.#paths.has(path);
  }

  /**
   * Whether one of them may be this removed file, or the earlier version of one that is kept out,
   * here or under another name.
   */
  mayBe({ path, sent, since, status, version }: Entry): boolean {
    if (!this.isComplete || this.has(path)) return true;
    const size = status === 'skipped' ? sent?.size : version.size;
    const sameSize = this.#bySize.get(size ?? 0);
    if (sameSize === undefined) return false;
    return (
      sameSize.inodes.has(version.ino) ||
      sameSize.oldestMs - this.aheadMs <= since + CLOCKS_APART_MS
    );
  }

  /** @param stat unknown where the name came up only a moment ago */
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
