import { durationText } from '../lib/duration-text.js';
import { PeersyncError } from '../lib/errors.js';
import type { Duty } from '../lib/pulse.js';
import { sentence } from '../lib/sentence.js';
import type { Peerdoc } from '../peer/peerdoc.js';
import { evidenceOf } from '../peer/version-shown.js';
import type { Place } from '../state/entries.js';
import type { AcceptedItem, PendingItem, Sent, Trouble } from '../state/entry.js';
import { accepted, confirmed, failed, quarantined, returned } from '../state/transitions.js';
import { DomainGate, GATE_ATTEMPTS, gateHint, reachOf } from './domain-gate.js';
import { placeName, placeOf, roomFor, type UplinkParts } from './parts.js';
import { PlaceMap } from './place-map.js';
import { Schedule } from './schedule.js';
import { sayQuarantined } from './trouble.js';
import { Visibility } from './visibility.js';
import { Wake } from './wake.js';

/** A wait in doubt is at least this long, in ms: a peer needs a moment to show what it has just taken. */
const SHORTEST_DOUBT_MS = 5_000;
const SHORTEST_INTERVAL_MS = 200;

/** A YaCy takes 9 s to index 5 MB of text and 57 s for 50 MB; nothing else is indexed meanwhile. */
const INDEXING_MS_PER_BYTE = 2_000 / 1e6;
/** How much two moments in whole seconds may be further apart than they look, in ms. */
const WHOLE_SECONDS_MS = 2_000;
const LONGEST_INDEXING_MS = 60_000;

/** One item that is being looked up. */
interface Look {
  readonly place: Place;
  readonly sent: Sent;
  /** The push was never answered: a negative leads to another push and not to a failed attempt. */
  readonly doubt: boolean;
  readonly onDoubtOver: DoubtOver | undefined;
  readonly since: number;
  readonly group: Look[] | undefined;
  due: number;
  interval: number;
  /** From then on a first showing counts at once, in ms since the epoch. */
  sureFrom: number;
  /** Its first showing: when that was, and when it was due. One that does not count at once has to hold. */
  firstShown: { readonly at: number; readonly due: number } | undefined;
  why: string | undefined;
  /** How many look-ups had been answered when one of this ended without an answer. */
  unanswered: number | undefined;
}

/** Decides about an item in doubt that the peer does not have. */
type DoubtOver = (item: PendingItem) => void | Promise<void>;

export interface NextLook {
  readonly at: number;
  readonly lastAnswer?: string;
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
 * - not shown by `confirm.timeout`, the peer answering all the while: pending again, one attempt spent, and after
 *   `push.attempts` of those quarantined.
 *
 * A peer may show what it takes back soon after (YaCy does, for about 18 s after it indexed something). Within the time to
 * *hold* after a push (of the dialect, or `confirm.hold`) nothing it says proves anything, and nothing is looked up. A
 * first look-up after that counts; once it was negative, a positive counts only when it is still there after the same time.
 *
 * An item whose address the peer seems to drop (see DomainGate) is given up after a few attempts that are short.
 *
 * An item *in doubt* (its push left, no answer was recorded) is looked up the same way before it is pushed again: shown,
 * it is confirmed; not shown for three times the time-to-visible, the doubt is over and it is pushed.
 *
 * Its duty: what is due is looked up as soon as the door has room.
 */
export class ConfirmLoop {
  readonly #parts: UplinkParts;
  readonly #looks = new PlaceMap<Look>();
  readonly #schedule = new Schedule<{ readonly look: Look; readonly due: number }>();
  readonly #wake: Wake;
  readonly #visibility: Visibility;
  readonly #gate = new DomainGate();
  readonly #underWay = new Set<Promise<void>>();
  /** How many look-ups the peer answered. */
  #answers = 0;
  #failure: unknown;
  #startedAt = 0;
  #isRunning = false;
  /** How many looks were taken up. */
  #taken = 0;
  #lastConfirmedAt: number | undefined;

  constructor(parts: UplinkParts) {
    this.#parts = parts;
    this.#wake = new Wake(parts.clock);
    const learned = parts.state.meta('timeToVisibleMs');
    this.#visibility = new Visibility(typeof learned === 'number' ? learned : undefined);
  }

  /** How many items wait to be shown. */
  get size(): number {
    return this.#looks.size;
  }

  get timeToVisibleMs(): number {
    return this.#visibility.typicalMs;
  }

  /** When the peer last showed a version that was waited for, in ms since the epoch. */
  get lastConfirmedAt(): number | undefined {
    return this.#lastConfirmedAt;
  }

  get duty(): Duty {
    return {
      name: 'confirm',
      moves: () => this.#taken,
      neglects: () => (this.#mayLookUp() ? 'items that are due are not looked up' : undefined),
    };
  }

  /** When an item is looked up next, and what the last look-up said. */
  next(place: Place): NextLook | undefined {
    const look = this.#looks.get(place);
    if (look === undefined) return undefined;
    return look.why === undefined ? { at: look.due } : { at: look.due, lastAnswer: look.why };
  }

  /** Items that one request brought to the peer. */
  watch(items: readonly AcceptedItem[]): void {
    const now = this.#parts.clock.now();
    const typical = this.#visibility.typicalMs;
    const bytes = items.reduce((sum, { sent }) => sum + sent.size, 0);
    const sureFrom = this.#sureFrom(now, bytes);
    const group: Look[] = [];
    items.forEach((item, i) => {
      // A little early for the scout, or a peer that became faster would never be found out.
      const wait = i === 0 ? typical * 0.75 : typical * 2;
      const due = Math.max(item.sent.at + wait, sureFrom);
      group.push(this.#add(placeOf(item), item.sent, false, due, sureFrom, now, group));
    });
  }

  /** An item that was accepted some time ago. */
  resume(item: AcceptedItem): void {
    const now = this.#parts.clock.now();
    const look = this.#looks.get(item);
    if (look !== undefined && !look.doubt && look.sent.at === item.sent.at) return;
    const sureFrom = this.#sureFrom(item.since, item.sent.size);
    this.#add(placeOf(item), item.sent, false, Math.max(now, sureFrom), sureFrom, now, undefined);
  }

  /** An item that was confirmed before: one more address that the peer takes. */
  known(url: string, sent: Sent, at: number): void {
    this.#lastConfirmedAt = Math.max(this.#lastConfirmedAt ?? at, at);
    if (this.#hasGate) this.#gate.saw(url, sent.at);
  }

  /**
   * An item whose push left and was never answered.
   *
   * @param onOver decides when the peer does not have it; without one it is pushed again
   */
  doubt(item: PendingItem, sent: Sent, onOver?: DoubtOver): void {
    const now = this.#parts.clock.now();
    const look = this.#looks.get(item);
    if (look?.doubt && look.sent.at === sent.at) return;
    const sureFrom = this.#sureFrom(sent.at, sent.size);
    this.#add(placeOf(item), sent, true, Math.max(now, sureFrom), sureFrom, now, undefined, onOver);
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#isRunning = true;
    signal.addEventListener('abort', () => {
      this.#isRunning = false;
    });
    try {
      await this.#run(signal);
    } finally {
      this.#isRunning = false;
    }
  }

  /** Whether something is due, and nothing keeps it from being looked up. */
  #mayLookUp(): boolean {
    const { clock, door } = this.#parts;
    const due = this.#schedule.nextDue ?? Number.POSITIVE_INFINITY;
    return this.#isRunning && due <= clock.now() && door.hasRoom('confirm');
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, door } = this.#parts;
    this.#startedAt = clock.now();
    while (!signal.aborted && this.#failure === undefined) {
      const nextDue = this.#schedule.nextDue;
      if (nextDue === undefined || nextDue > clock.now()) {
        await this.#wake.wait(nextDue === undefined ? undefined : nextDue - clock.now(), signal);
        continue;
      }
      if (!(await roomFor(door, 'confirm', signal))) break;
      const look = this.#take();
      this.#taken += 1;
      if (look === undefined) continue;
      const work = this.#lookUp(look, signal)
        .catch((error: unknown) => {
          this.#failure ??= error;
          this.#wake.ring();
        })
        .finally(() => this.#underWay.delete(work));
      this.#underWay.add(work);
    }
    await Promise.all(this.#underWay);
    if (this.#failure !== undefined) throw this.#failure;
  }

  #add(
    place: Place,
    sent: Sent,
    doubt: boolean,
    due: number,
    sureFrom: number,
    since: number,
    group: Look[] | undefined,
    onDoubtOver?: DoubtOver,
  ): Look {
    const interval = Math.max(SHORTEST_INTERVAL_MS, this.#visibility.typicalMs / 4);
    const look: Look = {
      ...{ place, sent, doubt, onDoubtOver, since, group, due, sureFrom, interval },
      ...{ firstShown: undefined, why: undefined, unanswered: undefined },
    };
    this.#looks.set(place, look);
    this.#plan(look, due);
    return look;
  }

  #plan(look: Look, due: number): void {
    look.due = due;
    this.#schedule.add({ look, due }, due);
    this.#wake.ring();
  }

  #take(): Look | undefined {
    for (;;) {
      const slot = this.#schedule.take(this.#parts.clock.now());
      if (slot === undefined) return undefined;
      const current = this.#looks.get(slot.look.place);
      if (current === slot.look && slot.due === slot.look.due) return slot.look;
    }
  }

  async #lookUp(look: Look, signal: AbortSignal): Promise<void> {
    const { clock, door, peer } = this.#parts;
    if (this.#itemOf(look) === undefined) {
      this.#forget(look);
      return;
    }
    let shown: ReturnType<typeof evidenceOf>;
    let answered = true;
    let fresh = 0;
    try {
      const doc = await door.run('confirm', (s) => peer.peerdoc({ url: look.sent.url }, { signal: s }));
      this.#answers += 1;
      fresh = doc === undefined ? 0 : this.#freshMs(doc);
      shown =
        doc === undefined
          ? { shown: false, why: 'the peer does not know the document' }
          : evidenceOf(doc, look.sent);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof PeersyncError)) throw error;
      shown = { shown: false, why: error.message };
      // No answer is the peer's trouble, unless it answered others since this one was last without.
      answered = look.unanswered !== undefined && look.unanswered < this.#answers;
      look.unanswered = this.#answers;
    }
    const item = this.#itemOf(look);
    if (item === undefined) {
      this.#forget(look);
      return;
    }
    if (shown.shown) {
      const now = clock.now();
      look.firstShown ??= { at: now, due: look.due };
      const countsFrom = Math.max(Math.min(look.sureFrom, look.firstShown.at + this.#holdMs), now + fresh);
      if (now < countsFrom) this.#plan(look, countsFrom);
      else await this.#confirm(look, item, { kind: shown.kind, at: now, shown: shown.text });
      return;
    }
    look.firstShown = undefined;
    look.sureFrom = Number.POSITIVE_INFINITY;
    look.why = shown.why;
    await this.#notShown(look, item, shown.why, answered);
  }

  async #confirm(
    look: Look,
    item: AcceptedItem | PendingItem,
    evidence: Parameters<typeof confirmed>[1],
  ): Promise<void> {
    const { clock, log, state } = this.#parts;
    const now = clock.now();
    const took = (look.firstShown?.at ?? now) - look.sent.at;
    if (look.group?.[0] === look) this.#learn(look);
    this.#forget(look);
    for (const other of look.group ?? []) {
      if (other.firstShown === undefined && other.due > now && this.#looks.get(other.place) === other)
        this.#plan(other, now);
    }
    const inPeer =
      item.status === 'accepted'
        ? item
        : accepted(item, look.sent, now, 'the peer has it, though its answer never came');
    state.put(confirmed(inPeer, evidence, now));
    this.known(look.sent.url, look.sent, now);
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

  async #notShown(
    look: Look,
    item: AcceptedItem | PendingItem,
    why: string,
    answered: boolean,
  ): Promise<void> {
    const { clock, settings, state, log } = this.#parts;
    const now = clock.now();
    const waited = now - Math.max(look.since, look.sent.at, this.#startedAt, this.#answeringSince());
    const isGated =
      item.status === 'accepted' && this.#hasGate && this.#gate.explains(item.url, firstAcceptedAt(item));
    const patience = this.#patience(look, isGated);
    if (!answered || waited < patience) {
      const last = look.doubt ? Math.max(now + SHORTEST_INTERVAL_MS, now + patience - waited) : Infinity;
      this.#plan(look, Math.min(now + look.interval, last));
      look.interval = Math.min(look.interval * 2, settings.confirm.maxInterval);
      return;
    }
    this.#forget(look);
    if (item.status === 'pending') {
      if (look.onDoubtOver !== undefined) await look.onDoubtOver(item);
      else state.put(returned(item, now));
      await this.#parts.commit();
      log.debug(
        { folder: item.folder, path: item.path },
        `not in the peer, pushed again: ${placeName(item)}`,
      );
      return;
    }
    const trouble = isGated ? this.#gate.trouble(item.url) : this.#notShownTrouble(item.url, patience, why);
    const again = failed(item, trouble, now, now);
    const isGivenUp = again.attempts >= Math.min(settings.push.attempts, isGated ? GATE_ATTEMPTS : Infinity);
    state.put(isGivenUp ? quarantined(again, item, item.version, trouble, now) : again);
    await this.#parts.commit();
    if (isGivenUp) sayQuarantined(log, item, trouble);
    else
      log.info(
        { event: 'not-shown', folder: item.folder, path: item.path, attempts: again.attempts },
        `not shown by the peer, pushed again: ${placeName(item)}: ${why}`,
      );
  }

  #notShownTrouble(url: string, waited: number, why: string): Trouble {
    const look = 'See in the peer whether it indexes this URL at all; `peersync retry` pushes it again.';
    return {
      code: 'NOT_SHOWN',
      message: `The peer accepted it but did not show it within ${durationText(waited)}: ${sentence(why)}`,
      hint: this.#hasGate ? `${look} ${gateHint(reachOf(url))}` : look,
    };
  }

  /** How long the peer may take until it shows an item, in ms. */
  #patience({ doubt }: Look, isGated: boolean): number {
    const { timeout } = this.#parts.settings.confirm;
    const [holdMs, typicalMs] = [this.#holdMs, this.#visibility.typicalMs];
    if (doubt) return Math.max(SHORTEST_DOUBT_MS, 3 * typicalMs, 2 * holdMs);
    return isGated ? Math.min(timeout, 3 * Math.max(holdMs, typicalMs)) : Math.max(timeout, 2 * holdMs);
  }

  /** So long after a push the peer may take back what it shows, in ms. */
  get #holdMs(): number {
    return this.#parts.settings.confirm.hold ?? this.#parts.dialect.current?.holdMs ?? 0;
  }

  /** For how long a document is still too fresh to count, where the peer tells when it was indexed, in ms. */
  #freshMs({ loadDate, peerAt }: Peerdoc): number {
    if (loadDate === undefined || peerAt === undefined) return 0;
    const age = peerAt - loadDate;
    // One from the future is of another time zone than it seems.
    return age < -WHOLE_SECONDS_MS ? 0 : Math.max(0, this.#holdMs - WHOLE_SECONDS_MS - age);
  }

  /** Whether documents are dropped without a word because of their addresses. */
  get #hasGate(): boolean {
    return this.#parts.dialect.current?.hasDomainGate === true;
  }

  /** From when on what was taken `at` is shown for good, if it is shown: it has to be indexed before. */
  #sureFrom(at: number, bytes: number): number {
    const holdMs = this.#holdMs;
    if (holdMs === 0) return at;
    return at + holdMs + Math.min(LONGEST_INDEXING_MS, bytes * INDEXING_MS_PER_BYTE);
  }

  /** The item that a look is about, or undefined when it has become another one meanwhile. */
  #itemOf(look: Look): AcceptedItem | PendingItem | undefined {
    const entry = this.#parts.state.get(look.place.folder, look.place.path);
    const stillWatched = this.#looks.get(look.place) === look;
    if (!stillWatched) return undefined;
    if (look.doubt)
      return entry?.status === 'pending' && entry.doubt?.at === look.sent.at ? entry : undefined;
    return entry?.status === 'accepted' &&
      entry.sent.at === look.sent.at &&
      entry.sent.sha256 === look.sent.sha256
      ? entry
      : undefined;
  }

  /** A scout was shown. What counts is when that was due, for the look-up may have queued behind others. */
  #learn(look: Look): void {
    this.#visibility.saw((look.firstShown?.due ?? look.due) - look.sent.at);
    const typical = Math.round(this.#visibility.typicalMs);
    const known = this.#parts.state.meta('timeToVisibleMs');
    if (typeof known === 'number' && Math.abs(known - typical) < known / 5) return;
    this.#parts.state.setMeta('timeToVisibleMs', typical);
  }

  #forget(look: Look): void {
    const key = look.place;
    if (this.#looks.get(key) === look) this.#looks.delete(key);
  }

  /** Since when the peer has been answering: a time of silence does not count as a time of not showing. */
  #answeringSince(): number {
    const { circuit } = this.#parts.door.status();
    return circuit.state === 'closed' ? circuit.since : this.#parts.clock.now();
  }
}

/** When the peer took this version for the first time, in ms since the epoch. */
function firstAcceptedAt({ attempts, history, since }: AcceptedItem): number {
  const times = history.filter(({ status }) => status === 'accepted').map(({ at }) => at);
  return times.at(-1 - attempts) ?? times[0] ?? since;
}
