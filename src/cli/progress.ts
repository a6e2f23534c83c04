import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { Rate } from '../lib/rate.js';
import { amountText } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import { canDraw, wantsColour, whenLeaving } from './terminal.js';
import { columnsOf, displayWidth, fitted } from './text.js';

/** The progress of a run. */
export interface Step {
  readonly done: number;
  readonly total: number;
  /** Other work, which counts for the bar and not for the rate. */
  readonly besides?: { readonly done: number; readonly total: number };
  /** The texts beside the bar, the most important first: `3/10 confirmed`. */
  readonly parts: readonly string[];
  /** Whether more work may be added, so that the time left is unknown. */
  readonly growing?: boolean;
  /** Whether no work can proceed now, for example while the peer is away. There is no rate then. */
  readonly heldUp?: boolean;
}

const SHORTEST_BAR = 8;
const LONGEST_BAR = 30;

/**
 * Returns the line for a step. It is shorter than the terminal is wide, so it never wraps: the
 * least important texts are left out first, and the bar takes the remaining room.
 *
 * @param perSecond undefined while it is not known
 * @param columns of the terminal; undefined where nothing is drawn: then all texts are shown,
 *   without a bar
 */
export function progressLine(step: Step, perSecond: number | undefined, columns?: number): string {
  const { done, growing = false, parts, total, besides = { done: 0, total: 0 } } = step;
  const all = total + besides.total;
  const share = all === 0 ? 0 : Math.min(1, Math.max(0, (done + besides.done) / all));
  const percent = `${`${Math.floor(share * 100)}%`.padStart(4)} `;
  const isMoving = perSecond !== undefined && perSecond > 0 && total > 0;
  const isKnown = isMoving && !growing && total > done;
  const rate = !isMoving ? [] : [`${amountText(perSecond)}/s`];
  const left = isKnown ? [`${durationText(((total - done) / perSecond) * 1000)} left`] : [];
  const [first = '', ...rest] = parts;
  if (columns === undefined) return percent + [first, ...rest, ...rate, ...left].join(', ');
  const room = columns - 1;
  for (;;) {
    const text = percent + [first, ...rest, ...rate, ...left].join(', ');
    const width = Math.min(LONGEST_BAR, room - displayWidth(text) - 1);
    if (width >= SHORTEST_BAR) {
      const filled = Math.floor(share * width);
      return `${'█'.repeat(filled)}${'░'.repeat(width - filled)} ${text}`;
    }
    const least = [rest, rate, left].find((words) => words.length > 0);
    if (least === undefined)
      return displayWidth(text) <= room ? text : fitted(text, Math.max(1, room));
    least.pop();
  }
}

/** The interval between two plain lines, in ms. */
const LINE_INTERVAL_MS = 5_000;

const HIDE_CURSOR = '\x1b[?25l';
const SHOW_CURSOR = '\x1b[?25h';
/** Without wrapping, a line that became longer than the terminal is cut. */
const NO_WRAP = '\x1b[?7l';
const WRAP = '\x1b[?7h';
/**
 * Clears from the cursor to the end of the screen, which includes a line that the terminal broke in
 * two.
 */
const CLEAR = '\x1b[J';
/**
 * Clears the whole line. The blank is for terminals that take clearing from the first corner of the
 * window for clearing the window, and scroll its content up.
 */
const CLEAR_LINE = `\r ${CLEAR}\r`;

/**
 * Restores the terminal of this process before a second Ctrl-C ends it. Each Ctrl-C makes the
 * kernel discard output that the terminal has not read yet, and that may include the codes that
 * showed the cursor again. A terminal that only gets the standard error may belong to a pager, and
 * so its line stays.
 */
export function restoreTerminal(): void {
  const { env, stderr, stdout } = process;
  if (canDraw(stdout, env)) stdout.write(`${CLEAR_LINE}${WRAP}${SHOW_CURSOR}`);
  else if (canDraw(stderr, env)) stderr.write(`${WRAP}${SHOW_CURSOR}`);
}

/** The stream for the progress: a terminal, or any stream for plain lines. */
export interface ProgressStream {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  write(text: string): unknown;
  on(event: 'resize', listener: () => void): unknown;
  off(event: 'resize', listener: () => void): unknown;
}

/**
 * Shows the progress of a run.
 *
 * - *Drawn*, on a terminal: one line that is redrawn in place, also when the terminal is resized.
 *   The cursor is hidden and stays at the start of the line, even if a narrower terminal breaks the
 *   line in two.
 * - *Printed*, elsewhere: a plain line now and then.
 * - *Silent*, without a stream.
 *
 * `clear` makes room for other output, and the next `show` draws again. After `end` the terminal is
 * as it was before.
 */
export class Progress {
  readonly #rate = new Rate();
  #lastLineAt: number;
  #lastText = '';
  #step: Step | undefined;
  #callOff: (() => void) | undefined;

  /** @param stream where to show it; nowhere when undefined */
  constructor(
    readonly stream: ProgressStream | undefined,
    readonly clock: Clock,
    readonly env: NodeJS.ProcessEnv = process.env,
  ) {
    this.#lastLineAt = clock.now();
  }

  show(step: Step): void {
    if (this.stream === undefined) return;
    const at = this.clock.now();
    this.#rate.note(at, step.done);
    this.#step = step;
    if (canDraw(this.stream, this.env)) this.#draw(this.stream, step);
    else if (at - this.#lastLineAt >= LINE_INTERVAL_MS) {
      this.#lastLineAt = at;
      const text = progressLine(step, this.#perSecond(step)).trimStart();
      if (text !== this.#lastText) this.stream.write(`${text}\n`);
      this.#lastText = text;
    }
  }

  /** Makes room for a line of something else. */
  clear(): void {
    if (this.#callOff === undefined || this.#lastText === '') return;
    this.stream?.write(CLEAR_LINE);
    this.#lastText = '';
  }

  /** Clears the line for good, so that the result stands alone. */
  end(): void {
    if (this.#callOff === undefined) return;
    this.#callOff();
    this.#callOff = undefined;
    this.#step = undefined;
    this.stream?.off('resize', this.#redraw);
    this.stream?.write(`${CLEAR_LINE}${SHOW_CURSOR}`);
  }

  /** A log whose lines the bar makes room for. */
  beside(log: Logger): Logger {
    return filtered(log, () => {
      this.clear();
      return true;
    });
  }

  #perSecond({ done, heldUp = false }: Step): number | undefined {
    return heldUp ? undefined : this.#rate.perSecond(this.clock.now(), done);
  }

  #draw(stream: ProgressStream, step: Step): void {
    const text = progressLine(step, this.#perSecond(step), columnsOf(stream));
    const line = wantsColour(this.env) ? text.replace(/^█+/, '\x1b[32m$&\x1b[39m') : text;
    if (line === this.#lastText) return;
    this.#lastText = line;
    if (this.#callOff === undefined) {
      this.#callOff = whenLeaving(() => this.end());
      stream.on('resize', this.#redraw);
      stream.write(HIDE_CURSOR);
    }
    stream.write(`${NO_WRAP}\r${line}${CLEAR}\r${WRAP}`);
  }

  readonly #redraw = (): void => {
    if (this.#step === undefined || this.stream === undefined) return;
    this.clear();
    this.#draw(this.stream, this.#step);
  };
}

/** Returns a log that drops the lines for which `isWanted` returns false. */
export function filtered(log: Logger, isWanted: (fields: object) => boolean): Logger {
  const at = (level: keyof Logger) => (fields: object, message: string) => {
    if (isWanted(fields)) log[level](fields, message);
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}
