import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { rootCertificates } from 'node:tls';
import { buildConnector, Client, type Dispatcher, errors } from 'undici';
import type { Clock, Timer } from '../lib/clock.js';
import { messageOf, systemCode } from '../lib/errors.js';
import { EMBEDDED_HEADER, VERSION } from '../lib/process.js';
import type { PeerAccess, Weakness } from './access.js';
import {
  ACCEPT_RECORDS,
  type AnswerHead,
  type HttpAnswer,
  isSuccess,
  type StreamedAnswer,
  statusError,
  succeeded,
} from './answer.js';
import { Auth, type Credentials, parseChallenges } from './auth.js';
import { type Delivered, PeerError, type PeerErrorCode } from './errors.js';
import type { Body } from './form.js';

/** Requests put on the wire, those sent again included. */
export interface RequestCounts {
  readonly push: number;
  readonly peerdoc: number;
  /** All others: citations, shares and tables, pings, and requests that only learn or check the access. */
  readonly other: number;
}

export interface Timeouts {
  /** Until a connection stands, with TLS, in ms. */
  readonly connect: number;
  /** Without progress from there to the head of the answer, in ms. */
  readonly headers: number;
  /** Between two pieces of the answer, in ms. */
  readonly body: number;
  /**
   * For the whole exchange, in ms; one that is repeated for its access has it each time. An answer that is read while it
   * comes has 12 times as long.
   */
  readonly total: number;
}

/** One request of an endpoint. */
export interface PeerRequest {
  readonly counted: keyof RequestCounts;
  readonly method: 'GET' | 'POST';
  /** Path below the base URL and query, as they are sent. */
  readonly path: string;
  /** Whether only the administrator is let in. */
  readonly isProtected: boolean;
  /** Whether it never carries credentials, and a 401 is an answer like any other. */
  readonly isAnonymous?: boolean;
  /** Which forms of answer we like best. @default those that are read into records, JSON first */
  readonly accept?: string;
  readonly body?: Body | undefined;
  /** Besides those of every request; names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Bytes; an answer of success that turns out longer is refused. @default the client's maxAnswer */
  readonly maxBytes?: number | undefined;
  /** Whether the answer is read while it comes: one that breaks off does not say that the peer is away. */
  readonly isStreamed?: boolean;
}

export interface HttpOptions {
  /** `{base_url}` of the API. */
  readonly base: URL;
  /** Where connections lead, if not to the host and the port of `base`. */
  readonly socketPath: string | undefined;
  /** PEM text of certificates that are trusted besides the usual ones. */
  readonly ca: string | undefined;
  /** Undefined where none are configured. */
  readonly credentials: Credentials | undefined;
  readonly timeouts: Timeouts;
  /** Bytes of an answer that is read whole. */
  readonly maxAnswer: number;
  readonly clock: Clock;
  readonly access: PeerAccess;
}

/** By this the limit of the whole exchange is longer where the answer is read while it comes. */
const STREAM_TOTAL_FACTOR = 12;
/** The answer to a challenge, and to one more where the nonce had grown old. */
const MOST_AUTHORIZED = 2;

/**
 * The way to one peer: requests of known length below its base URL, with the access that it wants, counted; answers of
 * bounded length, whole or as they come.
 *
 * A request takes an idle connection or opens one. Redirects are answers like any other. No request is repeated because
 * its connection broke: idle connections are given up before the peer closes them, and whoever asks tries again anyway.
 *
 * Where credentials are configured, the first protected request that has a body is preceded by one without, so that
 * documents are sent once, and never with a wrong password. A request that is turned away is sent again with what the
 * answer asks for.
 */
export class Http {
  readonly #options: HttpOptions;
  readonly #requests = { push: 0, peerdoc: 0, other: 0 };
  #pushedBytes = 0;
  #ca: string | undefined;
  #credentials: Credentials | undefined;
  #auth: Auth | undefined;
  readonly #idle: Connection[] = [];
  readonly #all = new Set<Connection>();
  #isClosed = false;
  #isEmbedded: boolean | undefined;

  constructor(options: HttpOptions) {
    this.#options = options;
    this.#ca = options.ca;
    this.authenticate(options.credentials);
  }

  get requests(): RequestCounts {
    return { ...this.#requests };
  }

  /** Of the bodies of pushes that began to be sent. */
  get pushedBytes(): number {
    return this.#pushedBytes;
  }

  /** Whether the last answer was an embedded peer's; undefined as long as there was none that tells. */
  get isEmbedded(): boolean | undefined {
    return this.#isEmbedded;
  }

  /** The whole URL of a path below the base URL. */
  url(path: string): string {
    return this.#options.base.origin + this.#path(path);
  }

  /**
   * Requests that begin from now on carry these credentials; those under way go on with the ones before.
   *
   * @returns whether they are others
   */
  authenticate(credentials: Credentials | undefined): boolean {
    const { access, clock } = this.#options;
    const { username, password } = this.#credentials ?? {};
    if (credentials?.username === username && credentials?.password === password) return false;
    this.#credentials = credentials;
    this.#auth = credentials && new Auth(credentials, access, clock);
    return true;
  }

  /**
   * Connections from now on trust these certificates besides the usual ones. What is under way ends as it began.
   *
   * @returns whether they are others
   */
  trust(ca: string | undefined): boolean {
    if (ca === this.#ca) return false;
    this.#ca = ca;
    for (const connection of this.#idle.splice(0)) this.#drop(connection);
    return true;
  }

  /** Ends every connection; what is still under way is called off. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#all].map(({ client }) => client.destroy()));
  }

  /**
   * The whole answer, whatever its status, but for a 401 that cannot be answered.
   *
   * @throws PeerError PEER_UNREACHABLE, PEER_TIMEOUT, PEER_ANSWER (not HTTP, or encoded), PEER_ANSWER_TOO_LARGE,
   *   PEER_SOURCE, PEER_ABORTED, PEER_AUTH, PEER_AUTH_WEAK
   */
  async ask(request: PeerRequest): Promise<HttpAnswer> {
    return await this.#admitted(request, (exchange, head) => exchange.whole(head));
  }

  /**
   * Hands an answer of success (or 304) to `use` as it comes in; undefined for a 404. When `use` ends before the answer
   * does, the rest is not asked for.
   *
   * @throws PeerError for any other status; as `ask`; what `use` throws, also PEER_ANSWER where it reads what was cut short
   */
  async stream<T>(request: PeerRequest, use: (answer: StreamedAnswer) => Promise<T>): Promise<T | undefined> {
    return await this.#admitted({ ...request, isStreamed: true }, async (exchange, head) => {
      const { status } = head;
      const isUnchanged = status === 304 && request.headers !== undefined;
      if (isSuccess(status) || isUnchanged) return await use({ ...head, chunks: exchange.chunks() });
      const error = statusError(await exchange.whole(head));
      if (status === 404) return undefined;
      throw error;
    });
  }

  #path(below: string): string {
    return this.#options.base.pathname.replace(/\/+$/, '') + below;
  }

  /** Sends a request, and again with what its answer asks for: credentials. */
  async #admitted<T>(request: PeerRequest, use: Use<T>): Promise<T> {
    if (request.isProtected && request.body !== undefined) await this.#introduce(request);
    const auth = request.isAnonymous ? undefined : this.#auth;
    // A page that lets everyone in proves nothing.
    let needsAccess = request.isProtected;
    for (let authorized = 0; ; ) {
      const used = auth?.authorize(request.method, this.#path(request.path));
      if (used !== undefined) authorized += 1;
      const done = await this.#send(request, used?.header, async (exchange, head) => {
        if (head.status === 401 && !request.isAnonymous) {
          await exchange.whole(head);
          needsAccess = true;
          const outcome = await auth?.refused(head.headers['www-authenticate'], used);
          if (outcome === 'again' && authorized < MOST_AUTHORIZED) return undefined;
          throw typeof outcome === 'object'
            ? weakError(head, outcome)
            : refusedError(head, auth !== undefined);
        }
        if (needsAccess) await auth?.admitted(used);
        return { value: await use(exchange, head) };
      });
      if (done !== undefined) return done.value;
    }
  }

  /** Learns and answers the challenge of a protected page before a body goes there; one request for all who wait. */
  async #introduce({ path, signal }: PeerRequest): Promise<void> {
    const auth = this.#auth;
    if (auth === undefined || auth.isSettled) return;
    if (auth.introduction === undefined) auth.renew();
    auth.introduction ??= this.ask({ counted: 'other', method: 'GET', path, isProtected: true })
      .then((answer) => {
        if (statusError(answer)?.code === 'PEER_BUSY') succeeded(answer);
      })
      .finally(() => {
        auth.introduction = undefined;
      });
    await unlessAborted(auth.introduction, signal, this.url(path));
  }

  /** Sends a request once, and hands its answer to `use`. */
  async #send<T>(request: PeerRequest, authorization: string | undefined, use: Use<T>): Promise<T> {
    const { path, counted, accept = ACCEPT_RECORDS, body } = request;
    const headers = {
      ...request.headers,
      accept,
      'user-agent': `peersync/${VERSION}`,
      ...(authorization === undefined ? {} : { authorization }),
      ...(body === undefined ? {} : { 'content-type': body.type, 'content-length': String(body.length) }),
    };
    const connection = this.#idle.pop() ?? this.#open(path);
    const exchange = new Exchange(connection, request, this.url(path), this.#options, () => {
      this.#requests[counted] += 1;
      if (counted === 'push') this.#pushedBytes += body?.length ?? 0;
    });
    try {
      const head = await exchange.begin(this.#path(path), headers);
      this.#note(head);
      return await use(exchange, head);
    } finally {
      exchange.end();
      if (exchange.isWhole && connection.ca === this.#ca) this.#idle.push(connection);
      else this.#drop(connection);
    }
  }

  /** An error may be of what stands before the peer, and tells nothing of it. */
  #note({ headers, status }: AnswerHead): void {
    if (headers[EMBEDDED_HEADER] !== undefined) this.#isEmbedded = true;
    else if (status < 500 && status !== 429) this.#isEmbedded = false;
  }

  #open(path: string): Connection {
    if (this.#isClosed) throw calledOff(this.url(path), 'no');
    const connection = new Connection(this.#options, this.#ca);
    this.#all.add(connection);
    return connection;
  }

  #drop(connection: Connection): void {
    this.#all.delete(connection);
    void connection.client.destroy();
  }
}

/** Shorter than the idle limits of all servers known (2 to 9 s), so that none is closed under a request. */
const KEEP_ALIVE_MS = 1_000;
/** Bytes of an answer that may wait for their reader, beyond one piece. */
const MOST_WAITING = 128 * 1024;

/** What becomes of an answer whose head came. */
type Use<T> = (exchange: Exchange, head: AnswerHead) => Promise<T>;

/** One connection to the peer: opened when needed, kept for a short while. It carries one exchange at a time. */
class Connection {
  readonly client: Client;
  exchange: Exchange | undefined;
  #socket: Socket | undefined;

  constructor(
    { base, socketPath, timeouts }: HttpOptions,
    readonly ca: string | undefined,
  ) {
    const trusted = ca === undefined ? {} : { ca: [...rootCertificates, ca] };
    const connect = buildConnector({ timeout: timeouts.connect, socketPath: socketPath ?? null, ...trusted });
    this.client = new Client(base.origin, {
      connect: (to, callback) =>
        connect(to, (...result) => {
          if (result[0] === null && result[1] !== null) this.#adopt(result[1]);
          callback(...result);
        }),
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
    });
  }

  /** To be called when some of what was waiting was read. */
  drained(): void {
    this.#socket?.emit('readable');
  }

  /**
   * While much of an answer waits for its reader, no more is taken from the socket; then the operating systems' buffers
   * fill, and the peer waits. undici's own pausing (7.30) ends the process where an answer ends with its connection.
   */
  #adopt(socket: Socket): void {
    this.#socket = socket;
    socket.on('error', (error) => this.exchange?.onConnectionError(error));
    const read = socket.read.bind(socket);
    socket.read = (size) => (this.exchange?.isFull ? null : read(size));
  }
}

/** Where it fails says what the peer has: nothing, a part of the request, all of it, or even the time to answer. */
const PHASES = {
  connecting: { delivered: 'no', failure: 'cannot be reached' },
  sending: { delivered: 'no', failure: 'broke the connection while the request was sent (is it too large?)' },
  waiting: { delivered: 'maybe', failure: 'broke the connection without an answer' },
  receiving: { delivered: 'yes', failure: 'broke the connection in the middle of its answer' },
} as const;

/** As many bytes of an answer as an error shows. */
const BEGIN_BYTES = 1024;

/**
 * One request on one connection, and its answer.
 *
 * - `connecting`: no byte was sent; the connection has its own time limit.
 * - `sending`: the head went out, the body is not whole yet: nothing that the peer may act on.
 * - `waiting`: all was sent; each piece sent restarts the time limit for the answer's head.
 * - `receiving`: the head came and was handed over, the body follows as it is read. Each piece has its time limit while
 *   the reader waits for it.
 *
 * Whatever ends it early destroys its connection.
 */
class Exchange implements Dispatcher.DispatchHandler {
  /** Whether all of the answer came, so that the connection can carry another request. */
  isWhole = false;
  #phase: keyof typeof PHASES = 'connecting';
  readonly #began: number;
  readonly #total: Timer;
  #idle: Timer | undefined;
  #failure: PeerError | undefined;
  #head: AnswerHead | undefined;
  #start: Buffer | undefined;
  #received = 0;
  readonly #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #mostWaiting = MOST_WAITING;
  #wake = (): void => {};
  readonly #abort = (): void => this.#fail(calledOff(this.url, this.#delivered, this.request.signal?.reason));

  /** @param onSend called when the request is put on the wire */
  constructor(
    private readonly connection: Connection,
    private readonly request: PeerRequest,
    private readonly url: string,
    private readonly options: HttpOptions,
    private readonly onSend: () => void,
  ) {
    const { clock, timeouts } = options;
    this.#began = clock.now();
    const totalMs = timeouts.total * (request.isStreamed ? STREAM_TOTAL_FACTOR : 1);
    this.#total = clock.after(totalMs, () => this.#timeOut('a complete answer', totalMs));
  }

  /** Whether no more should come before some of the answer was read. */
  get isFull(): boolean {
    return this.#waitingBytes > this.#mostWaiting;
  }

  /** Sends the request and waits for the head of its answer. */
  async begin(path: string, headers: Record<string, string>): Promise<AnswerHead> {
    const { method, body, signal } = this.request;
    signal?.addEventListener('abort', this.#abort, { once: true });
    if (signal?.aborted) this.#abort();
    else {
      this.connection.exchange = this;
      const sent = body && (body.bytes ?? Readable.from(this.#pieces(body)));
      this.connection.client.dispatch({ method, path, headers, body: sent ?? null }, this);
    }
    while (this.#head === undefined) await this.#news();
    return this.#head;
  }

  /** All of the answer; of a refusal no more is read when it is longer than the limit. */
  async whole(head: AnswerHead): Promise<HttpAnswer> {
    const { maxAnswer } = this.options;
    const wasFull = this.isFull;
    this.#mostWaiting = maxAnswer;
    if (wasFull) this.connection.drained();
    while (!this.isWhole && !this.isFull) await this.#more();
    return { ...head, body: Buffer.concat(this.#waiting) };
  }

  /** The answer as it comes. */
  async *chunks(): AsyncGenerator<Buffer, void, undefined> {
    try {
      while (!this.isWhole || this.#waiting.length > 0) {
        if (this.#waiting.length === 0) await this.#more();
        if (this.#failure !== undefined) throw this.#failure;
        const wasFull = this.isFull;
        const chunk = this.#waiting.shift();
        this.#waitingBytes -= chunk?.length ?? 0;
        if (wasFull && !this.isFull) this.connection.drained();
        if (chunk !== undefined) yield chunk;
      }
    } finally {
      this.end();
    }
  }

  /** Nothing of it is waited for any more; without effect on one that is whole. */
  end(): void {
    if (this.connection.exchange === this) this.connection.exchange = undefined;
    this.#idle?.cancel();
    this.#total.cancel();
    this.request.signal?.removeEventListener('abort', this.#abort);
    if (!this.isWhole) this.#fail(calledOff(this.url, this.#delivered));
  }

  onRequestStart(): void {
    const { body } = this.request;
    this.#phase = body === undefined || body.bytes !== undefined ? 'waiting' : 'sending';
    this.#limit('an answer', this.options.timeouts.headers);
    this.onSend();
  }

  onResponseStart(_: unknown, status: number, headers: Dispatcher.ResponseData['headers']): void {
    if (status < 200 || this.#failure !== undefined) return;
    this.#phase = 'receiving';
    this.#idle?.cancel();
    const date = Date.parse(String(headers.date));
    const at = this.options.clock.now();
    this.#head = {
      ...{ url: this.url, status, headers, at, peerAt: Number.isNaN(date) ? undefined : date },
      ...{ tookMs: at - this.#began, delivered: this.#delivered },
    };
    const encoding = String(headers['content-encoding'] ?? '');
    if (isSuccess(status) && Number(headers['content-length']) > this.#maxBytes) this.#fail(this.#tooLarge());
    // An encoding that was not asked for would be taken for the content.
    else if (isSuccess(status) && !/^(identity)?$/i.test(encoding))
      this.#fail(this.#error('PEER_ANSWER', `answered in an encoding that was not asked for (${encoding})`));
    this.#wake();
  }

  onResponseData(_: unknown, chunk: Buffer): void {
    this.#idle?.cancel();
    this.#start ??= Buffer.from(chunk.subarray(0, BEGIN_BYTES));
    this.#received += chunk.length;
    if (isSuccess(this.#head?.status ?? 0) && this.#received > this.#maxBytes) this.#fail(this.#tooLarge());
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    this.#wake();
  }

  onResponseEnd(): void {
    this.isWhole = this.#failure === undefined;
    this.#idle?.cancel();
    this.#wake();
  }

  /** undici takes an answer that ends with its connection for whole also where that is reset (7.30). */
  onConnectionError(error: unknown): void {
    // Of a refusal the status says enough.
    const isCut = isSuccess(this.#head?.status ?? 0) && !this.isWhole;
    if (isCut && systemCode(error) === 'ECONNRESET') this.#fail(this.#errorOf(error));
  }

  onResponseError(_: unknown, error: unknown): void {
    this.#fail(this.#errorOf(error));
  }

  /** Waits until something came. @throws PeerError where the exchange failed */
  async #news(): Promise<void> {
    if (this.#failure === undefined)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Waits for more of the answer. */
  async #more(): Promise<void> {
    this.#limit('the rest of the answer', this.options.timeouts.body);
    await this.#news();
  }

  async *#pieces(body: Body): AsyncGenerator<Uint8Array> {
    let given = 0;
    for await (const chunk of body.chunks()) {
      given += chunk.length;
      if (this.#phase === 'sending') {
        if (given === body.length) this.#phase = 'waiting';
        this.#limit('an answer', this.options.timeouts.headers);
      }
      yield chunk;
    }
  }

  #limit(what: string, ms: number): void {
    this.#idle?.cancel();
    this.#idle = this.options.clock.after(ms, () => this.#timeOut(what, ms));
  }

  #timeOut(what: string, ms: number): void {
    this.#fail(this.#error('PEER_TIMEOUT', `did not give ${what} within ${ms} ms`));
  }

  /** The first failure is the one that counts. */
  #fail(error: PeerError): void {
    this.#failure ??= error;
    this.isWhole = false;
    void this.connection.client.destroy(this.#failure);
    this.#wake();
  }

  get #maxBytes(): number {
    return this.request.maxBytes ?? this.options.maxAnswer;
  }

  get #delivered(): Delivered {
    return this.request.body === undefined ? 'no' : PHASES[this.#phase].delivered;
  }

  #tooLarge(): PeerError {
    return this.#error('PEER_ANSWER_TOO_LARGE', `answered with more than ${this.#maxBytes} bytes`);
  }

  #error(code: PeerErrorCode, what: string, cause?: unknown, answer = this.#start): PeerError {
    const parts = { url: this.url, status: this.#head?.status, delivered: this.#delivered };
    return new PeerError(code, { ...parts, what, answer, cause });
  }

  #errorOf(error: unknown): PeerError {
    if (this.#failure !== undefined) return this.#failure;
    if (error instanceof PeerError) return error;
    if (error instanceof errors.ClientDestroyedError) return calledOff(this.url, this.#delivered, error);
    if (error instanceof errors.ConnectTimeoutError) {
      const what = `cannot be reached: no connection after ${this.options.timeouts.connect} ms`;
      return this.#error('PEER_TIMEOUT', what, error);
    }
    const isNoHttp = error instanceof errors.HTTPParserError || error instanceof errors.HeadersOverflowError;
    const shown = isNoHttp && 'data' in error && error.data ? Buffer.from(String(error.data)) : undefined;
    if (this.#phase !== 'receiving' && isNoHttp && (shown || error instanceof errors.HeadersOverflowError))
      return this.#error('PEER_ANSWER', `did not answer in HTTP (${error.message})`, error, shown);
    const isCutShort = this.#phase === 'receiving' && this.request.isStreamed;
    const what = `${PHASES[this.#phase].failure}: ${described(error)}`;
    // Where the peer went away, what it began to say does not matter.
    return isCutShort
      ? this.#error('PEER_ANSWER', what, error)
      : this.#error('PEER_UNREACHABLE', what, error, Buffer.alloc(0));
  }
}

/** Several attempts (IPv6, IPv4) come as one AggregateError without a text of its own. undici's own codes tell nobody anything. */
function described(error: unknown): string {
  const code = systemCode(error) ?? '';
  const messages = error instanceof AggregateError ? error.errors.map(messageOf) : [messageOf(error)];
  const text = [...new Set(messages)].filter(Boolean).join('; ') || code;
  return text.includes(code) || code.startsWith('UND_') ? text : `${text} (${code})`;
}

function calledOff(url: string, delivered: Delivered, cause?: unknown): PeerError {
  const what = 'is not waited for: the request was called off';
  return new PeerError('PEER_ABORTED', { url, what, delivered, cause });
}

/** The error for a 401 that cannot be answered, or not any more. */
function refusedError({ url, status, headers, delivered }: AnswerHead, hasCredentials: boolean): PeerError {
  const offered = parseChallenges(headers['www-authenticate']).map(({ scheme }) => scheme);
  let what = 'did not accept the user name and the password (401)';
  if (!hasCredentials) what = 'asks for a user name and a password (401), and none is configured';
  else if (!offered.includes('basic') && !offered.includes('digest'))
    what = `asks for a kind of access that is not spoken here (401, ${offered.join(', ') || 'no challenge'})`;
  return new PeerError('PEER_AUTH', { url, what, status, delivered });
}

/** The error for a 401 that would be answered, were that safe. */
function weakError({ url, status, delivered }: AnswerHead, { what, hint }: Weakness): PeerError {
  return new PeerError('PEER_AUTH_WEAK', { url, what, hint, status, delivered });
}

/** Waits for work that others wait for too; the signal ends only the waiting. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined, url: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(calledOff(url, 'no', signal?.reason));
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal?.removeEventListener('abort', stop));
  });
}
