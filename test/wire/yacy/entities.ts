/** Some of those that it knows, which are HTML 4's names up to U+00FF. */
const NAMED: Readonly<Record<string, string>> = {
  amp: '&',
  quot: '"',
  lt: '<',
  gt: '>',
  nbsp: ' ',
  uuml: 'ü',
  Auml: 'Ä',
  szlig: 'ß',
  copy: '©',
};

const MAX_INT = 2 ** 31;

/**
 * The text with its entities decoded, those too whose `&` is written as an entity.
 *
 * From the source (net.yacy.document.parser.html.CharacterCoding.html2unicode) [S]: an entity ends
 * at the next `;`, however far away that is, and one that is not known is dropped, with all that
 * stands in between. Without a `;` nothing is decoded. Names are case sensitive. A number is cut to
 * 16 bits.
 */
export function decoded(text: string): string {
  const once = text.replaceAll('&amp;', '&');
  const end = once.lastIndexOf(';') + 1;
  return (
    once.slice(0, end).replace(/&([^;]*);/g, (_, entity: string) => meant(entity) ?? '') +
    once.slice(end)
  );
}

function meant(entity: string): string | undefined {
  if (Object.hasOwn(NAMED, entity)) return NAMED[entity];
  const [, hex, decimal] = /^#(?:[xX]([+-]?[\da-fA-F]+)|([+-]?\d+))$/.exec(entity) ?? [];
  const value = hex === undefined ? Number.parseInt(decimal ?? '', 10) : Number.parseInt(hex, 16);
  return value >= -MAX_INT && value < MAX_INT ? String.fromCharCode(value) : undefined;
}
