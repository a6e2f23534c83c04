import { decodedPart, parseUrl } from '../lib/text.js';
import {
  decoded,
  readable,
  type StreamedAnswer,
  statusError,
  succeeded,
  unusable,
} from './answer.js';
import { PeerError } from './errors.js';
import type { Http } from './http.js';
import { parseHtml, within } from './markup.js';
import { allRecords, fieldValue, fieldValues, readAnswer } from './records.js';

/** Names a shared object, and its group if the peer has groups. */
export interface ShareQuery {
  readonly data: string;
  readonly c?: string | undefined;
}

export interface ShareOptions {
  /** The largest object to read, in bytes. @default the client's `maxAnswer` */
  readonly maxBytes?: number | undefined;
  /**
   * Requests the object only if it changed after this moment of the peer's clock, in ms since the
   * epoch. Peers may ignore it.
   */
  readonly ifModifiedSince?: number | undefined;
  /**
   * Requests the object only if its entity tag differs. Takes precedence over `ifModifiedSince`.
   */
  readonly ifNoneMatch?: string | undefined;
  readonly signal?: AbortSignal;
}

/** A shared object that is read while it arrives. */
export interface ShareStream {
  /** Media type in lower case, without parameters; undefined if the peer sent none. */
  readonly type: string | undefined;
  /** Size of the whole object in bytes; undefined if the peer did not say. */
  readonly size: number | undefined;
  /** Last modification by the peer's clock, in ms since the epoch. */
  readonly lastModified: number | undefined;
  /** The entity tag of this version. */
  readonly etag?: string | undefined;
  /**
   * When the answer arrived, by the peer's clock, in ms since the epoch (whole seconds); undefined
   * if the answer has no date.
   */
  readonly peerAt?: number | undefined;
  /** Whether the object is unchanged by the conditions of the request. Then `chunks` is empty. */
  readonly isUnchanged?: boolean;
  /** The content. It can be read once. Throws PeerError if the object breaks off. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** Returns the headers of a conditional request. */
export function conditionsOf({
  ifModifiedSince,
  ifNoneMatch,
}: ShareOptions): Record<string, string> {
  return {
    ...(ifModifiedSince === undefined
      ? {}
      : { 'if-modified-since': new Date(ifModifiedSince).toUTCString() }),
    ...(ifNoneMatch === undefined ? {} : { 'if-none-match': ifNoneMatch }),
  };
}

/**
 * Returns the object in an answer. Cannot tell whether it is the requested object: only the caller
 * can.
 *
 * @throws PeerError PEER_ANSWER for part of an object, or for a 304 without a condition
 */
export function shareOf(
  answer: StreamedAnswer,
  { ifModifiedSince, ifNoneMatch }: ShareOptions,
): ShareStream {
  const { url, status, headers, peerAt, chunks } = answer;
  const { etag } = headers;
  const modified = Date.parse(headers['last-modified'] ?? '');
  const lastModified = Number.isNaN(modified) ? undefined : modified;
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() || undefined;
  const common = { type, lastModified, ...(etag === undefined ? {} : { etag }), peerAt, chunks };
  if (status === 304 && (ifModifiedSince !== undefined || ifNoneMatch !== undefined))
    return { ...common, size: undefined, isUnchanged: true };
  if (status === 304 || status === 206) {
    const what = `answered with ${status} to a question for the whole object`;
    throw new PeerError('PEER_ANSWER', { url, status, what, delivered: 'no' });
  }
  const size = headers['content-length'] ?? '';
  return { ...common, size: /^\d{1,15}$/.test(size) ? Number(size) : undefined };
}

/**
 * Lists shared objects with a request that names none. The answer has a record for each object:
 * `data`, and `c` for its group.
 *
 * @returns undefined if the peer gives no such list
 * @throws PeerError PEER_ANSWER_TOO_LARGE if the peer cut the list short
 */
export async function listRecords(
  http: Http,
  path: string,
  signal: AbortSignal | undefined,
): Promise<readonly string[] | undefined> {
  const answer = await http.ask({
    counted: 'other',
    method: 'POST',
    path,
    isProtected: false,
    signal,
  });
  if (statusError(answer)?.code === 'PEER_REFUSED') return undefined;
  const all = allRecords(readAnswer(succeeded(answer)).record);
  if (!all.some((each) => each.name === 'shares' || fieldValues(each, 'shares').length > 0))
    return undefined;
  if (all.some((each) => fieldValue(each, 'more') === 'true')) {
    const what = 'shares more objects than it lists';
    throw new PeerError('PEER_ANSWER_TOO_LARGE', { url: answer.url, what, delivered: 'yes' });
  }
  return all.flatMap((each) => {
    const data = fieldValue(each, 'data');
    const c = fieldValue(each, 'c');
    return data === undefined ? [] : [c === undefined ? data : `${c}/${data}`];
  });
}

/** The deepest nesting, and the most directories. No list that a person made is larger. */
const MAX_DEPTH = 32;
const MAX_PAGES = 10_000;

/**
 * Lists the files below a path with the directory pages of the server.
 *
 * @returns decoded names with `/` between directories; empty if the path does not exist
 * @throws PeerError PEER_ANSWER for a page that is no directory page, PEER_ANSWER_TOO_LARGE for
 *   more than 10,000 of them
 */
export async function listDirectories(
  http: Http,
  root: string,
  signal: AbortSignal | undefined,
): Promise<readonly string[]> {
  const files: string[] = [];
  const directories = [''];
  for (const [n, directory] of directories.entries()) {
    if (n === MAX_PAGES) {
      const what = `shares files in more than ${MAX_PAGES} directories`;
      throw new PeerError('PEER_ANSWER_TOO_LARGE', { url: http.url(root), what, delivered: 'no' });
    }
    const path = root + directory.split('/').map(encodeURIComponent).join('/');
    const answer = await http.ask({
      counted: 'other',
      method: 'GET',
      path,
      isProtected: false,
      signal,
    });
    if (answer.status === 404) continue;
    const text = decoded(succeeded(answer).body);
    if (!/\bDirectory:/i.test(text))
      throw unusable(answer, 'does not show the list of what it shares');
    const links = readable(answer, () => within(parseHtml(text), ['a']));
    const names = links.flatMap(
      ({ attribs }) => nameIn(attribs.href ?? '', answer.url, path) ?? [],
    );
    for (const name of new Set(names)) {
      if (!name.endsWith('/')) files.push(directory + name);
      else if (directory.split('/').length <= MAX_DEPTH) directories.push(directory + name);
    }
  }
  return files;
}

/**
 * Returns the name of an entry directly in the directory of the page. A directory ends with `/`.
 */
function nameIn(href: string, url: string, path: string): string | undefined {
  const pathname = parseUrl(href, url)?.pathname ?? '';
  const [, parent = '', escaped = ''] = /^(.*\/)([^/]+\/?)$/.exec(pathname) ?? [];
  // Behind a proxy, the links may lack the prefix that the proxy adds.
  const isHere = [new URL(url).pathname, path].map(decodedPart).includes(decodedPart(parent));
  const name = decodedPart(escaped);
  return isHere && /^(?!\.{1,2}\/?$)[^/\\\0]+\/?$/.test(name) ? name : undefined;
}
