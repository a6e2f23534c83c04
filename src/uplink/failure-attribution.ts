import type { FileStat } from '../lib/file.js';
import { withFile } from '../lib/hint.js';
import { sentence } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import {
  type AcceptedItem,
  type Failure,
  itemName,
  type PendingItem,
  type Version,
} from '../state/entry.js';
import { isAcceptedWithoutPush } from '../state/history.js';
import { failed, lost, pushAgainUnseen, quarantined, returned } from '../state/transitions.js';
import type { Blame } from './blame.js';
import { holdMs, isolationPolicy, stillPending, type UplinkDeps } from './deps.js';
import { type Isolation, LOST, LOST_WITH_MANY, lossModeOf, timesLost } from './isolation.js';
import type { Reaches } from './reach.js';
import { backoffMs } from './retry.js';
import type { UnansweredPushes } from './unanswered-pushes.js';

/**
 * Minimum time to wait for an item whose push was never answered, in ms: a peer needs a moment to
 * show a document that it has just accepted.
 */
const MIN_UNANSWERED_TIMEOUT_MS = 5_000;

/** The machines that answer for one kind of failure each. */
export interface FailureMachines {
  /** Which items break a batch. */
  readonly blame: Blame;
  /** Which items the index loses. */
  readonly isolation: Isolation;
  /** Which addresses the peer drops. */
  readonly reaches: Reaches;
  /** Which pushes may still arrive, and bring an older version. */
  readonly unansweredPushes: UnansweredPushes;
}

/**
 * Decides what a failure means for its item:
 *
 * - it *spends an attempt*: the item is pushed again (after the backoff, unless the peer had
 *   accepted it), and quarantined after `push.attempts` attempts. That happens to an item that the
 *   peer refused, to one that was accepted and not shown in time, and to one that is at fault (see
 *   Blame);
 * - it is *postponed* if the peer is failing: pushed again after the backoff, and no attempt is
 *   spent;
 * - it is *lost* if the peer loses documents together: pushed again apart from others (see
 *   Isolation);
 * - it is *gated* if the peer drops documents of its reach (see Reaches) and this is not its first
 *   failure: quarantined at once.
 */
export class FailureAttribution {
  readonly #deps: UplinkDeps;
  readonly #blame: Blame;
  readonly #isolation: Isolation;
  readonly #reaches: Reaches;
  readonly #unansweredPushes: UnansweredPushes;

  constructor(deps: UplinkDeps, { blame, isolation, reaches, unansweredPushes }: FailureMachines) {
    this.#deps = deps;
    this.#blame = blame;
    this.#isolation = isolation;
    this.#reaches = reaches;
    this.#unansweredPushes = unansweredPushes;
  }

  /** Handles an answer that refuses this item: an attempt is spent. */
  refused(item: PendingItem, words: string): void {
    this.#spendAttempt(item, {
      code: 'REFUSED',
      message: `The peer refused it: ${sentence(words)}`,
      hint: 'Mend what the peer complains about, then `peersync retry PATH`.',
    });
  }

  /**
   * Handles the failure of a push with this item alone: spends an attempt if the item is at fault,
   * else postpones it.
   *
   * @param successesBefore as in Blame
   */
  async failedAlone(
    item: PendingItem,
    failure: Failure,
    successesBefore = this.#blame.successes,
  ): Promise<void> {
    const { clock, settings, state } = this.#deps;
    const verdict = await this.#blame.failedAlone(item, failure, successesBefore);
    const current = stillPending(state.get(item.folder, item.path), item);
    if (current === undefined) return;
    if (verdict === 'tooLarge') this.quarantine(current, failure);
    else if (verdict === 'atFault') this.#spendAttempt(current, failure);
    else state.put(returned(current, clock.now() + backoffMs(settings, item), failure));
  }

  /**
   * Handles an item whose push was never answered and whose document the peer does not have: the
   * item may have broken the push.
   */
  async notTaken(item: PendingItem): Promise<void> {
    const { clock, log, state } = this.#deps;
    // A push of an earlier run is no evidence: it may have had other items in it.
    if (this.#blame.isBlamed(item)) await this.failedAlone(item, UNANSWERED);
    else state.put(returned(item, clock.now()));
    log.debug(
      { folder: item.folder, path: item.path },
      `not in the peer, pushed again: ${itemName(item)}`,
    );
  }

  /** Called when the peer shows the document at this URL for good. */
  shown(url: string): void {
    this.#reaches.shown(url);
  }

  /**
   * Called when a look-up did not show an accepted item in the usual time.
   *
   * @param usualMs how long the peer takes at most to show an accepted document
   */
  late(item: AcceptedItem, usualMs: number): void {
    this.#reaches.late(item, usualMs);
  }

  /**
   * Whether the peer may have lost this item together with others: the dialect is known for it, and
   * the item was accepted by a push, not because the peer was sent it before.
   */
  canBeLost(item: AcceptedItem): boolean {
    return isolationPolicy(this.#deps) !== undefined && !isAcceptedWithoutPush(item);
  }

  /** Returns how often the peer lost this version: the first time with others, later alone. */
  timesLost(item: PendingItem | AcceptedItem): number {
    return timesLost(item);
  }

  /**
   * Returns how long the peer may take to show this item, in ms. The time is shorter for an item
   * whose push was never answered, for one that was accepted without a push because the peer was
   * sent this version before, and for one that an older version may have replaced, whose push was
   * never answered.
   *
   * @param typicalMs how long the peer usually takes
   */
  timeoutMs(item: AcceptedItem | PendingItem, typicalMs: number): number {
    const twoHolds = 2 * holdMs(this.#deps);
    return item.status === 'pending' || this.#mayBeReplaced(item)
      ? Math.max(MIN_UNANSWERED_TIMEOUT_MS, 3 * typicalMs, twoHolds)
      : Math.max(this.#deps.settings.confirm.timeout, twoHolds);
  }

  /** Whether another document may have taken the place of an item since the peer was sent it. */
  #mayBeReplaced(item: AcceptedItem): boolean {
    return isAcceptedWithoutPush(item) || this.#unansweredPushes.mayBeReplaced(item);
  }

  /**
   * Handles an accepted item that the peer did not show in time.
   *
   * @param why the reason that the last look-up gave
   */
  notShown(item: AcceptedItem, timeoutMs: number, why: string): void {
    const { clock, log, state } = this.#deps;
    const { folder, path, url } = item;
    const dropped = this.#whyDropped(item);
    if (dropped !== undefined) {
      this.quarantine(item, dropped);
      return;
    }
    const look =
      'See in the peer whether it indexes this URL at all; `peersync retry PATH` pushes it again.';
    const hint = this.#reaches.hint(url);
    const failure = this.#reaches.unseen(url) ?? {
      code: 'NOT_SHOWN',
      message: `The peer accepted it but did not show it within ${durationText(timeoutMs)}: ${sentence(why)}`,
      hint: hint === undefined ? look : `${look} ${hint}`,
    };
    if (this.#mayBeReplaced(item)) {
      this.#unansweredPushes.pushedEarly(item);
      state.put(pushAgainUnseen(item, why, clock.now()));
    } else if (this.#spendAttempt(item, failure)) return;
    const words = `not shown by the peer, pushed again: ${itemName(item)}: ${why}`;
    log.info({ event: 'not-shown', folder, path }, words);
  }

  /**
   * Handles an item that the peer accepted and lost: it is pushed again apart from others. It is
   * quarantined when it was lost in a round of its own, or when it is gated. If very many items are
   * lost, the peer most likely crashed, and isolation would take hours: items beyond the limit of
   * Isolation are pushed again like new ones.
   */
  lost(item: AcceptedItem, why: string): void {
    const { clock, log, state } = this.#deps;
    const { folder, path } = item;
    const mode = lossModeOf(item);
    const dropped = this.#whyDropped(item);
    if (dropped !== undefined) this.quarantine(item, dropped);
    else if (mode === 'lostAlone') this.quarantine(item, REFUSED_BY_INDEX);
    else {
      const isOfMany = mode === 'notLost' && this.#isolation.isFull;
      state.put(lost(item, isOfMany ? LOST_WITH_MANY : LOST, clock.now()));
      const how = isOfMany ? 'with many others' : 'apart from others';
      const words = `accepted and not indexed, pushed again ${how}: ${itemName(item)}: ${why}`;
      log.debug({ event: 'lost', folder, path }, words);
    }
  }

  /** Returns why the peer drops an item; undefined if it does not, or this is its first failure. */
  #whyDropped(item: AcceptedItem): Failure | undefined {
    const isFirst = item.attempts === 0 && timesLost(item) === 0;
    return isFirst ? undefined : this.#reaches.dropped(item.url);
  }

  /**
   * Spends an attempt. The next one is made after the backoff, or at once if the peer had accepted
   * the item.
   *
   * @returns whether it was the last attempt
   */
  #spendAttempt(item: PendingItem | AcceptedItem, failure: Failure): boolean {
    const { clock, settings, state } = this.#deps;
    const waitMs = item.status === 'accepted' ? 0 : backoffMs(settings, item);
    const again = failed(item, failure, clock.now() + waitMs, clock.now());
    const isLast = again.attempts >= settings.push.attempts;
    if (isLast) this.quarantine(again, failure);
    else state.put(again);
    return isLast;
  }

  /**
   * Quarantines an item and logs the reason.
   *
   * @param version the version to record; without its hash, the next scan that can read the file
   *   takes the item up again
   */
  quarantine(
    item: PendingItem | AcceptedItem,
    failure: Failure,
    version: Version | FileStat = item.version,
  ): void {
    const { clock, log, state } = this.#deps;
    const { folder, path } = item;
    const { code, message, hint } = failure;
    this.#blame.clear(item);
    state.put(quarantined(item, item, version, failure, clock.now()));
    log.warn(
      { event: 'quarantined', folder, path, code },
      `quarantined ${itemName(item)}: ${sentence(message)} ${withFile(hint, `${folder}/${path}`)}`,
    );
  }
}

const UNANSWERED: Failure = {
  code: 'UNANSWERED',
  message: 'The peer did not answer its push, and does not show it.',
  hint: 'See in the log of the peer whether it chokes on this file; `peersync retry PATH` pushes it again.',
};
/**
 * The failure of an item that the peer shows without its text. Another push would give the same
 * result.
 */
export const TEXT_NOT_INDEXED: Failure = {
  code: 'TEXT_NOT_INDEXED',
  message:
    'The peer shows the document and indexed none of its text: it is found by the words of its URL only.',
  hint: 'Look for control characters in the file, or in a page for `&lt;`, or save it in another format; a changed file is pushed again by itself. Of a PDF or another document, `"extract": "always"` for the folder and `peersync retry PATH` send the text that peersync reads.',
};
const REFUSED_BY_INDEX: Failure = {
  code: 'REFUSED_BY_INDEX',
  message:
    'Each time it was pushed, nothing that came with it was indexed, and alone it is not indexed either: the index of the peer refuses it.',
  hint: 'Look for damaged characters in it (U+FFFF from inside a PDF is one), save it anew, or keep it out with a rule; the log of the peer may say more. `peersync retry PATH` pushes it again.',
};
