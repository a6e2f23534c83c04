import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { type FastifyHttpOptions, type FastifyInstance, fastify } from 'fastify';
import type { Clock } from '../lib/clock.js';
import { systemCode } from '../lib/errors.js';
import { parseUrl } from '../lib/text.js';

export interface WebLimits {
  /** Bytes of the head of a request. */
  readonly head: number;
  /** Milliseconds that the head of a request may take. */
  readonly headMs: number;
  /** Connections at a time; of one address half as many, so that it never shuts out all others. */
  readonly connections: number;
}

/**
 * A server as the status page and the embedded peer need it: a request that is not whole in time
 * ends with its connection, and nobody holds all connections. No route has a schema.
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
    // Without these fastify would load what compiles schemas: a hundred files.
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

/**
 * Answers what is no request, or not a whole one, and ends the connection, also where its client
 * does not.
 */
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

/** How long the answer to a wrong secret takes, in milliseconds. */
const WRONG_MS = 500;

/**
 * Whether a secret is the right one. Who guesses waits for that; who knows it never does, whatever
 * others guess.
 */
export async function isRight(offered: string, right: string, clock: Clock): Promise<boolean> {
  if (isSame(offered, right)) return true;
  await clock.sleep(WRONG_MS);
  return false;
}

/** Compares without telling by its duration how much was right. */
export function isSame(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

/**
 * Whether a page of another site may have caused a request. A browser says so, in its own word or
 * by the origin; a program that is no browser says nothing, and cannot be made to send a request by
 * a page.
 */
export function isForeign({ host, origin, 'sec-fetch-site': site }: IncomingHttpHeaders): boolean {
  // A proxy may ask by another name than the browser does, so the browser's own word goes first.
  if (site !== undefined) return site !== 'same-origin';
  return origin !== undefined && parseUrl(origin)?.host !== host?.toLowerCase();
}
