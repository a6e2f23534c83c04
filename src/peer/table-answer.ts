import { setImmediate as nextTurn } from 'node:timers/promises';
import type { StreamedAnswer } from './asking.js';
import { PeerError } from './errors.js';
import { Unreadable } from './record.js';
import type { TableRow, TableStream } from './table.js';
import { HtmlTable } from './table-html.js';
import { JsonTable } from './table-json.js';
import type { TableParser } from './table-parser.js';
import { XmlTable } from './table-xml.js';
import { KeyEscaper } from './table-xml-keys.js';

/** One row is not longer, in bytes of the answer, nor what stands before or behind the rows. */
const MOST_PER_ROW = 64 * 1024 * 1024;
/** A group of rows has at most so many, and comes from about so many bytes of the answer. */
const GROUP_ROWS = 500;
const GROUP_BYTES = 16 * 1024;
/** So many bytes are read at once, with what becomes of their rows: a few milliseconds of work. */
const TURN_BYTES = 16 * 1024;
/** The form of an answer is told from so many bytes of its beginning. */
const BEGIN_BYTES = 1024;

/**
 * Reads a table as it comes in, in JSON, XML or HTML: the form is told by the first characters, and by the media type
 * where they fit several forms. Memory is bounded by one row and one group of rows.
 *
 * @param asked name of the table
 * @param hasRawKeys whether keys stand in XML as they are, padded to 12 bytes, and not escaped
 * @returns undefined where the answer says that there is no such table
 * @throws PeerError PEER_ANSWER for what is not a table, not the one asked for, or not whole, also while rows are read;
 *   PEER_ANSWER_TOO_LARGE for a row that is too long
 */
export async function readTable(
  answer: StreamedAnswer,
  asked: string,
  hasRawKeys = false,
): Promise<TableStream | undefined> {
  const reading = new TableReading(answer, asked, hasRawKeys);
  await reading.untilHead();
  const { head } = reading;
  if (head === undefined) return undefined;
  if (head.name !== undefined && head.name !== asked) {
    throw reading.error(new Unreadable('answered with another table than the one asked for'));
  }
  return { name: head.name ?? asked, columns: head.columns, rows: reading.groups() };
}

class TableReading {
  readonly #answer: StreamedAnswer;
  readonly #asked: string;
  readonly #hasRawKeys: boolean;
  readonly #pieces: AsyncIterator<Buffer>;
  #begin = Buffer.alloc(0);
  #parser: TableParser | undefined;
  #isOver = false;
  #sinceRow = 0;

  constructor(answer: StreamedAnswer, asked: string, hasRawKeys: boolean) {
    this.#answer = answer;
    this.#asked = asked;
    this.#hasRawKeys = hasRawKeys;
    this.#pieces = pieces(answer.chunks);
  }

  get head(): TableParser['head'] {
    return this.#parser?.head;
  }

  async untilHead(): Promise<void> {
    while (this.head === undefined && !this.#isOver) await this.#readMore();
  }

  async *groups(): AsyncGenerator<readonly TableRow[]> {
    const rows = this.#parser?.rows ?? [];
    let bytes = 0;
    try {
      for (;;) {
        while (rows.length >= GROUP_ROWS) yield rows.splice(0, GROUP_ROWS);
        if (rows.length > 0 && (bytes >= GROUP_BYTES || this.#isOver)) {
          yield rows.splice(0);
          bytes = 0;
        }
        if (this.#isOver) return;
        bytes += await this.#readMore();
      }
    } finally {
      await this.#pieces.return?.();
    }
  }

  error(cause: unknown): unknown {
    const isTooLong = cause instanceof TooLong;
    if (!isTooLong && !(cause instanceof Unreadable)) return cause;
    const { url, status } = this.#answer;
    return new PeerError(isTooLong ? 'PEER_ANSWER_TOO_LARGE' : 'PEER_ANSWER', {
      url,
      status,
      what: cause.message,
      answer: this.#begin,
      delivered: 'yes',
    });
  }

  /** Reads one piece of the answer, or its end; tells how many bytes came. */
  async #readMore(): Promise<number> {
    const next = await this.#pieces.next();
    try {
      if (next.done) this.#end();
      else this.#take(next.value);
    } catch (error) {
      throw this.error(error);
    }
    return next.done ? 0 : next.value.length;
  }

  #take(piece: Buffer): void {
    if (this.#parser !== undefined) {
      this.#parse(this.#parser, piece);
      return;
    }
    this.#begin = Buffer.concat([this.#begin, piece]);
    if (this.#begin.length >= BEGIN_BYTES) this.#start();
  }

  #end(): void {
    this.#isOver = true;
    (this.#parser ?? this.#start()).end();
  }

  #start(): TableParser {
    const type = String(this.#answer.headers['content-type'] ?? '');
    const inXml = () => new XmlTable(this.#asked, this.#hasRawKeys ? new KeyEscaper() : undefined);
    this.#parser = parserFor(this.#begin, type, inXml);
    this.#parse(this.#parser, this.#begin);
    return this.#parser;
  }

  #parse(parser: TableParser, bytes: Buffer): void {
    const { length } = parser.rows;
    parser.write(bytes);
    this.#sinceRow = parser.rows.length > length ? 0 : this.#sinceRow + bytes.length;
    if (this.#sinceRow > MOST_PER_ROW) throw new TooLong(`gave a row of more than ${MOST_PER_ROW} bytes`);
  }
}

class TooLong extends Error {}

function parserFor(begin: Buffer, type: string, inXml: () => TableParser): TableParser {
  const text = begin
    .toString('utf8', 0, BEGIN_BYTES)
    .replace(/^\ufeff/, '')
    .trimStart();
  if (text === '') throw new Unreadable('gave an empty answer');
  if (/^[{[]/.test(text)) return new JsonTable();
  if (!text.startsWith('<')) throw new Unreadable('gave an answer that is no table');
  const isXml = /^<(\?xml|tables)\b/i.test(text) || (/\bxml\b/i.test(type) && !/html/i.test(type));
  return isXml && !/^<!doctype html|^<html/i.test(text) ? inXml() : new HtmlTable();
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
