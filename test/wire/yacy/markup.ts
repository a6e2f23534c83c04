import { decoded } from './entities.js';

/** The result of the HTML filter of the peer, through which plain text goes as well. */
export interface Markup {
  readonly title: string;
  readonly text: string;
}

/** Section 10, row "one of U+0001-U+0007, …": a single one makes the source a binary file. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that it is about.
const BINARY = /[\0-\x07\x0e-\x1f]/;

/** Undefined for a source that is taken for a binary file. */
export function markup(source: string): Markup | undefined {
  if (BINARY.test(source)) return undefined;
  const title = /<title[^>]*>(.*?)<\/title>/is.exec(source)?.[1] ?? '';
  const runs = source
    .replace(/<!--.*?(-->|$)/gs, '<>')
    .replace(/<(script|style|title)\b.*?<\/\1>/gis, '<>')
    .split(/<[^>]*(?:>|$)/);
  const text = runs.map((run) => line(withoutTags(decoded(run)))).filter((run) => run !== '');
  return { title: line(decoded(withoutTags(title))), text: text.join(' ') };
}

/**
 * Strips what looks like a tag after entities were decoded. A `>` without a `<` is dropped, and
 * what it stood between is glued (section 10, row `a>W`); from the source
 * (AbstractScraper.stripAllTags) [S]: it also makes up for a later `<`.
 */
function withoutTags(text: string): string {
  let open = 0;
  let kept = '';
  for (const part of text.split(/([<>])/)) {
    if (part === '>') open -= 1;
    else if (part === '<') {
      open += 1;
      kept += ' ';
    } else if (open <= 0) kept += part;
  }
  return kept;
}

/**
 * Section 10: U+0008 to U+000D are blanks, U+007F to U+009F nothing at all. Only blanks collapse:
 * U+FEFF stays.
 */
function line(text: string): string {
  return text
    .replace(/[\x7f-\x9f]/g, '')
    .replace(/[\0- ]+/g, ' ')
    .replace(/^ | $/g, '');
}
