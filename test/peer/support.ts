import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import {
  type AddressInfo,
  createServer as createNetServer,
  type Server,
  type Socket,
} from 'node:net';
import fc from 'fast-check';
import type { HttpAnswer } from '../../src/peer/answer.js';
import { PeerClient } from '../../src/peer/client.js';
import type { PeerClientOptions } from '../../src/peer/client-options.js';
import { afterwards } from '../support/afterwards.js';

/** An answer as the HTTP layer returns it. */
export function answerOf(body: string | Buffer, more: Partial<HttpAnswer> = {}): HttpAnswer {
  return {
    url: 'http://peer.example.org/api/push_p.html',
    status: 200,
    headers: {},
    at: 1_000,
    body: Buffer.from(body as string),
    peerAt: undefined,
    tookMs: 5,
    delivered: 'yes',
    ...more,
  };
}

/** Returns the recorded body of a real peer's answer. */
export function realAnswer(name: string): Buffer {
  return readFileSync(new URL(`../wire/recorded/yacy-1.92/${name}`, import.meta.url));
}

/** Returns the code and the message of the error, or the result without one. */
export async function refusalOf(read: () => unknown): Promise<string> {
  try {
    return `no error: ${JSON.stringify(await read())}`;
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return `${code} ${message}`;
  }
}

/** Any character. The unit `binary` of fast-check takes a second to build. */
export const ANY_CHARACTER = fc
  .integer({ min: 0, max: 0x10f7ff })
  .map((n) => String.fromCodePoint(n < 0xd800 ? n : n + 0x800));

export const ACCEPTED = '{"count":"1","successall":"true","countsuccess":1,"countfail":0}';
export const OK = { results: [{ ok: true }] };
export const ITEM = {
  url: 'https://docs.example.org/a.txt',
  collection: 'c',
  data: Buffer.from('hello'),
};

/** A client that is closed after the test. */
export function clientOf(baseUrl: string, options: Partial<PeerClientOptions> = {}): PeerClient {
  const timeouts = { connect: 20_000, headers: 20_000, body: 20_000, total: 60_000 };
  const client = new PeerClient({
    dialect: 'standard',
    baseUrl,
    timeouts,
    maxAnswer: 1024 * 1024,
    ...options,
  });
  afterwards('test', () => client.close());
  return client;
}

export interface Recorded {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

type Answer = (request: Recorded, response: ServerResponse, n: number) => void;

/** A server that runs until the test ends, and records its requests. */
export class TestServer {
  /** The HTTP requests. */
  readonly requests: Recorded[] = [];
  /** All bytes that arrived. */
  readonly sockets: Socket[] = [];
  url = '';

  private constructor(private readonly server: Server) {}

  static async http(answer: Answer): Promise<TestServer> {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { method = '', url = '', headers } = request;
        const recorded = { method, url, headers, body: Buffer.concat(chunks).toString('latin1') };
        answer(recorded, response, it.requests.push(recorded) - 1);
      });
    });
    // The server never closes an idle connection, so the client must.
    server.keepAliveTimeout = 0;
    const it = new TestServer(server);
    return await it.#listening();
  }

  /** Starts a server on the level of bytes. The test handles each connection. */
  static async raw(talk: (socket: Socket) => void): Promise<TestServer> {
    return await new TestServer(createNetServer(talk)).#listening();
  }

  async #listening(): Promise<this> {
    this.server.prependListener('connection', (socket: Socket) => {
      socket.on('error', () => {});
      this.sockets.push(socket);
    });
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    afterwards('test', () => {
      for (const socket of this.sockets) socket.destroy();
      this.server.close();
    });
    this.url = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    return this;
  }

  get connections(): number {
    return this.sockets.length;
  }

  /** The open connections. */
  get open(): number {
    return this.sockets.filter(({ destroyed }) => !destroyed).length;
  }

  /** Accepts no more connections. Open ones stay. */
  stopListening(): void {
    this.server.close();
  }
}

/** Starts an HTTP server with this answer, and a client of it. */
export async function serving(answer: Answer, options: Partial<PeerClientOptions> = {}) {
  const server = await TestServer.http(answer);
  return { server, client: clientOf(server.url, options) };
}

/** Starts a server that calls this with the socket of each complete request, and a client of it. */
export async function raw(
  answer: (socket: Socket, request: string, n: number) => unknown,
  options: Partial<PeerClientOptions> = {},
) {
  const server = await TestServer.raw((socket) =>
    onRequest(socket, (...asked) => answer(socket, ...asked)),
  );
  return { server, client: clientOf(server.url, options) };
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

export const CREDENTIALS = { username: 'Jürgen', password: 'sécret:"x"' };
const REALM = 'Administrators only. If you don\'t know the password, ask for "it", <politely> \\o/';

/** Returns the parameters of a header, unquoted. */
export function parameters(header = ''): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [, name = '', quoted, token] of header.matchAll(
    /([\w*]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))/g,
  ))
    found[name] = token ?? (quoted ?? '').replace(/\\(.)/g, '$1');
  return found;
}

/**
 * A server that checks Digest as RFC 7616 says: every nonce is its own, every count is used once.
 */
export class DigestServer {
  password = CREDENTIALS.password;
  /** The counts that were used with each nonce. */
  readonly nonces = new Map<string, Set<string>>();
  #issued = 0;

  private constructor(
    readonly http: TestServer,
    private readonly rules: { algorithm: string; qop: string; uses: number; saysStale: boolean },
  ) {}

  /**
   * @param given `uses`: how often a nonce may be used; `saysStale`: whether it is told when one
   *   has grown old
   */
  static async start(given: Partial<DigestServer['rules']> = {}): Promise<DigestServer> {
    const rules = { algorithm: 'MD5', qop: 'auth', uses: Infinity, saysStale: true, ...given };
    const http = await TestServer.http((request, response) => server.#answer(request, response));
    const server = new DigestServer(http, rules);
    return server;
  }

  get url(): string {
    return this.http.url;
  }

  /**
   * The requests in short form: `GET -` without credentials, `POST 1` with the count of its nonce.
   */
  get log(): string[] {
    return this.http.requests.map(({ method, headers: { authorization } }) => {
      const { nc } = parameters(authorization);
      const count = nc === undefined ? 'old' : Number.parseInt(nc, 16);
      return `${method} ${authorization === undefined ? '-' : count}`;
    });
  }

  #answer(request: Recorded, response: ServerResponse): void {
    const judged = this.#judge(request);
    if (judged === 'in') {
      response.end(request.method === 'GET' ? '<p>Push</p>' : ACCEPTED);
      return;
    }
    this.#issued += 1;
    const nonce = `nonce+${this.#issued}/=`;
    this.nonces.set(nonce, new Set());
    const { algorithm, qop, saysStale } = this.rules;
    const realm = REALM.replace(/["\\]/g, '\\$&');
    const parts = [
      `realm="${realm}"`,
      'domain=""',
      `nonce="${nonce}"`,
      'opaque="o,p"',
      `algorithm=${algorithm}`,
    ];
    if (qop !== '') parts.push(`qop="${qop}"`);
    if (saysStale) parts.push(`stale=${judged === 'stale'}`);
    response.writeHead(401, { 'www-authenticate': `Digest ${parts.join(', ')}` }).end('no');
  }

  #judge({ method, url, headers: { authorization } }: Recorded): 'in' | 'wrong' | 'stale' {
    const {
      username,
      realm,
      nonce = '',
      uri,
      response,
      nc,
      cnonce,
      qop,
      opaque,
    } = parameters(authorization);
    const h = (text: string) =>
      createHash(this.rules.algorithm === 'SHA-256' ? 'sha256' : 'md5')
        .update(text)
        .digest('hex');
    const use = this.rules.qop === '' ? nonce : `${nonce}:${nc}:${cnonce}:${qop}`;
    const expected = h(
      `${h(`${CREDENTIALS.username}:${REALM}:${this.password}`)}:${use}:${h(`${method}:${url}`)}`,
    );
    const isNamed = Buffer.from(username ?? '', 'latin1').toString() === CREDENTIALS.username;
    const isRight = isNamed && realm === REALM && uri === url && opaque === 'o,p';
    const used = this.nonces.get(nonce);
    if (!isRight || response !== expected || used?.has(nc ?? '')) return 'wrong';
    if (used === undefined || used.size >= this.rules.uses) return 'stale';
    used.add(nc ?? `${used.size}`);
    return 'in';
  }
}
