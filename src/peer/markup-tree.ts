import { Parser } from 'htmlparser2';
import { Unreadable } from './record.js';

/** One element of a document in XML or HTML. */
export interface Element {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: (Element | string)[];
}

const DEEPEST = 256;

/** The elements of these names inside, not looking into those found. */
export function descendants(element: Element, names: readonly string[]): Element[] {
  return elementsOf(element).flatMap((child) =>
    names.includes(child.name) ? [child] : descendants(child, names),
  );
}

/** The elements directly inside. */
export function elementsOf(element: Element): Element[] {
  return element.children.filter((child) => typeof child !== 'string');
}

/** All text inside, as it is. */
export function textOf(element: Element): string {
  return element.children.map((child) => (typeof child === 'string' ? child : textOf(child))).join('');
}

/** All text inside, as a page shows it: blanks folded. */
export function visible(element: Element): string {
  return textOf(element).replace(/\s+/g, ' ').trim();
}

/**
 * Entities that an answer declares for itself are not expanded, so what it says cannot be known.
 *
 * @throws Unreadable where a declaration holds one
 */
export function refuseEntities(declaration: string): void {
  if (/!ENTITY\b/i.test(declaration))
    throw new Unreadable('gave an answer that declares entities of its own');
}

/** The tree, and the names of the elements that were still open at the end of the text. */
export function parseMarkup(
  text: string,
  xmlMode: boolean,
): { readonly root: Element; readonly unclosed: ReadonlySet<string> } {
  const root: Element = { name: '', attributes: {}, children: [] };
  const open: Element[] = [root];
  const unclosed = new Set<string>();
  let ending = false;
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        if (open.length > DEEPEST) throw new Unreadable('gave an answer that is nested too deeply');
        const element: Element = { name, attributes, children: [] };
        open.at(-1)?.children.push(element);
        open.push(element);
      },
      ontext(data) {
        open.at(-1)?.children.push(data);
      },
      onprocessinginstruction: (_, data) => refuseEntities(data),
      onclosetag(name) {
        open.pop();
        if (ending) unclosed.add(name);
      },
    },
    { xmlMode, decodeEntities: true },
  );
  parser.write(text);
  ending = true;
  parser.end();
  return { root, unclosed };
}
