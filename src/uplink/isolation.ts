import { Modes, type Transitions } from '../lib/modes.js';
import type { ItemKey } from '../state/entries.js';
import type { AcceptedItem, Failure, PendingItem } from '../state/entry.js';
import { beginningOf } from '../state/history.js';
import { holdMs, isolationPolicy, itemKeyText, type UplinkDeps } from './deps.js';
import { delayLeftMs } from './retry.js';

/** The failure of an item that the peer accepted and lost. */
export const LOST: Failure = {
  code: 'LOST_FROM_INDEX',
  message: 'The peer accepted it and did not index it in the usual time.',
  hint: 'It is pushed again apart from others by itself, for one document can keep others out of the index.',
};

/** The failure of an item that was lost with so many others that they are not isolated. */
export const LOST_WITH_MANY: Failure = {
  code: 'LOST_WITH_MANY',
  message: 'The peer accepted it and lost it with many others, as in a crash.',
  hint: 'It is pushed again by itself; the log of the peer says whether it crashed.',
};

/** See Isolation. */
export type LossMode = 'notLost' | 'lost' | 'lostAlone';

type RoundMode = 'ready' | 'quiet' | 'pushing' | 'yielding';

const ROUND_TRANSITIONS: Transitions<RoundMode> = {
  ready: ['quiet'],
  quiet: ['pushing', 'yielding'],
  pushing: ['quiet'],
  yielding: ['ready', 'quiet'],
};

/** The shares if the dialect has changed to one that loses no documents together. */
const NO_QUIET = { quietShare: 0, roundShare: 0 };

interface WaitingItem {
  readonly place: ItemKey;
  readonly mode: Exclude<LossMode, 'notLost'>;
}

/** Returns how often the peer lost this version: the first time with others, then alone. */
export function timesLost({ history }: PendingItem | AcceptedItem): number {
  const present = history.slice(beginningOf(history) + 1);
  return present.filter(({ note }) => note === LOST.message).length;
}

/** Returns the mode of an item, which follows from its history. */
export function lossModeOf(item: PendingItem | AcceptedItem): LossMode {
  const times = timesLost(item);
  if (times === 0) return 'notLost';
  return times === 1 ? 'lost' : 'lostAlone';
}

/**
 * Finds the document that keeps others out of the index, if the peer loses documents together.
 *
 * That kind of peer indexes documents in groups. If the index refuses one document, its whole group
 * is lost, although the peer accepted every document in it. An item that was accepted and is not
 * shown is pushed again in a group of its own: no other push is under way, the peer answers only
 * when it has indexed the item (`synchronous`, see Uplink), and then it commits its index, which
 * ends the group. Where a commit does not succeed, time has to separate the groups. That time is
 * measured in *holds*: for one hold after a push, the peer may still take back what it shows.
 *
 * The version of an *item* has one of three modes. They follow from the history of the item, so
 * they survive a restart. The history keeps the latest eight changes, and a mode depends only on
 * those. A new version begins as not lost.
 *
 * - *not lost*: it is pushed in batches with others, and is not here.
 * - *lost*: it was lost with others. It waits to be pushed by itself, in a round that it shares
 *   with other lost items.
 * - *lost alone*: it was lost twice, the second time when it was pushed by itself. It waits for a
 *   round of its own, with a whole hold without another push before and after its push. If it is
 *   lost a third time, the item is at fault, and FailureAttribution quarantines it.
 *
 * A *round* pushes waiting items one after the other. It has one of four modes:
 *
 * - *ready*: no round is under way, and one may begin. Entered at the start, and from yielding when
 *   one hold is over.
 * - *quiet*: the round waits until the last push is long enough ago: `quietShare` of the hold, or
 *   no time at all if the peer has committed its index since. Entered when a round begins, and
 *   after each push of the round.
 * - *pushing*: one item is being pushed. Entered from quiet.
 * - *yielding*: a round is over, and other items that are due go first, for one hold. Entered from
 *   quiet when the round has lasted its share of the hold (`roundShare`), has pushed an item that
 *   was lost alone, or has nothing more to push. If no other item is due, the next round may begin
 *   at once.
 *
 * The shares are in the policy of the dialect (IsolationPolicy).
 */
export class Isolation {
  readonly #deps: UplinkDeps;
  readonly #waiting = new Map<string, WaitingItem>();
  readonly #round = new Modes<RoundMode>('ready', ROUND_TRANSITIONS);
  /** The end of the last push. */
  #pushedAt: number;
  /** The end of the mode `yielding`. */
  #yieldsUntil = Number.NEGATIVE_INFINITY;

  /** @param isReadyToPush whether a lost item can be pushed without reading a document first */
  constructor(
    deps: UplinkDeps,
    private readonly isReadyToPush: (item: PendingItem) => boolean = () => true,
  ) {
    this.#deps = deps;
    this.#pushedAt = deps.clock.now();
  }

  /** Whether the limit of waiting items is reached. */
  get isFull(): boolean {
    return this.#waiting.size >= (isolationPolicy(this.#deps)?.maxLost ?? 0);
  }

  /** Whether no lost item waits in a folder that is there. */
  get isIdle(): boolean {
    for (const { place } of this.#waiting.values()) if (this.#isPresent(place)) return false;
    return true;
  }

  /**
   * Adds a pending item if it is lost; otherwise removes it.
   *
   * @returns whether it is lost
   */
  addIfLost(item: PendingItem): boolean {
    const mode = isolationPolicy(this.#deps) === undefined ? 'notLost' : lossModeOf(item);
    if (mode === 'notLost') {
      this.forget(item);
      return false;
    }
    const place = { folder: item.folder, path: item.path };
    this.#waiting.set(itemKeyText(place), { place, mode });
    return true;
  }

  /** Removes an item that is pushed, or is not pending any more. */
  forget(place: ItemKey): void {
    if (this.#waiting.size > 0) this.#waiting.delete(itemKeyText(place));
  }

  /** Records the end of a push, of a round or not. */
  pushed(): void {
    this.#pushedAt = this.#deps.clock.now();
  }

  /**
   * Whether a round is to begin.
   *
   * @param othersWait whether other items are due
   */
  isDue(othersWait: boolean): boolean {
    const isYielding = this.#round.is('yielding');
    if (isYielding && this.#deps.clock.now() >= this.#yieldsUntil) this.#round.enter('ready');
    else if (isYielding && othersWait) return false;
    for (const item of this.pushable()) if (this.isReadyToPush(item)) return true;
    return false;
  }

  /** Yields the lost items that are due, whether they can be pushed at once or not. */
  *pushable(): Iterable<PendingItem> {
    for (const { place } of this.#waiting.values()) {
      const item = this.#dueItemAt(place);
      if (item !== undefined) yield item;
    }
  }

  /**
   * Runs a round. The caller lets no other push happen meanwhile.
   *
   * @param push pushes an item, and resolves to whether the peer then committed its index
   */
  async round(push: (item: PendingItem) => Promise<boolean>, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const hold = holdMs(this.#deps);
    const { quietShare, roundShare } = isolationPolicy(this.#deps) ?? NO_QUIET;
    const quietMs = quietShare * hold;
    const end = clock.now() + quietMs + roundShare * hold;
    this.#round.enter('quiet');
    let isFirst = true;
    for (const { place, mode } of this.#inTurn()) {
      const needsOwnRound = mode === 'lostAlone';
      if (!isFirst && (needsOwnRound || clock.now() > end)) break;
      if (this.#readyItemAt(place) === undefined) continue;
      await this.#waitForQuiet(needsOwnRound ? hold : isFirst ? quietMs : 0, signal);
      if (signal.aborted) break;
      const item = this.#readyItemAt(place);
      if (item === undefined) continue;
      isFirst = false;
      this.forget(place);
      this.#round.enter('pushing');
      const hasCommitted = await push(item);
      this.#round.enter('quiet');
      await this.#waitForQuiet(needsOwnRound ? hold : hasCommitted ? 0 : quietMs, signal);
    }
    this.#yieldsUntil = clock.now() + hold;
    this.#round.enter('yielding');
  }

  /** Returns the waiting items: first those that share a round, then those that need their own. */
  #inTurn(): readonly WaitingItem[] {
    const rank = ({ mode }: WaitingItem) => Number(mode === 'lostAlone');
    return [...this.#waiting.values()].sort((a, b) => rank(a) - rank(b));
  }

  /** Waits until the last push is this long ago. */
  async #waitForQuiet(ms: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    await clock.sleep(Math.max(0, this.#pushedAt + ms - clock.now()), signal);
  }

  #isPresent({ folder }: ItemKey): boolean {
    return this.#deps.folders.stateOf(folder) === 'there';
  }

  /** Returns the waiting item, if it is due and ready to be pushed. */
  #readyItemAt(place: ItemKey): PendingItem | undefined {
    const item = this.#dueItemAt(place);
    return item !== undefined && this.isReadyToPush(item) ? item : undefined;
  }

  /** Returns the waiting item, if it is due. */
  #dueItemAt(place: ItemKey): PendingItem | undefined {
    if (!this.#waiting.has(itemKeyText(place)) || !this.#isPresent(place)) return undefined;
    const { clock, settings, state } = this.#deps;
    const item = state.get(place.folder, place.path);
    if (item?.status !== 'pending' || item.inFlight !== undefined) return undefined;
    return delayLeftMs(settings, item, clock.now()) === 0 ? item : undefined;
  }
}
