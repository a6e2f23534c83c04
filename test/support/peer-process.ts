import { join } from 'node:path';
import { Agent, request } from 'undici';
import { afterwards, type Life } from './afterwards.js';
import { Running } from './cli.js';

/** The fields of a document that tests read from the embedded peer. */
export interface ShownDocument {
  readonly url: string;
  readonly digest: string;
  readonly size: number;
  readonly collections: readonly string[];
}

/** Results of the search page. */
export interface Found {
  readonly total: number;
  readonly items: readonly { readonly url: string; readonly title: string }[];
}

/**
 * The embedded peer in a process of its own, and a reader of what it shows that is not the daemon's
 * own client.
 */
export class PeerProcess {
  readonly #dispatcher = new Agent({ connections: 8 });

  private constructor(
    readonly running: Running,
    /** Directory of the index and the password. */
    readonly data: string,
    readonly url: string,
    life: Life,
  ) {
    afterwards(life, () => this.#dispatcher.destroy());
  }

  static async start(
    data: string,
    { port = 0, life = 'test' }: { port?: number; life?: Life } = {},
  ) {
    const running = new Running(['peer', '--data', data, '--port', String(port)], { life });
    const listens = /the peer listens on (http:\/\/[^/"]+)\//;
    await running.says(listens);
    const url = listens.exec(running.stdout)?.[1] ?? '';
    return new PeerProcess(running, data, url, life);
  }

  /** The `peer` of a configuration that goes to this peer, or to `url` in its place. */
  section(url = this.url): Readonly<Record<string, unknown>> {
    const password = { file: join(this.data, 'admin-password') };
    return { url, auth: { username: 'admin', password } };
  }

  /** The document at a URL, or undefined where the peer knows none. */
  async peerdoc(url: string): Promise<ShownDocument | undefined> {
    return (await this.#ask('/api/peerdoc.json', { url })) as ShownDocument | undefined;
  }

  async search(query: string, { offset = 0, limit = 100 } = {}): Promise<Found> {
    const parameters = { query, offset: String(offset), limit: String(limit) };
    return (await this.#ask('/search.json', parameters)) as Found;
  }

  async #ask(path: string, parameters: Record<string, string>): Promise<unknown> {
    const target = `${this.url}${path}`;
    // By POST, for the escaped URL of a long path is longer than a server takes in the head of a
    // request.
    const { statusCode, body } = await request(target, {
      dispatcher: this.#dispatcher,
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(parameters).toString(),
    });
    const text = await body.text();
    if (statusCode === 404) return undefined;
    if (statusCode !== 200) throw new Error(`${target} answered ${statusCode}: ${text}`);
    return JSON.parse(text);
  }
}
