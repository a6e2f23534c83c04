import { h, prose, type Row, Rows, show } from './dom.js';
import { Pager } from './pager.js';
import { count } from './words.js';

export interface Column {
  readonly title: string;
  /** What it holds; becomes the class of the heading. */
  readonly kind?: 'number' | 'text';
  /** For the heading, where its words are too short to be understood alone. */
  readonly explains?: string;
  /** A heading above this and the columns beside it that have the same. */
  readonly group?: string;
}

export interface PagedTableParts<T> {
  /** For those who do not see it. */
  readonly caption: string;
  /** What the things are called: `folder`, `folders`. */
  readonly words: readonly [one: string, many: string];
  readonly columns: readonly Column[];
  keyOf(item: T): string;
  make(item: T): Row<T>;
  /** What a person may look for in it. */
  textOf(item: T): string;
  /** Said in place of the table while there is nothing. */
  readonly empty: string;
  readonly pageSize?: number;
}

const PAGE_SIZE = 20;

/**
 * A table of which one page is in the document, however many there are; with a field that narrows it down as soon as there
 * is more than a page.
 */
export class PagedTable<T> {
  readonly element: HTMLElement;
  readonly #parts: PagedTableParts<T>;
  readonly #size: number;
  readonly #rows: Rows<T>;
  readonly #pager: Pager;
  readonly #table: HTMLElement;
  readonly #empty: HTMLElement;
  readonly #filter: HTMLInputElement;
  readonly #filterLine: HTMLElement;
  #items: readonly T[] = [];
  #first = 0;

  constructor(parts: PagedTableParts<T>) {
    this.#parts = parts;
    this.#size = parts.pageSize ?? PAGE_SIZE;
    const body = h('tbody', { role: 'rowgroup' });
    // Roles are said, for a phone draws the table as blocks, and a block has none by itself.
    const head = h(
      'thead',
      { role: 'rowgroup' },
      groupsOf(parts.columns),
      h('tr', { role: 'row' }, ...parts.columns.map(headOf)),
    );
    this.#table = h('table', { role: 'table' }, h('caption', { class: 'unseen' }, parts.caption), head, body);
    this.#rows = new Rows(body, parts.keyOf, parts.make);
    this.#empty = h('p', { class: 'empty' });
    this.#filter = h('input', {
      type: 'search',
      spellcheck: 'false',
      placeholder: `Find a ${parts.words[0]}`,
    });
    this.#filter.setAttribute('aria-label', `Find a ${parts.words[0]}`);
    this.#filterLine = h('div', { class: 'filters' }, this.#filter);
    this.#filter.addEventListener('input', () => {
      this.#first = 0;
      this.#draw();
    });
    this.#pager = new Pager(parts.words[1], (step) => {
      this.#first += step * this.#size;
      this.#draw();
    });
    const scroll = h('div', { class: 'scroll' }, this.#table);
    this.element = h('div', {}, this.#filterLine, scroll, this.#empty, this.#pager.element);
  }

  set(items: readonly T[]): void {
    this.#items = items;
    this.#draw();
  }

  #draw(): void {
    const { textOf, empty, words } = this.#parts;
    const wanted = this.#filter.value.trim().toLowerCase();
    const found =
      wanted === '' ? this.#items : this.#items.filter((item) => textOf(item).toLowerCase().includes(wanted));
    this.#first = Math.max(0, Math.min(this.#first, (Math.ceil(found.length / this.#size) - 1) * this.#size));
    const page = found.slice(this.#first, this.#first + this.#size);
    show(this.#filterLine, this.#items.length > this.#size);
    show(this.#table, page.length > 0);
    show(this.#empty, page.length === 0);
    if (page.length === 0) {
      prose(
        this.#empty,
        this.#items.length === 0
          ? empty
          : `None of the ${count(this.#items.length)} ${words[1]} is called so.`,
      );
    }
    this.#rows.set(page);
    this.#pager.set(this.#first, page.length, found.length, this.#first + this.#size < found.length);
  }
}

function headOf({ title, kind, explains }: Column): HTMLElement {
  return h('th', { scope: 'col', role: 'columnheader', class: kind, title: explains }, title);
}

/** The row of headings above others, where any column has one. */
function groupsOf(columns: readonly Column[]): HTMLElement | undefined {
  if (columns.every(({ group }) => group === undefined)) return undefined;
  const row = h('tr', { role: 'row' });
  columns.forEach(({ group }, i) => {
    if (i > 0 && group === columns[i - 1]?.group && group !== undefined) return;
    const span =
      columns.filter((column, j) => j >= i && group !== undefined && column.group === group).length || 1;
    row.append(
      group === undefined
        ? h('td', { role: 'cell' })
        : h('th', { scope: 'colgroup', role: 'columnheader', colspan: span, class: 'group' }, group),
    );
  });
  return row;
}

/** The first cell of a row, which names it. */
export function rowHead(...children: readonly (Node | string)[]): HTMLElement {
  return h('th', { scope: 'row', role: 'rowheader' }, ...children);
}

/** A cell with a figure; a phone shows the label beside it. */
export function figure(label: string, ...children: readonly (Node | string)[]): HTMLElement {
  return h('td', { role: 'cell', class: 'number', 'data-label': label }, ...children);
}

export function tableRow(...cells: readonly (HTMLElement | undefined)[]): HTMLElement {
  return h('tr', { role: 'row' }, ...cells);
}
