import { parseBounded } from '../lib/json.js';
import { decodeEntities } from '../lib/markup.js';
import { nextTurn } from '../lib/slices.js';
import { type StreamedAnswer, Unreadable } from './answer.js';
import { PeerError } from './errors.js';
import { isObject } from './records.js';

/** One row of a table of the peer. */
export interface TableRow {
  /** The key: opaque, and unique in the table. */
  readonly pk: string;
  /** The cells by column. A missing cell equals an empty one: peers do not distinguish them. */
  readonly cells: ReadonlyMap<string, string>;
}

/** Selects rows of a table. Fields that are undefined are not sent. */
export interface TableQuery {
  readonly table: string;
  /** The most rows to return. @default all */
  readonly count?: number | undefined;
  /** Selects rows in which a cell matches. The peer defines how (YaCy: a regular expression). */
  readonly search?: string | undefined;
}

/**
 * A table that is read while it arrives: groups of rows, in the order of the peer. Memory is
 * bounded however many rows there are.
 */
export interface TableStream {
  /** The name that the peer gives. */
  readonly name: string;
  /** The columns without the key; undefined if the peer did not list them before the rows. */
  readonly columns: readonly string[] | undefined;
  readonly rows: AsyncIterable<readonly TableRow[]>;
  /** Returns whether all bytes so far were UTF-8. U+FFFD replaces the others. */
  readonly isUtf8: () => boolean;
}

/** A whole table in memory. */
export interface Table {
  readonly name: string;
  /** All columns, in the order in which they first appeared. */
  readonly columns: readonly string[];
  readonly rows: readonly TableRow[];
}

/**
 * The longest row, in bytes of the answer. Also the limit for the parts before and behind the rows.
 */
const MAX_ROW_BYTES = 64 * 1024 * 1024;
/** The most rows in a group. */
const GROUP_ROWS = 500;
/** The bytes that are parsed in one turn of the event loop. That takes a few milliseconds. */
const BYTES_PER_TURN = 16 * 1024;
/** The number of characters that decide which form an answer has. */
const DETECTION_CHARS = 1024;

/**
 * Reads a table in JSON or XML while it arrives. The first characters decide which form it is.
 * Memory is bounded by one row and one group of rows.
 *
 * @param asked the name of the requested table
 * @param rawKeyBytes the fixed width of a key in XML, in bytes; such a key is padded and not
 *   escaped
 * @returns undefined if the answer says that there is no such table
 * @throws PeerError PEER_ANSWER if the answer is no table, another table, or breaks off, possibly
 *   while rows are read; PEER_ANSWER_TOO_LARGE for a row that is too long
 */
export async function readTable(
  answer: StreamedAnswer,
  asked: string,
  rawKeyBytes?: number,
): Promise<TableStream | undefined> {
  let isUtf8 = true;
  const strict = new TextDecoder('utf-8', { fatal: true });
  async function* checked(): AsyncGenerator<Buffer> {
    for await (const chunk of answer.chunks) {
      try {
        if (isUtf8) strict.decode(chunk, { stream: true });
      } catch {
        isUtf8 = false;
      }
      yield chunk;
    }
  }
  const parts = readGroups({ ...answer, chunks: checked() }, asked, rawKeyBytes);
  const { value: first } = await parts.next();
  if (first === undefined) return undefined;
  const { name = asked, columns } = first.head;
  async function* rest(): AsyncGenerator<readonly TableRow[]> {
    for await (const { rows } of parts) yield rows;
  }
  return { name, columns, rows: rest(), isUtf8: () => isUtf8 };
}

/** The part of a table before its rows. */
interface TableHead {
  /** The name of the table; undefined if the peer does not give it. */
  readonly name: string | undefined;
  /** The columns without the key; undefined if the peer did not list them before the rows. */
  readonly columns: readonly string[] | undefined;
}

/** Parses a table of one form while it arrives. Holds only the text since the last complete row. */
interface TableParser {
  /** Known once the rows begin. Still undefined at the end if the answer has no table. */
  readonly head: TableHead | undefined;
  /** The complete rows. The caller removes them. */
  readonly rows: TableRow[];
  /** @throws Unreadable */
  write(text: string): void;
  /** @throws Unreadable if the answer broke off, or is no table */
  end(): void;
}

/**
 * Yields the head of a table as soon as it is known, and then each group of rows with that head.
 * Yields nothing if there is no such table.
 */
async function* readGroups(
  answer: StreamedAnswer,
  asked: string,
  rawKeyBytes: number | undefined,
): AsyncGenerator<{ readonly head: TableHead; readonly rows: readonly TableRow[] }, undefined> {
  const decoder = new TextDecoder();
  let begin = '';
  let parser: TableParser | undefined;
  let isHeadKnown = false;
  let bytesSinceRow = 0;
  function* completeGroups() {
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
        if (begin.length >= DETECTION_CHARS) parser = parserOf(begin, rawKeyBytes);
      }
      bytesSinceRow =
        parser !== undefined && parser.rows.length > 0 ? 0 : bytesSinceRow + piece.length;
      if (bytesSinceRow > MAX_ROW_BYTES)
        throw new Unreadable(
          `gave a row of more than ${MAX_ROW_BYTES} bytes`,
          'PEER_ANSWER_TOO_LARGE',
        );
      yield* completeGroups();
    }
    parser ??= parserOf(begin, rawKeyBytes);
    parser.end();
    yield* completeGroups();
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    const { url, status } = answer;
    const parts = {
      url,
      status,
      what: error.message,
      answer: Buffer.from(begin),
      delivered: 'yes',
    } as const;
    throw new PeerError(error.code, parts);
  }
  return undefined;
}

/**
 * Returns the parser for an answer with this beginning. The parser has already read the beginning.
 */
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

/** Cuts long chunks into pieces, and lets the event loop run between them. */
async function* pieces(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += BYTES_PER_TURN) {
      if (at > 0) await nextTurn();
      yield chunk.subarray(at, at + BYTES_PER_TURN);
    }
  }
}

/** Removes the NULs with which YaCy pads keys of a fixed width. No other key ends with NUL. */
function unpaddedKey(text: string): string {
  let end = text.length;
  while (text.charCodeAt(end - 1) === 0) end -= 1;
  if (end === 0) throw new Unreadable('shows a row without its key');
  return text.slice(0, end);
}

/**
 * Parses a table in JSON: `{"table":…,"columns":[…],"rows":[{"pk":…,"cells":{…}},…]}`, with any
 * other members, or only the list of rows.
 *
 * - *Before the rows* (`head` is undefined): the text is kept until the list of rows opens. Then it
 *   is parsed into `head`.
 * - *In the rows* (`#rowDepth` is set): each row is parsed when it is complete.
 * - *Behind the rows* (`#rowDepth` is 0 again): the text is kept. `end` parses it together with the
 *   text before the rows.
 */
class JsonTable implements TableParser {
  readonly rows: TableRow[] = [];
  head: TableHead | undefined;
  /** The text before the rows. */
  #ahead = '';
  /** The text since then: the beginning of a row, or the text behind the rows. */
  #held: string[] = [];
  /** The number of open brackets. */
  #depth = 0;
  /** The number of brackets around a row; 0 before and behind the rows. */
  #rowDepth = 0;
  #isFirst = true;
  #isInText = false;
  #isEscaped = false;
  /** The beginning of the latest string, long enough to recognise the name `rows`. */
  #name = '';

  write(text: string): void {
    let from = 0;
    for (let at = 0; at < text.length; at += 1) {
      const c = text.charAt(at);
      if (this.#isInText) {
        if (!this.#isEscaped && c === '"') this.#isInText = false;
        else if (this.#name.length <= ROWS.length) this.#name += c;
        this.#isEscaped = c === '\\' && !this.#isEscaped;
      } else if (c === '"') {
        this.#isInText = true;
        this.#name = '';
      } else if (c === '[' || c === '{') {
        this.#depth += 1;
        if (this.head !== undefined || c === '{' || this.#depth > 2) continue;
        if (this.#depth === 2 && this.#name !== ROWS) continue;
        this.#rowDepth = this.#depth;
        this.#ahead = this.#takeHeld(text.slice(from, at + 1));
        this.head = headOf(parse(this.#ahead + (this.#depth === 2 ? ']}' : ']')));
        from = at + 1;
      } else if (c === ',' && this.#depth === this.#rowDepth) {
        this.#readRow(this.#takeHeld(text.slice(from, at)));
        from = at + 1;
      } else if (c === ']' || c === '}') {
        if (this.#depth === this.#rowDepth) {
          const row = this.#takeHeld(text.slice(from, at));
          if (!this.#isFirst || row.trim() !== '') this.#readRow(row);
          this.#rowDepth = 0;
          from = at;
        }
        this.#depth -= 1;
      }
    }
    this.#held.push(text.slice(from));
  }

  end(): void {
    const around = parse(this.#ahead + this.#takeHeld(''));
    const rows = isObject(around) ? around.rows : around;
    // The rows were removed from this text, so the list must be empty.
    if (this.head === undefined || !Array.isArray(rows) || rows.length > 0)
      throw new Unreadable('gave an answer in JSON without rows');
    this.head = headOf(around);
  }

  #takeHeld(last: string): string {
    return this.#held.splice(0).join('') + last;
  }

  #readRow(text: string): void {
    this.#isFirst = false;
    this.rows.push(rowOf(parse(text)));
  }
}

const ROWS = 'rows';

function headOf(json: unknown): TableHead {
  const { table, columns } = isObject(json) ? json : {};
  const isNamed = Array.isArray(columns) && columns.every((column) => typeof column === 'string');
  return {
    name: typeof table === 'string' ? table.toWellFormed() : undefined,
    columns: isNamed ? columns.map((column) => column.toWellFormed()) : undefined,
  };
}

function rowOf(json: unknown): TableRow {
  const { pk = '', cells = {} } = isObject(json) ? json : {};
  if (typeof pk !== 'string' || !isObject(cells))
    throw new Unreadable('gave a row in JSON that is none: {"pk":…,"cells":{…}}');
  const row = new Map<string, string>();
  for (const [column, value] of Object.entries(cells)) {
    if (typeof value !== 'string') throw new Unreadable('gave a cell in JSON that is no text');
    row.set(column.toWellFormed(), value.toWellFormed());
  }
  return { pk: unpaddedKey(pk.toWellFormed()), cells: row };
}

function parse(text: string): unknown {
  try {
    return parseBounded(text);
  } catch {
    throw new Unreadable('gave an answer in JSON that cannot be read, or breaks off');
  }
}

const XML_HEAD = /\s*(?:<\?xml[^>]*>\s*)?<tables>\s*<table name="([^"]*)">/y;
const XML_ROW =
  /\s*<row (?:count="\d{1,9}" )?pk="([\s\S]{0,4096}?)">(?=\s*(?:<cell col="|<\/row>))/y;
const XML_CELL = /\s*<cell col="([^"]*)">([^<]*)<\/cell>/y;
const XML_ROW_END = /\s*<\/row>/y;
const ROW_END = '</row>';

/**
 * Parses a table in XML as YaCy writes it: `<tables><table name><row pk><cell col>`. It need not be
 * well-formed. Cells and columns are escaped, but may contain any character. Keys are not escaped.
 */
class XmlTable implements TableParser {
  readonly rows: TableRow[] = [];
  head: TableHead | undefined;
  /** The beginning of a row. */
  #held: string[] = [];
  /** The last characters, which may be the beginning of `</row>`. */
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
      if (pk === undefined)
        throw new Unreadable('shows a row whose key is not there or cannot be read');
      const isRaw = Buffer.byteLength(pk) === this.rawKeyBytes;
      const cells = new Map<string, string>();
      for (let cell = next(XML_CELL); cell !== undefined; cell = next(XML_CELL))
        cells.set(decodeEntities(cell[1] ?? ''), decodeEntities(cell[2] ?? ''));
      if (next(XML_ROW_END) === undefined)
        throw new Unreadable('shows a row with something else than cells in it');
      this.rows.push({ pk: unpaddedKey(isRaw ? pk : decodeEntities(pk)), cells });
    }
  }

  #readHead(text: string): number {
    if (this.head !== undefined) return 0;
    XML_HEAD.lastIndex = 0;
    const [found, name] = XML_HEAD.exec(text) ?? [];
    if (found === undefined || name === undefined)
      throw new Unreadable('gave an answer in XML that is no table');
    this.head = { name: decodeEntities(name), columns: undefined };
    return found.length;
  }
}
