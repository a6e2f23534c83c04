import { createHash } from 'node:crypto';
import {
  Agent,
  createServer,
  type IncomingMessage,
  request as requestOf,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterwards, type Life } from './afterwards.js';

/** One item of a push, as it travelled. */
export interface PushedItem {
  readonly url: string;
  readonly collection: string;
  /** sha256 of the text. */
  readonly digest: string;
}

/** One request as it came, and how it was answered. */
export interface Recorded {
  readonly path: string;
  readonly form: URLSearchParams;
  /** What a push brought. */
  readonly items: readonly PushedItem[];
  /** Undefined until it is answered. */
  status: number | undefined;
}

/** Answers in the peer's place, or leaves it to the peer by returning false. */
export type Intercept = (request: Recorded, response: ServerResponse) => boolean;

/** Stands before a peer, hands everything on unchanged, and keeps what was asked. */
export class RecordingProxy {
  readonly requests: Recorded[] = [];
  /** The peer's address; may be changed when the peer comes back elsewhere. */
  target: string;
  intercept: Intercept = () => false;
  /** Called with what is about to be handed on; held back until it resolves. */
  beforeHanding: (request: Recorded) => void | Promise<void> = () => {};
  /** Called with what the peer has answered, before anything of it is handed on; held back until it resolves. */
  beforeAnswer: (request: Recorded, answer: string) => void | Promise<void> = () => {};
  url = '';
  readonly #server: Server;
  readonly #agent = new Agent({ keepAlive: true });

  private constructor(target: string) {
    this.target = target;
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
  }

  static async start(target: string, life: Life = 'test'): Promise<RecordingProxy> {
    const proxy = new RecordingProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    proxy.url = `http://127.0.0.1:${(proxy.#server.address() as AddressInfo).port}`;
    afterwards(life, () => proxy.close());
    return proxy;
  }

  /** Requests that brought items, whatever became of them; one that only asks to be let in brings none. */
  get pushes(): readonly Recorded[] {
    return this.requests.filter(({ items }) => items.length > 0);
  }

  get lookups(): readonly Recorded[] {
    return this.requests.filter(({ path }) => path.startsWith('/api/peerdoc'));
  }

  async close(): Promise<void> {
    this.#agent.destroy();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bodyOf(request);
    const [path = '', query = ''] = (request.url ?? '').split('?');
    const form = new URLSearchParams(body.length > 0 ? body.toString('latin1') : query);
    const recorded: Recorded = { path, form, items: itemsOf(form), status: undefined };
    this.requests.push(recorded);
    if (this.intercept(recorded, response)) {
      recorded.status = response.statusCode;
      return;
    }
    await this.beforeHanding(recorded);
    const answer = await this.#forward(request, body);
    const text = await bodyOf(answer);
    recorded.status = answer.statusCode;
    await this.beforeAnswer(recorded, text.toString());
    response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
    response.end(text);
  }

  #forward({ method, url, rawHeaders }: IncomingMessage, body: Buffer): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const options = { agent: this.#agent, method, headers: rawHeaders, path: url };
      const call = requestOf(this.target, options, resolve);
      call.on('error', reject);
      call.end(body);
    });
  }
}

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function itemsOf(form: URLSearchParams): PushedItem[] {
  const items: PushedItem[] = [];
  for (let i = 0; form.has(`url-${i}`); i += 1) {
    const digest = createHash('sha256')
      .update(form.get(`data-${i}`) ?? '')
      .digest('hex');
    items.push({ url: form.get(`url-${i}`) ?? '', collection: form.get(`collection-${i}`) ?? '', digest });
  }
  return items;
}
