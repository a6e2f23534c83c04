import type { Clock, Timer } from '../lib/clock.js';
import { type FileStat, sameStat } from '../lib/file.js';
import { directoryOf, joinPath } from './lister.js';

/**
 * Why a path is looked at. A `rescan` also tries again what could not be read, though nothing about it changed; what was
 * `asked` for is read in any case.
 */
export type Purpose = 'change' | 'rescan' | 'asked';

/** A file as it looked, and since when. */
export interface Seen {
  readonly stat: FileStat;
  /** In ms since the epoch. */
  readonly since: number;
}

/** fs events are gathered for so many ms, so that many of one path cost one look. */
const GATHER_MS = 30;
/** So many paths are looked at at once. */
const LOOKS_AT_ONCE = 16;
/** So many paths wait one by one; of what else changes only the directory is remembered. */
const MOST_PATHS = 10_000;
/**
 * The shortest rest: a second write within the same tick of the kernel's clock (up to 10 ms) leaves no other trace
 * than the content.
 */
const SHORTEST_SETTLE_MS = 20;

interface Waiting {
  /** In ms since the epoch. */
  readonly due: number;
  readonly purpose: 'change' | 'asked';
  readonly seen?: Seen | undefined;
}

export interface DebouncerOptions {
  /** A file is at rest when it did not change for so many ms. */
  readonly settleMs: number;
  readonly clock: Clock;
  /** Is to end in `atRest` with what was seen, if the file is there and of interest. */
  readonly lookAt: (path: string, purpose: Purpose, seen: Seen | undefined) => Promise<void>;
  /** Something in a directory changed, it is not known what. */
  readonly lookIn: (directory: string) => Promise<void>;
  readonly onError: (error: unknown, path: string) => void;
}

/**
 * Holds the paths of one folder that are not at rest, and has each looked at when it is due.
 *
 * - A path that an fs event named is due after a moment; one that somebody asked for, at once.
 * - A file that was written a moment ago is due when it may have been at rest (size, mtime, ctime and inode the same)
 *   for `settle`. It is at rest when its times are older than that, or, where they lie in the future, when it looked the
 *   same for so long.
 *
 * What changes while it is looked at waits again.
 */
export class Debouncer {
  readonly #settleMs: number;
  /** By path; a directory that something changed in ends in a slash. */
  readonly #waiting = new Map<string, Waiting>();
  #looking: Promise<void> | undefined;
  #timer: { readonly at: number; readonly timer: Timer } | undefined;
  #stopped = false;

  constructor(private readonly options: DebouncerOptions) {
    this.#settleMs = Math.max(options.settleMs, SHORTEST_SETTLE_MS);
  }

  /** Whether anything waits or is looked at. */
  get busy(): boolean {
    return this.isLooking || this.#waiting.size > 0;
  }

  get isLooking(): boolean {
    return this.#looking !== undefined;
  }

  /** How many files were written a moment ago. */
  get settling(): number {
    let count = 0;
    for (const [path, { seen }] of this.#waiting) if (seen !== undefined || path.endsWith('/')) count += 1;
    return count;
  }

  /** Something happened to a name in a directory, or, without a name, to anything in it. */
  changed(directory: string, name: string | undefined): void {
    const due = this.options.clock.now() + GATHER_MS;
    // A name that is not valid UTF-8 cannot be looked up.
    const isKnown = name !== undefined && !name.includes('\ufffd');
    this.#add(isKnown ? joinPath(directory, name) : `${directory}/`, due, 'change');
  }

  /** A path is to be looked at now. */
  look(path: string, purpose: 'change' | 'asked'): void {
    this.#add(path, this.options.clock.now(), purpose);
  }

  /**
   * Whether a file that looks like this is at rest.
   *
   * @returns true if it may be read now; if not, it is looked at again in time
   */
  atRest(path: string, stat: FileStat, before?: Seen): boolean {
    const { clock } = this.options;
    const settle = this.#settleMs;
    const age = clock.wall() - Math.max(stat.mtimeMs, stat.ctimeMs);
    const now = clock.now();
    const earlier = before ?? this.#waiting.get(path)?.seen;
    const since = earlier !== undefined && sameStat(earlier.stat, stat) ? earlier.since : now;
    if (age >= settle || now - since >= settle) {
      this.#waiting.delete(path);
      return true;
    }
    const due = Math.min(since + settle, now + settle - Math.max(0, age));
    this.#set(path, { due, purpose: 'change', seen: { stat, since } });
    return false;
  }

  /** A read of the file raced a write: it is looked at again after a whole `settle`. */
  raced(path: string, stat: FileStat): void {
    const since = this.options.clock.now();
    this.#set(path, { due: since + this.#settleMs, purpose: 'change', seen: { stat, since } });
  }

  /** Forgets everything that waits. */
  clear(): void {
    this.#timer?.timer.cancel();
    this.#timer = undefined;
    this.#waiting.clear();
  }

  /** Forgets what waits, and resolves when nothing is looked at any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.clear();
    await this.#looking;
  }

  /** Of two reasons to look the earlier counts (under steady writing a later one would never come), and what was seen stays known. */
  #add(path: string, due: number, purpose: Waiting['purpose']): void {
    const known = this.#waiting.get(path);
    this.#set(path, {
      due: Math.min(known?.due ?? due, due),
      purpose: known?.purpose === 'asked' ? 'asked' : purpose,
      seen: known?.seen,
    });
  }

  #set(path: string, waiting: Waiting): void {
    if (this.#stopped) return;
    const isTooMuch = this.#waiting.size >= MOST_PATHS && !this.#waiting.has(path) && !path.endsWith('/');
    if (isTooMuch && waiting.purpose === 'change') {
      this.#add(`${directoryOf(path)}/`, waiting.due, 'change');
      return;
    }
    this.#waiting.set(path, waiting);
    this.#wakeAt(waiting.due);
  }

  /** One timer, at the earliest due time, but no more often than every `GATHER_MS`. */
  #wakeAt(due: number): void {
    const { clock } = this.options;
    const now = clock.now();
    const at = Math.max(due, now + GATHER_MS);
    if (this.isLooking || (this.#timer !== undefined && this.#timer.at <= at)) return;
    this.#timer?.timer.cancel();
    this.#timer = { at, timer: clock.after(at - now, () => this.#wake()) };
  }

  #wake(): void {
    this.#timer = undefined;
    this.#looking = this.#lookAround().finally(() => {
      this.#looking = undefined;
      let next = Number.POSITIVE_INFINITY;
      for (const { due } of this.#waiting.values()) next = Math.min(next, due);
      if (next !== Number.POSITIVE_INFINITY) this.#wakeAt(next);
    });
  }

  async #lookAround(): Promise<void> {
    const now = this.options.clock.now();
    const due = [...this.#waiting].filter(([, waiting]) => waiting.due <= now);
    for (let i = 0; i < due.length; i += LOOKS_AT_ONCE) {
      const some = due.slice(i, i + LOOKS_AT_ONCE);
      await Promise.all(some.map(([path]) => this.#look(path, now)));
    }
  }

  async #look(path: string, now: number): Promise<void> {
    const { lookAt, lookIn, onError } = this.options;
    const waiting = this.#waiting.get(path);
    // What was forgotten meanwhile, or waits longer by now, is not looked at.
    if (waiting === undefined || waiting.due > now) return;
    this.#waiting.delete(path);
    try {
      if (path.endsWith('/')) await lookIn(path.slice(0, -1));
      else await lookAt(path, waiting.purpose, waiting.seen);
    } catch (error) {
      onError(error, path);
    }
  }
}
