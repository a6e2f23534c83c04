import type { Place } from '../state/entries.js';
import type { AcceptedItem, PendingItem, Trouble } from '../state/entry.js';
import { beginningOf } from '../state/transitions.js';
import { holdMs, keyOf, losesUpdates, type UplinkDeps } from './deps.js';

/** The share of the hold that a round, and each push where the peer did not commit its index, keeps from what is pushed before. */
const APART = 1 / 4;

/** How long a round goes on, as a share of the hold. */
const LONGEST_ROUND = 1 / 2;

/** What stands in the state of an item that the peer accepted and lost. */
export const lostTrouble: Trouble = {
  code: 'LOST_FROM_INDEX',
  message: 'The peer accepted it and did not index it in the usual time.',
  hint: 'It is pushed again apart from others by itself, for one document can keep others out of the index.',
};

/** How often the peer lost this version: the first time with others, then alone. */
export function timesLost({ history }: PendingItem | AcceptedItem): number {
  const present = history.slice(beginningOf(history) + 1);
  return present.filter(({ note }) => note === lostTrouble.message).length;
}

/**
 * Finds the document that keeps others out of the index.
 *
 * YaCy sends many documents to its index at a time, in one *update*. A document that the index refuses ends the update: nothing
 * in it is indexed, though YaCy accepted all of it (measured with 1.92). So an item that is accepted and never shown is a *suspect*,
 * and is pushed again in an update of its own: nothing else is pushed meanwhile, YaCy answers when it has indexed
 * it (`synchronous`; not as long as it has shown nothing like it), and is then had commit its index, which ends the update.
 *
 * A *round* pushes one suspect after the other, for half of the hold at most. It begins when nothing else was pushed for
 * a quarter of the hold; where the peer does not commit, its pushes are apart as much. Others are pushed for the time of the hold between
 * two rounds.
 *
 * An item that was lost alone is pushed once more, in a round of its own and apart from everything else by the whole hold, before it is
 * to blame. How often it was lost is in its history.
 */
export class Isolation {
  readonly #deps: UplinkDeps;
  /** The suspects that wait. */
  readonly #waiting = new Map<string, { readonly place: Place; readonly isLastTry: boolean }>();
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
    for (const { place } of this.#waiting.values()) if (this.#isHere(place)) return false;
    return true;
  }

  /** Takes a pending item if it is a suspect. @returns whether it is one */
  take(item: PendingItem): boolean {
    const times = losesUpdates(this.#deps) ? timesLost(item) : 0;
    if (times === 0) this.forget(item);
    else {
      const place = { folder: item.folder, path: item.path };
      this.#waiting.set(keyOf(place), { place, isLastTry: times > 1 });
    }
    return times > 0;
  }

  /** It does not wait any more. */
  forget(place: Place): void {
    if (this.#waiting.size > 0) this.#waiting.delete(keyOf(place));
  }

  /** Something was pushed. */
  pushed(): void {
    this.#pushedAt = this.#deps.clock.now();
  }

  /** Whether a round is to begin. @param othersWait whether items that are no suspects are due */
  isDue(othersWait: boolean): boolean {
    if (othersWait && this.#deps.clock.now() < this.#othersUntil) return false;
    for (const { place } of this.#waiting.values()) if (this.#itemAt(place) !== undefined) return true;
    return false;
  }

  /**
   * Pushes what waits in a round. Nothing else may be pushed meanwhile.
   *
   * @param push pushes an item, and resolves to whether the peer then committed its index
   */
  async round(push: (item: PendingItem) => Promise<boolean>, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const hold = holdMs(this.#deps);
    const inTurn = [...this.#waiting.values()].sort((a, b) => Number(a.isLastTry) - Number(b.isLastTry));
    let isFirst = true;
    const end = clock.now() + (APART + LONGEST_ROUND) * hold;
    for (const { place, isLastTry } of inTurn) {
      if (!isFirst && (isLastTry || clock.now() > end)) break;
      if (this.#itemAt(place) === undefined) continue;
      await this.#apart(isLastTry ? hold : isFirst ? hold * APART : 0, signal);
      if (signal.aborted) break;
      const item = this.#itemAt(place);
      if (item === undefined) continue;
      isFirst = false;
      this.forget(place);
      const hasCommitted = await push(item);
      await this.#apart(isLastTry ? hold : hasCommitted ? 0 : hold * APART, signal);
    }
    this.#othersUntil = clock.now() + hold;
  }

  /** Waits until nothing was pushed for so long. */
  async #apart(ms: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    await clock.sleep(Math.max(0, this.#pushedAt + ms - clock.now()), signal);
  }

  #isHere({ folder }: Place): boolean {
    return this.#deps.standing(folder) === 'there';
  }

  /** The item that waits here, if it may be pushed as far as time allows. */
  #itemAt(place: Place): PendingItem | undefined {
    if (!this.#waiting.has(keyOf(place)) || !this.#isHere(place)) return undefined;
    const item = this.#deps.state.get(place.folder, place.path);
    const isReady = item?.status === 'pending' && item.doubt === undefined;
    return isReady && item.notBefore <= this.#deps.clock.now() ? item : undefined;
  }
}
