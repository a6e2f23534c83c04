import {
  type AnswerRecord,
  allRecords,
  deniesIt,
  fieldNumber,
  fieldValue,
  fieldValues,
  type HttpAnswer,
  isSameUrl,
  notUnderstood,
  readAnswer,
  saysNotFound,
  unusable,
} from './answer.js';

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

/**
 * The document that an answer shows; undefined where the peer says that it has none: a record with nothing in it, or
 * words to that effect.
 *
 * @param isSame whether the URL shown is the one asked for
 * @throws PeerError PEER_ANSWER for anything else, a document that was not asked for included
 */
export function readPeerdoc(
  answer: HttpAnswer,
  query: PeerdocQuery,
  isSame: (shown: string, asked: string) => boolean = isSameUrl,
): Peerdoc | undefined {
  const read = readAnswer(answer);
  const isAsked = (record: AnswerRecord): boolean => {
    const shown = 'url' in query ? urlOf(record) : hashOf(record);
    if (shown === undefined) return true;
    return 'url' in query ? isSame(shown, query.url) : shown === withoutPrefix(query.urlhash);
  };
  const all = allRecords(read.record);
  const entries = all.filter(isEntry);
  const candidates = (entries.length > 0 ? entries : all).filter(
    (record) => fieldValues(record, ...urlNames(record), 'urlhash', 'hash').length > 0,
  );
  const shown = candidates.filter((record) => urlOf(record) !== undefined || hashOf(record) !== undefined);
  const record = shown.find(isAsked) ?? shown[0];
  if (record !== undefined && !deniesIt(record)) {
    if (isAsked(record)) return peerdocOf(record, answer);
    throw unusable(answer, 'answered about another document than the one asked for');
  }
  if (candidates.length > 0 || saysNotFound(read)) return undefined;
  throw notUnderstood(answer, read, 'does not say what it knows of the document');
}

/** Whether it is the entry of a feed (RSS, Atom). */
function isEntry({ name }: AnswerRecord): boolean {
  return /^(item|entry)$/i.test(name);
}

/** The link of an entry is a document's; that of the feed itself leads to the peer. */
function urlNames(record: AnswerRecord): readonly string[] {
  return isEntry(record) ? ['url', 'identifier', 'link'] : ['url', 'identifier'];
}

function urlOf(record: AnswerRecord): string | undefined {
  return fieldValues(record, ...urlNames(record)).find(
    (value) => value !== '' && !value.startsWith(HASH_PREFIX),
  );
}

function hashOf(record: AnswerRecord): string | undefined {
  const prefixed = fieldValues(record, 'identifier').find((value) => value.startsWith(HASH_PREFIX));
  return withoutPrefix(fieldValue(record, 'urlhash', 'hash') ?? prefixed ?? '') || undefined;
}

function withoutPrefix(hash: string): string {
  return hash.startsWith(HASH_PREFIX) ? hash.slice(HASH_PREFIX.length) : hash;
}

function peerdocOf(record: AnswerRecord, { at, peerAt }: HttpAnswer): Peerdoc {
  const fields = new Map<string, string[]>();
  for (const { name, value } of record.fields) fields.set(name, [...(fields.get(name) ?? []), value]);
  const digest = fieldValue(record, 'digest', 'sha256')?.toLowerCase();
  return {
    url: urlOf(record),
    urlhash: hashOf(record),
    title: fieldValue(record, 'title'),
    size: fieldNumber(record, 'size', 'formatextent'),
    words: fieldNumber(record, 'words', 'wordcount'),
    digest: /^(?:sha-?256[:=])?([0-9a-f]{64})$/.exec(digest ?? '')?.[1],
    lastModified: parseMoment(fieldValue(record, 'lastmodified', 'date')),
    loadDate: parseMoment(fieldValue(record, 'loaddate')),
    collections: collectionsOf(record),
    at,
    peerAt,
    fields: Object.fromEntries(fields),
  };
}

/** `[a, b]`, `a,b`, or one a field. */
function collectionsOf(record: AnswerRecord): readonly string[] | undefined {
  const values = fieldValues(record, 'collections', 'collection').filter((value) => value !== '');
  if (values.length === 0) return undefined;
  const names = values.flatMap((value) => value.replace(/^\[|\]$/g, '').split(','));
  return names.map((name) => name.trim()).filter((name) => name !== '');
}

/** Hours east of Greenwich, of the names that Java prints where peers of this family run. */
const ZONES: Readonly<Record<string, number>> = {
  ...{ UTC: 0, GMT: 0, WET: 0, CET: 1, WEST: 1, MEZ: 1, CEST: 2, EET: 2, MESZ: 2, EEST: 3, MSK: 3 },
  ...{ EST: -5, EDT: -4, CST: -6, CDT: -5, MST: -7, MDT: -6, PST: -8, PDT: -7 },
};
const ISO = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:\.\d+)?)\s*(Z|[+-]\d\d:?\d\d)?$/i;
const RFC_1123 = /^[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d (GMT|UTC|[+-]\d{4})$/;
const JAVA = /^[A-Z][a-z]{2} ([A-Z][a-z]{2} \d{1,2}) (\d\d:\d\d:\d\d) ([A-Z]{1,5}) (\d{4})$/;

/**
 * A moment as peers write it, in ms since the epoch: ISO 8601 (without a zone: UTC), RFC 1123, or Java's
 * `Sat Nov 21 03:26:19 UTC 2026`. Undefined for anything else, a date without a time included.
 */
export function parseMoment(text = ''): number | undefined {
  const [, date, time, zone = 'Z'] = ISO.exec(text) ?? [];
  const [, day, hour, name = '', year] = JAVA.exec(text) ?? [];
  const moment =
    date !== undefined
      ? Date.parse(`${date}T${time}${zone.replace(/^([+-]\d\d)(\d\d)$/, '$1:$2')}`)
      : day !== undefined
        ? Date.parse(`${day} ${year} ${hour} GMT`) - (ZONES[name] ?? Number.NaN) * 3_600_000
        : RFC_1123.test(text)
          ? Date.parse(text)
          : Number.NaN;
  return Number.isNaN(moment) ? undefined : moment;
}
