import type { Clock } from '../lib/clock.js';
import type { Body } from './form.js';

/*
 * The options of a request in plain types: the types of the library need no other package.
 */

export interface Timeouts {
  /** Limit for opening a connection, TLS included, in ms. */
  readonly connect: number;
  /** Longest time without progress from then to the headers of the answer, in ms. */
  readonly headers: number;
  /** Longest time between two pieces of the answer, in ms. */
  readonly body: number;
  /**
   * Limit for the whole exchange, in ms. A request that is sent again with credentials gets the
   * whole limit again. A streamed answer has 12 times as long.
   */
  readonly total: number;
}

export interface ConnectionOptions {
  /** `{base_url}` of the API. */
  readonly base: URL;
  /** Unix socket to connect to, instead of the host and the port of `base`. */
  readonly socketPath: string | undefined;
  readonly timeouts: {
    /** Limit for opening a connection, TLS included, in ms. */
    readonly connect: number;
  };
}

/**
 * Called right before each piece of a body is sent, with the number of bytes before it, and waited
 * for. The peer has nothing of the request before the first call has ended. If it throws, the
 * request is not completed, and fails with PEER_ABORTED.
 */
export type Admit = (bytesBefore: number) => Promise<void> | void;

/** The part of a request that concerns one exchange. */
export interface ExchangeRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly body?: Body | undefined;
  /** @default every piece is sent at once */
  readonly admit?: Admit | undefined;
  readonly signal?: AbortSignal | undefined;
  /** The longest successful answer, in bytes. @default the client's `maxAnswer` */
  readonly maxBytes?: number | undefined;
  /**
   * Whether the answer is read while it arrives. If such an answer breaks off, the error is
   * PEER_ANSWER, not PEER_UNREACHABLE.
   */
  readonly isStreamed?: boolean;
}

export interface ExchangeOptions {
  readonly timeouts: Timeouts;
  /** The longest answer that is read whole, in bytes. */
  readonly maxAnswer: number;
  readonly clock: Clock;
}
