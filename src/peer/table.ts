import { setImmediate as nextTurn } from 'node:timers/promises';
import { parseBounded } from '../lib/json.js';
import { isObject, type StreamedAnswer, Unreadable } from './answer.js';
import { PeerError } from './errors.js';

/** One row of a table of the peer. */
export interface TableRow {
  /** Its key: unique in the table, opaque. */
  readonly pk: string;
  /**
   * By column. A cell that is not there is as good as an empty one: peers do not tell the two
   * apart.
   */
  readonly cells: ReadonlyMap<string, string>;
}

/** Which rows of which table. What is not given is not sent. */
export interface TableQuery {
  readonly table: string;
  /** Most rows; all of them unless given. */
  readonly count?: number | undefined;
  /**
   * Only rows in which a cell holds this; how it is read is the peer's business (YaCy: a regular
   * expression).
   */
  readonly search?: string | undefined;
}

/**
 * A table as it comes in: rows in groups, in the peer's order, in bounded memory however many there
 * are.
 */
export interface TableStream {
  /** What the peer calls it. */
  readonly name: string;
  /**
   * The columns that the peer named ahead of the rows, without the key; undefined where it did not.
   */
  readonly columns: readonly string[] | undefined;
  readonly rows: AsyncIterable<readonly TableRow[]>;
  /** Whether all bytes so far were UTF-8; U+FFFD stands for others. */
  readonly isUtf8: () => boolean;
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
 * Reads a table as it comes in, in JSON or XML: the form is told by the first characters. Memory is
 * bounded by one row and one group of rows.
 *
 * @param asked name of the table
 * @param rawKeyBytes of a key that stands in XML as it is, padded to so many bytes and not escaped
 * @returns undefined where the answer says that there is no such table
 * @throws PeerError PEER_ANSWER for what is not a table, not the one asked for, or not whole, also
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
  const parts = partsOf({ ...answer, chunks: checked() }, asked, rawKeyBytes);
  const { value: first } = await parts.next();
  if (first === undefined) return undefined;
  const { name = asked, columns } = first.head;
  async function* rest(): AsyncGenerator<readonly TableRow[]> {
    for await (const { rows } of parts) yield rows;
  }
  return { name, columns, rows: rest(), isUtf8: () => isUtf8 };
}

/** What stands ahead of the rows. */
interface TableHead {
  /** What the peer calls the table; undefined where it does not say. */
  readonly name: string | undefined;
  /** Without the key; undefined where the peer did not name them ahead. */
  readonly columns: readonly string[] | undefined;
}

/**
 * Reads a table of one form while it comes in. It holds what it was given since the last whole row,
 * and no more.
 */
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

/**
 * What stands ahead of the rows as soon as that is known, then each group of rows beside it;
 * nothing where there is no table.
 */
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
        throw new Unreadable(
          `gave a row of more than ${MOST_PER_ROW} bytes`,
          'PEER_ANSWER_TOO_LARGE',
        );
      yield* readySoFar();
    }
    parser ??= parserOf(begin, rawKeyBytes);
    parser.end();
    yield* readySoFar();
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

/**
 * The chunks, cut where they are so long that the event loop would be held up, with a turn for
 * others in between.
 */
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

/**
 * A table in JSON: `{"table":…,"columns":[…],"rows":[{"pk":…,"cells":{…}},…]}`, with other members
 * as it likes, or only the list of rows. A row is parsed when its end has come, and what stands
 * around the rows when all has.
 */
class JsonTable implements TableParser {
  readonly rows: TableRow[] = [];
  head: TableHead | undefined;
  /** What stands ahead of the rows. */
  #ahead = '';
  /** What came since: the beginning of a row, or what stands behind them. */
  #held: string[] = [];
  /** How many brackets are open, and how many of them around a row; 0 where no row can be. */
  #depth = 0;
  #rowDepth = 0;
  #isFirst = true;
  #isInText = false;
  #isEscaped = false;
  /** The first characters of the latest text: enough to know the name of the rows. */
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
        this.#ahead = this.#taken(text.slice(from, at + 1));
        this.head = headOf(parse(this.#ahead + (this.#depth === 2 ? ']}' : ']')));
        from = at + 1;
      } else if (c === ',' && this.#depth === this.#rowDepth) {
        this.#readRow(this.#taken(text.slice(from, at)));
        from = at + 1;
      } else if (c === ']' || c === '}') {
        if (this.#depth === this.#rowDepth) {
          const row = this.#taken(text.slice(from, at));
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
    const around = parse(this.#ahead + this.#taken(''));
    const rows = isObject(around) ? around.rows : around;
    // All of them were taken out.
    if (this.head === undefined || !Array.isArray(rows) || rows.length > 0)
      throw new Unreadable('gave an answer in JSON without rows');
    this.head = headOf(around);
  }

  #taken(last: string): string {
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
  return { pk: keyOf(pk.toWellFormed()), cells: row };
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
 * A table in XML as YaCy writes it: `<tables><table name><row pk><cell col>`, which need not be
 * well-formed: cells and columns are escaped, but may hold any character, and keys are not escaped
 * at all.
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
      if (pk === undefined)
        throw new Unreadable('shows a row whose key is not there or cannot be read');
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

const ENTITIES: Readonly<Record<string, string>> = {
  lt: '<',
  gt: '>',
  amp: '&',
  quot: '"',
  apos: "'",
};

function unescaped(text: string): string {
  return text.replace(/&(?:#(\d{1,6})|([a-z]{2,4}));/g, (found, code?: string, name = '') =>
    code === undefined ? (ENTITIES[name] ?? found) : String.fromCodePoint(Number(code)),
  );
}
