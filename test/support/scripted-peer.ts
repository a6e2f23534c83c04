import { createHash, randomInt } from 'node:crypto';
import { Agent, type IncomingMessage, request as requestOf, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { EMBEDDED_HEADER } from '../../src/lib/process.js';
import { afterwards } from './afterwards.js';
import { httpServer, Listener, type ListenerOptions } from './listener.js';

/** One item of a push, as it travelled. */
export interface PushedItem {
  readonly url: string;
  readonly collection: string;
  /** sha256 of the text. */
  readonly digest: string;
}

/** One request as it came, and how it was answered. */
export interface Recorded {
  /** Steady time, in ms. */
  readonly at: number;
  /** Without the query. */
  readonly path: string;
  /** The fields of the body, or of the query where there is none. */
  readonly form: URLSearchParams;
  /** The items of a push. */
  readonly items: readonly PushedItem[];
  /** The URLs of the items. */
  readonly urls: readonly string[];
  /** Undefined until the real peer or the behaviour has answered. */
  status: number | undefined;
}

/** A request that waits for its answer. */
export interface Call extends Recorded {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Returns the answer of the real peer to the call. */
  forward(): Promise<Answer>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

type ScriptedOptions = Pick<ListenerOptions, 'tls' | 'life'>;

/** Answers a call. Undefined leaves the call without an answer. */
export type Behaviour = (call: Call) => Answer | undefined | Promise<Answer | undefined>;

/**
 * The fake peer of whole programs: it stands before a real peer, records what is asked, and does
 * what a test scripts: by its `behaviour`, or by not being there at all (`goDown`, `comeUp`; the
 * address stays the same). By default it hands everything on unchanged.
 */
export class ScriptedPeer extends Listener {
  behaviour: Behaviour = well;
  readonly requests: Recorded[] = [];
  readonly #target: string;
  readonly #agent = new Agent({ keepAlive: true });

  private constructor(
    target: string,
    server: ReturnType<typeof httpServer>,
    options: ListenerOptions,
  ) {
    super(server, options);
    this.#target = target;
  }

  static async start(target: string, { tls, life = 'test' }: ScriptedOptions = {}) {
    const server = httpServer((request, response) => {
      peer.#serve(request, response).catch(() => response.destroy());
    }, tls);
    // A host of its own, so that nobody else listens there while this peer does not. A certificate
    // is for one host only.
    const own = `127.${randomInt(1, 255)}.${randomInt(256)}.${randomInt(1, 255)}`;
    const peer = new ScriptedPeer(target, server, { life, ...(tls ? {} : { host: own }) });
    afterwards(life, () => peer.#agent.destroy());
    return await peer.comeUp();
  }

  /**
   * Requests that brought items, whatever became of them; one that only asks to be let in brings
   * none.
   */
  get pushes(): readonly Recorded[] {
    return this.requests.filter(({ items }) => items.length > 0);
  }

  get lookups(): readonly Recorded[] {
    return this.requests.filter(({ path }) => path.startsWith('/api/peerdoc'));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const at = performance.now();
    const body = await bodyOf(request);
    const [path = '', query = ''] = (request.url ?? '').split('?');
    const form = new URLSearchParams(body.length > 0 ? body.toString('latin1') : query);
    const items = itemsOf(form);
    const recorded: Recorded = {
      at,
      path,
      form,
      items,
      urls: items.map(({ url }) => url),
      status: undefined,
    };
    this.requests.push(recorded);
    const forward = async () => {
      const answer = await this.#forward(request, body);
      recorded.status = answer.status;
      return answer;
    };
    const answer = await this.behaviour({ ...recorded, request, response, forward });
    if (answer === undefined) return;
    recorded.status = answer.status;
    response.writeHead(answer.status, answer.headers).end(answer.body);
  }

  async #forward({ method, url, headers }: IncomingMessage, body: Buffer): Promise<Answer> {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const toTarget = { ...headers, host: new URL(this.#target).host };
      const options = { agent: this.#agent, method, headers: toTarget, path: url };
      requestOf(this.#target, options, resolve).on('error', reject).end(body);
    });
    const { 'transfer-encoding': _, connection: _c, ...rest } = answer.headers;
    const sent = Object.entries(rest).map(([name, value]) => [name, String(value)]);
    return {
      status: answer.statusCode ?? 502,
      headers: Object.fromEntries(sent),
      body: await bodyOf(answer),
    };
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
    items.push({
      url: form.get(`url-${i}`) ?? '',
      collection: form.get(`collection-${i}`) ?? '',
      digest,
    });
  }
  return items;
}

/** Answers like the real peer. */
export const well: Behaviour = (call) => call.forward();

/** Answers like another peer of the standard, without the mark of the embedded peer. */
export const stranger: Behaviour = async (call) => {
  const { headers, ...rest } = await call.forward();
  const { [EMBEDDED_HEADER]: _, ...others } = headers;
  return { ...rest, headers: others };
};

/** Takes every request and never answers. */
export const silent: Behaviour = () => undefined;

/** Does what is asked, and breaks the connection in the middle of the answer. */
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

/** Answers like the real peer after a delay. */
export function slow(ms: number): Behaviour {
  return async (call) => {
    await sleep(ms);
    return call.forward();
  };
}

/** Answers matching calls by `behaviour`, and others like the real peer. */
export function when(isMeant: (call: Call) => boolean, behaviour: Behaviour): Behaviour {
  return (call) => (isMeant(call) ? behaviour(call) : well(call));
}

/** Answers pushes with a URL by `behaviour`, and other calls like the real peer. */
export function whenPushed(url: string, behaviour: Behaviour): Behaviour {
  return when(({ urls }) => urls.includes(url), behaviour);
}

/** The error page of a Java server. */
export const STACK_TRACE = `<html><head><title>Error 500</title></head><body><h2>HTTP ERROR: 500</h2><pre>java.lang.NullPointerException
	at net.yacy.search.Switchboard.add(Switchboard.java:1871)
	at java.base/java.lang.Thread.run(Thread.java:840)
</pre></body></html>`;

/** Answers like a peer whose password was changed: pages that need it refuse the request. */
export const otherPassword: Behaviour = (call) =>
  call.path.includes('_p.')
    ? {
        status: 401,
        headers: {
          'www-authenticate': `Digest realm="peer", qop="auth", nonce="${Math.random()}"`,
        },
        body: Buffer.from('who are you?'),
      }
    : well(call);
