import { createHash, hash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { messageOf, systemCode } from '../lib/errors.js';
import type { Text } from '../peer/text.js';
import { type Encoding, type FileStat, sameStat, type Trouble, type Version } from '../state/entry.js';

/** Files up to this many bytes are read whole; larger ones are streamed, twice. */
const WHOLE_LIMIT = 256 * 1024;
const CHUNK = 256 * 1024;

/** A file's text as it travels, in UTF-8. */
export interface Content {
  readonly text: Text;
  /** Bytes of the text. */
  readonly size: number;
  /** sha256 of the text. */
  readonly digest: string;
}

export type ContentResult =
  | { readonly kind: 'content'; readonly content: Content }
  /** The file is not the version it was: somebody should look at it again. */
  | { readonly kind: 'stale' }
  | { readonly kind: 'unreadable'; readonly trouble: Trouble };

/** Thrown while a body is sent when the file under it changed: the request must not be completed. */
class StaleContent extends Error {
  constructor(readonly path: string) {
    super(`${path} changed while it was sent`);
    this.name = 'StaleContent';
  }
}

/**
 * Reads a version for sending and proves that it is that version: same file, size and times before and after the read,
 * and the same sha256. Text that is not UTF-8 is converted. Constant memory whatever the size.
 */
export async function readContent(absolutePath: string, version: Version): Promise<ContentResult> {
  try {
    const content =
      version.size <= WHOLE_LIMIT
        ? await readWhole(absolutePath, version)
        : await measure(absolutePath, version);
    return content === undefined ? { kind: 'stale' } : { kind: 'content', content };
  } catch (error) {
    const code = systemCode(error);
    if (error instanceof StaleContent || code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP') {
      return { kind: 'stale' };
    }
    return {
      kind: 'unreadable',
      trouble: {
        code: 'UNREADABLE',
        message: `The file could not be read: ${messageOf(error)}.`,
        hint: 'Let the user that peersync runs as read it; it is then noticed at the next scan, or at once by `peersync retry`.',
      },
    };
  }
}

async function readWhole(path: string, version: Version): Promise<Content | undefined> {
  const handle = await openFile(path);
  try {
    const bytes = Buffer.allocUnsafe(version.size);
    let length = 0;
    while (length < version.size) {
      const { bytesRead } = await handle.read(bytes, length, version.size - length, length);
      if (bytesRead === 0) return undefined;
      length += bytesRead;
    }
    if (!sameStat(fileStat(await handle.stat()), version)) return undefined;
    if (hash('sha256', bytes, 'hex') !== version.sha256) return undefined;
    if (version.encoding === 'utf-8') return { text: bytes, size: bytes.length, digest: version.sha256 };
    const text = Buffer.from(decoderOf(version.encoding).decode(bytes));
    return { text, size: text.length, digest: hash('sha256', text, 'hex') };
  } finally {
    await handle.close();
  }
}

async function measure(path: string, version: Version): Promise<Content | undefined> {
  const raw = createHash('sha256');
  const converted = createHash('sha256');
  let size = 0;
  for await (const chunk of converting(readChunks(path, version, raw), version.encoding)) {
    size += chunk.length;
    converted.update(chunk);
  }
  if (raw.digest('hex') !== version.sha256) return undefined;
  return {
    text: { size, chunks: () => converting(readChunks(path, version), version.encoding) },
    size,
    digest: converted.digest('hex'),
  };
}

/** The file's bytes; the last chunk is held back until the file has proved to be unchanged. */
async function* readChunks(
  path: string,
  version: Version,
  digest?: ReturnType<typeof createHash>,
): AsyncGenerator<Uint8Array> {
  const handle = await openFile(path);
  try {
    if (!sameStat(fileStat(await handle.stat()), version)) throw new StaleContent(path);
    let held: Uint8Array | undefined;
    for (let position = 0; position < version.size; ) {
      const buffer = Buffer.allocUnsafe(Math.min(CHUNK, version.size - position));
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, position);
      if (bytesRead === 0) throw new StaleContent(path);
      position += bytesRead;
      const chunk = buffer.subarray(0, bytesRead);
      digest?.update(chunk);
      if (held !== undefined) yield held;
      held = chunk;
    }
    if (!sameStat(fileStat(await handle.stat()), version)) throw new StaleContent(path);
    if (held !== undefined) yield held;
  } finally {
    await handle.close();
  }
}

async function* converting(
  chunks: AsyncIterable<Uint8Array>,
  encoding: Encoding,
): AsyncGenerator<Uint8Array> {
  if (encoding === 'utf-8') {
    yield* chunks;
    return;
  }
  const decoder = decoderOf(encoding);
  for await (const chunk of chunks) yield Buffer.from(decoder.decode(chunk, { stream: true }));
  const rest = decoder.decode();
  if (rest.length > 0) yield Buffer.from(rest);
}

interface Decoder {
  decode(chunk?: Uint8Array, options?: { readonly stream?: boolean }): string;
}

function decoderOf(encoding: Encoding): Decoder {
  if (encoding === 'binary') throw new Error('binary content has no text');
  return encoding === 'windows-1252' ? windows1252 : new TextDecoder(encoding);
}

/** What the bytes 0x80 to 0x9F stand for (WHATWG Encoding, index windows-1252). */
const WINDOWS_1252_HIGH = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ';

/** Our own, for Node's TextDecoder takes windows-1252 for ISO 8859-1 in some versions (seen in 20.20). */
const windows1252: Decoder = {
  decode: (chunk = new Uint8Array()) =>
    Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
      .toString('latin1')
      .replace(/[\u0080-\u009f]/g, (c) => WINDOWS_1252_HIGH.charAt(c.charCodeAt(0) - 0x80)),
};

function openFile(path: string): Promise<FileHandle> {
  // Without O_NONBLOCK a FIFO that took the file's place would hang the open.
  return open(path, constants.O_RDONLY | constants.O_NONBLOCK);
}

function fileStat(stats: FileStat): FileStat {
  return { size: stats.size, mtimeMs: stats.mtimeMs, ctimeMs: stats.ctimeMs, ino: stats.ino };
}
