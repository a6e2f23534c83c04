import type { Clock } from '../lib/clock.js';
import type { Place } from '../state/entries.js';
import type { PendingItem } from '../state/entry.js';
import { placeOf, type Standing, type UplinkState } from './parts.js';
import { PlaceMap } from './place-map.js';
import { Schedule } from './schedule.js';

/** So many outdated turns are borne before they are looked for. */
const OUTDATED = 1_000;

/**
 * Which pending items are due, oldest first. The items themselves stand in the state; here is only the order, and every
 * item is looked at again when its turn comes, so that an outdated turn does no harm. A file that changes again and again
 * while the peer is away leaves many of those, which are dropped when they outnumber the items. Where a folder is missing no
 * turn of it comes, see Turns.
 *
 * No item waits longer than anything waits, though its date is of an earlier run, before the clock was set back.
 *
 * An item that was taken is *out* until it is given back; only then can it be taken again, or another one for the same
 * address: after a folder got another name or URL, what left for the old one could come to the peer last.
 */
export class Backlog {
  readonly #state: Pick<UplinkState, 'get' | 'counts'>;
  readonly #clock: Clock;
  readonly #longestMs: () => number;
  readonly #turns: Turns;
  /** To which address each is on its way. */
  readonly #out = new PlaceMap<string>();
  /** By address, what waits until the one that is out is given back. */
  readonly #behind = new Map<string, Place[]>();
  #next: Turn | undefined;
  #crowdedFrom = OUTDATED;

  /**
   * @param longestMs how long an item may wait at most
   * @param standing how a folder stands, see `UplinkParts`; whoever sleeps until `nextInMs` is to be woken when that changes
   */
  constructor(
    state: Pick<UplinkState, 'get' | 'counts'>,
    clock: Clock,
    longestMs = () => Number.POSITIVE_INFINITY,
    standing: (folder: string) => Standing | undefined = () => 'there',
  ) {
    this.#state = state;
    this.#clock = clock;
    this.#longestMs = longestMs;
    this.#turns = new Turns(standing);
  }

  get out(): number {
    return this.#out.size;
  }

  isOut(place: Place): boolean {
    return this.#out.has(place);
  }

  /** Whether nothing is out, and nothing falls due unless an item is added or a folder is back. */
  get isIdle(): boolean {
    if (this.#next !== undefined && !this.#turns.isKept(this.#next)) return false;
    return this.out === 0 && this.#turns.nextDue === undefined;
  }

  /** How long until the next item falls due, in ms; undefined when none does. */
  get nextInMs(): number | undefined {
    if (this.#next !== undefined) return 0;
    const { nextDue } = this.#turns;
    return nextDue === undefined ? undefined : Math.max(0, nextDue - this.#clock.now());
  }

  /** @param leastMs how long it waits in any case */
  add(item: PendingItem, leastMs = 0): void {
    if (this.#turns.size >= this.#crowdedFrom) this.#dropOutdated();
    const { notBefore } = item;
    const now = this.#clock.now();
    const waitMs = Math.max(leastMs, Math.min(notBefore - now, this.#longestMs()));
    this.#turns.add({ place: placeOf(item), notBefore }, now + waitMs);
  }

  /** Adds an item that came to its turn in vain, in a folder that is doubtful: until it changes, or the folder is in no doubt. */
  putAside(item: PendingItem): void {
    const { notBefore } = item;
    this.#turns.putAside({ place: placeOf(item), notBefore }, this.#clock.now());
  }

  /** The next item that is due, without taking it. */
  peek(): PendingItem | undefined {
    for (;;) {
      this.#next ??= this.#turns.take(this.#clock.now());
      if (this.#next === undefined) return undefined;
      if (this.#turns.isKept(this.#next)) this.#turns.add(this.#next, this.#clock.now());
      else {
        const item = this.#itemOf(this.#next);
        if (item !== undefined) return item;
      }
      this.#next = undefined;
    }
  }

  /** Takes the item that `peek` shows. */
  take(): void {
    const item = this.#next && this.#itemOf(this.#next);
    this.#next = undefined;
    if (item === undefined) return;
    this.#out.set(placeOf(item), item.url);
    this.#behind.set(item.url, []);
  }

  /** Takes an item that was never added. @returns whether it could: not while another one for its address is out */
  takeOut(item: PendingItem): boolean {
    if (this.#behind.has(item.url)) return false;
    this.#out.set(placeOf(item), item.url);
    this.#behind.set(item.url, []);
    return true;
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
      this.#turns.keep(({ place, notBefore }) => {
        const entry = this.#state.get(place.folder, place.path);
        if (entry?.status !== 'pending' || entry.notBefore !== notBefore || kept.has(place)) return false;
        kept.set(place, true);
        return true;
      });
    }
    this.#crowdedFrom = 2 * this.#turns.size + OUTDATED;
  }

  /** The item that a turn is about, if it still waits for that; one that was put off has another turn. */
  #itemOf({ place, notBefore }: Turn): PendingItem | undefined {
    if (this.#out.has(place)) return undefined;
    const entry = this.#state.get(place.folder, place.path);
    if (entry?.status !== 'pending' || entry.doubt !== undefined) return undefined;
    if (entry.notBefore !== notBefore) return undefined;
    const behind = this.#behind.get(entry.url);
    if (behind === undefined) return entry;
    behind.push(place);
    return undefined;
  }
}

/** A turn is that of an item as it was when it was added. */
export interface Turn {
  readonly place: Place;
  readonly notBefore: number;
}

/**
 * The turns of all items that wait, by their folders: how those stand is asked whenever a turn is to come, and not for each item,
 * so that however much waits in a folder that is missing costs nothing, and goes on as soon as that is there again.
 *
 * A turn *waits* until it is due and its folder is not missing. One that is put *aside* came in vain, for it has no file in a
 * folder that is doubtful: it comes again when that is in no doubt any more. The turns of a folder that left the configuration
 * are *dropped*, for its items are about to be gone.
 */
export class Turns {
  readonly #standing: (folder: string) => Standing | undefined;
  /** By folder; none is kept empty. */
  readonly #waiting = new Map<string, Schedule<Turn>>();
  readonly #aside = new Map<string, Schedule<Turn>>();
  #order = 0;
  #size = 0;

  /** @param standing how a folder stands; undefined for one that left the configuration */
  constructor(standing: (folder: string) => Standing | undefined) {
    this.#standing = standing;
  }

  get size(): number {
    return this.#size;
  }

  /** When the first one falls due that may come; undefined when there is none. */
  get nextDue(): number | undefined {
    return this.#first()?.nextDue;
  }

  /** Whether nothing of its folder may come to its turn. */
  isKept({ place }: Turn): boolean {
    const standing = this.#standing(place.folder);
    return standing === undefined || standing === 'missing';
  }

  add(turn: Turn, due: number): void {
    this.#put(this.#waiting, turn, due);
  }

  putAside(turn: Turn, due: number): void {
    this.#put(this.#aside, turn, due);
  }

  /** Takes the first one that may come if it is due at `now`; of those due at the same time the one that was added first. */
  take(now: number): Turn | undefined {
    const schedule = this.#first();
    const turn = schedule?.take(now);
    if (turn === undefined) return undefined;
    this.#size -= 1;
    if (schedule?.size === 0) {
      const { folder } = turn.place;
      (this.#waiting.get(folder) === schedule ? this.#waiting : this.#aside).delete(folder);
    }
    return turn;
  }

  /** Drops every turn that `isWanted` says no to. */
  keep(isWanted: (turn: Turn) => boolean): void {
    this.#size = 0;
    for (const schedules of [this.#waiting, this.#aside]) {
      for (const [folder, schedule] of schedules) {
        schedule.keep(isWanted);
        this.#size += schedule.size;
        if (schedule.size === 0) schedules.delete(folder);
      }
    }
  }

  #put(schedules: Map<string, Schedule<Turn>>, turn: Turn, due: number): void {
    const { folder } = turn.place;
    let schedule = schedules.get(folder);
    if (schedule === undefined) {
      schedule = new Schedule();
      schedules.set(folder, schedule);
    }
    schedule.add(turn, due, this.#order++);
    this.#size += 1;
  }

  #first(): Schedule<Turn> | undefined {
    let first: Schedule<Turn> | undefined;
    for (const schedules of [this.#waiting, this.#aside]) {
      for (const [folder, schedule] of schedules) {
        const standing = this.#standing(folder);
        const mayCome = standing === 'there' || (standing === 'doubtful' && schedules === this.#waiting);
        if (standing === undefined) this.#drop(schedules, folder, schedule);
        else if (mayCome && schedule.isBefore(first)) first = schedule;
      }
    }
    return first;
  }

  #drop(schedules: Map<string, Schedule<Turn>>, folder: string, { size }: Schedule<Turn>): void {
    schedules.delete(folder);
    this.#size -= size;
  }
}
