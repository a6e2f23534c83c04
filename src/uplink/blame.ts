import type { PeersyncError } from '../lib/errors.js';
import type { Place } from '../state/entries.js';
import type { PendingItem, Trouble } from '../state/entry.js';
import { failed, quarantined, returned } from '../state/transitions.js';
import { currentOf } from './parcel.js';
import { placeName, type UplinkParts } from './parts.js';
import { Suspects } from './suspects.js';
import { pushFailure, troubleOf } from './trouble.js';

/**
 * Decides what a failed push means for the item that it failed for: an attempt of the item is spent, and after
 * `push.attempts` of those it is quarantined, or the peer is in trouble and the item is only put off.
 *
 * The peer's word about one item in an answer counts at once. For an item whose push failed as a whole see Suspects.
 */
export class Blame {
  readonly #parts: UplinkParts;
  readonly #suspects = new Suspects();

  constructor(parts: UplinkParts) {
    this.#parts = parts;
  }

  /** Whether an item has to travel alone, so that nobody suffers with it. */
  isSuspect(place: Place): boolean {
    return this.#suspects.has(place);
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
      message: `The peer refused it: ${words}.`,
      hint: 'Mend what the peer complains about, then `peersync retry` the file.',
    });
  }

  /** The peer answered badly to a push of this item alone. */
  async answeredBadly(item: PendingItem, error: PeersyncError): Promise<void> {
    const { clock, state } = this.#parts;
    const { failures, othersWentThrough } = this.#suspects.failed(item);
    if (error.code !== 'PEER_TOO_LARGE') {
      await this.#charge(item, troubleOf(error), failures, othersWentThrough);
      return;
    }
    const current = currentOf(state, item);
    this.#suspects.forget(item);
    if (current !== undefined)
      state.put(quarantined(current, current, current.version, troubleOf(error), clock.now()));
  }

  /** A push of this item was never answered, and the peer does not have it: it may be what the peer chokes on. */
  async neverAnswered(item: PendingItem): Promise<void> {
    const { failures, othersWentThrough } = this.#suspects.failed(item);
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
    const onlySuspectsWait = state.counts().pending <= this.#suspects.size;
    const toBlame = othersWentThrough || (onlySuspectsWait && (await this.#takesAnEmptyPush()));
    const current = currentOf(state, item);
    if (toBlame && current !== undefined) this.#spend(current, trouble);
    else this.#putOff(item, trouble, backoff(failures, settings.push.backoff));
  }

  async #takesAnEmptyPush(): Promise<boolean> {
    const { door, peer } = this.#parts;
    try {
      await door.run('push', (signal) => peer.push([], { signal }));
      return true;
    } catch (error) {
      pushFailure(error);
      return false;
    }
  }

  #spend(item: PendingItem, trouble: Trouble): void {
    const { clock, log, settings, state } = this.#parts;
    const now = clock.now();
    const again = failed(item, trouble, now + backoff(item.attempts + 1, settings.push.backoff), now);
    if (again.attempts < settings.push.attempts) {
      state.put(again);
      return;
    }
    this.#suspects.forget(item);
    state.put(quarantined(again, again, again.version, trouble, now));
    log.warn(
      { event: 'quarantined', folder: item.folder, path: item.path, code: trouble.code },
      `quarantined ${placeName(item)}: ${trouble.message} ${trouble.hint}`,
    );
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
