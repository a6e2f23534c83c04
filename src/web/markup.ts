import { visibleParts } from '../lib/text.js';

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: a page cannot hold these characters.
const TO_ESCAPE = /[&<>"'\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;

/**
 * Text for a page, in elements and attributes; characters that a page cannot hold become U+FFFD.
 */
export function escapeMarkup(text: string): string {
  return text.replace(TO_ESCAPE, (c) => ENTITIES[c] ?? '\ufffd');
}

/** A name in a page, with what would not be seen written out, and marked as that. */
export function nameMarkup(name: string): string {
  return visibleParts(name)
    .map((part, i) =>
      i % 2 === 0 ? escapeMarkup(part) : `<b class="written">${escapeMarkup(part)}</b>`,
    )
    .join('');
}
