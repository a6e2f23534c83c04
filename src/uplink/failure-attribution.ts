import type { FileStat } from '../lib/file.js';
import { withFile } from '../lib/hint.js';
import { sentence } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import type { AddressPolicy } from '../peer/dialects/dialect.js';
import type { ItemKey } from '../state/entries.js';
import type { AcceptedItem, Failure, PendingItem, Version } from '../state/entry.js';
import {
  beginningOf,
  failed,
  isAcceptedWithoutPush,
  itemName,
  lost,
  pushAgainUnseen,
  quarantined,
  returned,
} from '../state/entry.js';
import {
  backoffMs,
  holdMs,
  isolationPolicy,
  itemKeyText,
  maxDelayMs,
  stillPending,
  succeeds,
  type UplinkDeps,
} from './deps.js';
import { firstAcceptedAt, forgetUnseen, recordUnseen } from './unseen-addresses.js';

/**
 * Minimum time to wait for an item whose push was never answered, in ms: a peer needs a moment to
 * show a document that it has just accepted.
 */
const MIN_UNANSWERED_TIMEOUT_MS = 5_000;
/** The key of the state value that keeps, for each reach, a URL that the peer showed. */
const SHOWN_META = 'shownBelow';

/**
 * Decides what a failure means for its item:
 *
 * - it *spends an attempt*: the item is pushed again after the backoff, and quarantined after
 *   `push.attempts` attempts. That happens to an item that the peer refused, to one that was not
 *   shown in time (pushed again without backoff), and to one whose push failed while others
 *   succeeded;
 * - it is *postponed* if the peer is failing: pushed again after the backoff, with no attempt
 *   spent;
 * - it is *lost* if the peer loses documents together: pushed again in isolation (see Isolation).
 *
 * Some peers silently drop documents of some addresses (see AddressPolicy). An item is *gated* if
 * the peer showed documents of the other reach and none of the item's own. If it showed none of
 * either reach, the user is warned that it may drop this one.
 *
 * An item is *blamed* when its push failed alone or was never answered. It is pushed alone until it
 * is accepted, removed or quarantined. It is *at fault*, and spends an attempt, if other pushes
 * succeeded between two of its failures, or between the start of the push that failed first and its
 * failure alone. Without such a push, an empty push decides for two kinds of items: the only
 * pending one, and one that has spent an attempt before. If the peer accepts the empty push, the
 * item is at fault.
 */
export class FailureAttribution {
  readonly #deps: UplinkDeps;
  /**
   * The number of successful pushes at each blamed item's last failure. Infinite for an item whose
   * push was only never answered, as all pushes are in an outage.
   */
  readonly #blamed = new Map<string, number>();
  /** The URL of the first document that was shown, for each reach. */
  readonly #shown: string[];
  /** The number of successful pushes; to be read when a push begins. */
  successes = 0;

  constructor(
    deps: UplinkDeps,
    private readonly isolation: Isolation,
  ) {
    this.#deps = deps;
    this.#shown = Object.keys((deps.state.meta(SHOWN_META) ?? {}) as object);
  }

  /** Whether an item has to be pushed alone, so that it cannot make others fail. */
  isBlamed(place: ItemKey): boolean {
    return this.#blamed.size > 0 && this.#blamed.has(itemKeyText(place));
  }

  /** Records a successful push of these items. */
  succeeded(places: readonly ItemKey[]): void {
    this.successes += 1;
    for (const place of places) this.forget(place);
  }

  /** Clears the blame of an item that was accepted or is not pending any more. */
  forget(place: ItemKey): void {
    if (this.#blamed.size > 0) this.#blamed.delete(itemKeyText(place));
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
   * Blames an item whose push was never answered. It is looked up; then it is confirmed, or
   * `notTaken` is called.
   */
  unanswered(item: PendingItem): void {
    if (!this.isBlamed(item)) this.#blamed.set(itemKeyText(item), Number.POSITIVE_INFINITY);
  }

  /**
   * Handles an item whose push was never answered and whose document the peer does not have: the
   * item may have broken the push.
   */
  async notTaken(item: PendingItem): Promise<void> {
    const { clock, log, state } = this.#deps;
    // A push of an earlier run is no evidence: it may have had other items in it.
    if (this.isBlamed(item)) await this.failedAlone(item, UNANSWERED);
    else state.put(returned(item, clock.now()));
    log.debug(
      { folder: item.folder, path: item.path },
      `not in the peer, pushed again: ${itemName(item)}`,
    );
  }

  /**
   * Handles the failure of a push with this item alone: spends an attempt if the item is at fault,
   * else postpones it.
   *
   * @param before the number of successful pushes when the push that it was first in began
   */
  async failedAlone(item: PendingItem, failure: Failure, before = this.successes): Promise<void> {
    const { clock, peer, queue, state } = this.#deps;
    const acceptsEmptyPush = () =>
      succeeds(queue.run('push', (signal) => peer.push([], { signal })));
    const known = this.#blamed.get(itemKeyText(item)) ?? before;
    this.#blamed.set(itemKeyText(item), this.successes);
    const isTooLarge = failure.code === 'PEER_TOO_LARGE';
    const canProbe = item.attempts > 0 || state.counts().pending === 1;
    const isAtFault =
      isTooLarge || this.successes > known || (canProbe && (await acceptsEmptyPush()));
    const current = stillPending(state.get(item.folder, item.path), item);
    if (current === undefined) return;
    if (isTooLarge) this.quarantine(current, failure);
    else if (isAtFault) this.#spendAttempt(current, failure);
    else state.put(returned(current, clock.now() + backoffMs(this.#deps.settings, item), failure));
  }

  /** Records that the peer shows the document at this URL for good. */
  shown(url: string): void {
    const { state } = this.#deps;
    if (this.#addresses === undefined || this.hasShownLike(url)) return;
    this.#shown.push(url);
    state.setMeta(SHOWN_META, Object.fromEntries(this.#shown.map((each) => [each, 0])));
    forgetUnseen(state, this.#addresses.reachOf(url));
  }

  /**
   * Whether the peer ever showed a document whose URL has the same reach, so that its network
   * accepts this reach.
   */
  hasShownLike(url: string): boolean {
    const addresses = this.#addresses;
    const reach = addresses?.reachOf(url);
    return this.#shown.some((each) => addresses?.reachOf(each) === reach);
  }

  /**
   * Called when a look-up did not show an accepted item. Warns the user once that the peer may drop
   * this reach, if the item is late by twice the usual time and no document of its reach was ever
   * shown.
   *
   * @param usualMs how long the peer takes at most to show an accepted document
   */
  late(item: AcceptedItem, usualMs: number): void {
    const { clock, log, queue, state } = this.#deps;
    const { folder, path, url } = item;
    if (this.#addresses === undefined || this.hasShownLike(url)) return;
    const lateMs = Math.min(clock.now() - firstAcceptedAt(item), queue.answeringForMs);
    if (lateMs < 2 * usualMs) return;
    const failure = this.#addresses.unseen(url);
    const { code, hint, message } = failure;
    if (item.failure?.code !== code) state.put({ ...item, failure });
    const since = clock.now();
    const what = withFile(hint, `${folder}/${path}`);
    if (recordUnseen(state, this.#addresses.reachOf(url), { folder, path, code, since }))
      log.warn({ event: 'addresses-unseen', folder, path, url, code }, `${message} ${what}`);
  }

  /**
   * Whether the peer may have lost this item together with others: the dialect is known for it, and
   * the item was accepted by a push, not because the peer was sent it before.
   */
  canBeLost(item: AcceptedItem): boolean {
    return isolationPolicy(this.#deps) !== undefined && !isAcceptedWithoutPush(item);
  }

  /**
   * Returns how long the peer may take to show this item, in ms. The time is shorter for an item
   * whose push was never answered, and for one that was accepted without a push because the peer
   * was sent this version before. The peer had time to show the latter, and another document may
   * have replaced it since.
   *
   * @param typicalMs how long the peer usually takes
   */
  timeoutMs(item: AcceptedItem | PendingItem, typicalMs: number): number {
    const twoHolds = 2 * holdMs(this.#deps);
    return item.status === 'pending' || isAcceptedWithoutPush(item)
      ? Math.max(MIN_UNANSWERED_TIMEOUT_MS, 3 * typicalMs, twoHolds)
      : Math.max(this.#deps.settings.confirm.timeout, twoHolds);
  }

  /**
   * Handles an accepted item that the peer did not show in time.
   *
   * @param why the reason that the last look-up gave
   */
  notShown(item: AcceptedItem, timeoutMs: number, why: string): void {
    const { clock, log, state } = this.#deps;
    const { folder, path, url } = item;
    if (this.#addresses !== undefined && this.#isGated(item)) {
      this.quarantine(item, this.#addresses.dropped(url));
      return;
    }
    const look =
      'See in the peer whether it indexes this URL at all; `peersync retry PATH` pushes it again.';
    const addresses = this.#addresses;
    const notShown = {
      code: 'NOT_SHOWN',
      message: `The peer accepted it but did not show it within ${durationText(timeoutMs)}: ${sentence(why)}`,
      hint: addresses === undefined ? look : `${look} ${addresses.hint(addresses.reachOf(url))}`,
    };
    const isUnseen = addresses !== undefined && !this.hasShownLike(url);
    const failure = isUnseen ? addresses.unseen(url) : notShown;
    if (isAcceptedWithoutPush(item)) state.put(pushAgainUnseen(item, why, clock.now()));
    else if (this.#spendAttempt(item, failure)) return;
    const words = `not shown by the peer, pushed again: ${itemName(item)}: ${why}`;
    log.info({ event: 'not-shown', folder, path }, words);
  }

  /**
   * Handles an item that the peer accepted and lost: it is pushed again in isolation. It is
   * quarantined when it was lost alone as well, or when its address is gated. If very many items
   * are lost, the peer most likely crashed, and isolation would take hours: items beyond the limit
   * of Isolation are pushed again like new ones.
   */
  lost(item: AcceptedItem, why: string): void {
    const { clock, log, state } = this.#deps;
    const { folder, path, url } = item;
    const times = timesLost(item);
    if (this.#addresses !== undefined && this.#isGated(item))
      this.quarantine(item, this.#addresses.dropped(url));
    else if (times > 1) this.quarantine(item, REFUSED_BY_INDEX);
    else {
      const isOfMany = times === 0 && this.isolation.isFull;
      state.put(lost(item, isOfMany ? LOST_WITH_MANY : LOST, clock.now()));
      const how = isOfMany ? 'with many others' : 'apart from others';
      const words = `accepted and not indexed, pushed again ${how}: ${itemName(item)}: ${why}`;
      log.debug({ event: 'lost', folder, path }, words);
    }
  }

  /**
   * Spends an attempt. The next one is made after the backoff, or at once if the peer had accepted
   * the item.
   *
   * @returns whether it was the last attempt
   */
  #spendAttempt(item: PendingItem | AcceptedItem, failure: Failure): boolean {
    const { clock, settings, state } = this.#deps;
    const waitMs = item.status === 'accepted' ? 0 : backoffMs(this.#deps.settings, item);
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
    this.forget(item);
    state.put(quarantined(item, item, version, failure, clock.now()));
    log.warn(
      { event: 'quarantined', folder, path, code },
      `quarantined ${itemName(item)}: ${sentence(message)} ${withFile(hint, `${folder}/${path}`)}`,
    );
  }

  get #addresses(): AddressPolicy | undefined {
    return this.#deps.dialect.current?.addresses;
  }

  /**
   * Whether the reach of the item's URL explains that it is not shown, and this is not the first
   * time.
   */
  #isGated(item: AcceptedItem): boolean {
    const isGated = this.#shown.length > 0 && !this.hasShownLike(item.url);
    return isGated && (item.attempts > 0 || timesLost(item) > 0);
  }
}

/**
 * Quiet time before a round, and around each push if the peer did not commit its index, as a
 * fraction of `holdMs`.
 */
const QUIET_SHARE = 1 / 4;

/** Longest duration of a round, as a fraction of `holdMs`. */
const ROUND_SHARE = 1 / 2;

/** The failure of an item that the peer accepted and lost. */
export const LOST: Failure = {
  code: 'LOST_FROM_INDEX',
  message: 'The peer accepted it and did not index it in the usual time.',
  hint: 'It is pushed again apart from others by itself, for one document can keep others out of the index.',
};

/** The failure of an item that was lost with so many others that they are not isolated. */
const LOST_WITH_MANY: Failure = {
  code: 'LOST_WITH_MANY',
  message: 'The peer accepted it and lost it with many others, as in a crash.',
  hint: 'It is pushed again by itself; the log of the peer says whether it crashed.',
};

/** Maximum number of lost items that wait; their rounds take about five minutes. */
const MAX_LOST = 250;

/** Returns how often the peer lost this version: the first time with others, later alone. */
export function timesLost({ history }: PendingItem | AcceptedItem): number {
  const present = history.slice(beginningOf(history) + 1);
  return present.filter(({ note }) => note === LOST.message).length;
}

/**
 * Finds the document that keeps others out of the index.
 *
 * YaCy sends documents to its index in groups, the *updates*. A document that the index refuses
 * ends the update: none of its documents are indexed, though YaCy accepted them all (measured with
 * 1.92). Therefore an item that is accepted and never shown is *lost*. It is pushed again in an
 * update of its own: no other push is under way, YaCy answers only when it has indexed the item
 * (`synchronous`, unless it has never shown a document of that reach), and then YaCy is asked to
 * commit its index, which ends the update.
 *
 * A *round* pushes one lost item after the other, for half of the hold at most. It begins after a
 * quiet time of a quarter of the hold. If the peer does not commit its index, each push has that
 * quiet time around it. Between two rounds, other items are pushed for the duration of the hold.
 *
 * An item that was lost alone as well gets one more push: in a round of its own, with the whole
 * hold as quiet time before and after it. If that push is lost too, the item is at fault. The
 * history of an item counts how often it was lost.
 */
export class Isolation {
  readonly #deps: UplinkDeps;
  /** The lost items that wait. */
  readonly #waiting = new Map<string, { readonly place: ItemKey; readonly isLastTry: boolean }>();
  /** The end of the last push. */
  #pushedAt: number;
  /** Until then other due items go before the next round. */
  #othersFirstUntil = Number.NEGATIVE_INFINITY;

  /** @param isPrefetched whether a lost item can be pushed without reading a document first */
  constructor(
    deps: UplinkDeps,
    private readonly isPrefetched: (item: PendingItem) => boolean = () => true,
  ) {
    this.#deps = deps;
    this.#pushedAt = deps.clock.now();
  }

  /** Whether the limit of waiting items is reached. */
  get isFull(): boolean {
    return this.#waiting.size >= MAX_LOST;
  }

  /** Whether no lost item waits in a folder that is there. */
  get isIdle(): boolean {
    for (const { place } of this.#waiting.values()) if (this.#isPresent(place)) return false;
    return true;
  }

  /**
   * Adds a pending item if it is lost.
   * @returns whether it is lost
   */
  addIfLost(item: PendingItem): boolean {
    const times = isolationPolicy(this.#deps) === undefined ? 0 : timesLost(item);
    if (times === 0) this.forget(item);
    else {
      const place = { folder: item.folder, path: item.path };
      this.#waiting.set(itemKeyText(place), { place, isLastTry: times > 1 });
    }
    return times > 0;
  }

  forget(place: ItemKey): void {
    if (this.#waiting.size > 0) this.#waiting.delete(itemKeyText(place));
  }

  /** Records the end of a push. */
  pushed(): void {
    this.#pushedAt = this.#deps.clock.now();
  }

  /**
   * Whether a round is to begin.
   * @param othersWait whether other items are due
   */
  isDue(othersWait: boolean): boolean {
    if (othersWait && this.#deps.clock.now() < this.#othersFirstUntil) return false;
    for (const item of this.pushable()) if (this.isPrefetched(item)) return true;
    return false;
  }

  /** Yields the lost items that are due, whether they are read or not. */
  *pushable(): Iterable<PendingItem> {
    for (const { place } of this.#waiting.values()) {
      const item = this.#dueItemAt(place);
      if (item !== undefined) yield item;
    }
  }

  /**
   * Pushes the waiting items that can be pushed, one after the other. The caller lets no other push
   * happen meanwhile.
   *
   * @param push pushes an item, and resolves to whether the peer then committed its index
   */
  async round(push: (item: PendingItem) => Promise<boolean>, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const hold = holdMs(this.#deps);
    const inTurn = [...this.#waiting.values()].sort(
      (a, b) => Number(a.isLastTry) - Number(b.isLastTry),
    );
    let isFirst = true;
    const end = clock.now() + (QUIET_SHARE + ROUND_SHARE) * hold;
    for (const { place, isLastTry } of inTurn) {
      if (!isFirst && (isLastTry || clock.now() > end)) break;
      if (this.#pushableAt(place) === undefined) continue;
      await this.#waitForQuiet(isLastTry ? hold : isFirst ? hold * QUIET_SHARE : 0, signal);
      if (signal.aborted) break;
      const item = this.#pushableAt(place);
      if (item === undefined) continue;
      isFirst = false;
      this.forget(place);
      const hasCommitted = await push(item);
      await this.#waitForQuiet(isLastTry ? hold : hasCommitted ? 0 : hold * QUIET_SHARE, signal);
    }
    this.#othersFirstUntil = clock.now() + hold;
  }

  /** Waits until the last push is this long ago. */
  async #waitForQuiet(ms: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    await clock.sleep(Math.max(0, this.#pushedAt + ms - clock.now()), signal);
  }

  #isPresent({ folder }: ItemKey): boolean {
    return this.#deps.folderState(folder) === 'there';
  }

  /** Returns the waiting item, if it is due and read. */
  #pushableAt(place: ItemKey): PendingItem | undefined {
    const item = this.#dueItemAt(place);
    return item !== undefined && this.isPrefetched(item) ? item : undefined;
  }

  /** Returns the waiting item, if it is due. */
  #dueItemAt(place: ItemKey): PendingItem | undefined {
    if (!this.#waiting.has(itemKeyText(place)) || !this.#isPresent(place)) return undefined;
    const item = this.#deps.state.get(place.folder, place.path);
    const isReady = item?.status === 'pending' && item.inFlight === undefined;
    if (!isReady) return undefined;
    const leftMs = item.notBefore - this.#deps.clock.now();
    return leftMs <= 0 || leftMs > maxDelayMs(this.#deps.settings) ? item : undefined;
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
