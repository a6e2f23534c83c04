import type { Clock } from '../lib/clock.js';
import type { PeersyncError } from '../lib/errors.js';
import type { Peerdoc } from '../peer/peerdoc.js';

/** Shortest interval between two look-ups of a document, in ms. */
const SHORTEST_INTERVAL_MS = 200;

export type LookUpMode = 'new' | 'unexpected' | 'settling';

export interface LookUpOptions {
  /** Names the document in the loop. A new look-up of the same key replaces an earlier one. */
  readonly key: string;
  readonly url: string;
  /** Time of the first look-up, in ms since the epoch; not before the end of the hold. */
  readonly due: number;
  /** Interval before the second look-up, in ms. @default 200 */
  readonly intervalMs?: number;
  /**
   * `unexpected` if the peer may have given an answer before that was not as expected.
   * @default `new`
   */
  readonly mode?: 'new' | 'unexpected';
  /**
   * Whether it may be dropped if there is no room in memory, because a pass over the state finds it
   * again. @default false
   */
  readonly isEvictable?: boolean;
}

/**
 * One document that is looked up, again and again, until the peer shows it as expected. The judge
 * defines what is expected: the version that was pushed, or no document any more after a removal.
 *
 * A peer may take back what it shows: YaCy does so for up to 18 s after it indexed a document. For
 * that time after a request, the *hold*, no answer proves anything. Therefore no look-up begins
 * before `due`, and `due` is never within a hold. The mode decides whether an expected answer
 * *counts*, which ends the look-ups of this document:
 *
 * - `new`: no answer was unexpected so far. An expected answer counts.
 * - `unexpected`: the last usable answer was not as expected. The next expected answer does not
 *   count, and leads to `settling`.
 * - `settling`: the last usable answer was as expected, and another hold has to pass. If the next
 *   usable answer is as expected too, it counts.
 *
 * There are two rules for all modes. An expected answer leads to `settling` if the dates of the
 * document show that the peer may still take it back. An answer that is not as expected leads to
 * `unexpected`. An unusable answer changes no mode.
 */
export class LookUp<Subject> {
  readonly key: string;
  readonly url: string;
  readonly isEvictable: boolean;
  /** Time of the next look-up, in ms since the epoch. */
  due: number;
  /** The reason why the last answer that did not count was not as expected. */
  lastAnswer?: string;
  /** The number of answered requests of the loop at the last failed look-up of this document. */
  answersAtFailure?: number;
  #intervalMs: number;
  #mode: LookUpMode;
  #modeSince: number;

  /** @param subject the judge's own data of this document */
  constructor(
    readonly subject: Subject,
    { key, url, due, intervalMs, mode = 'new', isEvictable = false }: LookUpOptions,
  ) {
    this.key = key;
    this.url = url;
    this.due = due;
    this.isEvictable = isEvictable;
    this.#intervalMs = Math.max(SHORTEST_INTERVAL_MS, intervalMs ?? SHORTEST_INTERVAL_MS);
    this.#mode = mode;
    this.#modeSince = due;
  }

  get mode(): LookUpMode {
    return this.#mode;
  }

  /** Returns the time since which all usable answers were as expected; else `now`. */
  expectedSince(now: number): number {
    return this.#mode === 'settling' ? this.#modeSince : now;
  }

  /**
   * Applies an expected answer. If it does not count, the look-up settles.
   *
   * @param provisionalMs how long the peer may still take this document back, by its own dates
   * @returns whether the answer counts
   */
  expected(now: number, holdMs: number, provisionalMs: number): boolean {
    const waitMs = Math.max(this.#mode === 'unexpected' ? holdMs : 0, provisionalMs);
    if (waitMs === 0) return true;
    this.due = now + waitMs;
    this.#enter('settling', this.expectedSince(now));
    return false;
  }

  /** Applies an answer that is not as expected. */
  unexpected(now: number): void {
    if (this.#mode !== 'unexpected') this.#enter('unexpected', now);
  }

  /** Schedules the next look-up after the interval, which doubles. */
  postpone(now: number, maxIntervalMs: number): void {
    this.due = now + this.#intervalMs;
    this.#intervalMs = Math.min(2 * this.#intervalMs, maxIntervalMs);
  }

  #enter(mode: Exclude<LookUpMode, 'new'>, since: number): void {
    this.#mode = mode;
    this.#modeSince = since;
  }
}

/** The answer to one look-up. `began` is the time when it was asked for, in ms since the epoch. */
export type Answer =
  /** `doc` is undefined if the peer does not have the document. */
  | { readonly kind: 'document'; readonly began: number; readonly doc: Peerdoc | undefined }
  /** The look-up failed, and others did not: the failure concerns this document. */
  | { readonly kind: 'documentFailed'; readonly began: number; readonly failure: PeersyncError }
  /** The look-up failed, and so may others: it says nothing about this document. */
  | { readonly kind: 'peerFailed'; readonly began: number; readonly failure: PeersyncError };

export type Verdict<Found> =
  /** `provisionalMs`: see `LookUp.expected`. @default 0 */
  | { readonly kind: 'expected'; readonly found: Found; readonly provisionalMs?: number }
  | { readonly kind: 'unexpected'; readonly why: string }
  | { readonly kind: 'unusable'; readonly why: string }
  /** The document needs no look-up any more. */
  | { readonly kind: 'void' };

/** When a document is looked up again; `later` is after the interval. */
export type Again = 'later' | 'atOnce' | 'never';

/**
 * Judges the answers for one kind of look-up, and acts on them. `settled` and `unsettled` act: they
 * are called when the look-up has ended, or waits again. They may change the state, which may begin
 * another look-up of the same document.
 */
export interface Judge<Subject, Found> {
  /** Reads an answer, and leaves the state as it is. */
  judge(look: LookUp<Subject>, answer: Answer): Verdict<Found>;
  /** Called right after `judge` for an expected answer that counts, which ended the look-up. */
  settled(look: LookUp<Subject>, found: Found): Promise<void>;
  /**
   * Decides when the document is looked up again after an answer that is unexpected or unusable.
   * Leaves the state as it is.
   */
  whenAgain(look: LookUp<Subject>, answer: Answer): Promise<Again>;
  /** Called after the decision of `whenAgain`. */
  unsettled(look: LookUp<Subject>, answer: Answer, again: Again): Promise<void>;
}

/** The loop or the pass that look-ups belong to: those under way, and those that wait. */
export interface LookUpOwner<Subject> {
  /**
   * Called when the answer to a look-up is decided: it is not under way any more.
   * @returns false if the look-up was replaced or deleted meanwhile
   */
  checkIn(look: LookUp<Subject>): boolean;
  /** Makes a look-up again when it is due. */
  wait(look: LookUp<Subject>): void;
}

export interface LookUpTerms {
  readonly clock: Pick<Clock, 'now'>;
  readonly holdMs: number;
  readonly maxIntervalMs: number;
}

/** Passes the answer to a look-up under way to the judge, and applies the verdict. */
export async function applyAnswer<Subject, Found>(
  look: LookUp<Subject>,
  answer: Answer,
  judge: Judge<Subject, Found>,
  owner: LookUpOwner<Subject>,
  { clock, holdMs, maxIntervalMs }: LookUpTerms,
): Promise<void> {
  const now = clock.now();
  const verdict = judge.judge(look, answer);
  if (verdict.kind === 'void') {
    owner.checkIn(look);
    return;
  }
  if (verdict.kind === 'expected') {
    owner.checkIn(look);
    if (look.expected(now, holdMs, verdict.provisionalMs ?? 0))
      await judge.settled(look, verdict.found);
    else owner.wait(look);
    return;
  }
  if (verdict.kind === 'unexpected') look.unexpected(now);
  look.lastAnswer = verdict.why;
  const again = await judge.whenAgain(look, answer);
  if (!owner.checkIn(look)) return;
  if (again === 'atOnce') look.due = clock.now();
  else if (again === 'later') look.postpone(now, maxIntervalMs);
  if (again !== 'never') owner.wait(look);
  await judge.unsettled(look, answer, again);
}
