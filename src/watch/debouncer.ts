import type { Clock, Timer } from '../lib/clock.js';
import { type FileStat, sameStat } from '../lib/file-stat.js';
import { directoryOf, forEachLimited, joinPath } from './paths.js';

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

/** So many paths wait one by one; of what else changes only the directory is remembered. */
const MOST_PATHS = 10_000;
/**
 * The shortest rest: a second write within the same tick of the kernel's clock (up to 10 ms) leaves no other trace
 * than the content.
 */
const SHORTEST_SETTLE_MS = 20;

interface Waiting {
  readonly due: number;
  readonly purpose: 'change' | 'asked';
  readonly seen: Seen | undefined;
}

export interface DebouncerOptions {
  /** The folder's name. */
  readonly name: string;
  /** A file is at rest when it did not change for so many ms. */
  readonly settleMs: number;
  /** fs events are gathered for so many ms, so that many of one path cost one look. */
  readonly gatherMs: number;
  /** So many paths are looked at at once. */
  readonly looksAtOnce: number;
  readonly clock: Clock;
  /** Is to end in `atRest` with what was seen, if the file is there and of interest. */
  readonly lookAt: (path: string, purpose: Purpose, seen: Seen | undefined) => Promise<void>;
  readonly lookIn: (directory: string) => Promise<void>;
  readonly onError: (error: unknown, path: string) => void;
  readonly onQuiet: () => void;
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
  readonly #options: DebouncerOptions;
  readonly #settleMs: number;
  readonly #paths = new Map<string, Waiting>();
  /** When to list a directory: something in it changed, it is not known what. */
  readonly #directories = new Map<string, number>();
  #seen = 0;
  #looking: Promise<void> | undefined;
  #timer: { readonly at: number; readonly timer: Timer } | undefined;
  #stopped = false;

  constructor(options: DebouncerOptions) {
    this.#options = options;
    this.#settleMs = Math.max(options.settleMs, SHORTEST_SETTLE_MS);
  }

  /** Whether anything waits or is looked at. */
  get busy(): boolean {
    return this.isLooking || this.#paths.size > 0 || this.#directories.size > 0;
  }

  get isLooking(): boolean {
    return this.#looking !== undefined;
  }

  /** How many files were written a moment ago. */
  get settling(): number {
    return this.#seen + this.#directories.size;
  }

  /** Something happened to a name in a directory, or, without a name, to anything in it. */
  changed(directory: string, name: string | undefined): void {
    const due = this.#options.clock.now() + this.#options.gatherMs;
    // A name that is not valid UTF-8 cannot be looked up.
    if (name === undefined || name.includes('\ufffd')) this.#addDirectory(directory, due);
    else this.#add(joinPath(directory, name), { due, purpose: 'change', seen: undefined });
  }

  /** A path is to be looked at now. */
  look(path: string, purpose: 'change' | 'asked'): void {
    this.#add(path, { due: this.#options.clock.now(), purpose, seen: undefined });
  }

  /** Whether a file may be read now; if not, it is looked at again in time. */
  atRest(path: string, stat: FileStat, before?: Seen): boolean {
    const { clock } = this.#options;
    const settle = this.#settleMs;
    const age = clock.wall() - Math.max(stat.mtimeMs, stat.ctimeMs);
    const now = clock.now();
    const earlier = before ?? this.#paths.get(path)?.seen;
    const since = earlier !== undefined && sameStat(earlier.stat, stat) ? earlier.since : now;
    if (age >= settle || now - since >= settle) {
      this.#forget(path);
      return true;
    }
    const due = Math.min(since + settle, now + settle - Math.max(0, age));
    this.#set(path, { due, purpose: 'change', seen: { stat, since } });
    return false;
  }

  /** A read of the file raced a write: it is looked at again after a whole `settle`. */
  raced(path: string, stat: FileStat): void {
    const now = this.#options.clock.now();
    this.#set(path, { due: now + this.#settleMs, purpose: 'change', seen: { stat, since: now } });
  }

  /** Forgets everything that waits. */
  clear(): void {
    this.#timer?.timer.cancel();
    this.#timer = undefined;
    this.#paths.clear();
    this.#directories.clear();
    this.#seen = 0;
  }

  /** Forgets what waits, and resolves when nothing is looked at any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.clear();
    await this.#looking;
  }

  /** Of two reasons to look the earlier counts, and what was seen stays known. */
  #add(path: string, { due, purpose, seen }: Waiting): void {
    const known = this.#paths.get(path);
    if (known === undefined) this.#set(path, { due, purpose, seen });
    else
      this.#set(path, {
        due: Math.min(known.due, due),
        purpose: known.purpose === 'asked' ? 'asked' : purpose,
        seen: known.seen,
      });
  }

  #set(path: string, waiting: Waiting): void {
    if (this.#stopped) return;
    const known = this.#paths.get(path);
    if (known === undefined && waiting.purpose === 'change' && this.#paths.size >= MOST_PATHS) {
      this.#addDirectory(directoryOf(path), waiting.due);
      return;
    }
    this.#paths.set(path, waiting);
    this.#seen += Number(waiting.seen !== undefined) - Number(known?.seen !== undefined);
    this.#wakeAt(waiting.due);
  }

  #forget(path: string): void {
    if (this.#paths.get(path)?.seen !== undefined) this.#seen -= 1;
    this.#paths.delete(path);
  }

  #addDirectory(directory: string, due: number): void {
    if (this.#stopped) return;
    // The first due time stays: under steady writing a later one would never come.
    if (this.#directories.has(directory)) return;
    this.#directories.set(directory, due);
    this.#wakeAt(due);
  }

  #nextDue(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { due } of this.#paths.values()) next = Math.min(next, due);
    for (const due of this.#directories.values()) next = Math.min(next, due);
    return next;
  }

  /** One timer, at the earliest due time, but no more often than every `gatherMs`. */
  #wakeAt(due: number): void {
    if (this.isLooking || (this.#timer !== undefined && this.#timer.at <= due)) return;
    const { clock, gatherMs } = this.#options;
    const now = clock.now();
    const at = Math.max(due, now + gatherMs);
    if (this.#timer !== undefined && this.#timer.at <= at) return;
    this.#timer?.timer.cancel();
    this.#timer = { at, timer: clock.after(at - now, () => this.#wake()) };
  }

  #wake(): void {
    this.#timer = undefined;
    this.#looking = this.#lookAround().finally(() => {
      this.#looking = undefined;
      const next = this.#nextDue();
      if (next !== Number.POSITIVE_INFINITY) this.#wakeAt(next);
      this.#options.onQuiet();
    });
  }

  async #lookAround(): Promise<void> {
    const { clock, looksAtOnce, lookAt, lookIn, onError } = this.#options;
    const now = clock.now();
    const paths = [...this.#paths].filter(([, { due }]) => due <= now);
    const directories = [...this.#directories].filter(([, due]) => due <= now);
    await forEachLimited(paths, looksAtOnce, async ([path, { purpose, seen }]) => {
      // What was forgotten meanwhile, or waits longer by now, is not looked at.
      if ((this.#paths.get(path)?.due ?? Number.POSITIVE_INFINITY) > now) return;
      this.#forget(path);
      await lookAt(path, purpose, seen).catch((error) => onError(error, path));
    });
    for (const [directory] of directories) {
      if (!this.#directories.delete(directory)) continue;
      await lookIn(directory).catch((error) => onError(error, directory));
    }
  }
}
