import { LOG_LEVELS, type LogLevel } from '../daemon/log.js';
import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { durationText } from '../lib/units.js';
import { canDraw, columnsOf, wantsColour, whenLeaving } from './terminal.js';
import { displayWidth, fitted } from './text.js';

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
  const percent = percentText(step);
  for (const wording of wordings(step, perSecond)) {
    const left = room - displayWidth(percent + wording) - 1;
    if (left < SHORTEST_BAR) continue;
    const width = Math.min(left, LONGEST_BAR);
    const filled = Math.floor(shareOf(step) * width);
    return {
      filled: FILLED.repeat(filled),
      empty: EMPTY.repeat(width - filled),
      text: ` ${percent}${wording}`,
    };
  }
  const text = percent + (step.parts[0] ?? '');
  return { filled: '', empty: '', text: displayWidth(text) <= room ? text : fitted(text, Math.max(1, room)) };
}

/** The same for where nothing is drawn: one whole line. */
export function plainProgress(step: Step, perSecond: number | undefined): string {
  return percentText(step) + (wordings(step, perSecond)[0] ?? '');
}

/** What can be told: everything first, then less and less of it. */
function wordings({ done, growing, parts, total }: Step, perSecond: number | undefined): string[] {
  const [first = '', ...rest] = parts;
  const rate = perSecond === undefined ? [] : [`${rateText(perSecond)}/s`];
  const isKnown = growing !== true && perSecond !== undefined && perSecond > 0 && total > done;
  const left = isKnown ? [`${durationText(((total - done) / perSecond) * 1000)} left`] : [];
  return [
    ...rest.map((_, i) => [first, ...rest.slice(0, rest.length - i), ...rate, ...left]),
    ...[[first, ...rate, ...left], [first, ...left], [first]],
  ].map((words) => words.join(', '));
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

/** Between two plain lines, in ms. */
const LINE_INTERVAL_MS = 5_000;

const HIDE_CURSOR = '\x1b[?25l';
const SHOW_CURSOR = '\x1b[?25h';
/** A line that is longer than the terminal has become meanwhile is cut there, not wrapped. */
const NO_WRAP = '\x1b[?7l';
const WRAP = '\x1b[?7h';
/** From the cursor on, so that a line that the terminal broke in two goes as a whole. */
const CLEAR = '\x1b[J';
/**
 * The whole line, from its begin. The blank is for terminals that take clearing from the first corner of the window for
 * clearing the window, and keep what stood there above it.
 */
const CLEAR_LINE = `\r ${CLEAR}\r`;

/** Where progress is shown: a terminal, or any stream for plain lines. */
export interface ProgressStream {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  write(text: string): unknown;
  on(event: 'resize', listener: () => void): unknown;
  off(event: 'resize', listener: () => void): unknown;
}

/**
 * How far a run has come.
 *
 * - *Drawn*, on a terminal: one line that is drawn anew in place, also when the terminal gets another size. The cursor is
 *   hidden and waits at the line's begin, where it stays even when a terminal that became narrower breaks the line in two.
 * - *Told*, elsewhere: a plain line now and then.
 * - *Silent*, without a stream.
 *
 * `clear` makes room for other output; the next `show` draws again. After `end` the terminal is as it was before.
 */
export class Progress {
  readonly #stream: ProgressStream | undefined;
  readonly #clock: Clock;
  readonly #isDrawn: boolean;
  readonly #isColoured: boolean;
  readonly #rate = new Rate();
  #lastLineAt: number;
  #lastText = '';
  #step: Step | undefined;
  #callOff: (() => void) | undefined;

  /** @param stream where to show it; nowhere when undefined */
  constructor(stream: ProgressStream | undefined, clock: Clock, env: NodeJS.ProcessEnv = process.env) {
    this.#stream = stream;
    this.#clock = clock;
    this.#isDrawn = stream !== undefined && canDraw(stream, env);
    this.#isColoured = wantsColour(env);
    this.#lastLineAt = clock.now();
  }

  show(step: Step): void {
    if (this.#stream === undefined) return;
    const at = this.#clock.now();
    this.#rate.note(at, step.done);
    this.#step = step;
    if (this.#isDrawn) this.#draw();
    else if (at - this.#lastLineAt >= LINE_INTERVAL_MS) this.#tell(at);
  }

  /** Makes room for a line of something else. */
  clear(): void {
    if (this.#callOff === undefined || this.#lastText === '') return;
    this.#stream?.write(CLEAR_LINE);
    this.#lastText = '';
  }

  /** Clears the line for good, so that the result stands alone. */
  end(): void {
    if (this.#callOff === undefined) return;
    this.#callOff();
    this.#callOff = undefined;
    this.#step = undefined;
    this.#stream?.off('resize', this.#redraw);
    this.#stream?.write(`${CLEAR_LINE}${SHOW_CURSOR}`);
  }

  /** A log whose lines the bar makes room for; those below `least` are not written anyway. */
  beside(log: Logger, least: LogLevel): Logger {
    const at = (level: keyof Logger) => (fields: object, message: string) => {
      if (LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(least)) this.clear();
      log[level](fields, message);
    };
    return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  }

  #draw(): void {
    const { filled, empty, text } = progressLine(
      this.#step ?? { done: 0, total: 0, parts: [] },
      this.#perSecond(),
      columnsOf(this.#stream ?? {}),
    );
    const line = `${this.#isColoured && filled !== '' ? `\x1b[32m${filled}\x1b[39m` : filled}${empty}${text}`;
    if (line === this.#lastText) return;
    this.#lastText = line;
    if (this.#callOff === undefined) {
      this.#callOff = whenLeaving(() => this.end());
      this.#stream?.on('resize', this.#redraw);
      this.#stream?.write(HIDE_CURSOR);
    }
    this.#stream?.write(`${NO_WRAP}\r${line}${CLEAR}\r${WRAP}`);
  }

  readonly #redraw = (): void => {
    if (this.#step === undefined) return;
    this.clear();
    this.#draw();
  };

  #tell(at: number): void {
    if (this.#step === undefined) return;
    const text = plainProgress(this.#step, this.#perSecond()).trimStart();
    this.#lastLineAt = at;
    if (text === this.#lastText) return;
    this.#lastText = text;
    this.#stream?.write(`${text}\n`);
  }

  #perSecond(): number | undefined {
    return this.#rate.perSecond(this.#clock.now(), this.#step?.done ?? 0);
  }
}

/** So far back is looked, in ms: a rate is that of now, and still calm where things come in bursts. */
const WINDOW_MS = 15_000;
/** Marks are at least so far apart, in ms, so that their number is bounded. */
const STEP_MS = 250;
/** Before this a rate would be a guess, in ms. */
const LEAST_MS = 1_000;

interface Mark {
  readonly at: number;
  readonly count: number;
}

/** How fast a count grows, over the last seconds. */
export class Rate {
  readonly #marks: Mark[] = [];

  /** @param at in ms of a clock that never goes back */
  note(at: number, count: number): void {
    const last = this.#marks.at(-1);
    if (last !== undefined && at - last.at < STEP_MS) return;
    this.#marks.push({ at, count });
    // One mark from before the window stays, for the count grew from there.
    while (this.#marks.length > 2 && at - (this.#marks[1]?.at ?? at) >= WINDOW_MS) this.#marks.shift();
  }

  /** Per second; undefined while there is too little to tell it from. */
  perSecond(at: number, count: number): number | undefined {
    const first = this.#marks[0];
    if (first === undefined || at - first.at < LEAST_MS) return undefined;
    return Math.max(0, ((count - first.count) * 1000) / (at - first.at));
  }
}
