import type { Place } from '../state/entries.js';
import type { PendingItem, Trouble } from '../state/entry.js';
import { holdMs, keyOf, losesUpdates, type UplinkDeps } from './deps.js';

/** The code of what is said of an item while it waits to be pushed apart from the others. */
const LOST = 'LOST_FROM_INDEX';
/** In so many groups all suspects are pushed. */
const GROUPS = 25;
/** The share of the hold that a round, and each group where the peer did not commit its index, keeps from what is pushed before. */
const APART = 1 / 4;
/** How soon to look again for suspects that are not due yet, or whose folder is missing, in ms. */
const POLL_MS = 5_000;

export type IsolationDeps = Pick<UplinkDeps, 'clock' | 'dialect' | 'settings' | 'standing'> & {
  readonly state: Pick<UplinkDeps['state'], 'get'>;
};

interface Suspect {
  readonly place: Place;
  readonly sha256: string;
  /** How many it was pushed with, itself included; 0 while it waits. */
  pushedWith: number;
  /** With how many it may be pushed: fewer each time that it is lost. */
  mostWith: number;
  /** How often it was pushed alone and lost. */
  failedAlone: number;
  /** Whether others were lost at the same time. */
  hadCompany: boolean;
}

/** A suspect whose item may be pushed. */
interface Ready {
  readonly suspect: Suspect;
  readonly item: PendingItem;
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
 * in it is indexed, though YaCy accepted all of it (measured with 1.92). So items that are accepted and never shown are *suspects*,
 * and each is pushed again in an update of its own, or of few: nothing else is pushed meanwhile, YaCy answers when it has indexed
 * it (`synchronous`; not as long as it has shown nothing like it), and is then had commit its index, which ends the update.
 *
 * A *round* pushes all suspects that wait, in up to 25 groups: up to 25 of them one by one. It begins when nothing else was pushed for
 * a quarter of the hold; where the peer does not commit, its groups are apart as much. Suspects that are lost again wait for the next round,
 * and others are pushed for the time of the hold in between.
 *
 * An item that was pushed alone and lost is pushed once more, apart from everything else by the whole hold, before it is to blame.
 */
export class Isolation {
  readonly #deps: IsolationDeps;
  readonly #suspects = new Map<string, Suspect>();
  /** How many groups the round may have yet; 0 between two. */
  #groupsLeft = 0;
  #groupSize = 1;
  #isSending = false;
  /** Whether what was given last is apart from all else by the hold. */
  #isLastTry = false;
  /** When anything was pushed last. */
  #pushedAt: number;
  /** Until then nothing else is pushed behind a group, and until then others go first behind a round. */
  #quietUntil = Number.NEGATIVE_INFINITY;
  #othersUntil = Number.NEGATIVE_INFINITY;

  constructor(deps: IsolationDeps) {
    this.#deps = deps;
    this.#pushedAt = deps.clock.now();
  }

  /** Whether no suspect waits that could be pushed. */
  get isIdle(): boolean {
    if (this.#isSending) return false;
    for (const suspect of this.#suspects.values()) if (this.#isWaiting(suspect)) return false;
    return true;
  }

  has(place: Place): boolean {
    return this.#suspects.size > 0 && this.#suspects.has(keyOf(place));
  }

  /** Whether it was pushed alone. */
  isAlone(place: Place): boolean {
    return this.#suspects.get(keyOf(place))?.pushedWith === 1;
  }

  /**
   * The peer accepted the item and lost it: it is a suspect from now on, and comes back by `take` when it is pending.
   *
   * @param isCertain whether it must have been indexed by now, if it was not to blame
   * @returns how often it was lost alone, and whether others were lost with it
   */
  lost(
    item: Pick<PendingItem, 'folder' | 'path' | 'version'>,
    isCertain: boolean,
  ): { readonly timesAlone: number; readonly hadCompany: boolean } {
    const suspect = this.#suspects.get(keyOf(item)) ?? this.#add(item);
    if (isCertain && suspect.pushedWith === 1) suspect.failedAlone += 1;
    if (suspect.pushedWith > 0) suspect.mostWith = Math.ceil(suspect.pushedWith / 4);
    suspect.pushedWith = 0;
    // Behind those that wait for their first turn.
    this.#suspects.delete(keyOf(item));
    this.#suspects.set(keyOf(item), suspect);
    return { timesAlone: suspect.failedAlone, hadCompany: suspect.hadCompany };
  }

  /** Takes a pending item if it is a suspect, also one of an earlier run. @returns whether it is one */
  take(item: PendingItem): boolean {
    const known = this.#suspects.get(keyOf(item));
    const isSame = known === undefined || known.sha256 === item.version.sha256;
    if (!losesUpdates(this.#deps) || !isSame) {
      this.forget(item);
      return false;
    }
    if (known === undefined && item.trouble?.code !== LOST) return false;
    (known ?? this.#add(item)).pushedWith = 0;
    return true;
  }

  /** It is confirmed, quarantined, gone, or another version of it is to be pushed. */
  forget(place: Place): void {
    if (this.#suspects.size > 0) this.#suspects.delete(keyOf(place));
  }

  /**
   * What may be pushed now.
   *
   * @param othersWait whether items that are no suspects are due
   * @param isBusy whether a push is under way
   */
  decide(othersWait: boolean, isBusy: boolean): Decision {
    if (this.#suspects.size === 0) {
      this.#groupsLeft = 0;
      return { blocksOthers: false, againInMs: undefined };
    }
    if (this.#isSending) return { blocksOthers: true, againInMs: undefined };
    const now = this.#deps.clock.now();
    const hold = holdMs(this.#deps);
    if (now < this.#quietUntil) return { blocksOthers: true, againInMs: this.#quietUntil - now };
    const isBetween = this.#groupsLeft === 0;
    if (isBetween && othersWait && now < this.#othersUntil)
      return { blocksOthers: false, againInMs: this.#othersUntil - now };
    const [first] = this.#ready();
    if (first === undefined) {
      this.#groupsLeft = 0;
      return { blocksOthers: false, againInMs: this.#waiting > 0 ? POLL_MS : undefined };
    }
    if (isBusy) return { blocksOthers: true, againInMs: undefined };
    const isLastTry = first.suspect.failedAlone > 0;
    const from = this.#pushedAt + (isLastTry ? hold : isBetween ? hold * APART : 0);
    if (now < from) return { blocksOthers: true, againInMs: from - now };
    if (isBetween) this.#groupSize = Math.ceil(this.#waiting / GROUPS);
    const group = this.#nextGroup();
    for (const { suspect } of group) suspect.pushedWith = group.length;
    this.#groupsLeft = isLastTry ? 0 : (isBetween ? GROUPS : this.#groupsLeft) - 1;
    this.#isLastTry = isLastTry;
    this.#isSending = true;
    return { push: group.map(({ item }) => item) };
  }

  /** Something was pushed. */
  pushed(): void {
    this.#pushedAt = this.#deps.clock.now();
  }

  /** What `decide` gave was pushed. @param hasCommitted whether the peer then committed its index */
  pushedGroup(hasCommitted: boolean): void {
    this.pushed();
    this.#isSending = false;
    const hold = holdMs(this.#deps);
    this.#quietUntil = this.#pushedAt + hold * (this.#isLastTry ? 1 : hasCommitted ? 0 : APART);
    this.#othersUntil = this.#quietUntil + hold;
  }

  #add({ folder, path, version }: Pick<PendingItem, 'folder' | 'path' | 'version'>): Suspect {
    const place = { folder, path };
    const hadCompany = this.#suspects.size > 0;
    // The first of many did not know of the others.
    if (this.#suspects.size === 1) for (const first of this.#suspects.values()) first.hadCompany = true;
    const counts = { pushedWith: 0, mostWith: Number.POSITIVE_INFINITY, failedAlone: 0 };
    const suspect = { place, sha256: version.sha256, ...counts, hadCompany };
    this.#suspects.set(keyOf(place), suspect);
    return suspect;
  }

  get #waiting(): number {
    let count = 0;
    for (const { pushedWith } of this.#suspects.values()) if (pushedWith === 0) count += 1;
    return count;
  }

  /** The suspects that are to be pushed next; one that was lost alone, by itself, only when no other waits. */
  #nextGroup(): readonly Ready[] {
    const group: Ready[] = [];
    let most = this.#groupSize;
    for (const ready of this.#ready()) {
      if (ready.suspect.failedAlone > 0) return group.length > 0 ? group : [ready];
      most = Math.min(most, ready.suspect.mostWith);
      if (group.length >= most) break;
      group.push(ready);
    }
    return group;
  }

  /** The suspects that may be pushed as far as time allows, those last that were lost alone. There may be very many. */
  *#ready(): Iterable<Ready> {
    const lastTries: Ready[] = [];
    for (const suspect of this.#suspects.values()) {
      if (!this.#isWaiting(suspect)) continue;
      const item = this.#deps.state.get(suspect.place.folder, suspect.place.path);
      if (item?.status !== 'pending' || item.doubt !== undefined) continue;
      if (item.notBefore > this.#deps.clock.now()) continue;
      if (suspect.failedAlone > 0) lastTries.push({ suspect, item });
      else yield { suspect, item };
    }
    yield* lastTries;
  }

  #isWaiting({ pushedWith, place }: Suspect): boolean {
    return pushedWith === 0 && this.#deps.standing(place.folder) === 'there';
  }
}
