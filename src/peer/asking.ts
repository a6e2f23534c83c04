import type { IncomingHttpHeaders } from 'node:http';
import type { Body } from './body.js';
import type { HttpAnswer } from './http.js';

/** Requests put on the wire, those sent again included. */
export interface RequestCounts {
  readonly push: number;
  readonly peerdoc: number;
  /** All others: citations, shares and tables, pings, and requests that only learn or check the access. */
  readonly other: number;
}

/** One request of an endpoint. */
export interface PeerRequest {
  readonly counted: keyof RequestCounts;
  readonly method: 'GET' | 'POST';
  /** Path below the base URL and query, as they are sent. */
  readonly path: string;
  /** Whether only the administrator is let in. */
  readonly isProtected: boolean;
  /** Which forms of answer we like best. @default anything */
  readonly accept?: string;
  readonly body?: Body;
  /** Besides those of every request; names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

export interface StreamRequest extends PeerRequest {
  /** Bytes; an answer that turns out longer is refused. @default the client's maxAnswer */
  readonly maxBytes?: number | undefined;
}

/** An answer whose head has come; its body comes while it is read. */
export interface StreamedAnswer {
  /** Of the request. */
  readonly url: string;
  /** 200 to 299, or 304 where a condition was sent. */
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** When the head came, by our clock, in ms since the epoch. */
  readonly at: number;
  /**
   * The body, to be read once. Ends only where the answer ended as it should; otherwise throws PeerError. The peer is
   * not read faster than the reader takes it.
   */
  readonly chunks: AsyncIterable<Buffer>;
}

/** The way to the peer that the parts of a client share: its connections, its access, its limits and its counts. */
export interface Asking {
  /** Bytes of an answer that is read whole. */
  readonly maxAnswer: number;
  /** The whole URL of a path below the base URL, for errors. */
  url(path: string): string;
  /**
   * The whole answer, whatever its status, but for a 401 that cannot be answered.
   *
   * @throws PeerError
   */
  ask(request: PeerRequest): Promise<HttpAnswer>;
  /**
   * Hands an answer of success to `use` as it comes in; undefined for a 404. When `use` ends (or stops reading) before
   * the answer does, the rest is not asked for.
   *
   * @throws PeerError for any other status; what `use` throws
   */
  stream<T>(request: StreamRequest, use: (answer: StreamedAnswer) => Promise<T>): Promise<T | undefined>;
}
