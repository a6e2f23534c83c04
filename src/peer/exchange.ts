import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Clock, Timer } from '../lib/clock.js';
import type { Body } from './body.js';
import type { Connection } from './connection.js';
import type { Delivered } from './errors.js';
import { Incoming } from './incoming.js';

export interface ExchangeLimits {
  /** Without progress from the connection to the head of the answer, in ms. */
  readonly headersMs: number;
  /** Between two pieces of the answer, in ms. */
  readonly bodyMs: number;
  /** For the whole exchange, in ms. */
  readonly totalMs: number;
  /** Bytes of an answer of success. */
  readonly maxBytes: number;
}

/** The head of an answer, whose body follows. */
export interface Answered {
  readonly answered: true;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** When it came, in ms since the epoch. */
  readonly at: number;
  readonly body: Incoming;
}

export type Reason =
  | { readonly kind: 'timeout'; readonly what: string; readonly ms: number }
  | { readonly kind: 'tooLarge' }
  | { readonly kind: 'aborted'; readonly cause: unknown }
  | { readonly kind: 'error'; readonly error: unknown };

export interface Failed {
  readonly answered: false;
  readonly reason: Reason;
  readonly delivered: Delivered;
  /** Where it failed. */
  readonly phase: 'connecting' | 'sending' | 'waiting' | 'receiving';
  readonly status: number | undefined;
  /** The first bytes of the answer, where some came. */
  readonly begin: Buffer | undefined;
  /** The connection had been used before and no byte came back: the peer may have closed it before the request came. */
  readonly perhapsStale: boolean;
}

export interface ExchangeOptions {
  readonly connection: Connection;
  readonly limits: ExchangeLimits;
  readonly clock: Clock;
  readonly body: Body | undefined;
  readonly signal: AbortSignal | undefined;
  /** Called when the request is put on the wire. */
  readonly onSend: (() => void) | undefined;
}

/**
 * One request on one connection, and its answer.
 *
 * - `connecting`: no byte was sent; the connection has its own time limit.
 * - `sending`: the head went out, the body is not whole yet: nothing that the peer may act on.
 * - `waiting`: all was sent; each piece sent restarts the time limit for the answer's head.
 * - `receiving`: the head came and was handed over, the body follows as it is read. Each piece restarts its time limit;
 *   while the reader is behind, the peer is not listened to and has none.
 * - `over`: answered or failed, once. Unless the answer came whole, the connection is to be destroyed.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  /** The head of the answer; after that, a failure is told to who reads the body. */
  readonly outcome: Promise<Answered | Failed>;
  #phase: 'connecting' | 'sending' | 'waiting' | 'receiving' | 'over' = 'connecting';
  readonly #options: ExchangeOptions;
  readonly #total: Timer;
  readonly #outgoing: Readable | undefined;
  readonly #abort = (): void => this.#fail({ kind: 'aborted', cause: this.#options.signal?.reason });
  #settle: (outcome: Answered | Failed) => void = () => {};
  #idle: Timer | undefined;
  #reused = false;
  #readBefore = 0;
  #answer: Answered | undefined;
  #whole = false;
  #begin: Buffer | undefined;
  #received = 0;

  constructor(options: ExchangeOptions) {
    const { clock, limits, body, signal } = options;
    this.#options = options;
    this.outcome = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.#total = clock.after(limits.totalMs, () =>
      this.#fail({ kind: 'timeout', what: 'a complete answer', ms: limits.totalMs }),
    );
    if (body !== undefined && body.bytes === undefined) this.#outgoing = Readable.from(this.#pieces(body));
    if (signal?.aborted) this.#abort();
    else signal?.addEventListener('abort', this.#abort, { once: true });
  }

  /** Puts the request on the connection. */
  start(request: {
    readonly method: 'GET' | 'POST';
    readonly path: string;
    readonly headers: Record<string, string>;
  }): void {
    if (this.#phase === 'over') return;
    const body = this.#options.body?.bytes ?? this.#outgoing ?? null;
    this.#options.connection.dispatch({ ...request, body }, this);
  }

  /** Whether the answer came to its end, so that the connection can carry another request. */
  get whole(): boolean {
    return this.#whole;
  }

  /** Ends it where it stands; without effect on one that is over. */
  abandon(): void {
    this.#fail({ kind: 'aborted', cause: undefined });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#phase === 'over') {
      controller.abort(new Error('called off'));
      return;
    }
    this.#reused = this.#options.connection.used;
    this.#readBefore = this.#options.connection.bytesRead;
    this.#phase = this.#outgoing === undefined ? 'waiting' : 'sending';
    this.#options.onSend?.();
    this.#limitHead();
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (this.#phase === 'over' || status < 200) return;
    const { clock, limits } = this.#options;
    this.#phase = 'receiving';
    const body = new Incoming(() => this.#listen());
    this.#answer = { answered: true, status, headers, at: clock.now(), body };
    this.#limitBody();
    if (isSuccess(status) && Number(headers['content-length']) > limits.maxBytes)
      this.#fail({ kind: 'tooLarge' });
    else this.#settle(this.#answer);
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    const answer = this.#answer;
    if (this.#phase === 'over' || answer === undefined) return;
    this.#begin ??= Buffer.from(chunk.subarray(0, BEGIN_BYTES));
    this.#received += chunk.length;
    if (isSuccess(answer.status) && this.#received > this.#options.limits.maxBytes) {
      this.#fail({ kind: 'tooLarge' });
      return;
    }
    answer.body.give(chunk);
    if (answer.body.isFull) this.#hold();
    else this.#limitBody();
  }

  onResponseEnd(): void {
    if (this.#phase === 'over') return;
    this.#options.connection.used = true;
    this.#whole = true;
    this.#close();
    this.#options.connection.listen();
    this.#answer?.body.end();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#fail({ kind: 'error', error });
  }

  async *#pieces(body: Body): AsyncGenerator<Uint8Array> {
    let given = 0;
    for await (const chunk of body.chunks()) {
      given += chunk.length;
      if (this.#phase === 'sending') {
        if (given === body.length) this.#phase = 'waiting';
        this.#limitHead();
      }
      yield chunk;
    }
  }

  #limitHead(): void {
    const ms = this.#options.limits.headersMs;
    this.#limitIdle('an answer', ms);
  }

  #limitBody(): void {
    const ms = this.#options.limits.bodyMs;
    this.#limitIdle('the rest of the answer', ms);
  }

  #limitIdle(what: string, ms: number): void {
    this.#idle?.cancel();
    this.#idle = this.#options.clock.after(ms, () => this.#fail({ kind: 'timeout', what, ms }));
  }

  #hold(): void {
    this.#idle?.cancel();
    this.#options.connection.hold();
  }

  #listen(): void {
    if (this.#phase === 'over') return;
    this.#limitBody();
    this.#options.connection.listen();
  }

  #fail(reason: Reason): void {
    const phase = this.#phase;
    if (phase === 'over') return;
    const { connection } = this.#options;
    const sent = phase === 'sending' || phase === 'waiting';
    this.#close();
    const failed: Failed = {
      answered: false,
      reason,
      delivered: DELIVERED[phase],
      phase,
      status: this.#answer?.status,
      begin: this.#begin,
      perhapsStale: sent && this.#reused && connection.bytesRead === this.#readBefore,
    };
    this.#settle(failed);
    this.#answer?.body.fail(failed);
  }

  #close(): void {
    this.#phase = 'over';
    this.#idle?.cancel();
    this.#total.cancel();
    this.#options.signal?.removeEventListener('abort', this.#abort);
  }
}

/** As many as an error shows. */
const BEGIN_BYTES = 1024;

const DELIVERED = { connecting: 'no', sending: 'no', waiting: 'maybe', receiving: 'yes' } as const;

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}
