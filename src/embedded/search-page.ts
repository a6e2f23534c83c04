import { counted, numberText } from '../lib/text.js';
import type { DocumentStore } from './documents.js';
import type { Form } from './form.js';
import { documentLink, escapeMarkup, page } from './markup.js';
import {
  MOST_COUNTED,
  type Search,
  type SearchHit,
  type SearchRequest,
  type SearchResult,
} from './search.js';
import type { Context } from './server.js';

const PAGE = 10;
const LARGEST_PAGE = 100;
/** Collections offered for choice. */
const OFFERED = 200;

export interface SearchDeps {
  readonly search: Search;
  readonly documents: DocumentStore;
}

/** `/search.json`: the same search as the page, for programs. */
export async function searchJson(context: Context, { search }: SearchDeps): Promise<string> {
  const request = readRequest(await context.form());
  const { total, totalIsExact, hits } = search.find(request);
  const items = hits.map(({ document, snippet }) => ({
    url: document.url,
    title: document.title,
    snippet: snippet.map((piece) => piece.text).join(''),
    collections: document.collections,
    size: document.size,
    loadDate: new Date(document.loadDate).toISOString(),
  }));
  return `${JSON.stringify({ query: request.query, total, totalIsExact, items }, null, 2)}\n`;
}

/** `/`: the search page for people. */
export async function searchPage(context: Context, { search, documents }: SearchDeps): Promise<string> {
  const request = readRequest(await context.form());
  const result = search.find(request);
  const title = request.query === '' ? 'peersync search' : `${request.query} – peersync search`;
  const body = `<header><h1><a href="/">peersync search</a></h1>
${searchForm(request, documents)}
<p class="dim">${counted(documents.count('documents'), 'document')}, ${numberText(documents.count('waiting'))} waiting to be indexed · <a href="/api/share.html">shared objects</a> · <a href="/Tables_p.html">tables</a></p></header>
<main>
<p class="dim" role="status">${escapeMarkup(resultLine(request, result))}</p>
<ol class="hits" start="${request.offset + 1}">
${result.hits.map(hitItem).join('\n')}
</ol>
${pager(request, result.total)}
</main>`;
  return page(title, body);
}

function readRequest(form: Form): SearchRequest {
  return {
    query: (form.text('query') ?? '').slice(0, 1_000),
    collection: form.text('collection') ?? '',
    offset: form.number('offset', 0, MOST_COUNTED),
    limit: form.number('limit', PAGE, LARGEST_PAGE),
  };
}

function resultLine(request: SearchRequest, { total, totalIsExact, hits }: SearchResult): string {
  const where = request.collection === '' ? '' : ` in ${request.collection}`;
  if (request.query.trim() === '')
    return total === 0 ? `No documents${where} yet.` : `Newest documents${where}`;
  if (total === 0) return `Nothing found for ${request.query}${where}.`;
  if (hits.length === 0) return `${counted(total, 'result')}${where}; none on this page.`;
  const shown = `${request.offset + 1}–${request.offset + hits.length}`;
  if (!totalIsExact) return `${shown} of more than ${counted(total, 'result')}${where}, newest first`;
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

function hitItem({ document, snippet }: SearchHit): string {
  const marked = snippet.map(({ text, hit }) =>
    hit ? `<mark>${escapeMarkup(text)}</mark>` : escapeMarkup(text),
  );
  const day = new Date(document.loadDate).toISOString().slice(0, 16).replace('T', ' ');
  const facts = `${document.collections.join(', ')} · ${counted(document.words, 'word')} · pushed ${day} UTC`;
  return `<li>
<h2>${documentLink(document.url, document.title)}</h2>
<p>${marked.join('')}</p>
<p class="dim">${escapeMarkup(document.url)}</p>
<p class="dim">${escapeMarkup(facts)} · <a href="/api/peerdoc.html?urlhash=${document.urlhash}&amp;html=true">details</a></p>
</li>`;
}

function pager(request: SearchRequest, total: number): string {
  const link = (offset: number, rel: string, label: string): string => {
    const parameters = new URLSearchParams({ query: request.query, collection: request.collection });
    parameters.set('offset', String(offset));
    if (request.limit !== PAGE) parameters.set('limit', String(request.limit));
    return `<a rel="${rel}" href="/?${escapeMarkup(parameters.toString())}">${label}</a>`;
  };
  const { offset, limit } = request;
  const earlier = offset > 0 ? link(Math.max(0, offset - limit), 'prev', '← Previous') : '<span></span>';
  const later =
    limit > 0 && offset + limit < total ? link(offset + limit, 'next', 'Next →') : '<span></span>';
  return earlier === later ? '' : `<nav aria-label="Pages">${earlier}${later}</nav>`;
}
