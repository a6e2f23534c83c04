import { randomInt } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterwards, type Life } from '../../support/afterwards.js';
import { type Answer, type Asked, notFound, page, unauthorized } from './answer.js';
import { citation } from './citation.js';
import { Deletion } from './deletion.js';
import { type Document, DocumentIndex } from './document-index.js';
import { type Form, first, type ReadForm, readForm } from './form.js';
import { Gatekeeper } from './gatekeeper.js';
import { documentsOf, push, wordsOf } from './push.js';
import { Share } from './share.js';
import { Tables } from './tables.js';
import { RECORDED, type Timing } from './timing.js';
import { hashOf, type Network, normalUrl } from './urls.js';
import { yacydoc } from './yacydoc.js';
import { yacysearch } from './yacysearch.js';

export interface YacyOptions {
  /** Which documents the peer takes. Default `global`, as in the network of all peers. */
  readonly network?: Network;
  /** Password of `admin`. Without one, every request from this machine is the administrator. */
  readonly password?: string;
  /** Default as recorded. */
  readonly timing?: Timing;
  /**
   * Milliseconds since some start, by which documents become visible and nonces grow old; default
   * the system's.
   */
  readonly now?: () => number;
  /** `host:port`, as the peer believes to be reached. Default where it listens. */
  readonly address?: string;
  /** Default the end of the test. */
  readonly life?: Life;
}

/** A request that came, and how it was answered. */
export interface Served {
  readonly method: string;
  /** With its query. */
  readonly target: string;
  readonly headers: IncomingMessage['headers'];
  /** In ms since the epoch. */
  readonly at: number;
  /** Bytes of the body. */
  readonly size: number;
  /** Undefined where it had none that could be read. */
  readonly parameters: Form | undefined;
  /** The URLs of the documents that it pushes or asks for. */
  readonly urls: readonly string[];
  /** 0 while there was no answer, and for ever if the connection broke. */
  status: number;
}

/**
 * A small model of a YaCy 1.92, written from the record of a running one, without a line of the
 * product: what it answers, what it then really does, and when that can be seen. It is apart from
 * the fake peers because its behaviour is measured: no test scripts it.
 *
 * It listens from `start` to `stop` or `crash`; `restart` has it refuse connections for a while and
 * listen again, at the same address. What a crash loses is lost; an orderly stop loses nothing.
 */
export class YacyModel {
  /** All requests, in the order in which they came. */
  readonly served: Served[] = [];
  readonly tables = new Tables();
  readonly share = new Share();
  readonly #index: DocumentIndex;
  #deletion: Deletion;
  readonly #gatekeeper: Gatekeeper;
  readonly #timing: Timing;
  readonly #options: YacyOptions;
  /** One of its own, so that nobody else listens there while this does not. */
  readonly #host = `127.${randomInt(1, 255)}.${randomInt(256)}.${randomInt(1, 255)}`;
  readonly #receiving = new Map<Socket, ServerResponse>();
  readonly #server = createServer((request, response) => {
    this.#serve(request, response).catch(() => response.destroy());
  });
  /** When its one processor is done with what stands in line, in ms of `performance.now()`. */
  #busyUntil = 0;
  #port = 0;
  #losing: string | undefined;

  private constructor(options: YacyOptions) {
    this.#options = options;
    this.#timing = options.timing ?? RECORDED;
    const now = options.now ?? (() => performance.now());
    this.#index = new DocumentIndex(this.#timing, now);
    this.#deletion = new Deletion(this.#index);
    this.#gatekeeper = new Gatekeeper(options.password, this.#timing.nonce, now);
    this.#server.keepAliveTimeout = 0;
    this.#server.timeout = this.#timing.idle;
    this.#server.on('timeout', (socket: Socket) => {
      const response = this.#receiving.get(socket);
      if (response === undefined) socket.destroy();
      else send(response, page('application/json', '{}\n'));
    });
  }

  static async start(options: YacyOptions = {}): Promise<YacyModel> {
    const model = new YacyModel(options);
    await model.#listen();
    afterwards(options.life ?? 'test', () => model.#unlisten());
    return model;
  }

  get url(): string {
    return `http://${this.#host}:${this.#port}`;
  }

  /** Returns the number of open connections. */
  connections(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.getConnections((error, count) =>
        error === null ? resolve(count) : reject(error),
      );
    });
  }

  /** The document that a look-up shows now. */
  shown(url: string): Document | undefined {
    return this.#index.find(hashOf(normalUrl(url)));
  }

  /** The document that a look-up shows in the end. */
  kept(url: string): Document | undefined {
    return this.#index.finally(hashOf(normalUrl(url)));
  }

  /** The URLs of the documents in which a search finds the word. */
  search(word: string): string[] {
    const isIn = ({ text, title }: Document) => wordsOf(`${title} ${text}`).includes(word);
    return this.#index
      .searched()
      .filter(isIn)
      .map(({ url }) => url);
  }

  /**
   * The next request to a page does nothing, and is answered as one whose body came mutilated:
   * `{}`, with success.
   */
  loseNext(page: string): void {
    this.#losing = page;
  }

  /**
   * A document is gone at once, as none is that an administrator deletes with `IndexControlURLs_p`.
   */
  remove(url: string): void {
    this.#index.remove(hashOf(normalUrl(url)));
  }

  /** Copies the index, as a backup does. @returns what restores it */
  backup(): () => void {
    return this.#index.backup();
  }

  /** Ends as by `kill -9`. */
  async crash(): Promise<void> {
    await this.#unlisten();
    this.#index.crash();
  }

  /** Ends in order. */
  async stop(): Promise<void> {
    await this.#unlisten();
    this.#index.close();
  }

  /** Starts after an end; resolves when it takes connections. */
  async restart(): Promise<void> {
    await sleep(this.#timing.start);
    await this.#listen();
  }

  async #listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject).listen(this.#port, this.#host, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  async #unlisten(): Promise<void> {
    if (!this.#server.listening) return;
    this.#busyUntil = 0;
    this.#deletion = new Deletion(this.#index);
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url: target = '', headers, socket } = request;
    this.#receiving.set(socket, response);
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk);
    } finally {
      this.#receiving.delete(socket);
    }
    const body = Buffer.concat(chunks);
    const [, path = '', query = ''] = /^([^?]*)\??(.*)$/s.exec(target) ?? [];
    const asked = { method, path, query, headers, body };
    const form = formOf(asked);
    const parameters = typeof form === 'string' ? undefined : form;
    const urls = urlsOf(parameters);
    const size = body.length;
    const served = { method, target, headers, at: Date.now(), size, parameters, urls, status: 0 };
    this.served.push(served);
    // A connection that waits for an answer is not idle.
    socket.setTimeout(0);
    const answer = await this.#answer(asked, form);
    socket.setTimeout(this.#timing.idle);
    served.status = answer.status;
    send(response, answer);
  }

  async #answer(asked: Asked, form: ReadForm): Promise<Answer> {
    const { method, path, headers } = asked;
    if (path.includes('_p.')) {
      const verdict = this.#gatekeeper.judge(
        method,
        one(headers.authorization),
        one(headers.referer),
      );
      if (verdict !== 'in') return unauthorized(path, this.#gatekeeper.challenge(verdict));
    }
    if (path === this.#losing) {
      this.#losing = undefined;
      return page('application/json', '{}\n');
    }
    if (path.startsWith('/share')) return this.share.get(asked);
    switch (path.replace(/\.\w+$/, '')) {
      case '/api/push_p': {
        await sleep(this.#timing.perPush ?? 0);
        await this.#spend(documentsOf(form) * (this.#timing.perDocument ?? 0));
        const { network = 'global', address = this.url.slice('http://'.length) } = this.#options;
        return push({ index: this.#index, network, address }, path, form);
      }
      case '/api/yacydoc':
        await this.#spend(this.#timing.perLookUp ?? 0);
        return yacydoc(this.#index, path, form);
      case '/yacysearch':
        return yacysearch(this.#index, form);
      case '/api/citation':
        return citation(this.#index, path, form);
      case '/api/table_p':
        return this.tables.tableP(path, form);
      case '/Tables_p':
        return this.tables.tablesP(path, form);
      case '/IndexControlURLs_p':
        return this.#deletion.serve(asked, form);
      default:
        return notFound(path);
    }
  }

  /** Waits until the one processor has done this work, after all that was asked for before. */
  async #spend(ms: number): Promise<void> {
    if (ms === 0) return;
    this.#busyUntil = Math.max(this.#busyUntil, performance.now()) + ms;
    await sleep(this.#busyUntil - performance.now());
  }
}

function formOf({ query, headers, body }: Asked): ReadForm {
  return readForm(query, one(headers['content-type']) ?? '', body);
}

function urlsOf(form: Form | undefined): string[] {
  if (form === undefined) return [];
  const names = [...form.keys()].filter((name) => /^url(-\d+)?$/.test(name));
  return names.map((name) => first(form, name) ?? '');
}

function one(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'object' ? value[0] : value;
}

function send(response: ServerResponse, answer: Answer): void {
  if (response.writableEnded) return;
  const { status, reason = STATUS_CODES[status], headers, body, breaksAfter } = answer;
  response.removeHeader('connection');
  response.writeHead(status, reason, {
    ...headers,
    ...(status === 304 ? {} : { 'Content-Length': Buffer.byteLength(body) }),
    Server: 'Jetty(9.2.21.v20170120)',
  });
  if (breaksAfter === undefined) response.end(body);
  else response.write(body.slice(0, breaksAfter), () => response.socket?.destroy());
}
