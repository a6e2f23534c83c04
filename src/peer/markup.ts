import { DomHandler, ElementType, Parser } from 'htmlparser2';
import { TOO_DEEP, Unreadable } from './answer.js';

/**
 * A node of a page. This is our own type, because users of our type declarations do not have
 * htmlparser2.
 */
export interface Node {
  readonly type: string;
  readonly data?: string;
  readonly children?: readonly Node[];
}
/** An element of a page. */
export interface Element extends Node {
  readonly name: string;
  readonly attribs: Readonly<Record<string, string>>;
  readonly children: readonly Node[];
}

/** Returns the pairs of `dt` and `dd` in a list. */
export function definitionsIn(list: Element): readonly (readonly [Element, Element])[] {
  const parts = within(list.children, ['dt', 'dd']);
  return parts.flatMap((definition, i) => {
    const term = parts[i - 1];
    return term?.name === 'dt' && definition.name === 'dd' ? [[term, definition] as const] : [];
  });
}

/** Returns the elements with these names. Does not search inside the elements that it found. */
export function within(nodes: readonly Node[], names: readonly string[]): Element[] {
  return nodes
    .filter(isElement)
    .flatMap((node) => (names.includes(node.name) ? [node] : within(node.children, names)));
}

export function isElement(node: Node): node is Element {
  return 'attribs' in node;
}

/** Returns the text of the node itself, without its children. */
export function wordsOf({ type, data = '' }: Node): string {
  return type === ElementType.Text ? data : '';
}

/** Returns all text inside, unchanged. */
export function textOf(node: Node): string {
  return wordsOf(node) + (node.children ?? []).map(textOf).join('');
}

/** Returns all text inside as a browser shows it: runs of whitespace become one space. */
export function visibleText(element: Element): string {
  return textOf(element).replace(/\s+/g, ' ').trim();
}

/** Returns the nodes of a page. @throws Unreadable if the page breaks off */
export function parseHtml(text: string): readonly Node[] {
  const { children, unclosed } = parseMarkup(text, false);
  if (['html', 'dl', 'table', 'select', 'form'].some((name) => unclosed.includes(name))) {
    throw new Unreadable('gave an answer in HTML that breaks off');
  }
  return children;
}

/** The deepest nesting of a page. Pages nest more deeply than records. */
const MAX_ELEMENT_DEPTH = 256;

/** A tree of limited depth. It tracks the names of the open elements. */
class Tree extends DomHandler {
  readonly open: string[] = [];

  override onopentag(name: string, attributes: Record<string, string>): void {
    if (this.open.push(name) > MAX_ELEMENT_DEPTH) throw new Unreadable(TOO_DEEP);
    super.onopentag(name, attributes);
  }

  override onclosetag(): void {
    this.open.pop();
    super.onclosetag();
  }

  /** Refuses declarations of entities. They are not expanded, so the text would be incomplete. */
  override onprocessinginstruction(name: string, data: string): void {
    if (/!ENTITY\b/i.test(data))
      throw new Unreadable('gave an answer that declares entities of its own');
    super.onprocessinginstruction(name, data);
  }
}

/** Returns the nodes, and the names of the elements that are still open at the end of the text. */
export function parseMarkup(
  text: string,
  xmlMode: boolean,
): { readonly children: readonly Node[]; readonly unclosed: readonly string[] } {
  const tree = new Tree();
  const parser = new Parser(tree, { xmlMode, decodeEntities: true });
  parser.write(text);
  const unclosed = [...tree.open];
  parser.end();
  return { children: tree.root.children, unclosed };
}
