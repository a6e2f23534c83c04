import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import type { Peerdoc, PeerdocOptions, PeerdocQuery } from './peerdoc.js';
import type { PushAnswer, PushItem, PushOptions } from './push.js';

export interface Timeouts {
  /** Until a connection stands, with TLS, in ms. */
  readonly connect: number;
  /** Without progress from there to the head of the answer, in ms. */
  readonly headers: number;
  /** Between two pieces of the answer, in ms. */
  readonly body: number;
  /** For the whole exchange, in ms. */
  readonly total: number;
}

export interface PeerClientOptions {
  /** `{base_url}` of the API: http or https, no credentials, query or fragment. */
  readonly baseUrl: string;
  readonly credentials?: { readonly username: string; readonly password: string };
  /** `ca`: certificates (PEM text) trusted besides the usual ones. */
  readonly tls?: { readonly ca?: string };
  readonly timeouts: Timeouts;
  /** Bytes; longer answers are refused. */
  readonly maxAnswer: number;
  readonly clock?: Clock;
  readonly log?: Logger;
  /** @default 'standard' */
  readonly dialect?: 'standard';
}

export interface RequestCounts {
  /** Pushes put on the wire, those answered with 401 included. */
  readonly push: number;
  readonly peerdoc: number;
  /** Pings, and requests that only learn or check the access. */
  readonly other: number;
}

export class PeerClient {
  readonly #options: PeerClientOptions;

  constructor(options: PeerClientOptions) {
    this.#options = options;
  }

  get requests(): RequestCounts {
    return { push: 0, peerdoc: 0, other: 0 };
  }

  async push(_items: readonly PushItem[], _options: PushOptions = {}): Promise<PushAnswer> {
    throw new Error(`push: ${this.#options.baseUrl}`);
  }

  async peerdoc(_query: PeerdocQuery, _options: PeerdocOptions = {}): Promise<Peerdoc | undefined> {
    throw new Error(`peerdoc: ${this.#options.baseUrl}`);
  }

  async ping(_options: { readonly signal?: AbortSignal } = {}): Promise<{ ms: number; server?: string }> {
    throw new Error(`ping: ${this.#options.baseUrl}`);
  }

  async checkAdmin(_options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    throw new Error(`checkAdmin: ${this.#options.baseUrl}`);
  }

  async close(): Promise<void> {}
}
