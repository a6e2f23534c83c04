import type { Socket } from 'node:net';
import { rootCertificates } from 'node:tls';
import { buildConnector, Client, type Dispatcher } from 'undici';
import type { Clock } from '../lib/clock.js';

/** Shorter than the idle limits of the servers known (5 to 9 s), so that seldom one is closed under a request. */
const KEEP_ALIVE_MS = 4_000;

/** A connection did not stand in time. */
export class ConnectTimeout extends Error {}

export interface ConnectOptions {
  readonly origin: string;
  /** PEM text of certificates that are trusted besides the usual ones. */
  readonly ca: string | undefined;
  readonly connectMs: number;
  readonly clock: Clock;
}

/**
 * One connection to the peer: opened by the first request, kept for a short while, opened again when needed.
 * It carries one request at a time.
 */
export class Connection {
  /** Whether the socket in use has carried an answer: then the peer may have closed it meanwhile. */
  used = false;
  #socket: Socket | undefined;
  readonly #client: Client;

  constructor(options: ConnectOptions) {
    this.#client = new Client(options.origin, {
      connect: connector(options, (socket) => {
        this.#socket = socket;
        this.used = false;
      }),
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
    });
  }

  /** Bytes received on the socket in use. */
  get bytesRead(): number {
    return this.#socket?.bytesRead ?? 0;
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#client.dispatch(options, handler);
  }

  async destroy(): Promise<void> {
    await this.#client.destroy();
  }
}

/** Connects with a time limit of our clock; undici's own rounds to about a second. */
function connector(options: ConnectOptions, connected: (socket: Socket) => void): buildConnector.connector {
  const connect = buildConnector({
    timeout: 0,
    ...(options.ca === undefined ? {} : { ca: [...rootCertificates, options.ca] }),
  }) as (options: buildConnector.Options, callback: buildConnector.Callback) => Socket;
  return (to, callback) => {
    const socket = connect(to, (...result) => {
      limit.cancel();
      if (result[1] !== null) connected(result[1]);
      callback(...result);
    });
    const limit = options.clock.after(options.connectMs, () => {
      socket.destroy(new ConnectTimeout(`no connection after ${options.connectMs} ms`));
    });
  };
}
