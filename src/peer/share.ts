import { parseUrl } from '../lib/text.js';
import {
  allRecords,
  decoded,
  fieldValue,
  fieldValues,
  parseHtml,
  readAnswer,
  readable,
  type StreamedAnswer,
  statusError,
  succeeded,
  unescaped,
  unusable,
  within,
} from './answer.js';
import { PeerError } from './errors.js';
import type { Http } from './http.js';

/** Which shared object: its name and, where the peer has several groups of them, the group. */
export interface ShareQuery {
  readonly data: string;
  readonly c?: string | undefined;
}

export interface ShareOptions {
  /** Bytes; an object that turns out longer is refused. @default the client's maxAnswer */
  readonly maxBytes?: number | undefined;
  /**
   * Only an object that changed after this moment of the peer's clock, in ms since the epoch; peers
   * may ignore it.
   */
  readonly ifModifiedSince?: number | undefined;
  /**
   * Only an object that has another tag than this, as the peer wrote it; goes before
   * `ifModifiedSince`.
   */
  readonly ifNoneMatch?: string | undefined;
  readonly signal?: AbortSignal;
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
  /**
   * Whether the object is still the one that is known, by the conditions: then nothing of it comes.
   */
  readonly isUnchanged?: boolean;
  /** To be read once; throws PeerError where the object breaks off. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** The headers that ask for another version only. */
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
 * The object that an answer is; whether it is the one that was meant, only who asked can tell.
 *
 * @throws PeerError PEER_ANSWER for a part, or for no object, where that was not asked for
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
 * The shared objects by the record that a peer gives where it is asked for none in particular:
 * `data`, and `c` where it has groups. Undefined where it gives no such list.
 *
 * @throws PeerError PEER_ANSWER_TOO_LARGE for a list that the peer cut short
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

/** Deeper directories, and more of them, are no list that a person made. */
const DEEPEST = 32;
const MOST_PAGES = 10_000;

/**
 * The files below a path, by the directory pages of the server: links to what stands directly in
 * them. Names are given decoded, with `/` between those of directories; empty where the path is not
 * there.
 *
 * @throws PeerError PEER_ANSWER for what is no such page, PEER_ANSWER_TOO_LARGE for more than
 *   10,000 of them
 */
export async function listDirectories(
  http: Http,
  root: string,
  signal: AbortSignal | undefined,
): Promise<readonly string[]> {
  const files: string[] = [];
  const directories = [''];
  for (const [n, directory] of directories.entries()) {
    if (n === MOST_PAGES) {
      const what = `shares files in more than ${MOST_PAGES} directories`;
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
      else if (directory.split('/').length <= DEEPEST) directories.push(directory + name);
    }
  }
  return files;
}

/**
 * The name of what stands directly below the page, with a `/` at its end where it is a directory.
 */
function nameIn(href: string, url: string, path: string): string | undefined {
  const pathname = parseUrl(href, url)?.pathname ?? '';
  const [, parent = '', escaped = ''] = /^(.*\/)([^/]+\/?)$/.exec(pathname) ?? [];
  // Behind a proxy the links may lack what stands before the path there.
  const isHere = [new URL(url).pathname, path].map(unescaped).includes(unescaped(parent));
  const name = unescaped(escaped);
  return isHere && /^(?!\.{1,2}\/?$)[^/\\\0]+\/?$/.test(name) ? name : undefined;
}
