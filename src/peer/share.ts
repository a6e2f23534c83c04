import type { StreamedAnswer } from './asking.js';
import { parseMoment } from './dates.js';
import { PeerError } from './errors.js';

/** Which shared object: its name and, where the peer has several groups of them, the group. */
export interface ShareQuery {
  readonly data: string;
  readonly c?: string;
}

export interface ShareOptions {
  /** Bytes; an object that turns out longer is refused. @default the client's maxAnswer */
  readonly maxBytes?: number;
  /** Only an object that changed after this moment of the peer's clock, in ms since the epoch; peers may ignore it. */
  readonly ifModifiedSince?: number;
  /** Only an object that has another tag than this, as the peer wrote it; goes before `ifModifiedSince`. */
  readonly ifNoneMatch?: string;
  /** Only what is missing of an object that broke off; peers may ignore it, and do where it changed. */
  readonly resume?: ShareRemainder;
  readonly signal?: AbortSignal;
}

/** What is missing of an object. */
export interface ShareRemainder {
  /** So many bytes are here. */
  readonly from: number;
  /** Bytes of the whole object, as it was first asked for. */
  readonly size: number;
  /** When that was, by the peer's clock, in ms since the epoch. */
  readonly asOf?: number | undefined;
  /** Its tag and its last modification then, where the peer gave them: a part of an object with others is refused. */
  readonly etag?: string | undefined;
  readonly lastModified?: number | undefined;
}

/** A shared object as it comes in. */
export interface ShareStream {
  /** Media type in lower case, without parameters; undefined where the peer gave none. */
  readonly type: string | undefined;
  /** Bytes of the whole object, where the peer said so. */
  readonly size: number | undefined;
  /** By the peer, in ms since the epoch. */
  readonly lastModified: number | undefined;
  /** The tag of this version, as the peer wrote it. */
  readonly etag?: string | undefined;
  /** When the answer came, by the peer's clock (whole seconds, as ms), where it carries a date. */
  readonly peerAt?: number | undefined;
  /** Whether the object is still the one that is known, by the conditions: then nothing of it comes. */
  readonly isUnchanged?: boolean;
  /** The byte with which `chunks` begins. @default 0 */
  readonly from?: number;
  /** To be read once; throws PeerError where the object breaks off. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** The headers that ask for less than the whole object. */
export function conditionsOf({ ifModifiedSince, ifNoneMatch, resume }: ShareOptions): Record<string, string> {
  const date = (ms: number) => new Date(ms).toUTCString();
  return {
    ...(ifModifiedSince === undefined ? {} : { 'if-modified-since': date(ifModifiedSince) }),
    ...(ifNoneMatch === undefined ? {} : { 'if-none-match': ifNoneMatch }),
    ...(resume === undefined ? {} : { range: `bytes=${resume.from}-`, ...ifSame(resume) }),
  };
}

/** A weak tag names no bytes. Peers without tags may know If-Unmodified-Since alone, and answer 412. */
function ifSame({ etag, lastModified, asOf }: ShareRemainder): Record<string, string> {
  if (etag?.startsWith('"')) return { 'if-range': etag };
  if (lastModified !== undefined && (asOf === undefined || lastModified <= asOf))
    return { 'if-range': new Date(lastModified).toUTCString() };
  return asOf === undefined ? {} : { 'if-unmodified-since': new Date(asOf).toUTCString() };
}

/** Another part came than the missing one. */
class OtherPart extends Error {}

/** Whether an object cannot be resumed and is to be asked for from its beginning. */
export function isChanged(error: unknown): boolean {
  return error instanceof OtherPart || (error instanceof PeerError && [412, 416].includes(error.status ?? 0));
}

/**
 * The object that an answer is; whether it is the one that was meant, only who asked can tell.
 *
 * @throws OtherPart where another part came than the missing one
 * @throws PeerError PEER_ANSWER for a part, or for no object, where that was not asked for
 */
export function shareOf(answer: StreamedAnswer, options: ShareOptions): ShareStream {
  const { status, headers, chunks } = answer;
  const { ifModifiedSince, ifNoneMatch, resume } = options;
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  const { etag } = headers;
  const common = {
    type: type === '' ? undefined : type,
    lastModified: momentIn(headers['last-modified']),
    ...(etag === undefined ? {} : { etag }),
    peerAt: momentIn(headers.date),
    chunks,
  };
  if (status === 304 && (ifModifiedSince !== undefined || ifNoneMatch !== undefined))
    return { ...common, size: undefined, isUnchanged: true };
  if (status === 206 && resume !== undefined) {
    const { from, size } = resume;
    if (headers['content-range']?.trim() !== `bytes ${from}-${size - 1}/${size}`) throw new OtherPart();
    if (isOther(resume.etag, etag) || isOther(resume.lastModified, common.lastModified))
      throw new OtherPart();
    return { ...common, size, from, chunks: exactly(size - from, answer) };
  }
  if (status === 304 || status === 206) {
    const what = `answered with ${status} to a question for the whole object`;
    throw new PeerError('PEER_ANSWER', { url: answer.url, status, what, delivered: 'no' });
  }
  const size = headers['content-length'];
  return { ...common, size: size !== undefined && /^\d{1,15}$/.test(size) ? Number(size) : undefined };
}

function isOther<T>(before: T | undefined, now: T | undefined): boolean {
  return before !== undefined && now !== undefined && before !== now;
}

/** A part that is not as long as it said is none. */
async function* exactly(bytes: number, { url, status, chunks }: StreamedAnswer): AsyncGenerator<Buffer> {
  let came = 0;
  for await (const chunk of chunks) {
    came += chunk.length;
    if (came > bytes) break;
    yield chunk;
  }
  if (came === bytes) return;
  const what = `gave another number of bytes than the ${bytes} that were missing`;
  throw new PeerError('PEER_ANSWER', { url, status, what, delivered: 'yes' });
}

function momentIn(header: string | undefined): number | undefined {
  return header === undefined ? undefined : parseMoment(header);
}
