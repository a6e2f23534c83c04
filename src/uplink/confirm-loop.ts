import { PeersyncError } from '../lib/errors.js';
import { HealthCheck } from '../lib/health.js';
import { durationText } from '../lib/units.js';
import { evidenceOf, type Peerdoc } from '../peer/peerdoc.js';
import type { Place } from '../state/entries.js';
import type { AcceptedItem, Evidence, PendingItem, Sent } from '../state/entry.js';
import { accepted, confirmed, placeName } from '../state/entry.js';
import { HELD, ReadyQueue } from './backlog.js';
import { Background, goesThrough, holdMs, indexingMs, keyOf, type UplinkDeps } from './deps.js';
import { type FailureAttribution, TEXT_NOT_INDEXED, timesLost } from './failure-attribution.js';

const SHORTEST_INTERVAL_MS = 200;
/**
 * So long what is due waits while something is pushed: look-ups slow down pushes, and are sooner
 * done after them. In ms.
 */
const LONGEST_PUSH_MS = 10_000;
/** How much two moments in whole seconds may be further apart than they look, in ms. */
const WHOLE_SECONDS_MS = 2_000;
const VISIBLE_META = 'timeToVisibleMs';
/** From so many canaries the time-to-visible is learned. */
const REMEMBERED = 64;
const FIRST_GUESS_MS = 1_000;
const SHORTEST_MS = 50;
/**
 * Of looks twice as many are held as of pending items: a peer that takes 200 files a second and
 * shows them after a minute has 12,000 of them under way.
 */
const LOOKS_HELD = 2;

/**
 * So many documents, and characters of their URLs but for the last one, are in one request where it
 * may be several.
 */
const ASKED_AT_ONCE = 20;
const MOST_ASKED = 8_000;

/** One item that is being looked up. All times are in ms since the epoch. */
interface Look {
  readonly place: Place;
  /** Where it was sent. */
  readonly url: string;
  /** When it was sent, which tells this push from others. */
  readonly sentAt: number;
  /** When the peer took it, or may have taken it at the latest. */
  readonly since: number;
  /**
   * Until then nothing that the peer says proves anything; what is not shown from then on is late.
   */
  readonly heldUntil: number;
  /** Whether the time-to-visible is learned from it. */
  readonly isCanary: boolean;
  due: number;
  interval: number;
  /** Once it was not shown, a showing has to hold. */
  wasMissing: boolean;
  /** Since when it has been shown. */
  shownSince?: number | undefined;
  /** Why the last answer proved nothing. */
  why?: string;
  /** How many look-ups had been answered when one of this ended without an answer. */
  unanswered?: number;
}

export interface NextLook {
  /** In ms since the epoch. */
  readonly at: number;
  readonly lastAnswer?: string;
}

/**
 * Confirms that accepted items are searchable.
 *
 * An item is *due* when the peer is likely to show it, at the learned time-to-visible, so that one
 * look-up an item is the rule. The first of each batch is due a little earlier: the *canary*, from
 * which that time is learned. Looked up while due, an item is
 *
 * - shown in this version: confirmed with the evidence;
 * - not shown, or shown in an older version: due again, after a doubling interval up to
 *   `confirm.maxInterval`;
 * - this version, but none of its text is in the index: quarantined;
 * - not shown, though the peer should show it by now: lost, where the peer loses documents together
 *   (see Isolation);
 * - not shown by `confirm.timeout`, the peer answering all the while: given up, see
 *   FailureAttribution.
 *
 * A peer may show what it takes back soon after (YaCy does, for about 18 s after it indexed
 * something). Within the time to *hold* after a push (of the dialect, or `confirm.hold`) nothing it
 * says proves anything, and nothing is looked up. A first look-up after that counts; once it was
 * negative, a positive counts only when it is still there after the same time.
 *
 * An item *in flight* (its push left, no answer was recorded) is looked up the same way before it
 * is pushed again: shown, it is confirmed; not shown for three times the time-to-visible, it is
 * pushed again.
 *
 * While anything is pushed, what is due waits for up to 10 s more.
 *
 * What is accepted beyond the looks that are held (see ReadyQueue) waits in the state; so does an
 * item that was looked up in vain where there is no room for it.
 */
export class ConfirmLoop {
  readonly health = new HealthCheck('confirm', 'items that are due are not looked up', {
    busy: () => this.#nextInMs === 0 && this.#deps.queue.hasRoom('confirm'),
  });
  readonly #deps: UplinkDeps;
  readonly #attribution: FailureAttribution;
  readonly #work: Background;
  readonly #looks: ReadyQueue<Look>;
  /** The look-ups that are under way. */
  readonly #underWay = new Map<string, Look>();
  /**
   * After how long the last canaries were first shown, and what three of four of them took at most,
   * in ms.
   */
  readonly #seenAfterMs: number[] = [];
  #typicalMs = FIRST_GUESS_MS;
  /** How many look-ups the peer answered. */
  #answers = 0;
  /** When the latest of what is shown for good was sent. */
  #shownSentAt = Number.NEGATIVE_INFINITY;
  /** When the peer was last had commit its index. */
  #committedAt = Number.NEGATIVE_INFINITY;
  #committing: Promise<void> | undefined;
  /** Whether it did so the last time. */
  #hasCommitted = false;

  constructor(deps: UplinkDeps, attribution: FailureAttribution) {
    this.#deps = deps;
    this.#attribution = attribution;
    this.#work = new Background(deps.clock);
    const entries = () => deps.state.entries.slices({ status: ['accepted'] });
    this.#looks = new ReadyQueue(deps.clock, LOOKS_HELD * (deps.held ?? HELD), entries, () =>
      this.#work.notify(),
    );
    const known = deps.state.meta(VISIBLE_META);
    if (typeof known === 'number') this.#learn(known);
  }

  /** Whether nothing waits to be shown, and no look-up is under way. */
  get isIdle(): boolean {
    return this.#work.size === 0 && this.#looks.isIdle;
  }

  /**
   * The learned time from a push to its first showing, in ms; undefined as long as the peer has
   * shown nothing.
   */
  get timeToVisibleMs(): number | undefined {
    return this.#seenAfterMs.length === 0 ? undefined : this.#typicalMs;
  }

  /** When an item is looked up next, and what the last look-up said. */
  next(place: Place): NextLook | undefined {
    const look = this.#lookAt(keyOf(place));
    if (look === undefined) return undefined;
    const at = Math.round(look.due);
    return look.why === undefined ? { at } : { at, lastAnswer: look.why };
  }

  #lookAt(key: string): Look | undefined {
    return this.#looks.get(key) ?? this.#underWay.get(key);
  }

  /** Items that one batch brought to the peer; to be called for each batch. */
  watch(items: readonly AcceptedItem[]): void {
    // Nothing may be pushed any more: what is due need not wait for that.
    this.#work.notify();
    const bytes = items.reduce((sum, { sent }) => sum + sent.size, 0);
    for (const [i, item] of items.entries())
      this.#add(item, item.sent, bytes, { isCanary: i === 0 });
  }

  /**
   * An item that was accepted some time ago, or one in flight: its push left and was never
   * answered.
   */
  resume(item: AcceptedItem | PendingItem, sent: Sent): void {
    if (this.#lookAt(keyOf(item))?.sentAt === sent.at) return;
    // It may have left its place after it was looked up in vain.
    this.#add(item, sent, sent.size, { wasMissing: this.#looks.hasOverflowed });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#work.loop(() => this.#step(signal), signal);
  }

  async #step(signal: AbortSignal): Promise<void> {
    if (this.#looks.wantsMore)
      for (const entry of await this.#looks.more())
        if (entry.status === 'accepted') this.resume(entry, entry.sent);
    const waitMs = this.#nextInMs;
    if (waitMs === 0) {
      await this.#deps.queue.ready('confirm', signal);
      this.health.progress();
      const looks = this.#takeDue();
      if (looks.length > 0) this.#work.start(this.#lookUp(looks, signal));
    } else if (!this.#looks.wantsMore)
      await this.#work.wait(Math.min(waitMs, this.#looks.nextPassInMs));
  }

  /** What goes in one request. */
  #takeDue(): readonly Look[] {
    const most = this.#deps.embeddedPeer === undefined ? 1 : ASKED_AT_ONCE;
    const looks: Look[] = [];
    for (let asked = 0; looks.length < most && asked < MOST_ASKED && this.#nextInMs === 0; ) {
      const { first } = this.#looks;
      if (first === undefined) break;
      const key = keyOf(first.place);
      this.#looks.delete(key);
      this.#underWay.set(key, first);
      looks.push(first);
      asked += first.url.length;
    }
    return looks;
  }

  /** How long until a look-up may begin, in ms; infinite where nothing is due. */
  get #nextInMs(): number {
    const { clock, queue } = this.#deps;
    const { first } = this.#looks;
    if (first === undefined) return Number.POSITIVE_INFINITY;
    return queue.isBusy('push') ? Math.max(0, first.due + LONGEST_PUSH_MS - clock.now()) : 0;
  }

  /**
   * Takes the place of an earlier look at the same item. @param bytes of all that it was pushed
   * with, which is indexed before it is shown
   */
  #add(
    item: AcceptedItem | PendingItem,
    sent: Sent,
    bytes: number,
    { isCanary = false, wasMissing = false } = {},
  ): void {
    const now = this.#deps.clock.now();
    const hold = holdMs(this.#deps);
    // A time in the future is of an earlier run whose clock was wrong.
    const since = item.status === 'pending' ? now : Math.min(now, item.since);
    const look: Look = {
      place: { folder: item.folder, path: item.path },
      url: sent.url,
      sentAt: sent.at,
      since,
      heldUntil: since + hold + (hold === 0 ? 0 : indexingMs(bytes)),
      isCanary,
      wasMissing,
      due: 0,
      interval: Math.max(SHORTEST_INTERVAL_MS, this.#typicalMs / 4),
    };
    // A canary a little early, or a peer that became faster would never be found out.
    const likelyMs = this.#typicalMs * (isCanary ? 0.75 : 1);
    this.#plan(look, item, Math.max(since + likelyMs, look.heldUntil));
  }

  #plan(look: Look, item: AcceptedItem | PendingItem, due: number): void {
    look.due = due;
    // What was seen has to be seen again, and is soon done; what is in flight is in no pass.
    const isBounded = item.status === 'accepted' && look.shownSince === undefined;
    this.#looks.put(keyOf(look.place), look, due, isBounded);
  }

  async #lookUp(looks: readonly Look[], signal: AbortSignal): Promise<void> {
    const { clock, embeddedPeer, peer, queue } = this.#deps;
    const urls = looks.map(({ url }) => url);
    const [url = ''] = urls;
    const began = clock.now();
    let docs: readonly (Peerdoc | undefined)[] = [];
    let failure: string | undefined;
    try {
      docs = await queue.run('confirm', async (s) =>
        embeddedPeer === undefined
          ? [await peer.peerdoc({ url }, { signal: s })]
          : embeddedPeer.peerdocs(urls, { signal: s }),
      );
      this.#answers += 1;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof PeersyncError)) throw error;
      failure = error.message;
    }
    await Promise.all(looks.map((look, i) => this.#answered(look, began, failure ?? docs[i])));
  }

  /** @param answer what the peer shows; why there was no answer */
  async #answered(
    look: Look,
    lookedUpAt: number,
    answer: Peerdoc | string | undefined,
  ): Promise<void> {
    const { clock, state } = this.#deps;
    const { folder, path } = look.place;
    const key = keyOf(look.place);
    let began: number | undefined = lookedUpAt;
    if (typeof answer === 'string') {
      // No answer is the peer's trouble, unless it answered others since this one was last without.
      if (look.unanswered === undefined || look.unanswered === this.#answers) began = undefined;
      look.unanswered = this.#answers;
    }
    if (this.#underWay.get(key) === look) this.#underWay.delete(key);
    const item = state.get(folder, path);
    if (item?.status !== 'accepted' && item?.status !== 'pending') return;
    const sent = item.status === 'accepted' ? item.sent : item.inFlight;
    // It became another one, which has a look of its own.
    if (sent?.at !== look.sentAt) return;
    const doc = typeof answer === 'string' ? undefined : answer;
    const shown =
      typeof answer === 'string' ? { shown: false as const, why: answer } : evidenceOf(doc, sent);
    if (!shown.shown && !('isWithoutText' in shown)) {
      look.shownSince = undefined;
      look.wasMissing = true;
      look.why = shown.why;
      await this.#notShown(look, item, shown.why, began);
      return;
    }
    const now = clock.now();
    if (look.shownSince === undefined && look.isCanary) this.#learn(look.due - look.since);
    look.shownSince ??= now;
    const heldFrom = look.shownSince + holdMs(this.#deps);
    const countsFrom = Math.max(
      look.wasMissing ? heldFrom : Math.min(look.heldUntil, heldFrom),
      now + this.#freshMs(doc),
    );
    if (now < countsFrom) this.#plan(look, item, countsFrom);
    else if (shown.shown)
      await this.#confirm(look, item, sent, { kind: shown.kind, at: now, shown: shown.text });
    else {
      this.#attribution.quarantine(item, TEXT_NOT_INDEXED);
      await this.#deps.state.commit();
    }
  }

  /**
   * For how long a document is still too fresh to count, where the peer tells when it was indexed,
   * in ms.
   */
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
    const { clock, log, state } = this.#deps;
    const { folder, path, url } = item;
    const now = clock.now();
    const took = Math.round((look.shownSince ?? now) - look.sentAt);
    const note = 'the peer has it, though its answer never came';
    const inPeer = item.status === 'accepted' ? item : accepted(item, sent, now, note);
    state.put(confirmed(inPeer, evidence, now));
    this.#shownSentAt = Math.max(this.#shownSentAt, look.sentAt);
    this.#attribution.shown(url);
    await state.commit();
    log.info(
      { event: 'confirmed', folder, path, url, evidence: evidence.kind, tookMs: took },
      `confirmed ${placeName(item)} (${durationText(took)} after its push)`,
    );
  }

  /** @param began when the look-up began; undefined where there was no answer */
  async #notShown(
    look: Look,
    item: AcceptedItem | PendingItem,
    why: string,
    began: number | undefined,
  ): Promise<void> {
    const { clock, queue, settings, state } = this.#deps;
    const now = clock.now();
    const patience = this.#attribution.patienceMs(item, this.#typicalMs);
    const isOver =
      began !== undefined && Math.min(now - look.since, queue.answeringForMs) >= patience;
    const loss = began !== undefined && this.#isLost(look, item, began);
    if (loss === 'unsure') {
      await this.commitIndex(began ?? now);
      this.#plan(look, item, clock.now());
    } else if (loss || isOver) {
      if (item.status === 'pending') await this.#attribution.notTaken(item);
      else if (loss) this.#attribution.lost(item, why);
      else this.#attribution.notShown(item, patience, why);
      await state.commit();
    } else {
      this.#plan(look, item, now + look.interval);
      if (began !== undefined && item.status === 'accepted') {
        this.#attribution.late(item, this.#lateFrom(look) - look.since);
        await state.commit();
      }
      look.interval = Math.min(look.interval * 2, settings.confirm.maxInterval);
    }
  }

  /**
   * Whether the peer lost an item that it accepted. The look-up must have begun when the peer
   * should show it, and after the peer committed what it had indexed by then: `unsure` until that
   * is so.
   *
   * An item that was sent alone is only lost if all the while the peer answered, and shows what was
   * sent lately; and if it is not there after the hold once more, where the peer did not commit.
   */
  #isLost(look: Look, item: AcceptedItem | PendingItem, began: number): boolean | 'unsure' {
    if (item.status === 'pending' || !this.#attribution.canBeLost(item)) return false;
    const { queue, settings } = this.#deps;
    const hold = holdMs(this.#deps);
    const isAlone = timesLost(item) > 0;
    const from = this.#lateFrom(look) + (isAlone && !this.#hasCommitted ? hold : 0);
    if (began < from) return false;
    if (began < this.#committedAt || this.#committedAt < from) return 'unsure';
    if (!isAlone) return true;
    const latelyMs = Math.max(settings.confirm.timeout, 2 * hold);
    return (
      queue.answeringForMs >= began - look.sentAt && this.#shownSentAt >= look.sentAt - latelyMs
    );
  }

  /**
   * When the peer should show what it was sent: after the hold, or later if it is known to be slow.
   */
  #lateFrom(look: Look): number {
    return look.heldUntil + Math.max(0, 1.25 * this.#typicalMs - holdMs(this.#deps));
  }

  /**
   * Has the peer commit its index, unless it did since `since`. @returns whether it did; the usual
   * time has to do where it did not
   */
  async commitIndex(since: number): Promise<boolean> {
    if (this.#committedAt > since) return this.#hasCommitted;
    this.#committing ??= this.#commit();
    await this.#committing;
    return this.#hasCommitted;
  }

  async #commit(): Promise<void> {
    const { clock, queue, peer } = this.#deps;
    this.#hasCommitted = await goesThrough(
      queue.run('confirm', (signal) => peer.commitIndex({ signal })),
    );
    this.#committedAt = clock.now();
    this.#committing = undefined;
  }

  /**
   * A canary was shown first so long after it was taken. What counts is when that look-up was due:
   * it may have queued behind others.
   */
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
