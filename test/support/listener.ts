import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer, Server as HttpsServer } from 'node:https';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterwards, type Life } from './afterwards.js';
import { deferred } from './wait.js';

/** A certificate with its key, as PEM text. */
export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

export interface ListenerOptions {
  /** @default 127.0.0.1 */
  readonly host?: string;
  /** Speaks https with this certificate. */
  readonly tls?: Certificate | undefined;
  readonly life?: Life | undefined;
}

/** Makes a server for `Listener`; with a certificate it speaks https. */
export function httpServer(answer: RequestListener, tls?: Certificate): Server {
  return tls === undefined ? createHttpServer(answer) : createHttpsServer(tls, answer);
}

/** Makes a server for `Listener` on the level of bytes. */
export function byteServer(talk: (socket: Socket) => void): Server {
  return createServer(talk);
}

/** A server at a port of its own, which a test can take down and up again. */
export abstract class Listener {
  /** The sockets of all connections, ended ones too. */
  readonly sockets: Socket[] = [];
  readonly #server: Server;
  readonly #host: string;
  readonly #scheme: string;
  #port = 0;

  protected constructor(server: Server, { host = '127.0.0.1', life = 'test' }: ListenerOptions) {
    this.#server = server;
    this.#host = host;
    this.#scheme = server instanceof HttpsServer ? 'https' : 'http';
    server.prependListener('connection', (socket: Socket) => {
      socket.on('error', () => {});
      this.sockets.push(socket);
    });
    afterwards(life, () => this.goDown());
  }

  /** Without a slash at the end. */
  get url(): string {
    return `${this.#scheme}://${this.#host}:${this.#port}`;
  }

  /** Listens; after `goDown` again at the same port. */
  async comeUp(): Promise<this> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject).listen(this.#port, this.#host, resolve);
    });
    this.#port = (this.#server.address() as AddressInfo).port;
    return this;
  }

  /** Breaks every connection and refuses new ones. */
  async goDown(): Promise<void> {
    const { promise, resolve } = deferred();
    if (this.#server.listening) this.#server.close(() => resolve());
    else resolve();
    this.breakConnections();
    await promise;
  }

  breakConnections(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  /** Accepts no more connections. Open ones stay. */
  stopListening(): void {
    this.#server.close();
  }

  /** Shows another certificate on new connections. */
  renewCertificate(renewed: Certificate): void {
    if (!(this.#server instanceof HttpsServer)) throw new Error('the server speaks no https');
    this.#server.setSecureContext(renewed);
  }

  /** The number of connections that came. */
  get connections(): number {
    return this.sockets.length;
  }

  /** The number of open connections. */
  get open(): number {
    return this.sockets.filter(({ destroyed }) => !destroyed).length;
  }
}
