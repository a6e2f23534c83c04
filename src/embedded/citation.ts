import type { CitationSearch, FoundCitations, FoundSentence } from './citation-search.js';
import { findDocument } from './document-endpoints.js';
import type { Document, DocumentStore } from './documents.js';
import { documentLink, escapeMarkup, pageAround } from './markup.js';
import type { AnswerForm, Context } from './server.js';

/** From how many common sentences on a document counts as similar, unless `ch` says otherwise; YaCy's number. */
const SIMILAR_FROM = 10;
/** Other documents that are listed, those with the most common sentences first. */
const MOST_CITING = 1_000;
const LARGEST_CH = 999_999_999;

/**
 * Shows the references around one document, by `url` or by `hash` (which wins where both are given): its sentences and which
 * other documents hold them, only those that some do with `filter=true`; who holds most of them; and which of
 * these, on other hosts, hold at least `ch`. A document that is not in the index is refused with 404.
 */
export async function citation(
  context: Context,
  { citations, documents }: { readonly citations: CitationSearch; readonly documents: DocumentStore },
): Promise<Iterable<string>> {
  const form = await context.form();
  const choice = { filter: form.isTrue('filter'), ch: form.number('ch', SIMILAR_FROM, LARGEST_CH) };
  const document = findDocument(form, 'hash', documents);
  const found = await citations.find(document, () => context.isGone);
  return CITATION_WRITERS[context.as](recordOf(document, found, choice, documents));
}

function recordOf(
  document: Document,
  found: FoundCitations,
  { filter, ch }: { readonly filter: boolean; readonly ch: number },
  documents: DocumentStore,
): CitationRecord {
  const byCount = [...found.counts].sort(([a, most], [b, least]) => least - most || a - b);
  const citing = byCount.slice(0, MOST_CITING).flatMap(([id, sentences]) => {
    const other = documents.byId(id);
    return other ? [{ url: other.url, title: other.title, sentences }] : [];
  });
  const host = hostOf(document.url);
  return {
    document,
    filter,
    ch,
    sentences: filter ? found.sentences.filter(({ appearsIn }) => appearsIn.length > 0) : found.sentences,
    urlOf: (id) => documents.byId(id)?.url,
    citing,
    similar: citing.filter(({ url, sentences }) => sentences >= ch && hostOf(url) !== host),
    more: found.more || byCount.length > MOST_CITING,
  };
}

function hostOf(url: string): string {
  return new URL(url).hostname;
}

/** Another document with sentences of this one. */
export interface CitingRecord {
  readonly url: string;
  readonly title: string;
  /** How many. */
  readonly sentences: number;
}

/** The references around one document, as they are shown. */
export interface CitationRecord {
  readonly document: Document;
  readonly filter: boolean;
  readonly ch: number;
  readonly sentences: readonly FoundSentence[];
  /** The URL of a document by its number; undefined where it is gone by now. */
  readonly urlOf: (id: number) => string | undefined;
  readonly citing: readonly CitingRecord[];
  readonly similar: readonly CitingRecord[];
  readonly more: boolean;
}

/** Each gives the record piece by piece, a sentence at a time. */
export const CITATION_WRITERS: Readonly<Record<AnswerForm, (record: CitationRecord) => Iterable<string>>> = {
  *json(record) {
    const { url, urlhash, title } = record.document;
    yield `{"url":${JSON.stringify(url)},"urlhash":"${urlhash}","title":${JSON.stringify(title)},"sentences":[`;
    let separator = '\n';
    for (const { number, text, appearsIn } of record.sentences) {
      yield `${separator}${JSON.stringify({ number, text, appearsIn: urlsOf(appearsIn, record) })}`;
      separator = ',\n';
    }
    for (const name of ['citing', 'similar'] as const) {
      const lines = record[name].map((each) => `\n${JSON.stringify(each)}`);
      yield `\n],"${name}":[${lines.join(',')}`;
    }
    yield `\n],"more":${record.more}}\n`;
  },

  /** The lists of YaCy's page: sentences by number, similar documents, and who cites how much. */
  *html(record) {
    const { document } = record;
    const { begin, end } = pageAround(`Citations of ${document.title}`);
    yield `${begin}<h1>Document Citations for<br>${documentLink(document.url, document.url)}</h1>\n` +
      `<p>${escapeMarkup(document.title)} · <a href="/">Search</a></p>\n`;
    if (record.more) yield '<p class="dim">The document has more to compare than is shown here.</p>\n';
    if (record.similar.length > 0) yield `${similarList(record)}\n`;
    yield `<h2>List of ${record.filter ? 'Cited ' : ''}Sentences</h2>\n${filterForm(record)}\n<dl>\n`;
    for (const { number, text, appearsIn } of record.sentences) {
      const links = urlsOf(appearsIn, record).map((url) => documentLink(url, new URL(url).host || url));
      const where = links.length === 0 ? '' : `<br>appears in: ${links.join(' ')}`;
      yield `<dt>${number}</dt><dd>${escapeMarkup(text)}${where}</dd>\n`;
    }
    yield '</dl>\n<h2>List of other web pages with citations</h2>\n<dl class="long">\n';
    for (const { url, sentences } of record.citing)
      yield `<dt>${documentLink(url, url)}</dt><dd>makes ${sentences} citations: of ${escapeMarkup(document.url)}</dd>\n`;
    yield `</dl>${end}`;
  },
};

function urlsOf(ids: readonly number[], record: CitationRecord): string[] {
  return ids.map(record.urlOf).filter((url) => url !== undefined);
}

function similarList({ similar }: CitationRecord): string {
  const lines = similar.map(({ url }) => `<li>${documentLink(url, url)}</li>`);
  return `<h2>Similar documents from different hosts:</h2>\n<ul>\n${lines.join('\n')}\n</ul>`;
}

function filterForm({ document, filter, ch }: CitationRecord): string {
  const [value, label] = filter ? ['false', 'All sentences'] : ['true', 'Only cited sentences'];
  return `<form action="/api/citation.html" method="get"><input type="hidden" name="url" value="${escapeMarkup(document.url)}">
<input type="hidden" name="ch" value="${ch}"><button type="submit" name="filter" value="${value}">${label}</button></form>`;
}
