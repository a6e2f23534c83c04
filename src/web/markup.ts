import { escapeMarkup as escapeCharacters } from '../lib/markup.js';
import { visibleParts } from '../lib/text.js';

// biome-ignore lint/suspicious/noControlCharactersInRegex: a page cannot contain these characters.
const IMPOSSIBLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;

/**
 * Escapes text for a page, in elements and attributes. Characters that a page cannot contain become
 * U+FFFD.
 */
export function escapeMarkup(text: string): string {
  return escapeCharacters(text.replace(IMPOSSIBLE, '\ufffd'));
}

/** Returns a name for a page. Invisible characters are written as highlighted escapes. */
export function nameMarkup(name: string): string {
  return visibleParts(name)
    .map((part, i) =>
      i % 2 === 0 ? escapeMarkup(part) : `<b class="written">${escapeMarkup(part)}</b>`,
    )
    .join('');
}
