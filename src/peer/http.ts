import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../lib/clock.js';
import { VERSION } from '../lib/version.js';
import type { StreamedAnswer } from './asking.js';
import type { Body } from './body.js';
import { Connection, type ConnectOptions } from './connection.js';
import { type Delivered, PeerError } from './errors.js';
import { type Answered, Exchange, type ExchangeLimits, type Failed, isSuccess } from './exchange.js';
import { calledOff, cutShort, failureError, isBroken } from './failure.js';
import { OnceIterable } from './once-iterable.js';

export interface Timeouts {
  /** Until a connection stands, with TLS, in ms. */
  readonly connect: number;
  /** Without progress from there to the head of the answer, in ms. */
  readonly headers: number;
  /** Between two pieces of the answer, in ms. */
  readonly body: number;
  /**
   * For the whole exchange, in ms; one that is repeated for its access or its connection has it each time. An answer
   * that is read while it comes has 12 times as long.
   */
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
  /** @default anything */
  readonly accept?: string | undefined;
  readonly body?: Body | undefined;
  /** Besides those of every request; names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
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

/** What became of a request whose answer was to be handed over as it comes. */
export type Streamed<T> =
  | { readonly kind: 'used'; readonly value: T }
  /** Not a success: collected like any other. */
  | { readonly kind: 'answered'; readonly answer: HttpAnswer };

/** A request whose answer has begun. */
interface UnderWay {
  readonly request: HttpRequest;
  readonly limits: ExchangeLimits;
  readonly exchange: Exchange;
  readonly connection: Connection;
  readonly answered: Answered;
  /** For durations. */
  readonly began: number;
}

/** By this the limit of the whole exchange is longer where the answer is read while it comes. */
const STREAM_TOTAL_FACTOR = 12;

/**
 * The way to one peer: requests of known length, answers of bounded length, whole or as they come.
 *
 * A request takes an idle connection or opens one. Redirects are answers like any other. Where a connection that was
 * used before breaks without a byte of an answer, the peer may have closed it just then: the request is sent once more
 * on a new one, and counts from then on as possibly delivered.
 *
 * Where other certificates are to be trusted, what is under way ends as it began, and what comes next is on new connections.
 */
export class Http {
  readonly #options: HttpOptions;
  #connect: ConnectOptions;
  readonly #limits: ExchangeLimits;
  readonly #idle: Connection[] = [];
  readonly #all = new Set<Connection>();
  /** Not to be used again. */
  readonly #outdated = new WeakSet<Connection>();
  #closed = false;

  constructor(options: HttpOptions) {
    const { origin, ca, timeouts, maxAnswer, clock } = options;
    this.#options = options;
    this.#connect = { origin, ca, connectMs: timeouts.connect, clock };
    this.#limits = {
      headersMs: timeouts.headers,
      bodyMs: timeouts.body,
      totalMs: timeouts.total,
      maxBytes: maxAnswer,
    };
  }

  /**
   * Sends a request and gives its whole answer, whatever the status.
   *
   * @throws PeerError PEER_UNREACHABLE, PEER_TIMEOUT, PEER_ANSWER (not HTTP, or encoded), PEER_ANSWER_TOO_LARGE,
   *   PEER_SOURCE, PEER_ABORTED
   */
  async request(request: HttpRequest): Promise<HttpAnswer> {
    const under = await this.#begin(request, this.#limits);
    try {
      return await this.#collected(under);
    } finally {
      this.#leave(under);
    }
  }

  /**
   * Sends a request and hands an answer of success to `use` as it comes; an answer of another status is given back
   * whole. When `use` ends before the answer does, the rest is not asked for.
   *
   * @param maxBytes of an answer of success
   * @throws PeerError as `request`; what `use` throws, also PEER_ANSWER where it reads what was cut short
   */
  async stream<T>(
    request: HttpRequest,
    maxBytes: number,
    use: (answer: StreamedAnswer) => Promise<T>,
  ): Promise<Streamed<T>> {
    const totalMs = this.#limits.totalMs * STREAM_TOTAL_FACTOR;
    const under = await this.#begin(request, { ...this.#limits, totalMs, maxBytes });
    try {
      const isUnchanged = under.answered.status === 304 && request.headers !== undefined;
      if (!isSuccess(under.answered.status) && !isUnchanged)
        return { kind: 'answered', answer: await this.#collected(under) };
      this.#refuseEncoding(under);
      const { status, headers, at } = under.answered;
      const url = this.#options.origin + request.path;
      const chunks = new OnceIterable(this.#pieces(under, (failed) => this.#streamError(under, failed)));
      return { kind: 'used', value: await use({ url, status, headers, at, chunks }) };
    } finally {
      this.#leave(under);
    }
  }

  /**
   * Connections from now on trust these certificates besides the usual ones.
   *
   * @returns whether they are others
   */
  trust(ca: string | undefined): boolean {
    if (ca === this.#connect.ca) return false;
    this.#connect = { ...this.#connect, ca };
    for (const connection of this.#all) this.#outdated.add(connection);
    for (const connection of this.#idle.splice(0)) this.#drop(connection);
    return true;
  }

  /** Ends every connection; what is still under way is called off. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#all].map((connection) => connection.destroy()));
  }

  /** Sends a request, once more where the connection was stale, until the head of the answer is here. */
  async #begin(request: HttpRequest, limits: ExchangeLimits): Promise<UnderWay> {
    if (this.#closed) throw calledOff({ url: this.#options.origin + request.path, delivered: 'no' });
    const began = this.#options.clock.now();
    const first = await this.#exchange(request, limits, this.#idle.pop() ?? this.#open());
    if (first.outcome.answered) return { ...first, answered: first.outcome, request, limits, began };
    const { perhapsStale, reason, delivered } = first.outcome;
    if (!perhapsStale || !isBroken(reason)) throw this.#error(request, limits, first.outcome, 'no');
    const second = await this.#exchange(request, limits, this.#open());
    if (second.outcome.answered) return { ...second, answered: second.outcome, request, limits, began };
    throw this.#error(request, limits, second.outcome, delivered);
  }

  async #exchange(
    request: HttpRequest,
    limits: ExchangeLimits,
    connection: Connection,
  ): Promise<{ exchange: Exchange; connection: Connection; outcome: Answered | Failed }> {
    const { method, path, authorization, accept, body, signal, onSend } = request;
    const { clock } = this.#options;
    const exchange = new Exchange({ connection, limits, clock, body, signal, onSend });
    exchange.start({
      method,
      path,
      headers: {
        ...request.headers,
        accept: accept ?? '*/*',
        'user-agent': `peersync/${VERSION}`,
        ...(authorization === undefined ? {} : { authorization }),
        ...(body === undefined ? {} : { 'content-type': body.type, 'content-length': String(body.length) }),
      },
    });
    const outcome = await exchange.outcome;
    if (!outcome.answered) this.#drop(connection);
    return { exchange, connection, outcome };
  }

  /** The whole body; a refusal that is longer than the limit is cut there. */
  async #collected(under: UnderWay): Promise<HttpAnswer> {
    const { request, limits, answered, began } = under;
    const chunks: Buffer[] = [];
    let length = 0;
    for await (const chunk of this.#pieces(under, (failed) => this.#error(request, limits, failed, 'no'))) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > this.#options.maxAnswer) break;
    }
    this.#refuseEncoding(under);
    const { status, headers, at } = answered;
    const date = Date.parse(String(headers.date));
    return {
      url: this.#options.origin + request.path,
      status,
      headers,
      body: Buffer.concat(chunks).subarray(0, this.#options.maxAnswer),
      at,
      peerAt: Number.isNaN(date) ? undefined : date,
      tookMs: at - began,
      delivered: request.body === undefined ? 'no' : 'yes',
    };
  }

  async *#pieces(
    { exchange, answered }: UnderWay,
    errorOf: (failed: Failed) => PeerError,
  ): AsyncGenerator<Buffer, void, undefined> {
    try {
      for (;;) {
        const taken = await answered.body.take();
        if (taken === undefined) return;
        if (!Buffer.isBuffer(taken)) throw errorOf(taken);
        yield taken;
      }
    } finally {
      exchange.abandon();
    }
  }

  #leave({ exchange, connection }: UnderWay): void {
    exchange.abandon();
    if (exchange.whole && !this.#outdated.has(connection)) this.#idle.push(connection);
    else this.#drop(connection);
  }

  /** An encoding that was not asked for would be taken for the content. */
  #refuseEncoding({ request, answered: { status, headers } }: UnderWay): void {
    const encoding = headers['content-encoding'] ?? 'identity';
    if (!isSuccess(status) || /^(identity)?$/i.test(encoding)) return;
    throw new PeerError('PEER_ANSWER', {
      url: this.#options.origin + request.path,
      what: `answered in an encoding that was not asked for (${encoding})`,
      status,
      delivered: request.body === undefined ? 'no' : 'yes',
    });
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

  #error(request: HttpRequest, limits: ExchangeLimits, failed: Failed, before: Delivered): PeerError {
    const url = this.#options.origin + request.path;
    const reached = failed.delivered === 'no' ? before : failed.delivered;
    const delivered = request.body === undefined ? 'no' : reached;
    if (this.#closed) return calledOff({ url, delivered });
    return failureError(failed, { url, delivered, maxBytes: limits.maxBytes });
  }

  #streamError({ request, limits }: UnderWay, failed: Failed): PeerError {
    if (failed.reason.kind !== 'error' || this.#closed) return this.#error(request, limits, failed, 'no');
    const url = this.#options.origin + request.path;
    return cutShort(failed, { url, delivered: request.body === undefined ? 'no' : 'yes' });
  }
}
