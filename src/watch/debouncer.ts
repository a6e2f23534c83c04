import type { Clock } from '../lib/clock.js';
import { directoryOf, type FileStat, joinPath, sameStat } from '../lib/file.js';

/** fs events are gathered for so many ms, so that many of one path cost one look. */
const GATHER_MS = 30;
/** So many paths are looked at at once. */
const LOOKS_AT_ONCE = 16;
/** So many paths wait one by one; of what else changes only the directory is remembered. */
const MOST_PATHS = 10_000;
/**
 * The shortest rest: a second write within the same tick of the kernel's clock (up to 10 ms) leaves
 * no other trace than the content.
 */
const SHORTEST_SETTLE_MS = 20;

interface Waiting {
  /** In ms since the epoch; infinite while it is looked at. */
  readonly due: number;
  /** Somebody asked for it: it is read in any case. */
  readonly isAsked: boolean;
  /** How the file looked, and since when, in ms since the epoch. */
  readonly seen?: { readonly stat: FileStat; readonly since: number } | undefined;
}

/**
 * Holds the paths of one folder that are not at rest, and has each looked at when it is due.
 *
 * - A path that an fs event named is due after a moment; one that somebody asked for, at once.
 * - A file that was written a moment ago is due when it may have been at rest (size, mtime, ctime
 *   and inode the same) for `settle`. It is at rest when its times are older than that, or, where
 *   they lie in the future, when it looked the same for so long.
 *
 * What changes while it is looked at waits again.
 */
export class Debouncer {
  readonly #settleMs: number;
  /** By path; a directory that something changed in ends in a slash. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #stopping = new AbortController();
  #isLooking = false;
  /** When the last round of looks that has ended began, in ms since the epoch. */
  #lookedFrom = Number.NEGATIVE_INFINITY;
  /** Settled when nothing waits any more. */
  #looking: Promise<void> | undefined;

  /**
   * @param settleMs a file is at rest when it did not change for so long
   * @param onDue looks at a path, or, where it ends in a slash, at what changed in that directory.
   *   Never rejects, and ends in `atRest` if there is a file of interest
   */
  constructor(
    settleMs: number,
    private readonly clock: Clock,
    private readonly onDue: (path: string, isAsked: boolean) => Promise<void>,
  ) {
    this.#settleMs = Math.max(settleMs, SHORTEST_SETTLE_MS);
  }

  /** Whether anything waits or is looked at. */
  get busy(): boolean {
    return this.#looking !== undefined;
  }

  get isLooking(): boolean {
    return this.#isLooking;
  }

  /**
   * Every path that waits, and how the file there looked, if it was looked at. A directory that
   * something changed in ends in a slash.
   */
  *waiting(): Iterable<readonly [path: string, seen: FileStat | undefined]> {
    for (const [path, { seen }] of this.#waiting) yield [path, seen?.stat];
  }

  /** How many files were written a moment ago. */
  get settling(): number {
    return [...this.#waiting].filter(([path, { seen }]) => seen !== undefined || path.endsWith('/'))
      .length;
  }

  /** Something happened to a name in a directory, or, without a name, to anything in it. */
  changed(directory: string, name: string | undefined): void {
    // A name that is not valid UTF-8 cannot be looked up.
    const isKnown = name !== undefined && !name.includes('\ufffd');
    const due = this.clock.now() + GATHER_MS;
    this.#add(isKnown ? joinPath(directory, name) : `${directory}/`, { due, isAsked: false });
  }

  /** A path is to be looked at now. */
  look(path: string, isAsked = false): void {
    this.#add(path, { due: this.clock.now(), isAsked });
  }

  /**
   * Whether a file that looks like this is at rest.
   *
   * @returns true if it may be read now; if not, it is looked at again in time
   */
  atRest(path: string, stat: FileStat): boolean {
    const age = this.clock.wall() - Math.max(stat.mtimeMs, stat.ctimeMs);
    const now = this.clock.now();
    const { seen } = this.#waiting.get(path) ?? {};
    const since = seen !== undefined && sameStat(seen.stat, stat) ? seen.since : now;
    // What waits goes on waiting: the stat may be older than the event that it waits for.
    if (age >= this.#settleMs || now - since >= this.#settleMs) return true;
    const due = Math.min(since, now - Math.max(0, age)) + this.#settleMs;
    this.#set(path, { due, isAsked: false, seen: { stat, since } });
    return false;
  }

  /** A read of the file raced a write: it is looked at again after a whole `settle`. */
  raced(path: string, stat: FileStat): void {
    const since = this.clock.now();
    this.#set(path, { due: since + this.#settleMs, isAsked: false, seen: { stat, since } });
  }

  /**
   * Waits until everything that an event has named so far was looked at. What is not at rest goes
   * on waiting, and events that come meanwhile are not waited for.
   *
   * @returns false where that takes longer than `limitMs`
   */
  async caughtUp(limitMs: number): Promise<boolean> {
    const { signal } = this.#stopping;
    const allDueAt = this.clock.now() + GATHER_MS;
    while (this.busy && this.#lookedFrom < allDueAt) {
      if (signal.aborted || this.clock.now() > allDueAt + limitMs) return false;
      await this.clock.sleep(GATHER_MS, signal);
    }
    return true;
  }

  /** Forgets everything that waits. */
  clear(): void {
    this.#waiting.clear();
  }

  /** Forgets what waits, and resolves when nothing is looked at any more. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.clear();
    await this.#looking;
  }

  /**
   * Of two reasons to look the earlier counts (under steady writing a later one would never come),
   * and what was seen stays known.
   */
  #add(path: string, { due, isAsked }: Waiting): void {
    const known = this.#waiting.get(path) ?? { due, isAsked };
    this.#set(path, { ...known, due: Math.min(known.due, due), isAsked: known.isAsked || isAsked });
  }

  #set(path: string, waiting: Waiting): void {
    if (this.#stopping.signal.aborted) return;
    const isTooMuch =
      this.#waiting.size >= MOST_PATHS && !this.#waiting.has(path) && !path.endsWith('/');
    if (isTooMuch && !waiting.isAsked) {
      this.#add(`${directoryOf(path)}/`, { due: waiting.due, isAsked: false });
      return;
    }
    this.#waiting.set(path, waiting);
    this.#looking ??= this.#lookAround().finally(() => {
      this.#looking = undefined;
    });
  }

  /** Looks at what is due, for as long as anything waits. */
  async #lookAround(): Promise<void> {
    while (this.#waiting.size > 0) {
      await this.clock.sleep(GATHER_MS, this.#stopping.signal);
      const now = this.clock.now();
      const due: string[] = [];
      for (const [path, waiting] of this.#waiting) if (waiting.due <= now) due.push(path);
      this.#isLooking = true;
      for (let i = 0; i < due.length; i += LOOKS_AT_ONCE)
        await Promise.all(due.slice(i, i + LOOKS_AT_ONCE).map((path) => this.#lookAt(path, now)));
      this.#isLooking = false;
      this.#lookedFrom = now;
    }
  }

  async #lookAt(path: string, now: number): Promise<void> {
    const waiting = this.#waiting.get(path);
    // What was forgotten meanwhile, or waits longer by now, is not looked at.
    if (waiting === undefined || waiting.due > now) return;
    const looked: Waiting = { ...waiting, due: Number.POSITIVE_INFINITY, isAsked: false };
    this.#waiting.set(path, looked);
    await this.onDue(path, waiting.isAsked);
    if (this.#waiting.get(path) === looked) this.#waiting.delete(path);
  }
}
