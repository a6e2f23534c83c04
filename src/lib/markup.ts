/** The escapes of the characters that have a meaning in HTML and XML. */
const MARKUP_ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes text for the content of an element. */
export function escapeText(text: string): string {
  return text.replace(/[&<>]/g, (character) => MARKUP_ESCAPES[character] ?? character);
}

/** Escapes text for the content of an element or the value of an attribute. */
export function escapeMarkup(text: string): string {
  return text.replace(/[&<>"']/g, (character) => MARKUP_ESCAPES[character] ?? character);
}

const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
};

/**
 * Decodes the five entities of XML, and characters written as decimal numbers. Other entities stay.
 *
 * The package `entities`, which comes with htmlparser2, is not used here: it decodes `&#0;` to
 * U+FFFD. Keys and cells of a table must come back as they were written.
 */
export function decodeEntities(text: string): string {
  return text.replace(/&(?:#(\d{1,6})|([a-z]{2,4}));/g, (source, code?: string, name = '') =>
    code === undefined ? (ENTITIES[name] ?? source) : String.fromCodePoint(Number(code)),
  );
}
