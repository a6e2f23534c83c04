import { once } from 'node:events';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../lib/clock.js';
import { systemCode } from '../lib/errors.js';
import type { Answer, StreamedBody } from './answer.js';
import { CONTENT_SECURITY_POLICY } from './markup.js';

/** An unwanted body up to this size is read to its end, so that the connection can be kept. */
const DRAINED_QUIETLY = 1_048_576;
/** What a stream fails with when its client is gone. */
const GONE = new Set(['ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET', 'EPIPE']);
/** Work between two turns of the loop, in milliseconds. */
const SLICE_MS = 8;

const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'cross-origin-resource-policy': 'same-origin',
  // With no-referrer a browser would not tell us that our own forms are ours.
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const;

/**
 * Sends an answer, without its body for HEAD. Resolves when all is done, also where the client is gone.
 *
 * @param drainMs how long an unwanted body is still read, so that its sender gets to see the answer
 * @throws what a streamed body throws, and Error where it has another size than it said: the answer has to be broken off
 */
export async function sendAnswer(
  request: IncomingMessage,
  response: ServerResponse,
  answer: Answer,
  drainMs: number,
  clock: Clock,
): Promise<void> {
  const body = typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body;
  const size = Buffer.isBuffer(body) ? body.length : body.size;
  const isUnread = hasBody(request) && !request.complete;
  const declared = Number(request.headers['content-length'] ?? Number.POSITIVE_INFINITY);
  const isCut = isUnread && declared > DRAINED_QUIETLY;
  const headers: OutgoingHttpHeaders = {
    ...HEADERS,
    ...answer.headers,
    'content-type': answer.type,
    ...(size === undefined || answer.status === 304 ? {} : { 'content-length': size }),
    ...(isCut ? { connection: 'close' } : {}),
  };
  response.writeHead(answer.status, headers);
  try {
    if (request.method !== 'HEAD' && Buffer.isBuffer(body)) response.write(body);
    else if (request.method !== 'HEAD' && !Buffer.isBuffer(body))
      await pipeline(paced(body, response, clock), response, { end: false });
  } catch (error) {
    if (GONE.has(systemCode(error) ?? '')) return;
    throw error;
  } finally {
    if (!Buffer.isBuffer(body)) await body.end?.();
  }
  // Closing on a client that still sends would reset the connection before it has read the answer.
  if (isCut) await readOn(request, drainMs, clock);
  response.end();
  if (!isUnread) return;
  if (!isCut) await readOn(request, drainMs, clock);
  if (!request.complete) request.destroy();
}

/** A body as it is made. Between chunks everybody else has a turn after `SLICE_MS`: a socket may take all of it at once. */
async function* paced(
  body: StreamedBody,
  response: ServerResponse,
  clock: Clock,
): AsyncGenerator<Uint8Array> {
  let sent = 0;
  let turn = clock.now();
  for await (const chunk of body.chunks()) {
    const piece = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    sent += piece.length;
    if (response.destroyed || (body.size !== undefined && sent > body.size)) break;
    if (piece.length > 0) yield piece;
    if (clock.now() - turn <= SLICE_MS) continue;
    await nextTurn();
    turn = clock.now();
  }
  if (body.size !== undefined && sent !== body.size)
    throw new Error(`the answer has not the ${body.size} bytes that were announced`);
}

async function readOn(request: IncomingMessage, ms: number, clock: Clock): Promise<void> {
  const over = new AbortController();
  const { signal } = over;
  request.once('end', () => over.abort()).resume();
  // Once its answer is ended, a request is not told any more that its connection is gone.
  const closed = once(request.socket, 'close', { signal }).catch(() => {});
  if (!request.socket.destroyed) await Promise.race([closed, clock.sleep(ms, signal)]);
  over.abort();
}

export function hasBody(request: IncomingMessage): boolean {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
  return coding !== undefined || (length !== undefined && length !== '0');
}
