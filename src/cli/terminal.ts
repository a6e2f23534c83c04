import type { ReadStream } from 'node:tty';
import { columnsOf, displayWidth, fitted, wrapped } from './text.js';

type Environment = Readonly<Record<string, string | undefined>>;

const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Returns whether a stream is a terminal on which lines can be redrawn. */
export function canDraw(
  stream: { readonly isTTY?: boolean | undefined },
  env: Environment,
): boolean {
  return stream.isTTY === true && env.TERM !== 'dumb';
}

/** Returns whether colours are wanted (see no-color.org). */
export function wantsColour(env: Environment): boolean {
  return env.NO_COLOR === undefined || env.NO_COLOR === '';
}

/**
 * Calls `restore` when the process ends, however that happens, as far as it can be noticed. A
 * signal with no other listener then ends the process as usual.
 *
 * @returns a function that cancels that
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

/** Returns the line with another text. */
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
 * Draws on the whole window of a terminal. While it is open, only lines that changed are written.
 * When it is closed, or the process ends, the terminal is as it was before.
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

  /** Shows these lines from the top. Lines below the window are cut. */
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

  /** Redraws everything next time: the window was resized, or another program wrote on it. */
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

/** The action of each key. */
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
 * Calls an action for each key that is pressed. Input that is no terminal has no keys.
 *
 * @returns a function that ends that
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
