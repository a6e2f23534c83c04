import { Modes, type Transitions } from '../lib/modes.js';
import type { ItemKey } from '../state/entries.js';
import type { Failure, PendingItem } from '../state/entry.js';
import { itemKeyText, succeeds, type UplinkDeps } from './deps.js';

type BlameMode = 'unanswered' | 'failed';

const TRANSITIONS: Transitions<BlameMode> = { unanswered: ['failed'], failed: ['failed'] };

interface BlamedItem {
  readonly mode: Modes<BlameMode>;
  /** The number of successful pushes at its last failure alone; undefined before the first one. */
  successes: number | undefined;
}

/**
 * The meaning of a failed push of one item alone.
 *
 * - `tooLarge`: the peer refuses its size, so another attempt would fail, too.
 * - `atFault`: the peer accepts other pushes, and not this one.
 * - `postponed`: there is no evidence against the item. The peer may fail for every item.
 */
export type Verdict = 'tooLarge' | 'atFault' | 'postponed';

/**
 * Finds the items that break the batches that they are in.
 *
 * A pending item has one of three modes:
 *
 * - *not blamed*, the first mode: it is pushed in batches with others. Nothing is stored.
 * - *unanswered*: a push with it was never answered. Entered if the item was not blamed. This alone
 *   proves nothing, because in an outage no push is answered.
 * - *failed*: its push failed while it was alone. Entered from each mode, also again.
 *
 * An item that is unanswered or failed is *blamed*: it is pushed alone, so that it makes no other
 * item fail. The blame is cleared when the item is accepted or quarantined, or is not pending any
 * more.
 *
 * When an item fails alone, another push that succeeded in the meantime shows that the peer works:
 * the item is *at fault*. The meantime begins with the previous failure of the item alone. If there
 * is none, it begins with the batch that was split down to the item. After a push without an
 * answer, the meantime is unknown, and there is no such evidence.
 *
 * Without such a push, an empty push is tried in two cases: if no other item is pending, and if the
 * item has spent an attempt before. If the peer accepts the empty push, the item is at fault.
 */
export class Blame {
  readonly #deps: UplinkDeps;
  readonly #blamed = new Map<string, BlamedItem>();
  #successes = 0;

  constructor(deps: UplinkDeps) {
    this.#deps = deps;
  }

  /** The number of successful pushes. The caller reads it when a batch begins. */
  get successes(): number {
    return this.#successes;
  }

  /** Whether an item has to be pushed alone. */
  isBlamed(place: ItemKey): boolean {
    return this.#blamed.size > 0 && this.#blamed.has(itemKeyText(place));
  }

  /** Records a successful push of these items. */
  succeeded(places: readonly ItemKey[]): void {
    this.#successes += 1;
    for (const place of places) this.clear(place);
  }

  /** Clears the blame of an item. */
  clear(place: ItemKey): void {
    if (this.#blamed.size > 0) this.#blamed.delete(itemKeyText(place));
  }

  /** Blames an item whose push was never answered. */
  unanswered(item: PendingItem): void {
    if (this.isBlamed(item)) return;
    const mode = new Modes<BlameMode>('unanswered', TRANSITIONS);
    this.#blamed.set(itemKeyText(item), { mode, successes: undefined });
  }

  /**
   * Blames an item whose push failed while it was alone, and judges the failure.
   *
   * @param successesBefore the number of successful pushes when the batch began from which the item
   *   was split
   */
  async failedAlone(
    item: PendingItem,
    { code }: Failure,
    successesBefore: number,
  ): Promise<Verdict> {
    const others = this.#othersSucceeded(item, successesBefore);
    if (code === 'PEER_TOO_LARGE') return 'tooLarge';
    const isAtFault = others || (this.#mayProbe(item) && (await this.#acceptsEmptyPush()));
    return isAtFault ? 'atFault' : 'postponed';
  }

  /**
   * Enters the mode `failed`.
   *
   * @returns whether other pushes succeeded since the item's previous failure alone, or since
   *   `successesBefore` if there is none
   */
  #othersSucceeded(item: PendingItem, successesBefore: number): boolean {
    const key = itemKeyText(item);
    const known = this.#blamed.get(key);
    const successes = this.#successes;
    if (known === undefined) {
      this.#blamed.set(key, { mode: new Modes<BlameMode>('failed', TRANSITIONS), successes });
      return successes > successesBefore;
    }
    known.mode.enter('failed');
    const since = known.successes;
    known.successes = successes;
    // Undefined after a push without an answer.
    return since !== undefined && successes > since;
  }

  #mayProbe(item: PendingItem): boolean {
    return item.attempts > 0 || this.#deps.state.counts().pending === 1;
  }

  #acceptsEmptyPush(): Promise<boolean> {
    const { peer, queue } = this.#deps;
    return succeeds(queue.run('push', (signal) => peer.push([], { signal })));
  }
}
