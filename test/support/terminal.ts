import { EventEmitter } from 'node:events';

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const TOKENS = /\x1b\[[0-9;?]*[A-Za-z]|\x1b.|[\s\S]/gu;

interface Line {
  cells: string[];
  /** Whether the next line goes on with this one. */
  wrapped: boolean;
}

/**
 * A terminal as far as peersync uses one: it keeps what is on the screen, breaks lines that are too
 * long, breaks them anew when it gets another width, and refuses any sequence that it does not
 * know. Every character takes one column.
 */
export class FakeTerminal extends EventEmitter {
  readonly isTTY = true;
  cursorIsShown = true;
  isAlternate = false;
  /** All that was ever written. */
  written = '';
  /** Number of writes. */
  writes = 0;
  #wraps = true;
  #lines: Line[] = [{ cells: [], wrapped: false }];
  #row = 0;
  #column = 0;
  #main: { lines: Line[]; row: number; column: number } | undefined;

  constructor(
    public columns: number,
    public rows = 24,
  ) {
    super();
  }

  /** The lines of the screen, without blank ones at its end. */
  get screen(): string[] {
    const lines = this.#lines.map(({ cells }) =>
      Array.from(cells, (cell) => cell ?? ' ')
        .join('')
        .trimEnd(),
    );
    while (lines.at(-1) === '') lines.pop();
    return lines;
  }

  write(text: string): boolean {
    this.written += text;
    this.writes += 1;
    for (const [token] of text.matchAll(TOKENS)) this.#take(token);
    return true;
  }

  /**
   * Another size, as when somebody drags a corner of the window: lines are broken anew, and the
   * program hears of it.
   */
  resize(columns: number, rows = this.rows): void {
    this.columns = columns;
    this.rows = rows;
    if (!this.isAlternate) this.#reflow();
    this.emit('resize');
  }

  #take(token: string): void {
    if (token === '\r') this.#column = 0;
    else if (token === '\n') this.#down(false);
    else if (token.startsWith('\x1b')) this.#obey(token);
    else this.#put(token);
  }

  #put(character: string): void {
    if (this.#column >= this.columns) {
      if (this.#wraps) this.#down(true);
      else this.#column = this.columns - 1;
      if (this.#wraps) this.#column = 0;
    }
    this.#line().cells[this.#column] = character;
    this.#column += 1;
  }

  #down(wrapped: boolean): void {
    this.#line().wrapped = wrapped;
    this.#row += 1;
    this.#column = 0;
    this.#line();
  }

  #line(): Line {
    while (this.#lines.length <= this.#row) this.#lines.push({ cells: [], wrapped: false });
    return this.#lines[this.#row] ?? { cells: [], wrapped: false };
  }

  #obey(sequence: string): void {
    const place = /^.\[(\d+);(\d+)H$/.exec(sequence);
    if (place !== null) {
      this.#row = Number(place[1]) - 1;
      this.#column = Number(place[2]) - 1;
      return;
    }
    if (/^.\[[0-9;]*m$/.test(sequence)) return;
    switch (sequence) {
      case '\x1b[J':
        this.#clearLine();
        this.#lines.length = this.#row + 1;
        return;
      case '\x1b[K':
        this.#clearLine();
        return;
      case '\x1b[2J':
        this.#lines = [];
        return;
      case '\x1b[H':
        this.#row = 0;
        this.#column = 0;
        return;
      case '\x1b[?25l':
      case '\x1b[?25h':
        this.cursorIsShown = sequence.endsWith('h');
        return;
      case '\x1b[?7l':
      case '\x1b[?7h':
        this.#wraps = sequence.endsWith('h');
        return;
      case '\x1b[?1049h':
        this.#main = { lines: this.#lines, row: this.#row, column: this.#column };
        this.#lines = [];
        this.isAlternate = true;
        return;
      case '\x1b[?1049l':
        if (this.#main !== undefined) {
          this.#lines = this.#main.lines;
          this.#row = this.#main.row;
          this.#column = this.#main.column;
        }
        this.isAlternate = false;
        return;
      default:
        throw new Error(`a terminal may not know ${JSON.stringify(sequence)}`);
    }
  }

  #clearLine(): void {
    const line = this.#line();
    line.cells.length = Math.min(line.cells.length, this.#column);
    line.wrapped = false;
  }

  #reflow(): void {
    const lines: Line[] = [];
    let cursor: { row: number; column: number } | undefined;
    for (let i = 0; i < this.#lines.length; ) {
      let cells: string[] = [];
      let at: number | undefined;
      for (;;) {
        const line = this.#lines[i];
        if (line === undefined) break;
        if (i === this.#row) at = cells.length + this.#column;
        cells = [...cells, ...Array.from(line.cells, (cell) => cell ?? ' ')];
        i += 1;
        if (!line.wrapped) break;
      }
      if (at !== undefined)
        cursor = { row: lines.length + Math.floor(at / this.columns), column: at % this.columns };
      do {
        const rest = cells.slice(this.columns);
        lines.push({ cells: cells.slice(0, this.columns), wrapped: rest.length > 0 });
        cells = rest;
      } while (cells.length > 0);
    }
    this.#lines = lines;
    this.#row = cursor?.row ?? 0;
    this.#column = cursor?.column ?? 0;
  }
}
