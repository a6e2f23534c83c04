import type { HealthCheck } from '../lib/health.js';
import { durationText } from '../lib/units.js';
import { evidenceOf, type Peerdoc, type VersionShown } from '../peer/peerdoc.js';
import type { ItemKey } from '../state/entries.js';
import type { AcceptedItem, PendingItem, Sent } from '../state/entry.js';
import { itemName } from '../state/entry.js';
import { accepted, confirmed } from '../state/transitions.js';
import { holdMs, indexingMs, itemKeyText, type UplinkDeps } from './deps.js';
import { type FailureAttribution, TEXT_NOT_INDEXED } from './failure-attribution.js';
import { IndexCommits, TimeToVisible } from './index-timing.js';
import { type Again, type Answer, type Judge, LookUp, type Verdict } from './look-up.js';
import { LookUpLoop } from './look-up-loop.js';
import { MAX_IN_MEMORY } from './ready-queue.js';

/** Longest time that due look-ups wait for pushes to end, in ms. */
const MAX_WAIT_FOR_PUSH_MS = 10_000;
/** Maximum error of the difference between two times in whole seconds, in ms. */
const ROUNDING_MS = 2_000;
/**
 * Limit of look-ups in memory, as a multiple of the limit of pending items. A peer that accepts 200
 * files a second and shows them after a minute has 12,000 items to look up.
 */
const LOOK_UPS_FACTOR = 2;
/** A canary is looked up at this fraction of the time-to-visible. */
const CANARY_SHARE = 0.75;

/** One push of an item. All times are in ms since the epoch. */
interface PushedItem {
  readonly place: ItemKey;
  /** The time of the push, which identifies it. */
  readonly sentAt: number;
  /** The latest time at which the peer may have accepted it. */
  readonly since: number;
  /** The end of the hold. An item that is not shown after it is late. */
  readonly holdEndsAt: number;
  /** Whether the time-to-visible is learned from it. */
  readonly isCanary: boolean;
}

/** The item as it is now, and the version that was pushed and shown. */
interface Showing {
  readonly item: AcceptedItem | PendingItem;
  readonly sent: Sent;
  readonly proof: VersionShown;
}

export interface NextLookUp {
  /** In ms since the epoch. */
  readonly at: number;
  readonly lastAnswer?: string;
}

/**
 * Confirms that accepted items are searchable.
 *
 * An item is *due* when the peer is likely to show it, which is the learned time-to-visible after
 * its push, and never before the hold has ended (see LookUp). One look-up for each item is the
 * rule. The first item of each batch is its *canary*: it is due a little earlier, and the
 * time-to-visible is learned from it. A look-up has one of these results:
 *
 * - this version is shown: the item is confirmed with the evidence;
 * - no document or an older version is shown: the item is due again, after an interval that doubles
 *   up to `confirm.maxInterval`;
 * - this version is shown without its text: the item is quarantined;
 * - the item should be shown by now, and the peer loses documents together: the item is lost (see
 *   Isolation);
 * - the item was not shown within `confirm.timeout`, and the peer answered all the while:
 *   FailureAttribution spends an attempt.
 *
 * An item *in flight* (its push left, and no answer was recorded) is looked up before another push.
 * It is confirmed if it is shown, and pushed again if it is not shown within three times the
 * time-to-visible.
 *
 * While pushes are under way, due look-ups wait for up to 10 s.
 */
export class ConfirmLoop implements Judge<PushedItem, Showing> {
  readonly #deps: UplinkDeps;
  readonly #attribution: FailureAttribution;
  readonly #lookUps: LookUpLoop<PushedItem, Showing>;
  readonly #timeToVisible: TimeToVisible;
  readonly #commits: IndexCommits;
  /** The time of the latest push among the confirmed items. */
  #shownSentAt = Number.NEGATIVE_INFINITY;

  constructor(deps: UplinkDeps, attribution: FailureAttribution) {
    this.#deps = deps;
    this.#attribution = attribution;
    this.#timeToVisible = new TimeToVisible(deps.state);
    this.#commits = new IndexCommits(deps);
    this.#lookUps = new LookUpLoop<PushedItem, Showing>(deps, this, {
      name: 'confirm',
      what: 'items that are due are not looked up',
      maxInMemory: LOOK_UPS_FACTOR * (deps.maxInMemory ?? MAX_IN_MEMORY),
      maxWaitForPushMs: MAX_WAIT_FOR_PUSH_MS,
      entries: () => deps.state.entries.slices({ status: ['accepted'] }),
      onFound: (entry) => {
        if (entry.status === 'accepted') this.resume(entry, entry.sent);
      },
    });
  }

  get health(): HealthCheck {
    return this.#lookUps.health;
  }

  /** Whether no look-up waits or is under way. */
  get isIdle(): boolean {
    return this.#lookUps.isIdle;
  }

  /**
   * The learned time from a push until the peer first shows the document, in ms; undefined until
   * the peer has shown one.
   */
  get timeToVisibleMs(): number | undefined {
    return this.#timeToVisible.learnedMs;
  }

  /** Returns the time of an item's next look-up and the reason of the last answer. */
  next(place: ItemKey): NextLookUp | undefined {
    const look = this.#lookUps.get(itemKeyText(place));
    if (look === undefined) return undefined;
    const at = Math.round(look.due);
    return look.lastAnswer === undefined ? { at } : { at, lastAnswer: look.lastAnswer };
  }

  /**
   * Schedules look-ups of the items that were accepted in one batch; must be called for each batch.
   */
  watch(items: readonly AcceptedItem[]): void {
    this.#lookUps.notify();
    const bytes = items.reduce((sum, { sent }) => sum + sent.size, 0);
    for (const [i, item] of items.entries())
      this.#add(item, item.sent, { bytes, isCanary: i === 0, mode: 'new' });
  }

  /**
   * Schedules the look-up of an item that was accepted earlier, or of one in flight whose push was
   * never answered.
   */
  resume(item: AcceptedItem | PendingItem, sent: Sent): void {
    if (this.#lookUps.get(itemKeyText(item))?.subject.sentAt === sent.at) return;
    // An earlier look-up may have been dropped for lack of room after an answer without the item.
    const mode = this.#lookUps.hasOverflowed ? 'unexpected' : 'new';
    this.#add(item, sent, { bytes: sent.size, isCanary: false, mode });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#lookUps.run(signal);
  }

  /**
   * Asks the peer to commit its index, unless that was done after `since`.
   * @returns whether the commit succeeded; if not, the caller has to wait for the usual time
   */
  commitIndex(since: number): Promise<boolean> {
    return this.#commits.since(since);
  }

  /**
   * Replaces this item's earlier look-up.
   * @param bytes the size of the batch that it was pushed in, which is indexed before the item is
   *   shown
   */
  #add(
    item: AcceptedItem | PendingItem,
    sent: Sent,
    {
      bytes,
      isCanary,
      mode,
    }: {
      readonly bytes: number;
      readonly isCanary: boolean;
      readonly mode: 'new' | 'unexpected';
    },
  ): void {
    const now = this.#deps.clock.now();
    const { typicalMs } = this.#timeToVisible;
    const hold = holdMs(this.#deps);
    // A time in the future comes from an earlier run whose clock was wrong.
    const since = item.status === 'pending' ? now : Math.min(now, item.since);
    const holdEndsAt = since + hold + (hold === 0 ? 0 : indexingMs(this.#deps, bytes));
    // Canaries are early; otherwise a peer that became faster would not be noticed.
    const likelyAt = since + typicalMs * (isCanary ? CANARY_SHARE : 1);
    const place = { folder: item.folder, path: item.path };
    this.#lookUps.add(
      new LookUp<PushedItem>(
        { place, sentAt: sent.at, since, holdEndsAt, isCanary },
        {
          key: itemKeyText(place),
          url: sent.url,
          due: Math.max(likelyAt, holdEndsAt),
          intervalMs: typicalMs / 4,
          mode,
          // No pass over accepted items finds one in flight.
          isEvictable: item.status === 'accepted',
        },
      ),
    );
  }

  judge({ mode, due, subject }: LookUp<PushedItem>, answer: Answer): Verdict<Showing> {
    const pushed = this.#pushedItem(subject);
    if (pushed === undefined) return { kind: 'void' };
    if (answer.kind !== 'document') return { kind: 'unusable', why: answer.failure.message };
    const proof = evidenceOf(answer.doc, pushed.sent);
    if (!proof.shown && !('isWithoutText' in proof)) return { kind: 'unexpected', why: proof.why };
    // Measured to the time when the look-up was due: the request may have waited in the queue.
    if (subject.isCanary && mode !== 'settling') this.#timeToVisible.learn(due - subject.since);
    const { item, sent } = pushed;
    const found = { item, sent, proof };
    return { kind: 'expected', found, provisionalMs: this.#provisionalMs(answer.doc) };
  }

  /** Returns the item and its push, if the item was neither pushed again nor confirmed. */
  #pushedItem({ place, sentAt }: PushedItem): Omit<Showing, 'proof'> | undefined {
    const item = this.#deps.state.get(place.folder, place.path);
    if (item?.status !== 'accepted' && item?.status !== 'pending') return undefined;
    const sent = item.status === 'accepted' ? item.sent : item.inFlight;
    return sent?.at === sentAt ? { item, sent } : undefined;
  }

  /**
   * Returns how long the document is still within the hold since its indexing, in ms; 0 if the peer
   * does not show when that was.
   */
  #provisionalMs({ loadDate, peerAt }: Partial<Peerdoc> = {}): number {
    if (loadDate === undefined || peerAt === undefined) return 0;
    const age = peerAt - loadDate;
    // A time in the future is in another time zone than it seems.
    return age < -ROUNDING_MS ? 0 : Math.max(0, holdMs(this.#deps) - ROUNDING_MS - age);
  }

  async settled(look: LookUp<PushedItem>, { item, sent, proof }: Showing): Promise<void> {
    const { clock, log, state } = this.#deps;
    if (!proof.shown) {
      this.#attribution.quarantine(item, TEXT_NOT_INDEXED);
      await state.commit();
      return;
    }
    const { folder, path, url } = item;
    const { sentAt } = look.subject;
    const now = clock.now();
    const took = Math.round(look.expectedSince(now) - sentAt);
    const note = 'the peer has it, though its answer never came';
    const inPeer = item.status === 'accepted' ? item : accepted(item, sent, now, note);
    state.put(confirmed(inPeer, { kind: proof.kind, at: now, shown: proof.text }, now));
    this.#shownSentAt = Math.max(this.#shownSentAt, sentAt);
    this.#attribution.shown(url);
    await state.commit();
    log.info(
      { event: 'confirmed', folder, path, url, evidence: proof.kind, tookMs: took },
      `confirmed ${itemName(item)} (${durationText(took)} after its push)`,
    );
  }

  async whenAgain({ subject }: LookUp<PushedItem>, answer: Answer): Promise<Again> {
    const item = this.#pushedItem(subject)?.item;
    if (item === undefined) return 'never';
    if (answer.kind === 'peerFailed') return 'later';
    const loss = this.#lossOf(subject, item, answer.began);
    if (loss === 'unsure') {
      await this.commitIndex(answer.began);
      return 'atOnce';
    }
    const { clock, queue } = this.#deps;
    const isOver =
      Math.min(clock.now() - subject.since, queue.answeringForMs) >= this.#timeoutMs(item);
    return loss === 'lost' || isOver ? 'never' : 'later';
  }

  async unsettled(
    { lastAnswer = '', subject }: LookUp<PushedItem>,
    answer: Answer,
    again: Again,
  ): Promise<void> {
    const item = this.#pushedItem(subject)?.item;
    if (item === undefined || answer.kind === 'peerFailed' || again === 'atOnce') return;
    if (again === 'later') {
      if (item.status === 'pending') return;
      this.#attribution.late(item, this.#overdueFrom(subject) - subject.since);
    } else if (item.status === 'pending') await this.#attribution.notTaken(item);
    else if (this.#lossOf(subject, item, answer.began) === 'lost')
      this.#attribution.lost(item, lastAnswer);
    else this.#attribution.notShown(item, this.#timeoutMs(item), lastAnswer);
    await this.#deps.state.commit();
  }

  #timeoutMs(item: AcceptedItem | PendingItem): number {
    return this.#attribution.timeoutMs(item, this.#timeToVisible.typicalMs);
  }

  /**
   * Returns whether the peer lost an item that it accepted. The look-up must have begun when the
   * peer should show the item, and after the peer committed its index at such a time: the result is
   * `unsure` before that commit.
   *
   * Two more conditions hold for an item that was pushed apart (see Isolation): the peer answered
   * all the time since its push, and it shows recent pushes. If the peer does not commit, one more
   * hold must have passed.
   */
  #lossOf(
    pushed: PushedItem,
    item: AcceptedItem | PendingItem,
    began: number,
  ): 'lost' | 'notLost' | 'unsure' {
    if (item.status === 'pending' || !this.#attribution.canBeLost(item)) return 'notLost';
    const { queue, settings } = this.#deps;
    const hold = holdMs(this.#deps);
    const wasPushedApart = this.#attribution.timesLost(item) > 0;
    const from =
      this.#overdueFrom(pushed) + (wasPushedApart && !this.#commits.lastSucceeded ? hold : 0);
    if (began < from) return 'notLost';
    const committedAt = this.#commits.lastAt;
    if (began < committedAt || committedAt < from) return 'unsure';
    if (!wasPushedApart) return 'lost';
    const recentMs = Math.max(settings.confirm.timeout, 2 * hold);
    const answeredSincePush = queue.answeringForMs >= began - pushed.sentAt;
    const showsRecent = this.#shownSentAt >= pushed.sentAt - recentMs;
    return answeredSincePush && showsRecent ? 'lost' : 'notLost';
  }

  /**
   * Returns when the peer should show the item: after the hold, or later if the peer is known to be
   * slow.
   */
  #overdueFrom({ holdEndsAt }: PushedItem): number {
    return holdEndsAt + Math.max(0, 1.25 * this.#timeToVisible.typicalMs - holdMs(this.#deps));
  }
}
