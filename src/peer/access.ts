import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import type { Asking, PeerRequest, RequestCounts, StreamedAnswer, StreamRequest } from './asking.js';
import { Auth } from './auth.js';
import type { Credentials } from './digest.js';
import { PeerError } from './errors.js';
import type { Http, HttpAnswer, HttpRequest } from './http.js';
import { refusedError, statusError } from './status.js';

/** The answer to a challenge, and to one more where the nonce had grown old. */
const MOST_AUTHORIZED = 2;

export interface AccessOptions {
  /** `{base_url}` of the API. */
  readonly base: URL;
  readonly http: Http;
  /** Undefined where none are configured. */
  readonly credentials: Credentials | undefined;
  /** Bytes of an answer that is read whole. */
  readonly maxAnswer: number;
  readonly log: Logger;
  readonly clock: Clock;
}

/**
 * How all parts of a client ask their peer: below its base URL, with the access that it wants, counted.
 *
 * Where credentials are configured, the first protected request that has a body is preceded by one without, so that
 * documents are sent once, and never with a wrong password. A request that is turned away is sent again with what the
 * answer asks for.
 */
export class Access implements Asking {
  readonly maxAnswer: number;
  readonly #base: URL;
  readonly #http: Http;
  readonly #authOf: (credentials: Credentials | undefined) => Auth | undefined;
  #credentials: Credentials | undefined;
  #auth: Auth | undefined;
  readonly #requests = { push: 0, peerdoc: 0, other: 0 };
  #pushedBytes = 0;
  #introduction: Promise<void> | undefined;

  constructor({ base, http, credentials, maxAnswer, log, clock }: AccessOptions) {
    this.maxAnswer = maxAnswer;
    this.#base = base;
    this.#http = http;
    this.#authOf = (given) => given && new Auth({ credentials: given, origin: base, log, clock });
    this.#credentials = credentials;
    this.#auth = this.#authOf(credentials);
  }

  /**
   * Requests that begin from now on carry these credentials; those under way go on with the ones before.
   *
   * @returns whether they are others
   */
  authenticate(credentials: Credentials | undefined): boolean {
    const { username, password } = this.#credentials ?? {};
    if (credentials?.username === username && credentials?.password === password) return false;
    this.#credentials = credentials;
    this.#auth = this.#authOf(credentials);
    this.#introduction = undefined;
    return true;
  }

  get requests(): RequestCounts {
    return { ...this.#requests };
  }

  /** Of the bodies of pushes that began to be sent. */
  get pushedBytes(): number {
    return this.#pushedBytes;
  }

  url(path: string): string {
    return this.#base.origin + this.#path(path);
  }

  /** As `ask`, but as somebody without credentials, who takes a 401 for an answer. */
  async askAsStranger(request: PeerRequest): Promise<HttpAnswer> {
    return await this.#http.request(this.#onTheWire(request, undefined));
  }

  async ask(request: PeerRequest): Promise<HttpAnswer> {
    return await this.#admitted(
      request,
      (authorization) => this.#http.request(this.#onTheWire(request, authorization)),
      (answer) => answer,
    );
  }

  async stream<T>(
    request: StreamRequest,
    use: (answer: StreamedAnswer) => Promise<T>,
  ): Promise<T | undefined> {
    const maxBytes = request.maxBytes ?? this.maxAnswer;
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

  #path(below: string): string {
    return this.#base.pathname.replace(/\/+$/, '') + below;
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
    const auth = this.#auth;
    let authorized = 0;
    for (;;) {
      const used = auth?.authorize(request.method, this.#path(request.path));
      if (used !== undefined) authorized += 1;
      const sent = await send(used?.header);
      const answer = answerOf(sent);
      if (answer?.status !== 401) {
        if (used !== undefined || request.isProtected) auth?.admitted(used);
        return sent;
      }
      const again = auth?.refused(answer.headers['www-authenticate'], used) ?? false;
      if (!again || authorized === MOST_AUTHORIZED) throw refusedError(answer, auth !== undefined);
    }
  }

  #onTheWire(request: PeerRequest, authorization: string | undefined): HttpRequest {
    return {
      ...request,
      path: this.#path(request.path),
      authorization,
      onSend: () => {
        this.#requests[request.counted] += 1;
        if (request.counted === 'push') this.#pushedBytes += request.body?.length ?? 0;
      },
    };
  }

  /** Learns and answers the challenge of a protected page before a body goes there; one request for all who wait. */
  async #introduce({ path, signal }: PeerRequest): Promise<void> {
    if (this.#auth === undefined || this.#auth.settled) return;
    if (this.#introduction === undefined) this.#auth.renew();
    this.#introduction ??= this.#introduceTo(path);
    await unlessAborted(this.#introduction, signal, this.url(path));
  }

  #introduceTo(path: string): Promise<void> {
    const introduction = this.ask({
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
        // Other credentials may have come meanwhile, with an introduction of their own.
        if (this.#introduction === introduction) this.#introduction = undefined;
      });
    return introduction;
  }
}

/** Waits for work that others wait for too; the signal ends only the waiting. */
export async function unlessAborted<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
  url: string,
): Promise<T> {
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
    return await Promise.race([work, aborted]);
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}
