import { Modes, type Transitions } from '../lib/modes.js';
import type { ItemKey } from '../state/entries.js';
import type { AcceptedItem, Failure, PendingItem } from '../state/entry.js';
import { beginningOf } from '../state/history.js';
import { holdMs, isolationPolicy, itemKeyText, maxDelayMs, type UplinkDeps } from './deps.js';

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

/** The policy if the peer turned out to be of another kind, which loses no documents together. */
const NO_QUIET = { quietShare: 0, roundShare: 0 };

interface WaitingItem {
  readonly place: ItemKey;
  readonly mode: Exclude<LossMode, 'notLost'>;
}

/** Returns how often the peer lost this version: the first time with others, later alone. */
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
 * Such a peer indexes documents in groups. One document that the index refuses loses its whole
 * group, though the peer accepted every document in it. An item that was accepted and is not shown
 * is pushed again in a group of its own: no other push is under way, the peer answers only when it
 * has indexed the item (`synchronous`, see Uplink), and then it commits its index, which ends the
 * group.
 *
 * The version of an *item* has one of three modes. They follow from the history of the item, so
 * they survive a restart. A new version begins as not lost.
 *
 * - *not lost*: it is pushed in batches with others, and is not here.
 * - *lost*: it was lost with others. It waits for a round, in which it is pushed apart from them.
 * - *lost alone*: it was lost when it was pushed apart. It waits for a round of its own, with the
 *   whole hold as quiet time before and after its push. If it is lost again, the item is at fault,
 *   and FailureAttribution quarantines it.
 *
 * A *round* pushes waiting items one after the other. It has one of four modes:
 *
 * - *ready*: no round is under way, and one may begin. Entered at the start, and from yielding when
 *   one hold is over.
 * - *quiet*: the round waits until the last push is long enough ago. Entered when a round begins,
 *   and after each push of the round.
 * - *pushing*: one item is being pushed. Entered from quiet.
 * - *yielding*: a round is over, and other items that are due go first. Entered from quiet when the
 *   round has lasted its share of the hold, has pushed an item that was lost alone, or has nothing
 *   to push. A round may begin if no other item is due.
 *
 * The policy of the dialect (IsolationPolicy) says how long these times are.
 */
export class Isolation {
  readonly #deps: UplinkDeps;
  readonly #waiting = new Map<string, WaitingItem>();
  readonly #round = new Modes<RoundMode>('ready', ROUND_TRANSITIONS);
  /** The end of the last push. */
  #pushedAt: number;
  /** The end of the mode `yielding`. */
  #yieldsUntil = Number.NEGATIVE_INFINITY;

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
      const isAlone = mode === 'lostAlone';
      if (!isFirst && (isAlone || clock.now() > end)) break;
      if (this.#pushableAt(place) === undefined) continue;
      await this.#waitForQuiet(isAlone ? hold : isFirst ? quietMs : 0, signal);
      if (signal.aborted) break;
      const item = this.#pushableAt(place);
      if (item === undefined) continue;
      isFirst = false;
      this.forget(place);
      this.#round.enter('pushing');
      const hasCommitted = await push(item);
      this.#round.enter('quiet');
      await this.#waitForQuiet(isAlone ? hold : hasCommitted ? 0 : quietMs, signal);
    }
    this.#yieldsUntil = clock.now() + hold;
    this.#round.enter('yielding');
  }

  /** Returns the waiting items: those that share a round first. */
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
