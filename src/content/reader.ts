import { createHash, hash } from 'node:crypto';
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, type Stats } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { messageOf, systemCode } from '../lib/errors.js';
import { type Encoding, type FileStat, fileStat, sameStat } from '../lib/file.js';
import { EncodingDetector } from './encoding.js';
import { documentKind, HEAD_BYTES } from './signatures.js';

/**
 * The one reader of files that belong to the user.
 *
 * A file is opened without following a link and without waiting for a pipe or device, its stat is compared with the
 * expected one, it is read, and its stat is compared again. What raced a write or a replacement means nothing and
 * is not used. `readWhole` is for a small file in a worker, `pieces` for a file of any size; `fingerprintNow` and
 * `fingerprint` hash what they read.
 */

/** Hashing is half again as fast with pieces of this size as with a stream's 64 KiB. */
const PIECE_BYTES = 1_048_576;
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
/** Codes that say nothing of the file. */
const PASSING = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN', 'EINTR', 'EBUSY', 'ESTALE']);

/** Why a file could not be read as expected. */
export type Refusal =
  /** It was written or replaced meanwhile. */
  | { readonly kind: 'raced' }
  /** The system lacked something for a moment (open files, memory); to be tried again. */
  | { readonly kind: 'busy' }
  | { readonly kind: 'vanished' }
  | { readonly kind: 'notRegular' }
  /** `code` is the system's (EACCES, EIO), or the message of an error that the system does not know. */
  | { readonly kind: 'unreadable'; readonly code: string };

/** A file to be read, and the stat that it had at rest. */
export interface ReadOrder {
  readonly file: string;
  readonly stat: FileStat;
}

/** What a file contained. */
export type Fingerprint =
  | {
      readonly kind: 'version';
      readonly version: FileStat & { readonly sha256: string; readonly encoding: Encoding };
    }
  | Refusal;

/** Memory for one file; used again for the next. */
let scratch = Buffer.alloc(0);

/** Reads a file that fits into memory, synchronously: for a worker. The bytes are good until the next call. */
export function readWhole({ file, stat }: ReadOrder): Buffer | Refusal {
  try {
    const fd = openSync(file, FLAGS);
    try {
      const before = refusalOf(fstatSync(fd), stat);
      if (before !== undefined) return before;
      if (scratch.length < stat.size) scratch = Buffer.allocUnsafeSlow(stat.size);
      let size = 0;
      while (size < stat.size) {
        const bytes = readSync(fd, scratch, size, stat.size - size, null);
        if (bytes === 0) return { kind: 'raced' };
        size += bytes;
      }
      // The same inode at the path, unchanged, is the one that was read: one look shows both.
      return refusalOf(lstatSync(file), stat) ?? scratch.subarray(0, size);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    return refusalFor(error);
  }
}

/** Thrown by `pieces` for a file that is not as expected. */
class ReadRefused extends Error {
  constructor(readonly refusal: Refusal) {
    super(refusal.kind === 'raced' ? 'the file was changed meanwhile' : `the file is ${refusal.kind}`);
  }
}

/**
 * The bytes of a file of any size, in pieces that are good until the next one is asked for. The last one comes only when the
 * file has proved to be unchanged: who has all of them has one version.
 *
 * @throws what `refusalFor` tells the meaning of
 */
export async function* pieces(
  { file, stat }: ReadOrder,
  pieceBytes = PIECE_BYTES,
): AsyncGenerator<Buffer, void> {
  const check = (found: Stats) => {
    const refusal = refusalOf(found, stat);
    if (refusal !== undefined) throw new ReadRefused(refusal);
  };
  const handle = await open(file, FLAGS);
  try {
    check(await handle.stat());
    const bytes = Math.min(pieceBytes, stat.size);
    let [buffer, other] = [Buffer.allocUnsafeSlow(bytes), Buffer.allocUnsafeSlow(bytes)];
    let held: Buffer | undefined;
    for (let size = 0; size < stat.size; [buffer, other] = [other, buffer]) {
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, null);
      size += bytesRead;
      if (bytesRead === 0 || size > stat.size) throw new ReadRefused({ kind: 'raced' });
      if (held !== undefined) yield held;
      held = buffer.subarray(0, bytesRead);
    }
    check(await lstat(file));
    if (held !== undefined) yield held;
  } finally {
    await handle.close();
  }
}

/** Hashes a small file and finds its encoding, synchronously: for a worker. */
export function fingerprintNow(order: ReadOrder): Fingerprint {
  const bytes = readWhole(order);
  if (!Buffer.isBuffer(bytes)) return bytes;
  try {
    const detector = new EncodingDetector();
    detector.write(bytes);
    const encoding = encodingOf(order.file, bytes, detector);
    const found = { sha256: hash('sha256', bytes, 'hex'), encoding };
    return { kind: 'version', version: { ...order.stat, ...found } };
  } catch (error) {
    return refusalFor(error);
  }
}

/**
 * Hashes a file of any size and finds its encoding.
 *
 * @param onPiece called whenever a piece was read
 */
export async function fingerprint(order: ReadOrder, onPiece: () => void = () => {}): Promise<Fingerprint> {
  const sha256 = createHash('sha256');
  const detector = new EncodingDetector();
  let head: Uint8Array | undefined;
  try {
    for await (const piece of pieces(order)) {
      onPiece();
      head ??= Buffer.from(piece.subarray(0, HEAD_BYTES));
      sha256.update(piece);
      detector.write(piece);
    }
  } catch (error) {
    return refusalFor(error);
  }
  const encoding = encodingOf(order.file, head ?? new Uint8Array(), detector);
  return { kind: 'version', version: { ...order.stat, sha256: sha256.digest('hex'), encoding } };
}

function encodingOf(file: string, head: Uint8Array, detector: EncodingDetector): Encoding {
  const encoding = detector.end();
  // Of what is text by its bytes a message alone is a document. Most files are not looked at any more.
  if (encoding !== 'binary' && !/\.eml$/i.test(file)) return encoding;
  return documentKind(file, head) === undefined ? encoding : 'document';
}

function refusalOf(found: Stats, expected: FileStat): Refusal | undefined {
  if (!found.isFile()) return { kind: 'notRegular' };
  return sameStat(fileStat(found), expected) ? undefined : { kind: 'raced' };
}

/** Why reading a file failed. */
export function refusalFor(error: unknown): Refusal {
  if (error instanceof ReadRefused) return error.refusal;
  const code = systemCode(error);
  if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'vanished' };
  // A link, and a socket or a device without a driver.
  if (code === 'ELOOP' || code === 'ENXIO' || code === 'ENODEV') return { kind: 'notRegular' };
  if (code !== undefined && PASSING.has(code)) return { kind: 'busy' };
  return { kind: 'unreadable', code: code ?? messageOf(error) };
}
