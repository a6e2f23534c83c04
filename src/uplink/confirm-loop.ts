import { PeersyncError } from '../lib/errors.js';
import { HealthCheck } from '../lib/health.js';
import { durationText } from '../lib/units.js';
import { evidenceOf } from '../peer/peerdoc.js';
import type { Place } from '../state/entries.js';
import type { AcceptedItem, PendingItem, Sent } from '../state/entry.js';
import { accepted, confirmed } from '../state/transitions.js';
import { GivingUp, type Loss } from './giving-up.js';
import type { Isolation } from './isolation.js';
import { type DoubtOver, type Look, Looks, type NewLook, type NextLook } from './looks.js';
import { placeName, placeOf, roomFor, type UplinkParts } from './parts.js';
import { BackgroundWork, Signal } from './signal.js';
import type { Hold } from './visibility.js';
import { Visibility } from './visibility.js';

const SHORTEST_INTERVAL_MS = 200;
/** So long what is due waits while something is pushed: look-ups slow down pushes, and are sooner done after them. In ms. */
const LONGEST_WAIT_MS = 10_000;

/** What was known when a look-up began. */
interface Before {
  readonly began: number;
  /** When the latest of what was shown for good had been sent. */
  readonly shownSentAt: number;
}

/**
 * Confirms that accepted items are searchable.
 *
 * An item is *due* when the peer is likely to show it. Of the items of one request the first is the scout: it is due at
 * the learned time-to-visible and then again at short intervals, and once it is shown the others are due at once;
 * whatever becomes of the scout, they are due at twice that time. So one look-up an item is the rule. Looked up while due, an item is
 *
 * - shown in this version: confirmed with the evidence;
 * - not shown, or shown in an older version: due again, after a doubling interval up to `confirm.maxInterval`;
 * - this version, but none of its text is in the index: quarantined;
 * - not shown, though the peer should show it by now: lost, where the peer loses documents together (see Isolation);
 * - not shown by `confirm.timeout`, the peer answering all the while: given up, see GivingUp.
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
 * Its duty: what is due is looked up as soon as the queue has room.
 */
export class ConfirmLoop {
  readonly health = new HealthCheck('confirm', 'items that are due are not looked up', {
    busy: () => this.#mayLookUp(),
  });
  readonly #parts: UplinkParts;
  readonly #looks: Looks;
  readonly #hold: Hold;
  readonly #changed: Signal;
  readonly #visibility: Visibility;
  readonly #givingUp: GivingUp;
  readonly #work: BackgroundWork;
  /** How many look-ups the peer answered. */
  #answers = 0;
  #startedAt = 0;
  /** When the latest of what is shown for good was sent. */
  #shownSentAt = Number.NEGATIVE_INFINITY;

  readonly #isolation: Isolation;
  /** When a look-up was last left without an answer, and when the peer was last had commit its index. */
  #unansweredAt = Number.NEGATIVE_INFINITY;
  #committedAt = Number.NEGATIVE_INFINITY;
  #committing: Promise<void> | undefined;
  /** Whether it did so the last time. */
  #hasCommitted = false;

  constructor(parts: UplinkParts, hold: Hold, isolation: Isolation) {
    this.#parts = parts;
    this.#isolation = isolation;
    this.#looks = new Looks(parts.state, parts.clock);
    this.#hold = hold;
    this.#givingUp = new GivingUp(parts, hold, isolation);
    this.#changed = new Signal(parts.clock);
    this.#work = new BackgroundWork(() => this.#changed.notify());
    const learned = parts.state.meta('timeToVisibleMs');
    this.#visibility = new Visibility(typeof learned === 'number' ? learned : undefined);
  }

  /** How many items wait to be shown. */
  get size(): number {
    return this.#looks.size;
  }

  /** Whether nothing waits to be shown, and no look-up is under way. */
  get isIdle(): boolean {
    return this.size === 0 && this.#work.size === 0;
  }

  get timeToVisibleMs(): number {
    return this.#visibility.typicalMs;
  }

  /** When an item is looked up next, and what the last look-up said. */
  next(place: Place): NextLook | undefined {
    return this.#looks.next(place);
  }

  /**
   * Items that one request brought to the peer.
   *
   * @param sentAt when it began
   */
  watch(items: readonly AcceptedItem[], sentAt: number): void {
    const now = this.#parts.clock.now();
    const typical = this.#visibility.typicalMs;
    const bytes = items.reduce((sum, { sent }) => sum + sent.size, 0);
    const sureFrom = this.#hold.sureFrom(now, bytes);
    const group: Look[] = [];
    items.forEach((item, i) => {
      // A little early for the scout, or a peer that became faster would never be found out.
      const wait = i === 0 ? typical * 0.75 : typical * 2;
      const { sent } = item;
      const due = Math.max(sentAt + wait, sureFrom);
      group.push(this.#look(item, { sent, sentAt, doubt: false, due, sureFrom, since: now, group }));
    });
  }

  /** An item that was accepted some time ago. */
  resume(item: AcceptedItem): void {
    const now = this.#parts.clock.now();
    const look = this.#looks.get(item);
    if (look !== undefined && !look.doubt && look.sent.at === item.sent.at) return;
    const { sent } = item;
    const sureFrom = this.#hold.sureFrom(this.#steady(item.since), sent.size);
    const due = Math.max(now, sureFrom);
    this.#look(item, { sent, sentAt: this.#steady(sent.at), doubt: false, due, sureFrom, since: now });
  }

  /** An item that was confirmed before: one more address that the peer takes. */
  known(item: Pick<AcceptedItem, 'url' | 'path'>, sent: Sent): void {
    this.#givingUp.saw(item, sent.at);
  }

  /**
   * An item whose push left and was never answered.
   *
   * @param onDoubtOver decides when the peer does not have it; without one it is pushed again
   */
  doubt(item: PendingItem, sent: Sent, onDoubtOver?: DoubtOver): void {
    const now = this.#parts.clock.now();
    const look = this.#looks.get(item);
    if (look?.doubt && look.sent.at === sent.at) return;
    const sentAt = this.#steady(sent.at);
    const sureFrom = this.#hold.sureFrom(sentAt, sent.size);
    const due = Math.max(now, sureFrom);
    this.#look(item, { sent, sentAt, doubt: true, due, sureFrom, since: now, onDoubtOver });
  }

  /** A date in the future is of an earlier run, before the clock was set back. */
  #steady(at: number): number {
    return Math.min(at, this.#parts.clock.now());
  }

  /** Whether something is due, and nothing keeps it from being looked up. */
  #mayLookUp(): boolean {
    return this.#nextInMs() === 0 && this.#parts.queue.hasRoom('confirm');
  }

  /** How long until a look-up may begin, in ms; undefined where there is nothing to look up. */
  #nextInMs(): number | undefined {
    const { clock, queue } = this.#parts;
    const { nextDue } = this.#looks;
    if (nextDue === undefined) return undefined;
    const from = queue.isBusy('push') ? nextDue + LONGEST_WAIT_MS : nextDue;
    return Math.max(0, from - clock.now());
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, queue } = this.#parts;
    this.#startedAt = clock.now();
    while (!signal.aborted && !this.#work.hasFailed) {
      const waitMs = this.#nextInMs();
      if (waitMs !== 0) {
        await this.#changed.wait(waitMs, signal);
        continue;
      }
      if (!(await roomFor(queue, 'confirm', signal))) break;
      const look = this.#looks.take();
      this.health.progress();
      if (look === undefined) continue;
      this.#work.start(this.#lookUp(look, signal));
    }
    await this.#work.settled();
  }

  #look(item: AcceptedItem | PendingItem, begin: NewLook): Look {
    const interval = Math.max(SHORTEST_INTERVAL_MS, this.#visibility.typicalMs / 4);
    const look = this.#looks.add(placeOf(item), interval, begin);
    this.#changed.notify();
    return look;
  }

  #plan(look: Look, due: number): void {
    this.#looks.plan(look, due);
    this.#changed.notify();
  }

  async #lookUp(look: Look, signal: AbortSignal): Promise<void> {
    const { clock, queue, peer } = this.#parts;
    if (this.#looks.itemOf(look) === undefined) {
      this.#looks.forget(look);
      return;
    }
    let shown: ReturnType<typeof evidenceOf>;
    let answered = true;
    let fresh = 0;
    const before: Before = { began: clock.now(), shownSentAt: this.#shownSentAt };
    try {
      const doc = await queue.run('confirm', (s) => peer.peerdoc({ url: look.sent.url }, { signal: s }));
      this.#answers += 1;
      fresh = doc === undefined ? 0 : this.#hold.freshMs(doc);
      shown =
        doc === undefined
          ? { shown: false, why: 'the peer does not know the document' }
          : evidenceOf(doc, look.sent);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof PeersyncError)) throw error;
      shown = { shown: false, why: error.message };
      // No answer is the peer's trouble, unless it answered others since this one was last without.
      this.#unansweredAt = clock.now();
      answered = look.unanswered !== undefined && look.unanswered < this.#answers;
      look.unanswered = this.#answers;
    }
    const item = this.#looks.itemOf(look);
    if (item === undefined) {
      this.#looks.forget(look);
      return;
    }
    if (shown.shown || shown.isWithoutText) {
      const now = clock.now();
      look.firstShown ??= { at: now, due: look.due };
      const countsFrom = Math.max(Math.min(look.sureFrom, look.firstShown.at + this.#hold.ms), now + fresh);
      if (now < countsFrom) this.#plan(look, countsFrom);
      else if (!shown.shown) {
        this.#looks.forget(look);
        await this.#givingUp.withoutText(item);
      } else await this.#confirm(look, item, { kind: shown.kind, at: clock.now(), shown: shown.text });
      return;
    }
    look.firstShown = undefined;
    look.sureFrom = Number.POSITIVE_INFINITY;
    look.why = shown.why;
    await this.#notShown(look, item, shown.why, answered ? before : undefined);
  }

  async #confirm(
    look: Look,
    item: AcceptedItem | PendingItem,
    evidence: Parameters<typeof confirmed>[1],
  ): Promise<void> {
    const { clock, log, state } = this.#parts;
    const now = clock.now();
    const took = Math.round((look.firstShown?.at ?? now) - look.sentAt);
    if (look.group?.[0] === look) this.#learn(look);
    this.#looks.forget(look);
    this.#lookUpOthers(look, now);
    const inPeer =
      item.status === 'accepted'
        ? item
        : accepted(item, look.sent, now, 'the peer has it, though its answer never came');
    state.put(confirmed(inPeer, evidence, now));
    this.#shownSentAt = Math.max(this.#shownSentAt, look.sentAt);
    this.known(item, look.sent);
    await this.#parts.commit();
    log.info(
      {
        event: 'confirmed',
        folder: item.folder,
        path: item.path,
        url: item.url,
        evidence: evidence.kind,
        tookMs: took,
      },
      `confirmed ${placeName(item)} (${durationText(took)} after its push)`,
    );
  }

  /** What became of the scout of a request tells of the others. */
  #lookUpOthers(look: Look, moment: number): void {
    if (look.group?.[0] !== look) return;
    for (const other of look.group) {
      if (other.firstShown === undefined && other.due > moment && this.#looks.has(other))
        this.#plan(other, moment);
    }
  }

  async #notShown(
    look: Look,
    item: AcceptedItem | PendingItem,
    why: string,
    before: Before | undefined,
  ): Promise<void> {
    const { clock, queue, settings } = this.#parts;
    const moment = clock.now();
    const loss = before === undefined ? undefined : this.#lossOf(look, item, before);
    if (loss === 'unsure') {
      await this.#commitIndex(before?.began ?? moment);
      this.#plan(look, clock.now());
      return;
    }
    if (loss !== undefined) {
      this.#looks.forget(look);
      this.#lookUpOthers(look, moment);
      await this.#givingUp.lost(item, why, loss);
      return;
    }
    const waited = Math.min(
      moment - Math.max(look.since, look.sentAt, this.#startedAt),
      queue.answeringForMs,
    );
    const patience = this.#givingUp.patienceMs(item, this.#visibility.typicalMs);
    if (before === undefined || waited < patience) {
      const suspectFrom = this.#lateFrom(look) + (moment < this.#lateFrom(look) ? 0 : this.#hold.ms);
      const last = look.doubt
        ? Math.max(SHORTEST_INTERVAL_MS, patience - waited)
        : Math.max(SHORTEST_INTERVAL_MS, suspectFrom > moment ? suspectFrom - moment : Infinity);
      this.#plan(look, moment + Math.min(look.interval, last));
      look.interval = Math.min(look.interval * 2, settings.confirm.maxInterval);
      return;
    }
    this.#looks.forget(look);
    await this.#givingUp.giveUp(item, patience, why, look.onDoubtOver);
  }

  /**
   * Whether the peer lost an item that it accepted. The look-up must have begun when the peer should show it, and after the peer
   * committed what it had indexed by then: `unsure` until that is so.
   *
   * - `certain`: all the while the peer answered, and it shows for good what was sent at the same time or later. For an item that was
   *   sent alone it is enough that others were shown lately (and that it is not there after the hold once more, for a peer that does
   *   not commit when it is to);
   * - `likely`: it is not there, and whether the peer indexes anything at all now is not known.
   */
  #lossOf(look: Look, item: AcceptedItem | PendingItem, before: Before): Loss | 'unsure' | undefined {
    if (item.status === 'pending' || !this.#givingUp.canBeLost(item)) return undefined;
    const isAlone = this.#isolation.isAlone(item);
    const isLaterShown = before.shownSentAt >= look.sentAt;
    const needsLonger = isAlone && !isLaterShown && !this.#hasCommitted;
    const from = this.#lateFrom(look) + (needsLonger ? this.#hold.ms : 0);
    if (before.began < from) return undefined;
    if (before.began < this.#committedAt || this.#committedAt < from) return 'unsure';
    const { queue, settings } = this.#parts;
    const sinceMs = before.began - look.sentAt;
    const isUninterrupted = queue.answeringForMs >= sinceMs && this.#unansweredAt < look.sentAt;
    const latelyMs = Math.max(settings.confirm.timeout, 2 * this.#hold.ms);
    const isShownLately = before.shownSentAt >= look.sentAt - latelyMs;
    if (isUninterrupted && (isLaterShown || (isAlone && isShownLately))) return 'certain';
    if (isAlone) return undefined;
    // Where nothing was ever shown, to part the items once is enough.
    const isShownEver = before.shownSentAt > Number.NEGATIVE_INFINITY;
    const isFirst = item.attempts === 0 && !this.#isolation.has(item);
    return isShownEver || isFirst ? 'likely' : undefined;
  }

  /** When the peer should show what it was sent: after the hold, or later if it is known to be slow. */
  #lateFrom(look: Look): number {
    return look.heldUntil + Math.max(0, 1.25 * this.#visibility.typicalMs - this.#hold.ms);
  }

  /** Has the peer commit its index, unless it did since `since`. Where that fails, the usual time has to do. */
  async #commitIndex(since: number): Promise<void> {
    if (this.#committedAt > since) return;
    const { clock, queue, log, peer } = this.#parts;
    this.#committing ??= queue
      .run('confirm', async (signal) => {
        await peer.commitIndex?.({ signal });
        this.#hasCommitted = peer.commitIndex !== undefined;
      })
      .catch((error: unknown) => {
        this.#hasCommitted = false;
        if (!(error instanceof PeersyncError)) throw error;
        log.debug(
          { event: 'commit', code: error.code },
          `the peer did not commit its index: ${error.message}`,
        );
      })
      .finally(() => {
        this.#committedAt = clock.now();
        this.#committing = undefined;
      });
    await this.#committing;
  }

  /** A scout was shown. What counts is when that was due, for the look-up may have queued behind others. */
  #learn(look: Look): void {
    this.#visibility.saw(Math.round((look.firstShown?.due ?? look.due) - look.sentAt));
    const typical = Math.round(this.#visibility.typicalMs);
    const known = this.#parts.state.meta('timeToVisibleMs');
    if (typeof known === 'number' && Math.abs(known - typical) < known / 5) return;
    this.#parts.state.setMeta('timeToVisibleMs', typical);
  }
}
