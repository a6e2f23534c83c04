import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { Listen } from '../config/listen.js';
import type { Logger } from '../lib/logger.js';
import { type ApiParts, apiRoutes } from './api-routes.js';
import type { Asset } from './assets.js';
import { Attempts } from './attempts.js';
import { answerOf, PageError } from './errors.js';
import { Guard } from './guard.js';
import { type MonitorParts, monitorRoutes } from './monitor-routes.js';
import { pageRoutes } from './page-routes.js';
import { Tokens } from './tokens.js';

export interface AppParts extends ApiParts, MonitorParts {
  readonly assets: ReadonlyMap<string, Asset>;
  /** Undefined where everybody who reaches the page is let in. */
  readonly token: string | undefined;
  /** Where the server really listens, once it does. */
  readonly address: () => Listen;
  readonly log: Logger;
}

const LARGEST_BODY = 64 * 1024;
/** A path of 4 KiB, each byte of it escaped, and some more. */
const LARGEST_HEAD = 32 * 1024;
const LONGEST_URL = 16 * 1024;
/** How long a request may take to arrive, in ms. */
const HEAD_MS = 10_000;
const REQUEST_MS = 30_000;
const IDLE_MS = 15_000;
const MOST_CONNECTIONS = 256;

/** Everything is the page's own; styles that a script sets are no styles of the document. */
const HEADERS = {
  'content-security-policy':
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
} as const;

function noSchemas(): never {
  throw new Error('a route of the page has a schema, and nothing that compiles it is loaded');
}

/** The server of the status page, with all its routes; it does not listen yet. */
export function pageApp(parts: AppParts): FastifyInstance {
  const { log, clock, token, address } = parts;
  const tokens = token === undefined ? undefined : new Tokens(token);
  const guard = new Guard({ tokens, attempts: new Attempts(clock, log), clock, address });
  const app = fastify({
    bodyLimit: LARGEST_BODY,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: IDLE_MS,
    forceCloseConnections: true,
    http: { maxHeaderSize: LARGEST_HEAD, headersTimeout: HEAD_MS },
    // No route has a schema. Without these fastify would load what compiles some: a hundred files.
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    // What fastify refuses before it looks for a route passes no hook.
    frameworkErrors: (error, request, reply) => void sendError(error, request, reply.headers(HEADERS), log),
    // What is not HTTP at all gets no words, and is no event for the log.
    clientErrorHandler: (_error, socket) => {
      if (socket.writable)
        socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
      else socket.destroy();
    },
  });
  app.server.maxConnections = MOST_CONNECTIONS;
  app.removeContentTypeParser('text/plain');
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(HEADERS);
    log.debug(
      { method: request.method, route: request.routeOptions.url, address: request.ip },
      'page request',
    );
    if (request.url.length > LONGEST_URL) throw new PageError('TOO_LARGE');
  });
  pageRoutes(app, { ...parts, guard, tokens });
  app.addHook('onRequest', async (request) => {
    const { method, headers, ip, routeOptions } = request;
    guard.check({ method, headers, address: ip, path: routeOptions.url ?? pathOf(request.url) });
  });
  apiRoutes(app, parts);
  monitorRoutes(app, parts);
  app.setNotFoundHandler(async () => {
    throw new PageError('NOT_FOUND');
  });
  app.setErrorHandler((error, request, reply) => void sendError(error, request, reply, log));
  return app;
}

function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply, log: Logger): FastifyReply {
  const { status, body } = answerOf(error);
  const { code } = body.error;
  if (code === 'FAILED')
    log.error({ err: error, route: request.routeOptions.url }, 'The status page failed.');
  // A browser that comes to the page without a session is led to where it gets one.
  const isPage = request.routeOptions.url === '/' && code === 'TOKEN_NEEDED';
  if (isPage) return reply.redirect('/sign-in', 303);
  if (status === 401) reply.header('www-authenticate', 'Bearer realm="peersync"');
  if (status === 429 || status === 503) reply.header('retry-after', '30');
  return reply.code(status).type('application/json; charset=utf-8').send(body);
}

function pathOf(url: string): string {
  return url.split('?', 1)[0] ?? '';
}
