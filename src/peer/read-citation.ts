import { decoded, isFailurePage, readAnswer, unusable } from './answer.js';
import type { Citation, CitationQuery, CitedSentence, CitingDocument } from './citation.js';
import { saysNotFound } from './denial.js';
import type { HttpAnswer } from './http.js';
import { readCitationPage } from './read-citation-page.js';
import {
  type Answer,
  type AnswerRecord,
  allRecords,
  canonical,
  fieldNumber,
  fieldValue,
  fieldValues,
} from './record.js';
import { isSameUrl } from './url.js';

const LISTS = ['sentences', 'citing', 'similar'];
/** What an empty list is read as. */
const EMPTY = '[]';

/**
 * The references that an answer shows; undefined where the peer says that it has no such document.
 *
 * A citation with nothing in its lists is one; an answer without any such list is none.
 *
 * @throws PeerError PEER_ANSWER for anything else, a document that was not asked for included
 */
export function readCitation(answer: HttpAnswer, query: CitationQuery): Citation | undefined {
  if (answer.status === 404) return undefined;
  const read = readAnswer(answer);
  if (isFailurePage(read)) throw unusable(answer, 'answered with an error page when asked for citations');
  const citation = citationIn(read, answer);
  if (citation === undefined && saysNotFound(read)) return undefined;
  if (citation === undefined) throw unusable(answer, 'does not say what it knows of citations');
  if (citation.url === '') return undefined;
  if (!isAsked(citation, query))
    throw unusable(answer, 'answered about another document than the one asked for');
  return citation;
}

function citationIn(read: Answer, answer: HttpAnswer): Citation | undefined {
  if (read.form === 'html') return readCitationPage(decoded(answer.body));
  const record = [...allRecords(read.record)].find((each) => LISTS.some((name) => has(each, name)));
  return record && citationOf(record);
}

function has({ fields, records }: AnswerRecord, name: string): boolean {
  return [...fields, ...records].some((each) => canonical(each.name) === name);
}

function citationOf(record: AnswerRecord): Citation {
  return {
    url: fieldValue(record, 'url'),
    urlhash: fieldValue(record, 'urlhash', 'hash'),
    title: fieldValue(record, 'title'),
    sentences: listOf(record, 'sentences', 'text').map(sentenceOf),
    citing: documentsOf(record, 'citing'),
    similar: documentsOf(record, 'similar'),
    more: flag(fieldValue(record, 'more')),
  };
}

function flag(text: string | undefined): boolean | undefined {
  return text === 'true' ? true : text === 'false' ? false : undefined;
}

/** JSON gives each element of a list its name; XML has the elements inside one of that name. */
function listOf(record: AnswerRecord, name: string, required: string): AnswerRecord[] {
  return record.records
    .filter((each) => canonical(each.name) === name)
    .flatMap((each) => [...allRecords(each)])
    .filter((each) => has(each, required));
}

function sentenceOf(record: AnswerRecord, position: number): CitedSentence {
  return {
    number: fieldNumber(record, 'number', 'n') ?? position,
    text: fieldValues(record, 'text')[0] ?? '',
    appearsIn: fieldValues(record, 'appearsin').filter((url) => url !== '' && url !== EMPTY),
  };
}

function documentsOf(record: AnswerRecord, name: string): CitingDocument[] {
  const documents = listOf(record, name, 'url').map((each) => ({
    url: fieldValue(each, 'url') ?? '',
    title: fieldValue(each, 'title'),
    sentences: fieldNumber(each, 'sentences'),
  }));
  return documents.filter(({ url }) => url !== '');
}

function isAsked({ url, urlhash }: Citation, query: CitationQuery): boolean {
  if ('url' in query) return url === undefined || isSameUrl(url, query.url);
  return urlhash === undefined || urlhash === query.hash;
}
