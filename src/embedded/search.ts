import { counted, escapeInvisible } from '../lib/text.js';
import { escapeMarkup, nameMarkup } from '../web/markup.js';
import { shownTitle } from './content.js';
import { type DocumentStore, metadataOf } from './documents.js';
import { facetsOf, MAX_FACETED } from './facets.js';
import { findDocuments } from './find.js';
import type { Form } from './form.js';
import { originOfResult, timeOf } from './markup.js';
import { notIndexedFields, notIndexedMarkup, soughtWords } from './not-indexed.js';
import { type Highlights, termsOf } from './parsed-query.js';
import { parseQuery } from './query-parser.js';
import { MAX_COUNTED, type SearchRequest } from './results.js';
import type { Context, PeerDeps } from './server.js';
import { highlighted, SnippetBudget, snippetFor } from './snippets.js';

const PAGE = 10;
const MAX_PAGE = 100;
/** The most collections in the form. */
const OFFERED = 200;

/** The keys of the script, below the results. */
const KEYS =
  '<p class="hint scripted">Keys: <kbd>/</kbd> words, <kbd>↓</kbd> <kbd>↑</kbd> results, <kbd>Enter</kbd> opens one, <kbd>o</kbd> opens its original, <kbd>c</kbd> copies its path.</p>';

/** The help below an empty result. */
const HELP =
  '<p class="hint"><code>"two words"</code> finds them side by side, <code>-word</code> leaves out what has it, <code>title:word</code> finds it in titles.</p>';

type SearchResult = Awaited<ReturnType<typeof find>>;

/** Answers `/search.json`: the search for programs. */
export async function searchJson(context: Context): Promise<string> {
  const request = readRequest(await context.form());
  const { hits, notIndexed, total, totalIsExact, ...how } = await find(request, context.deps);
  const { prefix, corrected, keywords, otherForms, signsIgnored, without } = how;
  const items = hits.map(({ document, hasOriginal, snippet }) => ({
    url: document.url,
    title: document.title,
    snippet,
    collections: document.collections,
    size: document.size,
    lastModified: new Date(document.lastModified).toISOString(),
    loadDate: new Date(document.loadDate).toISOString(),
    ...metadataOf(document),
    ...(hasOriginal && { original: true }),
  }));
  const { query } = request;
  const misread = misreadOf(request);
  return context.record('', {
    query,
    corrected,
    keywords,
    without,
    prefix,
    misread: misread.length > 0 ? misread : undefined,
    total,
    totalIsExact,
    otherForms,
    signsIgnored,
    items,
    ...notIndexedFields(notIndexed),
  });
}

/** Answers `/`: the search page, or JSON for a client that prefers it. */
export async function searchPage(context: Context): Promise<string> {
  if (context.as === 'json') return searchJson(context);
  const request = readRequest(await context.form());
  const result = await find(request, context.deps);
  const { documents } = context.deps;
  const title = request.query === '' ? 'Search' : `${request.query} – search`;
  const top = `<h1 class="unseen">Search</h1>
${searchForm(request, documents)}
<p class="hint">${counted(documents.count('documents'), 'document')}</p>`;
  const foundNothing = request.query.trim() !== '' && result.total === 0;
  const body = `<p class="hint" role="status" id="found">${escapeMarkup(resultLine(request, result))}</p>
<div id="results">
${facetsMarkup(request, result, context.deps)}
<ol class="hits" start="${request.offset + 1}">
${hitsMarkup(request, result)}
</ol>
${foundNothing ? HELP : pager(request, result)}
${result.hits.length > 0 ? KEYS : ''}
${notIndexedMarkup(result.notIndexed, foundNothing)}
</div>`;
  return context.deps.site.page({ title, section: 'search', top, body });
}

/** Reads the parameters of a search. */
function readRequest(form: Form): SearchRequest {
  return {
    query: (form.text('query') ?? '').slice(0, 1_000),
    isTyping: form.text('typing') === 'true',
    collection: form.text('collection') ?? '',
    offset: form.number('offset', 0, MAX_COUNTED),
    limit: form.number('limit', PAGE, MAX_PAGE),
    sort: form.text('sort') === 'date' ? 'date' : 'rank',
  };
}

async function find(request: SearchRequest, deps: PeerDeps) {
  deps.indexer.onSearch();
  const { found, ...result } = await deps.documents.words.provide(() =>
    findDocuments(request, deps),
  );
  const budget = new SnippetBudget();
  const shown = found.map((document) => ({
    document,
    snippet: snippetFor(document, result.highlights, deps.documents, budget),
  }));
  const { notIndexed, originals } = await deps.daemon.aboutResults({
    urls: found.map(({ url }) => url),
    words: soughtWords(request),
  });
  const hits = shown.map((hit, i) => ({ ...hit, hasOriginal: originals[i] === true }));
  return { ...result, hits, notIndexed };
}

function resultLine(
  request: SearchRequest,
  {
    prefix,
    corrected,
    hits,
    keywords,
    otherForms,
    signsIgnored,
    total,
    totalIsExact,
    without,
  }: SearchResult,
): string {
  const collection = request.collection === '' ? '' : ` in ${request.collection}`;
  const where = [
    collection,
    ...(corrected === undefined ? [] : [` for ${corrected}, which is similar`]),
    ...(keywords === undefined ? [] : [` with ${keywords.join(', ')}`]),
    ...(otherForms === undefined
      ? []
      : [
          `, ${otherForms === total ? 'with' : `${otherForms} of them with`} other forms of the words`,
        ]),
    ...(prefix === undefined ? [] : [`, none of which has ${prefix} as it is`]),
    ...(without === undefined ? [] : [`, without ${without.join(' and without ')}`]),
    ...misreadOf(request).map((filter) => {
      const isLeftOut = without?.includes(filter) === true;
      return `${isLeftOut ? '' : `, with ${filter} as words`} (${FILTER_FORMS})`;
    }),
    ...(signsIgnored === undefined ? [] : [SIGNS_IGNORED]),
  ].join('');
  if (request.query.trim() === '')
    return total === 0 ? `No documents${collection} yet.` : `Newest documents${collection}`;
  if (total === 0) return `Nothing found for ${request.query}${where}.`;
  if (hits.length === 0) return `${counted(total, 'result')}${where}; none on this page.`;
  if (total === 1 && totalIsExact) return `1 result${where}`;
  const shown = `${request.offset + 1}–${request.offset + hits.length}`;
  if (!totalIsExact)
    return `${shown} of more than ${counted(total, 'result')}${where}, in titles first, then newest first`;
  return `${shown} of ${counted(total, 'result')}${where}`;
}

const SIGNS_IGNORED =
  ', where the signs of words such as C++ are ignored until the index is migrated';

/** Filters are written so. Others are taken as words. */
const FILTER_FORMS = 'a filter is date:2024-03, date:2024..2025, size:>1M or size:1k..1M';

/** Returns the filters of a finished query that cannot be understood. */
function misreadOf({ isTyping, query }: SearchRequest): readonly string[] {
  return isTyping === true ? [] : parseQuery(query).misread;
}

/** Returns the address of a search that differs from another one. */
function addressOf(
  request: SearchRequest,
  result: SearchResult,
  changes: Partial<SearchRequest>,
): string {
  const query = linkedQuery(request, result);
  const changed = { ...request, query, offset: 0, ...changes };
  const parameters = new URLSearchParams({ query: changed.query });
  if (changed.collection !== '') parameters.set('collection', changed.collection);
  if (changed.offset > 0) parameters.set('offset', String(changed.offset));
  if (changed.sort === 'date') parameters.set('sort', 'date');
  if (changed.limit !== PAGE) parameters.set('limit', String(changed.limit));
  return `/?${escapeMarkup(parameters.toString())}`;
}

/** Returns the query for links. The word that is being typed becomes a prefix with a star. */
function linkedQuery({ isTyping, query }: SearchRequest, { prefix }: SearchResult): string {
  const { groups, terms } = parseQuery(query, isTyping);
  const all = [...terms, ...groups.flatMap(termsOf)];
  const last = all.find((term) => term.isBeingTyped);
  const isPrefix = last !== undefined && (last.words.length === 1 || prefix !== undefined);
  return isPrefix ? `${query}*` : query;
}

/** Returns the filters that are set, and links that set others. */
function facetsMarkup(
  request: SearchRequest,
  result: SearchResult,
  { database }: PeerDeps,
): string {
  const { condition, total, totalIsExact } = result;
  const query = linkedQuery(request, result);
  const set = parseQuery(query).filters.map(({ end, start }) => {
    const rest = `${query.slice(0, start).trimEnd()} ${query.slice(end).trimStart()}`.trim();
    const label = escapeMarkup(escapeInvisible(query.slice(start, end)));
    return `<a href="${addressOf(request, result, { query: rest })}" aria-label="Remove the filter ${label}">${label} ✕</a>`;
  });
  const isCounted = query.trim() !== '' && totalIsExact && total > 1 && total <= MAX_FACETED;
  const facets = isCounted && condition !== undefined ? facetsOf(condition, database) : [];
  const lines = facets.map(({ name, values }) => {
    const links = values.map(({ documents, filter, value }) => {
      const change =
        name === 'Collection' ? { collection: value } : { query: `${filter} ${query}` };
      return `<a href="${addressOf(request, result, change)}" rel="nofollow">${escapeMarkup(escapeInvisible(value))}</a> <span>${documents}</span>`;
    });
    return `<dt>${name}</dt><dd>${links.join(' ')}</dd>`;
  });
  if (set.length + lines.length === 0) return '';
  const removed = set.length === 0 ? '' : `<dt>Filters</dt><dd>${set.join(' ')}</dd>`;
  return `<dl class="facets">${removed}${lines.join('')}</dl>`;
}

function searchForm(request: SearchRequest, documents: DocumentStore): string {
  const offered = documents.collections(OFFERED);
  if (request.collection !== '' && !offered.includes(request.collection))
    offered.push(request.collection);
  const option = (value: string, label: string): string =>
    `<option value="${escapeMarkup(value)}"${value === request.collection ? ' selected' : ''}>${escapeMarkup(escapeInvisible(label))}</option>`;
  return `<form class="search" role="search" action="/" method="get">
<label class="query">Words<input type="search" name="query" value="${escapeMarkup(request.query)}" autofocus autocomplete="off" maxlength="1000"></label>
<label class="collection">Collection<select name="collection">
${[option('', 'all'), ...offered.map((collection) => option(collection, collection))].join('\n')}
</select></label>
<label>Order<select name="sort"><option value="">best first</option><option value="date"${request.sort === 'date' ? ' selected' : ''}>newest first</option></select></label>
<button type="submit" class="primary">Search</button>
</form>`;
}

function hitsMarkup(request: SearchRequest, result: SearchResult): string {
  const { corrected, highlights, hits, otherForms = 0, total } = result;
  const query = corrected ?? linkedQuery(request, result);
  const exact = total - otherForms - request.offset;
  return hits.map((hit, i) => hitItem(hit, { query, isExact: i < exact }, highlights)).join('\n');
}

function hitItem(
  { document, hasOriginal, snippet }: SearchResult['hits'][number],
  { isExact, query }: { readonly isExact: boolean; readonly query: string },
  highlights: Highlights,
): string {
  const { author, collections, date, url, urlhash, words } = document;
  const metadata = [
    author ?? '',
    date === null ? '' : `dated ${new Date(date).toISOString().slice(0, 10)}`,
  ];
  const changed = `file changed ${timeOf(document.lastModified)}`;
  const facts = [...metadata, collections.join(', '), counted(words, 'word'), changed].filter(
    (fact) => fact !== '',
  );
  // Leads to the first match, also without the script.
  const parameters = new URLSearchParams({ urlhash, query });
  if (!isExact) parameters.set('forms', 'true');
  const page = `/document?${parameters}${highlights.isEmpty ? '' : '#match'}`;
  return `<li>
<h2 dir="auto"><a href="${escapeMarkup(page)}">${highlighted(shownTitle(document), highlights)}</a></h2>
<p dir="auto">${highlighted(snippet, highlights)}</p>
<p class="origin">${originOfResult(url, hasOriginal)}</p>
<p class="hint">${facts.map(nameMarkup).join(' · ')}</p>
</li>`;
}

function pager(request: SearchRequest, result: SearchResult): string {
  const link = (offset: number, rel: string, label: string): string =>
    `<a rel="${rel}" href="${addressOf(request, result, { offset })}">${label}</a>`;
  const { offset, limit } = request;
  const earlier =
    offset > 0 ? link(Math.max(0, offset - limit), 'prev', '← Previous') : '<span></span>';
  const later =
    limit > 0 && offset + limit < result.total
      ? link(offset + limit, 'next', 'Next →')
      : '<span></span>';
  return earlier === later
    ? ''
    : `<nav class="pager line" aria-label="Pages">${earlier}${later}</nav>`;
}
