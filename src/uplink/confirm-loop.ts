import { PeersyncError } from '../lib/errors.js';
import { HealthCheck } from '../lib/health.js';
import { durationText } from '../lib/units.js';
import { evidenceOf, type Peerdoc } from '../peer/peerdoc.js';
import type { ItemKey } from '../state/entries.js';
import type { AcceptedItem, Evidence, PendingItem, Sent } from '../state/entry.js';
import { accepted, confirmed, itemName } from '../state/entry.js';
import { MAX_IN_MEMORY, ReadyQueue } from './backlog.js';
import { Background, holdMs, indexingMs, itemKeyText, succeeds, type UplinkDeps } from './deps.js';
import { type FailureAttribution, TEXT_NOT_INDEXED } from './failure-attribution.js';

const SHORTEST_INTERVAL_MS = 200;
/**
 * Longest time that due look-ups wait for pushes to end, in ms. Look-ups slow pushes down, and are
 * faster after them.
 */
const MAX_WAIT_FOR_PUSH_MS = 10_000;
/** Maximum error of the difference between two times in whole seconds, in ms. */
const ROUNDING_MS = 2_000;
const VISIBLE_META = 'timeToVisibleMs';
/** Number of latest canaries from which the time-to-visible is learned. */
const MAX_SAMPLES = 64;
const INITIAL_TYPICAL_MS = 1_000;
const MIN_SAMPLE_MS = 50;
/**
 * Limit of look-ups in memory, as a multiple of the limit of pending items. A peer that accepts 200
 * files a second and shows them after a minute has 12,000 items to look up.
 */
const LOOK_UPS_FACTOR = 2;

/**
 * Limits of one request that looks up several documents: the number of URLs, and the number of
 * characters of all URLs but the last one.
 */
const MAX_URLS_PER_REQUEST = 20;
const MAX_URL_CHARACTERS = 8_000;

/** One item to look up. All times are in ms since the epoch. */
interface LookUp {
  readonly place: ItemKey;
  /** The URL that it was pushed to. */
  readonly url: string;
  /** The time of the push, which identifies it. */
  readonly sentAt: number;
  /** The latest time at which the peer may have accepted it. */
  readonly since: number;
  /**
   * The end of the hold: earlier answers prove nothing, and an item that is not shown after it is
   * late.
   */
  readonly holdEndsAt: number;
  /** Whether the time-to-visible is learned from it. */
  readonly isCanary: boolean;
  due: number;
  interval: number;
  /** Whether the peer ever answered without it: then it has to be shown for the whole hold. */
  wasMissing: boolean;
  /** The time since which every answer has shown it. */
  shownSince?: number | undefined;
  /** The reason why the last answer did not confirm it. */
  why?: string;
  /** The value of `#answers` when the last look-up of this item failed. */
  unanswered?: number;
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
 * its push. One look-up for each item is the rule. The first item of each batch is its *canary*: it
 * is due a little earlier, and the time-to-visible is learned from it. A look-up has one of these
 * results:
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
 * A peer may take back what it shows, up to some seconds after it indexed the document.
 * For that time after a push, the *hold* (of the dialect, or `confirm.hold`), no answer proves
 * anything, and no look-up is made. The first look-up after the hold counts. If it does not show
 * the item, a later one that shows it counts only when the item is still shown after another hold.
 *
 * An item *in flight* (its push left, and no answer was recorded) is looked up before another push.
 * It is confirmed if it is shown, and pushed again if it is not shown within three times the
 * time-to-visible.
 *
 * While pushes are under way, due look-ups wait for up to 10 s.
 *
 * Memory is bounded (see ReadyQueue): accepted items beyond the limit wait in the state.
 */
export class ConfirmLoop {
  readonly health = new HealthCheck('confirm', 'items that are due are not looked up', {
    busy: () => this.#nextInMs === 0 && this.#deps.queue.hasRoom('confirm'),
  });
  readonly #deps: UplinkDeps;
  readonly #attribution: FailureAttribution;
  readonly #work: Background;
  readonly #scheduled: ReadyQueue<LookUp>;
  /** Look-ups in a request, by key. */
  readonly #underWay = new Map<string, LookUp>();
  /**
   * The delays after which the latest canaries were first shown, in ms. `#typicalMs` is their third
   * quartile.
   */
  readonly #samplesMs: number[] = [];
  #typicalMs = INITIAL_TYPICAL_MS;
  /** The number of requests that the peer answered. */
  #answers = 0;
  /** The time of the latest push among the confirmed items. */
  #shownSentAt = Number.NEGATIVE_INFINITY;
  /** The time when the peer was last asked to commit its index. */
  #committedAt = Number.NEGATIVE_INFINITY;
  #committing: Promise<void> | undefined;
  /** Whether the last commit succeeded. */
  #hasCommitted = false;

  constructor(deps: UplinkDeps, attribution: FailureAttribution) {
    this.#deps = deps;
    this.#attribution = attribution;
    this.#work = new Background(deps.clock);
    const entries = () => deps.state.entries.slices({ status: ['accepted'] });
    this.#scheduled = new ReadyQueue(
      deps.clock,
      LOOK_UPS_FACTOR * (deps.maxInMemory ?? MAX_IN_MEMORY),
      entries,
      () => this.#work.notify(),
    );
    const known = deps.state.meta(VISIBLE_META);
    if (typeof known === 'number') this.#learn(known);
  }

  /** Whether no look-up waits or is under way. */
  get isIdle(): boolean {
    return this.#work.size === 0 && this.#scheduled.isIdle;
  }

  /**
   * The learned time from a push until the peer first shows the document, in ms; undefined until
   * the peer has shown one.
   */
  get timeToVisibleMs(): number | undefined {
    return this.#samplesMs.length === 0 ? undefined : this.#typicalMs;
  }

  /** Returns the time of an item's next look-up and the reason of the last answer. */
  next(place: ItemKey): NextLookUp | undefined {
    const look = this.#lookAt(itemKeyText(place));
    if (look === undefined) return undefined;
    const at = Math.round(look.due);
    return look.why === undefined ? { at } : { at, lastAnswer: look.why };
  }

  #lookAt(key: string): LookUp | undefined {
    return this.#scheduled.get(key) ?? this.#underWay.get(key);
  }

  /**
   * Schedules look-ups of the items that were accepted in one batch; must be called for each batch.
   */
  watch(items: readonly AcceptedItem[]): void {
    // That may have been the last push: due look-ups need not wait for pushes then.
    this.#work.notify();
    const bytes = items.reduce((sum, { sent }) => sum + sent.size, 0);
    for (const [i, item] of items.entries())
      this.#add(item, item.sent, bytes, { isCanary: i === 0 });
  }

  /**
   * Schedules the look-up of an item that was accepted earlier, or of one in flight whose push was
   * never answered.
   */
  resume(item: AcceptedItem | PendingItem, sent: Sent): void {
    if (this.#lookAt(itemKeyText(item))?.sentAt === sent.at) return;
    // An earlier look-up may have been dropped for lack of room after an answer without the item.
    this.#add(item, sent, sent.size, { wasMissing: this.#scheduled.hasOverflowed });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#work.loop(() => this.#step(signal), signal);
  }

  async #step(signal: AbortSignal): Promise<void> {
    if (this.#scheduled.wantsMore)
      for (const entry of await this.#scheduled.more())
        if (entry.status === 'accepted') this.resume(entry, entry.sent);
    const waitMs = this.#nextInMs;
    if (waitMs === 0) {
      await this.#deps.queue.ready('confirm', signal);
      this.health.progress();
      const looks = this.#takeDue();
      if (looks.length > 0) this.#work.start(this.#lookUp(looks, signal));
    } else if (!this.#scheduled.wantsMore)
      await this.#work.wait(Math.min(waitMs, this.#scheduled.nextPassInMs));
  }

  /** Takes the due look-ups that fit into one request. */
  #takeDue(): readonly LookUp[] {
    const most = this.#deps.embeddedPeer === undefined ? 1 : MAX_URLS_PER_REQUEST;
    const looks: LookUp[] = [];
    for (
      let asked = 0;
      looks.length < most && asked < MAX_URL_CHARACTERS && this.#nextInMs === 0;
    ) {
      const { first } = this.#scheduled;
      if (first === undefined) break;
      const key = itemKeyText(first.place);
      this.#scheduled.delete(key);
      this.#underWay.set(key, first);
      looks.push(first);
      asked += first.url.length;
    }
    return looks;
  }

  /** The time until a look-up may begin, in ms; infinite if none waits. */
  get #nextInMs(): number {
    const { clock, queue } = this.#deps;
    const { first } = this.#scheduled;
    if (first === undefined) return Number.POSITIVE_INFINITY;
    return queue.isBusy('push') ? Math.max(0, first.due + MAX_WAIT_FOR_PUSH_MS - clock.now()) : 0;
  }

  /**
   * Replaces this item's earlier look-up.
   * @param bytes the size of the batch that it was pushed in, which is indexed before the item is
   *   shown
   */
  #add(
    item: AcceptedItem | PendingItem,
    sent: Sent,
    bytes: number,
    { isCanary = false, wasMissing = false } = {},
  ): void {
    const now = this.#deps.clock.now();
    const hold = holdMs(this.#deps);
    // A time in the future comes from an earlier run whose clock was wrong.
    const since = item.status === 'pending' ? now : Math.min(now, item.since);
    const look: LookUp = {
      place: { folder: item.folder, path: item.path },
      url: sent.url,
      sentAt: sent.at,
      since,
      holdEndsAt: since + hold + (hold === 0 ? 0 : indexingMs(this.#deps, bytes)),
      isCanary,
      wasMissing,
      due: 0,
      interval: Math.max(SHORTEST_INTERVAL_MS, this.#typicalMs / 4),
    };
    // Canaries are early; otherwise a peer that became faster would not be noticed.
    const likelyMs = this.#typicalMs * (isCanary ? 0.75 : 1);
    this.#schedule(look, item, Math.max(since + likelyMs, look.holdEndsAt));
  }

  #schedule(look: LookUp, item: AcceptedItem | PendingItem, due: number): void {
    look.due = due;
    // An item that was shown is soon done, and no pass over accepted items finds one in flight:
    // both are kept beyond the limit.
    const isBounded = item.status === 'accepted' && look.shownSince === undefined;
    this.#scheduled.put(itemKeyText(look.place), look, due, isBounded);
  }

  async #lookUp(looks: readonly LookUp[], signal: AbortSignal): Promise<void> {
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

  /**
   * Applies the answer to one look-up.
   * @param answer the document that the peer shows, or the error message
   */
  async #answered(
    look: LookUp,
    lookedUpAt: number,
    answer: Peerdoc | string | undefined,
  ): Promise<void> {
    const { clock, state } = this.#deps;
    const { folder, path } = look.place;
    const key = itemKeyText(look.place);
    let began: number | undefined = lookedUpAt;
    if (typeof answer === 'string') {
      // A failed look-up is the peer's failure, unless the peer answered others since this item's
      // previous failed one.
      if (look.unanswered === undefined || look.unanswered === this.#answers) began = undefined;
      look.unanswered = this.#answers;
    }
    if (this.#underWay.get(key) === look) this.#underWay.delete(key);
    const item = state.get(folder, path);
    if (item?.status !== 'accepted' && item?.status !== 'pending') return;
    const sent = item.status === 'accepted' ? item.sent : item.inFlight;
    // The item was pushed again, and has a new look-up.
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
      look.wasMissing ? heldFrom : Math.min(look.holdEndsAt, heldFrom),
      now + this.#freshMs(doc),
    );
    if (now < countsFrom) this.#schedule(look, item, countsFrom);
    else if (shown.shown)
      await this.#confirm(look, item, sent, { kind: shown.kind, at: now, shown: shown.text });
    else {
      this.#attribution.quarantine(item, TEXT_NOT_INDEXED);
      await this.#deps.state.commit();
    }
  }

  /**
   * Returns how long the document is still within the hold since its indexing, in ms; 0 if the peer
   * does not tell when that was.
   */
  #freshMs({ loadDate, peerAt }: Partial<Peerdoc> = {}): number {
    if (loadDate === undefined || peerAt === undefined) return 0;
    const age = peerAt - loadDate;
    // A time in the future is in another time zone than it seems.
    return age < -ROUNDING_MS ? 0 : Math.max(0, holdMs(this.#deps) - ROUNDING_MS - age);
  }

  async #confirm(
    look: LookUp,
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
      `confirmed ${itemName(item)} (${durationText(took)} after its push)`,
    );
  }

  /**
   * Applies an answer that does not show this version.
   * @param began the start of the look-up; undefined if the failure to answer is the peer's
   */
  async #notShown(
    look: LookUp,
    item: AcceptedItem | PendingItem,
    why: string,
    began: number | undefined,
  ): Promise<void> {
    const { clock, queue, settings, state } = this.#deps;
    const now = clock.now();
    const timeoutMs = this.#attribution.timeoutMs(item, this.#typicalMs);
    const isOver =
      began !== undefined && Math.min(now - look.since, queue.answeringForMs) >= timeoutMs;
    const loss = began !== undefined && this.#isLost(look, item, began);
    if (loss === 'unsure') {
      await this.commitIndex(began ?? now);
      this.#schedule(look, item, clock.now());
    } else if (loss || isOver) {
      if (item.status === 'pending') await this.#attribution.notTaken(item);
      else if (loss) this.#attribution.lost(item, why);
      else this.#attribution.notShown(item, timeoutMs, why);
      await state.commit();
    } else {
      this.#schedule(look, item, now + look.interval);
      if (began !== undefined && item.status === 'accepted') {
        this.#attribution.late(item, this.#overdueFrom(look) - look.since);
        await state.commit();
      }
      look.interval = Math.min(look.interval * 2, settings.confirm.maxInterval);
    }
  }

  /**
   * Whether the peer lost an item that it accepted. The look-up must have begun when the peer
   * should show the item, and after the peer committed its index at such a time: the result is
   * `unsure` before that commit.
   *
   * Two more conditions hold for an item that was pushed alone: the peer answered all the time
   * since its push, and it shows recent pushes. If the peer does not commit, one more hold must
   * have passed.
   */
  #isLost(look: LookUp, item: AcceptedItem | PendingItem, began: number): boolean | 'unsure' {
    if (item.status === 'pending' || !this.#attribution.canBeLost(item)) return false;
    const { queue, settings } = this.#deps;
    const hold = holdMs(this.#deps);
    const isAlone = this.#attribution.timesLost(item) > 0;
    const from = this.#overdueFrom(look) + (isAlone && !this.#hasCommitted ? hold : 0);
    if (began < from) return false;
    if (began < this.#committedAt || this.#committedAt < from) return 'unsure';
    if (!isAlone) return true;
    const latelyMs = Math.max(settings.confirm.timeout, 2 * hold);
    return (
      queue.answeringForMs >= began - look.sentAt && this.#shownSentAt >= look.sentAt - latelyMs
    );
  }

  /**
   * Returns when the peer should show the item: after the hold, or later if the peer is known to be
   * slow.
   */
  #overdueFrom(look: LookUp): number {
    return look.holdEndsAt + Math.max(0, 1.25 * this.#typicalMs - holdMs(this.#deps));
  }

  /**
   * Asks the peer to commit its index, unless that was done after `since`.
   * @returns whether the commit succeeded; if not, the caller has to wait for the usual time
   */
  async commitIndex(since: number): Promise<boolean> {
    if (this.#committedAt > since) return this.#hasCommitted;
    this.#committing ??= this.#commit();
    await this.#committing;
    return this.#hasCommitted;
  }

  async #commit(): Promise<void> {
    const { clock, queue, peer } = this.#deps;
    this.#hasCommitted = await succeeds(
      queue.run('confirm', (signal) => peer.commitIndex({ signal })),
    );
    this.#committedAt = clock.now();
    this.#committing = undefined;
  }

  /**
   * Learns from the delay of a canary's first showing. It is measured to the time when that look-up
   * was due, because the request may have waited in the queue.
   */
  #learn(ms: number): void {
    this.#samplesMs.push(Math.max(MIN_SAMPLE_MS, ms));
    if (this.#samplesMs.length > MAX_SAMPLES) this.#samplesMs.shift();
    const sorted = this.#samplesMs.toSorted((a, b) => a - b);
    this.#typicalMs = sorted[Math.floor((sorted.length - 1) * 0.75)] ?? INITIAL_TYPICAL_MS;
    const typical = Math.round(this.#typicalMs);
    const known = this.#deps.state.meta(VISIBLE_META);
    if (typeof known === 'number' && Math.abs(known - typical) < known / 5) return;
    this.#deps.state.setMeta(VISIBLE_META, typical);
  }
}
