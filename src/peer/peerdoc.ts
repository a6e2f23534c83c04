import {
  type AnswerRecord,
  allRecords,
  fieldNumber,
  fieldValue,
  fieldValues,
  type HttpAnswer,
  isSameUrl,
  readAnswer,
  unescaped,
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
 * The document that an answer shows; undefined where the peer says that it has none: a record with
 * nothing in it.
 *
 * @param isSame whether the URL shown is the one asked for
 * @throws PeerError PEER_ANSWER for anything else, a document that was not asked for included
 */
export function readPeerdoc(
  answer: HttpAnswer,
  query: PeerdocQuery,
  isSame: (shown: string, asked: string) => boolean = isSameUrl,
): Peerdoc | undefined {
  const isAsked = (record: AnswerRecord): boolean => {
    const shown = 'url' in query ? urlOf(record) : hashOf(record);
    if (shown === undefined) return true;
    return 'url' in query ? isSame(shown, query.url) : shown === withoutPrefix(query.urlhash);
  };
  const candidates = allRecords(readAnswer(answer).record).filter(
    (record) => fieldValues(record, 'url', 'identifier', 'urlhash').length > 0,
  );
  if (candidates.length === 0) throw unusable(answer, 'does not say what it knows of the document');
  const shown = candidates.filter(
    (record) => urlOf(record) !== undefined || hashOf(record) !== undefined,
  );
  const record = shown.find(isAsked) ?? shown[0];
  if (record === undefined) return undefined;
  // The URL beside an error may be an echo of the question.
  if (fieldValue(record, 'error') !== undefined || fieldValue(record, 'found') === 'false')
    throw unusable(answer, 'does not say what it knows of the document');
  if (isAsked(record)) return peerdocOf(record, answer);
  throw unusable(answer, 'answered about another document than the one asked for');
}

/**
 * What an answer shows of each of several documents, in their order; one of another URL is no
 * evidence. @throws PeerError PEER_ANSWER where it is not about each
 */
export function readPeerdocs(answer: HttpAnswer, urls: readonly string[]): (Peerdoc | undefined)[] {
  const items = new Map(
    allRecords(readAnswer(answer).record).map((each) => [fieldNumber(each, 'item'), each]),
  );
  return urls.map((_, n) => {
    const item = items.get(n);
    const found = item && fieldValue(item, 'found');
    if (item !== undefined && found === 'true') return peerdocOf(item, answer);
    if (found === 'false') return undefined;
    throw unusable(answer, 'does not say what it knows of each document');
  });
}

function urlOf(record: AnswerRecord): string | undefined {
  return fieldValues(record, 'url', 'identifier').find(
    (value) => value !== '' && !value.startsWith(HASH_PREFIX),
  );
}

function hashOf(record: AnswerRecord): string | undefined {
  const prefixed = fieldValues(record, 'identifier').find((value) => value.startsWith(HASH_PREFIX));
  return withoutPrefix(fieldValue(record, 'urlhash') ?? prefixed ?? '') || undefined;
}

function withoutPrefix(hash: string): string {
  return hash.startsWith(HASH_PREFIX) ? hash.slice(HASH_PREFIX.length) : hash;
}

function peerdocOf(record: AnswerRecord, { at, peerAt }: HttpAnswer): Peerdoc {
  const fields = new Map<string, string[]>();
  for (const { name, value } of record.fields)
    fields.set(name, [...(fields.get(name) ?? []), value]);
  const digest = fieldValue(record, 'digest');
  return {
    url: urlOf(record),
    urlhash: hashOf(record),
    title: fieldValue(record, 'title'),
    size: fieldNumber(record, 'size', 'formatextent'),
    words: fieldNumber(record, 'words'),
    digest: /^[0-9a-f]{64}$/.test(digest ?? '') ? digest : undefined,
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
  const values = fieldValues(record, 'collections').filter((value) => value !== '');
  if (values.length === 0) return undefined;
  const names = values.flatMap((value) => value.replace(/^\[|\]$/g, '').split(','));
  return names.map((name) => name.trim()).filter((name) => name !== '');
}

/** Hours east of Greenwich, of the names that Java prints where peers of this family run. */
const ZONES: Readonly<Record<string, number>> = {
  UTC: 0,
  GMT: 0,
  WET: 0,
  CET: 1,
  WEST: 1,
  MEZ: 1,
  CEST: 2,
  EET: 2,
  MESZ: 2,
  EEST: 3,
  MSK: 3,
  EST: -5,
  EDT: -4,
  CST: -6,
  CDT: -5,
  MST: -7,
  MDT: -6,
  PST: -8,
  PDT: -7,
};
const ISO = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:\.\d+)?)\s*(Z|[+-]\d\d:?\d\d)?$/i;
const JAVA = /^[A-Z][a-z]{2} ([A-Z][a-z]{2} \d{1,2}) (\d\d:\d\d:\d\d) ([A-Z]{1,5}) (\d{4})$/;

/**
 * A moment as peers write it, in ms since the epoch: ISO 8601 (without a zone: UTC), or Java's
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
        : Number.NaN;
  return Number.isNaN(moment) ? undefined : moment;
}

/** What was pushed, and when. */
export interface SentVersion {
  /** Bytes of the text as it travelled (UTF-8). */
  readonly size: number;
  /** sha256 of the text as it travelled, lower-case hex. */
  readonly digest: string;
  readonly url: string;
  readonly collection: string;
  /** When it was pushed, by our clock, in ms since the epoch. */
  readonly at: number;
  /** When the push began, by the peer's clock (whole seconds, as ms). */
  readonly peerAt?: number;
  /**
   * Its last modification as it was told to the peer, in ms since the epoch; only where the peer
   * keeps it as it is.
   */
  readonly lastModified?: number;
  /** How many words it has, 10 or more; only where the peer shows how many it indexed (YaCy). */
  readonly words?: number;
}

/** What can show that a document is the version that was pushed, strongest first. */
export type EvidenceKind = 'digest' | 'lastModified' | 'loadDate' | 'size' | 'present';

export type VersionShown =
  /** `text`: what the peer showed. */
  | { readonly shown: true; readonly kind: EvidenceKind; readonly text: string }
  /** `isWithoutText`: it is the version that was sent, but its text is not in the index. */
  | { readonly shown: false; readonly why: string; readonly isWithoutText?: true };

/** How far our clock and the peer's may be apart where only ours is known, in ms. */
const SLACK_MS = 2_000;

/**
 * Whether the peer shows the version that was sent, and what tells so.
 *
 * The document must be the one that was sent and stand in its collection. Then a digest decides
 * alone. Without one, anything that contradicts is enough to say no: another size, no words, a load
 * date before the push; and what agrees is evidence, the strongest first. A last modification
 * counts where one was pushed: in whole seconds, as peers keep it.
 */
export function evidenceOf(doc: Peerdoc | undefined, sent: SentVersion): VersionShown {
  if (doc === undefined) return { shown: false, why: 'the peer does not know the document' };
  const misplaced = misplacedBecause(doc, sent);
  if (misplaced !== undefined) return { shown: false, why: misplaced };
  if (doc.digest !== undefined) {
    return doc.digest === sent.digest
      ? { shown: true, kind: 'digest', text: `sha256 ${doc.digest}` }
      : { shown: false, why: `the peer shows other content (sha256 ${doc.digest})` };
  }
  const contradiction = contradictionIn(doc, sent);
  if (contradiction !== undefined) return { shown: false, why: contradiction };
  if (isWithoutText(doc, sent)) {
    const why = `the peer indexed none of its text (${doc.words} words, which are those of its URL)`;
    return { shown: false, why, isWithoutText: true };
  }
  if (doc.lastModified !== undefined && isSameSecond(doc.lastModified, sent.lastModified))
    return { shown: true, kind: 'lastModified', text: moment(doc.lastModified) };
  if (doc.loadDate !== undefined)
    return { shown: true, kind: 'loadDate', text: moment(doc.loadDate) };
  if (doc.size !== undefined) return { shown: true, kind: 'size', text: `${doc.size} bytes` };
  return { shown: true, kind: 'present', text: doc.url ?? doc.urlhash ?? 'the document' };
}

function misplacedBecause(doc: Peerdoc, sent: SentVersion): string | undefined {
  if (doc.url !== undefined && !isSameUrl(doc.url, sent.url))
    return `the peer shows another document, ${doc.url}`;
  const { collections } = doc;
  if (collections === undefined) return undefined;
  const missing = sent.collection
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && !collections.includes(name));
  if (missing.length === 0) return undefined;
  return `the peer shows it in [${collections.join(', ')}], not in ${missing.join(', ')}`;
}

function contradictionIn(doc: Peerdoc, sent: SentVersion): string | undefined {
  const { size, words, loadDate, lastModified } = doc;
  if (sent.size > 0 && size === 0) return 'the peer has an empty document';
  if (sent.size > 0 && words === 0) return 'the peer has a document without words';
  if (size !== undefined && size !== sent.size) {
    return `the peer shows a version of ${size} bytes, and ${sent.size} were pushed`;
  }
  if (isOtherDate(doc, sent))
    return `the peer shows another version, last modified ${moment(lastModified ?? 0)}`;
  if (loadDate !== undefined && isBefore(loadDate, doc, sent)) {
    return `the peer shows an older version, loaded ${moment(loadDate)}`;
  }
  return undefined;
}

/**
 * Whether there are no more words than those of the URL, which YaCy indexes where it drops a text
 * (measured with 1.92).
 */
function isWithoutText({ words }: Peerdoc, sent: SentVersion): boolean {
  if (words === undefined || sent.words === undefined) return false;
  const ofUrl = mostWordsOf(sent.url);
  return words <= ofUrl && sent.words > ofUrl;
}

/**
 * How many words a URL gives at most; YaCy also takes apart what is written like `camelCase` or
 * `b6`.
 */
function mostWordsOf(url: string): number {
  let words = 0;
  for (const [run] of unescaped(url).matchAll(/[\p{L}\p{N}]+/gu)) {
    const parts =
      run.match(/\p{N}+|\p{Lu}*[^\p{N}\p{Lu}]*/gu)?.filter((part) => part !== '').length ?? 1;
    words += parts > 1 ? parts + 1 : 1;
  }
  return words;
}

/**
 * A document that tells an earlier date of its own (a PDF, a page with a date in its head) keeps
 * that in YaCy (Segment.storeDocument of its source); then the load date has to tell the versions
 * apart.
 */
function isOtherDate({ lastModified, loadDate }: Peerdoc, sent: SentVersion): boolean {
  if (sent.lastModified === undefined || lastModified === undefined) return false;
  if (isSameSecond(lastModified, sent.lastModified)) return false;
  return lastModified > sent.lastModified || loadDate === undefined;
}

function isSameSecond(a: number, b: number | undefined): boolean {
  return b !== undefined && wholeSeconds(a) === wholeSeconds(b);
}

/**
 * Peers keep load dates in whole seconds. By the peer's own clock that is compared as it is. Where
 * the push told nothing of that clock, this look-up does: its date against ours is how far the two
 * are apart.
 */
function isBefore(loadDate: number, doc: Peerdoc, sent: SentVersion): boolean {
  if (sent.peerAt !== undefined) return loadDate < sent.peerAt;
  const ahead = doc.peerAt === undefined ? 0 : doc.peerAt - doc.at;
  return loadDate < sent.at + ahead - SLACK_MS;
}

function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1000);
}

function moment(ms: number): string {
  return new Date(ms).toISOString();
}
