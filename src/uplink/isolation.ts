import type { Place } from '../state/entries.js';
import type { PendingItem, Trouble } from '../state/entry.js';
import type { UplinkParts, UplinkState } from './parts.js';
import { PlaceMap } from './place-map.js';
import type { Hold } from './visibility.js';

/** The code of what is said of an item while it waits to be pushed apart from the others. */
const LOST = 'LOST_FROM_INDEX';
/** Into so many groups those of a group are parted that were not shown. */
const PARTS = 4;

export interface IsolationParts extends Pick<UplinkParts, 'clock' | 'standing'> {
  readonly state: Pick<UplinkState, 'get'>;
}

interface Group {
  readonly size: number;
  /** How many of them are neither confirmed nor lost again. */
  open: number;
  /** What is to be pushed once more. */
  readonly again: Place[];
}

interface Suspect {
  readonly sha256: string;
  /** Whether it is new or waiting. */
  waits: boolean;
  /** The group with which it was pushed, until it is confirmed or lost again. */
  group: Group | undefined;
  /** How often it was pushed alone and lost. */
  failedAlone: number;
  /** Whether others were ever lost together with it. */
  hadCompany: boolean;
}

/** What stands in the state of an item that the peer accepted and lost. */
export const lostTrouble: Trouble = {
  code: LOST,
  message: 'The peer accepted it and did not index it, while it indexed what was pushed at other times.',
  hint: 'Nothing is to be done: one document can keep others out of the index, so it is pushed again apart from the others.',
};

/**
 * Finds the document that keeps others out of the index.
 *
 * YaCy sends many documents to its index at a time, in one *update*. A document that the index refuses ends the update: nothing
 * in it is indexed, though YaCy accepted all of it (measured with 1.92). So items that are accepted and never shown are *suspects*
 * together, and are pushed again in groups, apart in time, so that each group is in another update:
 *
 * - *new*: lost a moment ago; more may follow, and all together are parted into groups;
 * - *waiting*: a group that is pushed as soon as nothing else was pushed for a quarter of the hold. Nothing else is pushed for
 *   as long behind it;
 * - *under test*: pushed, until each of its items is confirmed or lost again. Those lost again are parted into groups of their own.
 *
 * An item that was pushed alone and lost is tested once more, apart from everything else by the whole hold, before it is to blame.
 * While other items wait, they may be pushed for the time of the hold between two tests.
 */
export class Isolation {
  readonly #parts: IsolationParts;
  readonly #hold: Pick<Hold, 'ms'>;
  readonly #suspects = new PlaceMap<Suspect>();
  #new: Place[] = [];
  #newFrom = 0;
  #newUntil = 0;
  #waiting: (readonly Place[])[] = [];
  #isTesting = false;
  /** When anything was pushed last, on the monotonic clock. */
  #pushedAt: number;
  /** Until then nothing else is pushed, and from then on others go first for a while. */
  #quietUntil = Number.NEGATIVE_INFINITY;

  constructor(parts: IsolationParts, hold: Pick<Hold, 'ms'>) {
    this.#parts = parts;
    this.#hold = hold;
    this.#pushedAt = parts.clock.monotonic();
  }

  /** Whether no suspect waits that could be pushed. */
  get isIdle(): boolean {
    if (this.#isTesting) return false;
    return ![...this.#new, ...this.#waiting.flat()].some((place) => this.#isThere(place));
  }

  has(place: Place): boolean {
    return this.#suspects.size > 0 && this.#suspects.has(place);
  }

  /** Whether it was pushed alone. */
  isAlone(place: Place): boolean {
    return this.#suspects.get(place)?.group?.size === 1;
  }

  /** The item was accepted and not shown: it is pushed apart from now on, as soon as it is pending again. */
  suspect({ folder, path, version }: Pick<PendingItem, 'folder' | 'path' | 'version'>): void {
    const place = { folder, path };
    if (this.#suspects.has(place)) return;
    this.#suspects.set(place, {
      sha256: version.sha256,
      waits: false,
      group: undefined,
      failedAlone: 0,
      hadCompany: false,
    });
  }

  /** It was pushed alone, and lost although the peer indexed others. @returns how often, and whether others were lost with it */
  failedAlone(place: Place): { readonly times: number; readonly hadCompany: boolean } {
    const suspect = this.#suspects.get(place);
    if (suspect === undefined) return { times: 1, hadCompany: false };
    suspect.failedAlone += 1;
    return { times: suspect.failedAlone, hadCompany: suspect.hadCompany };
  }

  /** Takes a pending item that is a suspect, also one of an earlier run. @returns whether it is one */
  take(item: PendingItem): boolean {
    const { folder, path, version } = item;
    const place = { folder, path };
    let suspect = this.#suspects.get(place);
    if (suspect !== undefined && suspect.sha256 !== version.sha256) {
      this.forget(place);
      return false;
    }
    if (suspect === undefined) {
      if (item.trouble?.code !== LOST) return false;
      this.suspect(item);
      suspect = this.#suspects.get(place);
    }
    if (suspect === undefined) return false;
    const { group } = suspect;
    if (group !== undefined) {
      suspect.group = undefined;
      suspect.hadCompany ||= group.size > 1;
      suspect.waits = true;
      group.again.push(place);
      this.#settled(group);
    } else if (!suspect.waits) {
      suspect.waits = true;
      this.#newUntil = this.#parts.clock.monotonic();
      if (this.#new.length === 0) this.#newFrom = this.#newUntil;
      this.#new.push(place);
    }
    return true;
  }

  /** It is confirmed, gone, or another version of it is to be pushed. */
  forget(place: Place): void {
    const suspect = this.#suspects.get(place);
    if (suspect === undefined) return;
    this.#suspects.delete(place);
    if (suspect.group !== undefined) this.#settled(suspect.group);
  }

  /** Something was pushed. */
  pushed(): void {
    this.#pushedAt = this.#parts.clock.monotonic();
  }

  /** Whether nothing but suspects may be pushed now. */
  get keepsOthers(): boolean {
    if (this.#suspects.size === 0) return false;
    const now = this.#parts.clock.monotonic();
    if (this.#isTesting || now < this.#quietUntil) return true;
    return this.#nextGroup() !== undefined && now >= this.#quietUntil + this.#hold.ms;
  }

  /**
   * The items of the next group, if it may be pushed now; to be called while nothing is under way, and followed by `tested`.
   *
   * @param othersWait whether items that are no suspects are due
   */
  next(othersWait: boolean): readonly PendingItem[] {
    if (this.#suspects.size === 0 || this.#isTesting) return [];
    const now = this.#parts.clock.monotonic();
    if (now < this.#nextAt(othersWait)) return [];
    this.#part(now);
    const group = this.#nextGroup();
    if (group === undefined || now < this.#pushedAt + this.#apartMs(group)) return [];
    const items = group.map((place) => this.#readyItem(place)).filter((item) => item !== undefined);
    const left = group.filter((place) => this.#readyItem(place) === undefined && this.#suspects.has(place));
    this.#waiting = this.#waiting.filter((other) => other !== group);
    if (left.length > 0) this.#waiting.push(left);
    const tested: Group = { size: items.length, open: items.length, again: [] };
    for (const item of items) {
      const suspect = this.#suspects.get(item);
      if (suspect === undefined) continue;
      suspect.group = tested;
      suspect.waits = false;
    }
    this.#isTesting = true;
    return items;
  }

  /** All items of the group were pushed, or given back. */
  tested(items: readonly PendingItem[]): void {
    this.#isTesting = false;
    const [only] = items;
    const isLast = items.length === 1 && only !== undefined && this.#failures(only) > 0;
    this.#quietUntil = this.#parts.clock.monotonic() + (isLast ? this.#hold.ms : this.#hold.ms / PARTS);
  }

  /** How long until `next` or `keepsOthers` may say something else, in ms; undefined while nothing is to come. */
  nextInMs(othersWait: boolean): number | undefined {
    if (this.#suspects.size === 0) return undefined;
    const now = this.#parts.clock.monotonic();
    const at = Math.max(this.#nextAt(othersWait), now < this.#quietUntil ? this.#quietUntil : now);
    if (at > now) return at - now;
    const group = this.#nextGroup();
    if (group !== undefined) return Math.max(0, this.#pushedAt + this.#apartMs(group) - now);
    // What waits is not due yet, or in a folder that is missing.
    return this.#waiting.length > 0 ? this.#hold.ms / PARTS : undefined;
  }

  /** When the next group may be looked for, without regard to what was pushed last. */
  #nextAt(othersWait: boolean): number {
    const isNewOnly = this.#nextGroup() === undefined;
    const from = isNewOnly && this.#new.length > 0 ? this.#newAt : Number.NEGATIVE_INFINITY;
    return Math.max(from, this.#quietUntil + (othersWait ? this.#hold.ms : 0));
  }

  /** When those that are new are parted: when no more of them come, but not too late. */
  get #newAt(): number {
    return Math.min(this.#newFrom + this.#hold.ms / 2, this.#newUntil + this.#hold.ms / (2 * PARTS));
  }

  /** New suspects become groups. */
  #part(now: number): void {
    if (this.#new.length === 0) return;
    if (now < this.#newAt) return;
    const all = this.#new;
    this.#new = [];
    if (all.length > 1)
      for (const place of all) {
        const suspect = this.#suspects.get(place);
        if (suspect !== undefined) suspect.hadCompany = true;
      }
    this.#waiting.push(...parted(all));
  }

  #settled(group: Group): void {
    group.open -= 1;
    if (group.open === 0)
      this.#waiting.push(...parted(group.again.filter((place) => this.#suspects.has(place))));
  }

  #nextGroup(): readonly Place[] | undefined {
    return this.#waiting.find((group) => group.some((place) => this.#readyItem(place) !== undefined));
  }

  /** How long nothing else may have been pushed before a group is. */
  #apartMs(group: readonly Place[]): number {
    const [only] = group;
    const isLast = group.length === 1 && only !== undefined && this.#failures(only) > 0;
    return isLast ? this.#hold.ms : this.#hold.ms / PARTS;
  }

  #failures(place: Place): number {
    return this.#suspects.get(place)?.failedAlone ?? 0;
  }

  #readyItem(place: Place): PendingItem | undefined {
    if (!this.#suspects.has(place) || !this.#isThere(place)) return undefined;
    const entry = this.#parts.state.get(place.folder, place.path);
    const isDue = entry?.status === 'pending' && entry.doubt === undefined;
    return isDue && entry.notBefore <= this.#parts.clock.now() ? entry : undefined;
  }

  #isThere({ folder }: Place): boolean {
    return this.#parts.standing(folder) === 'there';
  }
}

function parted(places: readonly Place[]): (readonly Place[])[] {
  const size = Math.max(1, Math.ceil(places.length / PARTS));
  const parts: (readonly Place[])[] = [];
  for (let from = 0; from < places.length; from += size) parts.push(places.slice(from, from + size));
  return parts;
}
