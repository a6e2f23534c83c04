import { type Answer, answer, Refusal } from './answer.js';
import { CITATION_WRITERS, type CitationRecord } from './citation-answer.js';
import type { CitationSearch, FoundCitations } from './citation-search.js';
import type { RequestForm } from './form.js';
import type { Document, Library } from './library.js';
import { normaliseUrl } from './urls.js';
import type { Visit } from './visit.js';

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
