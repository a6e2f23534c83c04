import { decodedPart } from '../lib/text.js';
import { type HttpAnswer, isSuccess, unusable } from './answer.js';
import {
  type AnswerRecord,
  allRecords,
  fieldNumber,
  fieldValue,
  fieldValues,
  readAnswer,
} from './records.js';
import { isSameUrl } from './url.js';

/** Names a document by its URL, or by a hash that the peer showed earlier. */
export type PeerdocQuery = { readonly url: string } | { readonly urlhash: string };

export interface PeerdocOptions {
  /** Sent unchanged. The peer defines its meaning. */
  readonly html?: string;
  readonly signal?: AbortSignal;
}

/** One document as the peer shows it. A field that the peer did not show is undefined. */
export interface Peerdoc {
  readonly url?: string | undefined;
  readonly urlhash?: string | undefined;
  readonly title?: string | undefined;
  /** Size in bytes. */
  readonly size?: number | undefined;
  readonly words?: number | undefined;
  /** sha256 of the content as it was pushed, lower-case hex. */
  readonly digest?: string | undefined;
  /** Time of the last modification, in ms since the epoch. */
  readonly lastModified?: number | undefined;
  /** When the peer received the document, by its clock, in ms since the epoch. */
  readonly loadDate?: number | undefined;
  readonly collections?: readonly string[] | undefined;
  /** When the answer arrived, by our clock, in ms since the epoch. */
  readonly at: number;
  /**
   * The same moment by the peer's clock, in ms (whole seconds); undefined if the answer has no
   * date.
   */
  readonly peerAt?: number | undefined;
  /** All fields, by the name that the peer uses, each with all its values. */
  readonly fields: Readonly<Record<string, readonly string[]>>;
}

const HASH_PREFIX = 'yacy:urlhash:';

/**
 * Returns the document that an answer shows. Returns undefined for an empty record, which means
 * that the peer has no such document.
 *
 * @param isSame whether the shown URL names the document that was requested
 * @throws PeerError PEER_ANSWER for any other answer, and for another document than the one
 *   requested
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
  if (candidates.length === 0) throw unusable(answer, 'does not say whether it has the document');
  const shown = candidates.filter(
    (record) => urlOf(record) !== undefined || hashOf(record) !== undefined,
  );
  const record = shown.find(isAsked) ?? shown[0];
  if (record === undefined) return undefined;
  // Beside an error, the URL may only repeat the request.
  if (fieldValue(record, 'error') !== undefined || fieldValue(record, 'found') === 'false')
    throw unusable(answer, 'does not say whether it has the document');
  if (isAsked(record)) return peerdocOf(record, answer);
  throw unusable(answer, 'answered about another document than the one asked for');
}

/**
 * Returns the documents that an answer shows, in the order of the URLs. A document shown under
 * another URL is no evidence.
 *
 * @throws PeerError PEER_ANSWER if the answer leaves out a document
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
    throw unusable(answer, 'does not say of each document whether it has it');
  });
}

/** Whether an answer has a record with the field names of a document. The values may be empty. */
export function isDocumentRecord(answer: HttpAnswer): boolean {
  if (!isSuccess(answer.status)) return false;
  try {
    const { record } = readAnswer(answer);
    const names = ['identifier', 'urlhash'];
    return allRecords(record).some((each) => fieldValues(each, ...names).length > 0);
  } catch {
    return false;
  }
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

/** Reads the forms `[a, b]` and `a,b`, and one name in each field. */
function collectionsOf(record: AnswerRecord): readonly string[] | undefined {
  const values = fieldValues(record, 'collections').filter((value) => value !== '');
  if (values.length === 0) return undefined;
  const names = values.flatMap((value) => value.replace(/^\[|\]$/g, '').split(','));
  return names.map((name) => name.trim()).filter((name) => name !== '');
}

/**
 * Hours east of Greenwich, for the zone names that Java prints in the regions where these peers
 * run.
 */
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
 * Parses a date as peers write it: ISO 8601 (UTC if it has no zone), or Java's `Sat Nov 21 03:26:19
 * UTC 2026`.
 *
 * @returns ms since the epoch; undefined for anything else, such as a date without a time
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

/** The version of a document that was pushed. */
export interface SentVersion {
  /** Bytes of the text as it was sent, in UTF-8. */
  readonly size: number;
  /** sha256 of the text as it was sent, in lower-case hex. */
  readonly digest: string;
  readonly url: string;
  readonly collection: string;
  /** When it was pushed, by our clock, in ms since the epoch. */
  readonly at: number;
  /** When the push began, by the peer's clock, in ms since the epoch (whole seconds). */
  readonly peerAt?: number;
  /**
   * The last modification that the push sent, in ms since the epoch. Set only if the peer keeps it
   * unchanged.
   */
  readonly lastModified?: number;
  /**
   * The number of its words, between 10 and 100; 100 stands for 100 or more. Left out for shorter
   * texts, and if the peer does not show how many words it indexed (only YaCy does).
   */
  readonly words?: number;
}

/** The fields that can prove the version of a document, strongest first. */
export type EvidenceKind = 'digest' | 'lastModified' | 'loadDate' | 'size' | 'present';

export type VersionShown =
  /** `text` is the value that the peer showed. */
  | { readonly shown: true; readonly kind: EvidenceKind; readonly text: string }
  /** `isWithoutText`: the peer shows the version that was sent, but did not index its text. */
  | { readonly shown: false; readonly why: string; readonly isWithoutText?: true };

/** The largest difference between our clock and the peer's if only ours is known, in ms. */
const CLOCK_TOLERANCE_MS = 2_000;

/**
 * Returns whether the peer shows the version that was sent, and the evidence.
 *
 * The document must have the URL and the collection that were sent. If it shows a digest, the
 * digest alone decides. Otherwise any contradiction means no: another size, no words, a load date
 * before the push. The strongest field that agrees is the evidence. The last modification counts
 * only if the push sent one. It is compared in whole seconds, as peers keep it.
 */
export function evidenceOf(doc: Peerdoc | undefined, sent: SentVersion): VersionShown {
  if (doc === undefined) return { shown: false, why: 'the peer does not know the document' };
  const misplaced = misplacement(doc, sent);
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
    return { shown: true, kind: 'lastModified', text: isoDate(doc.lastModified) };
  if (doc.loadDate !== undefined)
    return { shown: true, kind: 'loadDate', text: isoDate(doc.loadDate) };
  if (doc.size !== undefined) return { shown: true, kind: 'size', text: `${doc.size} bytes` };
  return { shown: true, kind: 'present', text: doc.url ?? doc.urlhash ?? 'the document' };
}

function misplacement(doc: Peerdoc, sent: SentVersion): string | undefined {
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
    return `the peer shows another version, last modified ${isoDate(lastModified ?? 0)}`;
  if (loadDate !== undefined && isLoadedBeforePush(loadDate, doc, sent)) {
    return `the peer shows an older version, loaded ${isoDate(loadDate)}`;
  }
  return undefined;
}

/**
 * Whether the peer indexed no more words than those of the URL. YaCy 1.92 does so when it drops a
 * text (measured).
 */
function isWithoutText({ words }: Peerdoc, sent: SentVersion): boolean {
  if (words === undefined || sent.words === undefined) return false;
  const ofUrl = maxWordsOfUrl(sent.url);
  return words <= ofUrl && sent.words > ofUrl;
}

/** Returns the most words that a peer finds in a URL. YaCy also splits `camelCase` and `b6`. */
function maxWordsOfUrl(url: string): number {
  let words = 0;
  for (const [run] of decodedPart(url).matchAll(/[\p{L}\p{N}]+/gu)) {
    const parts =
      run.match(/\p{N}+|\p{Lu}*[^\p{N}\p{Lu}]*/gu)?.filter((part) => part !== '').length ?? 1;
    words += parts > 1 ? parts + 1 : 1;
  }
  return words;
}

/**
 * Whether the last modification is that of another version. If a document states an earlier date
 * itself (a PDF, a page with a date in its head), YaCy shows that date (Segment.storeDocument in
 * its source). Then the load date has to distinguish the versions.
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
 * Whether the load date is before the push. Peers keep load dates in whole seconds. If the push
 * showed the peer's clock, the two are compared directly. Otherwise this look-up shows the
 * difference between the clocks.
 */
function isLoadedBeforePush(loadDate: number, doc: Peerdoc, sent: SentVersion): boolean {
  if (sent.peerAt !== undefined) return loadDate < sent.peerAt;
  const ahead = doc.peerAt === undefined ? 0 : doc.peerAt - doc.at;
  return loadDate < sent.at + ahead - CLOCK_TOLERANCE_MS;
}

function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1000);
}

function isoDate(ms: number): string {
  return new Date(ms).toISOString();
}
