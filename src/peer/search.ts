import { decodeEntities } from '../lib/markup.js';
import { type HttpAnswer, unusable } from './answer.js';
import {
  type AnswerRecord,
  allRecords,
  fieldNumber,
  fieldValue,
  fieldValues,
  readAnswer,
} from './records.js';

/** The query of a search. */
export interface SearchQuery {
  /** The search words, in the syntax of the peer. A document must have all of them. */
  readonly words: string;
  /** Finds only documents of this collection. */
  readonly collection?: string | undefined;
  /** Finds only files with this extension, or of this group of them. */
  readonly type?: string | undefined;
  /** Finds only documents from this year, month or day on: `2024`, `2024-03`, `2024-03-17`. */
  readonly after?: string | undefined;
  /** Finds only documents up to this year, month or day, which is included. */
  readonly before?: string | undefined;
  /** The most results. */
  readonly limit: number;
  /** `date` sorts the newest first. @default the best match first */
  readonly sort?: 'date' | undefined;
}

/** A result of a search. A field that the peer did not show is undefined. */
export interface Found {
  readonly url: string;
  readonly title?: string | undefined;
  /** The text around the search words, without markup. */
  readonly snippet?: string | undefined;
  readonly collections?: readonly string[] | undefined;
  /** Size in bytes. */
  readonly size?: number | undefined;
  readonly author?: string | undefined;
  /** The date of the content, in ms since the epoch. */
  readonly date?: number | undefined;
  /** The last modification of its file, in ms since the epoch. */
  readonly lastModified?: number | undefined;
  /** When the peer received it, in ms since the epoch. */
  readonly loadDate?: number | undefined;
}

/** A file that a daemon knows by name and that is not searchable. */
export interface NotIndexed {
  readonly path: string;
  readonly status: string;
  readonly code?: string | undefined;
  readonly reason?: string | undefined;
  readonly hint?: string | undefined;
}

/** The most of these that are read. A peer names five. */
const MAX_NOT_INDEXED = 20;

export interface SearchAnswer {
  /** The number of matching documents. A lower bound unless `totalIsExact`. */
  readonly total: number;
  readonly totalIsExact: boolean;
  /** The words that the peer searched instead, because the query found nothing. */
  readonly corrected?: string | undefined;
  /** The terms that the peer left out, because no document has all. */
  readonly without?: readonly string[] | undefined;
  /** The words by which the peer answered a question. */
  readonly keywords?: readonly string[] | undefined;
  /** The filters that the peer could not understand and took as words. */
  readonly misread?: readonly string[] | undefined;
  /** The number of results that have only other forms of some words. */
  readonly otherForms?: number | undefined;
  /** Set if the peer ignored the signs of words such as C++, until its index is migrated. */
  readonly signsIgnored?: true | undefined;
  readonly items: readonly Found[];
  /** Files whose names have the words, if an embedded peer says so. */
  readonly notIndexed?: readonly NotIndexed[] | undefined;
  /** The number of such files; those in `notIndexed` are the first. */
  readonly notIndexedTotal?: number | undefined;
}

/**
 * Reads a JSON answer. Knows the field names of both kinds of peer. @throws PeerError PEER_ANSWER
 */
export function readSearch(answer: HttpAnswer): SearchAnswer {
  const records = allRecords(readAnswer(answer).record);
  const head = records.find((record) => fieldValue(record, 'total', 'totalresults') !== undefined);
  // YaCy separates thousands as its language setting says.
  const total = Number(
    (head && fieldValue(head, 'total', 'totalresults'))?.replace(/[.,'\s]/g, ''),
  );
  if (head === undefined || !Number.isSafeInteger(total))
    throw unusable(answer, 'does not say what it found');
  const items = records.filter(({ name }) => name === 'items').flatMap(foundOf);
  const corrected = fieldValue(head, 'corrected');
  const [without = [], keywords = [], misread = []] = ['without', 'keywords', 'misread'].map(
    (name) => fieldValues(head, name).filter((term) => term !== ''),
  );
  const notIndexed = records
    .filter(({ name }) => name === 'notIndexed')
    .slice(0, MAX_NOT_INDEXED)
    .flatMap(notIndexedOf);
  return {
    total,
    totalIsExact: fieldValue(head, 'totalisexact') !== 'false',
    corrected,
    ...(without.length > 0 && { without }),
    ...(keywords.length > 0 && { keywords }),
    ...(misread.length > 0 && { misread }),
    otherForms: fieldNumber(head, 'otherforms'),
    ...(fieldValue(head, 'signsignored') === 'true' && { signsIgnored: true }),
    items,
    ...(notIndexed.length > 0 && {
      notIndexed,
      notIndexedTotal: fieldNumber(head, 'notindexedtotal') ?? notIndexed.length,
    }),
  };
}

function notIndexedOf(record: AnswerRecord): NotIndexed[] {
  const [path, status] = [fieldValue(record, 'path'), fieldValue(record, 'status')];
  if (path === undefined || status === undefined) return [];
  const [code, reason, hint] = ['code', 'reason', 'hint'].map((name) => fieldValue(record, name));
  return [{ path, status, code, reason, hint }];
}

function foundOf(record: AnswerRecord): Found[] {
  const [url, title, snippet] = [['url', 'link'], ['title'], ['snippet', 'description']].map(
    (names) => fieldValue(record, ...names),
  );
  if (url === undefined) return [];
  const moment = (...names: readonly string[]): number | undefined => {
    const at = Date.parse(fieldValue(record, ...names) ?? '');
    return Number.isNaN(at) ? undefined : at;
  };
  const collections = fieldValues(record, 'collections').filter(
    (name) => name !== '' && name !== '[]',
  );
  const isOurs = fieldValue(record, 'link') === undefined;
  const plain = (text: string | undefined) => (isOurs ? text : text && withoutMarkup(text));
  return [
    {
      url: isOurs ? url : withoutMarkup(url),
      title: plain(title),
      snippet: plain(snippet),
      collections: collections.length === 0 ? undefined : collections,
      size: fieldNumber(record, 'size'),
      author: fieldValue(record, 'author'),
      date: moment('date', 'pubdate'),
      lastModified: moment('lastmodified'),
      loadDate: moment('loaddate'),
    },
  ];
}

/** Removes the tags with which YaCy marks words, and decodes its entities. */
function withoutMarkup(text: string): string {
  return decodeEntities(text.replace(/<\/?(b|em|strong|i)>/gi, ''));
}
