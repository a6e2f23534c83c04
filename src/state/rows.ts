import type { FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import type { PeersyncError } from '../lib/errors.js';
import { joinPath } from '../lib/file.js';
import { Changes, CommittedEntries } from './committed.js';
import { StateError } from './directory.js';
import { Entries } from './entries.js';
import type { UrlBases } from './line.js';

/** A small value that survives a restart beside the records. */
export type Json =
  | string
  | number
  | boolean
  | null
  | readonly Json[]
  | { readonly [name: string]: Json | undefined };

/** Everything that survives a restart. lowdb holds it in `data`. */
export class StateData {
  readonly entries = new Entries();
  /** Small values by name: folder identities, what was learned of the peer. */
  readonly meta = new Map<string, Json>();
  /** Changes that are not on disk yet. */
  readonly changes = new Changes();
  /** The records as they are on disk. */
  readonly committed = new CommittedEntries(this.entries, this.changes);
  /** The error of the last write; undefined if it succeeded. */
  failure?: PeersyncError | undefined;
}

/**
 * Name of the small value that records when opening the state last found that data had been lost
 * from disk, in ms since the epoch.
 */
export const REPAIRED_META = 'repairedAt';

/**
 * Versions of the line format and of the record schema. They are raised whenever older lines would
 * be misread.
 */
export const VERSIONS = { format: 2, schema: 2 };

function recordRow(folder: string, path: string, line: string | undefined): string {
  if (line === undefined) return JSON.stringify(['-', folder, path]);
  return `${JSON.stringify(folder)},${JSON.stringify(path)},${line}`;
}

function metaRow(name: string, meta: StateData['meta']): string {
  return JSON.stringify(meta.has(name) ? ['m', name, meta.get(name)] : ['m', name]);
}

function baseRows(bases: UrlBases, from: number, to = bases.length): readonly string[] {
  return bases
    .slice(from, to)
    .flatMap((base, i) => (base ? JSON.stringify(['u', from + i, base.collection, base.url]) : []));
}

/**
 * Yields the changed records in their latest version. A URL base that is new in this journal
 * precedes the first record that uses it.
 */
export function* changedLines(
  { changes, entries, meta }: StateData,
  from: number,
): Iterable<string> {
  const { bases } = entries;
  let next = from;
  for (const change of changes.keysBeingWritten()) {
    const [name = '', path] = change.split('\0');
    const row =
      path === undefined ? metaRow(name, meta) : recordRow(name, path, entries.line(name, path));
    // A crash may cut the journal after any line, and new bases appear while it is written.
    const rows = baseRows(bases, next);
    next = bases.length;
    for (const base of rows) yield lineOf(base);
    yield lineOf(row);
  }
  // Written twice, so that one damaged line costs no more than itself.
  for (const base of baseRows(bases, from, next)) yield lineOf(base);
}

/**
 * Yields the texts of a snapshot while the data goes on changing. A change made meanwhile may be
 * missing from the snapshot, so the journal of the same generation must contain it.
 */
export function* snapshotTexts(
  { entries, meta }: StateData,
  signal: AbortSignal,
): Iterable<string> {
  for (const name of meta.keys()) yield metaRow(name, meta);
  for (const [folder, directory, name, line] of entries.lines()) {
    signal.throwIfAborted();
    yield recordRow(folder, joinPath(directory, name), line);
  }
  // At the end: new bases may have appeared meanwhile.
  yield* baseRows(entries.bases, 0);
}

/**
 * Applies the text of one line to `data`.
 *
 * @throws StateError STATE_NEWER if it is the header of a later version
 */
export function applyLine(data: StateData, text: string, dir: string): void {
  if (text.startsWith('"')) applyRecord(data.entries, text);
  else if (text.startsWith('{')) checkVersion(JSON.parse(text), dir);
  else applyRow(data, JSON.parse(text));
}

function applyRow({ entries, meta }: StateData, row: readonly [kind: string, ...string[]]): void {
  const [kind, first = '', second = '', url] = row;
  if (kind === '-') entries.delete(first, second);
  else if (kind === 'u')
    entries.bases[Number(first)] = { collection: second, url: url ?? undefined };
  else if (kind === 'm' && row.length > 2) meta.set(first, row[2] as Json);
  else if (kind === 'm') meta.delete(first);
  else throw new Error(`a record has the unknown status ${JSON.stringify(kind)}`);
}

function applyRecord(entries: Entries, text: string): void {
  const [middle, end] = [text.indexOf('","'), text.indexOf('",[')];
  if (text.includes('\\')) {
    const [folder, path, record] = JSON.parse(`[${text}]`);
    entries.set(folder, path, JSON.stringify(record));
  } else entries.set(text.slice(1, middle), text.slice(middle + 3, end), text.slice(end + 2));
}

/** Checks the version in a header. A footer has none. */
function checkVersion(line: Readonly<Partial<typeof VERSIONS>>, dir: string): void {
  const { format, schema } = { ...VERSIONS, ...line };
  if (schema < VERSIONS.schema)
    throw new StateError('STATE_DAMAGED', { dir, detail: 'it is from before the first release' });
  if (format <= VERSIONS.format && schema === VERSIONS.schema) return;
  const detail = `schema ${format}.${schema}; this one knows ${VERSIONS.format}.${VERSIONS.schema}`;
  throw new StateError('STATE_NEWER', { dir, detail });
}

/**
 * Frames one line of a journal or a snapshot: the CRC-32 of the text in eight hex digits, a space,
 * the text, a newline. The texts are
 *
 * - a header, the first line of every file: `{"peersync":"journal",…}`;
 * - a footer, which ends the lines that the file was created with (in a snapshot, all lines):
 *   `{"records":…,"sum":…}`;
 * - `"folder","path",[record]` for a record, and `["-","folder","path"]` for one that was removed;
 * - `["m","name",value]` for a small value, without `value` if it was removed;
 * - `["u",number,"collection","url"]` for a URL base. In a snapshot it may follow the records that
 *   use it.
 */
export function lineOf(text: string, checksum = crc32(text)): string {
  return `${checksum.toString(16).padStart(8, '0')} ${text}\n`;
}

/**
 * Running totals of the lines of a file: their number, and a sum of their checksums. The sum
 * detects intact lines that are missing or in the wrong order.
 */
class LineTotals {
  #lines = 0;
  #sum = 0;

  add(checksum: number): void {
    this.#lines += 1;
    this.#sum = (Math.imul(this.#sum, 31) + checksum) | 0;
  }

  footer(): string {
    return JSON.stringify({ records: this.#lines - 1, sum: this.#sum });
  }
}

/** Yields the header, the texts and a footer as framed lines. */
export function* framedLines(header: string, texts: Iterable<string>): Iterable<string> {
  const totals = new LineTotals();
  totals.add(crc32(header));
  yield lineOf(header);
  for (const text of texts) {
    const checksum = crc32(text);
    totals.add(checksum);
    yield lineOf(text, checksum);
  }
  yield lineOf(totals.footer());
}

const NEWLINE = 0x0a;

/** Length of the checksum and the space after it. */
const PREFIX = 9;

/**
 * Bytes written between two syncs. It keeps the sync of a commit from waiting for a whole snapshot.
 */
const SYNC_EVERY_BYTES = 8 * 1024 * 1024;

/** In UTF-8, of a UTF-16 code unit. */
const MAX_BYTES_PER_CHARACTER = 3;

/** The lines of a file. Sizes are in bytes, before compression. */
export interface LinesFound {
  /** The size of all lines. */
  readonly bytes: number;
  /** The end of the last intact line. The rest is torn. */
  readonly intactBytes: number;
  /** The number of damaged lines before that end. */
  readonly damaged: number;
  /** Whether the file ends with a footer that matches its lines. */
  readonly isWhole: boolean;
}

/**
 * Reads framed lines in one pass, chunk by chunk.
 *
 * @param onText called with the text of each intact line except footers
 */
export async function readLines(
  chunks: AsyncIterable<Buffer>,
  onText: (text: string) => void,
): Promise<LinesFound> {
  const totals = new LineTotals();
  let bytes = 0;
  let intactBytes = 0;
  let damaged = 0;
  /** Damaged lines since the last intact one. They are a torn end if no intact line follows. */
  let possiblyTorn = 0;
  let isWhole = false;
  let rest = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const part = Buffer.concat([rest, chunk]);
    let start = 0;
    let end = part.indexOf(NEWLINE, rest.length);
    while (end !== -1) {
      const line = part.toString('utf8', start, end);
      const text = line.slice(PREFIX);
      const checksum = crc32(part.subarray(start + PREFIX, end));
      if (Number(`0x${line.slice(0, PREFIX - 1)}`) === checksum) {
        damaged += possiblyTorn;
        possiblyTorn = 0;
        intactBytes = bytes + end + 1;
        isWhole = text.startsWith('{') && text === totals.footer();
        totals.add(checksum);
        if (!isWhole) onText(text);
      } else possiblyTorn += 1;
      start = end + 1;
      end = part.indexOf(NEWLINE, start);
    }
    bytes += start;
    rest = part.subarray(start);
  }
  bytes += rest.length;
  return { bytes, intactBytes, damaged, isWhole };
}

/** A file that lines are appended to. */
export class LinesFile {
  /**
   * Set when a sync or a truncation failed. The kernel may have dropped the data and report success
   * for the next sync, so nothing more is appended. The next journal repeats the changes that are
   * not known to be on disk.
   */
  isSpoiled = false;
  /**
   * Lines are encoded one by one into this buffer. That takes half the time of a long text that is
   * put together from lines and then encoded: 1.1 µs a line, not 2.4.
   */
  readonly #chunk: Buffer;

  /**
   * @param writeBytes the size of a chunk of lines
   * @param end bytes known to be on disk
   * @param stored returns a chunk of lines as the file has it
   */
  constructor(
    readonly file: FileHandle,
    writeBytes: number,
    public end = 0,
    private readonly stored = (lines: Buffer): Buffer => lines,
  ) {
    this.#chunk = Buffer.allocUnsafe(writeBytes);
  }

  /**
   * Appends lines, which may be generated while it writes. When it resolves, all of them are on
   * disk. When it rejects, none of them counts.
   */
  async append(lines: Iterable<string>): Promise<void> {
    let end = this.end;
    let synced = this.end;
    try {
      for (const chunk of this.#chunks(lines)) {
        end = await this.#write(chunk, end);
        if (end - synced < SYNC_EVERY_BYTES) continue;
        await this.#sync();
        synced = end;
      }
      if (end > synced) await this.#sync();
      this.end = end;
    } catch (error) {
      await this.file.truncate(this.end).catch(() => {
        this.isSpoiled = true;
      });
      throw error;
    }
  }

  /** Yields the lines in chunks. A chunk is valid until the next one is asked for. */
  *#chunks(lines: Iterable<string>): Iterable<Buffer> {
    const chunk = this.#chunk;
    let length = 0;
    for (const line of lines) {
      const most = line.length * MAX_BYTES_PER_CHARACTER;
      if (length > 0 && length + most > chunk.length) {
        yield chunk.subarray(0, length);
        length = 0;
      }
      if (most > chunk.length) yield Buffer.from(line);
      else length += chunk.write(line, length);
    }
    if (length > 0) yield chunk.subarray(0, length);
  }

  /** @returns the position in the file at which the chunk ends */
  async #write(chunk: Buffer, position: number): Promise<number> {
    const bytes = this.stored(chunk);
    let done = 0;
    while (done < bytes.length) {
      const left = bytes.length - done;
      done += (await this.file.write(bytes, done, left, position + done)).bytesWritten;
    }
    return position + done;
  }

  async #sync(): Promise<void> {
    this.isSpoiled = true;
    await this.file.datasync();
    this.isSpoiled = false;
  }
}
