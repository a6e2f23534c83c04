/*
 * How the page is changed: a part of it is made anew as elements, and what differs is taken over into the document. Data only
 * ever becomes text: nothing here reads markup.
 */
export type Child = Node | string | undefined | false | readonly Child[];
type Attributes<E> = Readonly<Record<string, string | number | boolean | undefined | ((target: E) => void)>>;
type Elements = HTMLElementTagNameMap;

/**
 * Makes an element: `h('p.hint', { title: 'why' }, 'because ', h('code', 'x'))`. An attribute that is false or undefined is left out,
 * one that is true is empty; a function is `onclick` or `oninput`. A button is one that sends no form.
 */
export function h<K extends keyof Elements>(
  selector: K | `${K}.${string}`,
  first?: Child | Attributes<Elements[K]>,
  ...others: readonly Child[]
): Elements[K] {
  const [tag, ...classes] = selector.split('.');
  const element = document.createElement(tag as K);
  if (classes.length > 0) element.className = classes.join(' ');
  if (element instanceof HTMLButtonElement) element.type = 'button';
  if (!isAttributes(first)) element.append(...nodesOf([first]));
  else
    for (const [name, value] of Object.entries(first)) {
      if (typeof value !== 'function') attr(element, name, value);
      else if (name === 'onclick' || name === 'oninput')
        element[name] = (event) => value(event.currentTarget as Elements[K]);
    }
  element.append(...nodesOf(others));
  return element;
}

function isAttributes<E>(value: Child | Attributes<E>): value is Attributes<E> {
  return typeof value === 'object' && !Array.isArray(value) && !(value instanceof Node);
}

/** The element of the page with this id, which has to be there. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no #${id}`);
  return element as T;
}

/**
 * Gives an element these children. What did not change stays as it is, so that it keeps focus, selection and position, and is neither
 * drawn nor read out again. Children with a `data-key` are known again by it, the others by their place. An element that is busy
 * (`aria-busy`) is left alone.
 */
export function draw(parent: Element, ...children: readonly Child[]): void {
  const wanted = nodesOf(children);
  const keys = new Set(wanted.map(keyOf));
  const known = new Map<string, Element>();
  for (const child of [...parent.children]) {
    const key = keyOf(child);
    if (key === undefined) continue;
    if (keys.has(key)) known.set(key, child);
    else child.remove();
  }
  let at = parent.firstChild;
  for (const node of wanted) {
    const key = keyOf(node);
    const old = key === undefined ? at : known.get(key);
    if (!old || old.nodeName !== node.nodeName || keyOf(old) !== key) {
      parent.insertBefore(node, at);
      continue;
    }
    if (old === at) at = at.nextSibling;
    else parent.insertBefore(old, at);
    takeOver(old, node);
  }
  while (at !== null) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function takeOver(old: Node, node: Node): void {
  if (!(old instanceof Element && node instanceof Element)) {
    if (old.nodeValue !== node.nodeValue) old.nodeValue = node.nodeValue;
    return;
  }
  if (old.hasAttribute('aria-busy')) return;
  for (const name of old.getAttributeNames()) if (!node.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of node.attributes) attr(old, name, value);
  if (old instanceof HTMLElement && node instanceof HTMLElement) {
    old.onclick = node.onclick;
    old.oninput = node.oninput;
  }
  draw(old, ...node.childNodes);
}

function nodesOf(children: readonly Child[]): Node[] {
  return children.flatMap((child) => {
    if (child === undefined || child === false || child === '') return [];
    if (typeof child === 'string') return document.createTextNode(child);
    return child instanceof Node ? child : nodesOf(child);
  });
}

function keyOf(node: Node): string | undefined {
  return node instanceof HTMLElement ? node.dataset.key : undefined;
}

/** A text in which names stand between backticks, as in the words of the daemon; they are shown as code. */
export function prose(value: string): Child {
  return value.split(/`([^`]+)`/).map((part, i) => (i % 2 === 1 ? h('code', {}, part) : part));
}

/** Sets a text where it differs. */
export function text(element: Element, value: string): void {
  if (element.textContent !== value) element.textContent = value;
}

export function attr(element: Element, name: string, value: string | number | boolean | undefined): void {
  if (value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
    return;
  }
  const wanted = value === true ? '' : String(value);
  if (element.getAttribute(name) === wanted) return;
  // The policy of the page refuses styles that are markup.
  if (name === 'style' && element instanceof HTMLElement) element.style.cssText = wanted;
  else element.setAttribute(name, wanted);
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
