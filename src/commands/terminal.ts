import type { Readable, Writable } from 'node:stream';
import type { ReadStream } from 'node:tty';
import type { Clock } from '../lib/clock.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { Rate } from '../lib/rate.js';
import { amountText } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import { columnsOf, displayWidth, fitted, wrapped } from './text.js';

type Environment = Readonly<Record<string, string | undefined>>;

const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Whether a stream is a terminal on which lines can be drawn anew. */
export function canDraw(
  stream: { readonly isTTY?: boolean | undefined },
  env: Environment,
): boolean {
  return stream.isTTY === true && env.TERM !== 'dumb';
}

/** Whether colours are wanted where something is drawn (see no-color.org). */
export function wantsColour(env: Environment): boolean {
  return env.NO_COLOR === undefined || env.NO_COLOR === '';
}

/**
 * Has a terminal put in order when the process ends, in whatever way it can notice. A signal that
 * nobody else listens to then ends it as if nobody had listened.
 *
 * @returns how to call that off
 */
export function whenLeaving(restore: () => void): () => void {
  const onSignal = (signal: NodeJS.Signals) => {
    if (process.listenerCount(signal) > 1) return;
    leave();
    process.kill(process.pid, signal);
  };
  const callOff = () => {
    process.off('exit', leave);
    for (const signal of ENDING_SIGNALS) process.off(signal, onSignal);
  };
  function leave(): void {
    callOff();
    restore();
  }
  process.on('exit', leave);
  for (const signal of ENDING_SIGNALS) process.on(signal, onSignal);
  return callOff;
}

export type Style = 'bold' | 'dim' | 'green' | 'yellow' | 'red';

/**
 * A line of a screen or an answer, before it is cut or wrapped; `first`: so many characters have
 * the style, all unless given.
 */
export type Line =
  | string
  | { readonly text: string; readonly style: Style; readonly first?: number };

export function styled(style: Style, text: string): Line {
  return { text, style };
}

/** A line whose first word alone has a style. */
export function labelled(style: Style, text: string): Line {
  return { text, style, first: text.indexOf(' ') };
}

const CODES: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 };

export function textOf(line: Line): string {
  return typeof line === 'string' ? line : line.text;
}

/** The same line with another text. */
export function withText(line: Line, text: string): Line {
  return typeof line === 'string' ? text : { ...line, text };
}

/** The line as a terminal takes it, in at most so many columns. */
export function rendered(line: Line, columns: number): string {
  const text = textOf(line);
  return painted(withText(line, displayWidth(text) <= columns ? text : fitted(text, columns)));
}

/** The line in its colour. */
export function painted(line: Line): string {
  if (typeof line === 'string') return line;
  const { first = line.text.length, style, text } = line;
  return `\x1b[${CODES[style]}m${text.slice(0, first)}\x1b[0m${text.slice(first)}`;
}

/** The lines, those broken that are longer than `width`; see `wrapped`. */
export function wrappedLines(lines: readonly Line[], width: number | undefined): Line[] {
  return lines.flatMap((line) => {
    const [first = '', ...rest] = wrapped([textOf(line)], width);
    const isLabelled = typeof line !== 'string' && line.first !== undefined;
    return [
      withText(line, first),
      ...rest.map((text) => (isLabelled ? text : withText(line, text))),
    ];
  });
}

const OPEN = '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J';
const CLOSE = '\x1b[?7h\x1b[?25h\x1b[?1049l';
const CLEAR_SCREEN = '\x1b[2J';

/**
 * The whole window of a terminal, beside what stands in it otherwise. Opened, it is drawn on line
 * by line, and only lines that differ from what they were are written; closed, which also happens
 * when the process ends, everything is as before.
 */
export class Screen {
  #shown: readonly string[] = [];
  #callOff: (() => void) | undefined;

  constructor(
    readonly stream: {
      readonly columns?: number | undefined;
      readonly rows?: number | undefined;
      write(text: string): unknown;
    },
  ) {}

  get columns(): number {
    return columnsOf(this.stream);
  }

  get rows(): number {
    return this.stream.rows || 24;
  }

  open(): void {
    if (this.#callOff !== undefined) return;
    this.#callOff = whenLeaving(() => this.close());
    this.#shown = [];
    this.stream.write(OPEN);
  }

  /** Shows these lines from the top; what is longer than the window is cut. */
  draw(lines: readonly Line[]): void {
    if (this.#callOff === undefined) return;
    const next = lines.slice(0, this.rows).map((line) => rendered(line, this.columns));
    let text = '';
    for (let row = 0; row < Math.max(next.length, this.#shown.length); row += 1) {
      const line = next[row] ?? '';
      // The line is cleared first: behind one that fills its row the cursor may stand on its last
      // character.
      if (line !== (this.#shown[row] ?? '')) text += `\x1b[${row + 1};1H\x1b[K${line}`;
    }
    this.#shown = next;
    if (text !== '') this.stream.write(text);
  }

  /** Forgets what is shown: the window has another size, or something else wrote on it. */
  wipe(): void {
    if (this.#callOff === undefined) return;
    this.#shown = [];
    this.stream.write(CLEAR_SCREEN);
  }

  close(): void {
    if (this.#callOff === undefined) return;
    this.#callOff();
    this.#callOff = undefined;
    this.stream.write(CLOSE);
  }
}

/** What is done for a key. */
export type KeyWork = Readonly<Record<'q' | 'p' | 'redraw', () => void>>;

/** Ctrl-C, Ctrl-D and Ctrl-L; an arrow key or something pasted is none of ours. */
const KEYS: Readonly<Record<string, keyof KeyWork>> = {
  q: 'q',
  Q: 'q',
  '\x03': 'q',
  '\x04': 'q',
  p: 'p',
  P: 'p',
  '\x0c': 'redraw',
};

/**
 * Listens to the keys of a terminal, each as it is pressed; any other input has no keys. @returns
 * what ends that
 */
export function listenToKeys(input: ReadStream, work: KeyWork): () => void {
  if (!input.isTTY) return () => {};
  const pressed = (text: string) => {
    const key = KEYS[text];
    if (key !== undefined) work[key]();
  };
  input.setRawMode(true);
  input.setEncoding('utf8').on('data', pressed);
  input.resume();
  return () => {
    input.off('data', pressed);
    input.setRawMode(false);
    input.pause();
    // A terminal that is only paused keeps the process alive.
    input.unref();
  };
}

/** Where a person is asked; `isTerminal` tells whether somebody is there. */
export interface Asked {
  readonly input: Readable;
  readonly output: Writable;
  readonly isTerminal: boolean;
}

export const onThisTerminal: () => Asked = () => ({
  input: process.stdin,
  output: process.stderr,
  isTerminal: process.stdin.isTTY === true && process.stderr.isTTY === true,
});

/**
 * Resolves when a person typed what was asked for.
 *
 * @param nothing what did not happen, where it is refused
 * @throws PeersyncError NOT_CONFIRMED when something else was typed, or nobody could be asked (a
 *   wrong usage then)
 */
export async function consent(
  question: string,
  expected: string,
  asked: Asked,
  signal: AbortSignal,
  nothing = 'Nothing was deleted',
): Promise<void> {
  const instead = 'Give --yes when that is what you want.';
  await choice(question, [expected], asked, signal, { nothing, instead });
}

/**
 * Resolves to the one of several words that a person typed.
 *
 * @param refusal what did not happen, where it is refused, and what to do where nobody can be asked
 * @throws PeersyncError as `consent`
 */
export async function choice<Word extends string>(
  question: string,
  words: readonly Word[],
  asked: Asked,
  signal: AbortSignal,
  { nothing, instead }: { readonly nothing: string; readonly instead: string },
): Promise<Word> {
  if (!asked.isTerminal)
    throw new PeersyncError({
      code: 'NOT_CONFIRMED',
      message: `${nothing}: there is no terminal to ask on.`,
      hint: instead,
      exitCode: EXIT.usage,
    });
  const { createInterface } = await import('node:readline/promises');
  // The terminal's own line editing: then Ctrl-C stays a signal.
  const lines = createInterface({ input: asked.input, output: asked.output, terminal: false });
  try {
    const closed = new Promise<undefined>((resolve) =>
      lines.once('close', () => resolve(undefined)),
    );
    const answer = await Promise.race([lines.question(question, { signal }), closed]);
    const chosen = words.find((word) => word === answer?.trim());
    if (chosen !== undefined) return chosen;
  } finally {
    lines.close();
  }
  throw new PeersyncError({
    code: 'NOT_CONFIRMED',
    message: `${nothing}: ${words.map((word) => `"${word}"`).join(' or ')} was not typed.`,
    hint: 'Run the command again when you are sure.',
  });
}

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
  /** Whether nothing can move now, such as while the peer is away: then there is no rate either. */
  readonly heldUp?: boolean;
}

const SHORTEST_BAR = 8;
const LONGEST_BAR = 30;

/**
 * What is shown of a step, shorter than the terminal is wide, so that it never wraps: what matters
 * least is left out first, and the bar takes what room is left.
 *
 * @param perSecond undefined while it is not known
 * @param columns of the terminal; undefined where nothing is drawn: then it is everything that can
 *   be told, and no bar
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
 * The whole line, from its begin. The blank is for terminals that take clearing from the first
 * corner of the window for clearing the window, and keep what stood there above it.
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
 * - *Drawn*, on a terminal: one line that is drawn anew in place, also when the terminal gets
 *   another size. The cursor is hidden and waits at the line's begin, where it stays even when a
 *   terminal that became narrower breaks the line in two.
 * - *Told*, elsewhere: a plain line now and then.
 * - *Silent*, without a stream.
 *
 * `clear` makes room for other output; the next `show` draws again. After `end` the terminal is as
 * it was before.
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

/** A log that only takes the lines for which `isWanted` says so. */
export function filtered(log: Logger, isWanted: (fields: object) => boolean): Logger {
  const at = (level: keyof Logger) => (fields: object, message: string) => {
    if (isWanted(fields)) log[level](fields, message);
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}
