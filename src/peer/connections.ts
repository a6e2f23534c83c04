import { rootCertificates } from 'node:tls';
import { buildConnector, Client, type Dispatcher } from 'undici';
import type { ConnectionOptions } from './exchange-options.js';
import { type EndingExchange, workAroundDefects } from './undici-defects.js';

/**
 * Idle time after which a connection is closed, in ms. All known servers wait longer (2 to 9 s), so
 * that none of them closes a connection while a request is sent on it.
 */
const KEEP_ALIVE_MS = 1_000;

/** The handler of one request and its answer. */
export type ExchangeHandler = Dispatcher.DispatchHandler & EndingExchange;

/**
 * One connection to the peer. It carries one exchange at a time.
 *
 * The first request opens it. It closes when it was idle for a second, and the next request opens
 * it again. After `destroy` it stays closed.
 */
export class Connection {
  readonly #client: Client;
  #exchange: ExchangeHandler | undefined;

  /** @param ca certificates (PEM text) that are trusted besides the usual ones */
  constructor(
    { base, socketPath, timeouts }: ConnectionOptions,
    readonly ca: string | undefined,
  ) {
    const connect = buildConnector({
      timeout: timeouts.connect,
      socketPath: socketPath ?? null,
      ...(ca === undefined ? {} : { ca: [...rootCertificates, ca] }),
    });
    this.#client = new Client(base.origin, {
      connect: (target, callback) =>
        connect(target, (...result) => {
          const [error, socket] = result;
          if (error === null) workAroundDefects(socket, () => this.#exchange);
          callback(...result);
        }),
      // An exchange has its own limits, by the clock that it is given.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
    });
  }

  /** Sends a request. Its exchange is called with all that happens until `release`. */
  send(request: Dispatcher.DispatchOptions, exchange: ExchangeHandler): void {
    this.#exchange = exchange;
    this.#client.dispatch(request, exchange);
  }

  /** Forgets the exchange, and with it the answer that it holds. */
  release(): void {
    this.#exchange = undefined;
  }

  /** Closes the connection at once. The exchange fails with the reason. */
  async destroy(reason: Error | null = null): Promise<void> {
    await this.#client.destroy(reason);
  }
}

/**
 * The connections to one peer: idle ones, and those that carry an exchange.
 *
 * `take` returns the idle connection that was used last, or a new one. The caller returns each by
 * `giveBack` if it can carry another request, and by `drop` if it cannot.
 */
export class Connections {
  readonly #idle: Connection[] = [];
  readonly #all = new Set<Connection>();
  #isClosed = false;

  constructor(
    private readonly options: ConnectionOptions,
    private ca: string | undefined,
  ) {}

  /** Returns undefined after `close`. */
  take(): Connection | undefined {
    if (this.#isClosed) return undefined;
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    const connection = new Connection(this.options, this.ca);
    this.#all.add(connection);
    return connection;
  }

  giveBack(connection: Connection): void {
    if (connection.ca === this.ca) this.#idle.push(connection);
    else this.drop(connection);
  }

  drop(connection: Connection): void {
    this.#all.delete(connection);
    void connection.destroy();
  }

  /**
   * Sets the certificates that new connections trust besides the usual ones. Exchanges under way
   * end on the connections that they have.
   *
   * @returns whether the certificates are others than before
   */
  trust(ca: string | undefined): boolean {
    if (ca === this.ca) return false;
    this.ca = ca;
    for (const connection of this.#idle.splice(0)) this.drop(connection);
    return true;
  }

  /** Closes all connections at once. Exchanges under way fail with PEER_ABORTED. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#all].map((connection) => connection.destroy()));
  }
}
