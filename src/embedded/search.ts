import { counted, numberText } from '../lib/text.js';
import { type Document, type DocumentStore, metadataOf } from './documents.js';
import type { Form } from './form.js';
import { documentLink, escapeMarkup, page } from './markup.js';
import { findDocuments, type Highlights, MOST_COUNTED, type SearchRequest } from './query.js';
import type { Context, PeerDeps } from './server.js';
import { placedWords } from './words.js';

const PAGE = 10;
const LARGEST_PAGE = 100;
/** Collections offered for choice. */
const OFFERED = 200;
/** Parts of a text in which a snippet is looked for. */
const SNIPPET_PARTS = 4;

type SearchResult = ReturnType<typeof find>;

/** `/search.json`: the same search as the page, for programs. */
export async function searchJson(context: Context): Promise<string> {
  const request = readRequest(await context.form());
  const { total, totalIsExact, corrected, hits } = find(request, context.deps);
  const items = hits.map(({ document, snippet }) => ({
    url: document.url,
    title: document.title,
    snippet,
    collections: document.collections,
    size: document.size,
    loadDate: new Date(document.loadDate).toISOString(),
    ...metadataOf(document),
  }));
  return context.record('', { query: request.query, corrected, total, totalIsExact, items });
}

/** `/`: the search page for people, or the same in JSON for who prefers that. */
export async function searchPage(context: Context): Promise<string> {
  if (context.as === 'json') return searchJson(context);
  const request = readRequest(await context.form());
  const result = find(request, context.deps);
  const { documents } = context.deps;
  const title = request.query === '' ? 'peersync search' : `${request.query} – peersync search`;
  const body = `<header><h1><a href="/">peersync search</a></h1>
${searchForm(request, documents)}
<p class="dim">${counted(documents.count('documents'), 'document')}, ${numberText(documents.count('waiting'))} waiting to be indexed · <a href="/api/share.html">shared objects</a> · <a href="/Tables_p.html">tables</a></p></header>
<main>
<p class="dim" role="status">${escapeMarkup(resultLine(request, result))}</p>
<ol class="hits" start="${request.offset + 1}">
${result.hits.map((hit) => hitItem(hit, result.highlights)).join('\n')}
</ol>
${pager(request, result.total)}
</main>`;
  return page(title, body);
}

/** Of one collection, or of all where its name is empty. */
function readRequest(form: Form): SearchRequest {
  return {
    query: (form.text('query') ?? '').slice(0, 1_000),
    collection: form.text('collection') ?? '',
    offset: form.number('offset', 0, MOST_COUNTED),
    limit: form.number('limit', PAGE, LARGEST_PAGE),
    sort: form.text('sort') === 'date' ? 'date' : 'rank',
  };
}

function find(request: SearchRequest, deps: PeerDeps) {
  const { found, ...result } = findDocuments(request, deps);
  const hits = found.map((document) => ({
    document,
    snippet: snippet(document, result.highlights, deps.documents),
  }));
  return { ...result, hits };
}

function snippet({ id }: Document, highlights: Highlights, documents: DocumentStore): string {
  for (let part = 0; part < SNIPPET_PARTS && !highlights.isEmpty; part += 1) {
    const found = snippetOf(documents.textPart(id, part) ?? '', highlights);
    if (found !== undefined) return found;
  }
  return snippetAt(documents.textPart(id, 0) ?? '', 0);
}

function resultLine(request: SearchRequest, { total, totalIsExact, corrected, hits }: SearchResult): string {
  const collection = request.collection === '' ? '' : ` in ${request.collection}`;
  const where = corrected === undefined ? collection : `${collection} for ${corrected}`;
  if (request.query.trim() === '')
    return total === 0 ? `No documents${where} yet.` : `Newest documents${where}`;
  if (total === 0) return `Nothing found for ${request.query}${where}.`;
  if (hits.length === 0) return `${counted(total, 'result')}${where}; none on this page.`;
  const shown = `${request.offset + 1}–${request.offset + hits.length}`;
  if (!totalIsExact)
    return `${shown} of more than ${counted(total, 'result')}${where}, in titles first, then newest first`;
  return `${shown} of ${counted(total, 'result')}${where}`;
}

function searchForm(request: SearchRequest, documents: DocumentStore): string {
  const offered = documents.collections(OFFERED);
  if (request.collection !== '' && !offered.includes(request.collection)) offered.push(request.collection);
  const option = (value: string, label: string): string =>
    `<option value="${escapeMarkup(value)}"${value === request.collection ? ' selected' : ''}>${escapeMarkup(label)}</option>`;
  return `<form class="search" role="search" action="/" method="get">
<label class="query">Words<input type="search" name="query" value="${escapeMarkup(request.query)}" autofocus autocomplete="off" maxlength="1000"></label>
<label class="collection">Collection<select name="collection">
${[option('', 'all'), ...offered.map((collection) => option(collection, collection))].join('\n')}
</select></label>
<button type="submit">Search</button>
</form>`;
}

function hitItem({ document, snippet }: SearchResult['hits'][number], asked: Highlights): string {
  const day = new Date(document.loadDate).toISOString().slice(0, 16).replace('T', ' ');
  const facts = `${document.collections.join(', ')} · ${counted(document.words, 'word')} · pushed ${day} UTC`;
  return `<li>
<h2>${documentLink(document.url, document.title)}</h2>
<p>${marked(snippet, asked)}</p>
<p class="dim">${escapeMarkup(document.url)}</p>
<p class="dim">${escapeMarkup(facts)} · <a href="/api/peerdoc.html?urlhash=${document.urlhash}&amp;html=true">details</a></p>
</li>`;
}

function pager(request: SearchRequest, total: number): string {
  const link = (offset: number, rel: string, label: string): string => {
    const parameters = new URLSearchParams({ query: request.query, collection: request.collection });
    parameters.set('offset', String(offset));
    if (request.sort === 'date') parameters.set('sort', 'date');
    if (request.limit !== PAGE) parameters.set('limit', String(request.limit));
    return `<a rel="${rel}" href="/?${escapeMarkup(parameters.toString())}">${label}</a>`;
  };
  const { offset, limit } = request;
  const earlier = offset > 0 ? link(Math.max(0, offset - limit), 'prev', '← Previous') : '<span></span>';
  const later =
    limit > 0 && offset + limit < total ? link(offset + limit, 'next', 'Next →') : '<span></span>';
  return earlier === later ? '' : `<nav aria-label="Pages">${earlier}${later}</nav>`;
}

/** Characters of a snippet, and of it before the first word that was asked for. */
const LENGTH = 240;
const LEAD = 60;

/** The place in `text` around the first of the `asked` words; undefined where none is in it. */
export function snippetOf(text: string, asked: Highlights): string | undefined {
  for (const { word, start } of placedWords(text)) {
    if (!asked.has(word)) continue;
    const from = Math.max(0, start - LEAD);
    // Not within a word where that can be.
    return snippetAt(text, from === 0 ? 0 : from + text.slice(from, start).search(/\s/) + 1);
  }
  return undefined;
}

/** A piece of `text` as one line, which ends between two words where it can. */
export function snippetAt(text: string, start: number): string {
  const whole = text.slice(start, start + LENGTH);
  const isLast = start + LENGTH >= text.length;
  const blank = isLast ? -1 : whole.search(/\s\S*$/);
  const piece = (blank > LENGTH / 2 ? whole.slice(0, blank) : whole)
    .toWellFormed()
    .replace(/[\s\p{Cc}]+/gu, ' ');
  return `${start > 0 ? '… ' : ''}${piece}${isLast ? '' : ' …'}`;
}

/** A snippet for a page, with the `asked` words marked. */
export function marked(snippet: string, asked: Highlights): string {
  let markup = '';
  let at = 0;
  for (const { word, start, end } of placedWords(snippet)) {
    if (!asked.has(word)) continue;
    markup += `${escapeMarkup(snippet.slice(at, start))}<mark>${escapeMarkup(snippet.slice(start, end))}</mark>`;
    at = end;
  }
  return markup + escapeMarkup(snippet.slice(at));
}
