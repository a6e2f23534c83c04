import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { HEAD_BYTES } from '../content/signatures.js';
import type { Encoding } from '../lib/encodings.js';
import { systemCode } from '../lib/errors.js';
import type { ContentRules } from '../peer/dialect.js';
import { type FileStat, sameStat, type Version } from '../state/entry.js';
import type { Packed } from './packer.js';
import { fileContent, rewritingOf, type Treatment, textContent, wordCounterOf } from './treatment.js';

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
 * read, and its sha256) and to measure it, and once whenever it is sent, treated as its way asks for (see treatment.ts).
 * Constant memory whatever the size.
 */
export async function streamed(path: string, version: Version, rules: ContentRules): Promise<Packed> {
  try {
    return await measure(path, version, rules);
  } catch (error) {
    if (error instanceof StaleContent) return { kind: 'stale' };
    const code = systemCode(error);
    if (code === undefined) throw error;
    return code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP'
      ? { kind: 'stale' }
      : { kind: 'unreadable', code };
  }
}

async function measure(path: string, version: Version, { takesBinary }: ContentRules): Promise<Packed> {
  const { encoding } = version;
  const way = takesBinary ? fileContent(path, encoding, await headOf(path)) : textContent(encoding);
  const { treatment, type } = way;
  const counter = wordCounterOf(way, encoding);
  const raw = createHash('sha256');
  const travelling = createHash('sha256');
  let size = 0;
  for await (const chunk of treatedChunks(readChunks(path, version, raw), treatment, encoding)) {
    size += chunk.length;
    travelling.update(chunk);
    counter?.write(chunk);
  }
  if (raw.digest('hex') !== version.sha256) return { kind: 'stale' };
  const words = counter?.end();
  if (counter !== undefined && words === undefined) return { kind: 'wordless' };
  return {
    kind: 'content',
    text: { size, chunks: () => treatedChunks(readChunks(path, version), treatment, encoding) },
    size,
    digest: travelling.digest('hex'),
    type,
    words,
  };
}

/** The beginning of a file. That it belongs to the right version is found out by reading all of it. */
async function headOf(path: string): Promise<Uint8Array> {
  const handle = await openFile(path);
  try {
    const head = Buffer.alloc(HEAD_BYTES);
    const { bytesRead } = await handle.read(head, 0, HEAD_BYTES, 0);
    return head.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
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

async function* treatedChunks(
  chunks: AsyncIterable<Uint8Array>,
  treatment: Treatment,
  encoding: Encoding,
): AsyncGenerator<Uint8Array> {
  const way = rewritingOf(treatment, encoding);
  if (way === undefined) {
    yield* chunks;
    return;
  }
  for await (const chunk of chunks) {
    const piece = way.piece(chunk);
    if (piece.length > 0) yield piece;
  }
  const rest = way.end();
  if (rest.length > 0) yield rest;
}

function openFile(path: string): Promise<FileHandle> {
  // Without O_NONBLOCK a FIFO that took the file's place would hang the open.
  return open(path, constants.O_RDONLY | constants.O_NONBLOCK);
}

function fileStat(stats: FileStat): FileStat {
  return { size: stats.size, mtimeMs: stats.mtimeMs, ctimeMs: stats.ctimeMs, ino: stats.ino };
}
