import type { Place } from '../state/entries.js';
import type { PendingItem, Trouble } from '../state/entry.js';
import type { UplinkParts, UplinkState } from './parts.js';
import { PlaceMap } from './place-map.js';
import type { Hold } from './visibility.js';

/** The code of what is said of an item while it waits to be pushed apart from the others. */
const LOST = 'LOST_FROM_INDEX';
/** Into so many groups the lost ones of a group are parted; also, the share of the hold that two groups are apart. */
const PARTS = 4;
/** How soon to look again for a group whose items are not due yet, or whose folder is missing, in ms. */
const POLL_MS = 5_000;

export interface IsolationParts extends Pick<UplinkParts, 'clock' | 'standing'> {
  readonly state: Pick<UplinkState, 'get'>;
  /** Whether the peer loses documents together at all; otherwise nothing is a suspect. */
  readonly isNeeded: () => boolean;
}

interface Group {
  readonly suspects: Set<Suspect>;
  /** How many were pushed together; 0 while it waits. */
  pushed: number;
}

interface Suspect {
  readonly place: Place;
  readonly sha256: string;
  group: Group;
  /** `pushed`: until it is confirmed or lost; `unpushed`: the push did not come about, so nothing is known. */
  status: 'waiting' | 'pushed' | 'lost' | 'unpushed';
  /** How often it was pushed alone and lost. */
  failedAlone: number;
  /** Whether others were ever lost together with it. */
  hadCompany: boolean;
}

/** What the push loop is to do next. */
export type Decision =
  /** These items are to be pushed now, together and nothing else; `pushed` is to be called afterwards. */
  | { readonly push: readonly PendingItem[] }
  /** Whether other items may not be pushed now, and when to decide again; undefined when something else happens. */
  | { readonly push?: never; readonly blocksOthers: boolean; readonly againInMs: number | undefined };

/** What stands in the state of an item that the peer accepted and lost. */
export const lostTrouble: Trouble = {
  code: LOST,
  message: 'The peer accepted it and did not index it in the usual time.',
  hint: 'It is pushed again apart from others by itself, for one document can keep others out of the index.',
};

/**
 * Finds the document that keeps others out of the index.
 *
 * YaCy sends many documents to its index at a time, in one *update*. A document that the index refuses ends the update: nothing
 * in it is indexed, though YaCy accepted all of it (measured with 1.92). So items that are accepted and never shown are *suspects*
 * together, and are pushed again in groups, apart in time, so that each group is in another update. A group is
 *
 * - *new*: its items were lost a moment ago, and more may follow; then they are parted into waiting groups;
 * - *waiting*, until nothing else was pushed for a quarter of the hold; nothing else is pushed for as long behind it;
 * - *pushed*, until each item is confirmed, or lost again; the lost ones are parted into new waiting groups.
 *
 * An item that was pushed alone and lost is pushed once more, apart from everything else by the whole hold, before it is to blame.
 * Between two groups other items may be pushed for the time of the hold.
 */
export class Isolation {
  readonly #parts: IsolationParts;
  readonly #hold: Pick<Hold, 'ms'>;
  readonly #suspects = new PlaceMap<Suspect>();
  #new: Group = { suspects: new Set(), pushed: 0 };
  #newFrom = 0;
  #newUntil = 0;
  readonly #waiting = new Set<Group>();
  /** The group that is on its way to the peer. */
  #sending: Group | undefined;
  /** When anything was pushed last. */
  #pushedAt: number;
  /** Until then nothing else is pushed behind a group; from then on others go first for a while. */
  #quietUntil = Number.NEGATIVE_INFINITY;

  constructor(parts: IsolationParts, hold: Pick<Hold, 'ms'>) {
    this.#parts = parts;
    this.#hold = hold;
    this.#pushedAt = parts.clock.now();
  }

  /** Whether no suspect waits that could be pushed. */
  get isIdle(): boolean {
    if (this.#sending !== undefined) return false;
    return ![this.#new, ...this.#waiting].some((group) =>
      this.#hasAny(group, (it) => this.#isThere(it.place)),
    );
  }

  has(place: Place): boolean {
    return this.#suspects.size > 0 && this.#suspects.has(place);
  }

  /** Whether it was pushed alone. */
  isAlone(place: Place): boolean {
    return this.#suspects.get(place)?.group.pushed === 1;
  }

  /**
   * The peer accepted the item and lost it: it is a suspect from now on, and comes back by `take` when it is pending.
   *
   * @param isCertain whether it must have been indexed by now, if it was not to blame
   * @returns how often it was lost alone, and whether others were ever lost with it
   */
  lost(
    { folder, path, version }: Pick<PendingItem, 'folder' | 'path' | 'version'>,
    isCertain: boolean,
  ): { readonly timesAlone: number; readonly hadCompany: boolean } {
    const suspect = this.#suspects.get({ folder, path }) ?? this.#add({ folder, path }, version.sha256);
    if (isCertain && suspect.group.pushed === 1) suspect.failedAlone += 1;
    if (suspect.group.pushed > 1) suspect.hadCompany = true;
    if (suspect.status === 'pushed') suspect.status = 'lost';
    return { timesAlone: suspect.failedAlone, hadCompany: suspect.hadCompany };
  }

  /** Takes a pending item if it is a suspect, also one of an earlier run. @returns whether it is one */
  take(item: PendingItem): boolean {
    const { folder, path, version } = item;
    const place = { folder, path };
    const known = this.#suspects.get(place);
    if (!this.#parts.isNeeded() || (known !== undefined && known.sha256 !== version.sha256)) {
      this.forget(place);
      return false;
    }
    if (known === undefined && item.trouble?.code !== LOST) return false;
    const suspect = known ?? this.#add(place, version.sha256);
    if (suspect.status === 'pushed') suspect.status = 'unpushed';
    this.#settle(suspect.group);
    return true;
  }

  /** It is confirmed, quarantined, gone, or another version of it is to be pushed. */
  forget(place: Place): void {
    const suspect = this.#suspects.get(place);
    if (suspect === undefined) return;
    this.#suspects.delete(place);
    suspect.group.suspects.delete(suspect);
    if (suspect.group.suspects.size === 0) this.#waiting.delete(suspect.group);
    else this.#settle(suspect.group);
  }

  /**
   * What may be pushed now.
   *
   * @param othersWait whether items that are no suspects are due
   * @param isBusy whether a push is under way
   */
  decide(othersWait: boolean, isBusy: boolean): Decision {
    if (this.#suspects.size === 0) return { blocksOthers: false, againInMs: undefined };
    if (this.#sending !== undefined) return { blocksOthers: true, againInMs: undefined };
    const now = this.#parts.clock.now();
    this.#partNew(now);
    if (now < this.#quietUntil) return { blocksOthers: true, againInMs: this.#quietUntil - now };
    const group = [...this.#waiting].find((each) =>
      this.#hasAny(each, (it) => this.#readyItem(it) !== undefined),
    );
    if (group === undefined) return { blocksOthers: false, againInMs: this.#newInMs(now) };
    const othersUntil = this.#quietUntil + this.#hold.ms;
    if (othersWait && now < othersUntil) return { blocksOthers: false, againInMs: othersUntil - now };
    const from = this.#pushedAt + this.#apartMs(group);
    if (isBusy) return { blocksOthers: true, againInMs: undefined };
    if (now < from) return { blocksOthers: true, againInMs: from - now };
    return { push: this.#send(group) };
  }

  /** Something was pushed; `isGroup` where it was the last of what `decide` gave. */
  pushed(isGroup = false): void {
    const now = this.#parts.clock.now();
    this.#pushedAt = now;
    const group = this.#sending;
    if (!isGroup || group === undefined) return;
    this.#sending = undefined;
    this.#quietUntil = now + this.#apartMs(group);
    this.#settle(group);
  }

  #add(place: Place, sha256: string): Suspect {
    const now = this.#parts.clock.now();
    if (this.#new.suspects.size === 0) this.#newFrom = now;
    this.#newUntil = now;
    const group = this.#new;
    const suspect: Suspect = { place, sha256, group, status: 'waiting', failedAlone: 0, hadCompany: false };
    group.suspects.add(suspect);
    this.#suspects.set(place, suspect);
    return suspect;
  }

  #send(group: Group): readonly PendingItem[] {
    const items: PendingItem[] = [];
    const left: Suspect[] = [];
    for (const suspect of group.suspects) {
      const item = this.#readyItem(suspect);
      if (item === undefined) left.push(suspect);
      else {
        items.push(item);
        suspect.status = 'pushed';
      }
    }
    this.#waiting.delete(group);
    for (const suspect of left) group.suspects.delete(suspect);
    this.#wait(left);
    group.pushed = items.length;
    this.#sending = group;
    return items;
  }

  /** New suspects become waiting groups when no more of them come, but not too late. */
  #partNew(now: number): void {
    if (this.#new.suspects.size === 0 || now < this.#newAt) return;
    const all = [...this.#new.suspects];
    if (all.length > 1) for (const suspect of all) suspect.hadCompany = true;
    this.#new = { suspects: new Set(), pushed: 0 };
    this.#part(all);
  }

  get #newAt(): number {
    return Math.min(this.#newFrom + this.#hold.ms / 2, this.#newUntil + this.#hold.ms / (2 * PARTS));
  }

  #newInMs(now: number): number | undefined {
    if (this.#new.suspects.size > 0) return Math.max(1, this.#newAt - now);
    return this.#waiting.size > 0 ? POLL_MS : undefined;
  }

  /** Once nothing more is to be known of a group, its lost items wait in smaller ones, and what was not pushed as it was. */
  #settle(group: Group): void {
    if (group.pushed === 0 || group === this.#sending) return;
    const suspects = [...group.suspects];
    if (suspects.some(({ status }) => status === 'pushed')) return;
    group.suspects.clear();
    this.#part(suspects.filter(({ status }) => status === 'lost'));
    this.#wait(suspects.filter(({ status }) => status === 'unpushed'));
  }

  #part(suspects: readonly Suspect[]): void {
    const size = Math.max(1, Math.ceil(suspects.length / PARTS));
    for (let from = 0; from < suspects.length; from += size) this.#wait(suspects.slice(from, from + size));
  }

  #wait(suspects: readonly Suspect[]): void {
    if (suspects.length === 0) return;
    const group: Group = { suspects: new Set(suspects), pushed: 0 };
    for (const suspect of suspects) {
      suspect.group = group;
      suspect.status = 'waiting';
    }
    this.#waiting.add(group);
  }

  /** How long nothing else may be pushed before and behind a group, in ms. */
  #apartMs(group: Group): number {
    const [only] = group.suspects;
    const isLast = group.suspects.size === 1 && only !== undefined && only.failedAlone > 0;
    return isLast ? this.#hold.ms : this.#hold.ms / PARTS;
  }

  #hasAny(group: Group, is: (suspect: Suspect) => boolean): boolean {
    for (const suspect of group.suspects) if (is(suspect)) return true;
    return false;
  }

  #readyItem({ place }: Suspect): PendingItem | undefined {
    if (!this.#isThere(place)) return undefined;
    const entry = this.#parts.state.get(place.folder, place.path);
    const isDue = entry?.status === 'pending' && entry.doubt === undefined;
    return isDue && entry.notBefore <= this.#parts.clock.now() ? entry : undefined;
  }

  #isThere({ folder }: Place): boolean {
    return this.#parts.standing(folder) === 'there';
  }
}
