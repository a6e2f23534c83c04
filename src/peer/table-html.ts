import { Parser } from 'htmlparser2';
import { refuseEntities } from './markup-tree.js';
import { Unreadable } from './record.js';
import type { TableRow } from './table.js';
import {
  type Attributes,
  MOST_ATTRIBUTES,
  ofBase64,
  type TableHead,
  type TableParser,
  unpadded,
} from './table-parser.js';

/** Pages are nested more deeply than tables. */
const DEEPEST = 256;
/** The value of a row's checkbox, as the editor sends it to delete the row. */
const TICK = /^pk(-base64)?_(.+)$/s;

interface Cell {
  text: string;
  /** The text in base64, where the page cannot show it. */
  readonly base64: string | undefined;
}

/** One `<table>` of the page, and its row that is open. */
interface Grid {
  /** Texts of its first row. */
  heading: readonly string[] | undefined;
  cells: Cell[] | undefined;
  isInCell: boolean;
  /** Of the row's checkbox, where the page is an editor. */
  tickedKey: string | undefined;
  /** Whether a cell of the row spans others: a note, and no row of the table. */
  spans: boolean;
}

/**
 * A table on a page for people: the first `<table>` whose first heading that is not empty is `PK`, or `Key` where each row
 * has an editor's checkbox, which tells the key exactly. Columns without a heading are passed over. Texts are read as
 * they stand in the page, or from `data-base64` beside them.
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
  #needsTicks = false;
  #depth = 0;
  #attributes = 0;
  #isEnding = false;
  #isViewer = false;
  #hasTables = false;

  constructor() {
    this.#parser = new Parser(
      {
        onprocessinginstruction: (_, data) => refuseEntities(data),
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

  #open(name: string, attributes: Attributes): void {
    this.#depth += 1;
    if (this.#depth > DEEPEST) throw new Unreadable('gave an answer that is nested too deeply');
    const grid = this.#grids.at(-1);
    if (name === 'body' && /^tables?$/i.test(attributes.id ?? '')) this.#isViewer = true;
    else if (name === 'table') {
      this.#hasTables = true;
      this.#grids.push({
        heading: undefined,
        cells: undefined,
        isInCell: false,
        tickedKey: undefined,
        spans: false,
      });
    } else if (grid === undefined) return;
    else if (name === 'tr') {
      grid.cells = [];
      grid.tickedKey = undefined;
      grid.spans = false;
    } else if (name === 'td' || name === 'th') {
      grid.isInCell = true;
      grid.cells?.push({ text: '', base64: attributes['data-base64'] });
      if (attributes.colspan !== undefined && attributes.colspan !== '1') grid.spans = true;
    } else if (name === 'input' && grid.cells !== undefined) {
      const [, base64, key] = TICK.exec(attributes.value ?? '') ?? [];
      if (key !== undefined) grid.tickedKey = base64 === undefined ? key : ofBase64(key);
    }
  }

  #text(text: string): void {
    const grid = this.#grids.at(-1);
    const cell = grid?.isInCell ? grid.cells?.at(-1) : undefined;
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
    if (grid !== undefined && (name === 'td' || name === 'th')) grid.isInCell = false;
    if (name !== 'tr' || grid?.cells === undefined) return;
    const { cells } = grid;
    grid.cells = undefined;
    if (grid.heading === undefined) this.#begin(grid, cells);
    else if (grid === this.#chosen) this.#row(grid, cells);
  }

  #begin(grid: Grid, cells: readonly Cell[]): void {
    grid.heading = cells.map(textOf);
    const keyAt = grid.heading.findIndex((name) => name.trim() !== '');
    const key = grid.heading[keyAt]?.trim().toLowerCase();
    if (this.#chosen !== undefined || (key !== 'pk' && key !== 'key')) return;
    this.#chosen = grid;
    this.#keyAt = keyAt;
    this.#needsTicks = key !== 'pk';
    const columns = grid.heading.filter((name, at) => at !== keyAt && name.trim() !== '');
    this.head = { name: undefined, columns };
  }

  #row({ heading = [], tickedKey, spans }: Grid, cells: readonly Cell[]): void {
    if (spans) return;
    const cellOfKey = this.#needsTicks ? undefined : cells[this.#keyAt];
    const pk = tickedKey ?? (cellOfKey && unpadded(textOf(cellOfKey))) ?? '';
    if (pk === '') throw new Unreadable('shows a row without its key');
    if (cells.length !== heading.length)
      throw new Unreadable('shows a row that does not fit the heading of its table');
    const row = new Map<string, string>();
    cells.forEach((cell, at) => {
      const column = heading[at] ?? '';
      if (at !== this.#keyAt && column.trim() !== '') row.set(column, textOf(cell));
    });
    this.rows.push({ pk, cells: row });
  }
}

function textOf({ text, base64 }: Cell): string {
  return base64 === undefined ? text : ofBase64(base64);
}
