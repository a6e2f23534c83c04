import { createHash, hash } from 'node:crypto';
import {
  closeSync,
  fstatSync,
  lstatSync,
  openSync,
  readSync,
  realpathSync,
  type Stats,
} from 'node:fs';
import { type FileHandle, lstat, open, realpath } from 'node:fs/promises';
import { messageOf, systemCode } from '../lib/errors.js';
import { type Encoding, type FileStat, fileStat, isAt, READ_FLAGS, sameStat } from '../lib/file.js';
import { isWithin } from '../lib/text.js';
import { EncodingDetector } from './encoding.js';
import { documentKind, holdsPrivateKey, isNameOfTextDocument, KEY_BYTES } from './signatures.js';
import { typeName } from './type-names.js';

/**
 * The one reader of the user's files.
 *
 * A file is opened without following links and without waiting for a pipe or a device. The open
 * file must be the one at the path that was meant (see `checkOpened`), with the expected stat. The
 * stat is compared again after reading. If a write or a replacement raced the reading, the content
 * is discarded.
 *
 * `readWhole` reads a small file in a worker, and `pieces` a file of any size. `fingerprintNow` and
 * `fingerprint` hash them. `openUnchanged` only opens a file, for the original of a search result.
 */

/** System error codes that say nothing about the file. */
const TRANSIENT_CODES = new Set([
  'EMFILE',
  'ENFILE',
  'ENOMEM',
  'EAGAIN',
  'EINTR',
  'EBUSY',
  'ESTALE',
]);

/** Why a file could not be read as expected. */
export type Refusal =
  /** The file was written, moved or replaced meanwhile. */
  | { readonly kind: 'raced' }
  /** The system was short of something for a moment (open files, memory). Try again. */
  | { readonly kind: 'busy' }
  | { readonly kind: 'vanished' }
  | { readonly kind: 'notRegular' }
  /** `code` is a system error code (EACCES, EIO), or the message of an error without one. */
  | { readonly kind: 'unreadable'; readonly code: string };

/** A file to read, and its stat when it was found at rest. */
export interface ReadOrder {
  /** Absolute path; links are resolved unless `linksWithin` is given. */
  readonly file: string;
  readonly stat: FileStat;
  /**
   * Absolute path of a directory, links resolved. Links are followed if they lead to a file in this
   * directory.
   *
   * @default no link is followed
   */
  readonly linksWithin?: string | undefined;
}

/** Thrown if a file is not as expected. */
class ReadRefused extends Error {
  constructor(readonly refusal: Refusal) {
    super(
      refusal.kind === 'raced' ? 'the file was changed meanwhile' : `the file is ${refusal.kind}`,
    );
  }
}

/**
 * Checks, right after opening, that the file is still the one at the path and has not changed since
 * it was found at rest.
 *
 * @param found the stat of the descriptor
 * @throws ReadRefused
 */
function checkOpened(fd: number, path: string, found: Stats, meant: FileStat): void {
  if (!isAt(fd, path)) throw new ReadRefused({ kind: 'raced' });
  checkStat(found, meant);
}

/**
 * Checks that a stat is that of the expected file.
 *
 * @throws ReadRefused if it is not a regular file, or differs from `meant`
 */
function checkStat(found: Stats, meant: FileStat): void {
  if (!found.isFile()) throw new ReadRefused({ kind: 'notRegular' });
  if (!sameStat(fileStat(found), meant)) throw new ReadRefused({ kind: 'raced' });
}

/**
 * Returns the path if it is in the directory.
 *
 * @throws ReadRefused otherwise
 */
function within(directory: string, path: string): string {
  if (!isWithin(path, directory)) throw new ReadRefused({ kind: 'notRegular' });
  return path;
}

/** Returns why reading a file failed. */
export function refusalFor(error: unknown): Refusal {
  if (error instanceof ReadRefused) return error.refusal;
  const code = systemCode(error);
  if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'vanished' };
  // ELOOP: a link. ENXIO and ENODEV: a socket, or a device without a driver.
  if (code === 'ELOOP' || code === 'ENXIO' || code === 'ENODEV') return { kind: 'notRegular' };
  if (code !== undefined && TRANSIENT_CODES.has(code)) return { kind: 'busy' };
  return { kind: 'unreadable', code: code ?? messageOf(error) };
}

/** Size of a piece, in bytes. Hashing is half as fast again as with the 64 KiB of a stream. */
const PIECE_BYTES = 1_048_576;
/** The result of reading a file: its version, or why it could not be read. */
export type Fingerprint =
  | {
      readonly kind: 'version';
      readonly version: FileStat & { readonly sha256: string; readonly encoding: Encoding };
      readonly holdsPrivateKey: boolean;
      /** The common name of its type, if no reader reads it. */
      readonly typeName?: string | undefined;
    }
  | Refusal;

/** Buffer for one file, reused for the next. */
let scratch = Buffer.alloc(0);

/**
 * Reads a file that fits into memory, synchronously: for a worker. The bytes are valid until the
 * next call.
 */
export function readWhole({ file, stat, linksWithin }: ReadOrder): Buffer | Refusal {
  try {
    const path = linksWithin === undefined ? file : within(linksWithin, realpathSync(file));
    const fd = openSync(path, READ_FLAGS);
    try {
      checkOpened(fd, path, fstatSync(fd), stat);
      if (scratch.length < stat.size) scratch = Buffer.allocUnsafeSlow(stat.size);
      let size = 0;
      while (size < stat.size) {
        const bytes = readSync(fd, scratch, size, stat.size - size, null);
        if (bytes === 0) return { kind: 'raced' };
        size += bytes;
      }
      // One lstat is enough: if the path still has this inode and it is unchanged, it is the file
      // that was read.
      checkStat(lstatSync(path), stat);
      return scratch.subarray(0, size);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    return refusalFor(error);
  }
}

/**
 * Opens a file for reading if it is as it was found at rest. The caller closes it, and compares its
 * stat again after reading.
 *
 * @throws an error that `refusalFor` explains
 */
export async function openUnchanged(
  order: ReadOrder,
): Promise<{ readonly handle: FileHandle; readonly path: string }> {
  const { file, stat, linksWithin } = order;
  const path = linksWithin === undefined ? file : within(linksWithin, await realpath(file));
  const handle = await open(path, READ_FLAGS);
  try {
    checkOpened(handle.fd, path, await handle.stat(), stat);
    return { handle, path };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/**
 * Yields a file of any size in pieces. Each piece is valid until the next one is requested. The
 * last piece comes only after the file proved to be unchanged, so a caller that has all pieces has
 * one consistent version.
 *
 * @throws an error that `refusalFor` explains
 */
export async function* pieces(
  order: ReadOrder,
  pieceBytes = PIECE_BYTES,
): AsyncGenerator<Buffer, void> {
  const { stat } = order;
  const { handle, path } = await openUnchanged(order);
  try {
    const bytes = Math.min(pieceBytes, stat.size);
    let [buffer, other] = [Buffer.allocUnsafeSlow(bytes), Buffer.allocUnsafeSlow(bytes)];
    let previous: Buffer | undefined;
    for (let size = 0; size < stat.size; [buffer, other] = [other, buffer]) {
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, null);
      size += bytesRead;
      if (bytesRead === 0 || size > stat.size) throw new ReadRefused({ kind: 'raced' });
      if (previous !== undefined) yield previous;
      previous = buffer.subarray(0, bytesRead);
    }
    checkStat(await lstat(path), stat);
    if (previous !== undefined) yield previous;
  } finally {
    await handle.close();
  }
}

/** Returns why a file is not as it was found at rest, without reading it; undefined if it is. */
export async function changeOf({
  file,
  stat,
  linksWithin,
}: ReadOrder): Promise<Refusal | undefined> {
  try {
    const path = linksWithin === undefined ? file : within(linksWithin, await realpath(file));
    checkStat(await lstat(path), stat);
    return undefined;
  } catch (error) {
    return refusalFor(error);
  }
}

/** Hashes a small file and detects its encoding, synchronously: for a worker. */
export function fingerprintNow(order: ReadOrder): Fingerprint {
  const bytes = readWhole(order);
  if (!Buffer.isBuffer(bytes)) return bytes;
  try {
    const detector = new EncodingDetector();
    detector.write(bytes);
    const encoding = encodingOf(order.file, bytes, detector);
    const version = { ...order.stat, sha256: hash('sha256', bytes, 'hex'), encoding };
    return { kind: 'version', version, ...judged(order.file, bytes, encoding) };
  } catch (error) {
    return refusalFor(error);
  }
}

/**
 * Hashes a file of any size and detects its encoding.
 *
 * @param onPiece called after each piece is read
 */
export async function fingerprint(
  order: ReadOrder,
  onPiece: () => void = () => {},
): Promise<Fingerprint> {
  const sha256 = createHash('sha256');
  const detector = new EncodingDetector();
  let head: Uint8Array = new Uint8Array();
  try {
    for await (const piece of pieces(order)) {
      onPiece();
      if (head.length === 0) head = Buffer.from(piece.subarray(0, KEY_BYTES));
      sha256.update(piece);
      detector.write(piece);
    }
  } catch (error) {
    return refusalFor(error);
  }
  const encoding = encodingOf(order.file, head, detector);
  const version = { ...order.stat, sha256: sha256.digest('hex'), encoding };
  return { kind: 'version', version, ...judged(order.file, head, encoding) };
}

/** Returns what the first bytes of a file show besides its encoding. */
function judged(file: string, head: Uint8Array, encoding: Encoding) {
  return {
    holdsPrivateKey: holdsPrivateKey(head),
    typeName: encoding === 'binary' ? typeName(file, head) : undefined,
  };
}

function encodingOf(file: string, head: Uint8Array, detector: EncodingDetector): Encoding {
  const encoding = detector.end();
  // Most text files need no further check.
  if (encoding !== 'binary' && !isNameOfTextDocument(file)) return encoding;
  return documentKind(file, head) === undefined ? encoding : 'document';
}
