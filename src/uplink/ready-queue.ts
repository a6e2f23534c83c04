import type { Clock, Timer } from '../lib/clock.js';
import type { Entry } from '../state/entry.js';
import { LONGEST_WAIT_MS } from './deps.js';

/**
 * Minimum time between two passes over the state for entries without room in memory, in ms.
 * Otherwise each such entry would cause a pass.
 */
const BETWEEN_PASSES_MS = 30_000;
/** Default of `UplinkDeps.maxInMemory`. */
export const MAX_IN_MEMORY = 10_000;

/**
 * A delay queue of bounded size, by key. A value is in one of three places:
 *
 * - *due*: its time has come; up to `limit` values, the earliest first;
 * - *later*: a timer runs, and makes it due; up to `limit` values;
 * - *beyond*: there is no room for it. It is in the state only, until a *pass* over the state
 *   (`more`) reads it again and `put`s it. A pass begins when the first value beyond is due and
 *   fewer than half of `limit` values are due.
 *
 * At first everything is beyond, so memory does not grow with the size of the state.
 */
export class ReadyQueue<T> {
  readonly #due = new Map<string, T>();
  readonly #later = new Map<string, { readonly value: T; readonly timer: Timer }>();
  /** Whether a value ever found no room. */
  hasOverflowed = false;
  /**
   * The position of `first` in `#due`: a new iterator would step over every deleted key again.
   * Dropped when nothing is due, because an iterator that stands still keeps all deleted keys
   * alive.
   */
  #keys: IterableIterator<string> | undefined;
  #first = '';
  #pass: AsyncGenerator<Iterable<Entry>> | undefined;
  /** When the first value beyond is due. */
  #nextPass = 0;

  /**
   * @param limit maximum number of due values, and of later ones
   * @param entries starts a pass over all entries of the state that may have to wait here
   * @param onDue called when a value becomes due
   */
  constructor(
    private readonly clock: Clock,
    private readonly limit: number,
    private readonly entries: () => AsyncGenerator<Iterable<Entry>>,
    private readonly onDue: () => void,
  ) {}

  /** Whether nothing becomes due without another `put`. */
  get isIdle(): boolean {
    return (
      this.size === 0 && this.#pass === undefined && this.#nextPass === Number.POSITIVE_INFINITY
    );
  }

  /** The number of values in memory. */
  get size(): number {
    return this.#due.size + this.#later.size;
  }

  get hasDue(): boolean {
    return this.#due.size > 0;
  }

  /** The value that has been due for longest. */
  get first(): T | undefined {
    if (this.#due.size === 0) return undefined;
    while (!this.#due.has(this.#first)) {
      this.#keys ??= this.#due.keys();
      const next = this.#keys.next();
      if (next.done) this.#keys = undefined;
      else this.#first = next.value;
    }
    return this.#due.get(this.#first);
  }

  /** The due values, the earliest first. Each may be deleted during iteration. */
  get allDue(): Iterable<readonly [key: string, value: T]> {
    return this.#due;
  }

  get(key: string): T | undefined {
    return this.#due.get(key) ?? this.#later.get(key)?.value;
  }

  /**
   * Schedules a value for a time. Replaces an earlier value of the same key.
   *
   * @param isBounded false for a value that no pass finds: it is kept beyond the limit
   */
  put(key: string, value: T, at: number, isBounded = true): void {
    this.delete(key);
    const leftMs = Math.ceil(at - this.clock.now());
    const isDue = leftMs <= 0;
    if (isBounded && (isDue ? this.#due : this.#later).size >= this.limit) {
      this.hasOverflowed = true;
      const passInMs = isDue ? 0 : Math.max(leftMs, BETWEEN_PASSES_MS);
      this.#nextPass = Math.min(this.#nextPass, this.clock.now() + passInMs);
      return;
    }
    if (isDue) this.#due.set(key, value);
    else {
      const goOn = () => {
        this.put(key, value, at, isBounded);
        this.onDue();
      };
      const timer = this.clock.after(Math.min(leftMs, LONGEST_WAIT_MS), goOn, { background: true });
      this.#later.set(key, { value, timer });
    }
  }

  delete(key: string): void {
    this.#due.delete(key);
    if (this.#due.size === 0) this.#keys = undefined;
    this.#later.get(key)?.timer.cancel();
    this.#later.delete(key);
  }

  deleteAll(where: (value: T) => boolean): void {
    for (const [key, value] of this.#due) if (where(value)) this.delete(key);
    for (const [key, { value }] of this.#later) if (where(value)) this.delete(key);
  }

  /** Starts the pass over the state again. */
  startOver(): void {
    this.#pass = undefined;
    this.#nextPass = 0;
  }

  /**
   * Returns the time until a pass begins, in ms; infinite if none is needed, or if due values have
   * to leave first.
   */
  get nextPassInMs(): number {
    return this.#mayScan ? this.#nextPass - this.clock.now() : Number.POSITIVE_INFINITY;
  }

  /** Whether a pass over the state is to begin or to continue. */
  get wantsMore(): boolean {
    return this.#mayScan && (this.#pass !== undefined || this.nextPassInMs <= 0);
  }

  get #mayScan(): boolean {
    return this.#due.size < this.limit / 2;
  }

  /**
   * Returns the next slice of the pass, which takes a few milliseconds. The caller `put`s the
   * entries that the queue does not have.
   */
  async more(): Promise<Iterable<Entry>> {
    if (this.#pass === undefined) this.#nextPass = Number.POSITIVE_INFINITY;
    this.#pass ??= this.entries();
    const { value, done } = await this.#pass.next();
    if (done) this.#pass = undefined;
    return value ?? [];
  }
}
