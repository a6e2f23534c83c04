import { type IncomingHttpHeaders, Server as PlainServer, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Digest, type DigestRules } from './digest.js';
import { byteServer, httpServer, Listener, type ListenerOptions } from './listener.js';

/** A request as it came. */
export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** One character a byte. */
  readonly body: string;
}

/** Answers the n-th request, with 0 for the first one. */
export type HttpAnswer = (request: HttpRequest, response: ServerResponse, n: number) => void;

export interface HttpPeerOptions extends ListenerOptions {
  /** Asks for the password of CREDENTIALS by Digest; only requests that have it are answered. */
  readonly digest?: Partial<DigestRules> | undefined;
}

/**
 * The fake peer over HTTP: a test scripts each answer, or each byte of it (`raw`), and the peer
 * records its requests. It never closes an idle connection, so the client must. Whole programs have
 * a `ScriptedPeer` instead, which stands before a real one.
 */
export class HttpPeer extends Listener {
  readonly requests: HttpRequest[] = [];
  readonly #digest: Digest | undefined;

  private constructor(
    server: ReturnType<typeof httpServer>,
    { digest, ...options }: HttpPeerOptions = {},
  ) {
    super(server, options);
    this.#digest = digest && new Digest(digest);
  }

  static async start(answer: HttpAnswer, options: HttpPeerOptions = {}): Promise<HttpPeer> {
    const server = httpServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { method = '', url = '', headers } = request;
        const body = Buffer.concat(chunks).toString('latin1');
        peer.#answer({ method, url, headers, body }, response, answer);
      });
    }, options.tls);
    if (server instanceof PlainServer) server.keepAliveTimeout = 0;
    const peer = new HttpPeer(server, options);
    return await peer.comeUp();
  }

  /** Starts a server on the level of bytes. The test handles each connection. */
  static async raw(talk: (socket: Socket) => void): Promise<HttpPeer> {
    return await new HttpPeer(byteServer(talk)).comeUp();
  }

  get digest(): Digest {
    if (this.#digest === undefined) throw new Error('the peer does not ask for Digest');
    return this.#digest;
  }

  #answer(request: HttpRequest, response: ServerResponse, answer: HttpAnswer): void {
    const n = this.requests.push(request) - 1;
    const challenge = this.#digest?.challenge(request);
    if (challenge === undefined) answer(request, response, n);
    else response.writeHead(401, { 'www-authenticate': challenge }).end('no');
  }
}

/** Calls `done` with each complete request (head and body) on the socket. */
export function onRequest(socket: Socket, done: (request: string, n: number) => unknown): void {
  let text = '';
  let n = 0;
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
    for (;;) {
      const head = text.indexOf('\r\n\r\n');
      if (head === -1) return;
      const end = head + 4 + Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
      if (text.length < end) return;
      const request = text.slice(0, end);
      text = text.slice(end);
      done(request, n);
      n += 1;
    }
  });
}

/** Returns an HTTP/1.1 answer as bytes. */
export function http(body: string, head = 'HTTP/1.1 200 OK'): string {
  return `${head}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
