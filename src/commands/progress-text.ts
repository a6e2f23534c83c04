import { durationText } from '../lib/units.js';
import { displayWidth, fitted } from './display-width.js';

/** How far a run has come. */
export interface Step {
  readonly done: number;
  readonly total: number;
  /** What else is to be done, which counts for the bar and not for the rate. */
  readonly besides?: { readonly done: number; readonly total: number };
  /** What is told beside the bar, the most important first: `3/10 confirmed`. */
  readonly parts: readonly string[];
  /** Whether more may come, so that nobody can say how long it takes. */
  readonly growing?: boolean;
}

const SHORTEST_BAR = 8;
const LONGEST_BAR = 30;
const FILLED = '█';
const EMPTY = '░';

/** The bar and its text for a terminal of that many columns. */
export interface ProgressLine {
  readonly filled: string;
  readonly empty: string;
  readonly text: string;
}

/**
 * What is shown of a step, shorter than the terminal is wide, so that it never wraps: what matters least is left out first,
 * and the bar takes what room is left.
 *
 * @param perSecond undefined while it is not known
 */
export function progressLine(step: Step, perSecond: number | undefined, columns: number): ProgressLine {
  const room = columns - 1;
  const all = wordsOf(step, perSecond);
  for (let count = all.length; count > 0; count -= 1) {
    const words = percentText(step) + inOrder(all.slice(0, count));
    const left = room - displayWidth(words) - 1;
    if (left < SHORTEST_BAR) continue;
    const width = Math.min(left, LONGEST_BAR);
    const filled = Math.floor(shareOf(step) * width);
    return { filled: FILLED.repeat(filled), empty: EMPTY.repeat(width - filled), text: ` ${words}` };
  }
  const text = `${percentText(step)}${inOrder(all.slice(0, 1))}`;
  return { filled: '', empty: '', text: displayWidth(text) <= room ? text : fitted(text, Math.max(1, room)) };
}

/** The same for where nothing is drawn: one whole line. */
export function plainProgress(step: Step, perSecond: number | undefined): string {
  return percentText(step) + inOrder(wordsOf(step, perSecond));
}

interface Word {
  /** Where it stands in the line. */
  readonly place: number;
  readonly text: string;
}

/** Everything that can be told, what matters most first. */
function wordsOf(step: Step, perSecond: number | undefined): Word[] {
  const [first, ...rest] = step.parts.map((text, place) => ({ place, text }));
  const last = step.parts.length;
  const left = step.total - step.done;
  const words = first === undefined ? [] : [first];
  if (perSecond !== undefined) {
    if (step.growing !== true && perSecond > 0 && left > 0)
      words.push({ place: last + 1, text: `${durationText((left / perSecond) * 1000)} left` });
    words.push({ place: last, text: `${rateText(perSecond)}/s` });
  }
  return [...words, ...rest];
}

function inOrder(words: readonly Word[]): string {
  return [...words]
    .sort((a, b) => a.place - b.place)
    .map(({ text }) => text)
    .join(', ');
}

/** A slow rate is told more exactly. */
export function rateText(perSecond: number): string {
  return perSecond > 0 && perSecond < 10 ? perSecond.toFixed(1) : perSecond.toFixed(0);
}

function percentText(step: Step): string {
  return `${`${Math.floor(shareOf(step) * 100)}%`.padStart(4)} `;
}

function shareOf({ done, total, besides = { done: 0, total: 0 } }: Step): number {
  const all = total + besides.total;
  return all === 0 ? 0 : Math.min(1, Math.max(0, (done + besides.done) / all));
}
