import { HtmlParser } from '../../lib/html-parser.js';
import { dateOf, type Extract, PAGE_END_CLASS } from './document-reader.js';

const SILENT = new Set(['script', 'style', 'noscript', 'template', 'svg', 'iframe', 'object']);
const INLINE = new Set(
  'a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark nobr q s samp small span strong sub sup time tt u var wbr'.split(
    ' ',
  ),
);
/** The end of a page in a text: a form feed, as in plain text. */
const FORM_FEED = '\f';
/** Names of `<meta>` elements that hold the author or the date. */
const AUTHOR = new Set(['author', 'dc.creator', 'dcterms.creator']);
const DATE = new Set([
  'date',
  'dc.date',
  'dcterms.modified',
  'dcterms.date',
  'article:published_time',
]);

/**
 * Returns the text of a page as a reader sees it, one line per block. Scripts, styles and pictures
 * are left out. Where a page ends (`PAGE_END_CLASS`), a line begins with a form feed.
 */
export function readHtml(html: string): Extract {
  const text: string[] = [];
  const title: string[] = [];
  const meta: {
    author?: string | undefined;
    date?: number | undefined;
    language?: string | undefined;
  } = {};
  let silent = 0;
  let inTitle = false;
  const handler: ConstructorParameters<typeof HtmlParser>[0] = {
    onopentag(name, attributes) {
      if (SILENT.has(name)) silent += 1;
      else if (name === 'title') inTitle = true;
      else if (!INLINE.has(name)) text.push('\n');
      if (name === 'html') meta.language ??= attributes.lang ?? attributes['xml:lang'];
      if (name === 'hr' && attributes.class === PAGE_END_CLASS) text.push(FORM_FEED);
      if (name !== 'meta') return;
      const what = attributes.name?.toLowerCase() ?? attributes.property ?? '';
      if (AUTHOR.has(what)) meta.author ??= attributes.content?.trim();
      if (DATE.has(what)) meta.date ??= dateOf(attributes.content);
    },
    onclosetag(name) {
      if (SILENT.has(name)) silent -= 1;
      else if (name === 'title') inTitle = false;
      else if (!INLINE.has(name)) text.push('\n');
    },
    ontext(part) {
      if (silent > 0) return;
      if (inTitle) title.push(part);
      else text.push(part.replaceAll(FORM_FEED, ' '));
    },
  };
  // Pages of books are XHTML, in which `<title/>` and `<script/>` are complete elements.
  const parser = new HtmlParser(handler, { recognizeSelfClosing: true });
  parser.write(html);
  parser.end();
  // Empty pages at the start and at the end count.
  const plain = text
    .join('')
    .replace(/[ \t\v]+/g, ' ')
    .replace(/ ?[\r\n][^\S\f]*/g, '\n')
    .replace(/\f[^\S\f]+/g, FORM_FEED);
  return {
    text: plain.includes(FORM_FEED) ? trimmed(plain) : plain.trim(),
    title: title.join('').replace(/\s+/g, ' ').trim() || undefined,
    ...meta,
  };
}

/** Removes the blanks at both ends of a text, but no form feeds. */
function trimmed(text: string): string {
  const isBlank = (at: number): boolean => text[at] !== FORM_FEED && text.charAt(at).trim() === '';
  let [start, end] = [0, text.length];
  while (start < end && isBlank(start)) start += 1;
  while (start < end && isBlank(end - 1)) end -= 1;
  return text.slice(start, end);
}
