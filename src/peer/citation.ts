import { type HttpAnswer, unusable } from './answer.js';
import {
  definitionsIn,
  type Element,
  isElement,
  type Node,
  parseHtml,
  visibleText,
  within,
  wordsOf,
} from './markup.js';
import {
  type AnswerRecord,
  allRecords,
  EMPTY_LIST,
  fieldNumber,
  fieldValue,
  fieldValues,
  readAnswer,
} from './records.js';
import { isSameUrl } from './url.js';

/** Names a document by its URL, or by a hash that the peer showed earlier. */
export type CitationQuery = { readonly url: string } | { readonly hash: string };

export interface CitationOptions {
  /** Requests only the sentences that also occur in other documents. */
  readonly filter?: boolean | undefined;
  /** The number of common sentences from which another document counts as similar. */
  readonly ch?: number | undefined;
  readonly signal?: AbortSignal;
}

/** A sentence of the document, and the other documents that contain it. */
export interface CitedSentence {
  /** The number of the sentence in the document, as the peer counts. */
  readonly number: number;
  readonly text: string;
  /** The URLs of the other documents that contain it. */
  readonly appearsIn: readonly string[];
}

/** Another document that contains sentences of this one. */
export interface CitingDocument {
  readonly url: string;
  readonly title?: string | undefined;
  /** The number of common sentences; undefined if the peer does not show it. */
  readonly sentences?: number | undefined;
}

/** The citations of one document. */
export interface Citation {
  readonly url?: string | undefined;
  readonly urlhash?: string | undefined;
  readonly title?: string | undefined;
  readonly sentences: readonly CitedSentence[];
  /** The documents that contain sentences of this one. */
  readonly citing: readonly CitingDocument[];
  /** The documents on other hosts with at least `ch` common sentences. */
  readonly similar: readonly CitingDocument[];
  /**
   * Whether the document is longer than the part that the peer compared; undefined if the peer does
   * not say.
   */
  readonly more?: boolean | undefined;
}

/**
 * Returns the citations that an answer shows; undefined if its page says that there is no such
 * document.
 *
 * Citations with empty lists are valid. An answer without any such list is not.
 *
 * @throws PeerError PEER_ANSWER for any other answer, and for another document than the one
 *   requested
 */
export function readCitation(answer: HttpAnswer, query: CitationQuery): Citation | undefined {
  const read = readAnswer(answer);
  const citation = read.form === 'html' ? citationOnPage(read.text) : citationIn(read.record);
  if (citation === undefined) throw unusable(answer, 'does not say whether it has citations');
  const { url, urlhash } = citation;
  if (url === '') return undefined;
  const isAsked =
    'url' in query
      ? url === undefined || isSameUrl(url, query.url)
      : urlhash === undefined || urlhash === query.hash;
  if (!isAsked) throw unusable(answer, 'answered about another document than the one asked for');
  return citation;
}

function citationIn(answer: AnswerRecord): Citation | undefined {
  const record = allRecords(answer).find((each) =>
    ['sentences', 'citing', 'similar'].some((name) => has(each, name)),
  );
  if (record === undefined) return undefined;
  const more = fieldValue(record, 'more');
  return {
    url: fieldValue(record, 'url'),
    urlhash: fieldValue(record, 'urlhash'),
    title: fieldValue(record, 'title'),
    sentences: listOf(record, 'sentences', 'text').map((each, position) => ({
      number: fieldNumber(each, 'number') ?? position,
      text: fieldValues(each, 'text')[0] ?? '',
      appearsIn: fieldValues(each, 'appearsin').filter((url) => url !== '' && url !== EMPTY_LIST),
    })),
    citing: documentsOf(record, 'citing'),
    similar: documentsOf(record, 'similar'),
    more: more === 'true' ? true : more === 'false' ? false : undefined,
  };
}

function has({ fields, records }: AnswerRecord, name: string): boolean {
  return fields.some(({ key }) => key === name) || records.some((each) => each.name === name);
}

/** Returns the records that the elements of a JSON list became. Each has the name of the list. */
function listOf(record: AnswerRecord, name: string, required: string): AnswerRecord[] {
  return record.records.filter((each) => each.name === name && has(each, required));
}

function documentsOf(record: AnswerRecord, name: string): CitingDocument[] {
  return listOf(record, name, 'url').flatMap((each) => {
    const url = fieldValue(each, 'url');
    const title = fieldValue(each, 'title');
    return url === undefined ? [] : [{ url, title, sentences: fieldNumber(each, 'sentences') }];
  });
}

const TITLE = /^Document Citations for/i;

/**
 * Reads the citations on a page for people, in the form of YaCy:
 *
 * - `dt`/`dd` pairs of a number and a sentence, which may end in `appears in:` and links;
 * - `dt`/`dd` pairs of a link and `makes 2 citations`;
 * - a list of similar documents.
 *
 * @returns undefined for any other page; an empty URL if the peer has no such document
 */
function citationOnPage(text: string): Citation | undefined {
  const nodes = parseHtml(text);
  const heading = within(nodes, ['h1']).find((each) => TITLE.test(visibleText(each)));
  const lists = within(nodes, ['dl']);
  if (heading === undefined || lists.length === 0) return undefined;
  const pairs = lists.flatMap(definitionsIn);
  const parts = within(nodes, ['h1', 'h2', 'h3', 'h4', 'ul']);
  const similar = parts.find(
    ({ name }, i) =>
      name === 'ul' && /^Similar documents\b/i.test(visibleText(parts[i - 1] ?? heading)),
  );
  return {
    url: linksIn(heading)[0] ?? visibleText(heading).replace(TITLE, '').trim(),
    sentences: pairs.flatMap(([term, definition]) => sentenceOf(term, definition)),
    citing: pairs.flatMap(([term, definition]) => {
      const [, sentences] = /^makes (\d{1,9}) citations?\b/.exec(visibleText(definition)) ?? [];
      if (sentences === undefined) return [];
      return [{ url: linksIn(term)[0] ?? visibleText(term), sentences: Number(sentences) }];
    }),
    similar: (similar ? linksIn(similar) : []).map((url) => ({ url })),
  };
}

function sentenceOf(term: Element, definition: Element): CitedSentence[] {
  const number = visibleText(term);
  if (linksIn(term).length > 0 || !/^\d{1,9}$/.test(number)) return [];
  const parts = descendantsOf(definition);
  const at = parts.findLastIndex((part, i) => {
    const before = parts[i - 1];
    const isBehindBreak = before !== undefined && isElement(before) && before.name === 'br';
    return isBehindBreak && /^\s*appears in:/.test(wordsOf(part));
  });
  const end = at === -1 ? parts.length : at;
  return [
    {
      number: Number(number),
      text: parts.slice(0, end).map(wordsOf).join('').replace(/\s+/g, ' ').trim(),
      appearsIn: parts.slice(end).filter(isElement).flatMap(hrefOf),
    },
  ];
}

/**
 * Returns all nodes inside, in the order of the page. Peers do not always escape or close their
 * content, so the nesting means nothing.
 */
function descendantsOf(element: Element): readonly Node[] {
  return element.children.flatMap((child) =>
    isElement(child) ? [child, ...descendantsOf(child)] : [child],
  );
}

function linksIn(element: Element): string[] {
  return within([element], ['a']).flatMap(hrefOf);
}

function hrefOf({ attribs }: Element): string[] {
  return attribs.href === undefined ? [] : [attribs.href];
}
