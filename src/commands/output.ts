import { once } from 'node:events';
import type { Writable } from 'node:stream';

/** Writes pieces as fast as the reader takes them, so that memory does not grow with what is written. */
export async function writeAll(out: Writable, pieces: AsyncIterable<string | Uint8Array>): Promise<void> {
  for await (const piece of pieces) if (!out.write(piece)) await once(out, 'drain');
}
