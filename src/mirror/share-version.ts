import type { ShareOptions, ShareRemainder, ShareStream } from '../peer/share.js';
import type { Download } from './download.js';
import type { ShareVersion } from './record.js';

/**
 * How long the word of a peer is taken that an object did not change, in ms: one that was replaced by an older file looks
 * as if it had not.
 */
const WHOLE_EVERY_MS = 7 * 86_400_000;
/** What the peer changes so shortly before it answers may look as if it had not changed after, in ms. */
const SAME_MOMENT_MS = 2_000;

/**
 * By what a version of an object is known again.
 *
 * @param of which object of which peer
 * @param at when it came, by our clock
 * @returns undefined where the peer says nothing by which it could be
 */
export function versionOf(
  { etag, lastModified, peerAt }: Pick<ShareStream, 'etag' | 'lastModified' | 'peerAt'>,
  of: string,
  at: number,
): ShareVersion | undefined {
  const before = peerAt === undefined ? undefined : peerAt - SAME_MOMENT_MS;
  const asOf = lastModified === undefined ? before : Math.min(lastModified, before ?? lastModified);
  if (etag === undefined && asOf === undefined) return undefined;
  return {
    of,
    at,
    ...(etag === undefined ? {} : { etag }),
    ...(lastModified === undefined ? {} : { lastModified }),
    ...(asOf === undefined ? {} : { asOf }),
  };
}

/**
 * Asks for an object only if it is another version than this one; undefined where it has to be asked for as it is.
 *
 * @param of which object of which peer
 */
export function otherThan(
  version: ShareVersion | undefined,
  of: string,
  now: number,
): Pick<ShareOptions, 'ifNoneMatch' | 'ifModifiedSince'> | undefined {
  if (version === undefined || version.of !== of) return undefined;
  const age = now - version.at;
  if (age < 0 || age > WHOLE_EVERY_MS) return undefined;
  const { etag, asOf } = version;
  return {
    ...(etag === undefined ? {} : { ifNoneMatch: etag }),
    ...(asOf === undefined ? {} : { ifModifiedSince: asOf }),
  };
}

/** Asks for the end of an object that broke off. */
export function remainderOf({ bytes, size, version }: Download): ShareRemainder {
  const { etag, lastModified, asOf } = version;
  return { from: bytes, size, etag, lastModified, asOf };
}
