import { EMBEDDED_HEADER, VERSION } from '../lib/process.js';
import type { PeerAccess } from './access.js';
import {
  ACCEPT_RECORDS,
  type AnswerHead,
  type HttpAnswer,
  isSuccess,
  type StreamedAnswer,
  statusError,
  succeeded,
} from './answer.js';
import { Auth, type Authorization, type Credentials } from './auth.js';
import { Connections } from './connections.js';
import { Exchange } from './exchange.js';
import { calledOff, refusedError, unlessAborted, weakError } from './exchange-errors.js';
import type { ConnectionOptions, ExchangeOptions, ExchangeRequest } from './exchange-options.js';
import { type FormField, formBody } from './form.js';

/** The numbers of requests that were sent. A request that is sent again counts again. */
export interface RequestCounts {
  readonly push: number;
  readonly peerdoc: number;
  /** All others: citations, shares, tables, pings, and requests that only authenticate. */
  readonly other: number;
}

/** One request of an endpoint. */
export interface PeerRequest extends ExchangeRequest {
  readonly counted: keyof RequestCounts;
  /** Path below the base URL and query, as they are sent. */
  readonly path: string;
  /** Whether the path needs the administrator's access. */
  readonly isProtected: boolean;
  /** Whether it never carries credentials, and a 401 is an answer like any other. */
  readonly isAnonymous?: boolean;
  /**
   * The accepted media types, preferred ones first.
   *
   * @default those that can be read into records, JSON first
   */
  readonly accept?: string;
  /** Additional headers. Names are in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The part of a request that depends on the dialect. */
export type EndpointRequest = Pick<PeerRequest, 'method' | 'path' | 'body'>;

/** Returns a POST of these fields as a form. */
export async function formRequest(
  path: string,
  fields: readonly FormField[],
  urlOf: (path: string) => string,
): Promise<EndpointRequest> {
  return { method: 'POST', path, body: await formBody(fields, urlOf(path)) };
}

export interface HttpOptions extends ConnectionOptions, ExchangeOptions {
  /** `{base_url}` of the API. */
  readonly base: URL;
  readonly timeouts: ExchangeOptions['timeouts'];
  /** Certificates (PEM text) that are trusted besides the usual ones. */
  readonly ca: string | undefined;
  /** Undefined if none are configured. */
  readonly credentials: Credentials | undefined;
  readonly access: PeerAccess;
}

/**
 * The most times that a request is sent with credentials. The second time is for a nonce that was
 * too old.
 */
const MAX_AUTHORIZED = 2;
const USER_AGENT = `peersync/${VERSION}`;

/** Reads an answer whose headers have arrived. */
type Use<T> = (exchange: Exchange, head: AnswerHead) => Promise<T>;
/** Reads a successful answer while it arrives. */
type StreamUse<T> = (answer: StreamedAnswer) => Promise<T>;

/**
 * Sends requests to one peer, below its base URL. An answer is returned whole, or streamed in
 * bounded memory.
 *
 * A request takes an idle connection or opens one. A redirect is an answer like any other. If the
 * connection of a request breaks, the request fails: its caller decides whether to repeat it.
 *
 * If the answer to a request is a 401, the request is sent again with the credentials that the
 * answer asks for. The first protected request that has a body is preceded by one without a body. A
 * batch of documents is therefore sent once, and never with a wrong password.
 */
export class Http {
  readonly #options: HttpOptions;
  readonly #origin: string;
  readonly #basePath: string;
  readonly #connections: Connections;
  readonly #requests = { push: 0, peerdoc: 0, other: 0 };
  #pushedBytes = 0;
  #credentials: Credentials | undefined;
  #auth: Auth | undefined;
  #isEmbedded: boolean | undefined;

  constructor(options: HttpOptions) {
    this.#options = options;
    this.#origin = options.base.origin;
    this.#basePath = options.base.pathname.replace(/\/+$/, '');
    this.#connections = new Connections(options, options.ca);
    this.authenticate(options.credentials);
  }

  get requests(): RequestCounts {
    return { ...this.#requests };
  }

  /** The bytes of all push bodies whose sending began. */
  get pushedBytes(): number {
    return this.#pushedBytes;
  }

  /** Whether an embedded peer sent the last answer; undefined until an answer shows it. */
  get isEmbedded(): boolean | undefined {
    return this.#isEmbedded;
  }

  /** Returns the whole URL of a path below the base URL. */
  url(path: string): string {
    return this.#origin + this.#basePath + path;
  }

  /**
   * Sets the credentials of requests that begin from now on. Requests under way keep theirs.
   *
   * @returns whether the credentials are others than before
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
   * Sets the certificates that new connections trust besides the usual ones. Requests under way end
   * on the connections that they have.
   *
   * @returns whether the certificates are others than before
   */
  trust(ca: string | undefined): boolean {
    return this.#connections.trust(ca);
  }

  /** Closes all connections. Requests under way, and later ones, fail with PEER_ABORTED. */
  async close(): Promise<void> {
    await this.#connections.close();
  }

  /**
   * Returns the whole answer with any status. Only a 401 that cannot be answered is an error.
   *
   * @throws PeerError PEER_UNREACHABLE, PEER_TIMEOUT, PEER_ANSWER (not HTTP, or encoded),
   *   PEER_ANSWER_TOO_LARGE, PEER_SOURCE, PEER_ABORTED, PEER_AUTH, PEER_AUTH_WEAK
   */
  async ask(request: PeerRequest): Promise<HttpAnswer> {
    return await this.#sendAuthenticated(request, (exchange, head) => exchange.whole(head));
  }

  /**
   * Passes a successful answer (or a 304) to `use` while it arrives. Returns undefined for a 404.
   * If `use` ends early, the rest is not read.
   *
   * @throws PeerError as `ask`, and for any other status; whatever `use` throws, which includes
   *   PEER_ANSWER if the answer breaks off
   */
  async stream<T>(request: PeerRequest, use: StreamUse<T>): Promise<T | undefined> {
    return await this.#sendAuthenticated(
      { ...request, isStreamed: true },
      async (exchange, head) => {
        const { status } = head;
        const isUnchanged = status === 304 && request.headers !== undefined;
        const isUsable = isSuccess(status) || isUnchanged;
        if (isUsable) return await use({ ...head, chunks: exchange.chunks() });
        const error = statusError(await exchange.whole(head));
        if (status === 404) return undefined;
        throw error;
      },
    );
  }

  /** Sends a request, and again with credentials if its answer asks for them. */
  async #sendAuthenticated<T>(request: PeerRequest, use: Use<T>): Promise<T> {
    if (request.isProtected && request.body !== undefined) await this.#authenticateFirst(request);
    const auth = request.isAnonymous ? undefined : this.#auth;
    const path = this.#basePath + request.path;
    // A page that lets everyone in proves nothing about the credentials.
    let needsAccess = request.isProtected;
    for (let authorized = 0; ; ) {
      const used = auth?.authorize(request.method, path);
      if (used !== undefined) authorized += 1;
      const exchange = this.#exchange(request);
      try {
        const head = await exchange.begin(path, headersOf(request, used));
        this.#note(head);
        if (head.status !== 401 || request.isAnonymous) {
          if (needsAccess) await auth?.accepted(used);
          return await use(exchange, head);
        }
        needsAccess = true;
        await exchange.whole(head);
        await learnChallenge(auth, head, used, authorized < MAX_AUTHORIZED);
      } finally {
        this.#finish(exchange);
      }
    }
  }

  /**
   * Learns and answers the challenge of a protected page before a body is sent there. All requests
   * that begin meanwhile wait for the same handshake.
   */
  async #authenticateFirst({ path, signal }: PeerRequest): Promise<void> {
    const auth = this.#auth;
    if (auth === undefined || auth.isSettled) return;
    if (auth.handshake === undefined) auth.renew();
    auth.handshake ??= this.#requestAccess(path).finally(() => {
      auth.handshake = undefined;
    });
    await unlessAborted(auth.handshake, signal, this.url(path));
  }

  /** @throws PeerError as `ask`, and if the peer is busy */
  async #requestAccess(path: string): Promise<void> {
    const answer = await this.ask({ counted: 'other', method: 'GET', path, isProtected: true });
    if (statusError(answer)?.code === 'PEER_BUSY') succeeded(answer);
  }

  /**
   * Records which kind of peer answered. Errors are ignored, because a proxy may have sent them.
   */
  #note({ headers, status }: AnswerHead): void {
    if (headers[EMBEDDED_HEADER] !== undefined) this.#isEmbedded = true;
    else if (status < 500 && status !== 429) this.#isEmbedded = false;
  }

  /** Takes a connection for an exchange. `#finish` returns it. */
  #exchange(request: PeerRequest): Exchange {
    const { path, counted, body, signal } = request;
    const url = this.url(path);
    if (signal?.aborted) throw calledOff(url, 'no', signal.reason);
    const connection = this.#connections.take();
    if (connection === undefined) throw calledOff(url, 'no');
    return new Exchange(connection, request, url, this.#options, () => {
      this.#requests[counted] += 1;
      if (counted === 'push') this.#pushedBytes += body?.length ?? 0;
    });
  }

  #finish(exchange: Exchange): void {
    exchange.end();
    if (exchange.isWhole) this.#connections.giveBack(exchange.connection);
    else this.#connections.drop(exchange.connection);
  }
}

function headersOf(
  { headers, accept = ACCEPT_RECORDS, body }: PeerRequest,
  used: Authorization | undefined,
): Record<string, string> {
  const all: Record<string, string> = { ...headers, accept, 'user-agent': USER_AGENT };
  if (used !== undefined) all.authorization = used.header;
  if (body !== undefined) {
    all['content-type'] = body.type;
    all['content-length'] = String(body.length);
  }
  return all;
}

/**
 * Learns the challenge of a 401, so that the request can be sent again.
 *
 * @param used the credentials that the request carried, if any
 * @param mayRepeat whether the request may be sent once more
 * @throws PeerError PEER_AUTH, PEER_AUTH_WEAK if that cannot help
 */
async function learnChallenge(
  auth: Auth | undefined,
  head: AnswerHead,
  used: Authorization | undefined,
  mayRepeat: boolean,
): Promise<void> {
  const outcome = await auth?.refused(head.headers['www-authenticate'], used);
  if (outcome === 'again' && mayRepeat) return;
  if (typeof outcome === 'object') throw weakError(head, outcome);
  throw refusedError(head, auth !== undefined);
}
