import {
  type AnswerRecord,
  allRecords,
  fieldNumber,
  fieldValue,
  fieldValues,
  type HttpAnswer,
  readAnswer,
  unusable,
} from './answer.js';
import { type FormField, fieldsOf } from './form.js';

/** What is looked for. */
export interface SearchQuery {
  /** In the language of the peer: words, all of which have to be there. */
  readonly words: string;
  /** Only documents of this collection. */
  readonly collection?: string | undefined;
  /** At most so many. */
  readonly limit: number;
  /** `date`: the newest first. @default the best first */
  readonly sort?: 'date' | undefined;
}

/** A document that was found. What the peer did not show is undefined. */
export interface Found {
  readonly url: string;
  readonly title?: string | undefined;
  /** Where the words stand, without markup. */
  readonly snippet?: string | undefined;
  readonly collections?: readonly string[] | undefined;
  /** Bytes. */
  readonly size?: number | undefined;
  readonly author?: string | undefined;
  /** Of the content, in ms since the epoch. */
  readonly date?: number | undefined;
  /** When its file was changed, in ms since the epoch. */
  readonly lastModified?: number | undefined;
  /** When the peer got it, in ms since the epoch. */
  readonly loadDate?: number | undefined;
}

export interface SearchAnswer {
  /** How many there are; at least so many where `totalIsExact` is false. */
  readonly total: number;
  readonly totalIsExact: boolean;
  /** The words that were looked for instead, where nothing was found. */
  readonly corrected?: string | undefined;
  readonly items: readonly Found[];
}

/** Where one kind of peer is searched, and by which parameters. */
export interface SearchDialect {
  readonly path: string;
  fields(query: SearchQuery): readonly FormField[];
}

/** The embedded peer's `/search.json`; other peers of the specification have no search. */
export const standardSearch: SearchDialect = {
  path: '/search.json',
  fields: ({ words: query, collection, limit, sort }) =>
    fieldsOf({ query, collection, limit, sort }),
};

/** YaCy's `yacysearch.json`, of what it has itself; collection and order are words of the query. */
export const yacySearch: SearchDialect = {
  path: '/yacysearch.json',
  fields: ({ words, collection, limit, sort }) => {
    const within = collection === undefined ? '' : ` collection:${collection}`;
    const query = `${words}${within}${sort === 'date' ? ' /date' : ''}`;
    return fieldsOf({
      query,
      resource: 'local',
      maximumRecords: limit,
      startRecord: 0,
      verify: 'false',
    });
  },
};

/**
 * What an answer in JSON shows, in the names of either kind of peer. @throws PeerError PEER_ANSWER
 */
export function readSearch(answer: HttpAnswer): SearchAnswer {
  const records = allRecords(readAnswer(answer).record);
  const head = records.find((record) => fieldValue(record, 'total', 'totalresults') !== undefined);
  // YaCy parts thousands as its language does.
  const total = Number(
    (head && fieldValue(head, 'total', 'totalresults'))?.replace(/[.,'\s]/g, ''),
  );
  if (head === undefined || !Number.isSafeInteger(total))
    throw unusable(answer, 'does not say what it found');
  const items = records.filter(({ name }) => name === 'items').flatMap(foundOf);
  const corrected = fieldValue(head, 'corrected');
  return { total, totalIsExact: fieldValue(head, 'totalisexact') !== 'false', corrected, items };
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

const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  '#39': "'",
};

/** YaCy marks the words in its snippets, and escapes what it shows. */
function withoutMarkup(text: string): string {
  return text
    .replace(/<\/?(b|em|strong|i)>/gi, '')
    .replace(/&(amp|lt|gt|quot|#39);/g, (entity, name: string) => ENTITIES[name] ?? entity);
}
