import type { Clock } from '../lib/clock.js';
import type { Place } from '../state/entries.js';
import type { PendingItem } from '../state/entry.js';
import { placeOf, type UplinkState } from './parts.js';
import { PlaceMap } from './place-map.js';
import { Schedule } from './schedule.js';

/** So many outdated turns are borne before they are looked for. */
const OUTDATED = 1_000;

/**
 * Which pending items are due, oldest first. The items themselves stand in the state; here is only the order, and every
 * item is looked at again when its turn comes, so that an outdated turn does no harm. A file that changes again and again
 * while the peer is away leaves many of those, which are dropped when they outnumber the items.
 *
 * An item that was taken is *out* until it is given back; only then can it be taken again, or another one for the same
 * address: after a folder got another name or URL, what left for the old one could come to the peer last.
 */
export class Backlog {
  readonly #state: Pick<UplinkState, 'get' | 'counts'>;
  readonly #clock: Clock;
  readonly #turns = new Schedule<Place>();
  /** To which address each is on its way. */
  readonly #out = new PlaceMap<string>();
  /** By address, what waits until the one that is out is given back. */
  readonly #behind = new Map<string, Place[]>();
  #next: PendingItem | undefined;
  #crowdedFrom = OUTDATED;

  constructor(state: Pick<UplinkState, 'get' | 'counts'>, clock: Clock) {
    this.#state = state;
    this.#clock = clock;
  }

  get out(): number {
    return this.#out.size;
  }

  isOut(place: Place): boolean {
    return this.#out.has(place);
  }

  /** When the next item falls due, in ms since the epoch; undefined when none waits. */
  get nextDue(): number | undefined {
    return this.#next === undefined ? this.#turns.nextDue : this.#clock.now();
  }

  add(item: PendingItem): void {
    if (this.#turns.size >= this.#crowdedFrom) this.#dropOutdated();
    this.#turns.add(placeOf(item), item.notBefore);
  }

  /** The next item that is due, without taking it. */
  peek(): PendingItem | undefined {
    if (this.#next !== undefined) {
      const current = this.#dueItem(placeOf(this.#next));
      this.#next = current;
      if (current !== undefined) return current;
    }
    for (;;) {
      const place = this.#turns.take(this.#clock.now());
      if (place === undefined) return undefined;
      this.#next = this.#dueItem(place);
      if (this.#next !== undefined) return this.#next;
    }
  }

  /** Takes the item that `peek` shows. */
  take(): void {
    if (this.#next === undefined) return;
    const { url } = this.#next;
    this.#out.set(this.#next, url);
    this.#behind.set(url, []);
    this.#next = undefined;
  }

  /** Gives an item back; the caller adds it again when it still waits. */
  giveBack(place: Place): void {
    const url = this.#out.get(place);
    this.#out.delete(place);
    if (url === undefined) return;
    const behind = this.#behind.get(url) ?? [];
    this.#behind.delete(url);
    for (const each of behind) {
      const entry = this.#state.get(each.folder, each.path);
      if (entry?.status === 'pending') this.add(entry);
    }
  }

  #dropOutdated(): void {
    if (this.#turns.size >= 2 * this.#state.counts().pending + OUTDATED) {
      const kept = new PlaceMap<true>();
      this.#turns.keep((place, due) => {
        const entry = this.#state.get(place.folder, place.path);
        if (entry?.status !== 'pending' || entry.notBefore !== due || kept.has(place)) return false;
        kept.set(place, true);
        return true;
      });
    }
    this.#crowdedFrom = 2 * this.#turns.size + OUTDATED;
  }

  #dueItem(place: Place): PendingItem | undefined {
    if (this.#out.has(place)) return undefined;
    const entry = this.#state.get(place.folder, place.path);
    if (entry?.status !== 'pending' || entry.doubt !== undefined) return undefined;
    if (entry.notBefore > this.#clock.now()) return undefined;
    const behind = this.#behind.get(entry.url);
    if (behind === undefined) return entry;
    behind.push(place);
    return undefined;
  }
}
