import type { ItemKey } from '../state/entries.js';
import type { Entry, PendingItem } from '../state/entry.js';
import { itemKeyText, type UplinkDeps } from './deps.js';
import { MAX_IN_MEMORY, ReadyQueue } from './ready-queue.js';
import { delayLeftMs } from './retry.js';

/** Delay before an item is tried again while another item for its URL is in flight, in ms. */
const URL_TAKEN_MS = 1_000;

/**
 * Delay before an item that waits for a scan of its folder is tried again, in ms. The scan usually
 * changes the item before that.
 */
export const AWAITS_SCAN_DELAY_MS = 10_000;

/**
 * The lane of an item: `document` until its text is extracted, which may take minutes, then `text`,
 * from which it is pushed.
 */
export type BacklogLane = 'text' | 'document';

/**
 * The queue of pending items, by lane, the earliest first. It stores keys only: the item is
 * read from the state when its turn comes, and keys of items that are not pending any more are
 * dropped then.
 *
 * Items of a folder that is missing, or is not in the configuration any more, are not in the queue.
 * `foldersChanged` starts a pass that adds them again.
 *
 * An item that was claimed is *in flight* until `checkIn`, in memory only. (The `inFlight` of a
 * record says something narrower: its push has left, and no answer was recorded.) During that time
 * neither the item nor another one for the same URL can be claimed. Otherwise, after a folder got
 * another name or URL, the push of the old item could reach the peer last.
 */
export class Backlog {
  readonly #deps: UplinkDeps;
  readonly #lanes: Readonly<Record<BacklogLane, ReadyQueue<ItemKey>>>;
  /**
   * The URL and the present record of each item in flight. The record is the same object until the
   * item changes.
   */
  readonly #inFlight = new Map<string, { readonly url: string; entry: Entry | undefined }>();
  readonly #urls = new Set<string>();

  /**
   * @param onDue called when an item becomes due, or is found to belong in the other lane
   * @param isReady whether an item can be pushed without reading a document first
   */
  constructor(
    deps: UplinkDeps,
    private readonly onDue: () => void,
    private readonly isReady: (item: PendingItem) => boolean = () => true,
  ) {
    this.#deps = deps;
    const queueOf = (lane: BacklogLane) =>
      new ReadyQueue<ItemKey>(
        deps.clock,
        deps.maxInMemory ?? MAX_IN_MEMORY,
        () => this.#pending(lane),
        onDue,
      );
    this.#lanes = { text: queueOf('text'), document: queueOf('document') };
  }

  #laneOf(item: PendingItem): BacklogLane {
    return this.isReady(item) ? 'text' : 'document';
  }

  get #queues(): readonly ReadyQueue<ItemKey>[] {
    return Object.values(this.#lanes);
  }

  /** The number of items in flight. */
  get inFlight(): number {
    return this.#inFlight.size;
  }

  get isIdle(): boolean {
    return this.#inFlight.size === 0 && this.#queues.every(({ isIdle }) => isIdle);
  }

  hasDue(lane: BacklogLane): boolean {
    return this.#lanes[lane].hasDue;
  }

  /** The number of items in the lane, as far as they are in memory. */
  sizeOf(lane: BacklogLane): number {
    return this.#lanes[lane].size;
  }

  /** Returns the time until a pass over the state begins, in ms. */
  get nextPassInMs(): number {
    return Math.min(...this.#queues.map(({ nextPassInMs }) => nextPassInMs));
  }

  /** Whether a pass over the state is to begin or to continue. */
  get wantsMore(): boolean {
    return this.#queues.some(({ wantsMore }) => wantsMore);
  }

  /**
   * Returns the next slice of pending items of the state, which takes a few milliseconds. The
   * caller `add`s those that the backlog does not have.
   */
  async more(): Promise<Iterable<Entry>> {
    return (await this.#queues.find(({ wantsMore }) => wantsMore)?.more()) ?? [];
  }

  isInFlight(place: ItemKey): boolean {
    return this.#inFlight.has(itemKeyText(place));
  }

  /** Whether the item is in the queue or in flight. */
  has(place: ItemKey): boolean {
    return (
      this.isInFlight(place) ||
      this.#queues.some((queue) => queue.get(itemKeyText(place)) !== undefined)
    );
  }

  /** Returns the present record of an item in flight. */
  current(place: ItemKey): Entry | undefined {
    return this.#inFlight.get(itemKeyText(place))?.entry;
  }

  /**
   * Updates the record of an item that changed or was removed.
   * @returns whether the item is in flight
   */
  changed(place: ItemKey, entry: Entry | undefined): boolean {
    const out = this.#inFlight.get(itemKeyText(place));
    if (out !== undefined) out.entry = entry;
    return out !== undefined;
  }

  /**
   * Schedules an item for its `notBefore`.
   * @param waitMs minimum delay
   */
  add(item: PendingItem, waitMs = 0): void {
    const { clock, settings } = this.#deps;
    const { folder, path } = item;
    if (!this.#isPresent(folder)) return;
    const leftMs = Math.max(waitMs, delayLeftMs(settings, item, clock.now()));
    const place = { folder, path };
    const key = itemKeyText(place);
    // A file may change its lane while it waits.
    this.delete(key);
    this.#lanes[this.#laneOf(item)].put(key, place, clock.now() + leftMs);
  }

  delete(key: string): void {
    for (const queue of this.#queues) queue.delete(key);
  }

  /**
   * Offers the due items that can be pushed, the earliest first, until one is not accepted.
   * Accepted items are in flight.
   */
  take(accepts: (item: PendingItem) => boolean): void {
    for (const item of this.#due('text')) {
      if (this.#urls.has(item.url)) this.add(item, URL_TAKEN_MS);
      else if (accepts(item)) this.claim(item);
      else return;
    }
  }

  /**
   * Removes the first due document that is to be extracted, and returns it. It is not in flight: it
   * may change, be removed and be added again meanwhile.
   */
  takeDocument(): PendingItem | undefined {
    for (const item of this.#due('document')) {
      this.delete(itemKeyText(item));
      return item;
    }
    return undefined;
  }

  /** Yields the due items of a lane, the earliest first, without those that do not belong there. */
  *#due(lane: BacklogLane): Iterable<PendingItem> {
    for (const [key, { folder, path }] of this.#lanes[lane].allDue) {
      const item = this.#isPresent(folder) ? this.#deps.state.get(folder, path) : undefined;
      const isWaiting =
        item?.status === 'pending' && item.inFlight === undefined && !this.#inFlight.has(key);
      if (!isWaiting) this.delete(key);
      else if (this.#laneOf(item) === lane) yield item;
      else {
        this.add(item);
        this.onDue();
      }
    }
  }

  /**
   * Marks an item as in flight, whether it is due or not.
   * @returns false if an item for its URL is in flight
   */
  claim(item: PendingItem): boolean {
    if (this.#urls.has(item.url)) return false;
    this.delete(itemKeyText(item));
    this.#inFlight.set(itemKeyText(item), { url: item.url, entry: item });
    this.#urls.add(item.url);
    return true;
  }

  /**
   * Blocks pushes to this URL until `unreserveUrl`.
   * @returns false if an item for it is in flight or it is reserved
   */
  reserveUrl(url: string): boolean {
    if (this.#urls.has(url)) return false;
    this.#urls.add(url);
    return true;
  }

  unreserveUrl(url: string): void {
    this.#urls.delete(url);
  }

  /**
   * Ends the flight of an item. The caller adds it again if it is still pending.
   * @returns its present record
   */
  checkIn(place: ItemKey): Entry | undefined {
    const out = this.#inFlight.get(itemKeyText(place));
    if (out === undefined) return undefined;
    this.#inFlight.delete(itemKeyText(place));
    this.#urls.delete(out.url);
    return out.entry;
  }

  foldersChanged(): void {
    for (const queue of this.#queues) {
      queue.deleteAll(({ folder }) => !this.#isPresent(folder));
      queue.startOver();
    }
  }

  #isPresent(folder: string): boolean {
    return this.#deps.folders.stateOf(folder) === 'there';
  }

  async *#pending(lane: BacklogLane): AsyncGenerator<Iterable<Entry>> {
    const { entries } = this.#deps.state;
    for (const folder of [...entries.folders()]) {
      if (!this.#isPresent(folder)) continue;
      for await (const slice of entries.slices({ folder, status: ['pending'] }))
        yield this.#ofLane(slice, lane);
    }
  }

  /**
   * Yields the pending items for the pass of a lane one by one, so that they are not all in memory.
   * The pass of the texts has all items: a document that waited there may have to be read again.
   */
  *#ofLane(entries: Iterable<Entry>, lane: BacklogLane): Iterable<Entry> {
    for (const entry of entries)
      if (entry.status === 'pending' && (lane === 'text' || this.#laneOf(entry) === lane))
        yield entry;
  }
}
