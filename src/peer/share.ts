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
}

/** A shared object as it comes in. */
export interface ShareStream {
  /** Media type in lower case, without parameters; undefined where the peer gave none. */
  readonly type: string | undefined;
  /** Bytes of the whole object, where the peer said so. */
  readonly size: number | undefined;
  /** By the peer, in ms since the epoch. */
  readonly lastModified: number | undefined;
  /** When the answer came, by the peer's clock (whole seconds, as ms), where it carries a date. */
  readonly peerAt?: number | undefined;
  /** Whether the object did not change after `ifModifiedSince`: then nothing of it comes. */
  readonly isUnchanged?: boolean;
  /** The byte with which `chunks` begins. @default 0 */
  readonly from?: number;
  /** To be read once; throws PeerError where the object breaks off. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** The headers that ask for less than the whole object. */
export function conditionsOf({ ifModifiedSince, resume }: ShareOptions): Record<string, string> {
  const date = (ms: number) => new Date(ms).toUTCString();
  return {
    ...(ifModifiedSince === undefined ? {} : { 'if-modified-since': date(ifModifiedSince) }),
    ...(resume === undefined ? {} : { range: `bytes=${resume.from}-` }),
    ...(resume?.asOf === undefined ? {} : { 'if-unmodified-since': date(resume.asOf) }),
  };
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
export function shareOf(answer: StreamedAnswer, { ifModifiedSince, resume }: ShareOptions): ShareStream {
  const { status, headers, chunks } = answer;
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  const lastModified = momentIn(headers['last-modified']);
  const common = {
    type: type === '' ? undefined : type,
    lastModified,
    peerAt: momentIn(headers.date),
    chunks,
  };
  if (status === 304 && ifModifiedSince !== undefined)
    return { ...common, size: undefined, isUnchanged: true };
  if (status === 206 && resume !== undefined) {
    const [, from, size] =
      /^bytes (\d{1,15})-\d{1,15}\/(\d{1,15})$/.exec(headers['content-range'] ?? '') ?? [];
    if (Number(from) !== resume.from || Number(size) !== resume.size) throw new OtherPart();
    return { ...common, size: resume.size, from: resume.from };
  }
  if (status === 304 || status === 206) {
    const what = `answered with ${status} to a question for the whole object`;
    throw new PeerError('PEER_ANSWER', { url: answer.url, status, what, delivered: 'no' });
  }
  const size = headers['content-length'];
  return { ...common, size: size !== undefined && /^\d{1,15}$/.test(size) ? Number(size) : undefined };
}

function momentIn(header: string | undefined): number | undefined {
  return header === undefined ? undefined : parseMoment(header);
}
