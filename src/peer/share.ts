import type { StreamedAnswer } from './asking.js';
import { parseMoment } from './dates.js';

/** Which shared object: its name and, where the peer has several groups of them, the group. */
export interface ShareQuery {
  readonly data: string;
  readonly c?: string;
}

export interface ShareOptions {
  /** Bytes; an object that turns out longer is refused. @default the client's maxAnswer */
  readonly maxBytes?: number;
  readonly signal?: AbortSignal;
}

/** A shared object as it comes in. */
export interface ShareStream {
  /** Media type in lower case, without parameters; undefined where the peer gave none. */
  readonly type: string | undefined;
  /** Bytes, where the peer said so. */
  readonly size: number | undefined;
  /** By the peer, in ms since the epoch. */
  readonly lastModified: number | undefined;
  /** To be read once; throws PeerError where the object breaks off. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** The object that an answer is; whether it is the one that was meant, only who asked can tell. */
export function shareOf({ headers, chunks }: StreamedAnswer): ShareStream {
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  const size = headers['content-length'];
  const lastModified = headers['last-modified'];
  return {
    type: type === '' ? undefined : type,
    size: size !== undefined && /^\d{1,15}$/.test(size) ? Number(size) : undefined,
    lastModified: lastModified === undefined ? undefined : parseMoment(lastModified),
    chunks,
  };
}
