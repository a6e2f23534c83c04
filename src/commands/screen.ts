import { rendered, type StyledLine } from './styled.js';
import { columnsOf, whenLeaving } from './terminal.js';

const OPEN = '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J';
const CLOSE = '\x1b[?7h\x1b[?25h\x1b[?1049l';
const CLEAR_SCREEN = '\x1b[2J';
const CLEAR_LINE = '\x1b[K';

/** A terminal of which the whole window is drawn on. */
export interface ScreenStream {
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  write(text: string): unknown;
}

/**
 * The whole window of a terminal, beside what stands in it otherwise. Opened, it is drawn on line by line, and only lines
 * that differ from what they were are written; closed, which also happens when the process ends, everything is as before.
 */
export class Screen {
  readonly #stream: ScreenStream;
  #shown: readonly string[] = [];
  #callOff: (() => void) | undefined;

  constructor(stream: ScreenStream) {
    this.#stream = stream;
  }

  get columns(): number {
    return columnsOf(this.#stream);
  }

  get rows(): number {
    return this.#stream.rows || 24;
  }

  open(): void {
    if (this.#callOff !== undefined) return;
    this.#callOff = whenLeaving(() => this.close());
    this.#shown = [];
    this.#stream.write(OPEN);
  }

  /** Shows these lines from the top; what is longer than the window is cut. */
  draw(lines: readonly StyledLine[]): void {
    if (this.#callOff === undefined) return;
    const next = lines.slice(0, this.rows).map((line) => rendered(line, this.columns));
    let text = '';
    for (let row = 0; row < Math.max(next.length, this.#shown.length); row += 1) {
      const line = next[row] ?? '';
      // The line is cleared first: behind one that fills its row the cursor may stand on its last character.
      if (line !== (this.#shown[row] ?? '')) text += `\x1b[${row + 1};1H${CLEAR_LINE}${line}`;
    }
    this.#shown = next;
    if (text !== '') this.#stream.write(text);
  }

  /** Forgets what is shown: the window has another size, or something else wrote on it. */
  wipe(): void {
    if (this.#callOff === undefined) return;
    this.#shown = [];
    this.#stream.write(CLEAR_SCREEN);
  }

  close(): void {
    if (this.#callOff === undefined) return;
    this.#callOff();
    this.#callOff = undefined;
    this.#stream.write(CLOSE);
  }
}
