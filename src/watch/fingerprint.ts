import { createHash } from 'node:crypto';
import { close, constants, fstat, lstat, open, read, type Stats } from 'node:fs';
import { promisify } from 'node:util';
import { EncodingDetector } from '../content/encoding.js';
import { systemCode } from '../lib/errors.js';
import { type FileStat, sameStat, type Version } from '../state/entry.js';

/** Hashing is half again as fast with pieces of this size as with a stream's 64 KiB. */
const PIECE_BYTES = 1_048_576;

/** Codes that say nothing of the file. */
const PASSING = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN', 'EINTR', 'EBUSY', 'ESTALE']);

const files = {
  open: promisify(open),
  close: promisify(close),
  fstat: promisify(fstat),
  lstat: promisify(lstat),
  /** Resolves to the number of bytes read, 0 at the end. */
  read: (fd: number, buffer: Buffer): Promise<number> =>
    new Promise((resolve, reject) => {
      read(fd, buffer, 0, buffer.length, null, (error, bytes) => (error ? reject(error) : resolve(bytes)));
    }),
};

export type Fingerprint =
  | { readonly kind: 'version'; readonly version: Version }
  /** It was written or replaced meanwhile; what was read means nothing. */
  | { readonly kind: 'raced' }
  /** The system lacked something for a moment (open files, memory); to be tried again. */
  | { readonly kind: 'busy' }
  | { readonly kind: 'vanished' }
  /** `code` is the system's: EACCES, EIO. */
  | { readonly kind: 'unreadable'; readonly code: string }
  | { readonly kind: 'notRegular' };

/** The part of `fs.Stats` that shows that a file changed. */
export function fileStat(stats: Stats): FileStat {
  return { size: stats.size, mtimeMs: stats.mtimeMs, ctimeMs: stats.ctimeMs, ino: stats.ino };
}

/**
 * Reads files at rest, one at a time, in constant memory (one piece of 1 MiB, kept for the next file). Several readers
 * read several files at once.
 */
export class FingerprintReader {
  readonly #onPiece: () => void;
  #buffer: Buffer | undefined;

  /** @param onPiece called whenever a piece of a file was read */
  constructor(onPiece: () => void = () => {}) {
    this.#onPiece = onPiece;
  }

  /**
   * Hashes a file and finds its encoding. A symbolic link is not followed, and a pipe or device never waited for.
   *
   * @param expected the stat of the version that was found at rest; anything else there is `raced`
   */
  async read(path: string, expected: FileStat): Promise<Fingerprint> {
    let fd: number;
    try {
      fd = await files.open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch (error) {
      return failure(error);
    }
    try {
      return await this.#readOpen(fd, path, expected);
    } catch (error) {
      return failure(error);
    } finally {
      await files.close(fd);
    }
  }

  async #readOpen(fd: number, path: string, expected: FileStat): Promise<Fingerprint> {
    const before = await files.fstat(fd);
    if (!before.isFile()) return { kind: 'notRegular' };
    if (!sameStat(fileStat(before), expected)) return { kind: 'raced' };
    this.#buffer ??= Buffer.allocUnsafeSlow(PIECE_BYTES);
    const hash = createHash('sha256');
    const encoding = new EncodingDetector();
    let size = 0;
    while (size <= expected.size) {
      const bytes = await files.read(fd, this.#buffer);
      if (bytes === 0) break;
      this.#onPiece();
      const piece = this.#buffer.subarray(0, bytes);
      hash.update(piece);
      encoding.write(piece);
      size += bytes;
      // The size is known, so the read that would only find the end is left out; the stat tells whether it grew.
      if (size === expected.size) break;
    }
    // The same inode at the path, unchanged, is the one that was read: one look tells both.
    const after = await files.lstat(path);
    if (size !== expected.size || !sameStat(fileStat(after), expected)) return { kind: 'raced' };
    return {
      kind: 'version',
      version: { ...expected, sha256: hash.digest('hex'), encoding: encoding.end() },
    };
  }
}

/** What an error of the file system says of a file; any other error is thrown on. */
export function failure(error: unknown): Fingerprint {
  const code = systemCode(error);
  if (code === undefined) throw error;
  if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'vanished' };
  // A link, and a socket or a device without a driver.
  if (code === 'ELOOP' || code === 'ENXIO' || code === 'ENODEV') return { kind: 'notRegular' };
  if (PASSING.has(code)) return { kind: 'busy' };
  return { kind: 'unreadable', code };
}
