/** HTML 4's names of U+00A1 to U+00FF, in order. */
const LATIN_1 = `iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2
  sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml
  Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml
  times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave
  eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute
  ucirc uuml yacute thorn yuml`.split(/\s+/);

const NAMED: Readonly<Record<string, string>> = {
  amp: '&',
  quot: '"',
  lt: '<',
  gt: '>',
  nbsp: ' ',
  ...Object.fromEntries(LATIN_1.map((name, n) => [name, String.fromCharCode(0xa1 + n)])),
};

const MAX_INT = 2 ** 31;

/**
 * The text with its entities decoded, those too whose `&` is written as an entity.
 *
 * From the source (net.yacy.document.parser.html.CharacterCoding.html2unicode) [S]: an entity ends at the next `;`, however far
 * away that is, and one that is not known is dropped, with all that stands in between. Without a `;` nothing is decoded.
 * Names are case sensitive. A number is cut to 16 bits.
 */
export function decoded(text: string): string {
  const once = text.replaceAll('&amp;', '&');
  const end = once.lastIndexOf(';') + 1;
  return (
    once.slice(0, end).replace(/&([^;]*);/g, (_, entity: string) => meant(entity) ?? '') + once.slice(end)
  );
}

function meant(entity: string): string | undefined {
  if (Object.hasOwn(NAMED, entity)) return NAMED[entity];
  const [, hex, decimal] = /^#(?:[xX]([+-]?[\da-fA-F]+)|([+-]?\d+))$/.exec(entity) ?? [];
  const value = hex === undefined ? Number.parseInt(decimal ?? '', 10) : Number.parseInt(hex, 16);
  return value >= -MAX_INT && value < MAX_INT ? String.fromCharCode(value) : undefined;
}
