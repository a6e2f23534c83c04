import { wellFormed } from '../lib/text.js';
import { Unreadable } from './record.js';
import type { TableRow } from './table.js';
import { DEEPEST, type TableHead, type TableParser, unpadded } from './table-parser.js';

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const BYTE_ORDER_MARK = Buffer.from('\ufeff');

/** Names and columns that stand ahead of the rows are not longer, in bytes. */
const MOST_AHEAD = 4 * 1024 * 1024;

/**
 * A table in JSON: `{"table":…,"columns":[…],"rows":[…]}` with other members as it likes, or the list of rows alone. A
 * row is `{"pk":…,"cells":{…}}`, or has its cells beside `pk`.
 *
 * - `ahead`: collects what stands before the rows.
 * - `rows`: looks for the ends of rows only; whole rows are parsed together, as many as came in.
 * - `behind`: collects what stands behind the rows.
 */
export class JsonTable implements TableParser {
  readonly rows: TableRow[] = [];
  head: TableHead | undefined;
  #place: 'ahead' | 'rows' | 'behind' = 'ahead';
  /** In `ahead` and `behind` all of it, in `rows` the beginning of a row. */
  #held: Buffer[] = [];
  #heldBytes = 0;
  #triedBytes = 0;
  #isList = false;
  #depth = 0;
  #inText = false;
  #isEscaped = false;
  #separated: 'first' | 'by comma' | 'not yet' = 'first';

  write(bytes: Buffer): void {
    if (this.#place === 'rows') {
      this.#readRows(bytes);
      return;
    }
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
    if (this.#place === 'behind' || this.#heldBytes < 2 * this.#triedBytes) return;
    this.#begin();
  }

  end(): void {
    if (this.#place === 'ahead') this.#begin();
    if (this.#place !== 'behind') throw brokenOff();
    const behind = Buffer.concat(this.#held).toString();
    const whole = this.#isList ? `[${behind}` : `{"rows":[${behind}`;
    if (!/[\]}]\s*$/.test(behind)) throw brokenOff();
    parse(whole);
  }

  #begin(): void {
    const text = Buffer.concat(this.#held);
    this.#triedBytes = text.length;
    const start = notBlank(text, text.indexOf(BYTE_ORDER_MARK) === 0 ? BYTE_ORDER_MARK.length : 0);
    if (start === text.length) return;
    this.#isList = text[start] === OPEN_LIST;
    const found = this.#isList ? { membersEnd: start, rows: start + 1 } : findRows(text, start);
    if (found === undefined) {
      if (text.length > MOST_AHEAD) throw new Unreadable('gave an answer in JSON without rows');
      return;
    }
    this.head = this.#isList
      ? { name: undefined, columns: undefined }
      : headOf(text.toString('utf8', start, found.membersEnd));
    this.#place = 'rows';
    this.#held = [];
    this.#readRows(text.subarray(found.rows));
  }

  /** Finds the rows that are whole at the end of these bytes, and keeps the beginning of the next. */
  #readRows(bytes: Buffer): void {
    let rowStart = 0;
    let firstStart = this.#held.length > 0 ? 0 : -1;
    let wholeEnd = 0;
    let at = 0;
    for (; at < bytes.length && this.#place === 'rows'; at += 1) {
      const byte = bytes[at] as number;
      if (this.#inText) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === QUOTE) this.#inText = false;
      } else if (this.#depth === 0) {
        if (isBlank(byte)) continue;
        if (byte === OPEN_OBJECT && this.#separated !== 'not yet') {
          rowStart = at;
          if (firstStart === -1) firstStart = at;
          this.#depth = 1;
        } else if (byte === COMMA && this.#separated === 'not yet') this.#separated = 'by comma';
        else if (byte === CLOSE_LIST && this.#separated !== 'by comma') this.#place = 'behind';
        else throw new Unreadable('gave rows in JSON that are no list of objects');
      } else if (byte === QUOTE) this.#inText = true;
      else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
        this.#depth += 1;
        if (this.#depth > DEEPEST) throw new Unreadable('gave an answer that is nested too deeply');
      } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
        this.#depth -= 1;
        if (this.#depth > 0) continue;
        this.#separated = 'not yet';
        wholeEnd = at + 1;
      }
    }
    if (wholeEnd > 0) {
      this.#held.push(bytes.subarray(firstStart, wholeEnd));
      this.#parseRows(Buffer.concat(this.#held).toString());
      this.#held = [];
    }
    if (this.#depth > 0) this.#held.push(bytes.subarray(rowStart));
    else if (this.#place === 'behind') this.#held.push(bytes.subarray(at - 1));
  }

  #parseRows(text: string): void {
    const rows = parse(`[${text}]`) as readonly unknown[];
    const exact = rows.some(holdsNumber) ? (parse(`[${quoteNumbers(text)}]`) as readonly unknown[]) : rows;
    const mended = mayBreakPairs(text) ? wellFormed : asItIs;
    for (const row of exact) this.rows.push(rowOf(row, mended));
  }
}

/** Where the members before the list `rows` of an object end, and where the rows begin; undefined if that has not come. */
function findRows(text: Buffer, start: number): { membersEnd: number; rows: number } | undefined {
  let at = start + 1;
  for (;;) {
    while (at < text.length && (isBlank(text[at]) || text[at] === COMMA)) at += 1;
    const keyStart = at;
    if (text[at] === CLOSE_OBJECT) throw new Unreadable('gave an answer in JSON without rows');
    if (at >= text.length) return undefined;
    if (text[at] !== QUOTE) throw unreadable();
    const keyEnd = textEnd(text, at);
    at = notBlank(text, keyEnd);
    if (at >= text.length) return undefined;
    if (text[at] !== COLON) throw unreadable();
    at = notBlank(text, at + 1);
    if (text[at] === OPEN_LIST && parse(text.toString('utf8', keyStart, keyEnd)) === 'rows') {
      return { membersEnd: keyStart, rows: at + 1 };
    }
    at = valueEnd(text, at);
  }
}

/** Behind the quote that ends the text that begins here, or the end of all. */
function textEnd(text: Buffer, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === BACKSLASH) at += 1;
    else if (text[at] === QUOTE) return at + 1;
  }
  return text.length;
}

/** Behind the value that begins here, or the end of all. */
function valueEnd(text: Buffer, start: number): number {
  let depth = 0;
  let at = start;
  while (at < text.length) {
    const byte = text[at];
    if (byte === QUOTE) at = textEnd(text, at) - 1;
    else if (byte === OPEN_OBJECT || byte === OPEN_LIST) depth += 1;
    else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) depth -= 1;
    if (depth > DEEPEST) throw new Unreadable('gave an answer that is nested too deeply');
    if (depth < 0 || (depth === 0 && byte === COMMA)) return at;
    at += 1;
  }
  return at;
}

function notBlank(text: Buffer, start: number): number {
  let at = start;
  while (at < text.length && isBlank(text[at])) at += 1;
  return at;
}

function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** @param text the members before the rows, with the brace before them and the comma behind them */
function headOf(text: string): TableHead {
  const members = parse(`${text.trimEnd().replace(/,$/, '')}}`) as Record<string, unknown>;
  const { table, name, columns } = members;
  const isNamed = Array.isArray(columns) && columns.every((column) => typeof column === 'string');
  return {
    name: [table, name].filter((value) => typeof value === 'string').map(wellFormed)[0],
    columns: isNamed ? columns.map(wellFormed) : undefined,
  };
}

/** @param mended for every text of the row */
function rowOf(json: unknown, mended: (text: string) => string): TableRow {
  const { pk, cells } = json as Record<string, unknown>;
  const key = unpadded(mended(cellOf(pk) ?? ''));
  if (key === '') throw new Unreadable('shows a row without its key');
  const isFlat = typeof cells !== 'object' || cells === null || Array.isArray(cells);
  const members = (isFlat ? json : cells) as Record<string, unknown>;
  const row = new Map<string, string>();
  for (const column of Object.keys(members)) {
    if (isFlat && column === 'pk') continue;
    const cell = cellOf(members[column]);
    if (cell !== undefined) row.set(mended(column), mended(cell));
  }
  return { pk: key, cells: row };
}

/** Only escapes can make half of a pair: the bytes were decoded. */
function mayBreakPairs(text: string): boolean {
  return /\\u[dD]/.test(text);
}

function asItIs(text: string): string {
  return text;
}

function cellOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) return undefined;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function holdsNumber(json: unknown): boolean {
  if (typeof json === 'number') return true;
  if (typeof json !== 'object' || json === null) return false;
  for (const key in json) if (holdsNumber((json as Record<string, unknown>)[key])) return true;
  return false;
}

/** Makes texts of numbers, so that each keeps its digits as the peer wrote them. */
function quoteNumbers(text: string): string {
  const parts: string[] = [];
  const next = /"|-?\d[\d.eE+-]*/g;
  let from = 0;
  for (let found = next.exec(text); found !== null; found = next.exec(text)) {
    if (found[0] === '"') {
      next.lastIndex = quoteBehind(text, found.index) + 1;
      continue;
    }
    parts.push(text.slice(from, found.index), '"', found[0], '"');
    from = next.lastIndex;
  }
  parts.push(text.slice(from));
  return parts.join('');
}

function quoteBehind(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); ; at = text.indexOf('"', at + 1)) {
    let escapes = 0;
    while (text[at - 1 - escapes] === '\\') escapes += 1;
    if (escapes % 2 === 0) return at;
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw unreadable(cause);
  }
}

function unreadable(cause?: unknown): Unreadable {
  return new Unreadable('gave an answer in JSON that cannot be read', { cause });
}

function brokenOff(): Unreadable {
  return new Unreadable('gave an answer in JSON that breaks off');
}
