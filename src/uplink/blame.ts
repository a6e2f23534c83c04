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
 * The meaning of a failure of an item that was pushed alone.
 *
 * - `tooLarge`: no other attempt can succeed.
 * - `atFault`: the peer accepts other pushes, and not this one.
 * - `postponed`: the peer may fail for every item.
 */
export type Verdict = 'tooLarge' | 'atFault' | 'postponed';

/**
 * Finds the items that break the batches that they are in.
 *
 * A pending item has one of three modes:
 *
 * - *not blamed*: it is pushed in batches with others. Every item begins so. Nothing is stored.
 * - *unanswered*: a push with it was never answered. Entered if the item was not blamed. This alone
 *   proves nothing, because in an outage no push is answered.
 * - *failed*: its push failed while it was alone. Entered from each mode, also again.
 *
 * An item that is unanswered or failed is *blamed*: it is pushed alone, so that it makes no other
 * item fail. It is not blamed any more when it was accepted, is not pending any more, or is
 * quarantined.
 *
 * A blamed item is *at fault* if other pushes succeeded between two of its failures, or between the
 * start of the push that failed first and its failure alone. Without such a push, an empty push
 * decides for two kinds of items: the only pending one, and one that has spent an attempt before.
 * If the peer accepts the empty push, the item is at fault.
 */
export class Blame {
  readonly #deps: UplinkDeps;
  readonly #blamed = new Map<string, BlamedItem>();
  #successes = 0;

  constructor(deps: UplinkDeps) {
    this.#deps = deps;
  }

  /** The number of successful pushes. Must be read when a push begins. */
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
   * @param before the number of successful pushes when the push that it was first in began
   */
  async failedAlone(item: PendingItem, { code }: Failure, before: number): Promise<Verdict> {
    const others = this.#othersSucceeded(item, before);
    if (code === 'PEER_TOO_LARGE') return 'tooLarge';
    const isAtFault = others || (this.#mayProbe(item) && (await this.#acceptsEmptyPush()));
    return isAtFault ? 'atFault' : 'postponed';
  }

  /**
   * Enters the mode `failed`.
   *
   * @returns whether other pushes succeeded since the item's last failure alone, or since `before`
   */
  #othersSucceeded(item: PendingItem, before: number): boolean {
    const key = itemKeyText(item);
    const known = this.#blamed.get(key);
    const successes = this.#successes;
    if (known === undefined) {
      this.#blamed.set(key, { mode: new Modes<BlameMode>('failed', TRANSITIONS), successes });
      return successes > before;
    }
    known.mode.enter('failed');
    const since = known.successes;
    known.successes = successes;
    // Without an answer to its push, nothing is known of the time before.
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
