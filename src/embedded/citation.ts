import { type Answer, type AnswerForm, answer, Refusal, type Visit } from './answer.js';
import type { CitationSearch, FoundCitations, FoundSentence } from './citation-search.js';
import type { RequestForm } from './form.js';
import type { Document, Library } from './library.js';
import { documentLink, escapeMarkup, page } from './markup.js';
import { normaliseUrl } from './urls.js';

/** From how many common sentences on a document counts as similar, unless `ch` says otherwise; YaCy's number. */
const SIMILAR_FROM = 10;
/** Other documents that are listed, those with the most common sentences first. */
const MOST_CITING = 1_000;

export interface CitationParts {
  readonly citations: CitationSearch;
  readonly library: Library;
}

/**
 * Shows the references around one document, by `url` or by `hash` (which wins where both are given): its sentences and which
 * other documents hold them, only those that some do with `filter=true`; who holds most of them; and which of
 * these, on other hosts, hold at least `ch`. A document that is not in the index is refused with 404.
 */
export async function citation(form: RequestForm, visit: Visit, parts: CitationParts): Promise<Answer> {
  const filter = readFilter(form);
  const ch = readCh(form);
  const document = findDocument(form, parts.library);
  if (!document) throw new Refusal(404, 'This document is not in the index.');
  const found = await parts.citations.find(document, visit.signal);
  const record = recordOf(document, found, { filter, ch }, parts.library);
  return answer(visit.as, { chunks: () => CITATION_WRITERS[visit.as](record) });
}

function readFilter(form: RequestForm): boolean {
  const filter = form.text('filter') ?? '';
  if (!['', 'true', 'false'].includes(filter))
    throw new Refusal(400, 'The parameter filter can only be true or false.');
  return filter === 'true';
}

function readCh(form: RequestForm): number {
  const ch = form.text('ch') ?? '';
  if (ch === '') return SIMILAR_FROM;
  if (!/^\d{1,9}$/.test(ch))
    throw new Refusal(400, `The parameter ch has to be a number of sentences, not "${ch.slice(0, 40)}".`);
  return Number(ch);
}

function findDocument(form: RequestForm, library: Library): Document | undefined {
  const hash = form.text('hash') ?? '';
  if (hash !== '') return library.byUrlHash(hash);
  const url = form.text('url') ?? '';
  if (url === '') throw new Refusal(400, 'Name the document by the parameter url or hash.');
  const normal = normaliseUrl(url);
  if (!normal.ok) throw new Refusal(400, `${normal.why.replace(/^t/, 'T')}.`);
  return library.byUrl(normal.url);
}

function recordOf(
  document: Document,
  found: FoundCitations,
  { filter, ch }: { readonly filter: boolean; readonly ch: number },
  library: Library,
): CitationRecord {
  const byCount = [...found.counts].sort(([a, most], [b, least]) => least - most || a - b);
  const citing = byCount.slice(0, MOST_CITING).flatMap(([id, sentences]) => {
    const other = library.byId(id);
    return other ? [{ url: other.url, title: other.title, sentences }] : [];
  });
  const host = hostOf(document.url);
  return {
    document,
    filter,
    ch,
    sentences: filter ? found.sentences.filter(({ appearsIn }) => appearsIn.length > 0) : found.sentences,
    urlOf: (id) => library.byId(id)?.url,
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
    const [before = '', after = ''] = page(`Citations of ${document.title}`, '\0').split('\0');
    yield `${before}<h1>Document Citations for<br>${documentLink(document.url, document.url)}</h1>\n` +
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
    yield `</dl>${after}`;
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
