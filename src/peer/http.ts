import type { IncomingHttpHeaders } from 'node:http';
import { errors } from 'undici';
import type { Clock } from '../lib/clock.js';
import { messageOf, systemCode } from '../lib/errors.js';
import { VERSION } from '../lib/version.js';
import type { Body } from './body.js';
import { Connection, type ConnectOptions, ConnectTimeout } from './connection.js';
import { type Delivered, PeerError } from './errors.js';
import { type Answered, Exchange, type ExchangeLimits, type Failed, type Reason } from './exchange.js';

export interface Timeouts {
  /** Until a connection stands, with TLS, in ms. */
  readonly connect: number;
  /** Without progress from there to the head of the answer, in ms. */
  readonly headers: number;
  /** Between two pieces of the answer, in ms. */
  readonly body: number;
  /** For the whole exchange, in ms; one that is repeated for its access or its connection has it each time. */
  readonly total: number;
}

export interface HttpOptions {
  /** `http://host:port`. */
  readonly origin: string;
  /** PEM text of certificates that are trusted besides the usual ones. */
  readonly ca: string | undefined;
  readonly timeouts: Timeouts;
  /** Bytes; longer answers are refused. */
  readonly maxAnswer: number;
  readonly clock: Clock;
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  /** Path and query, as they are sent. */
  readonly path: string;
  readonly authorization?: string | undefined;
  readonly body?: Body | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called whenever the request is put on the wire. */
  readonly onSend?: () => void;
}

export interface HttpAnswer {
  readonly url: string;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** When the head of the answer came, by our clock, in ms since the epoch. */
  readonly at: number;
  /** What the peer's clock showed then (whole seconds, as ms), where the answer carries a date. */
  readonly peerAt: number | undefined;
  /** From the beginning of the request to the head of the answer, in ms. */
  readonly tookMs: number;
  /** Whether the body of the request is with the peer: `no` where there was none. */
  readonly delivered: Delivered;
}

/**
 * The way to one peer: requests of known length, whole answers of bounded length.
 *
 * A request takes an idle connection or opens one. Redirects are answers like any other. Where a connection that was
 * used before breaks without a byte of an answer, the peer may have closed it just then: the request is sent once more
 * on a new one, and counts from then on as possibly delivered.
 */
export class Http {
  readonly #options: HttpOptions;
  readonly #connect: ConnectOptions;
  readonly #limits: ExchangeLimits;
  readonly #idle: Connection[] = [];
  readonly #all = new Set<Connection>();
  #closed = false;

  constructor(options: HttpOptions) {
    const { origin, ca, timeouts, maxAnswer, clock } = options;
    this.#options = options;
    this.#connect = { origin, ca, connectMs: timeouts.connect, clock };
    this.#limits = {
      headersMs: timeouts.headers,
      bodyMs: timeouts.body,
      totalMs: timeouts.total,
      maxAnswer,
    };
  }

  /**
   * Sends a request and gives its whole answer, whatever the status.
   *
   * @throws PeerError PEER_UNREACHABLE, PEER_TIMEOUT, PEER_ANSWER (not HTTP), PEER_ANSWER_TOO_LARGE, PEER_SOURCE,
   *   PEER_ABORTED
   */
  async request(request: HttpRequest): Promise<HttpAnswer> {
    if (this.#closed) throw this.#calledOff(request, 'no');
    const began = this.#options.clock.monotonic();
    const first = await this.#exchange(request, this.#idle.pop() ?? this.#open());
    if (first.answered) return this.#answer(request, first, began);
    if (!first.perhapsStale || !isBroken(first.reason)) throw this.#error(request, first, 'no');
    const second = await this.#exchange(request, this.#open());
    if (second.answered) return this.#answer(request, second, began);
    throw this.#error(request, second, first.delivered);
  }

  /** Ends every connection; what is still under way is called off. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#all].map((connection) => connection.destroy()));
  }

  async #exchange(request: HttpRequest, connection: Connection): Promise<Answered | Failed> {
    const { method, path, authorization, body, signal, onSend } = request;
    const { clock } = this.#options;
    const exchange = new Exchange({ connection, limits: this.#limits, clock, body, signal, onSend });
    exchange.start({
      method,
      path,
      headers: {
        accept: '*/*',
        'user-agent': `peersync/${VERSION}`,
        ...(authorization === undefined ? {} : { authorization }),
        ...(body === undefined ? {} : { 'content-type': body.type, 'content-length': String(body.length) }),
      },
    });
    const outcome = await exchange.ended;
    if (outcome.answered && outcome.whole) this.#idle.push(connection);
    else this.#drop(connection);
    return outcome;
  }

  #open(): Connection {
    const connection = new Connection(this.#connect);
    this.#all.add(connection);
    return connection;
  }

  #drop(connection: Connection): void {
    this.#all.delete(connection);
    void connection.destroy();
  }

  #answer({ path, body: sent }: HttpRequest, answered: Answered, began: number): HttpAnswer {
    const { status, headers, body, at, headMs } = answered;
    const date = Date.parse(String(headers.date));
    return {
      url: this.#options.origin + path,
      status,
      headers,
      body,
      at,
      peerAt: Number.isNaN(date) ? undefined : date,
      tookMs: headMs - began,
      delivered: sent === undefined ? 'no' : 'yes',
    };
  }

  #error(request: HttpRequest, failed: Failed, before: Delivered): PeerError {
    const { reason, status } = failed;
    const url = this.#options.origin + request.path;
    const reached = failed.delivered === 'no' ? before : failed.delivered;
    const delivered = request.body === undefined ? 'no' : reached;
    if (this.#closed) return this.#calledOff(request, delivered);
    const parts = { url, delivered, status };
    switch (reason.kind) {
      case 'timeout': {
        const what = `did not give ${reason.what} within ${reason.ms} ms`;
        return new PeerError('PEER_TIMEOUT', { ...parts, what });
      }
      case 'aborted':
        return this.#calledOff(request, delivered, reason.cause);
      case 'tooLarge': {
        const what = `answered with more than ${this.#options.maxAnswer} bytes`;
        return new PeerError('PEER_ANSWER_TOO_LARGE', { ...parts, what, answer: reason.begin });
      }
      case 'error':
        return connectionError(reason.error, parts, BROKE_OFF[failed.phase]);
    }
  }

  #calledOff({ path }: HttpRequest, delivered: Delivered, cause?: unknown): PeerError {
    const url = this.#options.origin + path;
    return new PeerError('PEER_ABORTED', {
      url,
      what: 'is not waited for: the request was called off',
      delivered,
      cause,
    });
  }
}

/** By what had happened before. */
const BROKE_OFF = {
  connecting: 'cannot be reached',
  sending: 'broke the connection while the request was sent (is it too large?)',
  waiting: 'broke the connection without an answer',
  receiving: 'broke the connection in the middle of its answer',
} as const;

interface ConnectionErrorParts {
  readonly url: string;
  readonly delivered: Delivered;
  readonly status: number | undefined;
}

function connectionError(error: unknown, parts: ConnectionErrorParts, how: string): PeerError {
  if (error instanceof PeerError) return error;
  if (error instanceof ConnectTimeout) {
    return new PeerError('PEER_TIMEOUT', {
      ...parts,
      what: `cannot be reached: ${error.message}`,
      cause: error,
    });
  }
  const code = systemCode(error) ?? '';
  if (error instanceof errors.HTTPParserError || error instanceof errors.HeadersOverflowError) {
    const answer = 'data' in error && error.data ? Buffer.from(String(error.data)) : undefined;
    const what = `did not answer in HTTP (${error.message})`;
    return new PeerError('PEER_ANSWER', { ...parts, what, answer, cause: error });
  }
  const what = `${how}: ${described(error, code)}`;
  return new PeerError('PEER_UNREACHABLE', { ...parts, what, cause: error });
}

/** Several attempts (IPv6, IPv4) come as one AggregateError without a text of its own. The library's own codes tell nobody anything. */
function described(error: unknown, code: string): string {
  const messages = error instanceof AggregateError ? error.errors.map(messageOf) : [messageOf(error)];
  const text = [...new Set(messages)].filter(Boolean).join('; ') || code;
  return text.includes(code) || code.startsWith('UND_') ? text : `${text} (${code})`;
}

const BROKEN = new Set(['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'UND_ERR_SOCKET']);

function isBroken(reason: Reason): boolean {
  return reason.kind === 'error' && BROKEN.has(systemCode(reason.error) ?? '');
}
