import type { PeersyncError } from '../lib/errors.js';
import { sentence } from '../lib/text.js';
import type { Place } from '../state/entries.js';
import type { PendingItem, Trouble } from '../state/entry.js';
import { failed, quarantined, returned } from '../state/transitions.js';
import type { UplinkParts } from './parts.js';
import { PlaceMap } from './place-map.js';
import { currentOf } from './prepare.js';
import { pushFailure, sayQuarantined, troubleOf } from './trouble.js';

/**
 * Decides what a failed push means for the item that it failed for: an attempt of the item is spent, and after
 * `push.attempts` of those it is quarantined, or the peer is in trouble and the item is only put off.
 *
 * The peer's word about one item in an answer counts at once. For an item whose push failed as a whole see Suspects; where
 * nothing else waits that could go through and tell, an empty push decides, for the only item there is and for one that
 * was to blame before: a peer that takes it works.
 */
export class FailureAttribution {
  readonly #parts: UplinkParts;
  readonly #suspects = new Suspects();

  constructor(parts: UplinkParts) {
    this.#parts = parts;
  }

  /** Whether an item has to travel alone, so that nobody suffers with it. */
  isSuspect(place: Place): boolean {
    return this.#suspects.has(place);
  }

  /** How many pushes went through so far; to be asked when a push begins. */
  get successes(): number {
    return this.#suspects.successes;
  }

  /** A push went through with these items. */
  succeeded(places: readonly Place[]): void {
    this.#suspects.succeeded(places);
  }

  /** Nothing of this file waits any more. */
  forget(place: Place): void {
    this.#suspects.forget(place);
  }

  /** The peer answered, and refused this item. */
  refused(item: PendingItem, words: string): void {
    this.#spend(item, {
      code: 'REFUSED',
      message: `The peer refused it: ${sentence(words)}`,
      hint: 'Mend what the peer complains about, then `peersync retry` the file.',
    });
  }

  /**
   * The peer answered badly to a push of this item alone.
   *
   * @param before `successes` when the push began that it was in
   */
  async answeredBadly(item: PendingItem, error: PeersyncError, before: number): Promise<void> {
    const { failures, othersWentThrough } = this.#suspects.failed(item, before);
    if (error.code !== 'PEER_TOO_LARGE') {
      await this.#charge(item, troubleOf(error), failures, othersWentThrough);
      return;
    }
    const current = currentOf(this.#parts.state, item);
    if (current !== undefined) this.#quarantine(current, troubleOf(error));
  }

  /**
   * A push of this item was never answered, and the peer does not have it: it may be what the peer chokes on.
   *
   * @param before `successes` when the push began that it was in
   */
  async neverAnswered(item: PendingItem, before: number): Promise<void> {
    const { failures, othersWentThrough } = this.#suspects.failed(item, before);
    const trouble: Trouble = {
      code: 'UNANSWERED',
      message: 'The peer did not answer its push, and does not show it.',
      hint: 'See in the log of the peer whether it chokes on this file; `peersync retry` pushes it again.',
    };
    // The first time others travelled with it, which are as suspect.
    if (failures === 1) this.#putOff(item, trouble, 0);
    else await this.#charge(item, trouble, failures, othersWentThrough);
  }

  /** Spends an attempt if the item is to blame, and else puts it off. */
  async #charge(
    item: PendingItem,
    trouble: Trouble,
    failures: number,
    othersWentThrough: boolean,
  ): Promise<void> {
    const { settings, state } = this.#parts;
    const isKnownOrAlone = item.attempts > 0 || state.counts().pending === 1;
    const toBlame = othersWentThrough || (isKnownOrAlone && (await this.#takesAnEmptyPush()));
    const current = currentOf(state, item);
    if (toBlame && current !== undefined) this.#spend(current, trouble);
    else this.#putOff(item, trouble, backoff(failures, settings.push.backoff));
  }

  async #takesAnEmptyPush(): Promise<boolean> {
    const { queue, peer } = this.#parts;
    try {
      await queue.run('push', (signal) => peer.push([], { signal }));
      return true;
    } catch (error) {
      pushFailure(error, true);
      return false;
    }
  }

  #spend(item: PendingItem, trouble: Trouble): void {
    const { clock, settings, state } = this.#parts;
    const now = clock.now();
    const again = failed(item, trouble, now + backoff(item.attempts + 1, settings.push.backoff), now);
    if (again.attempts < settings.push.attempts) state.put(again);
    else this.#quarantine(again, trouble);
  }

  #quarantine(item: PendingItem, trouble: Trouble): void {
    const { clock, log, state } = this.#parts;
    this.#suspects.forget(item);
    state.put(quarantined(item, item, item.version, trouble, clock.now()));
    sayQuarantined(log, item, trouble);
  }

  #putOff(item: PendingItem, trouble: Trouble, waitMs: number): void {
    const { clock, state } = this.#parts;
    const current = currentOf(state, item);
    if (current !== undefined) state.put(returned(current, clock.now() + waitMs, trouble));
  }
}

/** The wait after the n-th failure: doubling from `min` to `max`, in ms. */
function backoff(failures: number, { min, max }: { readonly min: number; readonly max: number }): number {
  return Math.min(max, min * 2 ** Math.min(30, failures - 1));
}

interface Suspect {
  readonly failures: number;
  /** How many pushes had succeeded when it failed last. */
  readonly successes: number;
}

/**
 * Tells a bad item from a peer in trouble. An item whose push failed by itself, or was never answered, is a *suspect* and
 * travels alone from then on, until it is accepted. It is to blame only when other pushes went through between two of
 * its failures, or between the beginning of the push that failed first and its failing by itself.
 */
export class Suspects {
  readonly #suspects = new PlaceMap<Suspect>();
  #successes = 0;

  /** How many pushes went through so far. */
  get successes(): number {
    return this.#successes;
  }

  /** A push of other items went through. */
  succeeded(places: readonly Place[]): void {
    this.#successes += 1;
    for (const place of places) this.#suspects.delete(place);
  }

  has(place: Place): boolean {
    return this.#suspects.size > 0 && this.#suspects.has(place);
  }

  /**
   * The push of an item failed, or was never answered.
   *
   * @param before how many pushes had gone through when it began
   */
  failed(place: Place, before: number): { readonly failures: number; readonly othersWentThrough: boolean } {
    const { failures, successes } = this.#suspects.get(place) ?? { failures: 0, successes: before };
    this.#suspects.set(place, { failures: failures + 1, successes: this.#successes });
    return { failures: failures + 1, othersWentThrough: this.#successes > successes };
  }

  forget(place: Place): void {
    this.#suspects.delete(place);
  }
}
