import type { FileStat } from '../lib/file.js';
import { withFile } from '../lib/hint.js';
import { sentence } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import type { AddressPolicy } from '../peer/addresses.js';
import type { Place } from '../state/entries.js';
import type { AcceptedItem, PendingItem, Trouble, Version } from '../state/entry.js';
import {
  beginningOf,
  failed,
  isRemembered,
  lost,
  placeName,
  quarantined,
  returned,
  unremembered,
} from '../state/entry.js';
import {
  backoffMs,
  goesThrough,
  holdMs,
  keyOf,
  longestPutOffMs,
  losesUpdates,
  stillPending,
  type UplinkDeps,
} from './deps.js';
import { firstAcceptedAt, forgetUnseen, recordUnseen } from './unseen-addresses.js';

/**
 * A wait for an item whose push was never answered is at least this long, in ms: a peer needs a
 * moment to show what it has just taken.
 */
const SHORTEST_UNANSWERED_MS = 5_000;
/** Of each reach a URL that was shown. */
const SHOWN_META = 'shownBelow';

/**
 * Decides what a failure means for the item that it happened to:
 *
 * - an attempt is *spent*: it is pushed again after the backoff, and quarantined after
 *   `push.attempts` of those. So is one that the peer refused by its answer, one that was not shown
 *   in time (at once again, without backoff), and one whose push failed while others went through;
 * - it is *put off*, where the peer is in trouble: pushed again after the backoff, with no attempt
 *   spent;
 * - it is *lost*, where the peer loses documents together: pushed again apart from others (see
 *   Isolation).
 *
 * Some peers drop documents of some addresses without a word (see AddressPolicy). An item is
 * *gated* where documents of the other reach were shown, and none of its own. Where none of either
 * was, a person is told that it may be so.
 *
 * An item whose push failed by itself, or was never answered, is a *suspect* and travels alone from
 * then on, until it is accepted. It is to blame only when other pushes went through between two of
 * its failures, or between the beginning of the push that failed first and its failing by itself.
 * Where nothing else waits that could go through and tell, an empty push decides, for the only item
 * there is and for one that was to blame before: a peer that takes it works.
 */
export class FailureAttribution {
  readonly #deps: UplinkDeps;
  /**
   * How many pushes had gone through when each suspect failed last; infinite for what was only
   * never answered, as all is in an outage.
   */
  readonly #suspects = new Map<string, number>();
  /** Of each reach the URL of the first document that was shown. */
  readonly #shown: string[];
  /** How many pushes went through so far; to be asked when a push begins. */
  successes = 0;

  constructor(
    deps: UplinkDeps,
    private readonly isolation: Isolation,
  ) {
    this.#deps = deps;
    this.#shown = Object.keys((deps.state.meta(SHOWN_META) ?? {}) as object);
  }

  /** Whether an item has to travel alone, so that nobody suffers with it. */
  isSuspect(place: Place): boolean {
    return this.#suspects.size > 0 && this.#suspects.has(keyOf(place));
  }

  /** A push went through with these items. */
  succeeded(places: readonly Place[]): void {
    this.successes += 1;
    for (const place of places) this.forget(place);
  }

  /** Nothing of this file waits to be pushed any more. */
  forget(place: Place): void {
    if (this.#suspects.size > 0) this.#suspects.delete(keyOf(place));
  }

  /** The peer answered, and refused this item. */
  refused(item: PendingItem, words: string): void {
    this.#spend(item, {
      code: 'REFUSED',
      message: `The peer refused it: ${sentence(words)}`,
      hint: 'Mend what the peer complains about, then `peersync retry PATH`.',
    });
  }

  /**
   * A push with this item was never answered: it is looked up, and then confirmed or `notTaken`.
   */
  unanswered(item: PendingItem): void {
    if (!this.isSuspect(item)) this.#suspects.set(keyOf(item), Number.POSITIVE_INFINITY);
  }

  /**
   * A push of this item was never answered, and the peer does not have it: it may be what the peer
   * chokes on.
   */
  async notTaken(item: PendingItem): Promise<void> {
    const { clock, log, state } = this.#deps;
    // Of an earlier run it may be innocent.
    if (this.isSuspect(item)) await this.failedAlone(item, UNANSWERED);
    else state.put(returned(item, clock.now()));
    log.debug(
      { folder: item.folder, path: item.path },
      `not in the peer, pushed again: ${placeName(item)}`,
    );
  }

  /**
   * A push of this item alone failed: an attempt is spent if it is to blame, and else it is put
   * off.
   *
   * @param before how many pushes had gone through when the one began that it was in
   */
  async failedAlone(item: PendingItem, trouble: Trouble, before = this.successes): Promise<void> {
    const { clock, peer, queue, state } = this.#deps;
    const takesAnEmptyPush = () =>
      goesThrough(queue.run('push', (signal) => peer.push([], { signal })));
    const known = this.#suspects.get(keyOf(item)) ?? before;
    this.#suspects.set(keyOf(item), this.successes);
    const isTooLarge = trouble.code === 'PEER_TOO_LARGE';
    const isKnownOrAlone = item.attempts > 0 || state.counts().pending === 1;
    const isToBlame =
      isTooLarge || this.successes > known || (isKnownOrAlone && (await takesAnEmptyPush()));
    const current = stillPending(state.get(item.folder, item.path), item);
    if (current === undefined) return;
    if (isTooLarge) this.quarantine(current, trouble);
    else if (isToBlame) this.#spend(current, trouble);
    else state.put(returned(current, clock.now() + backoffMs(this.#deps.settings, item), trouble));
  }

  /** The peer shows the document at this URL for good. */
  shown(url: string): void {
    const { state } = this.#deps;
    if (this.#addresses === undefined || this.hasShownLike(url)) return;
    this.#shown.push(url);
    state.setMeta(SHOWN_META, Object.fromEntries(this.#shown.map((each) => [each, 0])));
    forgetUnseen(state, this.#addresses.reachOf(url));
  }

  /**
   * Whether the peer ever showed a document with a URL of the same reach: its network takes those.
   */
  hasShownLike(url: string): boolean {
    const addresses = this.#addresses;
    const reach = addresses?.reachOf(url);
    return this.#shown.some((each) => addresses?.reachOf(each) === reach);
  }

  /**
   * A look-up did not show an accepted item. Where that lasts for twice the usual time, and nothing
   * of its reach was ever shown, a person is told what it may be.
   *
   * @param usualMs how long the peer takes at most to show what it takes
   */
  late(item: AcceptedItem, usualMs: number): void {
    const { clock, log, queue, state } = this.#deps;
    const { folder, path, url } = item;
    if (this.#addresses === undefined || this.hasShownLike(url)) return;
    const lateMs = Math.min(clock.now() - firstAcceptedAt(item), queue.answeringForMs);
    if (lateMs < 2 * usualMs) return;
    const trouble = this.#addresses.unseen(url);
    const { code, hint, message } = trouble;
    if (item.trouble?.code !== code) state.put({ ...item, trouble });
    const since = clock.now();
    const what = withFile(hint, `${folder}/${path}`);
    if (recordUnseen(state, this.#addresses.reachOf(url), { folder, path, code, since }))
      log.warn({ event: 'addresses-unseen', folder, path, url, code }, `${message} ${what}`);
  }

  /** Whether the peer may have lost this item together with others, as far as the peer goes. */
  canBeLost(item: AcceptedItem): boolean {
    return losesUpdates(this.#deps) && !isRemembered(item);
  }

  /**
   * How long the peer may take to show this item, in ms; an item that is still pending is one whose
   * push was never answered. What the peer was sent before it had time to show, and somebody else
   * may have put another document there since.
   *
   * @param typicalMs how long it usually takes
   */
  patienceMs(item: AcceptedItem | PendingItem, typicalMs: number): number {
    const twoHolds = 2 * holdMs(this.#deps);
    return item.status === 'pending' || isRemembered(item)
      ? Math.max(SHORTEST_UNANSWERED_MS, 3 * typicalMs, twoHolds)
      : Math.max(this.#deps.settings.confirm.timeout, twoHolds);
  }

  /**
   * The peer accepted an item and did not show it in time.
   *
   * @param why what the last look-up said
   */
  notShown(item: AcceptedItem, patienceMs: number, why: string): void {
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
      message: `The peer accepted it but did not show it within ${durationText(patienceMs)}: ${sentence(why)}`,
      hint: addresses === undefined ? look : `${look} ${addresses.hint(addresses.reachOf(url))}`,
    };
    const isUnseen = addresses !== undefined && !this.hasShownLike(url);
    const trouble = isUnseen ? addresses.unseen(url) : notShown;
    if (isRemembered(item)) state.put(unremembered(item, why, clock.now()));
    else if (this.#spend(item, trouble)) return;
    const words = `not shown by the peer, pushed again: ${placeName(item)}: ${why}`;
    log.info({ event: 'not-shown', folder, path }, words);
  }

  /**
   * The peer accepted an item and lost it: it is pushed again apart from others. It is to blame
   * when it was lost alone twice, and its address where none like it was ever shown. Where very
   * many are lost the peer has crashed, most likely: one by one they would take hours, so that
   * those which find no room among the suspects are pushed again as if for the first time.
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
      state.put(lost(item, isOfMany ? LOST_WITH_MANY : lostTrouble, clock.now()));
      const how = isOfMany ? 'with many others' : 'apart from others';
      const words = `accepted and not indexed, pushed again ${how}: ${placeName(item)}: ${why}`;
      log.debug({ event: 'lost', folder, path }, words);
    }
  }

  /**
   * Spends an attempt: the next one is made after the backoff, or at once where the peer took it.
   *
   * @returns whether it was the last
   */
  #spend(item: PendingItem | AcceptedItem, trouble: Trouble): boolean {
    const { clock, settings, state } = this.#deps;
    const waitMs = item.status === 'accepted' ? 0 : backoffMs(this.#deps.settings, item);
    const again = failed(item, trouble, clock.now() + waitMs, clock.now());
    const isLast = again.attempts >= settings.push.attempts;
    if (isLast) this.quarantine(again, trouble);
    else state.put(again);
    return isLast;
  }

  /**
   * Gives an item up, and tells the person why.
   *
   * @param version without its hash where the next look that can read the file is to take it up
   *   again
   */
  quarantine(
    item: PendingItem | AcceptedItem,
    trouble: Trouble,
    version: Version | FileStat = item.version,
  ): void {
    const { clock, log, state } = this.#deps;
    const { folder, path } = item;
    const { code, message, hint } = trouble;
    this.forget(item);
    state.put(quarantined(item, item, version, trouble, clock.now()));
    log.warn(
      { event: 'quarantined', folder, path, code },
      `quarantined ${placeName(item)}: ${sentence(message)} ${withFile(hint, `${folder}/${path}`)}`,
    );
  }

  get #addresses(): AddressPolicy | undefined {
    return this.#deps.dialect.current?.addresses;
  }

  /**
   * Whether the network of the peer explains that this item is not shown, and that not for the
   * first time.
   */
  #isGated(item: AcceptedItem): boolean {
    const isGated = this.#shown.length > 0 && !this.hasShownLike(item.url);
    return isGated && (item.attempts > 0 || timesLost(item) > 0);
  }
}

/**
 * The share of the hold that a round, and each push where the peer did not commit its index, keeps
 * from what is pushed before.
 */
const APART = 1 / 4;

/** How long a round goes on, as a share of the hold. */
const LONGEST_ROUND = 1 / 2;

/** What stands in the state of an item that the peer accepted and lost. */
export const lostTrouble: Trouble = {
  code: 'LOST_FROM_INDEX',
  message: 'The peer accepted it and did not index it in the usual time.',
  hint: 'It is pushed again apart from others by itself, for one document can keep others out of the index.',
};

/** The same where so many were lost that it is no reason to suspect the item. */
const LOST_WITH_MANY: Trouble = {
  code: 'LOST_WITH_MANY',
  message: 'The peer accepted it and lost it with many others, as in a crash.',
  hint: 'It is pushed again by itself; the log of the peer says whether it crashed.',
};

/** So many suspects wait at most: in rounds they take about five minutes. */
const MOST_SUSPECTS = 250;

/** How often the peer lost this version: the first time with others, then alone. */
export function timesLost({ history }: PendingItem | AcceptedItem): number {
  const present = history.slice(beginningOf(history) + 1);
  return present.filter(({ note }) => note === lostTrouble.message).length;
}

/**
 * Finds the document that keeps others out of the index.
 *
 * YaCy sends many documents to its index at a time, in one *update*. A document that the index
 * refuses ends the update: nothing in it is indexed, though YaCy accepted all of it (measured with
 * 1.92). So an item that is accepted and never shown is a *suspect*, and is pushed again in an
 * update of its own: nothing else is pushed meanwhile, YaCy answers when it has indexed it
 * (`synchronous`; not as long as it has shown nothing like it), and is then had commit its index,
 * which ends the update.
 *
 * A *round* pushes one suspect after the other, for half of the hold at most. It begins when
 * nothing else was pushed for a quarter of the hold; where the peer does not commit, its pushes are
 * apart as much. Others are pushed for the time of the hold between two rounds.
 *
 * An item that was lost alone is pushed once more, in a round of its own and apart from everything
 * else by the whole hold, before it is to blame. How often it was lost is in its history.
 */
export class Isolation {
  readonly #deps: UplinkDeps;
  /** The suspects that wait. */
  readonly #waiting = new Map<string, { readonly place: Place; readonly isLastTry: boolean }>();
  /** When anything was pushed last. */
  #pushedAt: number;
  /** Until then others go first behind a round. */
  #othersUntil = Number.NEGATIVE_INFINITY;

  /** @param isRead whether a suspect can be pushed without a long reading before */
  constructor(
    deps: UplinkDeps,
    private readonly isRead: (item: PendingItem) => boolean = () => true,
  ) {
    this.#deps = deps;
    this.#pushedAt = deps.clock.now();
  }

  /** Whether so many suspects wait that another one would wait too long. */
  get isFull(): boolean {
    return this.#waiting.size >= MOST_SUSPECTS;
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
    for (const item of this.ready()) if (this.isRead(item)) return true;
    return false;
  }

  /** The suspects that may be pushed as far as time allows, whether they are read or not. */
  *ready(): Iterable<PendingItem> {
    for (const { place } of this.#waiting.values()) {
      const item = this.#itemAt(place);
      if (item !== undefined) yield item;
    }
  }

  /**
   * Pushes what waits and is read in a round. Nothing else may be pushed meanwhile.
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
    const end = clock.now() + (APART + LONGEST_ROUND) * hold;
    for (const { place, isLastTry } of inTurn) {
      if (!isFirst && (isLastTry || clock.now() > end)) break;
      if (this.#nextAt(place) === undefined) continue;
      await this.#apart(isLastTry ? hold : isFirst ? hold * APART : 0, signal);
      if (signal.aborted) break;
      const item = this.#nextAt(place);
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

  /** The item that waits here, if it may be pushed now. */
  #nextAt(place: Place): PendingItem | undefined {
    const item = this.#itemAt(place);
    return item !== undefined && this.isRead(item) ? item : undefined;
  }

  /** The item that waits here, if it may be pushed as far as time allows. */
  #itemAt(place: Place): PendingItem | undefined {
    if (!this.#waiting.has(keyOf(place)) || !this.#isHere(place)) return undefined;
    const item = this.#deps.state.get(place.folder, place.path);
    const isReady = item?.status === 'pending' && item.inFlight === undefined;
    if (!isReady) return undefined;
    const leftMs = item.notBefore - this.#deps.clock.now();
    return leftMs <= 0 || leftMs > longestPutOffMs(this.#deps.settings) ? item : undefined;
  }
}

const UNANSWERED: Trouble = {
  code: 'UNANSWERED',
  message: 'The peer did not answer its push, and does not show it.',
  hint: 'See in the log of the peer whether it chokes on this file; `peersync retry PATH` pushes it again.',
};
/** The peer shows this version, and indexed none of its text: another push would end no better. */
export const TEXT_NOT_INDEXED: Trouble = {
  code: 'TEXT_NOT_INDEXED',
  message:
    'The peer shows the document and indexed none of its text: it is found by the words of its URL only.',
  hint: 'Look for control characters in the file, or in a page for `&lt;`, or save it in another format; a changed file is pushed again by itself. Of a PDF or another document, `"extract": "always"` for the folder and `peersync retry PATH` send the text that peersync reads.',
};
const REFUSED_BY_INDEX: Trouble = {
  code: 'REFUSED_BY_INDEX',
  message:
    'Each time it was pushed, nothing that came with it was indexed, and alone it is not indexed either: the index of the peer refuses it.',
  hint: 'Look for damaged characters in it (U+FFFF from inside a PDF is one), save it anew, or keep it out with a rule; the log of the peer may say more. `peersync retry PATH` pushes it again.',
};
