import type { Clock } from '../lib/clock.js';
import type { CitationSearch } from './citation-search.js';
import { findDocument } from './document-endpoints.js';
import type { Document, DocumentStore } from './documents.js';
import { Slices } from './form.js';
import type { Context } from './server.js';

export interface CitationDeps {
  readonly citations: CitationSearch;
  readonly documents: DocumentStore;
  readonly clock: Clock;
}

/** Another document with sentences of this one; `sentences` says how many. */
interface Citing {
  readonly url: string;
  readonly title: string;
  readonly sentences: number;
}

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
  { citations, documents, clock }: CitationDeps,
): Promise<string> {
  const form = await context.form();
  const isFiltered = form.isTrue('filter');
  const ch = form.number('ch', SIMILAR_FROM, LARGEST_CH);
  const { id, url, urlhash, title } = findDocument(form, 'hash', documents);
  const found = await citations.find(id, () => context.isGone);
  const others = new Map<number, { readonly document: Document; sentences: number }>();
  const slices = new Slices(clock);
  const sentences: { readonly number: number; readonly text: string; readonly appearsIn: string[] }[] = [];
  for (const { number, text } of found.sentences) {
    const appearsIn: string[] = [];
    for (const holder of found.holders.get(text) ?? []) {
      const document = others.get(holder)?.document ?? documents.byId(holder);
      await slices.pause();
      if (!document) continue;
      others.set(holder, { document, sentences: (others.get(holder)?.sentences ?? 0) + 1 });
      appearsIn.push(document.url);
    }
    if (!isFiltered || appearsIn.length > 0) sentences.push({ number, text, appearsIn });
  }
  const hostOf = (address: string): string => new URL(address).hostname;
  const citing = [...others.values()]
    .sort((a, b) => b.sentences - a.sentences || a.document.id - b.document.id)
    .slice(0, MOST_CITING)
    .map(
      (other): Citing => ({
        url: other.document.url,
        title: other.document.title,
        sentences: other.sentences,
      }),
    );
  const similar = citing.filter((other) => other.sentences >= ch && hostOf(other.url) !== hostOf(url));
  const more = found.more || others.size > MOST_CITING;
  return context.record(`Citations of ${title}`, { url, urlhash, title, sentences, citing, similar, more });
}
