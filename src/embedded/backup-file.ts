import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { quoted } from '../lib/text.js';
import { BackupError, unreadable, unwritable } from './backup-errors.js';
import { Refusal } from './form.js';
import { shareSegments } from './share-store.js';

/**
 * The file of a backup.
 *
 * 1. The database, a copy of `peer.sqlite`. SQLite ignores what follows it, so that the file is
 *    checked as it is.
 * 2. Each shared object: a line of JSON (`ShareHead`), and its content.
 * 3. The footer, a line of FOOTER_BYTES: the format of this file, the size of the database, and the
 *    SHA-256 of all bytes before.
 */
const BACKUP_FORMAT = 1;
const FOOTER = /^\npeersync-peer-backup (\d{4}) (\d{16}) ([0-9a-f]{64})\n$/;
const FOOTER_BYTES = footer(0, '0'.repeat(64)).length;
const DIGEST_BYTES = 65;

const PIECE_BYTES = 1_048_576;
/** The longest line before a shared object, in bytes. A name has up to 32 times 255 bytes. */
const MAX_LINE_BYTES = 65_536;

/** The bytes of the header that tell how the journal is kept (1: rollback, 2: write-ahead log). */
const JOURNAL_BYTES = [18, 19];

/** The line of JSON before a shared object. */
export interface ShareHead {
  /** The path below `shares`, with `/` between folders. */
  readonly path: string;
  readonly size: number;
  /** In ms since the epoch. */
  readonly modified: number;
}

/** Receives what a backup holds. A piece is valid until `write` resolves. */
export interface Sink {
  /** Called before each section: the database first, with its size, and then each shared object. */
  begin(section: { readonly size: number } | ShareHead): Promise<void>;
  write(piece: Buffer): Promise<void>;
  /** Called after each section. */
  end(): Promise<void>;
}

const NOWHERE: Sink = { begin: async () => {}, write: async () => {}, end: async () => {} };

/** The number of shared objects, and the size of the database and of everything. */
export interface Contents {
  readonly shares: number;
  readonly databaseBytes: number;
  readonly bytes: number;
  readonly sha256: string;
}

/** Writes a backup into an empty file. The caller syncs it. */
export class BackupWriter {
  readonly #file: FileHandle;
  /** The file that errors name. */
  readonly #target: string;
  readonly #hash: Hash = createHash('sha256');
  #databaseBytes = 0;

  constructor(file: FileHandle, target: string) {
    this.#file = file;
    this.#target = target;
  }

  /**
   * Writes the database. The copy has a rollback journal, so that it is one file, and can be opened
   * for reading only. The peer changes that back.
   */
  async database(pieces: AsyncIterable<Buffer>): Promise<void> {
    for await (const piece of pieces) {
      if (this.#databaseBytes === 0) for (const at of JOURNAL_BYTES) piece[at] = 1;
      this.#databaseBytes += piece.length;
      await this.#write(piece);
    }
  }

  /** @param pieces of `size` bytes together */
  async share(head: ShareHead, pieces: AsyncIterable<Buffer>): Promise<void> {
    await this.#write(Buffer.from(`${JSON.stringify(head)}\n`));
    for await (const piece of pieces) await this.#write(piece);
  }

  async end(): Promise<void> {
    const line = footer(this.#databaseBytes, '0'.repeat(64));
    await this.#write(line.subarray(0, FOOTER_BYTES - DIGEST_BYTES));
    await this.#append(Buffer.from(`${this.#hash.digest('hex')}\n`));
  }

  async #write(piece: Buffer): Promise<void> {
    this.#hash.update(piece);
    await this.#append(piece);
  }

  /** @throws BackupError BACKUP_UNWRITABLE */
  async #append(piece: Buffer): Promise<void> {
    await this.#file.writeFile(piece).catch((error: unknown) => {
      throw unwritable(this.#target, error);
    });
  }
}

function footer(databaseBytes: number, digest: string): Buffer {
  const format = String(BACKUP_FORMAT).padStart(4, '0');
  const size = String(databaseBytes).padStart(16, '0');
  return Buffer.from(`\npeersync-peer-backup ${format} ${size} ${digest}\n`);
}

/** Opens a backup for reading. @throws BackupError BACKUP_UNREADABLE */
export async function openBackup(path: string): Promise<FileHandle> {
  try {
    const file = await open(path, 'r');
    if ((await file.stat()).isFile()) return file;
    await file.close();
    throw new Error('it is no file');
  } catch (error) {
    throw unreadable(path, error);
  }
}

/**
 * Reads all of a backup, passes its sections on, and compares its digest. Nothing that was passed
 * on counts before this resolves.
 *
 * @throws BackupError BACKUP_UNREADABLE, BACKUP_UNKNOWN, BACKUP_NEWER, BACKUP_DAMAGED; errors of
 *   the sink; the reason of `signal`
 */
export async function readBackup(
  file: FileHandle,
  path: string,
  signal: AbortSignal,
  sink: Sink = NOWHERE,
): Promise<Contents> {
  const failed = (error: unknown): never => {
    throw unreadable(path, error);
  };
  const { size: bytes } = await file.stat().catch(failed);
  const damaged = (why: string) => new BackupError('BACKUP_DAMAGED', { file: path, why });
  const end = bytes - FOOTER_BYTES;
  const line = Buffer.alloc(FOOTER_BYTES);
  if (end >= 0) await file.read(line, 0, FOOTER_BYTES, end).catch(failed);
  const [, format, size, digest] = FOOTER.exec(line.toString('latin1')) ?? [];
  if (digest === undefined) throw new BackupError('BACKUP_UNKNOWN', { file: path });
  if (Number(format) > BACKUP_FORMAT)
    throw new BackupError('BACKUP_NEWER', {
      file: path,
      found: Number(format),
      known: BACKUP_FORMAT,
    });
  const databaseBytes = Number(size);
  if (databaseBytes > end) throw damaged('its database is larger than the file');
  const reader = new SequentialReader(end, async (...place) => {
    signal.throwIfAborted();
    return (await file.read(...place).catch(failed)).bytesRead;
  });
  const names = new ShareNames();
  await sink.begin({ size: databaseBytes });
  await reader.copy(databaseBytes, sink);
  await sink.end();
  let shares = 0;
  for (; !reader.isAtEnd; shares += 1) {
    const head = headOf(await reader.line());
    if (head === undefined) throw damaged('a shared object has no name');
    if (head.size > reader.left) throw damaged('a shared object is larger than the file');
    if (!names.add(head.path)) throw damaged(`the shared object ${quoted(head.path)} has no place`);
    await sink.begin(head);
    await reader.copy(head.size, sink);
    await sink.end();
  }
  const sha256 = reader.digest(line.subarray(0, FOOTER_BYTES - DIGEST_BYTES));
  if (sha256 !== digest) throw damaged('its content does not match its digest');
  return { shares, databaseBytes, bytes, sha256 };
}

/** Returns what a line says of a shared object; undefined if it is none, or its path leads out. */
function headOf(line: string | undefined): ShareHead | undefined {
  try {
    const { path, size, modified } = JSON.parse(line ?? '') as Partial<ShareHead>;
    if (typeof path !== 'string' || typeof size !== 'number' || typeof modified !== 'number')
      return undefined;
    shareSegments('', path);
    if (!Number.isSafeInteger(size) || size < 0 || !Number.isFinite(modified)) return undefined;
    return { path, size, modified };
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof Refusal || error instanceof TypeError)
      return undefined;
    throw error;
  }
}

/** The paths of shared objects. No two are the same, and none is a folder of another. */
class ShareNames {
  readonly #files = new Set<string>();
  readonly #folders = new Set<string>();

  /** @returns false if the path conflicts with an earlier one */
  add(path: string): boolean {
    if (this.#files.has(path) || this.#folders.has(path)) return false;
    this.#files.add(path);
    for (let end = path.indexOf('/'); end !== -1; end = path.indexOf('/', end + 1)) {
      const folder = path.slice(0, end);
      if (this.#files.has(folder)) return false;
      this.#folders.add(folder);
    }
    return true;
  }
}

/** Reads into a buffer: its offset, the length, the place in the file. @returns the bytes read */
type Read = (buffer: Buffer, offset: number, length: number, at: number) => Promise<number>;

/** Reads a file up to `end` once, and hashes it. A file that became shorter ends early. */
class SequentialReader {
  readonly #read: Read;
  readonly #end: number;
  readonly #hash = createHash('sha256');
  readonly #buffer = Buffer.allocUnsafe(PIECE_BYTES);
  /** The part of the buffer that is read and not used. */
  #rest: Buffer = Buffer.alloc(0);
  /** The place in the file after the rest. */
  #at = 0;

  constructor(end: number, read: Read) {
    this.#end = end;
    this.#read = read;
  }

  get left(): number {
    return this.#end - this.#at + this.#rest.length;
  }

  get isAtEnd(): boolean {
    return this.left <= 0;
  }

  async copy(size: number, sink: Sink): Promise<void> {
    for (let missing = size; missing > 0; ) {
      await this.#fill();
      if (this.#rest.length === 0) return;
      const piece = this.#rest.subarray(0, missing);
      this.#rest = this.#rest.subarray(piece.length);
      missing -= piece.length;
      await sink.write(piece);
    }
  }

  /** Returns the text up to the next line break; undefined if there is none. */
  async line(): Promise<string | undefined> {
    let line = Buffer.alloc(0);
    while (line.length <= MAX_LINE_BYTES && !this.isAtEnd) {
      await this.#fill();
      if (this.#rest.length === 0) return undefined;
      const end = this.#rest.indexOf('\n');
      const piece = end === -1 ? this.#rest : this.#rest.subarray(0, end);
      line = Buffer.concat([line, piece]);
      this.#rest = this.#rest.subarray(end === -1 ? piece.length : end + 1);
      if (end !== -1) return line.toString();
    }
    return undefined;
  }

  digest(more: Buffer): string {
    return this.#hash.update(more).digest('hex');
  }

  async #fill(): Promise<void> {
    if (this.#rest.length > 0) return;
    const length = Math.min(PIECE_BYTES, this.#end - this.#at);
    const bytesRead = await this.#read(this.#buffer, 0, length, this.#at);
    this.#rest = this.#buffer.subarray(0, bytesRead);
    this.#hash.update(this.#rest);
    this.#at += bytesRead;
    if (bytesRead === 0) this.#at = this.#end;
  }
}
