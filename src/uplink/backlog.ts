import type { Timer } from '../lib/clock.js';
import type { Place } from '../state/entries.js';
import type { Entry, PendingItem } from '../state/entry.js';
import { keyOf, LONGEST_WAIT_MS, type UplinkDeps } from './deps.js';

/** So many items are held that are due, and so many that are due later. */
const HELD = 10_000;
/** What has not failed is put off for a few seconds at most: two pushes are kept apart, a file changed under our hands. In ms. */
const LONGEST_OTHER_WAIT_MS = 10_000;
/** What is put off beyond what is held waits for so long at least, or there would be a pass for each such item. In ms. */
const BETWEEN_PASSES_MS = 30_000;
/** How long an item waits whose URL another item is on its way to, in ms. */
const URL_TAKEN_MS = 1_000;

/**
 * The ready queue: which pending items are to be pushed next, those first that came first.
 *
 * The items themselves stand in the state. Held here are only the places of up to 10,000 that are *due* and of as many that are
 * due *later*; more of them are *beyond*, and are taken up by a pass over the state (`more`) when most of the due ones have
 * left. So memory does not follow the backlog. An item is read from the state when its turn comes: a place whose item is no longer pending does no harm.
 *
 * Nothing of a folder is held while that is missing or left the configuration; when folders change, a pass takes it up.
 *
 * An item that was taken is *out* until `giveBack`. Until then neither it nor another one for the same URL is taken: after
 * a folder got another name or URL, what left for the old one could come to the peer last.
 */
export class Backlog {
  readonly #deps: UplinkDeps;
  readonly #due = new Map<string, Place>();
  readonly #later = new Map<string, { readonly place: Place; readonly timer: Timer }>();
  /** When the first item falls due that is beyond; at first they all are. */
  #nextBeyond = 0;
  #pass: AsyncGenerator<Iterable<Entry>> | undefined;
  /** The URL to which each item is on its way, and whether others changed its record meanwhile. */
  readonly #out = new Map<string, { readonly url: string; isChanged: boolean }>();
  readonly #urls = new Set<string>();

  readonly #onDue: () => void;

  /** @param onDue called when an item falls due */
  constructor(deps: UplinkDeps, onDue: () => void) {
    this.#deps = deps;
    this.#onDue = onDue;
  }

  /** How many items are out. */
  get out(): number {
    return this.#out.size;
  }

  isOut(place: Place): boolean {
    return this.#out.has(keyOf(place));
  }

  /** Others changed the record of an item, which matters where it is out. */
  noteChange(place: Place): void {
    const out = this.#out.get(keyOf(place));
    if (out !== undefined) out.isChanged = true;
  }

  /** Whether others changed the record of an item since it is out. */
  isChanged(place: Place): boolean {
    return this.#out.get(keyOf(place))?.isChanged === true;
  }

  /** Whether nothing is out, and nothing falls due unless an item is added or a folder is back. */
  get isIdle(): boolean {
    const held = this.#out.size + this.#due.size + this.#later.size;
    return held === 0 && this.#pass === undefined && this.#nextBeyond === Number.POSITIVE_INFINITY;
  }

  get hasDue(): boolean {
    return this.#due.size > 0;
  }

  /** How long until a pass is to begin, in ms; infinite where none is. */
  get nextPassInMs(): number {
    return this.#nextBeyond - this.#deps.clock.now();
  }

  /** Whether a pass over the state is to go on, or to begin. */
  get wantsMore(): boolean {
    return this.#due.size < HELD / 2 && (this.#pass !== undefined || this.nextPassInMs <= 0);
  }

  /** The next items of the pass, in a slice that takes a few milliseconds: `add` what is not held yet. */
  async more(): Promise<Iterable<Entry>> {
    if (this.#pass === undefined) this.#nextBeyond = Number.POSITIVE_INFINITY;
    this.#pass ??= this.#pending();
    const { value, done } = await this.#pass.next();
    if (done) this.#pass = undefined;
    return value ?? [];
  }

  /** Whether it has its turn already, or is out. */
  holds(place: Place): boolean {
    const key = keyOf(place);
    return this.#due.has(key) || this.#later.has(key) || this.#out.has(key);
  }

  /**
   * Gives an item its turn, in the place of an earlier one.
   *
   * @param waitMs how long it waits in any case
   */
  add({ folder, path, notBefore }: PendingItem, waitMs = 0): void {
    const { clock, settings } = this.#deps;
    if (!this.#isHere(folder)) return;
    const place = { folder, path };
    this.forget(place);
    // A time far ahead was written before the clock was set.
    const longestMs = Math.max(LONGEST_OTHER_WAIT_MS, settings.push.backoff.max);
    this.#hold(place, clock.now() + Math.max(waitMs, Math.min(notBefore - clock.now(), longestMs)));
  }

  /** Holds an item that is due then, if there is room. */
  #hold(place: Place, due: number): void {
    const { clock } = this.#deps;
    const key = keyOf(place);
    const leftMs = due - clock.now();
    const goOn = () => {
      this.#later.delete(key);
      this.#hold(place, due);
      this.#onDue();
    };
    if (leftMs <= 0 && this.#due.size < HELD) this.#due.set(key, place);
    else if (leftMs > 0 && this.#later.size < HELD) {
      const timer = clock.after(Math.min(leftMs, LONGEST_WAIT_MS), goOn, { background: true });
      this.#later.set(key, { place, timer });
    } else {
      const pauseMs = leftMs <= 0 ? 0 : Math.max(leftMs, BETWEEN_PASSES_MS);
      this.#nextBeyond = Math.min(this.#nextBeyond, clock.now() + pauseMs);
    }
  }

  /** Nothing of this file waits any more. */
  forget(place: Place): void {
    const key = keyOf(place);
    this.#due.delete(key);
    this.#later.get(key)?.timer.cancel();
    this.#later.delete(key);
  }

  /** Offers the items that are due one after the other until one is not accepted; those that are go out. */
  take(accepts: (item: PendingItem) => boolean): void {
    for (const [key, { folder, path }] of this.#due) {
      const item = this.#isHere(folder) ? this.#deps.state.get(folder, path) : undefined;
      const isWaiting = item?.status === 'pending' && item.doubt === undefined && !this.#out.has(key);
      if (!isWaiting) this.#due.delete(key);
      else if (this.#urls.has(item.url)) this.add(item, URL_TAKEN_MS);
      else if (accepts(item)) this.takeOut(item);
      else return;
    }
  }

  /** Takes an item, whether it is due or not. @returns whether it could: not while another one for its URL is out */
  takeOut(item: PendingItem): boolean {
    if (this.#urls.has(item.url)) return false;
    this.forget(item);
    this.#out.set(keyOf(item), { url: item.url, isChanged: false });
    this.#urls.add(item.url);
    return true;
  }

  /** The item is not on its way any more; the caller adds it again when it is still pending. */
  giveBack(place: Place): void {
    const out = this.#out.get(keyOf(place));
    if (out === undefined) return;
    this.#out.delete(keyOf(place));
    this.#urls.delete(out.url);
  }

  foldersChanged(): void {
    for (const place of this.#due.values()) if (!this.#isHere(place.folder)) this.forget(place);
    for (const { place } of this.#later.values()) if (!this.#isHere(place.folder)) this.forget(place);
    this.#pass = undefined;
    this.#nextBeyond = 0;
  }

  #isHere(folder: string): boolean {
    const standing = this.#deps.standing(folder);
    return standing === 'there' || standing === 'doubtful';
  }

  async *#pending(): AsyncGenerator<Iterable<Entry>> {
    const { entries } = this.#deps.state;
    for (const folder of [...entries.folders()])
      if (this.#isHere(folder)) yield* entries.slices({ folder, status: ['pending'] });
  }
}
