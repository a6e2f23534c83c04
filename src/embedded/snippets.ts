import { escapeMarkup } from '../web/markup.js';
import type { Document, DocumentStore } from './documents.js';
import type { Highlights } from './query.js';
import { placedWords } from './words.js';

/** The parts of a text that are searched for a snippet. */
const SEARCHED_PARTS = 4;

/** Returns the snippet of a document: around the first highlighted word, or else its start. */
export function snippetFor(
  { id, title, url }: Document,
  highlights: Highlights,
  documents: DocumentStore,
): string {
  const isMarkdown = MARKDOWN.test(new URL(url).pathname);
  const start = bodyOf(documents.textPart(id, 0) ?? '', title, isMarkdown);
  for (let part = 0; part < SEARCHED_PARTS && !highlights.isEmpty; part += 1) {
    const text = part === 0 ? start : documents.textPart(id, part);
    if (text === undefined) break;
    const snippet = snippetOf(text, highlights, isMarkdown);
    if (snippet !== undefined) return snippet;
  }
  return snippetAt(start, 0, isMarkdown);
}

const SNIPPET_CHARS = 240;
/** The characters before the first highlighted word. */
const LEAD_CHARS = 60;

/**
 * Returns the part of a text around the first highlighted word, without Markdown syntax; undefined
 * if the text has none of the words.
 */
export function snippetOf(
  text: string,
  highlights: Highlights,
  isMarkdown = false,
): string | undefined {
  for (const { word, start } of placedWords(text)) {
    if (!highlights.has(word)) continue;
    const from = Math.max(0, start - LEAD_CHARS);
    // Starts between two words if possible.
    const begin = from === 0 ? 0 : from + text.slice(from, start).search(/\s/) + 1;
    const found = snippetAt(text, begin, isMarkdown);
    // A word in the address of a link is not part of the text that Markdown shows.
    if (!isMarkdown || [...placedWords(found)].some((each) => highlights.has(each.word)))
      return found;
  }
  return undefined;
}

/** Returns a piece of a text as one line, which ends between two words if possible. */
export function snippetAt(text: string, start: number, isMarkdown = false): string {
  // Markdown syntax is removed, so more text is needed to fill a snippet.
  const raw = text.slice(start, start + (isMarkdown ? 3 * SNIPPET_CHARS : SNIPPET_CHARS));
  const whole = isMarkdown ? withoutMarks(raw) : raw;
  const isCut = whole.length > SNIPPET_CHARS || start + raw.length < text.length;
  const piece = whole.slice(0, SNIPPET_CHARS);
  const blank = isCut ? piece.search(/\s\S*$/) : -1;
  const line = oneLine((blank > SNIPPET_CHARS / 2 ? piece.slice(0, blank) : piece).toWellFormed());
  return `${start > 0 ? '… ' : ''}${line}${isCut ? ' …' : ''}`;
}

function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
}

const MARKDOWN = /\.(md|markdown|mdown|mkd|mdx)$/i;
const MAX_FRONT_MATTER_CHARS = 16_384;
/** Lines of `key: value` between `---`. */
const FRONT_MATTER = /^\ufeff?---[ \t]*\r?\n(?:(?!---)[^\n]*\n)*?---[ \t]*(?:\r?\n|$)/;

/** Returns a text without front matter, and without a first line that repeats the title. */
export function bodyOf(text: string, title: string, isMarkdown: boolean): string {
  const matter = isMarkdown ? FRONT_MATTER.exec(text.slice(0, MAX_FRONT_MATTER_CHARS)) : null;
  const body = text.slice(matter?.[0].length ?? 0).trimStart();
  const end = body.search(/\n|$/);
  const first = body.slice(0, Math.min(end, SNIPPET_CHARS));
  const isTitle = oneLine(isMarkdown ? withoutMarks(first) : first) === title;
  return (isTitle && body.slice(end).trimStart()) || body;
}

/**
 * Removes Markdown syntax: of headings, lists, quotes, tables and emphasis. Links and images are
 * replaced by their text.
 */
function withoutMarks(text: string): string {
  return text
    .replace(
      /^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?(?:\[!\w+\])?|[-*+][ \t]+(?:\[[ x]\][ \t]+)?|\d{1,9}[.)][ \t]+)/gm,
      '',
    )
    .replace(/^[ \t]*(?:[-*_=`~|:][ \t]*){3,}[\w-]*$|^[ \t]*\[[^\]\n]{1,100}\]:[ \t]+\S+.*$/gm, '')
    .replace(/!?\[([^\][]{0,200})\](?:\([^()\n]{0,500}\)|\[[^\][\n]{0,100}\])/g, '$1')
    .replace(/!?\[([^\][]{0,200})\](?:\([^()\n]{0,500}\)|\[[^\][\n]{0,100}\])/g, '$1')
    .replace(/<\/?[a-z][^<>]{0,300}>|<!--[^\n]{0,300}-->/gi, '')
    .replace(/(\*\*|__|~~|`+)(\S(?:[^\n]{0,300}?\S)??)\1/g, '$2')
    .replace(/(?<![\w*])([*_])(\S(?:[^\n*_]{0,300}\S)?)\1(?![\w*])/g, '$2')
    .replace(/[ \t]*\|[ \t]*/g, ' ');
}

/** Returns a text as markup, with the highlighted words in `<mark>`. */
export function highlighted(text: string, highlights: Highlights): string {
  let markup = '';
  let at = 0;
  for (const { word, start, end } of placedWords(text)) {
    if (!highlights.has(word)) continue;
    markup += escapeMarkup(text.slice(at, start));
    markup += `<mark>${escapeMarkup(text.slice(start, end))}</mark>`;
    at = end;
  }
  return markup + escapeMarkup(text.slice(at));
}
