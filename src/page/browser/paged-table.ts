import { type Child, draw, h, prose } from './dom.js';
import { count } from './words.js';

export interface Column {
  readonly title: string;
  /** Beside a figure on a phone. @default the title */
  readonly label?: string;
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
  /** The first names the row, the others hold figures. */
  readonly columns: readonly Column[];
  keyOf(item: T): string;
  /** What names the row, then its figures. */
  cells(item: T): readonly Child[];
  /** What a person may look for in it. */
  textOf(item: T): string;
  /** Said in place of the table while there is nothing. */
  readonly empty: string;
  readonly pageSize?: number;
}

/**
 * A table of which one page is in the document, however many there are; with a field that narrows it down as soon as there
 * is more than a page. Roles are said, for a phone draws the table as blocks, and a block has none by itself.
 */
export class PagedTable<T> {
  readonly #parent: HTMLElement;
  readonly #parts: PagedTableParts<T>;
  readonly #size: number;
  #items: readonly T[] = [];
  #first = 0;
  #wanted = '';

  constructor(parent: HTMLElement, parts: PagedTableParts<T>) {
    this.#parent = parent;
    this.#parts = parts;
    this.#size = parts.pageSize ?? 20;
  }

  set(items: readonly T[]): void {
    this.#items = items;
    this.#draw();
  }

  #draw(): void {
    const { caption, columns, textOf, empty, words } = this.#parts;
    const [items, size] = [this.#items, this.#size];
    const found =
      this.#wanted === '' ? items : items.filter((item) => textOf(item).toLowerCase().includes(this.#wanted));
    this.#first = Math.max(0, Math.min(this.#first, (Math.ceil(found.length / size) - 1) * size));
    const page = found.slice(this.#first, this.#first + size);
    const find = `Find a ${words[0]}`;
    const filter = h('input', {
      ...{ type: 'search', spellcheck: 'false', placeholder: find, 'aria-label': find },
      oninput: ({ value }) => {
        this.#wanted = value.trim().toLowerCase();
        this.#first = 0;
        this.#draw();
      },
    });
    const table = h(
      'table',
      { role: 'table' },
      h('caption.unseen', caption),
      h('thead', { role: 'rowgroup' }, groupsOf(columns), h('tr', { role: 'row' }, columns.map(headOf))),
      h(
        'tbody',
        { role: 'rowgroup' },
        page.map((item) => this.#row(item)),
      ),
    );
    const none = items.length === 0 ? empty : `None of the ${count(items.length)} ${words[1]} is called so.`;
    const go = (step: number) => {
      this.#first += step * size;
      this.#draw();
    };
    draw(
      this.#parent,
      items.length > size && h('div.filters', { 'data-key': 'filter' }, filter),
      page.length === 0 ? h('p.empty', prose(none)) : h('div.scroll', { 'data-key': 'table' }, table),
      pager(words[1], this.#first, page.length, found.length, this.#first + size < found.length, go),
    );
  }

  #row(item: T): HTMLElement {
    const { columns, cells, keyOf } = this.#parts;
    const [head, ...figures] = cells(item);
    return h(
      'tr',
      { role: 'row', 'data-key': keyOf(item) },
      h('th', { scope: 'row', role: 'rowheader' }, head),
      figures.map((figure, i) => {
        const { label, title } = columns[i + 1] ?? { title: '' };
        return h('td', { role: 'cell', class: 'number', 'data-label': label ?? title }, figure);
      }),
    );
  }
}

function headOf({ title, explains }: Column, i: number): HTMLElement {
  const attributes = { scope: 'col', role: 'columnheader', class: i > 0 && 'number', title: explains };
  return h('th', attributes, title);
}

/** The row of headings above others, where any column has one. */
function groupsOf(columns: readonly Column[]): HTMLElement | undefined {
  const groups = new Map<string, number>();
  for (const { group = '' } of columns) groups.set(group, (groups.get(group) ?? 0) + 1);
  if (groups.size === 1) return undefined;
  return h(
    'tr',
    { role: 'row' },
    [...groups].map(([group, colspan]) =>
      group === ''
        ? h('td', { role: 'cell', colspan })
        : h('th', { scope: 'colgroup', role: 'columnheader', colspan, class: 'group' }, group),
    ),
  );
}

/**
 * The line below a list that goes to the page before and after, where there is one.
 *
 * @param total undefined where it is not known
 */
export function pager(
  what: string,
  first: number,
  shown: number,
  total: number,
  hasMore: boolean,
  go: (step: -1 | 1) => void,
): HTMLElement | false {
  if (first === 0 && !hasMore) return false;
  const range = shown === 0 ? 'none' : `${count(first + 1)}–${count(first + shown)}`;
  const button = (label: string, which: string, disabled: boolean, step: -1 | 1) => {
    const aria = { 'aria-label': `${what}: the ${which}` };
    return h('button', { class: 'small', disabled, ...aria, onclick: () => go(step) }, label);
  };
  return h(
    'div.pager',
    { 'data-key': 'pager' },
    h('p.hint', { 'aria-live': 'polite' }, `${range} of ${count(total)}`),
    button('Back', 'page before', first === 0, -1),
    button('More', 'next page', !hasMore, 1),
  );
}
