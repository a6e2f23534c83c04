import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../lib/clock.js';
import { messageOf, systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { Administrator } from './administrator.js';
import {
  type Answer,
  type AnswerForm,
  prefersJson,
  Refusal,
  refusalAnswer,
  type StreamedBody,
  type Visit,
} from './answer.js';
import { isDiskTrouble } from './database.js';
import { RequestForm, readBody, readQuery, tooLarge } from './form.js';
import { CONTENT_SECURITY_POLICY } from './markup.js';
import type { Route } from './routes.js';

export interface PeerServerOptions {
  readonly host: string;
  readonly port: number;
  readonly routes: ReadonlyMap<string, Route>;
  readonly administrator: Administrator;
  readonly requireAuthEverywhere: boolean;
  /** Bytes of request bodies in memory at one time. */
  readonly bodyBudget: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly timeouts?: Partial<ServerTimeouts>;
}

/** All in milliseconds. */
export interface ServerTimeouts {
  /** For the head of a request. */
  readonly headers: number;
  /** How long nothing may come or go while a body is received or an answer is sent: an upload is limited in idleness only. */
  readonly idle: number;
  readonly keepAlive: number;
  /** How long an unwanted body is still read, so that its sender gets to see the answer. */
  readonly drain: number;
  /** How long answers under way may take when the server closes. */
  readonly close: number;
}

const TIMEOUTS: ServerTimeouts = {
  headers: 15_000,
  idle: 120_000,
  keepAlive: 30_000,
  drain: 10_000,
  close: 3_000,
};
const MOST_CONNECTIONS = 512;

/** The HTTP side of the peer: who may ask, for what, how much; the routes do the rest. */
export class PeerServer {
  readonly #options: PeerServerOptions;
  readonly #timeouts: ServerTimeouts;
  readonly #server: Server;
  readonly #budget: BodyBudget;
  readonly #underWay = new Set<Promise<void>>();
  /** Connections on which a body is on its way in. */
  readonly #receiving = new Set<Duplex>();
  #closing = false;

  constructor(options: PeerServerOptions) {
    this.#options = options;
    this.#timeouts = { ...TIMEOUTS, ...options.timeouts };
    this.#budget = new BodyBudget(options.bodyBudget);
    this.#server = createServer({
      maxHeaderSize: LONGEST_HEAD,
      headersTimeout: this.#timeouts.headers,
      // Of whole requests; an upload may take as long as it goes on.
      requestTimeout: 0,
      keepAliveTimeout: this.#timeouts.keepAlive,
      connectionsCheckingInterval: Math.min(5_000, this.#timeouts.headers / 2),
    });
    this.#server.maxConnections = MOST_CONNECTIONS;
    this.#server.setTimeout(this.#timeouts.idle, (socket) => {
      if (!this.#receiving.has(socket)) socket.destroy();
      else {
        answerLate(socket);
        socket.destroySoon();
      }
    });
    this.#server.on('request', (request, response) => this.#track(this.#serve(request, response, false)));
    this.#server.on('checkContinue', (request, response) =>
      this.#track(this.#serve(request, response, true)),
    );
    this.#server.on('clientError', answerBrokenRequest);
  }

  /** Resolves with the URL of the peer; rejects with the system's error. */
  listen(): Promise<{ readonly url: string; readonly port: number }> {
    const { host, port } = this.#options;
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host, port, exclusive: true }, () => {
        this.#server.off('error', reject);
        this.#server.on('error', (error) =>
          this.#options.log.error({ err: messageOf(error) }, 'The listener failed'),
        );
        const taken = (this.#server.address() as AddressInfo).port;
        resolve({ url: urlOf(host, taken), port: taken });
      });
    });
  }

  /** Takes no more connections, lets answers under way end, and cuts what remains; no route is at work afterwards. */
  async close(): Promise<void> {
    this.#closing = true;
    await new Promise<void>((resolve) => {
      const cut = this.#options.clock.after(this.#timeouts.close, () => this.#server.closeAllConnections());
      this.#server.close(() => {
        cut.cancel();
        resolve();
      });
      this.#server.closeIdleConnections();
    });
    await Promise.all(this.#underWay);
  }

  #track(work: Promise<void>): void {
    this.#underWay.add(work);
    void work.finally(() => this.#underWay.delete(work));
  }

  async #serve(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): Promise<void> {
    const { clock, log } = this.#options;
    const began = clock.now();
    response.on('error', () => undefined);
    // Asked for just before the server closes, an answer would leave a connection that nobody ends.
    response.once('close', () => {
      if (this.#closing) setImmediate(() => this.#server.closeIdleConnections());
    });
    const path = pathOf(request.url ?? '');
    const route = path === undefined ? undefined : this.#options.routes.get(path);
    const visit = this.#visit(request, response, route?.form ?? formOf(path ?? ''));
    let answer: Answer;
    try {
      answer = await this.#answer(request, path, route, visit, expectsContinue ? response : undefined);
    } catch (error) {
      if (request.destroyed && !request.complete) return;
      answer = refusalAnswer(visit.as, this.#toRefusal(error, path));
    }
    log.debug(
      { method: request.method, path, status: answer.status, ms: Math.round(clock.now() - began) },
      'Request',
    );
    if (this.#closing) response.shouldKeepAlive = false;
    try {
      await sendAnswer(request, response, answer, this.#timeouts.drain, clock);
    } catch (error) {
      log.error({ path, err: messageOf(error) }, `An answer of ${path} broke off: ${messageOf(error)}`);
      response.destroy();
    }
  }

  #visit(request: IncomingMessage, response: ServerResponse, form: AnswerForm): Visit {
    const { headers, method = '' } = request;
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    let admitted = this.#needsAdministrator(pathOf(request.url ?? '') ?? '');
    return {
      baseUrl: `http://${headers.host}`,
      as: form === 'html' && prefersJson(headers.accept) ? 'json' : form,
      method,
      headers,
      signal: gone.signal,
      requireAdministrator: () => {
        // A digest counts once.
        if (!admitted) this.#admit(request);
        admitted = true;
      },
      requireChange: () => {
        if (method === 'HEAD') throw new Refusal(405, 'HEAD changes nothing.', { allow: 'GET, POST' });
        refuseElsewhere(request);
      },
    };
  }

  #needsAdministrator(path: string): boolean {
    return path.includes('_p') || this.#options.requireAuthEverywhere;
  }

  async #answer(
    request: IncomingMessage,
    path: string | undefined,
    route: Route | undefined,
    visit: Visit,
    continued: ServerResponse | undefined,
  ): Promise<Answer> {
    const { host } = request.headers;
    if (path === undefined) throw new Refusal(400, 'The address cannot be read.');
    if (host === undefined || !isOwnHost(host, this.#options.host))
      throw new Refusal(403, 'The Host header names another machine than this peer.');
    if (this.#needsAdministrator(path)) this.#admit(request);
    if (!route) throw new Refusal(404, 'There is no such page.');
    const methods = route.effect === 'writes' ? ['GET', 'POST'] : ['GET', 'HEAD', 'POST'];
    if (!methods.includes(request.method ?? ''))
      throw new Refusal(405, `This page answers ${methods.join(', ')}.`, { allow: methods.join(', ') });
    if (route.effect === 'writes') refuseElsewhere(request);
    const release = await this.#takeShare(request, route);
    try {
      const form = new RequestForm(route.limits);
      readQuery((request.url ?? '').split('?').slice(1).join('?'), form);
      continued?.writeContinue();
      if (hasBody(request)) await this.#receive(request, form, route, visit);
      return await route.handle(form, visit);
    } finally {
      release();
    }
  }

  /** Whether request bodies are on their way in. */
  get isReceiving(): boolean {
    return this.#receiving.size > 0;
  }

  async #receive(request: IncomingMessage, form: RequestForm, route: Route, visit: Visit): Promise<void> {
    this.#receiving.add(request.socket);
    try {
      if (route.receive) await route.receive(request, form, visit);
      else await readBody(request, form, route.limits);
    } finally {
      this.#receiving.delete(request.socket);
    }
  }

  #admit(request: IncomingMessage): void {
    const { method = '', url: target = '', headers } = request;
    const verdict = this.#options.administrator.judge({
      method,
      target,
      authorization: headers.authorization,
    });
    if (verdict.access === 'granted') return;
    const why = `${verdict.why.replace(/^./, (c) => c.toUpperCase())}.`;
    if (verdict.access === 'malformed') throw new Refusal(400, why);
    if (headers.authorization !== undefined)
      this.#options.log.debug({ from: request.socket.remoteAddress, why }, 'Access denied');
    throw new Refusal(401, why, { 'www-authenticate': verdict.challenges });
  }

  #takeShare(request: IncomingMessage, route: Route): Promise<() => void> {
    const declared = request.headers['content-length'];
    const size = declared === undefined ? (hasBody(request) ? route.limits.body : 0) : Number(declared);
    if (size > route.limits.body) throw tooLarge(route.limits.body);
    // Questions are small and must not wait for pushes.
    const isHeld = route.effect !== 'reads' && route.receive === undefined && size > 0;
    return isHeld ? this.#budget.take(size) : Promise.resolve(() => undefined);
  }

  #toRefusal(error: unknown, path: string | undefined): Refusal {
    if (error instanceof Refusal) return error;
    this.#options.log.error(
      { path, err: messageOf(error) },
      `A request to ${path} failed: ${messageOf(error)}`,
    );
    if (isDiskTrouble(error))
      return new Refusal(507, 'The disk of the peer is full or failing; nothing was accepted.');
    return new Refusal(500, 'The peer failed on this request; its log says why.');
  }
}

/** The decoded path of a request target, which may be a whole URL (RFC 9112, 3.2.2); undefined where it is neither. */
function pathOf(target: string): string | undefined {
  const local = target.replace(/^https?:\/\/[^/?#]*/i, '').split('?', 1)[0] ?? '';
  if (!local.startsWith('/')) return undefined;
  try {
    return decodeURIComponent(local);
  } catch {
    return undefined;
  }
}

function formOf(path: string): AnswerForm {
  return path.endsWith('.json') ? 'json' : 'html';
}

function refuseElsewhere(request: IncomingMessage): void {
  if (isFromElsewhere(request.headers))
    throw new Refusal(403, 'A page of another site may not change this peer.');
}

const WILDCARDS = new Set(['0.0.0.0', '::']);

/** The host of a Host header or URL authority, without port and brackets, in lower case. */
function hostOf(authority: string): string {
  return authority
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .toLowerCase();
}

/**
 * Whether a request was meant for this peer. A page of another site can make its own name resolve to this machine (DNS rebinding);
 * its requests then bear that name. A peer that listens on all addresses cannot know its own, but an address, unlike a name,
 * cannot be rebound.
 */
export function isOwnHost(authority: string, configured: string): boolean {
  const host = hostOf(authority);
  if (['localhost', '127.0.0.1', '::1', hostOf(configured)].includes(host)) return true;
  return WILDCARDS.has(configured) && isIP(host) !== 0;
}

/**
 * Whether a page of another site may have caused the request: a browser says so, or it does not say otherwise. To a peer without TLS
 * on another machine browsers send no Sec-Fetch-Site, and with GET no Origin; then only Referer can speak for it.
 */
export function isFromElsewhere(headers: {
  readonly host?: string | undefined;
  readonly origin?: string | undefined;
  readonly referer?: string | undefined;
  readonly 'sec-fetch-site'?: string | string[] | undefined;
  readonly 'user-agent'?: string | undefined;
}): boolean {
  if (headers.origin !== undefined) return headers.origin.replace(/^https?:\/\//, '') !== headers.host;
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  const isBrowser = headers['user-agent']?.startsWith('Mozilla/') ?? false;
  return isBrowser && /^https?:\/\/([^/]*)\//.exec(headers.referer ?? '')?.[1] !== headers.host;
}

/** How a client on this machine reaches a server that listens on `host`. */
export function urlOf(host: string, port: number): string {
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}`;
}

/**
 * Bounds the request bodies that are in memory at one time. A request takes its share before its body is read, and waits, in order,
 * while there is none: its client is held back by TCP meanwhile.
 */
export class BodyBudget {
  #free: number;
  readonly #waiting: { readonly bytes: number; readonly start: () => void }[] = [];

  constructor(bytes: number) {
    this.#free = bytes;
  }

  /** Resolves with what gives the share back; calling that twice is harmless. `bytes` is at most the whole budget. */
  async take(bytes: number): Promise<() => void> {
    if (this.#waiting.length > 0 || bytes > this.#free)
      await new Promise<void>((start) => this.#waiting.push({ bytes, start }));
    else this.#free -= bytes;
    let given = false;
    return () => {
      if (given) return;
      given = true;
      this.#free += bytes;
      this.#admit();
    };
  }

  #admit(): void {
    for (let next = this.#waiting[0]; next && next.bytes <= this.#free; next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#free -= next.bytes;
      next.start();
    }
  }
}

/** Bytes of the head of a request: a URL parameter as long as allowed, encoded once more, fits into the request line. */
export const LONGEST_HEAD = 65_536;

/** What is said to a request that is no request, or not a whole one. */
const REFUSALS = {
  late: ['408 Request Timeout', 'The request did not come in time.\n'],
  headTooLarge: ['431 Request Header Fields Too Large', `The head is larger than ${LONGEST_HEAD} bytes.\n`],
  unreadable: ['400 Bad Request', 'This is no HTTP request that can be read.\n'],
} as const;

/** Answers what is no request, or not a whole one, and ends the connection; one that is gone already is let go. */
export function answerBrokenRequest(error: Error, socket: Duplex): void {
  const code = systemCode(error);
  if (code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') answerLate(socket);
  else endWithRefusal(socket, code === 'HPE_HEADER_OVERFLOW' ? REFUSALS.headTooLarge : REFUSALS.unreadable);
}

/** Answers a request that did not come to its end in time, and ends the connection. */
export function answerLate(socket: Duplex): void {
  endWithRefusal(socket, REFUSALS.late);
}

function endWithRefusal(socket: Duplex, [status, body]: readonly [status: string, body: string]): void {
  socket.end(
    `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n` +
      `Content-Length: ${body.length}\r\n\r\n${body}`,
  );
}

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
