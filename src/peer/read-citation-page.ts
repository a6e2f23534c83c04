import type { Citation, CitedSentence, CitingDocument } from './citation.js';
import { descendants, type Element, parseMarkup, visible } from './markup-tree.js';

const TITLE = /^Document Citations for/i;
const APPEARS_IN = /^\s*appears in:/;
const HEADINGS = ['h1', 'h2', 'h3', 'h4'];

/**
 * A citation as a page for people, in the form of YaCy: `dt`/`dd` pairs of a number and a sentence, which may end in
 * `appears in:` and links; pairs of a link and `makes 2 citations`; and a list of similar documents. Undefined for any
 * other page. The URL is empty where the peer has no such document.
 */
export function readCitationPage(text: string): Citation | undefined {
  const { root } = parseMarkup(text, false);
  const heading = descendants(root, ['h1']).find((each) => TITLE.test(visible(each)));
  const lists = descendants(root, ['dl']);
  if (heading === undefined || lists.length === 0) return undefined;
  const pairs = lists.flatMap(pairsOf);
  return {
    url: linksIn(heading)[0] ?? visible(heading).replace(TITLE, '').trim(),
    sentences: pairs.flatMap(sentenceOf),
    citing: pairs.flatMap(citingOf),
    similar: similarIn(root),
  };
}

interface Pair {
  readonly term: Element;
  readonly definition: Element;
}

function pairsOf(list: Element): Pair[] {
  const parts = descendants(list, ['dt', 'dd']);
  return parts.flatMap((definition, i) => {
    const term = parts[i - 1];
    return term?.name === 'dt' && definition.name === 'dd' ? [{ term, definition }] : [];
  });
}

function sentenceOf({ term, definition }: Pair): CitedSentence[] {
  const number = visible(term);
  if (linksIn(term).length > 0 || !/^\d{1,9}$/.test(number)) return [];
  const parts = [...flat(definition)];
  const at = parts.findLastIndex(
    (part, i) => typeof part === 'string' && APPEARS_IN.test(part) && isBreak(parts[i - 1]),
  );
  const end = at === -1 ? parts.length : at;
  const text = parts.slice(0, end).filter((part) => typeof part === 'string');
  const links = parts.slice(end).filter((part) => typeof part !== 'string');
  return [
    {
      number: Number(number),
      text: text.join('').replace(/\s+/g, ' ').trim(),
      appearsIn: links.flatMap(hrefOf),
    },
  ];
}

function citingOf({ term, definition }: Pair): CitingDocument[] {
  const [, sentences] = /^makes (\d{1,9}) citations?\b/.exec(visible(definition)) ?? [];
  if (sentences === undefined) return [];
  return [{ url: linksIn(term)[0] ?? visible(term), sentences: Number(sentences) }];
}

/** The list that follows its heading. */
function similarIn(root: Element): CitingDocument[] {
  const parts = descendants(root, [...HEADINGS, 'ul']);
  const at = parts.findIndex(({ name }, i) => {
    const heading = parts[i - 1];
    return name === 'ul' && heading !== undefined && /^Similar documents\b/i.test(visible(heading));
  });
  const list = parts[at];
  return list === undefined ? [] : linksIn(list).map((url) => ({ url }));
}

/** Texts and elements inside at any depth, in the order of the page: peers do not always escape or close what they show. */
function* flat(element: Element): Generator<Element | string> {
  for (const child of element.children) {
    yield child;
    if (typeof child !== 'string') yield* flat(child);
  }
}

function isBreak(part: Element | string | undefined): boolean {
  return typeof part === 'object' && part.name === 'br';
}

function linksIn(element: Element): string[] {
  return descendants(element, ['a']).flatMap(hrefOf);
}

function hrefOf({ attributes }: Element): string[] {
  return attributes.href === undefined ? [] : [attributes.href];
}
