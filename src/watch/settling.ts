import type { Clock, Timer } from '../lib/clock.js';
import { type FileStat, sameStat } from '../state/entry.js';
import { directoryOf } from './paths.js';

/** How many files are followed one by one; of more only the directories are remembered. */
const FOLLOWED = 10_000;
/**
 * The shortest rest: a second write within the same tick of the kernel's clock (up to 10 ms) leaves no other trace
 * than the content.
 */
const SHORTEST_SETTLE_MS = 20;
const LONGEST_TICK_MS = 100;

/** A file as it looked, and since when. */
export interface Seen {
  readonly stat: FileStat;
  /** By the monotonic clock, in ms. */
  readonly since: number;
}

interface Waiting extends Seen {
  readonly path: string;
  readonly due: number;
}

/**
 * The files of one folder that were written a moment ago. A file *settles*: it is looked at again once it may have been
 * at rest (size, mtime, ctime and inode the same) for `settle`, and again after every change.
 *
 * A file is at rest when its times are older than `settle`, or, where they lie in the future, when it looked the same
 * for `settle`. Too many files to follow one by one are found again by looking at their directories.
 */
export class Settling {
  readonly #settleMs: number;
  readonly #clock: Clock;
  readonly #lookAgain: (path: string, seen: Seen) => void;
  readonly #lookAtDirectory: (directory: string) => void;
  readonly #files = new Map<string, Waiting>();
  /** By path, when to look again. */
  readonly #directories = new Map<string, number>();
  #handedOn = 0;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(parts: {
    readonly settleMs: number;
    readonly clock: Clock;
    /** Is to end in `atRest` again, with what was seen, if the file is still there and still of interest. */
    readonly lookAgain: (path: string, seen: Seen) => void;
    readonly lookAtDirectory: (directory: string) => void;
  }) {
    this.#settleMs = Math.max(parts.settleMs, SHORTEST_SETTLE_MS);
    this.#clock = parts.clock;
    this.#lookAgain = parts.lookAgain;
    this.#lookAtDirectory = parts.lookAtDirectory;
  }

  get size(): number {
    return this.#files.size + this.#directories.size;
  }

  /** Whether any is to be looked at again by now. */
  get isDue(): boolean {
    const now = this.#clock.monotonic();
    for (const { due } of this.#files.values()) if (due <= now) return true;
    for (const due of this.#directories.values()) if (due <= now) return true;
    return false;
  }

  /** How many were handed on to be looked at again. */
  get handedOn(): number {
    return this.#handedOn;
  }

  /** Whether a file may be read now; if not, it is looked at again in time. */
  atRest(path: string, stat: FileStat, seen?: Seen): boolean {
    const settle = this.#settleMs;
    const age = this.#clock.wall() - Math.max(stat.mtimeMs, stat.ctimeMs);
    const now = this.#clock.monotonic();
    const earlier = seen ?? this.#files.get(path);
    const since = earlier !== undefined && sameStat(earlier.stat, stat) ? earlier.since : now;
    if (age >= settle || now - since >= settle) {
      this.#files.delete(path);
      return true;
    }
    const rest = Math.min(since + settle, now + settle - Math.max(0, age));
    this.#follow({ path, stat, since, due: rest });
    return false;
  }

  /** A read of the file raced a write: it is looked at again after a whole `settle`. */
  again(path: string, stat: FileStat): void {
    const now = this.#clock.monotonic();
    this.#follow({ path, stat, since: now, due: now + this.#settleMs });
  }

  /** Forgets all of them. */
  clear(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#files.clear();
    this.#directories.clear();
  }

  stop(): void {
    this.clear();
    this.#stopped = true;
  }

  #follow(waiting: Waiting): void {
    if (this.#stopped) return;
    if (this.#files.size < FOLLOWED || this.#files.has(waiting.path)) this.#files.set(waiting.path, waiting);
    else {
      // The first due time stays: under steady writing a later one would never come.
      const directory = directoryOf(waiting.path);
      if (!this.#directories.has(directory)) this.#directories.set(directory, waiting.due);
    }
    this.#timer ??= this.#clock.after(this.#tick(), () => this.#lookAround());
  }

  #tick(): number {
    return Math.min(this.#settleMs / 10, LONGEST_TICK_MS);
  }

  #lookAround(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    for (const [path, waiting] of this.#files) {
      if (waiting.due > now) continue;
      this.#files.delete(path);
      this.#handedOn += 1;
      this.#lookAgain(path, waiting);
    }
    for (const [directory, due] of this.#directories) {
      if (due > now) continue;
      this.#directories.delete(directory);
      this.#handedOn += 1;
      this.#lookAtDirectory(directory);
    }
    if (this.size > 0) this.#timer ??= this.#clock.after(this.#tick(), () => this.#lookAround());
  }
}
