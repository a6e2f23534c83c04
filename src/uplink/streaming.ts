import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { systemCode } from '../lib/errors.js';
import { type Encoding, type FileStat, sameStat, type Version } from '../state/entry.js';
import { decoderOf } from './decoding.js';
import type { Packed } from './packer.js';

const CHUNK = 256 * 1024;

/** Thrown while a body is sent when the file under it changed: the request must not be completed. */
class StaleContent extends Error {
  constructor(readonly path: string) {
    super(`${path} changed while it was sent`);
    this.name = 'StaleContent';
  }
}

/**
 * Reads a version that is too large to be held: twice, once to prove that it is that version (its stat before and after the
 * read, and its sha256) and to measure it, and once whenever it is sent. Text that is not UTF-8 is converted. Constant
 * memory whatever the size.
 */
export async function streamed(path: string, version: Version): Promise<Packed> {
  try {
    return await measure(path, version);
  } catch (error) {
    if (error instanceof StaleContent) return { kind: 'stale' };
    const code = systemCode(error);
    if (code === undefined) throw error;
    return code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP'
      ? { kind: 'stale' }
      : { kind: 'unreadable', code };
  }
}

async function measure(path: string, version: Version): Promise<Packed> {
  const raw = createHash('sha256');
  const converted = createHash('sha256');
  let size = 0;
  for await (const chunk of converting(readChunks(path, version, raw), version.encoding)) {
    size += chunk.length;
    converted.update(chunk);
  }
  if (raw.digest('hex') !== version.sha256) return { kind: 'stale' };
  return {
    kind: 'content',
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

function openFile(path: string): Promise<FileHandle> {
  // Without O_NONBLOCK a FIFO that took the file's place would hang the open.
  return open(path, constants.O_RDONLY | constants.O_NONBLOCK);
}

function fileStat(stats: FileStat): FileStat {
  return { size: stats.size, mtimeMs: stats.mtimeMs, ctimeMs: stats.ctimeMs, ino: stats.ino };
}
