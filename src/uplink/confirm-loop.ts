import { PeersyncError } from '../lib/errors.js';
import { HealthCheck } from '../lib/health.js';
import { durationText } from '../lib/units.js';
import { evidenceOf, type Peerdoc } from '../peer/peerdoc.js';
import type { Place } from '../state/entries.js';
import type { AcceptedItem, Entry, Evidence, PendingItem, Sent } from '../state/entry.js';
import { accepted, confirmed } from '../state/transitions.js';
import { Background, holdMs, keyOf, placeName, type UplinkDeps } from './deps.js';
import type { FailureAttribution } from './failure-attribution.js';
import type { Isolation } from './isolation.js';

const SHORTEST_INTERVAL_MS = 200;
/** So long what is due waits while something is pushed: look-ups slow down pushes, and are sooner done after them. In ms. */
const LONGEST_WAIT_MS = 10_000;
/** A YaCy takes 9 s to index 5 MB of text and 57 s for 50 MB; nothing else is indexed meanwhile. */
const INDEXING_MS_PER_BYTE = 2_000 / 1e6;
const LONGEST_INDEXING_MS = 60_000;
/** How much two moments in whole seconds may be further apart than they look, in ms. */
const WHOLE_SECONDS_MS = 2_000;
const VISIBLE_META = 'timeToVisibleMs';
/** From so many scouts the time-to-visible is learned. */
const REMEMBERED = 64;
const FIRST_GUESS_MS = 1_000;
const SHORTEST_MS = 50;
/**
 * So many looks are held; what else is accepted waits in the state. A peer that takes 200 files a second and shows them after a
 * minute has 12,000 of them under way.
 */
const HELD = 30_000;
/** An item that left its place waits for so long at least, or there would be a pass for each of them. In ms. */
const BETWEEN_PASSES_MS = 30_000;

/** One item that is being looked up. All times are in ms since the epoch. */
interface Look {
  readonly place: Place;
  /** Where it was sent. */
  readonly url: string;
  /** When it was sent, which tells this push from others. */
  readonly sentAt: number;
  /** The push was never answered: a negative leads to another push and not to a failed attempt. */
  readonly isDoubt: boolean;
  /** When the peer took it, or may have taken it at the latest. */
  readonly since: number;
  /** Until then nothing that the peer says proves anything; what is not shown from then on is late. */
  readonly heldUntil: number;
  /** Whether the time-to-visible is learned from it. */
  readonly isScout: boolean;
  due: number;
  interval: number;
  /** Once it was not shown, a showing has to hold. */
  wasMissing: boolean;
  /** Since when it has been shown. */
  shownSince: number | undefined;
  /** Why the last answer proved nothing. */
  why: string | undefined;
  /** How many look-ups had been answered when one of this ended without an answer. */
  unanswered: number | undefined;
}

/** What was known when a look-up began. */
interface Before {
  readonly began: number;
  /** When the latest of what was shown for good had been sent. */
  readonly shownSentAt: number;
}

export interface NextLook {
  /** In ms since the epoch. */
  readonly at: number;
  readonly lastAnswer?: string;
}

/**
 * Confirms that accepted items are searchable.
 *
 * An item is *due* when the peer is likely to show it, at the learned time-to-visible, so that one look-up an item is the rule. The
 * first of each batch is due a little earlier: the scout, from which that time is learned. Looked up while due, an item is
 *
 * - shown in this version: confirmed with the evidence;
 * - not shown, or shown in an older version: due again, after a doubling interval up to `confirm.maxInterval`;
 * - this version, but none of its text is in the index: quarantined;
 * - not shown, though the peer should show it by now: lost, where the peer loses documents together (see Isolation);
 * - not shown by `confirm.timeout`, the peer answering all the while: given up, see FailureAttribution.
 *
 * A peer may show what it takes back soon after (YaCy does, for about 18 s after it indexed something). Within the time to
 * *hold* after a push (of the dialect, or `confirm.hold`) nothing it says proves anything, and nothing is looked up. A
 * first look-up after that counts; once it was negative, a positive counts only when it is still there after the same time.
 *
 * An item *in doubt* (its push left, no answer was recorded) is looked up the same way before it is pushed again: shown,
 * it is confirmed; not shown for three times the time-to-visible, the doubt is over and it is pushed.
 *
 * While anything is pushed, what is due waits for up to 10 s more.
 *
 * Looks at up to 30,000 items are held. What is accepted beyond that is taken up by a pass over the state when most of these are
 * done, so that memory does not follow how far pushes run ahead. An item that is late then leaves its place to others until the next pass.
 */
export class ConfirmLoop {
  readonly health = new HealthCheck('confirm', 'items that are due are not looked up', {
    busy: () => this.#nextInMs === 0 && this.#deps.queue.hasRoom('confirm'),
  });
  readonly #deps: UplinkDeps;
  readonly #attribution: FailureAttribution;
  readonly #isolation: Isolation;
  readonly #work: Background;
  readonly #looks = new Map<string, Look>();
  /** When the next pass is to begin; at first all that is accepted is in the state only. */
  #nextPass = 0;
  #pass: AsyncGenerator<Iterable<Entry>> | undefined;
  /** Whether a pass may come upon items that were looked up in vain. */
  #hasLeftSome = false;
  /** Those that are due, the first one first. */
  readonly #due: Look[] = [];
  /** After how long the last scouts were first shown, and what three of four of them took at most, in ms. */
  readonly #seenAfterMs: number[] = [];
  #typicalMs = FIRST_GUESS_MS;
  /** How many look-ups the peer answered. */
  #answers = 0;
  /** When the latest of what is shown for good was sent. */
  #shownSentAt = Number.NEGATIVE_INFINITY;
  /** When a look-up was last left without an answer, and when the peer was last had commit its index. */
  #unansweredAt = Number.NEGATIVE_INFINITY;
  #committedAt = Number.NEGATIVE_INFINITY;
  #committing: Promise<void> | undefined;
  /** Whether it did so the last time. */
  #hasCommitted = false;

  constructor(deps: UplinkDeps, attribution: FailureAttribution, isolation: Isolation) {
    this.#deps = deps;
    this.#attribution = attribution;
    this.#isolation = isolation;
    this.#work = new Background(deps.clock);
    const known = deps.state.meta(VISIBLE_META);
    if (typeof known === 'number') this.#learn(known);
  }

  /** Whether nothing waits to be shown, and no look-up is under way. */
  get isIdle(): boolean {
    return this.#looks.size === 0 && this.#work.size === 0 && !this.#hasMore;
  }

  get timeToVisibleMs(): number {
    return this.#typicalMs;
  }

  /** When an item is looked up next, and what the last look-up said. */
  next(place: Place): NextLook | undefined {
    const look = this.#looks.get(keyOf(place));
    if (look === undefined) return undefined;
    const at = Math.round(look.due);
    return look.why === undefined ? { at } : { at, lastAnswer: look.why };
  }

  /** Items that one batch brought to the peer; to be called for each batch. */
  watch(items: readonly AcceptedItem[]): void {
    // Nothing may be pushed any more: what is due need not wait for that.
    this.#work.notify();
    if (this.#isFull) return;
    const bytes = items.reduce((sum, { sent }) => sum + sent.size, 0);
    const heldUntil = this.#heldUntil(this.#deps.clock.now(), bytes);
    for (const [i, item] of items.entries()) this.#add(item, item.sent, heldUntil, { isScout: i === 0 });
  }

  /** An item that was accepted some time ago, or one in doubt: its push left and was never answered. */
  resume(item: AcceptedItem | PendingItem, sent: Sent): void {
    const look = this.#looks.get(keyOf(item));
    if (look?.sentAt === sent.at && look.isDoubt === (item.status === 'pending')) return;
    if (item.status === 'accepted' && this.#isFull) return;
    // It may have left its place after it was looked up in vain.
    const wasMissing = this.#hasLeftSome;
    this.#add(item, sent, this.#heldUntil(this.#sinceOf(item), sent.size), { wasMissing });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#work.loop(() => this.#step(signal), signal);
  }

  async #step(signal: AbortSignal): Promise<void> {
    if (this.#wantsMore) await this.#takeUpMore();
    const waitMs = this.#nextInMs;
    if (waitMs === 0) {
      await this.#deps.queue.ready('confirm', signal);
      const look = this.#take();
      this.health.progress();
      if (look !== undefined) this.#work.start(this.#lookUp(look, signal));
    } else if (!this.#wantsMore) await this.#work.wait(waitMs);
  }

  /** Whether no more is held; then it is noted that there is more. */
  get #isFull(): boolean {
    if (this.#looks.size < HELD) return false;
    this.#nextPass = 0;
    return true;
  }

  /** Whether accepted items may be in the state that are not held. */
  get #hasMore(): boolean {
    return this.#nextPass < Number.POSITIVE_INFINITY || this.#pass !== undefined;
  }

  get #wantsMore(): boolean {
    const isDue = this.#pass !== undefined || this.#nextPass <= this.#deps.clock.now();
    return isDue && this.#looks.size < HELD / 2;
  }

  /** Takes up the next slice of what is accepted in the state. */
  async #takeUpMore(): Promise<void> {
    if (this.#pass === undefined) this.#nextPass = Number.POSITIVE_INFINITY;
    this.#pass ??= this.#deps.state.entries.slices({ status: ['accepted'] });
    const { value, done } = await this.#pass.next();
    if (done) this.#pass = undefined;
    for (const entry of value ?? []) if (entry.status === 'accepted') this.resume(entry, entry.sent);
  }

  /** How long until a look-up may begin, in ms; infinite where nothing is due. */
  get #nextInMs(): number {
    const { clock, queue } = this.#deps;
    const [first] = this.#due;
    if (first === undefined) return Number.POSITIVE_INFINITY;
    return queue.isBusy('push') ? Math.max(0, first.due + LONGEST_WAIT_MS - clock.now()) : 0;
  }

  #take(): Look | undefined {
    for (let look = this.#due.shift(); look !== undefined; look = this.#due.shift()) {
      // It is not planned anew while it is looked up.
      look.due = Math.min(look.due, this.#deps.clock.now());
      if (this.#looks.get(keyOf(look.place)) === look) return look;
    }
    return undefined;
  }

  /** From when on what was taken `at` is shown for good, if it is shown: it has to be indexed before. */
  #heldUntil(at: number, bytes: number): number {
    const hold = holdMs(this.#deps);
    return hold === 0 ? at : at + hold + Math.min(LONGEST_INDEXING_MS, bytes * INDEXING_MS_PER_BYTE);
  }

  /** When the peer took the item, or may have taken it at the latest. A time in the future was before the clock was set. */
  #sinceOf(item: AcceptedItem | PendingItem): number {
    const now = this.#deps.clock.now();
    return item.status === 'pending' ? now : Math.min(now, item.since);
  }

  /** Takes the place of an earlier look at the same item. */
  #add(
    item: AcceptedItem | PendingItem,
    sent: Sent,
    heldUntil: number,
    { isScout = false, wasMissing = false },
  ): void {
    const look: Look = {
      place: { folder: item.folder, path: item.path },
      url: sent.url,
      sentAt: sent.at,
      isDoubt: item.status === 'pending',
      since: this.#sinceOf(item),
      heldUntil,
      isScout,
      due: 0,
      interval: Math.max(SHORTEST_INTERVAL_MS, this.#typicalMs / 4),
      wasMissing,
      shownSince: undefined,
      why: undefined,
      unanswered: undefined,
    };
    this.#looks.set(keyOf(look.place), look);
    // A scout a little early, or a peer that became faster would never be found out.
    const likelyMs = this.#typicalMs * (isScout ? 0.75 : 1);
    this.#plan(look, Math.max(look.since + likelyMs, heldUntil));
  }

  /** The look is due then, unless it is planned anew or forgotten meanwhile. */
  #plan(look: Look, due: number): void {
    const { clock } = this.#deps;
    const fallDue = () => {
      if (look.due !== due || this.#looks.get(keyOf(look.place)) !== look) return;
      this.#due.push(look);
      this.#work.notify();
    };
    look.due = due;
    const leftMs = Math.ceil(due - clock.now());
    if (leftMs > 0) clock.after(leftMs, fallDue, { background: true });
    else fallDue();
  }

  #forget(look: Look): void {
    if (this.#looks.get(keyOf(look.place)) === look) this.#looks.delete(keyOf(look.place));
  }

  /** The item that a look is about, with what was sent of it; undefined, and forgotten, when it has become another one. */
  #itemOf(look: Look): { readonly item: AcceptedItem | PendingItem; readonly sent: Sent } | undefined {
    const item = this.#deps.state.get(look.place.folder, look.place.path);
    const isIts =
      this.#looks.get(keyOf(look.place)) === look && item?.status === (look.isDoubt ? 'pending' : 'accepted');
    const sent = isIts && item.status === 'pending' ? item.doubt : item?.sent;
    if (isIts && sent?.at === look.sentAt) return { item, sent };
    this.#forget(look);
    return undefined;
  }

  async #lookUp(look: Look, signal: AbortSignal): Promise<void> {
    const { clock, queue, peer } = this.#deps;
    const { url } = look;
    const before: Before = { began: clock.now(), shownSentAt: this.#shownSentAt };
    let doc: Peerdoc | undefined;
    let failure: PeersyncError | undefined;
    let isAnswered = true;
    try {
      doc = await queue.run('confirm', (s) => peer.peerdoc({ url }, { signal: s }));
      this.#answers += 1;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof PeersyncError)) throw error;
      failure = error;
      // No answer is the peer's trouble, unless it answered others since this one was last without.
      this.#unansweredAt = clock.now();
      isAnswered = look.unanswered !== undefined && look.unanswered < this.#answers;
      look.unanswered = this.#answers;
    }
    const found = this.#itemOf(look);
    if (found === undefined) return;
    const { item, sent } = found;
    const shown = failure ? { shown: false as const, why: failure.message } : evidenceOf(doc, sent);
    if (!shown.shown && !('isWithoutText' in shown)) {
      look.shownSince = undefined;
      look.wasMissing = true;
      look.why = shown.why;
      await this.#notShown(look, item, shown.why, isAnswered ? before : undefined);
      return;
    }
    const now = clock.now();
    if (look.shownSince === undefined && look.isScout) this.#learn(look.due - look.since);
    look.shownSince ??= now;
    const heldFrom = look.shownSince + holdMs(this.#deps);
    const countsFrom = Math.max(
      look.wasMissing ? heldFrom : Math.min(look.heldUntil, heldFrom),
      now + this.#freshMs(doc),
    );
    if (now < countsFrom) this.#plan(look, countsFrom);
    else if (shown.shown)
      await this.#confirm(look, item, sent, { kind: shown.kind, at: now, shown: shown.text });
    else {
      this.#forget(look);
      this.#attribution.withoutText(item);
      await this.#deps.commit();
    }
  }

  /** For how long a document is still too fresh to count, where the peer tells when it was indexed, in ms. */
  #freshMs({ loadDate, peerAt }: Partial<Peerdoc> = {}): number {
    if (loadDate === undefined || peerAt === undefined) return 0;
    const age = peerAt - loadDate;
    // One from the future is of another time zone than it seems.
    return age < -WHOLE_SECONDS_MS ? 0 : Math.max(0, holdMs(this.#deps) - WHOLE_SECONDS_MS - age);
  }

  async #confirm(
    look: Look,
    item: AcceptedItem | PendingItem,
    sent: Sent,
    evidence: Evidence,
  ): Promise<void> {
    const { clock, commit, log, state } = this.#deps;
    const { folder, path, url } = item;
    const now = clock.now();
    const took = Math.round((look.shownSince ?? now) - look.sentAt);
    this.#forget(look);
    const inPeer =
      item.status === 'accepted'
        ? item
        : accepted(item, sent, now, 'the peer has it, though its answer never came');
    state.put(confirmed(inPeer, evidence, now));
    this.#shownSentAt = Math.max(this.#shownSentAt, look.sentAt);
    this.#attribution.shown(item, sent.at);
    await commit();
    log.info(
      { event: 'confirmed', folder, path, url, evidence: evidence.kind, tookMs: took },
      `confirmed ${placeName(item)} (${durationText(took)} after its push)`,
    );
  }

  /** @param before undefined where there was no answer */
  async #notShown(
    look: Look,
    item: AcceptedItem | PendingItem,
    why: string,
    before: Before | undefined,
  ): Promise<void> {
    const { clock, commit, queue, settings } = this.#deps;
    const loss = before !== undefined && this.#isLost(look, item, before);
    const now = clock.now();
    if (loss === 'unsure') {
      await this.commitIndex(before?.began ?? now);
      this.#plan(look, clock.now());
      return;
    }
    const patience = this.#attribution.patienceMs(item, this.#typicalMs);
    const isOver = before !== undefined && Math.min(now - look.since, queue.answeringForMs) >= patience;
    if (loss !== true && !isOver) {
      this.#plan(look, now + look.interval);
      look.interval = Math.min(look.interval * 2, settings.confirm.maxInterval);
      const doOthersWait = this.#hasMore && this.#looks.size >= HELD / 2;
      if (!doOthersWait || look.isDoubt || now < this.#lateFrom(look)) return;
      // It leaves its place to others, and is taken up by the next pass.
      this.#forget(look);
      this.#nextPass = Math.min(this.#nextPass, now + BETWEEN_PASSES_MS);
      this.#hasLeftSome = true;
      return;
    }
    this.#forget(look);
    if (item.status === 'pending') await this.#attribution.doubtOver(item);
    else if (loss !== true) this.#attribution.notShown(item, patience, why);
    else this.#attribution.lost(item, why);
    await commit();
  }

  /**
   * Whether the peer lost an item that it accepted. The look-up must have begun when the peer should show it, and after the peer
   * committed what it had indexed by then: `unsure` until that is so.
   *
   * An item that was sent alone is only lost if all the while the peer answered, and shows what was sent lately; and if it is not
   * there after the hold once more, where the peer did not commit.
   */
  #isLost(look: Look, item: AcceptedItem | PendingItem, { began, shownSentAt }: Before): boolean | 'unsure' {
    if (item.status === 'pending' || !this.#attribution.canBeLost(item)) return false;
    const { queue, settings } = this.#deps;
    const isAlone = this.#isolation.isAlone(item);
    const from = this.#lateFrom(look) + (isAlone && !this.#hasCommitted ? holdMs(this.#deps) : 0);
    if (began < from) return false;
    if (began < this.#committedAt || this.#committedAt < from) return 'unsure';
    if (isAlone) {
      const latelyMs = Math.max(settings.confirm.timeout, 2 * holdMs(this.#deps));
      const isUninterrupted = queue.answeringForMs >= began - look.sentAt && this.#unansweredAt < look.sentAt;
      return isUninterrupted && shownSentAt >= look.sentAt - latelyMs;
    }
    // Where nothing was ever shown, to part the items once is enough.
    return shownSentAt > Number.NEGATIVE_INFINITY || (item.attempts === 0 && !this.#isolation.has(item));
  }

  /** When the peer should show what it was sent: after the hold, or later if it is known to be slow. */
  #lateFrom(look: Look): number {
    return look.heldUntil + Math.max(0, 1.25 * this.#typicalMs - holdMs(this.#deps));
  }

  /** Has the peer commit its index, unless it did since `since`. @returns whether it did; the usual time has to do where it did not */
  async commitIndex(since: number): Promise<boolean> {
    if (this.#committedAt > since) return this.#hasCommitted;
    this.#committing ??= this.#commit();
    await this.#committing;
    return this.#hasCommitted;
  }

  async #commit(): Promise<void> {
    const { clock, queue, log, peer } = this.#deps;
    try {
      await queue.run('confirm', (signal) => peer.commitIndex({ signal }));
      this.#hasCommitted = true;
    } catch (error) {
      if (!(error instanceof PeersyncError)) throw error;
      const { code, message } = error;
      this.#hasCommitted = false;
      log.debug({ event: 'commit', code }, `the peer did not commit its index: ${message}`);
    }
    this.#committedAt = clock.now();
    this.#committing = undefined;
  }

  /** A scout was shown first so long after it was taken. What counts is when that look-up was due: it may have queued behind others. */
  #learn(ms: number): void {
    this.#seenAfterMs.push(Math.max(SHORTEST_MS, ms));
    if (this.#seenAfterMs.length > REMEMBERED) this.#seenAfterMs.shift();
    const sorted = this.#seenAfterMs.toSorted((a, b) => a - b);
    this.#typicalMs = sorted[Math.floor((sorted.length - 1) * 0.75)] ?? FIRST_GUESS_MS;
    const typical = Math.round(this.#typicalMs);
    const known = this.#deps.state.meta(VISIBLE_META);
    if (typeof known === 'number' && Math.abs(known - typical) < known / 5) return;
    this.#deps.state.setMeta(VISIBLE_META, typical);
  }
}
