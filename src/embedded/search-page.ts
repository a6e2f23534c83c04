import { counted } from '../lib/text.js';
import { type Answer, answer, Refusal } from './answer.js';
import type { Tally } from './database.js';
import type { RequestForm } from './form.js';
import { documentLink, escapeMarkup, page } from './markup.js';
import {
  MOST_COUNTED,
  type Search,
  type SearchHit,
  type SearchRequest,
  type SearchResult,
} from './search.js';

const PAGE = 10;
const LARGEST_PAGE = 100;
const FARTHEST = MOST_COUNTED;
/** Collections offered for choice. */
const OFFERED = 200;

export interface SearchParts {
  readonly search: Search;
  readonly tally: Tally;
}

/** `/search.json`: the same search as the page, for programs. */
export function searchJson(form: RequestForm, { search }: SearchParts): Answer {
  const request = readRequest(form);
  const { total, totalIsExact, hits } = search.find(request);
  const items = hits.map(({ document, snippet }) => ({
    url: document.url,
    title: document.title,
    snippet: snippet.map((piece) => piece.text).join(''),
    collections: document.collections,
    size: document.size,
    loadDate: new Date(document.loadDate).toISOString(),
  }));
  return answer('json', `${JSON.stringify({ query: request.query, total, totalIsExact, items }, null, 2)}\n`);
}

/** `/`: the search page for people. */
export function searchPage(form: RequestForm, parts: SearchParts): Answer {
  const request = readRequest(form);
  const result = parts.search.find(request);
  const title = request.query === '' ? 'peersync search' : `${request.query} – peersync search`;
  const body = `<header><h1><a href="/">peersync search</a></h1>
${searchForm(request, parts.tally)}
<p class="dim">${countsLine(parts.tally)} · <a href="/api/share.html">shared objects</a> · <a href="/Tables_p.html">tables</a></p></header>
<main>
<p class="dim" role="status">${escapeMarkup(resultLine(request, result))}</p>
<ol class="hits" start="${request.offset + 1}">
${result.hits.map(hitItem).join('\n')}
</ol>
${pager(request, result.total)}
</main>`;
  return answer('html', page(title, body));
}

function readRequest(form: RequestForm): SearchRequest {
  return {
    query: (form.text('query') ?? '').slice(0, 1_000),
    collection: form.text('collection') ?? '',
    offset: readNumber(form, 'offset', 0, FARTHEST),
    limit: readNumber(form, 'limit', PAGE, LARGEST_PAGE),
  };
}

function readNumber(form: RequestForm, name: string, otherwise: number, most: number): number {
  const text = form.text(name);
  if (text === undefined || text === '') return otherwise;
  if (!/^\d{1,9}$/.test(text) || Number(text) > most)
    throw new Refusal(400, `The parameter ${name} has to be a number from 0 to ${most}.`);
  return Number(text);
}

function countsLine(tally: Tally): string {
  return `${counted(tally.of('documents'), 'document')}, ${tally.of('waiting').toLocaleString('en')} waiting to be indexed`;
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

function searchForm(request: SearchRequest, tally: Tally): string {
  const offered = tally.collections(OFFERED).map(({ collection }) => collection);
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
