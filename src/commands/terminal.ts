import type { Readable, Writable } from 'node:stream';
import type { ReadStream } from 'node:tty';
import { EXIT, PeersyncError } from '../lib/errors.js';
import { displayWidth, fitted } from './text.js';

type Environment = Readonly<Record<string, string | undefined>>;

const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Whether a stream is a terminal on which lines can be drawn anew. */
export function canDraw(stream: { readonly isTTY?: boolean | undefined }, env: Environment): boolean {
  return stream.isTTY === true && env.TERM !== 'dumb';
}

/** Whether colours are wanted where something is drawn (see no-color.org). */
export function wantsColour(env: Environment): boolean {
  return env.NO_COLOR === undefined || env.NO_COLOR === '';
}

/** How wide a terminal is; some do not know and say 0. */
export function columnsOf(stream: { readonly columns?: number | undefined }): number {
  return stream.columns || 80;
}

/**
 * Has a terminal put in order when the process ends, in whatever way it can notice. A signal that nobody else listens to
 * then ends it as if nobody had listened.
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

/** A line of a screen, before it is cut to its width. */
export type Line = string | { readonly text: string; readonly style: Style };

const CODES: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 };

/** The line as a terminal takes it, in at most so many columns. */
export function rendered(line: Line, columns: number): string {
  const text = typeof line === 'string' ? line : line.text;
  const shown = displayWidth(text) <= columns ? text : fitted(text, columns);
  return typeof line === 'string' ? shown : `\x1b[${CODES[line.style]}m${shown}\x1b[0m`;
}

const OPEN = '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J';
const CLOSE = '\x1b[?7h\x1b[?25h\x1b[?1049l';
const CLEAR_SCREEN = '\x1b[2J';
const CLEAR_LINE = '\x1b[K';

/**
 * The whole window of a terminal, beside what stands in it otherwise. Opened, it is drawn on line by line, and only lines
 * that differ from what they were are written; closed, which also happens when the process ends, everything is as before.
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
      // The line is cleared first: behind one that fills its row the cursor may stand on its last character.
      if (line !== (this.#shown[row] ?? '')) text += `\x1b[${row + 1};1H${CLEAR_LINE}${line}`;
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

/** What is done for a key; `suspend` and `resume` for Ctrl-Z, before the process stops and when it goes on. */
export type KeyWork = Readonly<Record<'q' | 'p' | 'redraw' | 'suspend' | 'resume', () => void>>;

/** Ctrl-C, Ctrl-D, Ctrl-L and Ctrl-Z; an arrow key or something pasted is none of ours. */
const KEYS: Readonly<Record<string, Exclude<keyof KeyWork, 'resume'>>> = {
  ...{ q: 'q', Q: 'q', '\x03': 'q', '\x04': 'q', p: 'p', P: 'p', '\x0c': 'redraw', '\x1a': 'suspend' },
};

/** Listens to the keys of a terminal, each as it is pressed; any other input has no keys. @returns what ends that */
export function listenToKeys(input: ReadStream, work: KeyWork): () => void {
  if (!input.isTTY) return () => {};
  let isOpen = true;
  const suspend = () => {
    input.setRawMode(false);
    work.suspend();
    process.once('SIGCONT', () => {
      if (!isOpen) return;
      input.setRawMode(true);
      work.resume();
    });
    process.kill(process.pid, 'SIGTSTP');
  };
  const pressed = (text: string) => {
    const key = KEYS[text];
    if (key === 'suspend') suspend();
    else if (key !== undefined) work[key]();
  };
  input.setRawMode(true);
  input.setEncoding('utf8').on('data', pressed);
  input.resume();
  return () => {
    isOpen = false;
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
 * @throws PeersyncError NOT_CONFIRMED when something else was typed, or nobody could be asked (a wrong usage then)
 */
export async function consent(
  question: string,
  expected: string,
  asked: Asked,
  signal: AbortSignal,
  nothing = 'Nothing was deleted',
): Promise<void> {
  if (!asked.isTerminal)
    throw new PeersyncError({
      code: 'NOT_CONFIRMED',
      message: `${nothing}: there is no terminal to ask on.`,
      hint: 'Give --yes when that is what you want.',
      exitCode: EXIT.usage,
    });
  const { createInterface } = await import('node:readline/promises');
  // The terminal's own line editing: then Ctrl-C stays a signal.
  const lines = createInterface({ input: asked.input, output: asked.output, terminal: false });
  try {
    const closed = new Promise<undefined>((resolve) => lines.once('close', () => resolve(undefined)));
    const answer = await Promise.race([lines.question(question, { signal }), closed]);
    if (answer?.trim() === expected) return;
  } finally {
    lines.close();
  }
  throw new PeersyncError({
    code: 'NOT_CONFIRMED',
    message: `${nothing}: "${expected}" was not typed.`,
    hint: 'Run the command again when you are sure.',
  });
}
