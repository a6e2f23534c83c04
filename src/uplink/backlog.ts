import type { Clock, Timer } from '../lib/clock.js';
import type { Place } from '../state/entries.js';
import type { Entry, PendingItem } from '../state/entry.js';
import { keyOf, LONGEST_WAIT_MS, longestPutOffMs, type UplinkDeps } from './deps.js';

/**
 * What there is no room for waits for so long at least, or there would be a pass for each such
 * item. In ms.
 */
const BETWEEN_PASSES_MS = 30_000;
/** See `UplinkDeps.held`. */
export const HELD = 10_000;
/** How long an item waits whose URL another item is on its way to, in ms. */
const URL_TAKEN_MS = 1_000;

/**
 * What waits for its time, by key: up to `most` that are *due*, the first that fell due first, and
 * up to `most` that are due *later*. What there is no room for is *beyond*: it stands in the state
 * only, and is taken up by a pass over that (`more`) when most of the due ones have left. At first
 * everything is beyond. So memory does not follow how much waits.
 */
export class ReadyQueue<T> {
  readonly #due = new Map<string, T>();
  readonly #later = new Map<string, { readonly value: T; readonly timer: Timer }>();
  /** Whether anything had to be left beyond. */
  hasOverflowed = false;
  /**
   * Where `first` has come to: a new iterator would pass by all that left before. Dropped when
   * nothing is due, for an iterator that stands still keeps all that has left since.
   */
  #keys: IterableIterator<string> | undefined;
  #first = '';
  #pass: AsyncGenerator<Iterable<Entry>> | undefined;
  /** When the first falls due that is beyond. */
  #nextPass = 0;

  /**
   * @param entries a pass over everything in the state that may have to wait here
   * @param onDue called when something falls due
   */
  constructor(
    private readonly clock: Clock,
    private readonly most: number,
    private readonly entries: () => AsyncGenerator<Iterable<Entry>>,
    private readonly onDue: () => void,
  ) {}

  /** Whether nothing falls due unless it is added. */
  get isIdle(): boolean {
    const held = this.#due.size + this.#later.size;
    return held === 0 && this.#pass === undefined && this.#nextPass === Number.POSITIVE_INFINITY;
  }

  get hasDue(): boolean {
    return this.#due.size > 0;
  }

  /** The first that fell due. */
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

  /** The due ones, the first that fell due first; each may be deleted as it comes. */
  get allDue(): Iterable<readonly [key: string, value: T]> {
    return this.#due;
  }

  get(key: string): T | undefined {
    return this.#due.get(key) ?? this.#later.get(key)?.value;
  }

  /**
   * Gives a value its turn at a time, in the place of an earlier one with its key.
   *
   * @param isBounded false where no pass would come upon it
   */
  put(key: string, value: T, at: number, isBounded = true): void {
    this.delete(key);
    const leftMs = Math.ceil(at - this.clock.now());
    const isDue = leftMs <= 0;
    if (isBounded && (isDue ? this.#due : this.#later).size >= this.most) {
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

  /** Begins the pass anew. */
  startOver(): void {
    this.#pass = undefined;
    this.#nextPass = 0;
  }

  /**
   * How long until a pass is to begin, in ms; infinite where none is, or where due ones have to
   * leave first.
   */
  get nextPassInMs(): number {
    return this.#mayPass ? this.#nextPass - this.clock.now() : Number.POSITIVE_INFINITY;
  }

  /** Whether a pass over the state is to go on, or to begin. */
  get wantsMore(): boolean {
    return this.#mayPass && (this.#pass !== undefined || this.nextPassInMs <= 0);
  }

  get #mayPass(): boolean {
    return this.#due.size < this.most / 2;
  }

  /**
   * The next entries of the pass, in a slice that takes a few milliseconds: `put` what is not held
   * yet.
   */
  async more(): Promise<Iterable<Entry>> {
    if (this.#pass === undefined) this.#nextPass = Number.POSITIVE_INFINITY;
    this.#pass ??= this.entries();
    const { value, done } = await this.#pass.next();
    if (done) this.#pass = undefined;
    return value ?? [];
  }
}

/**
 * Documents are read by programs of their own, which may take minutes; text waits for none of them.
 */
export type PushLane = 'text' | 'document';

export function laneOf({ version }: PendingItem): PushLane {
  return version.encoding === 'document' ? 'document' : 'text';
}

/**
 * Holds which pending items are to be pushed next, by lane, those first that came first. It holds
 * only their places: an item is read from the state when its turn comes, and a place whose item is
 * no longer pending does no harm.
 *
 * Nothing of a folder is held while that is missing or left the configuration; when folders change,
 * a pass takes it up.
 *
 * An item that was taken is *out* until `giveBack`. Until then neither it nor another one for the
 * same URL is taken: after a folder got another name or URL, what left for the old one could come
 * to the peer last.
 */
export class Backlog {
  readonly #deps: UplinkDeps;
  readonly #lanes: Readonly<Record<PushLane, ReadyQueue<Place>>>;
  /**
   * Of each item that is out where it goes, and its record: the very same object as long as nobody
   * changed it.
   */
  readonly #out = new Map<string, { readonly url: string; entry: Entry | undefined }>();
  readonly #urls = new Set<string>();

  constructor(deps: UplinkDeps, onDue: () => void) {
    this.#deps = deps;
    const queueOf = (lane: PushLane) =>
      new ReadyQueue<Place>(deps.clock, deps.held ?? HELD, () => this.#pending(lane), onDue);
    this.#lanes = { text: queueOf('text'), document: queueOf('document') };
  }

  get #queues(): readonly ReadyQueue<Place>[] {
    return Object.values(this.#lanes);
  }

  /** How many items are out. */
  get out(): number {
    return this.#out.size;
  }

  get isIdle(): boolean {
    return this.#out.size === 0 && this.#queues.every(({ isIdle }) => isIdle);
  }

  hasDue(lane: PushLane): boolean {
    return this.#lanes[lane].hasDue;
  }

  /** How long until a pass over the state is to begin, in ms. */
  get nextPassInMs(): number {
    return Math.min(...this.#queues.map(({ nextPassInMs }) => nextPassInMs));
  }

  /** Whether a pass over the state is to go on, or to begin. */
  get wantsMore(): boolean {
    return this.#queues.some(({ wantsMore }) => wantsMore);
  }

  /**
   * The next pending items of the state, in a slice that takes a few milliseconds: `add` what is
   * not held yet.
   */
  async more(): Promise<Iterable<Entry>> {
    return (await this.#queues.find(({ wantsMore }) => wantsMore)?.more()) ?? [];
  }

  isOut(place: Place): boolean {
    return this.#out.has(keyOf(place));
  }

  /** Whether it has its turn already, or is out. */
  holds(place: Place): boolean {
    return this.isOut(place) || this.#queues.some((queue) => queue.get(keyOf(place)) !== undefined);
  }

  /** The record of an item that is out, as it stands now. */
  current(place: Place): Entry | undefined {
    return this.#out.get(keyOf(place))?.entry;
  }

  /** The record of an item changed, or went. @returns whether the item is out */
  changed(place: Place, entry: Entry | undefined): boolean {
    const out = this.#out.get(keyOf(place));
    if (out !== undefined) out.entry = entry;
    return out !== undefined;
  }

  /** @param waitMs how long it waits in any case */
  add(item: PendingItem, waitMs = 0): void {
    const { clock, settings } = this.#deps;
    const { folder, path, notBefore } = item;
    if (!this.#isHere(folder)) return;
    const leftMs = Math.max(waitMs, Math.min(notBefore - clock.now(), longestPutOffMs(settings)));
    const place = { folder, path };
    const key = keyOf(place);
    // A file may become a document, or text, while it waits.
    this.delete(key);
    this.#lanes[laneOf(item)].put(key, place, clock.now() + leftMs);
  }

  delete(key: string): void {
    for (const queue of this.#queues) queue.delete(key);
  }

  /**
   * Offers the due items of a lane one after the other until one is not accepted; those that are go
   * out.
   */
  take(accepts: (item: PendingItem) => boolean, lane: PushLane = 'text'): void {
    for (const [key, { folder, path }] of this.#lanes[lane].allDue) {
      const item = this.#isHere(folder) ? this.#deps.state.get(folder, path) : undefined;
      const isWaiting =
        item?.status === 'pending' && item.inFlight === undefined && !this.#out.has(key);
      if (!isWaiting) this.delete(key);
      else if (this.#urls.has(item.url)) this.add(item, URL_TAKEN_MS);
      else if (accepts(item)) this.takeOut(item);
      else return;
    }
  }

  /**
   * Takes an item, whether it is due or not. @returns whether it could: not while another one for
   * its URL is out
   */
  takeOut(item: PendingItem): boolean {
    if (this.#urls.has(item.url)) return false;
    this.delete(keyOf(item));
    this.#out.set(keyOf(item), { url: item.url, entry: item });
    this.#urls.add(item.url);
    return true;
  }

  /**
   * Nothing is pushed to this URL until `release`. @returns whether it could: not while something
   * is out for it
   */
  reserve(url: string): boolean {
    if (this.#urls.has(url)) return false;
    this.#urls.add(url);
    return true;
  }

  release(url: string): void {
    this.#urls.delete(url);
  }

  /**
   * The item is not on its way any more; the caller adds it again when it is still pending.
   * @returns its record
   */
  giveBack(place: Place): Entry | undefined {
    const out = this.#out.get(keyOf(place));
    if (out === undefined) return undefined;
    this.#out.delete(keyOf(place));
    this.#urls.delete(out.url);
    return out.entry;
  }

  foldersChanged(): void {
    for (const queue of this.#queues) {
      queue.deleteAll(({ folder }) => !this.#isHere(folder));
      queue.startOver();
    }
  }

  #isHere(folder: string): boolean {
    return this.#deps.standing(folder) === 'there';
  }

  async *#pending(lane: PushLane): AsyncGenerator<Iterable<Entry>> {
    const { entries } = this.#deps.state;
    for (const folder of [...entries.folders()]) {
      if (!this.#isHere(folder)) continue;
      for await (const slice of entries.slices({ folder, status: ['pending'] }))
        yield [...slice].filter((entry) => entry.status === 'pending' && laneOf(entry) === lane);
    }
  }
}
