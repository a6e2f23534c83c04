import { type Answer, SHOWN } from './engine.js';
import type { Grades } from './relevance.js';

/** Judgement of one answer. */
export interface Judged {
  /** The place of the first document that is right, from 1 on; undefined if none is shown. */
  readonly rank: number | undefined;
  /** Discounted gain of the documents shown, relative to that of the best order. */
  readonly gain: number;
  /** Whether documents are shown, none of which is right. */
  readonly isOnlyWrong: boolean;
}

/** Figures of many queries. Ranks and gains are of queries that have an answer. */
export interface Figures {
  readonly answerable: number;
  readonly first: number;
  readonly inThree: number;
  readonly inTen: number;
  /** Mean of 1/rank, 0 where nothing right is shown. */
  readonly meanReciprocalRank: number;
  readonly gain: number;
  readonly onlyWrong: number;
  /** Queries that have an answer, and show nothing. */
  readonly nothing: number;
}

/**
 * Judges an answer. If a query has no answer, documents are right only where the engine says that
 * they are not what was asked for.
 */
export function judged(answer: Answer, grades: Grades): Judged {
  const files = answer.files.slice(0, SHOWN);
  const place = files.findIndex((file) => grades.has(file));
  const rank = place === -1 ? undefined : place + 1;
  const isOnlyWrong =
    files.length > 0 && rank === undefined && !(grades.size === 0 && answer.isAnnounced);
  const best = [...grades.values()].sort((a, b) => b - a).slice(0, SHOWN);
  const ideal = gainOf(best);
  const gain = ideal === 0 ? 0 : gainOf(files.map((file) => grades.get(file) ?? 0)) / ideal;
  return { rank, gain, isOnlyWrong };
}

function gainOf(grades: readonly number[]): number {
  return grades.reduce((sum, grade, i) => sum + (2 ** grade - 1) / Math.log2(i + 2), 0);
}

/** @param answers each with the grades that it was judged by */
export function figuresOf(
  answers: readonly { readonly answer: Answer; readonly grades: Grades }[],
): Figures {
  const all = answers.map(({ answer, grades }) => ({ answer, grades, ...judged(answer, grades) }));
  const answerable = all.filter(({ grades }) => grades.size > 0);
  const within = (most: number) =>
    answerable.filter(({ rank }) => rank !== undefined && rank <= most).length;
  const mean = (value: (one: Judged) => number) =>
    answerable.length === 0
      ? Number.NaN
      : answerable.reduce((sum, one) => sum + value(one), 0) / answerable.length;
  return {
    answerable: answerable.length,
    first: within(1),
    inThree: within(3),
    inTen: within(SHOWN),
    meanReciprocalRank: mean(({ rank }) => (rank === undefined ? 0 : 1 / rank)),
    gain: mean(({ gain }) => gain),
    onlyWrong: all.filter(({ isOnlyWrong }) => isOnlyWrong).length,
    nothing: answerable.filter(({ answer }) => answer.files.length === 0).length,
  };
}
