import { type Clock, systemClock } from '../lib/clock.js';
import { type Logger, silentLogger } from '../lib/logger.js';
import type { PeerRequest, RequestCounts, StreamedAnswer, StreamRequest } from './asking.js';
import { Auth } from './auth.js';
import type { Dialect } from './dialect.js';
import type { Credentials } from './digest.js';
import { PeerError } from './errors.js';
import { Http, type HttpAnswer, type HttpRequest, type Timeouts } from './http.js';
import type { Peerdoc, PeerdocOptions, PeerdocQuery } from './peerdoc.js';
import type { PushAnswer, PushItem, PushOptions } from './push.js';
import { type ShareOptions, type ShareQuery, type ShareStream, shareOf } from './share.js';
import { standard } from './standard.js';
import { refusedError, statusError } from './status.js';

export interface PeerClientOptions {
  /** `{base_url}` of the API: http or https, no credentials, query or fragment. */
  readonly baseUrl: string;
  readonly credentials?: Credentials;
  /** `ca`: certificates (PEM text) trusted besides the usual ones. */
  readonly tls?: { readonly ca?: string };
  readonly timeouts: Timeouts;
  /** Bytes; longer answers are refused. */
  readonly maxAnswer: number;
  /** @default systemClock */
  readonly clock?: Clock;
  /** @default silentLogger */
  readonly log?: Logger;
  /** @default 'standard' */
  readonly dialect?: 'standard';
}

const DIALECTS: Readonly<Record<'standard', Dialect>> = { standard };

/** The answer to a challenge, and to one more where the nonce had grown old. */
const MOST_AUTHORIZED = 2;

/**
 * A client for the API of one peer.
 *
 * It keeps connections for a few seconds, and the server's challenge for as long as it works. Where credentials are
 * configured, the first push introduces itself with a request that has no body, so that documents are sent once, and
 * never with a wrong password. After `close` nothing can be asked any more.
 *
 * Every method throws PeerError; `delivered` says whether the request may have had an effect.
 */
export class PeerClient {
  readonly #base: URL;
  readonly #http: Http;
  readonly #clock: Clock;
  readonly #dialect: Dialect;
  readonly #auth: Auth | undefined;
  readonly #maxAnswer: number;
  readonly #requests = { push: 0, peerdoc: 0, other: 0 };
  #introduction: Promise<void> | undefined;

  constructor(options: PeerClientOptions) {
    const { baseUrl, credentials, tls, timeouts, maxAnswer } = options;
    this.#base = new URL(baseUrl);
    this.#maxAnswer = maxAnswer;
    this.#clock = options.clock ?? systemClock;
    this.#dialect = DIALECTS[options.dialect ?? 'standard'];
    const { origin } = this.#base;
    this.#http = new Http({ origin, ca: tls?.ca, timeouts, maxAnswer, clock: this.#clock });
    const log = options.log ?? silentLogger;
    if (credentials !== undefined) this.#auth = new Auth({ credentials, origin: this.#base, log });
  }

  get requests(): RequestCounts {
    return { ...this.#requests };
  }

  /**
   * Pushes documents into the index. The peer's acceptance does not mean that they are searchable. Without items it
   * changes nothing, and shows whether the peer takes pushes.
   *
   * @throws PeerError also PEER_SOURCE (`item` says which) when a text cannot be read or changes on the way: nothing of
   *   the request is acted on then
   */
  async push(items: readonly PushItem[], options: PushOptions = {}): Promise<PushAnswer> {
    const { signal } = options;
    const path = this.#dialect.pushPath;
    const body = await this.#dialect.pushBody(items, options, this.#url(path));
    const answer = await this.#ask({
      counted: 'push',
      method: 'POST',
      path,
      isProtected: true,
      body,
      signal,
    });
    const error = statusError(answer);
    if (error !== undefined) throw error;
    const results = this.#dialect.pushResults(answer, items);
    return answer.peerAt === undefined
      ? { results }
      : { results, peerTime: beganAt(answer.peerAt, answer.tookMs) };
  }

  /** What the peer shows of a document; undefined when it has none. */
  async peerdoc(query: PeerdocQuery, options: PeerdocOptions = {}): Promise<Peerdoc | undefined> {
    const { signal } = options;
    const path = this.#dialect.peerdocPath;
    const body = await this.#dialect.peerdocBody(query, options, this.#url(path));
    const answer = await this.#ask({
      counted: 'peerdoc',
      method: 'POST',
      path,
      isProtected: false,
      body,
      signal,
    });
    const error = answer.status === 404 ? undefined : statusError(answer);
    if (error !== undefined) throw error;
    return this.#dialect.peerdocOf(answer, query);
  }

  /**
   * Hands a shared object to `use` as it comes in, in bounded memory, and gives what `use` gives; undefined when the peer
   * has no such object. When `use` ends before the object does, the rest is not asked for.
   *
   * @throws PeerError PEER_ANSWER_TOO_LARGE beyond `maxBytes`, and where it breaks off, in the middle of `use`
   */
  async share<T>(
    query: ShareQuery,
    use: (share: ShareStream) => Promise<T>,
    { maxBytes, signal }: ShareOptions = {},
  ): Promise<T | undefined> {
    const path = this.#dialect.sharePath;
    const body = await this.#dialect.shareBody(query, this.#url(path));
    return await this.#stream(
      { counted: 'other', method: 'POST', path, isProtected: false, body, maxBytes, signal },
      (answer) => use(shareOf(answer)),
    );
  }

  /**
   * Whether the peer answers at all, and how fast: asks for a page without saying what for, which changes nothing, and
   * needs no access.
   */
  async ping({ signal }: { readonly signal?: AbortSignal } = {}): Promise<{ ms: number; server?: string }> {
    const request = {
      counted: 'other',
      method: 'GET',
      path: this.#dialect.peerdocPath,
      isProtected: false,
      signal,
    } as const;
    const answer = await this.#http.request(this.#onTheWire(request, undefined));
    const error = answer.status >= 500 || answer.status === 429 ? statusError(answer) : undefined;
    if (error !== undefined) throw error;
    const { server } = answer.headers;
    return { ms: answer.tookMs, ...(typeof server === 'string' ? { server } : {}) };
  }

  /**
   * Resolves when the peer lets us push: asks for the push page without parameters, which changes nothing. A peer that
   * does not take the empty request (400, 405 and the like) let us in all the same.
   *
   * @throws PeerError PEER_AUTH when it does not; PEER_REFUSED when there is no such page
   */
  async checkAdmin({ signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    const path = this.#dialect.pushPath;
    const answer = await this.#ask({ counted: 'other', method: 'GET', path, isProtected: true, signal });
    const error = statusError(answer);
    const isLetIn = error?.code === 'PEER_REFUSED' && answer.status !== 404;
    if (error !== undefined && !isLetIn) throw error;
  }

  /** Ends all connections; requests under way, and any made later, fail with PEER_ABORTED. */
  async close(): Promise<void> {
    await this.#http.close();
  }

  #url(below: string): string {
    return this.#base.origin + this.#path(below);
  }

  #path(below: string): string {
    return this.#base.pathname.replace(/\/+$/, '') + below;
  }

  async #ask(request: PeerRequest): Promise<HttpAnswer> {
    return await this.#admitted(
      request,
      (authorization) => this.#http.request(this.#onTheWire(request, authorization)),
      (answer) => answer,
    );
  }

  async #stream<T>(
    request: StreamRequest,
    use: (answer: StreamedAnswer) => Promise<T>,
  ): Promise<T | undefined> {
    const maxBytes = request.maxBytes ?? this.#maxAnswer;
    const streamed = await this.#admitted(
      request,
      (authorization) => this.#http.stream(this.#onTheWire(request, authorization), maxBytes, use),
      (result) => (result.kind === 'answered' ? result.answer : undefined),
    );
    if (streamed.kind === 'used') return streamed.value;
    const error = streamed.answer.status === 404 ? undefined : statusError(streamed.answer);
    if (error !== undefined) throw error;
    return undefined;
  }

  /**
   * Sends a request, and again with what its answer asks for: credentials.
   *
   * @param answerOf what was sent; undefined where it let us in
   */
  async #admitted<T>(
    request: PeerRequest,
    send: (authorization: string | undefined) => Promise<T>,
    answerOf: (sent: T) => HttpAnswer | undefined,
  ): Promise<T> {
    if (request.isProtected && request.body !== undefined) await this.#introduce(request);
    let authorized = 0;
    for (;;) {
      const used = this.#auth?.authorize(request.method, this.#path(request.path));
      if (used !== undefined) authorized += 1;
      const sent = await send(used?.header);
      const answer = answerOf(sent);
      if (answer?.status !== 401) {
        if (used !== undefined || request.isProtected) this.#auth?.admitted(used);
        return sent;
      }
      const again = this.#auth?.refused(answer.headers['www-authenticate'], used) ?? false;
      if (!again || authorized === MOST_AUTHORIZED) throw refusedError(answer, this.#auth !== undefined);
    }
  }

  #onTheWire(request: PeerRequest, authorization: string | undefined): HttpRequest {
    return {
      ...request,
      path: this.#path(request.path),
      authorization,
      onSend: () => {
        this.#requests[request.counted] += 1;
      },
    };
  }

  /** Learns and answers the challenge of a protected page before a body goes there; one request for all who wait. */
  async #introduce({ path, signal }: PeerRequest): Promise<void> {
    if (this.#auth === undefined || this.#auth.settled) return;
    this.#introduction ??= this.#ask({
      counted: 'other',
      method: 'GET',
      path,
      isProtected: true,
      signal: undefined,
    })
      .then((answer) => {
        const error = statusError(answer);
        if (error?.code === 'PEER_BUSY') throw error;
      })
      .finally(() => {
        this.#introduction = undefined;
      });
    await unlessAborted(this.#introduction, signal, this.#url(path));
  }
}

/** Peers date their answers in whole seconds, cut off: the result is never later than the real beginning. */
function beganAt(peerAt: number, tookMs: number): number {
  return Math.floor((peerAt - tookMs) / 1000) * 1000;
}

async function unlessAborted(
  work: Promise<void>,
  signal: AbortSignal | undefined,
  url: string,
): Promise<void> {
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () =>
      reject(
        new PeerError('PEER_ABORTED', {
          url,
          what: 'was not asked: the request was called off',
          delivered: 'no',
          cause: signal?.reason,
        }),
      );
  });
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop, { once: true });
  try {
    await Promise.race([work, aborted]);
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}
