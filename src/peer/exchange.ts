import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Clock, Timer } from '../lib/clock.js';
import type { Body } from './body.js';
import type { Connection } from './connection.js';
import type { Delivered } from './errors.js';

export interface ExchangeLimits {
  /** Without progress from the connection to the head of the answer, in ms. */
  readonly headersMs: number;
  /** Between two pieces of the answer, in ms. */
  readonly bodyMs: number;
  /** For the whole exchange, in ms. */
  readonly totalMs: number;
  /** Bytes of the answer's body. */
  readonly maxAnswer: number;
}

export interface Answered {
  readonly answered: true;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Whole, but for a refusal longer than the limit, which is cut there. */
  readonly body: Buffer;
  /** Whether the connection can carry another request. */
  readonly whole: boolean;
  /** When the head came: by the clock, in ms since the epoch. */
  readonly at: number;
  /** The same moment, for durations. */
  readonly headMs: number;
}

export type Reason =
  | { readonly kind: 'timeout'; readonly what: string; readonly ms: number }
  | { readonly kind: 'tooLarge'; readonly begin: Uint8Array }
  | { readonly kind: 'aborted'; readonly cause: unknown }
  | { readonly kind: 'error'; readonly error: unknown };

export interface Failed {
  readonly answered: false;
  readonly reason: Reason;
  readonly delivered: Delivered;
  /** Where it failed. */
  readonly phase: 'connecting' | 'sending' | 'waiting' | 'receiving';
  readonly status: number | undefined;
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
 * - `receiving`: the head came; each piece of the body restarts its time limit.
 * - `over`: answered or failed, once. Unless the answer came whole, the connection is to be destroyed.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly ended: Promise<Answered | Failed>;
  #phase: 'connecting' | 'sending' | 'waiting' | 'receiving' | 'over' = 'connecting';
  readonly #options: ExchangeOptions;
  readonly #total: Timer;
  readonly #outgoing: Readable | undefined;
  readonly #abort = (): void => this.#fail({ kind: 'aborted', cause: this.#options.signal?.reason });
  #end: (outcome: Answered | Failed) => void = () => {};
  #idle: Timer | undefined;
  #reused = false;
  #readBefore = 0;
  #head: Pick<Answered, 'status' | 'headers' | 'at' | 'headMs'> | undefined;
  readonly #chunks: Buffer[] = [];
  #received = 0;

  constructor(options: ExchangeOptions) {
    const { clock, limits, body, signal } = options;
    this.#options = options;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
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
    this.#head = { status, headers, at: clock.now(), headMs: clock.monotonic() };
    this.#limitBody();
    if (Number(headers['content-length']) > limits.maxAnswer && isSuccess(status)) this.#tooLarge();
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#phase === 'over') return;
    this.#chunks.push(chunk);
    this.#received += chunk.length;
    if (this.#received <= this.#options.limits.maxAnswer) this.#limitBody();
    else if (isSuccess(this.#head?.status)) this.#tooLarge();
    else this.#succeed(false);
  }

  onResponseEnd(): void {
    if (this.#phase === 'over') return;
    this.#options.connection.used = true;
    this.#succeed(true);
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

  #tooLarge(): void {
    this.#fail({ kind: 'tooLarge', begin: Buffer.concat(this.#chunks.slice(0, 1)) });
  }

  #succeed(whole: boolean): void {
    const head = this.#head;
    if (head === undefined) return;
    const body = Buffer.concat(this.#chunks).subarray(0, this.#options.limits.maxAnswer);
    this.#finish({ answered: true, ...head, body, whole });
  }

  #fail(reason: Reason): void {
    const phase = this.#phase;
    if (phase === 'over') return;
    const { connection } = this.#options;
    const sent = phase === 'sending' || phase === 'waiting';
    this.#finish({
      answered: false,
      reason,
      delivered: DELIVERED[phase],
      phase,
      status: this.#head?.status,
      perhapsStale: sent && this.#reused && connection.bytesRead === this.#readBefore,
    });
  }

  #finish(outcome: Answered | Failed): void {
    this.#phase = 'over';
    this.#idle?.cancel();
    this.#total.cancel();
    this.#options.signal?.removeEventListener('abort', this.#abort);
    this.#end(outcome);
  }
}

const DELIVERED = { connecting: 'no', sending: 'no', waiting: 'maybe', receiving: 'yes' } as const;

function isSuccess(status: number | undefined): boolean {
  return status !== undefined && status >= 200 && status < 300;
}
