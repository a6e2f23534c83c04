import type { FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { escapeInvisible } from '../lib/text.js';

/** An open file, or a part of it, as the body of an answer. */
export interface FileBody {
  readonly handle: FileHandle;
  /** The first byte that is sent. */
  readonly start: number;
  /** The number of bytes that are sent. */
  readonly length: number;
  readonly chunkBytes: number;
  /** Whether the open file is still the version that the head of the answer describes. */
  readonly isUnchanged: () => Promise<boolean>;
  /**
   * Called before and after the time in which the client does not take the next chunk. The wait for
   * the last one ends when the stream is closed.
   */
  readonly onWait?: (isWaiting: boolean) => void;
}

/**
 * Returns a stream of the file, which closes the file when it ends, fails, or is destroyed. It
 * fails if the file changes while it is read, and the server then resets the connection: the client
 * has less than the promised length.
 */
export function streamOf(body: FileBody): Readable {
  const chunks = Readable.from(read(body), {
    objectMode: false,
    highWaterMark: body.chunkBytes,
  });
  return chunks.once('close', () => void body.handle.close());
}

/**
 * Reads a file. The last chunk is held back until the file is known to be unchanged, so a client
 * never takes a mixture of two versions for the file.
 *
 * @throws Error if the file changes while it is read
 */
async function* read(body: FileBody): AsyncGenerator<Buffer> {
  const { chunkBytes, handle, isUnchanged, length, onWait, start } = body;
  let last: Buffer | undefined;
  for (let done = 0; done < length; ) {
    const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, length - done));
    const { bytesRead } = await handle.read(chunk, 0, chunk.length, start + done);
    if (bytesRead === 0) throw new Error('the file became shorter while it was read');
    done += bytesRead;
    if (last !== undefined) {
      onWait?.(true);
      yield last;
      onWait?.(false);
    }
    last = chunk.subarray(0, bytesRead);
  }
  if (!(await isUnchanged())) throw new Error('the file changed while it was read');
  if (last === undefined) return;
  onWait?.(true);
  yield last;
}

/**
 * Returns the value of Content-Disposition (RFC 6266). Invisible characters of the name, which
 * could show it in another order, are written out.
 */
export function disposition(kind: 'inline' | 'attachment', name: string): string {
  const visible = escapeInvisible(name);
  const ascii = visible.replace(/[^\w .()-]/g, '_');
  const encoded = encodeURIComponent(visible).replace(
    /['()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16)}`,
  );
  return `${kind}; filename="${ascii}"; filename*=UTF-8''${encoded}`;
}
