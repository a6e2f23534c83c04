import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createNetServer, type Server, type Socket } from 'node:net';
import { PeerClient, type PeerClientOptions } from '../../src/peer/client.js';
import { afterwards } from '../support/afterwards.js';

export const LIMITS = { connect: 20_000, headers: 20_000, body: 20_000, total: 60_000 };

/** A client that is closed after the test. */
export function clientOf(baseUrl: string, options: Partial<PeerClientOptions> = {}): PeerClient {
  const client = new PeerClient({
    dialect: 'standard',
    baseUrl,
    timeouts: LIMITS,
    maxAnswer: 1024 * 1024,
    ...options,
  });
  afterwards('test', () => client.close());
  return client;
}

export interface Recorded {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** An HTTP server that keeps what it was asked. */
export class HttpServer {
  readonly requests: Recorded[] = [];
  readonly sockets = new Set<Socket>();
  connections = 0;
  url = '';
  #server = createServer();

  static async start(
    answer: (request: Recorded, response: ServerResponse, n: number) => void,
  ): Promise<HttpServer> {
    const server = new HttpServer();
    const listener: RequestListener = (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const recorded = {
          method: request.method ?? '',
          url: request.url ?? '',
          headers: request.headers,
          body: Buffer.concat(chunks).toString('latin1'),
        };
        server.requests.push(recorded);
        answer(recorded, response, server.requests.length - 1);
      });
    };
    server.#server = createServer(listener);
    // Whoever gives up an idle connection, it is the client.
    server.#server.keepAliveTimeout = 0;
    server.#server.on('connection', (socket) => {
      server.connections += 1;
      server.sockets.add(socket);
      socket.on('close', () => server.sockets.delete(socket));
      socket.on('error', () => {});
    });
    server.url = await listening(server.#server);
    return server;
  }

  get bodies(): string[] {
    return this.requests.map(({ body }) => body);
  }
}

/** A server of bytes: what it does with a connection is up to the test. */
export class RawServer {
  connections = 0;
  readonly sockets: Socket[] = [];
  url = '';
  #server = createNetServer();

  static async start(talk: (socket: Socket, n: number) => void): Promise<RawServer> {
    const server = new RawServer();
    server.#server = createNetServer((socket) => {
      socket.on('error', () => {});
      server.sockets.push(socket);
      server.connections += 1;
      talk(socket, server.connections - 1);
    });
    server.url = await listening(server.#server);
    return server;
  }

  /** Takes no connections any more; those that stand stay. */
  stopListening(): void {
    this.#server.close();
  }
}

async function listening(server: Server): Promise<string> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  afterwards(
    'test',
    () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  );
  return `http://127.0.0.1:${port}`;
}

/** A server of HTTP that answers so, and a client of it. */
export async function serving(
  answer: (request: Recorded, response: ServerResponse, n: number) => void,
  options: Partial<PeerClientOptions> = {},
): Promise<{ server: HttpServer; client: PeerClient }> {
  const server = await HttpServer.start(answer);
  return { server, client: clientOf(server.url, options) };
}

/** A server of bytes that does so with the socket of each whole request, and a client of it. */
export async function raw(
  answer: (socket: Socket, request: string, n: number) => unknown,
  options: Partial<PeerClientOptions> = {},
): Promise<{ server: RawServer; client: PeerClient }> {
  const server = await RawServer.start((socket) => onRequest(socket, (...asked) => answer(socket, ...asked)));
  return { server, client: clientOf(server.url, options) };
}

/** Calls `done` with each whole request (head and body) that comes on the socket. */
export function onRequest(socket: Socket, done: (request: string, n: number) => unknown): void {
  let text = '';
  let n = 0;
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
    for (;;) {
      const head = text.indexOf('\r\n\r\n');
      if (head === -1) return;
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
      const end = head + 4 + length;
      if (text.length < end) return;
      const request = text.slice(0, end);
      text = text.slice(end);
      done(request, n);
      n += 1;
    }
  });
}

/** An answer of HTTP/1.1 as bytes. */
export function http(body: string, head = 'HTTP/1.1 200 OK'): string {
  return `${head}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

export const ACCEPTED = '{"count":"1","successall":"true","countsuccess":1,"countfail":0}';
export const OK = { results: [{ ok: true }] };
export const ITEM = { url: 'https://docs.example.org/a.txt', collection: 'c', data: Buffer.from('hello') };

/** Text that is read piece by piece; counts how often. */
export class Pieces {
  readonly size: number;
  readonly pieces: readonly Buffer[];
  reads = 0;

  constructor(...pieces: readonly string[]) {
    this.pieces = pieces.map((piece) => Buffer.from(piece));
    this.size = this.pieces.reduce((sum, { length }) => sum + length, 0);
  }

  async *chunks(): AsyncGenerator<Uint8Array> {
    this.reads += 1;
    yield* this.pieces;
  }
}
