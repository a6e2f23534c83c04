import type { Clock } from '../lib/clock.js';
import { Yielder } from '../lib/slices.js';
import { counted, numberText } from '../lib/text.js';
import { formatBytes } from '../lib/units.js';
import { escapeMarkup, nameMarkup } from '../web/markup.js';
import { shownTitle } from './content.js';
import type { Database } from './database.js';
import { findDocument } from './document-endpoints.js';
import type { Document, DocumentStore } from './documents.js';
import { compoundQuery, markedQuery } from './find.js';
import { withOtherForms } from './forms.js';
import { originOf, timeOf } from './markup.js';
import { MAX_MATCHES, MatchCount } from './matches.js';
import type { ParsedQuery } from './parsed-query.js';
import { type SectionView, sectionMarkup } from './section-markup.js';
import type { Context } from './server.js';
import { TextSections } from './text-sections.js';

const MAX_NUMBER = 1_000_000;
/**
 * The work of counting before a page is sent, in units of 30 µs: 5 MB without a match, or 160 kB
 * with a match in each line. The script has the rest counted.
 */
const COUNTING_COST = 1_200;
/** The counts that are kept, so that the next page of the same document goes on with one. */
const MAX_COUNTS = 16;

/** A document with the words that a query marks in it. */
interface MarkedDocument {
  readonly document: Document;
  readonly text: TextSections;
  /** The parameters of the links to its pages. */
  readonly parameters: Parameters;
  readonly count: MatchCount;
  /** Whether the text has only other forms of the words. */
  readonly isOfOtherForms: boolean;
  readonly yielder: Yielder;
}

interface Parameters extends Readonly<Record<string, string>> {
  readonly urlhash: string;
  readonly query: string;
}

/** A match, from 1, or a section of the text, from 0. */
interface Place {
  readonly match: number;
  readonly section: number | undefined;
}

/**
 * Answers `/document`: one document for a person. It shows the section of the text with one match
 * of the query, and leads to the next one. `match=N` names it, and is the first one by default;
 * `part=N` shows a section instead. `forms=true` is set for results that have only other forms of
 * the words. As JSON, it answers with the numbers of matches and pages.
 */
export class DocumentPages {
  readonly #counts = new Map<string, MatchCount>();

  constructor(
    private readonly documents: DocumentStore,
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  async answer(context: Context): Promise<string> {
    const form = await context.form();
    const document = findDocument(form, 'urlhash', this.documents);
    const parameters = {
      urlhash: document.urlhash,
      query: (form.text('query') ?? '').slice(0, 1_000),
      ...(form.text('forms') === 'true' && { forms: 'true' }),
    };
    const part = form.text('part') === undefined ? undefined : form.number('part', 0, MAX_NUMBER);
    const place = { match: Math.max(1, form.number('match', 1, MAX_NUMBER)), section: part };
    const isAll = context.as === 'json';
    const marked = await this.#marked(document, parameters, place, context);
    return isAll ? context.record('', recordOf(marked)) : this.#page(marked, place, context);
  }

  /** Counts matches until the place is reached, and then for a while; for JSON, all of them. */
  async #marked(
    document: Document,
    parameters: Parameters,
    place: Place,
    context: Context,
  ): Promise<MarkedDocument> {
    const { forms, query } = parameters;
    const text = new TextSections(this.documents, document.id);
    const yielder = new Yielder(this.clock);
    const count = async (
      { highlights }: ParsedQuery,
      isOfOtherForms: boolean,
    ): Promise<MarkedDocument> => {
      const found = this.#countOf(document, query, highlights);
      const isReached = (): boolean =>
        place.section === undefined
          ? found.isCapped || found.sectionOf(place.match) !== undefined
          : found.section(place.section) !== undefined;
      const most = found.cost + COUNTING_COST;
      const isEnough = (): boolean =>
        context.isGone || (context.as === 'html' && isReached() && found.cost >= most);
      await found.goOn(text, isEnough, yielder);
      return { document, text, parameters, count: found, isOfOtherForms, yielder };
    };
    const asked = markedQuery(query, { documents: this.documents, database: this.database });
    const marked = await count(asked, false);
    if (asked.highlights.isEmpty || !marked.count.isComplete || marked.count.matches > 0)
      return marked;
    // The search offers such documents, too.
    for await (const wider of this.#widerQueries(asked, forms === 'true')) {
      const other = await count(wider, true);
      if (other.count.matches > 0) return other;
    }
    return marked;
  }

  /** Yields the query with other forms of its words, in the order in which a search tries them. */
  async *#widerQueries(query: ParsedQuery, isFoundByForms: boolean): AsyncIterable<ParsedQuery> {
    const forms = withOtherForms(query, this.database);
    if (forms !== undefined) yield forms;
    if (!isFoundByForms) return;
    const deps = { database: this.database, documents: this.documents };
    for (const others of ['words', 'any'] as const) {
      const compounds = await this.documents.words.provide(() =>
        compoundQuery(forms ?? query, others, deps),
      );
      if (compounds !== undefined) yield compounds;
    }
  }

  #countOf(
    { digest, id }: Document,
    query: string,
    highlights: ParsedQuery['highlights'],
  ): MatchCount {
    // The other forms of the words follow the whole index, so the query does not tell them.
    const key = JSON.stringify([id, digest, query, highlights.words]);
    const count = this.#counts.get(key) ?? new MatchCount(highlights);
    // The count that was used last is the last one of the map.
    this.#counts.delete(key);
    this.#counts.set(key, count);
    for (const oldest of this.#counts.keys()) {
      if (this.#counts.size <= MAX_COUNTS) break;
      this.#counts.delete(oldest);
    }
    return count;
  }

  async #page(marked: MarkedDocument, place: Place, context: Context): Promise<string> {
    const { document, parameters, text, yielder } = marked;
    const { query, urlhash } = parameters;
    const { url } = document;
    const view = viewOf(marked, place);
    const title = shownTitle(document);
    const { originals } = await context.deps.daemon.aboutResults({ urls: [url] });
    const back = query === '' ? '' : `<p class="back">${link({ query }, '/', '← Results')}</p>\n`;
    const top = `${back}<h1 dir="auto">${escapeMarkup(title)}</h1>\n<p class="origin">${originOf(url, originals[0])}</p>`;
    const { begin, end } = context.deps.site.around({ title, section: 'search', top });
    const record = link({ urlhash }, '/api/peerdoc.json', 'This record as JSON');
    const cited = link(
      { hash: urlhash },
      '/api/citation.html',
      'Documents with the same sentences',
    );
    const isOfPages = isPaged(url);
    const { markup, page } = await sectionMarkup({ ...marked, isPaged: isOfPages }, view, yielder);
    const part = view.section > 0 ? `Part ${numberText(view.section + 1)} of the text` : '';
    return `${begin}<div class="document"><article>
${matchesMarkup(marked, view, page)}<p class="hint" id="part">${part}</p>
<div class="text" id="text" dir="auto">${markup}</div>
${turnsMarkup(marked, view, text)}</article>
${factsMarkup(marked)}
<ul class="more-of-it"><li>${cited}</li><li>${record}</li></ul></aside></div>${end}`;
  }
}

/** Returns what a page shows. A match or a section beyond the end of the text is the last one. */
function viewOf({ count }: MarkedDocument, { match, section }: Place): SectionView {
  const isSection = section !== undefined || count.matches === 0;
  const shown = isSection ? undefined : Math.min(match, count.matches);
  const found = shown === undefined ? count.section(section ?? 0) : count.sectionOf(shown);
  const { matchesBefore = 0, number = 0, pagesBefore = 0 } = found ?? count.lastSection ?? {};
  return { section: number, match: shown, matchesBefore, pagesBefore };
}

function recordOf({ count, document }: MarkedDocument): object {
  const { title, url, urlhash } = document;
  const { matches } = count;
  const pages = pagesOf(document, count);
  const total = totalText(count);
  return { url, urlhash, title, matches, matchesAreExact: isExact(count), total, pages };
}

function isExact(count: MatchCount): boolean {
  return count.isComplete && !count.isCapped;
}

/** The pages of a PDF, as far as they were counted; undefined if the document has none. */
function pagesOf({ url }: Document, { isComplete, pageEnds }: MatchCount): number | undefined {
  return isComplete && isPaged(url) && pageEnds > 0 ? pageEnds : undefined;
}

/** Whether the page ends of a document are those of a PDF. In other texts they may be anything. */
function isPaged(url: string): boolean {
  return /\.pdf$/i.test(new URL(url).pathname);
}

/** Returns the bar with the number of the match, and the links to those beside it. */
function matchesMarkup(
  marked: MarkedDocument,
  view: SectionView,
  page: number | undefined,
): string {
  const { count, document, isOfOtherForms, parameters } = marked;
  if (count.highlights.isEmpty) return '';
  const { matches } = count;
  if (matches === 0)
    return '<p class="hint" role="status">No match in the text. The words are in the title or in the path, or none of them is in this document.</p>\n';
  const at = view.match ?? view.matchesBefore;
  const isLast = at >= matches && (count.isComplete || count.isCapped);
  const next = isLast ? 1 : at + 1;
  const previous = view.match === undefined ? at : at - 1;
  const address = `/document?${new URLSearchParams(parameters)}`;
  const turn = (rel: string, match: number, label: string): string =>
    `<a rel="${rel}" href="${escapeMarkup(`${address}&match=${match}#match`)}" data-match="${match}">${label}</a>`;
  const forms = isOfOtherForms ? '<span class="hint">Only other forms of the words.</span>' : '';
  const links =
    matches === 1 && view.match === 1 && count.isComplete
      ? ''
      : `${turn('prev', previous < 1 ? matches : previous, '← Previous match')} ${turn('next', next, 'Next match →')}<span class="hint scripted">Keys: <kbd>p</kbd>, <kbd>n</kbd></span>`;
  return `<nav class="matches" id="matches" aria-label="Matches" data-address="${escapeMarkup(address)}" data-matches="${matches}" data-total="${totalText(count)}" data-pages="${pagesOf(document, count) ?? ''}"${count.isComplete ? '' : ' data-is-counting="true"'}>
<p role="status">${statusText(marked, view, page)}</p>
${links}${forms}
</nav>
`;
}

function totalText(count: MatchCount): string {
  if (count.isCapped) return `more than ${numberText(MAX_MATCHES)}`;
  return count.isComplete ? numberText(count.matches) : `${numberText(count.matches)} or more`;
}

/** The script writes the same when it goes on to another match. */
function statusText(
  { count, document }: MarkedDocument,
  { match }: SectionView,
  page: number | undefined,
): string {
  if (match === undefined && isExact(count)) return counted(count.matches, 'match', 'matches');
  if (match === undefined) return `${totalText(count)} matches`;
  const pages = pagesOf(document, count);
  const ofPages = pages === undefined ? '' : ` of ${numberText(pages)}`;
  const onPage = page === undefined ? '' : ` · page ${numberText(page)}${ofPages}`;
  return `Match ${numberText(match)} of ${totalText(count)}${onPage}`;
}

/** Returns the links to the sections before and after. */
function turnsMarkup(
  { parameters }: MarkedDocument,
  { section }: SectionView,
  text: TextSections,
): string {
  const turn = (to: number, label: string): string =>
    link({ ...parameters, part: String(to) }, '/document', label);
  const turns = [
    section > 0 ? turn(section - 1, '← Text before') : '',
    text.has(section + 1) ? turn(section + 1, 'More text →') : '',
  ].join('');
  return turns === '' ? '' : `<nav class="pager line" id="turns" aria-label="Text">${turns}</nav>`;
}

type Fact = readonly [name: string, value: string | null | undefined];

function factsMarkup({ count, document }: MarkedDocument): string {
  const { author, collections, date, digest, language, lastModified, loadDate, size, words } =
    document;
  const pages = pagesOf(document, count);
  const facts: readonly Fact[] = [
    ['Author', author],
    ['Dated', date === null ? null : new Date(date).toISOString().slice(0, 10)],
    ['Language', language],
    ['Collection', collections.join(', ')],
    ['Size as pushed', formatBytes(size)],
    ['Words', numberText(words)],
    ['Pages', pages === undefined ? null : numberText(pages)],
  ];
  const version: readonly Fact[] = [
    ['File changed', timeOf(lastModified)],
    ['Last pushed', timeOf(loadDate)],
  ];
  return `<aside aria-label="About the document">${factList(facts)}
<h2>Version</h2>
${factList(version, `<div><dt>sha256</dt><dd><code>${digest}</code></dd></div>\n`)}
<p class="hint">The peer has this version only. The push of a changed file replaces it.</p>`;
}

function factList(facts: readonly Fact[], more = ''): string {
  const rows = facts.map(([name, value]) =>
    value ? `<div><dt>${name}</dt><dd>${nameMarkup(value)}</dd></div>\n` : '',
  );
  return `<dl class="facts">\n${rows.join('')}${more}</dl>`;
}

function link(parameters: Readonly<Record<string, string>>, path: string, label: string): string {
  const address = `${path}?${new URLSearchParams(parameters)}`;
  return `<a href="${escapeMarkup(address)}">${label}</a>`;
}
