import { messageOf } from '../lib/errors.js';
import { Yielder } from '../lib/slices.js';
import { counted, escapeInvisible, quoted } from '../lib/text.js';
import { type NormalUrl, urlHash } from './content.js';
import {
  bytes,
  type Database,
  int,
  isDiskFailure,
  isLocked,
  MIGRATION,
  newSchema,
  SCHEMA_ROWS,
  text,
} from './database.js';
import { inflatedPart } from './documents.js';
import type { Driver, Row } from './driver.js';
import { indexedText, type Named, textBeforeMigration } from './indexed-text.js';
import { addIndexed, Sums, sumsOfIndex, TermHash } from './term-sums.js';
import { countWords, indexable } from './words.js';

/** A database that is read: that of a peer, or a copy. */
export type Readable = Pick<Database, 'rows' | 'row' | 'iterate'>;

/** The result of a check. */
export interface Checked {
  readonly documents: number;
  readonly tables: number;
  /** The first differences, as sentences. Empty if everything agrees. */
  readonly differences: readonly string[];
  /** The number of differences, with those that are not listed. */
  readonly found: number;
}

const MAX_LISTED = 20;

/** The tables with rows of documents, and the column with the id of the document. */
const BELONGING = [
  ['texts', 'document'],
  ['memberships', 'document'],
  ['words_docsize', 'id'],
  ['prefixes_docsize', 'id'],
] as const;

/**
 * Compares the schema with that of a new database. Called before any other query, because a view
 * or a trigger of somebody else could run in it.
 *
 * @returns the first difference, as the end of a sentence
 */
export function checkSchema(database: Readable, driver: Driver): string | undefined {
  // The layout of the statements may differ between releases.
  const asText = ({ name, sql, tbl_name, type }: Row): string =>
    JSON.stringify([type, name, tbl_name, String(sql).replace(/\s+/g, ' ')]);
  const expected = new Map(newSchema(driver).map((row) => [asText(row), row]));
  let rows: readonly Row[];
  try {
    database.rows('PRAGMA trusted_schema = OFF');
    rows = database.rows(SCHEMA_ROWS);
  } catch (error) {
    if (isDiskFailure(error) || isLocked(error)) throw error;
    return `its database cannot be read: ${messageOf(error)}`;
  }
  for (const row of rows)
    if (!expected.delete(asText(row)))
      return `its database has a ${labelOf(row)} that is not that of a peer`;
  for (const row of expected.values()) return `its database lacks the ${labelOf(row)} of a peer`;
  return undefined;
}

function labelOf({ name, type }: Row): string {
  return `${escapeInvisible(String(type))} ${quoted(String(name))}`;
}

/**
 * Compares everything in a database that has to agree, after `checkSchema`. It only reads, in
 * slices of time, and takes a few numbers of memory a document.
 *
 * - The pages of the file, and the structure of the index (`PRAGMA integrity_check`).
 * - The terms that the index holds for each document, and those that follow from its text, its
 *   title and its URL.
 * - Documents with their collections, counts and words; rows of documents that do not exist.
 * - The rows of tables with their numbers and columns.
 *
 * @throws Error of the driver if the disk fails; the reason of `signal`
 */
export async function checkDatabase(database: Readable, signal: AbortSignal): Promise<Checked> {
  const check = new Check(database, signal);
  // Each part may fail on damaged pages, and says something about the others.
  const parts = [
    () => check.pages(),
    () => check.documents(),
    () => check.belonging(),
    () => check.counts(),
    () => check.tables(),
  ];
  for (const part of parts) {
    try {
      signal.throwIfAborted();
      await part();
    } catch (error) {
      if (signal.aborted || isDiskFailure(error) || isLocked(error)) throw error;
      check.found(`The database cannot be read: ${messageOf(error)}.`);
    }
  }
  return check.result();
}

class Check {
  readonly #database: Readable;
  readonly #signal: AbortSignal;
  readonly #yielder = new Yielder();
  readonly #differences: string[] = [];
  #found = 0;
  #documents = 0;
  #tables = 0;
  /** The number of memberships by collection. */
  readonly #members = new Map<string, number>();

  constructor(database: Readable, signal: AbortSignal) {
    this.#database = database;
    this.#signal = signal;
  }

  async #turn(): Promise<void> {
    this.#signal.throwIfAborted();
    await this.#yielder.turn();
  }

  found(difference: string): void {
    this.#found += 1;
    if (this.#differences.length < MAX_LISTED) this.#differences.push(difference);
  }

  result(): Checked {
    return {
      documents: this.#documents,
      tables: this.#tables,
      differences: this.#differences,
      found: this.#found,
    };
  }

  /** Also checks the structure of both full-text indexes. */
  pages(): void {
    for (const row of this.#database.rows(`PRAGMA integrity_check(${MAX_LISTED})`)) {
      const answer = text(row, 'integrity_check');
      if (answer !== 'ok') this.found(`SQLite finds damage: ${escapeInvisible(answer)}.`);
    }
  }

  async documents(): Promise<void> {
    const indexed = await sumsOfIndex(this.#database, () => this.#turn());
    const members = await this.#memberships();
    const [expected, collections] = [new Sums(), new Sums()];
    const collection = new TermHash();
    const sql = 'SELECT id, url, urlhash, title, collections, words FROM documents ORDER BY id';
    for (const row of this.#database.iterate(sql)) {
      await this.#turn();
      this.#documents += 1;
      const id = int(row, 'id');
      for (const name of JSON.parse(text(row, 'collections')) as string[]) {
        collection.setTerm(name);
        collections.add(id, collection, 0, 0);
      }
      this.#document(row, { indexed, expected });
      if (!collections.isEqual(id, members))
        this.found(`The collections of ${nameOf(row)} are not those in which it is listed.`);
    }
    this.#orphans('The index has words', indexed, expected);
    this.#orphans('A collection lists', members, collections);
  }

  #document(
    row: Row,
    { indexed, expected }: { readonly indexed: Sums; readonly expected: Sums },
  ): void {
    const [id, url] = [int(row, 'id'), text(row, 'url') as NormalUrl];
    if (text(row, 'urlhash') !== urlHash(url))
      this.found(`The hash of ${nameOf(row)} is not that of its URL.`);
    let body: Buffer;
    try {
      body = indexable(this.#textOf(id));
    } catch (error) {
      this.found(`The text of ${nameOf(row)} cannot be read: ${messageOf(error)}.`);
      return;
    }
    const document = { title: text(row, 'title'), url };
    addIndexed(expected, id, indexedText(document, body));
    if (!expected.isEqual(id, indexed) && !this.#isBeforeMigration(id, indexed, document, body))
      this.found(`The index holds other words of ${nameOf(row)} than its text, title and URL.`);
    if (countWords(body) !== int(row, 'words'))
      this.found(`The number of words of ${nameOf(row)} is not that of its text.`);
  }

  /** Whether a migration has not reached a document, and the index holds its words of before. */
  #isBeforeMigration(id: number, indexed: Sums, document: Named, body: Buffer): boolean {
    if (id >= this.#migratedFrom()) return false;
    const before = new Sums();
    addIndexed(before, id, textBeforeMigration(document, body));
    return before.isEqual(id, indexed);
  }

  /** Returns the id from which on documents are migrated: 0 if all are. */
  #migratedFrom(): number {
    const row = this.#database.row('SELECT value FROM counts WHERE name = ?', MIGRATION);
    return row === undefined ? 0 : int(row, 'value');
  }

  #textOf(document: number): Buffer {
    const parts: Buffer[] = [];
    const sql = 'SELECT part, deflated FROM texts WHERE document = ? ORDER BY part';
    for (const row of this.#database.rows(sql, document)) {
      if (int(row, 'part') !== parts.length) throw new Error(`part ${parts.length} is missing`);
      parts.push(inflatedPart(row));
    }
    return Buffer.concat(parts);
  }

  async #memberships(): Promise<Sums> {
    const sums = new Sums();
    const term = new TermHash();
    for (const row of this.#database.iterate('SELECT collection, document FROM memberships')) {
      await this.#turn();
      const collection = text(row, 'collection');
      term.setTerm(collection);
      sums.add(int(row, 'document'), term, 0, 0);
      this.#members.set(collection, (this.#members.get(collection) ?? 0) + 1);
    }
    return sums;
  }

  #orphans(what: string, there: Sums, documents: Sums): void {
    for (const id of there.documents())
      if (!documents.isEqual(id, there) && !this.#isDocument(id))
        this.found(`${what} of a document that does not exist (number ${id}).`);
  }

  #isDocument(id: number): boolean {
    return this.#database.row('SELECT 1 FROM documents WHERE id = ?', id) !== undefined;
  }

  /** Finds rows without a document, and documents that the index does not know. */
  belonging(): void {
    for (const [table, column] of BELONGING) {
      const lost = `SELECT count(DISTINCT ${column}) AS count FROM ${table}
        WHERE ${column} NOT IN (SELECT id FROM documents)`;
      const count = int(this.#database.row(lost), 'count');
      if (count > 0)
        this.found(`${table} has rows of ${counted(count, 'document')} that do not exist.`);
    }
    for (const table of ['words_docsize', 'prefixes_docsize']) {
      const missing = `SELECT count(*) AS count FROM documents
        WHERE id NOT IN (SELECT id FROM ${table})`;
      const count = int(this.#database.row(missing), 'count');
      if (count > 0) this.found(`${table} lacks ${counted(count, 'document')}.`);
    }
  }

  counts(): void {
    const stored = new Map(
      this.#database
        .rows('SELECT name, value FROM counts')
        .map((row) => [text(row, 'name'), int(row, 'value')]),
    );
    const count = stored.get('documents') ?? 0;
    if (count !== this.#documents)
      this.found(`There are ${this.#documents} documents, and ${count} are counted.`);
    const collections = [...stored.keys()].filter((name) => name.startsWith('in '));
    for (const name of new Set([
      ...collections.map((each) => each.slice(3)),
      ...this.#members.keys(),
    ])) {
      const [has, says] = [this.#members.get(name) ?? 0, stored.get(`in ${name}`) ?? 0];
      if (has !== says)
        this.found(`The collection ${quoted(name)} has ${has} documents, and ${says} are counted.`);
    }
  }

  async tables(): Promise<void> {
    const columns = new Map<number, number>();
    for (const row of this.#database.iterate('SELECT id, in_table FROM table_columns'))
      columns.set(int(row, 'id'), int(row, 'in_table'));
    const rows = new Map<number, number>();
    const broken = new Map<number, number>();
    for (const row of this.#database.iterate('SELECT in_table, cells FROM table_rows')) {
      await this.#turn();
      const table = int(row, 'in_table');
      rows.set(table, (rows.get(table) ?? 0) + 1);
      if (!areCells(bytes(row, 'cells'), (column) => columns.get(column) === table))
        broken.set(table, (broken.get(table) ?? 0) + 1);
    }
    const known = new Set<number>();
    for (const row of this.#database.rows('SELECT id, name, rows FROM tables')) {
      this.#tables += 1;
      const [id, name] = [int(row, 'id'), quoted(bytes(row, 'name').toString())];
      known.add(id);
      const [has, says] = [rows.get(id) ?? 0, int(row, 'rows')];
      if (has !== says) this.found(`The table ${name} has ${has} rows, and ${says} are counted.`);
      const unreadable = broken.get(id) ?? 0;
      if (unreadable > 0)
        this.found(`In the table ${name}, ${counted(unreadable, 'row')} cannot be read.`);
    }
    const dropped = this.#database
      .rows('SELECT id FROM dropped_tables')
      .map((row) => int(row, 'id'));
    for (const id of new Set([...rows.keys(), ...columns.values()]))
      if (!known.has(id) && !dropped.includes(id))
        this.found(`There are rows or columns of a table that does not exist (number ${id}).`);
  }
}

function nameOf(row: Row): string {
  return escapeInvisible(text(row, 'url'));
}

/** Whether cells are a list of alternating columns of their table and texts. */
function areCells(cells: Buffer, isColumn: (id: number) => boolean): boolean {
  try {
    const list: unknown = JSON.parse(cells.toString());
    if (!Array.isArray(list) || list.length % 2 !== 0) return false;
    return list.every((each: unknown, i) =>
      i % 2 === 0 ? typeof each === 'number' && isColumn(each) : typeof each === 'string',
    );
  } catch {
    return false;
  }
}
