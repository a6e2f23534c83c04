import { randomInt } from 'node:crypto';
import {
  Agent,
  createServer,
  type IncomingMessage,
  request as requestOf,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterwards, type Life } from './afterwards.js';

/** One request, whole, as it came. */
export interface Call {
  readonly method: string;
  readonly path: string;
  readonly body: Buffer;
  /** The URLs of the items of a push. */
  readonly urls: readonly string[];
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** What the real peer answers to it. */
  forward(): Promise<Answer>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** What becomes of a call. Undefined leaves it without an answer. */
export type Behaviour = (call: Call) => Answer | undefined | Promise<Answer | undefined>;

/** When a call came, and where to. */
export interface Seen {
  readonly at: number;
  readonly path: string;
  readonly urls: readonly string[];
}

/**
 * Stands before a real peer and is as troublesome as a test wants: by its `behaviour`, or by not being there at all
 * (`goDown`, `comeUp`; the address stays the same).
 */
export class TroublesomePeer {
  behaviour: Behaviour = well;
  readonly calls: Seen[] = [];
  readonly #target: string;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #server = createServer((request, response) => {
    this.#serve(request, response).catch(() => response.destroy());
  });
  /** One of its own, so that nobody else listens there while this does not. */
  readonly #host = `127.${randomInt(1, 255)}.${randomInt(256)}.${randomInt(1, 255)}`;
  #port = 0;

  private constructor(target: string) {
    this.#target = target;
  }

  static async start(target: string, life: Life = 'test'): Promise<TroublesomePeer> {
    const peer = new TroublesomePeer(target);
    await peer.comeUp();
    afterwards(life, async () => {
      await peer.goDown();
      peer.#agent.destroy();
    });
    return peer;
  }

  get url(): string {
    return `http://${this.#host}:${this.#port}`;
  }

  /** Listens; after `goDown` again at the same port. */
  async comeUp(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject).listen(this.#port, this.#host, resolve);
    });
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Breaks every connection and refuses new ones. */
  async goDown(): Promise<void> {
    if (!this.#server.listening) return;
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const at = performance.now();
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const { method = 'GET', url: path = '/' } = request;
    const urls = urlsOf(body);
    this.calls.push({ at, path, urls });
    const forward = () => this.#forward(request, body);
    const answer = await this.behaviour({ method, path, body, urls, request, response, forward });
    if (answer === undefined) return;
    response.writeHead(answer.status, answer.headers).end(answer.body);
  }

  #forward(request: IncomingMessage, body: Buffer): Promise<Answer> {
    const { method, url } = request;
    const headers = { ...request.headers, host: new URL(this.#target).host };
    return new Promise((resolve, reject) => {
      const call = requestOf(this.#target, { agent: this.#agent, method, headers, path: url }, (answer) => {
        const chunks: Buffer[] = [];
        answer
          .on('data', (chunk: Buffer) => chunks.push(chunk))
          .on('error', reject)
          .on('end', () => {
            const { 'transfer-encoding': _, connection: _c, ...rest } = answer.headers;
            const sent = Object.entries(rest).map(([name, value]) => [name, String(value)]);
            resolve({
              status: answer.statusCode ?? 502,
              headers: Object.fromEntries(sent),
              body: Buffer.concat(chunks),
            });
          });
      });
      call.on('error', reject).end(body);
    });
  }
}

function urlsOf(body: Buffer): string[] {
  const form = new URLSearchParams(body.toString('latin1'));
  return [...form].filter(([name]) => /^url-\d+$/.test(name)).map(([, url]) => url);
}

/** As the real peer. */
export const well: Behaviour = (call) => call.forward();

/** Takes every request and never says a word. */
export const silent: Behaviour = () => undefined;

/** Resets the connection instead of an answer. */
export const resetting: Behaviour = ({ request }) => {
  request.socket.resetAndDestroy();
  return undefined;
};

/** Does what it is asked, and breaks the connection in the middle of the answer. */
export const halfAnAnswer: Behaviour = async ({ forward, response }) => {
  const { status, headers, body } = await forward();
  response.writeHead(status, { ...headers, 'content-length': String(body.length + 100) });
  response.write(body.subarray(0, body.length / 2), () => response.socket?.destroy());
  return undefined;
};

/** Always the same answer. */
export function answering(
  status: number,
  body: string | Buffer = '',
  headers: Readonly<Record<string, string>> = {},
): Behaviour {
  return () => ({ status, headers, body: Buffer.from(body) });
}

/** As the real peer, but late. */
export function slow(ms: number): Behaviour {
  return async (call) => {
    await sleep(ms);
    return call.forward();
  };
}

/** As `behaviour` for pushes that contain a certain URL, else well. */
export function whenPushed(url: string, behaviour: Behaviour): Behaviour {
  return (call) => (call.urls.includes(url) ? behaviour(call) : well(call));
}

/** What a Java server shows when a program in it failed. */
export const STACK_TRACE = `<html><head><title>Error 500</title></head><body><h2>HTTP ERROR: 500</h2><pre>java.lang.NullPointerException
	at net.yacy.search.Switchboard.add(Switchboard.java:1871)
	at java.base/java.lang.Thread.run(Thread.java:840)
</pre></body></html>`;
export const BINARY = Buffer.from(Array.from({ length: 2_000 }, (_, i) => (i * 167) % 256));

/** As a peer whose password was changed: pages that need it refuse ours, the others work. */
export const otherPassword: Behaviour = (call) =>
  call.path.includes('_p.')
    ? {
        status: 401,
        headers: { 'www-authenticate': `Digest realm="peer", qop="auth", nonce="${Math.random()}"` },
        body: Buffer.from('who are you?'),
      }
    : well(call);
