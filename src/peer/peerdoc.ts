import { isFailurePage, readAnswer, unusable } from './answer.js';
import { parseMoment } from './dates.js';
import { deniesIt, saysNotFound } from './denial.js';
import type { HttpAnswer } from './http.js';
import {
  type AnswerRecord,
  allRecords,
  canonical,
  type Field,
  fieldNumber,
  fieldValue,
  fieldValues,
} from './record.js';
import { isSameUrl } from './url.js';

/** Which document: by its URL, or by a hash that the peer told earlier. */
export type PeerdocQuery = { readonly url: string } | { readonly urlhash: string };

export interface PeerdocOptions {
  /** Passed on as it is; its meaning is the peer's. */
  readonly html?: string;
  readonly signal?: AbortSignal;
}

/** What the peer shows of one document. What the peer did not show is undefined. */
export interface Peerdoc {
  readonly url?: string | undefined;
  readonly urlhash?: string | undefined;
  readonly title?: string | undefined;
  /** Bytes. */
  readonly size?: number | undefined;
  readonly words?: number | undefined;
  /** sha256 of the content as it was pushed, lower-case hex. */
  readonly digest?: string | undefined;
  /** ms since the epoch. */
  readonly lastModified?: number | undefined;
  /** When the peer got the document, by its clock, in ms since the epoch. */
  readonly loadDate?: number | undefined;
  readonly collections?: readonly string[] | undefined;
  /** When the answer came, by our clock, in ms since the epoch. */
  readonly at: number;
  /** The same moment by the peer's clock (whole seconds, as ms), where its answers carry a date. */
  readonly peerAt?: number | undefined;
  /** All fields under the peer's own names, each with every value it was given. */
  readonly fields: Readonly<Record<string, readonly string[]>>;
}

const HASH_PREFIX = 'yacy:urlhash:';
const URL_NAMES = ['url', 'identifier', 'link', 'sku', 'docurl'];
const HASH_NAMES = ['urlhash', 'hash', 'identifier', 'yacyidentifier'];

/**
 * The document that an answer shows; undefined where the peer says that it has none: a record with nothing in it, 404,
 * or words to that effect.
 *
 * @param isSame whether the URL shown is the one asked for
 * @throws PeerError PEER_ANSWER for anything else, a document that was not asked for included
 */
export function readPeerdoc(
  answer: HttpAnswer,
  query: PeerdocQuery,
  isSame: (shown: string, asked: string) => boolean = isSameUrl,
): Peerdoc | undefined {
  if (answer.status === 404) return undefined;
  const read = readAnswer(answer);
  const candidates = candidatesOf(read.record, query, isSame);
  const identified = candidates.filter(
    (record) => urlOf(record) !== undefined || hashOf(record) !== undefined,
  );
  const record = identified.find((r) => isAsked(r, query, isSame)) ?? identified[0];
  if (record !== undefined) {
    if (deniesIt(record)) return undefined;
    if (!isAsked(record, query, isSame))
      throw unusable(answer, 'answered about another document than the one asked for');
    return peerdocOf(record, answer);
  }
  if (isFailurePage(read)) throw unusable(answer, 'answered with an error page when asked for a document');
  if (candidates.length > 0 || saysNotFound(read)) return undefined;
  throw unusable(answer, 'does not say what it knows of the document');
}

/** The records that could be the document; in a feed that is its entries or, where it has none, its channel. */
function candidatesOf(
  record: AnswerRecord,
  query: PeerdocQuery,
  isSame: (shown: string, asked: string) => boolean,
): AnswerRecord[] {
  const all = [...allRecords(record)];
  const isNamed = (r: AnswerRecord) => fieldValues(r, ...URL_NAMES, ...HASH_NAMES).length > 0;
  if (!/^(rss|feed|rdf:rdf)$/i.test(record.name)) return all.filter(isNamed);
  const entries = all.filter(({ name }) => /^(item|entry)$/i.test(name));
  if (entries.length > 0) return entries;
  // Every channel has a link: of a document only if it is the one that was asked for.
  const isOwn = ({ name, value }: Field) =>
    canonical(name) !== 'link' || ('url' in query && isSame(value, query.url));
  return all
    .filter(({ name }) => /^channel$/i.test(name))
    .map((channel) => ({ ...channel, fields: channel.fields.filter(isOwn) }))
    .filter(isNamed);
}

function urlOf(record: AnswerRecord): string | undefined {
  return fieldValues(record, ...URL_NAMES).find((value) => value !== '' && !value.startsWith(HASH_PREFIX));
}

function hashOf(record: AnswerRecord): string | undefined {
  const named = fieldValue(record, 'urlhash', 'hash');
  const prefixed = fieldValues(record, ...HASH_NAMES).find((value) => value.startsWith(HASH_PREFIX));
  return withoutPrefix(named ?? prefixed ?? '') || undefined;
}

function withoutPrefix(hash: string): string {
  return hash.startsWith(HASH_PREFIX) ? hash.slice(HASH_PREFIX.length) : hash;
}

function isAsked(
  record: AnswerRecord,
  query: PeerdocQuery,
  isSame: (shown: string, asked: string) => boolean,
): boolean {
  if ('url' in query) {
    const url = urlOf(record);
    return url === undefined || isSame(url, query.url);
  }
  const hash = hashOf(record);
  return hash === undefined || hash === withoutPrefix(query.urlhash);
}

function peerdocOf(record: AnswerRecord, answer: HttpAnswer): Peerdoc {
  const fields = new Map<string, string[]>();
  for (const { name, value } of record.fields) fields.set(name, [...(fields.get(name) ?? []), value]);
  return {
    url: urlOf(record),
    urlhash: hashOf(record),
    title: fieldValue(record, 'title'),
    size: fieldNumber(record, 'size', 'formatextent', 'extent', 'documentsize', 'bytes'),
    words: fieldNumber(record, 'words', 'wordcount', 'numberofwords'),
    digest: digestOf(record),
    lastModified: momentOf(record, 'lastmodified', 'modified', 'date'),
    loadDate: momentOf(record, 'loaddate'),
    collections: collectionsOf(record),
    at: answer.at,
    peerAt: answer.peerAt,
    fields: Object.fromEntries(fields),
  };
}

function digestOf(record: AnswerRecord): string | undefined {
  const digest = fieldValue(record, 'digest', 'sha256', 'contentdigest', 'contentsha256');
  return /^(?:sha-?256[:=])?([0-9a-f]{64})$/.exec(digest?.toLowerCase() ?? '')?.[1];
}

function momentOf(record: AnswerRecord, ...names: readonly string[]): number | undefined {
  const text = fieldValue(record, ...names);
  return text === undefined ? undefined : parseMoment(text);
}

/** `[a, b]`, `a,b`, or one a field. */
function collectionsOf(record: AnswerRecord): readonly string[] | undefined {
  const values = fieldValues(record, 'collections', 'collection').filter((value) => value !== '');
  if (values.length === 0) return undefined;
  const names = values.flatMap((value) => value.replace(/^\[|\]$/g, '').split(','));
  return names.map((name) => name.trim()).filter((name) => name !== '');
}
