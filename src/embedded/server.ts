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
import { type Database, isDiskFailure } from './database.js';
import type { DocumentStore } from './documents.js';
import { type Form, type FormLimits, type FormReader, Refusal, SMALL } from './form.js';
import type { Indexer } from './indexer.js';
import type { Site } from './markup.js';
import type { TableStore } from './table-store.js';

/** What the handlers work with. */
export interface PeerDeps {
  readonly database: Database;
  readonly documents: DocumentStore;
  readonly indexer: Indexer;
  readonly tables: TableStore;
  readonly site: Site;
  readonly administrator: Administrator;
  readonly forms: FormReader;
  readonly clock: Clock;
  readonly log: Logger;
  /** Bytes of the largest request body. */
  readonly maxBody: number;
}

export interface ServerOptions {
  /** Where it has a socket, too, for programs of this user; without it there is none. */
  readonly dir?: string;
  /** On loopback; 0 takes any free port. */
  readonly port: number;
  /**
   * Whether the search page and document information need the administrator as well. @default false
   */
  readonly requireAuthEverywhere?: boolean;
  readonly timeouts?: Partial<ServerTimeouts>;
}

/** All in milliseconds. */
export interface ServerTimeouts {
  /** For the head of a request, and for a small body. */
  readonly headers: number;
  /**
   * How long nothing may come or go while a body is received or an answer is sent: an upload is
   * limited in idleness only.
   */
  readonly idle: number;
  /**
   * How long the rest of a body is let go by after its answer, so that its sender gets to see that.
   */
  readonly drain: number;
  /** How long answers under way may take when the server closes. */
  readonly close: number;
}

export interface PeerServer {
  readonly url: string;
  /**
   * A socket for programs of this user, whose connections nobody else can hold; undefined where
   * there can be none.
   */
  readonly socketPath: string | undefined;
  /** Takes no more connections, lets answers under way end, and cuts what remains. */
  close(): Promise<void>;
}

/**
 * Answers one address in both forms; a body that is made while it is sent comes in pieces, each
 * made in some 10 ms at most.
 */
export type Handler = (context: Context) => Body | Promise<Body>;
export type Body = string | Readable | Iterable<string> | AsyncIterable<string>;
/** Chosen by the end of the address, or by Accept where a page is asked for as JSON. */
export type AnswerForm = 'html' | 'json';

const HOST = '127.0.0.1';
/**
 * A page of another site can make its own name resolve to this machine (DNS rebinding); its
 * requests then bear that name.
 */
const OWN_HOST = /^(localhost|127\.0\.0\.1|\[::1\])(:\d*)?$/i;
const TIMEOUTS: ServerTimeouts = { headers: 15_000, idle: 120_000, drain: 10_000, close: 3_000 };
const KEEP_ALIVE_MS = 30_000;
const MOST_CONNECTIONS = 512;
/**
 * Bytes of the head of a request: a URL parameter as long as allowed, encoded once more, fits into
 * the request line.
 */
const LONGEST_HEAD = 65_536;
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

/** One request, as its handler sees it. */
export class Context {
  readonly as: AnswerForm;

  constructor(
    readonly request: FastifyRequest,
    readonly reply: FastifyReply,
    readonly deps: PeerDeps,
    /** Milliseconds that a small body may take in all. */
    private readonly mostMs: number,
  ) {
    this.as = formOf(request);
  }

  /** The address of this peer, as the client called it, without a slash at the end. */
  get baseUrl(): string {
    return `http://${this.request.headers.host}`;
  }

  get isGone(): boolean {
    return this.reply.raw.closed;
  }

  /** The same record in either form; the page shows `more` markup below it. */
  record(title: string, record: object, more = ''): string {
    if (this.as === 'json') return `${JSON.stringify(record, null, 2)}\n`;
    return this.deps.site.record(title, record, more);
  }

  /**
   * The parameters of query and body. Nobody holds a connection for long by a small body that does
   * not come. @throws Refusal 400, 413, 415
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

  /** To be called before a handler does what only the administrator may. @throws Refusal 401 */
  requireAdministrator(): Promise<void> {
    return admit(this.request.headers, this.deps.administrator, this.deps.clock);
  }

  /** To be called before a handler changes something. @throws Refusal 403, 405 */
  requireChange(): void {
    const { method, headers } = this.request;
    if (method === 'HEAD') throw new Refusal(405, 'HEAD changes nothing.', { allow: 'GET, POST' });
    const { 'sec-fetch-site': site, ...others } = headers;
    // Who follows no link but types an address comes from no site.
    if (isForeign(site === 'none' ? others : { ...others, 'sec-fetch-site': site }))
      throw new Refusal(403, 'A page of another site may not change this peer.');
    // A link in a message or a document is followed from no site, with the password that the
    // browser remembers.
    if (method === 'GET' && isOfBrowser(headers))
      throw new Refusal(
        405,
        'A browser changes nothing by an address or a link: use the forms of the page /Tables_p.html, or send the request by POST or from a program that is no browser.',
        { allow: 'POST' },
      );
  }
}

/**
 * Opens the HTTP side of the peer on loopback, and on a socket in `dir`: who may ask, for what, how
 * much; the handlers do the rest.
 *
 * @throws the system's error where it cannot listen on loopback
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
  const limits = { head: LONGEST_HEAD, headMs: timeouts.headers, connections: MOST_CONNECTIONS };
  const app = webServer(limits, {
    connectionTimeout: timeouts.idle,
    keepAliveTimeout: Math.min(KEEP_ALIVE_MS, timeouts.idle),
    routerOptions: { querystringParser: () => ({}) },
    frameworkErrors: (error, request, reply) => void fail(error, request, reply),
  });
  // Handlers read their bodies themselves, each as much as it takes.
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
    // A connection that was busy when the server began to close is nobody's any more.
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
 * Has the server take connections from a socket in `directory`, too: those of its port are shared
 * by all programs of the machine.
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
 * A body as it is made, in chunks of about 64 KB. Everybody else has a turn between pieces: a
 * socket may take all of it at once.
 */
async function* paced(
  body: Iterable<string> | AsyncIterable<string>,
  { raw, request: { url } }: FastifyReply,
  { clock, log }: PeerDeps,
): AsyncGenerator<string> {
  const yielder = new Yielder(clock);
  let held = '';
  try {
    for await (const piece of body) {
      held += piece;
      if (held.length < CHUNK && !yielder.isDue) continue;
      if (held !== '') yield held;
      held = '';
      if (raw.closed) return;
      await yielder.turn();
    }
    if (held !== '') yield held;
  } catch (error) {
    log.error({ url, err: messageOf(error) }, `An answer broke off: ${messageOf(error)}`);
    throw error;
  }
}

/** Browsers send these headers of themselves, and no page can leave them out. */
function isOfBrowser(headers: IncomingHttpHeaders): boolean {
  return Object.keys(headers).some((name) => name.startsWith('sec-fetch-'));
}

function formOf({ url, headers }: FastifyRequest): AnswerForm {
  return /^[^?]*\.json(\?|$)/.test(url) || prefersJson(headers.accept) ? 'json' : 'html';
}

/** Whether an Accept header names JSON, and HTML not before it. */
export function prefersJson(accept = ''): boolean {
  const [json, html] = ['application/json', 'text/html'].map((type) =>
    accept.toLowerCase().indexOf(type),
  );
  return json !== -1 && (html === -1 || Number(json) < Number(html));
}

/** What a page says of a refusal that a person may well meet. */
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
  // Nobody is there any more.
  if (raw.destroyed && !raw.complete) return new Refusal(400, why);
  log.error({ url, err: why }, `A request to ${url.replace(/\?.*/s, '')} failed: ${why}`);
  if (isDiskFailure(error))
    return new Refusal(
      507,
      'The disk of the peer is full or failing; not all of the request was carried out.',
    );
  return new Refusal(500, 'The peer failed on this request; its log says why.');
}
