import type { Socket } from 'node:net';
import { rootCertificates } from 'node:tls';
import type { Dispatcher, buildConnector as undici } from 'undici';
import type { Clock } from '../lib/clock.js';
import { buildConnector, Client } from './undici.js';

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
  #held = false;
  readonly #client: InstanceType<typeof Client>;

  constructor(options: ConnectOptions) {
    this.#client = new Client(options.origin, {
      connect: connector(options, (socket) => {
        this.#socket = socket;
        this.used = false;
        this.#obeyHold(socket);
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

  /**
   * Takes no more from the peer until `listen`; then the operating systems' buffers fill, and the peer waits. undici's
   * own pausing (7.30) ends the process where an answer ends with its connection.
   */
  hold(): void {
    this.#held = true;
  }

  listen(): void {
    if (!this.#held) return;
    this.#held = false;
    const socket = this.#socket;
    // Not at once: whoever calls may stand in the middle of a piece that is being parsed.
    queueMicrotask(() => socket?.emit('readable'));
  }

  #obeyHold(socket: Socket): void {
    const read = socket.read.bind(socket);
    socket.read = (size) => (this.#held ? null : read(size));
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#client.dispatch(options, handler);
  }

  async destroy(): Promise<void> {
    await this.#client.destroy();
  }
}

/** Connects with a time limit of our clock; undici's own rounds to about a second. */
function connector(options: ConnectOptions, connected: (socket: Socket) => void): undici.connector {
  const connect = buildConnector({
    timeout: 0,
    ...(options.ca === undefined ? {} : { ca: [...rootCertificates, options.ca] }),
  }) as (options: undici.Options, callback: undici.Callback) => Socket;
  return (to, callback) => {
    const socket = connect(to, (...result) => {
      limit.cancel();
      if (result[0] === null && result[1] !== null) connected(result[1]);
      callback(...result);
    });
    const limit = options.clock.after(options.connectMs, () => {
      socket.destroy(new ConnectTimeout(`no connection after ${options.connectMs} ms`));
    });
  };
}
