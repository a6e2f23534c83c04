/*
 * The few ways in which the page is changed. Data only ever becomes text: nothing here reads markup.
 */
type Child = Node | string | undefined;
type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** Makes an element. An attribute that is false or undefined is left out, one that is true is empty. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) attr(element, name, value);
  for (const child of children) if (child !== undefined) element.append(child);
  return element;
}

/** The element of the page with this id, which has to be there. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no #${id}`);
  return element as T;
}

/** Sets a text where it differs, so that what did not change is neither drawn nor read out again. */
export function text(element: Element, value: string): void {
  if (element.textContent !== value) element.textContent = value;
}

/** Sets a text in which names stand between backticks, as in the words of the daemon; they are shown as code. */
export function prose(element: HTMLElement, value: string): void {
  if (element.dataset.prose === value) return;
  element.dataset.prose = value;
  const parts = value.split(/`([^`]+)`/);
  element.replaceChildren(...parts.map((part, i) => (i % 2 === 1 ? h('code', {}, part) : part)));
}

export function attr(element: Element, name: string, value: string | number | boolean | undefined): void {
  if (value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
    return;
  }
  const wanted = value === true ? '' : String(value);
  if (element.getAttribute(name) !== wanted) element.setAttribute(name, wanted);
}

export function show(element: HTMLElement, visible: boolean): void {
  if (element.hidden === visible) element.hidden = !visible;
}

const SVG = 'http://www.w3.org/2000/svg';

/** A shape of the sprite in index.html. It stands beside a word that says the same. */
export function icon(name: string): SVGSVGElement {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS(SVG, 'use');
  use.setAttribute('href', `#i-${name}`);
  svg.append(use);
  return svg;
}

/** Gives an icon another shape. */
export function reshape(svg: SVGSVGElement, name: string): void {
  const use = svg.firstElementChild;
  if (use !== null) attr(use, 'href', `#i-${name}`);
}

/** One row of a list and how it follows its data. */
export interface Row<T> {
  readonly element: HTMLElement;
  update(item: T): void;
}

/**
 * A list that follows its data: rows are made for keys that are new, changed in place, moved only where the order changed,
 * and removed when their key is gone, so that focus and reading position stay.
 */
export class Rows<T> {
  readonly #parent: HTMLElement;
  readonly #keyOf: (item: T) => string;
  readonly #make: (item: T) => Row<T>;
  #rows = new Map<string, Row<T>>();

  constructor(parent: HTMLElement, keyOf: (item: T) => string, make: (item: T) => Row<T>) {
    this.#parent = parent;
    this.#keyOf = keyOf;
    this.#make = make;
  }

  set(items: readonly T[]): void {
    const rows = new Map<string, Row<T>>();
    for (const item of items) {
      const key = this.#keyOf(item);
      const row = this.#rows.get(key) ?? this.#make(item);
      row.update(item);
      rows.set(key, row);
    }
    for (const [key, row] of this.#rows) if (!rows.has(key)) row.element.remove();
    let next = this.#parent.firstElementChild;
    for (const { element } of rows.values()) {
      if (element === next) next = element.nextElementSibling;
      else this.#parent.insertBefore(element, next);
    }
    this.#rows = rows;
  }
}
