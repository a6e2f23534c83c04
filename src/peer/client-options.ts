import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import type { Credentials } from './auth.js';
import type { DialectName } from './dialects/dialect.js';
import type { DialectTable } from './dialects/dialects.js';
import type { Timeouts } from './exchange-options.js';

export interface PeerClientOptions {
  /** The `{base_url}` of the API: http or https, without credentials, query or fragment. */
  readonly baseUrl: string;
  /**
   * The path of a Unix socket. Requests go there, and not to the host and port of `baseUrl`.
   * @default none
   */
  readonly socketPath?: string | undefined;
  readonly credentials?: Credentials;
  /** `ca` holds certificates (PEM text) to trust besides the usual ones. */
  readonly tls?: { readonly ca?: string };
  /** In ms. @default connect 10 s, headers 30 s, body 60 s, total 5 min */
  readonly timeouts?: Partial<Timeouts>;
  /**
   * The longest answer that is read, in bytes. Some methods have a limit of their own.
   *
   * @default 16 MiB
   */
  readonly maxAnswer?: number;
  /** @default systemClock */
  readonly clock?: Clock;
  /**
   * Whether Basic may send the password over http to another machine. Everyone on the way can read
   * it.
   *
   * @default false
   */
  readonly allowBasic?: boolean;
  /**
   * The path of a small file that records the strongest authentication scheme that each peer asked
   * for. The client never answers a weaker scheme of such a peer (PEER_AUTH_WEAK). Several
   * processes may share the file.
   *
   * @default none: the record ends with the client
   */
  readonly accessFile?: string;
  /** Logs a warning if `accessFile` cannot be read or written. @default silentLogger */
  readonly log?: Logger;
  /** The dialect of the peer if it is known, or `auto` to detect it. @default 'auto' */
  readonly dialect?: DialectName | 'auto';
  /** The dialects that the client speaks, by name. @default those of dialects.ts */
  readonly dialects?: DialectTable;
}

/** The same timeouts as the defaults of the daemon's configuration. */
export const TIMEOUTS: Timeouts = {
  connect: 10_000,
  headers: 30_000,
  body: 60_000,
  total: 300_000,
};
export const MAX_ANSWER = 16 * 1024 * 1024;
