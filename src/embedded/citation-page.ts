import { counted } from '../lib/text.js';
import { escapeMarkup, nameMarkup } from '../web/markup.js';
import { shownTitle } from './content.js';
import { originOf, placeOf, type Site } from './markup.js';

/** Another document that has sentences of this one. */
export interface OtherDocument {
  readonly url: string;
  readonly title: string;
  /** How many sentences they have in common. */
  readonly sentences: number;
}

/** The sentences of a document and the other documents that have them, as JSON tells it. */
export interface CitationRecord {
  readonly url: string;
  readonly urlhash: string;
  readonly title: string;
  readonly sentences: readonly {
    /** Counted from 0. */
    readonly number: number;
    readonly text: string;
    readonly appearsIn: readonly string[];
  }[];
  readonly citing: readonly OtherDocument[];
  /** Those on other hosts with at least `ch` sentences in common. */
  readonly similar: readonly OtherDocument[];
  /** Whether not everything was compared or listed. */
  readonly more: boolean;
}

const NONE = '<p class="hint">none</p>';

interface Limits {
  /** From how many common sentences on a document on another host counts as similar. */
  readonly ch: number;
  /** Characters of the shortest sentence that is looked for. */
  readonly shortest: number;
}

/** The sentences of a document and the other documents that have them, as a person reads it. */
export function citationPage(record: CitationRecord, { ch, shortest }: Limits, site: Site): string {
  const { citing, more, sentences, similar, url, urlhash } = record;
  const title = `Documents with the same sentences as ${shownTitle(record)}`;
  const back = `<a href="/document?urlhash=${encodeURIComponent(urlhash)}">← Document</a>`;
  const top = `<p class="back">${back}</p>
<h1 dir="auto">${escapeMarkup(title)}</h1>
<p class="origin">${originOf(url)}</p>`;
  const rest = more
    ? ' Not everything was compared or listed: the document is long, or too many others have its sentences.'
    : '';
  const json = `/api/citation.json?hash=${encodeURIComponent(urlhash)}`;
  const body = `<p class="hint">Sentences of ${shortest} characters or more count. Case, accents, quotes and line breaks make no difference.${rest}</p>
<h2>Documents</h2>
${documentList(citing)}
<h2>Similar documents: on other hosts, with ${counted(ch, 'sentence')} or more in common</h2>
${documentList(similar)}
<h2>Sentences</h2>
${sentenceTable(sentences, shortest)}
<p class="more-of-it"><a href="${json}">This record as JSON</a></p>`;
  return site.page({ title, place: 'search', top, body });
}

function documentList(documents: readonly OtherDocument[]): string {
  if (documents.length === 0) return NONE;
  const items = documents.map((document) => {
    const { sentences, url } = document;
    return `<li><a href="${pageOf(url)}" dir="auto">${escapeMarkup(shownTitle(document))}</a>
<p class="origin">${originOf(url)} · ${counted(sentences, 'sentence')} in common</p></li>`;
  });
  return `<ul class="citing">\n${items.join('\n')}\n</ul>`;
}

function sentenceTable(sentences: CitationRecord['sentences'], shortest: number): string {
  if (sentences.length === 0) return NONE;
  const rows = sentences.map(({ number, text, appearsIn }) => {
    const places = appearsIn.map(
      (url) => `<a href="${pageOf(url)}">${nameMarkup(placeOf(url))}</a>`,
    );
    const nowhere = text.length < shortest ? 'too short' : 'none';
    const others = places.join('<br>') || `<span class="hint">${nowhere}</span>`;
    return `<tr><td>${number + 1}</td><td dir="auto">${escapeMarkup(text)}</td><td>${others}</td></tr>`;
  });
  return `<div class="scroll"><table class="sentences">
<thead><tr><th>No.</th><th>Sentence</th><th>Also in</th></tr></thead>
<tbody>
${rows.join('\n')}
</tbody></table></div>`;
}

/** The address of the page of a document, for an attribute. */
function pageOf(url: string): string {
  return escapeMarkup(`/document?${new URLSearchParams({ url })}`);
}
