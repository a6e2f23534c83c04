import type { Yielder } from '../lib/slices.js';
import { escapeMarkup } from '../web/markup.js';
import { MAX_MATCHES, type MatchCount, markedPieces } from './matches.js';
import { PAGE_END, pageEndsIn, type TextSections } from './text-sections.js';

/** A section of a text as a page shows it. */
export interface SectionView {
  /** Its number, from 0. */
  readonly section: number;
  /** The current match, from 1; undefined if there is none. */
  readonly match: number | undefined;
  readonly matchesBefore: number;
  readonly pagesBefore: number;
}

interface SectionSource {
  readonly text: TextSections;
  readonly count: MatchCount;
  /** Whether form feeds end the pages of the document. */
  readonly isPaged: boolean;
}

/** The longest way to the next end of a page that is looked for, in sections. */
const MAX_AHEAD = 4;

/**
 * Returns the markup of a section: its matches in `<mark>`, each with its number, and a mark where
 * a page begins. `page` is the page of the current match, if it is on one.
 */
export async function sectionMarkup(
  source: SectionSource,
  view: SectionView,
  yielder: Yielder,
): Promise<{ readonly markup: string; readonly page: number | undefined }> {
  const text = source.text.at(view.section) ?? '';
  const pages = new PageMarks(text, source, view);
  let markup = '';
  let page: number | undefined;
  let match = view.matchesBefore;
  for (const piece of markedPieces(text, source.count.highlights)) {
    let at = 0;
    for (const { start, end, isFirst } of piece.marks) {
      markup += pages.markup(piece.text.slice(at, start));
      if (isFirst) match += 1;
      const isCurrent = match === view.match;
      if (isCurrent && isFirst) page = pages.page;
      const word = escapeMarkup(piece.text.slice(start, end));
      markup += `<mark${attributesOf({ match, isFirst, isCurrent, page: pages.page })}>${word}</mark>`;
      at = end;
    }
    markup += pages.markup(piece.text.slice(at));
    await yielder.turn();
  }
  return { markup, page };
}

/** A mark of a match. */
interface MatchMark {
  readonly match: number;
  readonly isFirst: boolean;
  readonly isCurrent: boolean;
  readonly page: number | undefined;
}

function attributesOf({ isCurrent, isFirst, match, page }: MatchMark): string {
  // Further matches are not counted, so they have no numbers.
  if (match > MAX_MATCHES && !isCurrent) return '';
  const id = isCurrent && isFirst ? ' id="match"' : '';
  const current = isCurrent ? ' class="current" aria-current="true"' : '';
  const number = ` data-match="${match}"`;
  return `${id}${current}${number}${page === undefined ? '' : ` data-page="${page}"`}`;
}

/** The marks of pages in the markup of a section. */
class PageMarks {
  #ended: number;
  readonly #isPaged: boolean;
  /** The last page that is known to exist, as far as this section matters. */
  readonly #lastPage: number;
  readonly #hasTextAfterPages: boolean;

  constructor(section: string, { count, isPaged, text }: SectionSource, view: SectionView) {
    const ended = view.pagesBefore + pageEndsIn(section);
    const next = view.section + 1;
    this.#ended = view.pagesBefore;
    this.#isPaged = isPaged;
    this.#lastPage = count.isComplete ? count.pageEnds : ended + (endsFrom(next, text) ? 1 : 0);
    const rest = section.slice(section.lastIndexOf(PAGE_END) + 1);
    this.#hasTextAfterPages = rest.trim() !== '' || text.has(next);
  }

  /** The page of the text that comes next; undefined if it is on no page. */
  get page(): number | undefined {
    const page = this.#ended + 1;
    return this.#isPaged && page <= this.#lastPage ? page : undefined;
  }

  /** Returns a piece of the section as markup. */
  markup(piece: string): string {
    const [first = '', ...others] = piece.split(PAGE_END);
    return escapeMarkup(first) + others.map((text) => this.#begin() + escapeMarkup(text)).join('');
  }

  #begin(): string {
    this.#ended += 1;
    if (!this.#isPaged) return '<span class="page-begin"></span>';
    const { page } = this;
    if (page !== undefined) return `<span class="page-begin">Page ${page}</span>`;
    return this.#hasTextAfterPages ? '<span class="page-begin">Attached files</span>' : '';
  }
}

/** Whether another page ends in one of the next sections. */
function endsFrom(section: number, text: TextSections): boolean {
  for (let ahead = 0; ahead < MAX_AHEAD; ahead += 1) {
    const next = text.at(section + ahead);
    if (next === undefined) return false;
    if (next.includes(PAGE_END)) return true;
  }
  return false;
}
