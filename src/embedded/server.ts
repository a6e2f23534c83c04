import { type IncomingHttpHeaders, type Server, STATUS_CODES } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { EMBEDDED_HEADER, VERSION } from '../lib/process.js';
import { Yielder } from '../lib/slices.js';
import { listenInPrivate, type SocketPath } from '../lib/socket.js';
import { escapeMarkup } from '../web/markup.js';
import { isForeign, webServer } from '../web/server.js';
import { type Administrator, admit } from './access.js';
import type { PeerDaemon } from './daemon-link.js';
import { type Database, isDiskFailure } from './database.js';
import type { DocumentStore } from './documents.js';
import { type Form, type FormLimits, type FormReader, Refusal, SMALL } from './form.js';
import type { Indexer } from './indexer.js';
import type { Site } from './markup.js';
import type { TableStore } from './table-store.js';

/** The dependencies of the handlers. */
export interface PeerDeps {
  readonly database: Database;
  readonly documents: DocumentStore;
  readonly indexer: Indexer;
  readonly tables: TableStore;
  readonly daemon: PeerDaemon;
  readonly site: Site;
  readonly administrator: Administrator;
  readonly forms: FormReader;
  readonly clock: Clock;
  readonly log: Logger;
  /** The largest request body, in bytes. */
  readonly maxBody: number;
}

export interface ServerOptions {
  /** The directory of a socket for programs of this user; no socket if it is undefined. */
  readonly dir?: string;
  /** The port on loopback; 0 takes any free one. */
  readonly port: number;
  /** Whether the search page and the documents require the administrator as well. @default false */
  readonly requireAuthEverywhere?: boolean;
  readonly timeouts?: Partial<ServerTimeouts>;
}

/** All in ms. */
export interface ServerTimeouts {
  /** The limit for the head of a request, and for a small body. */
  readonly headers: number;
  /**
   * The limit for a pause while a body is received or an answer is sent. An upload has no other
   * limit.
   */
  readonly idle: number;
  /**
   * The limit for discarding the rest of a body after its answer, so that the client reads the
   * answer.
   */
  readonly drain: number;
  /** The limit for answers under way when the server closes. */
  readonly close: number;
}

export interface PeerServer {
  readonly url: string;
  /**
   * A socket for programs of this user, whose connections no other user can occupy; undefined if
   * none could be created.
   */
  readonly socketPath: string | undefined;
  /** Refuses connections, finishes the answers under way, and closes the remaining connections. */
  close(): Promise<void>;
}

/**
 * Answers one address in both forms. A body that is made while it is sent comes in pieces, each
 * made in about 10 ms at most.
 */
export type Handler = (context: Context) => Body | Promise<Body>;
export type Body = string | Readable | Iterable<string> | AsyncIterable<string>;
/**
 * The form of an answer: chosen by the extension of the address, or by Accept if a page is
 * requested as JSON.
 */
export type AnswerForm = 'html' | 'json';

const HOST = '127.0.0.1';
/**
 * The names of this peer. A page of another site can make its own name resolve to this machine (DNS
 * rebinding). Its requests then have that name as their host.
 */
const OWN_HOST = /^(localhost|127\.0\.0\.1|\[::1\])(:\d*)?$/i;
const TIMEOUTS: ServerTimeouts = { headers: 15_000, idle: 120_000, drain: 10_000, close: 3_000 };
const KEEP_ALIVE_MS = 30_000;
const MAX_CONNECTIONS = 512;
/**
 * The longest head of a request, in bytes. The longest URL parameter, encoded once more, fits into
 * it.
 */
const MAX_HEAD_BYTES = 65_536;
const CHUNK = 65_536;
const METHODS = ['GET', 'HEAD', 'POST'];
const TYPES = {
  html: 'text/html; charset=utf-8',
  json: 'application/json; charset=utf-8',
} as const;

const HEADERS = {
  'cache-control': 'no-store',
  'cross-origin-resource-policy': 'same-origin',
  [EMBEDDED_HEADER]: VERSION,
  // With no-referrer a browser would send "Origin: null" with our own forms.
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const;

/** A request for a handler. */
export class Context {
  readonly as: AnswerForm;

  constructor(
    readonly request: FastifyRequest,
    readonly reply: FastifyReply,
    readonly deps: PeerDeps,
    /** The limit for a small body, in ms. */
    private readonly mostMs: number,
  ) {
    this.as = formOf(request);
  }

  /** The address of this peer as the client named it, without a slash at the end. */
  get baseUrl(): string {
    return `http://${this.request.headers.host}`;
  }

  get isGone(): boolean {
    return this.reply.raw.closed;
  }

  /** Returns a record in the requested form. A page shows the markup `more` below it. */
  record(title: string, record: object, more = ''): string {
    if (this.as === 'json') return `${JSON.stringify(record, null, 2)}\n`;
    return this.deps.site.record(title, record, more);
  }

  /**
   * Reads the parameters of query and body. A small body that does not arrive ends the connection.
   *
   * @throws Refusal 400, 413, 415
   */
  async form(limits: FormLimits = SMALL): Promise<Form> {
    const { raw } = this.request;
    const late =
      limits === SMALL ? this.deps.clock.after(this.mostMs, () => raw.destroy()) : undefined;
    try {
      return await this.deps.forms.read(raw, this.reply.raw, limits);
    } finally {
      late?.cancel();
    }
  }

  /**
   * Called before a handler does something that only the administrator may do.
   *
   * @throws Refusal 401
   */
  requireAdministrator(): Promise<void> {
    return admit(this.request.headers, this.deps.administrator, this.deps.clock);
  }

  /**
   * Called before a handler changes something.
   *
   * @throws Refusal 403, 405
   */
  requireChange(): void {
    const { method, headers } = this.request;
    if (method === 'HEAD') throw new Refusal(405, 'HEAD changes nothing.', { allow: 'GET, POST' });
    if (this.#isForeign) throw new Refusal(403, 'A page of another site may not change this peer.');
    // A link in a message or a document comes from no site either. The browser sends the password
    // that it remembers.
    if (method === 'GET' && isOfBrowser(headers))
      throw new Refusal(
        405,
        'A browser changes nothing by an address or a link: use the forms of the page /Tables_p.html, or send the request by POST or from a program that is no browser.',
        { allow: 'POST' },
      );
  }

  /**
   * Called before a handler answers what no page of another site may load or lead to.
   *
   * @throws Refusal 403
   */
  requireOwnSite(): void {
    if (this.#isForeign)
      throw new Refusal(403, 'A page of another site may not open this. Open it from the results.');
  }

  /** Whether a page of another site may have caused the request. */
  get #isForeign(): boolean {
    const { 'sec-fetch-site': site, ...others } = this.request.headers;
    // An address that was typed comes from no site.
    return isForeign(site === 'none' ? others : { ...others, 'sec-fetch-site': site });
  }
}

/**
 * Opens the HTTP server of the peer on loopback, and on a socket in `dir`. It checks access and
 * limits. The handlers do the rest.
 *
 * @throws the system's error if it cannot listen on loopback
 */
export async function openServer(
  handlers: Readonly<Record<string, Handler>>,
  { dir, port, requireAuthEverywhere = false, timeouts: given }: ServerOptions,
  deps: PeerDeps,
): Promise<PeerServer> {
  const { administrator, clock, log, site } = deps;
  const head = { ...HEADERS, 'content-security-policy': site.contentSecurityPolicy };
  const fail = (error: unknown, request: FastifyRequest, reply: FastifyReply) =>
    sendError(error, request, reply.headers(head), deps);
  const timeouts = { ...TIMEOUTS, ...given };
  const limits = { head: MAX_HEAD_BYTES, headMs: timeouts.headers, connections: MAX_CONNECTIONS };
  const app = webServer(limits, {
    connectionTimeout: timeouts.idle,
    keepAliveTimeout: Math.min(KEEP_ALIVE_MS, timeouts.idle),
    routerOptions: { querystringParser: () => ({}) },
    frameworkErrors: (error, request, reply) => void fail(error, request, reply),
  });
  // Handlers read the body themselves, each with its own limits.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  app.setErrorHandler(fail);
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(head);
    if (!OWN_HOST.test(request.headers.host ?? ''))
      throw new Refusal(403, 'The Host header names another machine than this peer.');
    const path = request.routeOptions.url ?? request.url;
    if (path.includes('_p') || requireAuthEverywhere)
      await admit(request.headers, administrator, clock);
  });
  app.addHook('onResponse', async ({ raw }) => {
    const cut = () => raw.complete || raw.destroy();
    if (!raw.complete) clock.after(timeouts.drain, cut, { background: true });
    // A connection that was busy when the server began to close is not closed by Fastify.
    if (!app.server.listening) setImmediate(() => app.server.closeIdleConnections());
  });
  app.setNotFoundHandler(() => {
    throw new Refusal(404, 'This peer has no page at this address.');
  });
  for (const [path, handle] of Object.entries(handlers))
    app.all(path, async (request, reply) => {
      if (!METHODS.includes(request.method))
        throw new Refusal(405, `This page answers ${METHODS.join(', ')}.`, {
          allow: METHODS.join(', '),
        });
      const context = new Context(request, reply, deps, timeouts.headers);
      return send(await handle(context), context);
    });
  const url = await app.listen({ host: HOST, port });
  app.server.on('error', (error) => log.error({ err: messageOf(error) }, 'The listener failed'));
  const local =
    dir === undefined ? undefined : await listenLocally(app.server, join(dir, 'local'), log);
  return {
    url,
    socketPath: local?.path,
    close: async () => {
      const cut = clock.after(timeouts.close, () => app.server.closeAllConnections());
      await Promise.all([app.close(), local?.close()]);
      cut.cancel();
    },
  };
}

/**
 * Makes the server accept connections on a socket in `directory` as well. All programs of the
 * machine share the connections of its port.
 */
async function listenLocally(
  server: Server,
  directory: string,
  log: Logger,
): Promise<SocketPath | undefined> {
  const listener = createServer({ allowHalfOpen: true }, (socket) =>
    server.emit('connection', socket),
  );
  try {
    const { path, close } = await listenInPrivate(listener, directory, 'socket');
    const closed = () => new Promise((resolve) => listener.close(resolve));
    return { path, close: () => closed().then(close) };
  } catch (error) {
    const why = messageOf(error);
    log.warn(
      { directory, err: why },
      `No socket can be made in ${directory} (${why}): peersync asks its own peer by the port, whose connections other accounts of this machine can hold`,
    );
    return undefined;
  }
}

function send(body: Body, { request, reply, as, deps }: Context): FastifyReply {
  if (!reply.hasHeader('content-type')) reply.type(TYPES[as]);
  if (typeof body === 'string') return reply.send(body);
  const isHead = request.method === 'HEAD';
  if (!(body instanceof Readable))
    return reply.send(isHead ? '' : Readable.from(paced(body, reply, deps), { objectMode: false }));
  if (!isHead) return reply.send(body);
  body.destroy();
  return reply.send(null);
}

/**
 * Yields a body in chunks of about 64 KB. The event loop runs between pieces, because a socket may
 * take all of them at once.
 */
async function* paced(
  body: Iterable<string> | AsyncIterable<string>,
  { raw, request: { url } }: FastifyReply,
  { clock, log }: PeerDeps,
): AsyncGenerator<string> {
  const yielder = new Yielder(clock);
  let chunk = '';
  try {
    for await (const piece of body) {
      chunk += piece;
      if (chunk.length < CHUNK && !yielder.isDue) continue;
      if (chunk !== '') yield chunk;
      chunk = '';
      if (raw.closed) return;
      await yielder.turn();
    }
    if (chunk !== '') yield chunk;
  } catch (error) {
    log.error({ url, err: messageOf(error) }, `An answer broke off: ${messageOf(error)}`);
    throw error;
  }
}

/**
 * Whether a browser sent the request. Browsers always send these headers, and no page can remove
 * them.
 */
function isOfBrowser(headers: IncomingHttpHeaders): boolean {
  return Object.keys(headers).some((name) => name.startsWith('sec-fetch-'));
}

function formOf({ url, headers }: FastifyRequest): AnswerForm {
  return /^[^?]*\.json(\?|$)/.test(url) || prefersJson(headers.accept) ? 'json' : 'html';
}

/** Whether an Accept header names JSON, and not HTML before it. */
export function prefersJson(accept = ''): boolean {
  const [json, html] = ['application/json', 'text/html'].map((type) =>
    accept.toLowerCase().indexOf(type),
  );
  return json !== -1 && (html === -1 || Number(json) < Number(html));
}

/** The headings of refusals that people meet. */
const HEADINGS: Readonly<Record<number, string>> = {
  401: 'For the administrator',
  404: 'Nothing is here',
};

function sendError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  { log, site }: PeerDeps,
): FastifyReply {
  const { status, message, headers } = toRefusal(error, request, log);
  const name = STATUS_CODES[status] ?? 'Error';
  const as = formOf(request);
  reply
    .code(status)
    .headers({ ...headers })
    .type(TYPES[as]);
  if (as === 'json')
    return reply.send(`${JSON.stringify({ error: name, status, message }, null, 2)}\n`);
  const title = HEADINGS[status] ?? name;
  const top = `<h1>${title}</h1>\n<p class="hint">Error ${status}</p>`;
  const home = '<p><a href="/">Go to the search page</a></p>';
  return reply.send(
    site.page({ title, top, body: `<p class="empty">${escapeMarkup(message)}</p>\n${home}` }),
  );
}

function toRefusal(error: unknown, { raw, url }: FastifyRequest, log: Logger): Refusal {
  if (error instanceof Refusal) return error;
  const why = messageOf(error);
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 500;
  if (status < 500) return new Refusal(status, why);
  // The client is gone.
  if (raw.destroyed && !raw.complete) return new Refusal(400, why);
  log.error({ url, err: why }, `A request to ${url.replace(/\?.*/s, '')} failed: ${why}`);
  if (isDiskFailure(error))
    return new Refusal(
      507,
      'The disk of the peer is full or failing; not all of the request was carried out.',
    );
  return new Refusal(500, 'The peer failed on this request; its log says why.');
}
