import type { Clock } from '../lib/clock.js';
import { directoryOf, type FileStat, joinPath, sameStat } from '../lib/file.js';

/** fs events are gathered for this time, in ms, so that many of one path cause one look. */
const GATHER_MS = 30;
/** Number of paths that are looked at at once. */
const CONCURRENT_LOOKS = 16;
/** Maximum number of paths that wait one by one. Beyond it, only their directories wait. */
const MAX_PATHS = 10_000;
/**
 * The shortest time of rest, in ms. A second write within the same tick of the kernel's clock (up
 * to 10 ms) leaves no trace except in the content.
 */
const MIN_SETTLE_MS = 20;

/** Whether a look reads a file that did not change since it was read. */
export type ReadMode = 'ifChanged' | 'always';

/**
 * Looks at a path, or, if it ends in a slash, at everything that changed in that directory. Never
 * rejects. It calls `atRest` if it finds a file.
 */
export type Look = (path: string, read: ReadMode) => Promise<void>;

/** The last sight of a file that was not at rest, and when it first looked so. */
interface Sight {
  readonly stat: FileStat;
  /** In ms since the epoch. */
  readonly since: number;
}

/**
 * A path that waits:
 *
 * - *due*: it is looked at when `at` has come, in ms since the epoch.
 * - *looking*: it is being looked at. It is dropped afterwards, unless something made it due again.
 */
type Waiting =
  | {
      readonly mode: 'due';
      readonly at: number;
      readonly read: ReadMode;
      readonly sight?: Sight | undefined;
    }
  | { readonly mode: 'looking'; readonly sight?: Sight | undefined };

/**
 * Holds back the paths of one folder that changed, until it is time to look at them.
 *
 * - A path that an fs event named is due after a moment. A path that was requested is due at once.
 * - A file that was written a moment ago *settles*: it is due when it may be at rest. It is at rest
 *   when its times are older than `settle`. If they lie in the future, it is at rest when its size,
 *   mtime, ctime and inode stayed the same for `settle`.
 *
 * A path that changes while it is looked at is due again.
 */
export class Debouncer {
  readonly #settleMs: number;
  /** By path. A directory in which something changed ends in a slash. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #stopping = new AbortController();
  #look: Look | undefined;
  #isLooking = false;
  /** The start of the last round of looks that has ended, in ms since the epoch. */
  #lookedFrom = Number.NEGATIVE_INFINITY;
  /** Settles when nothing waits any more. */
  #rounds: Promise<void> | undefined;

  /** @param settleMs the time without a change after which a file is at rest */
  constructor(
    settleMs: number,
    private readonly clock: Clock,
  ) {
    this.#settleMs = Math.max(settleMs, MIN_SETTLE_MS);
  }

  /** Begins to look at paths that are due. Until then they only wait. */
  start(look: Look): void {
    this.#look = look;
    if (this.#waiting.size > 0) this.#wake();
  }

  /** Whether any path waits or is looked at. */
  get busy(): boolean {
    return this.#rounds !== undefined;
  }

  get isLooking(): boolean {
    return this.#isLooking;
  }

  /**
   * Returns every path that waits, and the stat of its file if it was seen. A directory in which
   * something changed ends in a slash.
   */
  *waiting(): Iterable<readonly [path: string, stat: FileStat | undefined]> {
    for (const [path, { sight }] of this.#waiting) yield [path, sight?.stat];
  }

  /** The number of files that settle. A directory in which something changed counts as one. */
  get settling(): number {
    let count = 0;
    for (const [path, { sight }] of this.#waiting)
      if (sight !== undefined || path.endsWith('/')) count += 1;
    return count;
  }

  /** Reports a change of a name in a directory, or, without a name, of anything in it. */
  changed(directory: string, name: string | undefined): void {
    // A name that is not valid UTF-8 cannot be looked up.
    const isUsable = name !== undefined && !name.includes('\ufffd');
    const path = isUsable ? joinPath(directory, name) : `${directory}/`;
    this.#add(path, this.clock.now() + GATHER_MS, 'ifChanged');
  }

  /** Requests a look at a path now. */
  look(path: string, read: ReadMode = 'ifChanged'): void {
    this.#add(path, this.clock.now(), read);
  }

  /**
   * Returns whether a file with this stat is at rest and may be read now. If not, the file settles,
   * and is looked at again in time.
   */
  atRest(path: string, stat: FileStat): boolean {
    const ageMs = this.clock.wall() - Math.max(stat.mtimeMs, stat.ctimeMs);
    const now = this.clock.now();
    const sight = this.#waiting.get(path)?.sight;
    const since = sight !== undefined && sameStat(sight.stat, stat) ? sight.since : now;
    // The path is not dropped here: the event that it waits for may be newer than this stat.
    if (ageMs >= this.#settleMs || now - since >= this.#settleMs) return true;
    const at = Math.min(since, now - Math.max(0, ageMs)) + this.#settleMs;
    this.#settle(path, at, { stat, since });
    return false;
  }

  /** Reports that a read of the file raced a write. The file settles from now on. */
  raced(path: string, stat: FileStat): void {
    const since = this.clock.now();
    this.#settle(path, since + this.#settleMs, { stat, since });
  }

  /**
   * Waits until everything that an event has named so far was looked at. It does not wait for files
   * that settle, nor for later events.
   *
   * @returns false if that takes longer than `limitMs`
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

  /** Forgets everything that waits. Resolves when nothing is looked at any more. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.clear();
    await this.#rounds;
  }

  #settle(path: string, at: number, sight: Sight): void {
    this.#set(path, { mode: 'due', at, read: 'ifChanged', sight });
  }

  /**
   * Makes a path due. If it is due already, the earlier time counts: under steady writing a later
   * one would never come. Its sight stays known.
   */
  #add(path: string, at: number, read: ReadMode): void {
    const known = this.#waiting.get(path);
    if (known?.mode !== 'due') {
      this.#set(path, { mode: 'due', at, read, sight: known?.sight });
      return;
    }
    const isAlways = known.read === 'always' || read === 'always';
    this.#set(path, {
      mode: 'due',
      at: Math.min(known.at, at),
      read: isAlways ? 'always' : 'ifChanged',
      sight: known.sight,
    });
  }

  #set(path: string, waiting: Extract<Waiting, { mode: 'due' }>): void {
    if (this.#stopping.signal.aborted) return;
    if (this.#isBeyondLimit(path) && waiting.read === 'ifChanged') {
      this.#add(`${directoryOf(path)}/`, waiting.at, 'ifChanged');
      return;
    }
    this.#waiting.set(path, waiting);
    this.#wake();
  }

  #isBeyondLimit(path: string): boolean {
    return this.#waiting.size >= MAX_PATHS && !this.#waiting.has(path) && !path.endsWith('/');
  }

  #wake(): void {
    if (this.#look === undefined) return;
    this.#rounds ??= this.#lookWhileAnyWaits(this.#look).finally(() => {
      this.#rounds = undefined;
    });
  }

  async #lookWhileAnyWaits(look: Look): Promise<void> {
    while (this.#waiting.size > 0) {
      await this.clock.sleep(GATHER_MS, this.#stopping.signal);
      const now = this.clock.now();
      const due: string[] = [];
      for (const [path, waiting] of this.#waiting) if (isDue(waiting, now)) due.push(path);
      this.#isLooking = true;
      for (let i = 0; i < due.length; i += CONCURRENT_LOOKS) {
        const paths = due.slice(i, i + CONCURRENT_LOOKS);
        await Promise.all(paths.map((path) => this.#lookAt(path, now, look)));
      }
      this.#isLooking = false;
      this.#lookedFrom = now;
    }
  }

  async #lookAt(path: string, now: number, look: Look): Promise<void> {
    const waiting = this.#waiting.get(path);
    // The path may have been forgotten meanwhile, or settle for longer.
    if (waiting === undefined || !isDue(waiting, now)) return;
    const looking: Waiting = { mode: 'looking', sight: waiting.sight };
    this.#waiting.set(path, looking);
    await look(path, waiting.read);
    if (this.#waiting.get(path) === looking) this.#waiting.delete(path);
  }
}

function isDue(waiting: Waiting, now: number): waiting is Extract<Waiting, { mode: 'due' }> {
  return waiting.mode === 'due' && waiting.at <= now;
}
