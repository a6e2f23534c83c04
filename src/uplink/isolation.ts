import type { Place } from '../state/entries.js';
import type { PendingItem, Trouble } from '../state/entry.js';
import { holdMs, keyOf, losesUpdates, type UplinkDeps } from './deps.js';

/** So many groups a round has at most. */
const GROUPS = 25;
/** The share of the hold that a round, and each group where the peer did not commit its index, keeps from what is pushed before. */
const APART = 1 / 4;

interface Suspect {
  readonly place: Place;
  readonly sha256: string;
  /** How many it was pushed with, itself included; 0 while it waits. */
  pushedWith: number;
  /** With how many it was lost last. */
  lostWith: number;
}

/** A suspect whose item may be pushed. */
interface Ready {
  readonly suspect: Suspect;
  readonly item: PendingItem;
}

type Lost = Pick<PendingItem, 'folder' | 'path' | 'version'>;

/** What stands in the state of an item that the peer accepted and lost. */
export const lostTrouble: Trouble = {
  code: 'LOST_FROM_INDEX',
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
 * A *round* pushes the suspects that wait in up to 25 groups: up to 25 of them one by one, and those that are lost again in groups of
 * a quarter. It begins when nothing else was pushed for a quarter of the hold; where the peer does not commit, its groups are apart as
 * much. Others are pushed for the time of the hold between two rounds.
 *
 * An item that was lost alone is pushed once more, apart from everything else by the whole hold, before it is to blame.
 */
export class Isolation {
  readonly #deps: UplinkDeps;
  readonly #suspects = new Map<string, Suspect>();
  /** When anything was pushed last. */
  #pushedAt: number;
  /** Until then others go first behind a round. */
  #othersUntil = Number.NEGATIVE_INFINITY;

  constructor(deps: UplinkDeps) {
    this.#deps = deps;
    this.#pushedAt = deps.clock.now();
  }

  /** Whether no suspect waits that could be pushed. */
  get isIdle(): boolean {
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

  /** The peer accepted the item and lost it: it comes back by `take` when it is pending. @returns whether it is to blame */
  lost({ folder, path, version: { sha256 } }: Lost): boolean {
    const place = { folder, path };
    const key = keyOf(place);
    const { pushedWith = 0, lostWith = Number.POSITIVE_INFINITY } = this.#suspects.get(key) ?? {};
    // Behind those that wait for their first turn.
    this.#suspects.delete(key);
    this.#suspects.set(key, { place, sha256, pushedWith: 0, lostWith: pushedWith || lostWith });
    return pushedWith === 1 && lostWith === 1;
  }

  /** Takes a pending item if it is a suspect, also one of an earlier run. @returns whether it is one */
  take(item: PendingItem): boolean {
    const known = this.#suspects.get(keyOf(item));
    const isSame = known === undefined || known.sha256 === item.version.sha256;
    const isSuspect = isSame && (known !== undefined || item.trouble?.code === lostTrouble.code);
    if (!isSuspect || !losesUpdates(this.#deps)) {
      this.forget(item);
      return false;
    }
    if (known === undefined) this.lost(item);
    else known.pushedWith = 0;
    return true;
  }

  /** It is confirmed, quarantined, gone, or another version of it is to be pushed. */
  forget(place: Place): void {
    if (this.#suspects.size > 0) this.#suspects.delete(keyOf(place));
  }

  /** Something was pushed. */
  pushed(): void {
    this.#pushedAt = this.#deps.clock.now();
  }

  /** Whether a round is to begin. @param othersWait whether items that are no suspects are due */
  isDue(othersWait: boolean): boolean {
    if (this.#suspects.size === 0 || (othersWait && this.#deps.clock.now() < this.#othersUntil)) return false;
    for (const _ of this.#ready()) return true;
    return false;
  }

  /**
   * Pushes what waits in a round. Nothing else may be pushed meanwhile.
   *
   * @param push pushes a group of items together, and resolves to whether the peer then committed its index
   */
  async round(push: (group: readonly PendingItem[]) => Promise<boolean>, signal: AbortSignal): Promise<void> {
    const hold = holdMs(this.#deps);
    for (let left = GROUPS; left > 0; ) {
      const [next] = this.#ready();
      if (next === undefined) break;
      const isLastTry = next.suspect.lostWith === 1;
      // Who is next may be another one behind the wait.
      if (await this.#waits(isLastTry ? hold : left === GROUPS ? hold * APART : 0, signal)) continue;
      if (signal.aborted) break;
      const hasCommitted = await push(this.#nextGroup(left));
      await this.#waits(isLastTry ? hold : hasCommitted ? 0 : hold * APART, signal);
      left = isLastTry ? 0 : left - 1;
    }
    this.#othersUntil = this.#deps.clock.now() + hold;
  }

  /** Waits for so long after the last push. @returns whether that was not over */
  async #waits(ms: number, signal: AbortSignal): Promise<boolean> {
    const leftMs = this.#pushedAt + ms - this.#deps.clock.now();
    if (leftMs <= 0 || signal.aborted) return false;
    await this.#deps.clock.sleep(leftMs, signal);
    return true;
  }

  /** The suspects that are to be pushed next. */
  #nextGroup(groupsLeft: number): readonly PendingItem[] {
    const { maxBytes, maxItems } = this.#deps.settings.push;
    let waiting = 0;
    for (const { pushedWith } of this.#suspects.values()) if (pushedWith === 0) waiting += 1;
    let most = Math.min(maxItems, Math.ceil(waiting / groupsLeft));
    let bytes = 0;
    const group: Ready[] = [];
    for (const ready of this.#ready()) {
      bytes += ready.item.version.size;
      most = Math.min(most, Math.ceil(ready.suspect.lostWith / 4));
      if (group.length >= most || (group.length > 0 && bytes > maxBytes)) break;
      group.push(ready);
    }
    for (const { suspect } of group) suspect.pushedWith = group.length;
    return group.map(({ item }) => item);
  }

  /** The suspects that may be pushed as far as time allows, those last that were lost alone. There may be very many. */
  *#ready(): Iterable<Ready> {
    const lastTries: Ready[] = [];
    for (const suspect of this.#suspects.values()) {
      if (!this.#isWaiting(suspect)) continue;
      const item = this.#deps.state.get(suspect.place.folder, suspect.place.path);
      if (item?.status !== 'pending' || item.doubt !== undefined) continue;
      if (item.notBefore > this.#deps.clock.now()) continue;
      if (suspect.lostWith === 1) lastTries.push({ suspect, item });
      else yield { suspect, item };
    }
    yield* lastTries;
  }

  #isWaiting({ pushedWith, place }: Suspect): boolean {
    return pushedWith === 0 && this.#deps.standing(place.folder) === 'there';
  }
}
