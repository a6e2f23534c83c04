import { Parser } from 'htmlparser2';
import { Unreadable } from './record.js';
import type { TableRow } from './table.js';
import { MOST_ATTRIBUTES, type TableHead, type TableParser, unpadded } from './table-parser.js';

/** Pages are nested more deeply than tables. */
const DEEPEST = 256;
const ROW_TICK = /^pk_/;

interface Cell {
  text: string;
}

/** One `<table>` of the page, and its row that is open. */
interface Grid {
  /** Texts of its first row. */
  heading: readonly string[] | undefined;
  cells: Cell[] | undefined;
  /** Of the row's checkbox, where the page is an editor. */
  tickedKey: string | undefined;
  /** Whether a cell of the row spans others: a note, and no row of the table. */
  spans: boolean;
}

/**
 * A table on a page for people: the first `<table>` whose first row names a column `pk`, in any case. A checkbox of an
 * editor tells the key exactly; elsewhere it is the text under `pk`. Columns without a name are passed over.
 *
 * A page without any table shows none where it is a viewer of tables, as YaCy's is for a table that it does not have.
 */
export class HtmlTable implements TableParser {
  readonly rows: TableRow[] = [];
  head: TableHead | undefined;
  readonly #decoder = new TextDecoder();
  readonly #parser: Parser;
  readonly #grids: Grid[] = [];
  readonly #unclosed = new Set<string>();
  #chosen: Grid | undefined;
  #keyAt = -1;
  #depth = 0;
  #attributes = 0;
  #isEnding = false;
  #isViewer = false;
  #hasTables = false;

  constructor() {
    this.#parser = new Parser(
      {
        onopentagname: () => {
          this.#attributes = 0;
        },
        onattribute: () => this.#countAttribute(),
        onopentag: (name, attributes) => this.#open(name, attributes),
        ontext: (text) => this.#text(text),
        onclosetag: (name) => this.#close(name),
      },
      { decodeEntities: true },
    );
  }

  write(bytes: Buffer): void {
    this.#parser.write(this.#decoder.decode(bytes, { stream: true }));
  }

  end(): void {
    this.#parser.write(this.#decoder.decode());
    this.#isEnding = true;
    this.#parser.end();
    if (this.#unclosed.has('html') || this.#unclosed.has('table')) {
      throw new Unreadable('gave an answer in HTML that breaks off');
    }
    if (this.head === undefined && (this.#hasTables || !this.#isViewer)) {
      throw new Unreadable('gave a page that shows no table with keys (a column PK)');
    }
  }

  #countAttribute(): void {
    this.#attributes += 1;
    if (this.#attributes > MOST_ATTRIBUTES) {
      throw new Unreadable('gave an element with too many attributes');
    }
  }

  #open(name: string, attributes: Readonly<Record<string, string>>): void {
    this.#depth += 1;
    if (this.#depth > DEEPEST) throw new Unreadable('gave an answer that is nested too deeply');
    const grid = this.#grids.at(-1);
    if (name === 'body' && /^tables?$/i.test(attributes.id ?? '')) this.#isViewer = true;
    else if (name === 'table') {
      this.#hasTables = true;
      this.#grids.push({ heading: undefined, cells: undefined, tickedKey: undefined, spans: false });
    } else if (grid === undefined) return;
    else if (name === 'tr') {
      grid.cells = [];
      grid.tickedKey = undefined;
      grid.spans = false;
    } else if (name === 'td' || name === 'th') {
      grid.cells?.push({ text: '' });
      if (attributes.colspan !== undefined && attributes.colspan !== '1') grid.spans = true;
    } else if (name === 'input' && grid.cells !== undefined && ROW_TICK.test(attributes.value ?? '')) {
      grid.tickedKey = attributes.value?.replace(ROW_TICK, '');
    }
  }

  #text(text: string): void {
    const grid = this.#grids.at(-1);
    const cell = grid?.cells?.at(-1);
    if (cell !== undefined && (grid?.heading === undefined || grid === this.#chosen)) cell.text += text;
  }

  #close(name: string): void {
    this.#depth -= 1;
    if (this.#isEnding) {
      this.#unclosed.add(name);
      return;
    }
    if (name === 'table') this.#grids.pop();
    const grid = this.#grids.at(-1);
    if (name !== 'tr' || grid?.cells === undefined) return;
    const { cells } = grid;
    grid.cells = undefined;
    if (grid.heading === undefined) this.#begin(grid, cells);
    else if (grid === this.#chosen) this.#row(grid, cells);
  }

  #begin(grid: Grid, cells: readonly Cell[]): void {
    grid.heading = cells.map(({ text }) => text);
    const keyAt = grid.heading.findIndex((name) => name.trim().toLowerCase() === 'pk');
    if (this.#chosen !== undefined || keyAt === -1) return;
    this.#chosen = grid;
    this.#keyAt = keyAt;
    const columns = grid.heading.filter((name, at) => at !== keyAt && name.trim() !== '');
    this.head = { name: undefined, columns };
  }

  #row({ heading, tickedKey, spans }: Grid, cells: readonly Cell[]): void {
    if (heading === undefined || spans) return;
    const pk = unpadded(tickedKey ?? cells[this.#keyAt]?.text ?? '');
    if (pk === '') throw new Unreadable('shows a row without its key');
    if (cells.length !== heading.length)
      throw new Unreadable('shows a row that does not fit the heading of its table');
    const row = new Map<string, string>();
    heading.forEach((column, at) => {
      if (at !== this.#keyAt && column.trim() !== '') row.set(column, cells[at]?.text ?? '');
    });
    this.rows.push({ pk, cells: row });
  }
}
