import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { type FastifyHttpOptions, type FastifyInstance, fastify } from 'fastify';
import type { Clock } from '../lib/clock.js';
import { systemCode } from '../lib/errors.js';
import { parseUrl } from '../lib/text.js';

export interface WebLimits {
  /** The longest head of a request, in bytes. */
  readonly head: number;
  /** The limit for the head of a request, in ms. */
  readonly headMs: number;
  /**
   * The most connections. One address gets half of them at most, so that it never shuts out all
   * others.
   */
  readonly connections: number;
}

/**
 * Returns a server for the status page or the embedded peer. A request that does not arrive in time
 * ends with its connection, and no address can occupy all connections. Routes have no schemas.
 */
export function webServer<S extends FastifyHttpOptions<FastifyInstance['server']>>(
  { head, headMs, connections }: WebLimits,
  options: S,
): FastifyInstance {
  const app = fastify({
    ...options,
    http: {
      maxHeaderSize: head,
      headersTimeout: headMs,
      connectionsCheckingInterval: Math.min(5_000, headMs / 2),
    },
    // Otherwise Fastify loads its compilers of schemas: a hundred files.
    schemaController: {
      compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas },
    },
    clientErrorHandler: (error, socket) => answerBroken(error, socket as Socket),
  });
  app.server.maxConnections = connections;
  const held = new Map<string, number>();
  app.server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? '';
    const count = held.get(address) ?? 0;
    if (count >= connections / 2) return void socket.destroy();
    held.set(address, count + 1);
    socket.once('close', () => {
      const left = (held.get(address) ?? 1) - 1;
      if (left === 0) held.delete(address);
      else held.set(address, left);
    });
  });
  return app;
}

function noSchemas(): never {
  throw new Error('a route has a schema, and nothing that compiles it is loaded');
}

/** Answers something that is not a complete request, and closes the connection. */
function answerBroken(error: unknown, socket: Socket): void {
  const statuses: Readonly<Record<string, string>> = {
    ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
    HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  };
  const status = statuses[systemCode(error) ?? ''] ?? '400 Bad Request';
  if (socket.writable)
    socket.write(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  socket.destroySoon();
}

/** The delay of the answer to a wrong secret, in ms. */
const WRONG_MS = 500;

/**
 * Whether a secret is right. A wrong one is answered late, which slows down guessing. A right one
 * is never delayed, whatever others guess.
 */
export async function isRight(offered: string, right: string, clock: Clock): Promise<boolean> {
  if (isSame(offered, right)) return true;
  await clock.sleep(WRONG_MS);
  return false;
}

/** Compares in constant time, which shows nothing about the secret. */
export function isSame(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

/**
 * Whether a page of another site may have caused a request. A browser says so, by `sec-fetch-site`
 * or by the origin. A program that is not a browser sends neither, and no page can make it send a
 * request.
 */
export function isForeign({ host, origin, 'sec-fetch-site': site }: IncomingHttpHeaders): boolean {
  // A proxy may use another name than the browser, so the browser's own header takes precedence.
  if (site !== undefined) return site !== 'same-origin';
  return origin !== undefined && parseUrl(origin)?.host !== host?.toLowerCase();
}
