import { createHash, hash } from 'node:crypto';
import { closeSync, fstatSync, lstatSync, openSync, readSync, realpathSync } from 'node:fs';
import { lstat, open, realpath } from 'node:fs/promises';
import { READ_FLAGS } from '../lib/descriptor.js';
import type { Encoding, FileStat } from '../lib/file.js';
import { EncodingDetector } from './encoding.js';
import {
  checkOpened,
  checkStat,
  type ReadOrder,
  ReadRefused,
  type Refusal,
  refusalFor,
  within,
} from './open.js';
import { holdsPrivateKey, KEY_BYTES } from './private-key.js';
import { documentKind } from './signatures.js';

/**
 * The one reader of files that belong to the user.
 *
 * A file is opened without following a link and without waiting for a pipe or device. The open file
 * has to be the one at the path that was meant (see open.ts), and its stat the expected one. It is
 * read, and its stat is compared again. What raced a write or a replacement means nothing and is
 * not used. `readWhole` is for a small file in a worker, `pieces` for a file of any size;
 * `fingerprintNow` and `fingerprint` hash what they read.
 */

/** Hashing is half again as fast with pieces of this size as with a stream's 64 KiB. */
const PIECE_BYTES = 1_048_576;
/** What a file contained. */
export type Fingerprint =
  | {
      readonly kind: 'version';
      readonly version: FileStat & { readonly sha256: string; readonly encoding: Encoding };
      readonly holdsPrivateKey: boolean;
    }
  | Refusal;

/** Memory for one file; used again for the next. */
let scratch = Buffer.alloc(0);

/**
 * Reads a file that fits into memory, synchronously: for a worker. The bytes are good until the
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
      // The same inode at the path, unchanged, is the one that was read: one look shows both.
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
 * The bytes of a file of any size, in pieces that are good until the next one is asked for. The
 * last one comes only when the file has proved to be unchanged: who has all of them has one
 * version.
 *
 * @throws what `refusalFor` tells the meaning of
 */
export async function* pieces(
  { file, stat, linksWithin }: ReadOrder,
  pieceBytes = PIECE_BYTES,
): AsyncGenerator<Buffer, void> {
  const path = linksWithin === undefined ? file : within(linksWithin, await realpath(file));
  const handle = await open(path, READ_FLAGS);
  try {
    checkOpened(handle.fd, path, await handle.stat(), stat);
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
    checkStat(await lstat(path), stat);
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
    const version = { ...order.stat, sha256: hash('sha256', bytes, 'hex'), encoding };
    return { kind: 'version', version, holdsPrivateKey: holdsPrivateKey(bytes) };
  } catch (error) {
    return refusalFor(error);
  }
}

/**
 * Hashes a file of any size and finds its encoding.
 *
 * @param onPiece called whenever a piece was read
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
  return { kind: 'version', version, holdsPrivateKey: holdsPrivateKey(head) };
}

function encodingOf(file: string, head: Uint8Array, detector: EncodingDetector): Encoding {
  const encoding = detector.end();
  // Of what is text by its bytes a message alone is a document. Most files are not looked at any
  // more.
  if (encoding !== 'binary' && !/\.eml$/i.test(file)) return encoding;
  return documentKind(file, head) === undefined ? encoding : 'document';
}
