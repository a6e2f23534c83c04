import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../lib/clock.js';
import type { Answer, StreamedBody } from './answer.js';
import { CONTENT_SECURITY_POLICY } from './markup.js';

/** All in milliseconds. */
export interface SendTimeouts {
  /** How long an unwanted body is still read, so that its sender gets to see the answer. */
  readonly drain: number;
  /** How long a client may leave a streamed answer unread. */
  readonly stall: number;
}

/** An unwanted body up to this size is read to its end, so that the connection can be kept. */
const DRAINED_QUIETLY = 1_048_576;
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
 * Sends an answer, without its body for HEAD. What cannot be sent whole is broken off. Resolves when all is done.
 *
 * @throws what a streamed body throws
 */
export async function sendAnswer(
  request: IncomingMessage,
  response: ServerResponse,
  answer: Answer,
  timeouts: SendTimeouts,
  clock: Clock,
): Promise<void> {
  const body = typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body;
  const size = Buffer.isBuffer(body) ? body.length : body.size;
  const unread = hasBody(request) && !request.complete;
  const declared = Number(request.headers['content-length'] ?? Number.POSITIVE_INFINITY);
  const drain = unread && declared > DRAINED_QUIETLY;
  const headers: OutgoingHttpHeaders = {
    ...HEADERS,
    ...answer.headers,
    'content-type': answer.type,
    ...(size === undefined || answer.status === 304 ? {} : { 'content-length': size }),
    ...(drain ? { connection: 'close' } : {}),
  };
  response.writeHead(answer.status, headers);
  const isWhole = await sendBody(request, response, body, timeouts.stall, clock);
  if (!isWhole) {
    response.destroy();
    return;
  }
  if (!drain) {
    response.end();
    if (!unread) return;
    await readOn(request, timeouts.drain, clock);
    if (!request.complete) request.destroy();
    return;
  }
  // Closing on a client that still sends would reset the connection before it has read the answer.
  await readOn(request, timeouts.drain, clock);
  response.end();
  request.destroy();
}

/** Whether all of it went out, or all that HEAD asks for. */
async function sendBody(
  request: IncomingMessage,
  response: ServerResponse,
  body: Buffer | StreamedBody,
  stallMs: number,
  clock: Clock,
): Promise<boolean> {
  if (Buffer.isBuffer(body)) {
    if (request.method !== 'HEAD') response.write(body);
    return true;
  }
  try {
    if (request.method === 'HEAD') return true;
    return (await sendChunks(response, body, stallMs, clock)) === 'whole';
  } finally {
    await body.end?.();
  }
}

type Sent = 'whole' | 'gone' | 'stalled';

/**
 * Sends a body while it is made, no faster than it is read. Between chunks everybody else has a turn after `SLICE_MS`. A
 * client that is gone, or that takes nothing for `stallMs`, ends it. The response itself is not ended.
 *
 * @throws what the body throws, and Error where it has another size than it said
 */
async function sendChunks(
  response: ServerResponse,
  body: StreamedBody,
  stallMs: number,
  clock: Clock,
): Promise<Sent> {
  let sent = 0;
  let turn = clock.now();
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
    if (clock.now() - turn > SLICE_MS) {
      await nextTurn();
      turn = clock.now();
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

function readOn(request: IncomingMessage, ms: number, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const limit = clock.after(ms, () => done(), { background: true });
    const done = (): void => {
      limit.cancel();
      // The connection may live on and carry other requests.
      request.socket.off('close', done);
      resolve();
    };
    // Once its answer is ended, a request is not told any more that its connection is gone.
    request.socket.on('close', done);
    request.on('end', done).on('close', done).on('error', done).resume();
    if (request.socket.destroyed) done();
  });
}

export function hasBody(request: IncomingMessage): boolean {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
  return coding !== undefined || (length !== undefined && length !== '0');
}
