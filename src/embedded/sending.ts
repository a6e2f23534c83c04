import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../lib/clock.js';
import type { StreamedBody } from './answer.js';

/** Work between two turns of the loop, in milliseconds. */
const SLICE_MS = 8;

export type Sent = 'whole' | 'gone' | 'stalled';

/**
 * Sends a body while it is made, no faster than it is read. Between chunks everybody else has a turn after `SLICE_MS`. A
 * client that is gone, or that takes nothing for `stallMs`, ends it. The response itself is not ended.
 *
 * @throws what the body throws, and Error where it has another size than it said
 */
export async function sendChunks(
  response: ServerResponse,
  body: StreamedBody,
  stallMs: number,
  clock: Clock,
): Promise<Sent> {
  let sent = 0;
  let turn = clock.monotonic();
  for await (const chunk of body.chunks()) {
    if (response.destroyed) return 'gone';
    const piece = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    sent += piece.length;
    if (body.size !== undefined && sent > body.size) break;
    if (piece.length > 0 && !response.write(piece)) {
      const drained = await drain(response, stallMs, clock);
      if (drained !== 'whole') return drained;
    }
    // What a socket takes at once is drained without a turn of the loop.
    if (clock.monotonic() - turn > SLICE_MS) {
      await nextTurn();
      turn = clock.monotonic();
    }
    if (response.destroyed) return 'gone';
  }
  if (body.size !== undefined && sent !== body.size)
    throw new Error(`the answer has not the ${body.size} bytes that were announced`);
  return 'whole';
}

function drain(response: ServerResponse, stallMs: number, clock: Clock): Promise<Sent> {
  return new Promise((resolve) => {
    const finish = (sent: Sent): void => {
      limit.cancel();
      response.off('drain', drained).off('close', closed);
      resolve(sent);
    };
    const drained = (): void => finish('whole');
    const closed = (): void => finish('gone');
    const limit = clock.after(stallMs, () => finish('stalled'), { background: true });
    response.on('drain', drained).on('close', closed);
    if (response.destroyed) closed();
  });
}
