import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Timer } from '../lib/clock.js';
import { type AnswerHead, type HttpAnswer, isSuccess } from './answer.js';
import type { Connection, ExchangeHandler } from './connections.js';
import type { Delivered, PeerError, PeerErrorCode } from './errors.js';
import {
  calledOff,
  connectionError,
  DELIVERED,
  exchangeError,
  type FailedExchange,
  type Phase,
} from './exchange-errors.js';
import type { ExchangeOptions, ExchangeRequest } from './exchange-options.js';
import type { Body } from './form.js';

/** Multiplies `timeouts.total` for a streamed answer. */
const STREAM_TOTAL_FACTOR = 12;
/** The bytes of an answer that may wait for their reader. One more piece may follow. */
const MAX_UNREAD = 128 * 1024;
/** Bytes of the beginning of an answer that an error shows. */
const FIRST_BYTES = 1024;

/** A limit of time. `at` is its end, by the clock. */
interface TimeLimit {
  readonly what: string;
  readonly ms: number;
  readonly at: number;
}

/**
 * One request on one connection, and its answer.
 *
 * - `connecting`: no byte was sent. The connection has its own time limit.
 * - `sending`: the headers were sent, and the body not completely. The peer has nothing that it may
 *   act on.
 * - `waiting`: the request was sent completely. Each piece that is sent restarts the time limit for
 *   the headers of the answer.
 * - `receiving`: the headers of the answer have arrived. Its body waits for the reader, in bounded
 *   memory. If too much of it is unread, the answer is paused until all of that is read. Each piece
 *   has a time limit while the reader waits for it.
 *
 * An exchange ends when its answer `isWhole`, or with a failure. A failure destroys the connection.
 */
export class Exchange implements ExchangeHandler {
  /** Whether the answer is complete, so that the connection can carry another request. */
  isWhole = false;
  #phase: Phase = 'connecting';
  /** The first failure. Later ones are its consequences. */
  #failure: PeerError | undefined;
  #controller: Dispatcher.DispatchController | undefined;

  readonly #began: number;
  /** Limits the whole exchange. */
  readonly #total: TimeLimit;
  /** Limits the time until the next progress. */
  #idle: TimeLimit | undefined;
  /** Fires at the earlier limit or before it. A timer for each limit costs 4 µs a request more. */
  #timer: Timer | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #hasEnded = false;
  /** Whether the next piece of the body waits for its admission. */
  #isAdmitting = false;

  #head: AnswerHead | undefined;
  #firstBytes: Buffer | undefined;
  #received = 0;
  readonly #unread: Buffer[] = [];
  #unreadBytes = 0;
  #maxUnread: number;
  /** Continues the method that waits for news of the answer. */
  #wake = (): void => {};

  readonly #onAbort = (): void =>
    this.#fail(calledOff(this.url, this.#delivered, this.request.signal?.reason));

  /** @param onSend called when the request is put on the wire */
  constructor(
    readonly connection: Connection,
    private readonly request: ExchangeRequest,
    private readonly url: string,
    private readonly options: ExchangeOptions,
    private readonly onSend: () => void,
  ) {
    const { clock, timeouts, maxAnswer } = options;
    this.#maxUnread = request.isStreamed ? MAX_UNREAD : maxAnswer;
    this.#began = clock.now();
    const totalMs = timeouts.total * (request.isStreamed ? STREAM_TOTAL_FACTOR : 1);
    this.#total = { what: 'a complete answer', ms: totalMs, at: this.#began + totalMs };
  }

  /**
   * Sends the request and waits for the head of its answer.
   *
   * @param path path and query, as they are sent
   */
  async begin(path: string, headers: Record<string, string>): Promise<AnswerHead> {
    const { method, signal } = this.request;
    signal?.addEventListener('abort', this.#onAbort, { once: true });
    this.connection.send({ method, path, headers, body: this.#body() }, this);
    this.#watchTime();
    while (this.#head === undefined) await this.#news();
    return this.#head;
  }

  /** Returns the whole answer. Cuts off the answer of an error at `maxAnswer`. */
  async whole(head: AnswerHead): Promise<HttpAnswer> {
    this.#maxUnread = this.options.maxAnswer;
    if (!this.#isFull) this.#controller?.resume();
    while (!this.isWhole && !this.#isFull) await this.#more();
    return { ...head, body: Buffer.concat(this.#unread) };
  }

  /** Returns the answer while it arrives. */
  async *chunks(): AsyncGenerator<Buffer, void, undefined> {
    try {
      while (this.#unread.length > 0 || !this.isWhole) {
        if (this.#unread.length === 0) await this.#more();
        if (this.#failure !== undefined) throw this.#failure;
        const chunk = this.#unread.shift();
        if (chunk === undefined) continue;
        this.#unreadBytes -= chunk.length;
        // An earlier `resume` fills memory: undici then takes all that the socket has read, returns
        // the rest at the next pause, and the socket has read more than the reader has taken.
        if (this.#unread.length === 0) this.#controller?.resume();
        yield chunk;
      }
    } finally {
      this.end();
    }
  }

  /** Ends the exchange. It fails with PEER_ABORTED if its answer is not whole. */
  end(): void {
    this.#hasEnded = true;
    this.#timer?.cancel();
    this.request.signal?.removeEventListener('abort', this.#onAbort);
    if (this.isWhole) this.connection.release();
    else this.#fail(calledOff(this.url, this.#delivered));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.#phase = this.#sendsPieces ? 'sending' : 'waiting';
    if (!this.#isAdmitting) this.#limitIdle('an answer', this.options.timeouts.headers);
    this.onSend();
  }

  onResponseStart(_: unknown, status: number, headers: AnswerHead['headers']): void {
    if (status < 200 || this.#failure !== undefined) return;
    this.#phase = 'receiving';
    this.#idle = undefined;
    this.#head = this.#headOf(status, headers);
    if (isSuccess(status)) this.#checkHead(headers);
    this.#wake();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#idle = undefined;
    this.#firstBytes ??= chunk.subarray(0, FIRST_BYTES);
    this.#received += chunk.length;
    if (this.#isSuccess && this.#received > this.#maxBytes) this.#fail(this.#tooLarge());
    this.#unread.push(chunk);
    this.#unreadBytes += chunk.length;
    if (this.#isFull) controller.pause();
    this.#wake();
  }

  onResponseEnd(): void {
    this.isWhole = this.#failure === undefined;
    this.#idle = undefined;
    this.#wake();
  }

  onResponseError(_: unknown, error: unknown): void {
    this.#fail(connectionError(this.#failed(), error));
  }

  takeRest(): void {
    this.#maxUnread = Number.POSITIVE_INFINITY;
    this.#controller?.resume();
  }

  /** An error answer that is not paused may be incomplete: its status says enough. */
  get failsOnReset(): boolean {
    const isPaused = this.#controller?.paused === true;
    return isPaused || (this.#isSuccess && !this.isWhole);
  }

  get #sendsPieces(): boolean {
    const { admit, body } = this.request;
    return body !== undefined && (body.bytes === undefined || admit !== undefined);
  }

  #body(): Buffer | Readable | null {
    const { admit, body } = this.request;
    if (body === undefined) return null;
    if (admit !== undefined) return readOnDemand(this.#pieces(body));
    return body.bytes ?? Readable.from(this.#pieces(body));
  }

  async *#pieces(body: Body): AsyncGenerator<Uint8Array> {
    let given = 0;
    for await (const chunk of body.chunks()) {
      await this.#admit(given);
      given += chunk.length;
      if (this.#phase === 'sending') {
        if (given === body.length) this.#phase = 'waiting';
        this.#limitIdle('an answer', this.options.timeouts.headers);
      }
      yield chunk;
    }
  }

  async #admit(bytesBefore: number): Promise<void> {
    const { admit } = this.request;
    if (admit === undefined) return;
    // The peer is not waited for.
    this.#idle = undefined;
    this.#isAdmitting = true;
    try {
      await admit(bytesBefore);
    } catch (error) {
      throw calledOff(this.url, 'no', error);
    } finally {
      this.#isAdmitting = false;
    }
  }

  #headOf(status: number, headers: AnswerHead['headers']): AnswerHead {
    const at = this.options.clock.now();
    const date = Date.parse(String(headers.date));
    return {
      url: this.url,
      status,
      headers,
      at,
      peerAt: Number.isNaN(date) ? undefined : date,
      tookMs: at - this.#began,
      delivered: this.#delivered,
    };
  }

  /** Refuses an answer of success that announces more than the limit, or an encoding. */
  #checkHead(headers: AnswerHead['headers']): void {
    if (Number(headers['content-length']) > this.#maxBytes) this.#fail(this.#tooLarge());
    const encoding = String(headers['content-encoding'] ?? '');
    if (/^(identity)?$/i.test(encoding)) return;
    // No encoding was requested, and the encoded bytes would be taken for the content.
    const what = `answered in an encoding that was not asked for (${encoding})`;
    this.#fail(this.#error('PEER_ANSWER', what));
  }

  /** Waits for more of the answer. */
  async #more(): Promise<void> {
    this.#limitIdle('the rest of the answer', this.options.timeouts.body);
    await this.#news();
  }

  /** Waits until more of the answer has arrived. @throws PeerError if the exchange failed */
  async #news(): Promise<void> {
    if (this.#failure === undefined)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    if (this.#failure !== undefined) throw this.#failure;
  }

  get #isFull(): boolean {
    return this.#unreadBytes > this.#maxUnread;
  }

  #limitIdle(what: string, ms: number): void {
    this.#idle = { what, ms, at: this.options.clock.now() + ms };
    this.#watchTime();
  }

  /** Sets the timer, unless it fires early enough. */
  #watchTime(): void {
    const at = Math.min(this.#total.at, this.#idle?.at ?? Number.POSITIVE_INFINITY);
    if (this.#timerAt <= at || this.#hasEnded) return;
    this.#timer?.cancel();
    this.#timerAt = at;
    this.#timer = this.options.clock.after(at - this.options.clock.now(), () => this.#timeOut());
  }

  /** Fails if a limit is over. */
  #timeOut(): void {
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = this.options.clock.now();
    const over = [this.#idle, this.#total].find((limit) => limit !== undefined && limit.at <= now);
    if (over === undefined) this.#watchTime();
    else this.#fail(this.#error('PEER_TIMEOUT', `did not give ${over.what} within ${over.ms} ms`));
  }

  #fail(error: PeerError): void {
    this.#failure ??= error;
    this.isWhole = false;
    void this.connection.destroy(this.#failure);
    this.#wake();
  }

  get #isSuccess(): boolean {
    return this.#head !== undefined && isSuccess(this.#head.status);
  }

  get #maxBytes(): number {
    return this.request.maxBytes ?? this.options.maxAnswer;
  }

  get #delivered(): Delivered {
    return this.request.body === undefined ? 'no' : DELIVERED[this.#phase];
  }

  #tooLarge(): PeerError {
    const what = `answered with more than ${this.#maxBytes} bytes`;
    return this.#error('PEER_ANSWER_TOO_LARGE', what);
  }

  #error(code: PeerErrorCode, what: string): PeerError {
    return exchangeError(this.#failed(), code, what);
  }

  #failed(): FailedExchange {
    return {
      url: this.url,
      phase: this.#phase,
      delivered: this.#delivered,
      status: this.#head?.status,
      answer: this.#firstBytes,
      isStreamed: this.request.isStreamed === true,
      connectMs: this.options.timeouts.connect,
    };
  }
}

/**
 * Returns a stream that asks for a piece only when the connection takes it. `Readable.from` asks
 * for one more, which may be sent long after it was admitted.
 */
function readOnDemand(pieces: AsyncGenerator<Uint8Array>): Readable {
  const readable = new Readable({
    objectMode: true,
    highWaterMark: 0,
    read: () => {
      pieces.next().then(
        ({ done, value }) => readable.push(done ? null : value),
        (error: Error) => readable.destroy(error),
      );
    },
    destroy: (error, done) => {
      pieces.return(undefined).catch(() => {});
      done(error);
    },
  });
  return readable;
}
