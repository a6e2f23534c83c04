import { counted } from '../lib/text.js';
import { escapeMarkup, nameMarkup } from '../web/markup.js';
import { shownTitle } from './content.js';
import { originOf, placeOf, type Site } from './markup.js';

/** Another document with some of the same sentences. */
export interface OtherDocument {
  readonly url: string;
  readonly title: string;
  /** The number of common sentences. */
  readonly sentences: number;
}

/** The sentences of a document, and the other documents that have them. The answer in JSON. */
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
  /** Documents on other hosts with at least `ch` common sentences. */
  readonly similar: readonly OtherDocument[];
  /** Whether some sentences or documents were not compared or listed. */
  readonly more: boolean;
}

const NONE = '<p class="hint">none</p>';

interface Limits {
  /** The least number of common sentences of a similar document. */
  readonly ch: number;
  /** The length of the shortest sentence that is compared, in characters. */
  readonly shortest: number;
}

/** Returns the citations of a document as a page. */
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
  return site.page({ title, section: 'search', top, body });
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

/** Returns the address of a document's page, for an attribute. */
function pageOf(url: string): string {
  return escapeMarkup(`/document?${new URLSearchParams({ url })}`);
}
