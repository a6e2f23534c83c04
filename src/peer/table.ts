import { setImmediate as nextTurn } from 'node:timers/promises';
import { wellFormed } from '../lib/text.js';
import { type StreamedAnswer, Unreadable } from './answer.js';
import { PeerError } from './errors.js';

/** One row of a table of the peer. */
export interface TableRow {
  /** Its key: unique in the table, opaque. */
  readonly pk: string;
  /** By column. A cell that is not there is as good as an empty one: peers do not tell the two apart. */
  readonly cells: ReadonlyMap<string, string>;
}

/** Which rows of which table. What is not given is not sent. */
export interface TableQuery {
  readonly table: string;
  /** Most rows; all of them unless given. */
  readonly count?: number | undefined;
  /** Only rows in which a cell holds this; how it is read is the peer's business (YaCy: a regular expression). */
  readonly search?: string | undefined;
}

/** A table as it comes in: rows in groups, in the peer's order, in bounded memory however many there are. */
export interface TableStream {
  /** What the peer calls it. */
  readonly name: string;
  /** The columns that the peer named ahead of the rows, without the key; undefined where it did not. */
  readonly columns: readonly string[] | undefined;
  readonly rows: AsyncIterable<readonly TableRow[]>;
}

/** A whole table in memory. */
export interface Table {
  readonly name: string;
  /** All columns, in the order in which the peer showed them first. */
  readonly columns: readonly string[];
  readonly rows: readonly TableRow[];
}

/** One row is not longer, in bytes of the answer, nor what stands before or behind the rows. */
const MOST_PER_ROW = 64 * 1024 * 1024;
/** A group of rows has at most so many. */
const GROUP_ROWS = 500;
/** So many bytes are read at once, with what becomes of their rows: a few milliseconds of work. */
const TURN_BYTES = 16 * 1024;
/** The form of an answer is told from so many characters of its beginning. */
const BEGIN = 1024;

/**
 * Reads a table as it comes in, in JSON or XML: the form is told by the first characters. Memory is bounded by
 * one row and one group of rows.
 *
 * @param asked name of the table
 * @param rawKeyBytes of a key that stands in XML as it is, padded to so many bytes and not escaped
 * @returns undefined where the answer says that there is no such table
 * @throws PeerError PEER_ANSWER for what is not a table, not the one asked for, or not whole, also while rows are read;
 *   PEER_ANSWER_TOO_LARGE for a row that is too long
 */
export async function readTable(
  answer: StreamedAnswer,
  asked: string,
  rawKeyBytes?: number,
): Promise<TableStream | undefined> {
  const parts = partsOf(answer, asked, rawKeyBytes);
  const { value: first } = await parts.next();
  if (first === undefined) return undefined;
  const { name = asked, columns } = first.head;
  async function* rest(): AsyncGenerator<readonly TableRow[]> {
    for await (const { rows } of parts) yield rows;
  }
  return { name, columns, rows: rest() };
}

/** What stands ahead of the rows. */
interface TableHead {
  /** What the peer calls the table; undefined where it does not say. */
  readonly name: string | undefined;
  /** Without the key; undefined where the peer did not name them ahead. */
  readonly columns: readonly string[] | undefined;
}

/** Reads a table of one form while it comes in. It holds what it was given since the last whole row, and no more. */
interface TableParser {
  /** Known once the rows begin; still undefined at the end where the answer shows no table. */
  readonly head: TableHead | undefined;
  /** Rows that came whole, for the owner to take out. */
  readonly rows: TableRow[];
  /** @throws Unreadable */
  write(text: string): void;
  /** @throws Unreadable when the answer broke off, or is about something else */
  end(): void;
}

/** What stands ahead of the rows as soon as that is known, then each group of rows beside it; nothing where there is no table. */
async function* partsOf(
  answer: StreamedAnswer,
  asked: string,
  rawKeyBytes: number | undefined,
): AsyncGenerator<{ readonly head: TableHead; readonly rows: readonly TableRow[] }, undefined> {
  const decoder = new TextDecoder();
  let begin = '';
  let parser: TableParser | undefined;
  let isHeadKnown = false;
  let sinceRow = 0;
  function* readySoFar() {
    const { head, rows } = parser ?? {};
    if (head === undefined || rows === undefined) return;
    if (head.name !== undefined && head.name !== asked)
      throw new Unreadable('answered with another table than the one asked for');
    if (!isHeadKnown) yield { head, rows: [] };
    isHeadKnown = true;
    while (rows.length > 0) yield { head, rows: rows.splice(0, GROUP_ROWS) };
  }
  try {
    for await (const piece of pieces(answer.chunks)) {
      const text = decoder.decode(piece, { stream: true });
      if (parser !== undefined) parser.write(text);
      else {
        begin += text;
        if (begin.length >= BEGIN) parser = parserOf(begin, rawKeyBytes);
      }
      sinceRow = parser !== undefined && parser.rows.length > 0 ? 0 : sinceRow + piece.length;
      if (sinceRow > MOST_PER_ROW)
        throw new Unreadable(`gave a row of more than ${MOST_PER_ROW} bytes`, 'PEER_ANSWER_TOO_LARGE');
      yield* readySoFar();
    }
    parser ??= parserOf(begin, rawKeyBytes);
    parser.write(decoder.decode());
    parser.end();
    yield* readySoFar();
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    const { url, status } = answer;
    const parts = { url, status, what: error.message, answer: Buffer.from(begin), delivered: 'yes' } as const;
    throw new PeerError(error.code, parts);
  }
  return undefined;
}

/** The parser for an answer that begins so; it has read that. */
function parserOf(begin: string, rawKeyBytes: number | undefined): TableParser {
  const text = begin.trimStart();
  if (text === '') throw new Unreadable('gave an empty answer');
  const isJson = /^[{[]/.test(text);
  if (!isJson && !/^<(\?xml|tables)\b/i.test(text))
    throw new Unreadable('gave an answer that is no table in JSON or XML');
  const parser = isJson ? new JsonTable() : new XmlTable(rawKeyBytes);
  parser.write(text);
  return parser;
}

/** The chunks, cut where they are so long that the event loop would be held up, with a turn for others in between. */
async function* pieces(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += TURN_BYTES) {
      if (at > 0) await nextTurn();
      yield chunk.subarray(at, at + TURN_BYTES);
    }
  }
}

/** Keys of a fixed width come padded with NUL (YaCy); no key ends with one otherwise. */
function keyOf(text: string): string {
  let end = text.length;
  while (text.charCodeAt(end - 1) === 0) end -= 1;
  if (end === 0) throw new Unreadable('shows a row without its key');
  return text.slice(0, end);
}

/** Deeper answers are no tables. */
const DEEPEST = 64;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * A table in JSON: `{"table":…,"columns":[…],"rows":[…]}` with other members as it likes, or the list of rows alone. A
 * row is `{"pk":…,"cells":{…}}`, or has its cells beside `pk`.
 *
 * Looks for the ends of rows only; whole rows are parsed together, as many as came in. What stands around the rows is
 * parsed without them.
 */
class JsonTable implements TableParser {
  readonly rows: TableRow[] = [];
  head: TableHead | undefined;
  /** What stands ahead of the rows, then the beginning of a row, then what stands behind the rows. */
  #held: string[] = [];
  /** The end of what was read before. */
  #tail = '';
  #depth = 0;
  /** The depth at which rows stand; 0 as long as there are none. */
  #rowDepth = 0;
  #isInText = false;
  #isEscaped = false;
  #isBehind = false;
  #isFirst = true;

  write(text: string): void {
    let from = 0;
    let end = 0;
    for (let at = 0; at < text.length && !this.#isBehind; at += 1) {
      const c = text.charCodeAt(at);
      if (this.#isInText) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (c === BACKSLASH) this.#isEscaped = true;
        else if (c === QUOTE) this.#isInText = false;
      } else if (c === QUOTE) this.#isInText = true;
      else if (c === OPEN_LIST || c === OPEN_OBJECT) {
        this.#depth += 1;
        if (this.#depth > DEEPEST) throw new Unreadable('gave an answer that is nested too deeply');
        if (this.#rowDepth > 0 || c === OPEN_OBJECT || !this.#isBeginOfRows(text, at)) continue;
        this.#rowDepth = this.#depth;
        this.head = headOf(this.#taken(text.slice(0, at)));
        from = at + 1;
        end = from;
      } else if (c === CLOSE_LIST || c === CLOSE_OBJECT) {
        this.#depth -= 1;
        if (this.#depth === 0 && this.#rowDepth === 0)
          throw new Unreadable('gave an answer in JSON without rows');
        if (this.#depth === this.#rowDepth) end = at + 1;
        if (this.#depth >= this.#rowDepth) continue;
        this.#isBehind = true;
        this.#readRows(text.slice(from, at));
        from = at;
        end = from;
      }
    }
    if (end > from) this.#readRows(text.slice(from, end));
    this.#held.push(text.slice(Math.max(from, end)));
    this.#tail = (this.#tail + text).slice(-LONGEST_BEFORE);
  }

  end(): void {
    if (!this.#isBehind) throw new Unreadable('gave an answer in JSON that breaks off');
    parse(`${this.#rowDepth === 1 ? '' : '{"rows":'}[${this.#taken('')}`);
  }

  #isBeginOfRows(text: string, at: number): boolean {
    if (this.#depth !== 2) return this.#depth === 1;
    const before = this.#tail + text.slice(Math.max(0, at - LONGEST_BEFORE), at);
    return /"rows"\s*:\s*$/.test(before);
  }

  /** What is held, and this. */
  #taken(text: string): string {
    const held = this.#held;
    this.#held = [];
    return held.join('') + text;
  }

  #readRows(text: string): void {
    const list = this.#isFirst ? this.#taken(text) : this.#taken(text).replace(/^\s*,/, '');
    this.#isFirst = false;
    const mended = /\\u[dD]/.test(list) ? wellFormed : (each: string) => each;
    for (const row of parse(`[${list}]`) as readonly unknown[]) this.rows.push(rowOf(row, mended));
  }
}

/** Between the name of the rows and their list stand at most so many characters. */
const LONGEST_BEFORE = 64;

/** @param ahead what stands before the list of the rows */
function headOf(ahead: string): TableHead {
  if (ahead.trim() === '') return { name: undefined, columns: undefined };
  const { table, columns } = parse(`${ahead}[]}`) as Record<string, unknown>;
  const isNamed = Array.isArray(columns) && columns.every((column) => typeof column === 'string');
  return {
    name: typeof table === 'string' ? wellFormed(table) : undefined,
    columns: isNamed ? columns.map(wellFormed) : undefined,
  };
}

/** @param mended for every text of the row: only escapes can make half of a pair, for the bytes were decoded */
function rowOf(json: unknown, mended: (text: string) => string): TableRow {
  if (typeof json !== 'object' || json === null)
    throw new Unreadable('gave rows in JSON that are no list of objects');
  const { pk, cells } = json as Record<string, unknown>;
  const key = keyOf(mended(cellOf(pk) ?? ''));
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

function cellOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) return undefined;
  if (typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER)
    throw new Unreadable('shows a number that is too large to be read to its last digit');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Unreadable('gave an answer in JSON that cannot be read');
  }
}

const XML_HEAD = /\s*(?:<\?xml[^>]*>\s*)?<tables>\s*<table name="([^"]*)">/y;
const XML_ROW = /\s*<row (?:count="\d{1,9}" )?pk="([\s\S]{0,4096}?)">(?=\s*(?:<cell col="|<\/row>))/y;
const XML_CELL = /\s*<cell col="([^"]*)">([^<]*)<\/cell>/y;
const XML_ROW_END = /\s*<\/row>/y;
const ROW_END = '</row>';

/**
 * A table in XML as YaCy writes it: `<tables><table name><row pk><cell col>`, which need not be well-formed: cells and
 * columns are escaped, but may hold any character, and keys are not escaped at all.
 */
class XmlTable implements TableParser {
  readonly rows: TableRow[] = [];
  head: TableHead | undefined;
  /** The beginning of a row. */
  #held: string[] = [];
  /** The end of it, in which the end of a row may begin. */
  #tail = '';

  constructor(private readonly rawKeyBytes: number | undefined) {}

  write(text: string): void {
    const all = this.#tail + text;
    const end = all.lastIndexOf(ROW_END);
    const from = end === -1 ? Math.max(0, all.length - ROW_END.length) : end + ROW_END.length;
    this.#held.push(all.slice(0, from));
    this.#tail = all.slice(from);
    if (end !== -1) this.#readRows(this.#held.splice(0).join(''));
  }

  end(): void {
    const text = this.#held.join('') + this.#tail;
    const hasNone = /^\s*(<\?xml[^>]*>\s*)?<tables>\s*<\/tables>\s*$/.test(text);
    if (hasNone && this.head === undefined) return;
    if (!/^\s*<\/table>\s*<\/tables>\s*$/.test(text.slice(this.#readHead(text))))
      throw new Unreadable('gave an answer in XML that breaks off');
  }

  #readRows(text: string): void {
    let at = this.#readHead(text);
    const next = (pattern: RegExp): RegExpExecArray | undefined => {
      pattern.lastIndex = at;
      const found = pattern.exec(text) ?? undefined;
      at += found?.[0].length ?? 0;
      return found;
    };
    while (at < text.length) {
      const pk = next(XML_ROW)?.[1];
      if (pk === undefined) throw new Unreadable('shows a row whose key is not there or cannot be read');
      const isRaw = Buffer.byteLength(pk) === this.rawKeyBytes;
      const cells = new Map<string, string>();
      for (let cell = next(XML_CELL); cell !== undefined; cell = next(XML_CELL))
        cells.set(unescaped(cell[1] ?? ''), unescaped(cell[2] ?? ''));
      if (next(XML_ROW_END) === undefined)
        throw new Unreadable('shows a row with something else than cells in it');
      this.rows.push({ pk: keyOf(isRaw ? pk : unescaped(pk)), cells });
    }
  }

  #readHead(text: string): number {
    if (this.head !== undefined) return 0;
    XML_HEAD.lastIndex = 0;
    const [found, name] = XML_HEAD.exec(text) ?? [];
    if (found === undefined || name === undefined)
      throw new Unreadable('gave an answer in XML that is no table');
    this.head = { name: unescaped(name), columns: undefined };
    return found.length;
  }
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

function unescaped(text: string): string {
  return text.replace(/&(?:#(\d{1,6})|([a-z]{2,4}));/g, (found, code?: string, name = '') =>
    code === undefined ? (ENTITIES[name] ?? found) : String.fromCodePoint(Number(code)),
  );
}
