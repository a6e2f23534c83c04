import type { FileHandle, open } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import {
  journalPath,
  listStateFiles,
  StateError,
  type StateFiles,
  snapshotPath,
  stateError,
} from './directory.js';
import { Entries } from './entries.js';
import { baseOf, entryOfSchema1 } from './line.js';

/** A small value that survives a restart beside the records. */
export type Json =
  | string
  | number
  | boolean
  | null
  | readonly Json[]
  | { readonly [name: string]: Json | undefined };

/** Everything that survives a restart: what lowdb holds in `data`. */
export interface StateData {
  readonly entries: Entries;
  /** Small values by name: folder identities, what was learned of the peer. */
  readonly meta: Map<string, Json>;
  /**
   * What is not on disk yet: `folder\0path` of records and names of small values. Only where, for it is written as it is by
   * then.
   */
  changes: Set<string>;
}

export function emptyData(): StateData {
  return { entries: new Entries(), meta: new Map(), changes: new Set() };
}

/** How files are opened; a parameter so that a test can let a disk fail. */
export type OpenFile = typeof open;

/** How the lines of a file are framed. */
const FORMAT_VERSION = 1;
/** What the lines mean; raised whenever a line of before would be misread. */
const SCHEMA_VERSION = 2;

/**
 * Writes the lines of a file: each is the CRC-32 of its text in eight hex digits, a space, the text (JSON, or values of JSON
 * with commas between them), a newline.
 */
export class Framer {
  #lines = 0;
  #sum = 0;

  /** @param text without a newline */
  line(text: string): string {
    const checksum = crc32(text);
    this.#lines += 1;
    this.#sum = addToSum(this.#sum, checksum);
    return `${checksum.toString(16).padStart(8, '0')} ${text}\n`;
  }

  /** Opens every file: what it is, and how to read the rest. */
  header(peersync: 'journal' | 'snapshot', generation: number, created: number): string {
    const versions = { format: FORMAT_VERSION, schema: SCHEMA_VERSION };
    return this.line(JSON.stringify({ peersync, ...versions, generation, created }));
  }

  /** Closes a snapshot: how many lines it has besides header and footer, and the sum of the checksums of all before. */
  footer(): string {
    return this.line(JSON.stringify({ records: this.#lines - 1, sum: this.#sum }));
  }
}

/** The sum of a file's line checksums in order; catches lines that are sound but not where they belong. */
function addToSum(sum: number, checksum: number): number {
  return (Math.imul(sum, 31) + checksum) | 0;
}

/** How much is read and taken in without a pause, in bytes: 2 ms of the event loop. */
const READ_BYTES = 128 * 1024;
const PREFIX_BYTES = 9;
const [NEWLINE, QUOTE, SLASH, BACKSLASH, BRACE] = [0x0a, 0x22, 0x2f, 0x5c, 0x7b];
const HEX = Buffer.from('0123456789abcdef');
const NO_PLACE = Buffer.alloc(0);

/** What reading a file of lines found. */
interface FileFound {
  /** Sound lines. */
  lines: number;
  /** Of the checksums of all sound lines but the last. */
  sumBeforeLast: number;
  /** Lines with a wrong checksum that have sound lines after them. */
  damaged: number;
  /** Where the last sound line ends; what follows is torn. */
  soundBytes: number;
  bytes: number;
}

/**
 * Reads a file of lines in one pass, a part at a time.
 *
 * @param onLine is called for each sound line with where its text stands; the buffer is used again afterwards
 */
async function readLines(
  file: FileHandle,
  onLine: (buffer: Buffer, start: number, end: number) => void,
): Promise<FileFound> {
  const found: FileFound = { lines: 0, sumBeforeLast: 0, damaged: 0, soundBytes: 0, bytes: 0 };
  let buffer = Buffer.allocUnsafe(READ_BYTES);
  // Bytes of a line that is not read to its end, and damaged lines since the last sound one: torn if nothing sound follows.
  let [held, doubtful, sum] = [0, 0, 0];
  for (;;) {
    const { bytesRead } = await file.read(buffer, held, buffer.length - held, found.bytes);
    if (bytesRead === 0) return found;
    found.bytes += bytesRead;
    const end = held + bytesRead;
    let start = 0;
    for (let at = buffer.indexOf(NEWLINE, held); at !== -1 && at < end; at = buffer.indexOf(NEWLINE, start)) {
      const checksum = crc32(buffer.subarray(start + PREFIX_BYTES, at));
      if (hasChecksum(buffer, start, checksum)) {
        found.lines += 1;
        found.damaged += doubtful;
        doubtful = 0;
        found.soundBytes = found.bytes - end + at + 1;
        found.sumBeforeLast = sum;
        sum = addToSum(sum, checksum);
        onLine(buffer, start + PREFIX_BYTES, at);
      } else doubtful += 1;
      start = at + 1;
    }
    buffer.copy(buffer, 0, start, end);
    held = end - start;
    if (held === buffer.length) buffer = Buffer.concat([buffer], 2 * buffer.length);
  }
}

/** Whether the checksum stands there, as `Framer` writes it. */
function hasChecksum(buffer: Buffer, start: number, checksum: number): boolean {
  for (let i = 0; i < 8; i += 1)
    if (buffer[start + i] !== HEX[(checksum >>> (28 - 4 * i)) & 15]) return false;
  return true;
}

/** Where the string of JSON ends that begins at `start`: behind its closing quote. */
function endOfString(buffer: Buffer, start: number): number {
  let at = start + 1;
  while (buffer[at] !== QUOTE) {
    if (at >= buffer.length) throw new Error('a record has no place');
    at += buffer[at] === BACKSLASH ? 2 : 1;
  }
  return at + 1;
}

/**
 * Reads the state in `dir` and writes nothing: the newest sound snapshot, then the journals from its generation on. If
 * no snapshot is sound, everything there is, oldest first, as far as it is sound.
 *
 * @throws StateError STATE_NEWER, STATE_DAMAGED (nothing is readable), STATE_UNREADABLE, STATE_NOT_A_DIRECTORY
 */
export async function loadState(dir: string, open: OpenFile): Promise<Loader> {
  try {
    const loader = new Loader(dir, await listStateFiles(dir), open);
    await loader.load();
    return loader;
  } catch (error) {
    throw await stateError(error, dir, 'read');
  }
}

/** Reads the files of a state directory, and has what they say. */
export class Loader {
  data = emptyData();
  /** The generation that reading began with: all files from it on are needed. */
  base = Number.MAX_SAFE_INTEGER;
  /** The snapshot that reading began with, in bytes; 0 without one. */
  snapshotBytes = 0;
  /** The journals that were read, in bytes. */
  journalBytes = 0;
  /** The newest journal, its sound part and what a crash left unfinished behind that, in bytes. */
  last: { readonly generation: number; readonly soundBytes: number; readonly tornBytes: number } | undefined;
  /** One sentence for each damage that was read around. */
  readonly damage: string[] = [];
  /** A file is in an older schema, or does not say in which. */
  outdated = false;
  #headers = 0;
  /** The last header or footer of the file that is read. */
  #footer: { records?: number | undefined; sum?: number | undefined } = {};
  /** The text of the place of the last record, up to its name, and what sets a record there. */
  #place = NO_PLACE;
  #put: ReturnType<Entries['into']> | undefined;

  constructor(
    readonly dir: string,
    readonly files: StateFiles,
    readonly open: OpenFile,
  ) {}

  async load(): Promise<void> {
    const { snapshots, journals } = this.files;
    for (const generation of snapshots.toReversed()) {
      const found = await this.#readFile(snapshotPath(this.dir, generation));
      if (this.#isWhole(found)) {
        this.base = generation;
        this.snapshotBytes = found.bytes;
        break;
      }
      this.damage.push(`snapshot-${generation} is damaged; what came before it was read instead.`);
      this.data = emptyData();
    }
    if (this.snapshotBytes === 0) {
      // The usual way of a state without a snapshot; else all that is left is read.
      this.base = Math.min(...snapshots, ...journals, this.base);
      if (this.base > 1 && snapshots.length + journals.length > 0) {
        this.damage.push(
          'No snapshot is whole; what is sound was read, and files that are missing in it are new again.',
        );
      }
      for (const generation of snapshots) await this.#readFile(snapshotPath(this.dir, generation));
    }
    await this.#readJournals();
    if (this.#headers === 0 && snapshots.length + journals.length > 0)
      throw new StateError('STATE_DAMAGED', this.dir, 'none of its files has a sound header');
    if (this.damage.length > 0 || this.last?.tornBytes) await this.#dropUnreadable();
  }

  async #readJournals(): Promise<void> {
    let expected = this.base;
    const missing = () => this.damage.push(`journal-${expected} is missing; its changes are lost.`);
    for (const generation of this.files.journals) {
      if (generation < this.base) continue;
      if (generation !== expected) missing();
      expected = generation + 1;
      const { damaged, soundBytes, bytes } = await this.#readFile(journalPath(this.dir, generation));
      if (damaged > 0) {
        const lines = damaged === 1 ? 'line' : 'lines';
        this.damage.push(
          `journal-${generation} has ${damaged} damaged ${lines}; the files they told of are looked at again.`,
        );
      }
      this.journalBytes += soundBytes;
      this.last = { generation, soundBytes, tornBytes: bytes - soundBytes };
    }
    if (this.last === undefined && this.snapshotBytes > 0) missing();
  }

  async #readFile(path: string): Promise<FileFound> {
    const before = this.#headers;
    this.#footer = {};
    this.#place = NO_PLACE;
    const file = await this.open(path, 'r');
    try {
      return await readLines(file, (buffer, start, end) => this.#take(buffer, start, end));
    } finally {
      await file.close();
      if (this.#headers === before) this.outdated = true;
    }
  }

  #isWhole({ lines, sumBeforeLast, damaged, soundBytes, bytes }: FileFound): boolean {
    const { records, sum } = this.#footer;
    return records === lines - 2 && sum === sumBeforeLast && damaged === 0 && soundBytes === bytes;
  }

  #take(buffer: Buffer, start: number, end: number): void {
    const first = buffer[start];
    if (first === QUOTE) this.#record(buffer, start, end);
    else if (first === BRACE) this.#frame(JSON.parse(buffer.toString('utf8', start, end)));
    else this.#row(JSON.parse(buffer.toString('utf8', start, end)));
  }

  /** `"folder","directory/name",[…]`; the directory is looked up only where it is not that of the record before. */
  #record(buffer: Buffer, start: number, end: number): void {
    const path = endOfString(buffer, start) + 1;
    const line = endOfString(buffer, path) + 1;
    let name = line - 2;
    while (name > path + 1 && buffer[name - 1] !== SLASH) name -= 1;
    if (buffer.compare(this.#place, 0, this.#place.length, start, name) !== 0) {
      const place = buffer.toString('utf8', start, Math.max(path + 1, name - 1));
      const [folder, directory] = JSON.parse(`[${place}"]`) as [string, string];
      this.#put = this.data.entries.into(folder, directory);
      this.#place = Buffer.from(buffer.subarray(start, name));
    }
    const text = buffer.toString('utf8', name, line - 2);
    this.#put?.(text.includes('\\') ? JSON.parse(`"${text}"`) : text, buffer.toString('utf8', line, end));
  }

  #row(row: readonly unknown[]): void {
    const { entries, meta } = this.data;
    this.#place = NO_PLACE;
    const [kind, first, second, third] = row as readonly [string, string, string, string | undefined];
    if (kind === '-') entries.delete(first, second);
    else if (kind === 'u') entries.bases.set(Number(first), { collection: second, url: third ?? undefined });
    else if (kind === 'm' && row.length > 2) meta.set(first, second as Json);
    else if (kind === 'm') meta.delete(first);
    else entries.put(entryOfSchema1(row));
  }

  /** A header or a footer; see `Framer`. */
  #frame({ format, schema, records, sum }: Readonly<Record<string, number | undefined>>): void {
    this.#footer = { records, sum };
    if (format === undefined || schema === undefined) return;
    this.#headers += 1;
    if (schema < SCHEMA_VERSION) this.outdated = true;
    if (format <= FORMAT_VERSION && schema <= SCHEMA_VERSION) return;
    const detail = `schema ${format}.${schema}; this one knows ${FORMAT_VERSION}.${SCHEMA_VERSION}`;
    throw new StateError('STATE_NEWER', this.dir, detail);
  }

  /** Forgets the items whose URL base is lost: it stands twice where it is first used, and once in each later file. */
  async #dropUnreadable(): Promise<void> {
    const { entries } = this.data;
    let [looked, dropped] = [0, 0];
    for (const [folder, directory, name, line] of entries.lines()) {
      looked += 1;
      if (looked % 5_000 === 0) await nextTurn();
      const base = baseOf(line);
      if (Number.isNaN(base) || entries.bases.get(base) !== undefined) continue;
      entries.delete(folder, directory === '' ? name : `${directory}/${name}`);
      dropped += 1;
    }
    if (dropped === 0) return;
    const [files, are] = dropped === 1 ? ['1 file', 'it is'] : [`${dropped} files`, 'they are'];
    this.damage.push(`The URL base of ${files} is lost; ${are} new again.`);
  }
}
