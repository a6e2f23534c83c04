import { type Rewriting, rewriting } from '../lib/rewriting.js';

/**
 * Makes plain text in UTF-8 safe for YaCy, which reads it with its HTML parser and indexes text
 * through XML (measured with 1.92, and read in its `CharacterCoding.html2unicode`). None of the
 * words of the text is lost:
 *
 * - `<` and `>`, also written as entities, become `‹` and `›`;
 * - control characters become blanks, for one of them drops the whole text or glues words together;
 * - U+FFFE and U+FFFF become U+FFFD, for one of them ends the update of the index that it is in;
 * - an `&` that begins no entity which YaCy knows becomes `＆`, for all up to the next `;` would be
 *   dropped;
 * - a byte order mark is left out.
 */
export function plainTextRewriting(): Rewriting {
  return rewriting({
    pattern: PLAIN,
    replacer: rewrittenPlain,
    cut: CUT,
    longest: LONGEST,
    leftOut: MARK,
  });
}

/**
 * Replaces in HTML what would end the update of YaCy's index, and nothing else. The encoding does
 * not matter.
 */
export function htmlRewriting(): Rewriting {
  return rewriting({
    pattern: NONCHARACTER,
    replacer: rewrittenNoncharacter,
    cut: CUT,
    longest: LONGEST,
  });
}

// Everything here is looked for byte by byte, in UTF-8 read as Latin-1.
const MARK = '\xef\xbb\xbf';
const OPENING = '\xe2\x80\xb9';
const CLOSING = '\xe2\x80\xba';
const REPLACEMENT = '\xef\xbf\xbd';
const AMPERSAND = '\xef\xbc\x86';

/** YaCy decodes `&amp;` first, and then what it has become. */
const NUMBER = '#(?:[xX]0*([0-9a-fA-F]{1,6})|0*(\\d{1,7}));';
// Never without regard to case: among the letters of Latin-1 are pairs such as \xc2 and \xe2, which
// are bytes here.
const PLAIN = new RegExp(
  `&(?:amp;)*(?:${NUMBER}|([A-Za-z][A-Za-z0-9]{1,7});|)|[<>\\x00-\\x07\\x0e-\\x1f\\x7f]|\\xc2[\\x80-\\x9f]|\\xef\\xbf[\\xbe\\xbf]`,
  'g',
);
const NONCHARACTER = new RegExp(`\\xef\\xbf[\\xbe\\xbf]|&(?:amp;)*${NUMBER}`, 'g');
/** The longest that is replaced, in bytes: a number behind several `amp;`. */
const LONGEST = 64;
/** What may be the beginning of something to replace at the end of a piece. */
const CUT = /(?:&[A-Za-z0-9#;]{0,40}|\xc2|\xef[\xbb\xbf]?)$/;

/** The entities that YaCy knows by name, beside `lt` and `gt`; it tells upper from lower case. */
const KNOWN = new Set(
  (
    'quot nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para ' +
    'middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute ' +
    'Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute ' +
    'THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ' +
    'ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml'
  ).split(' '),
);

function rewrittenPlain(found: string, hex?: string, decimal?: string, name?: string): string {
  const code = codeOf(hex, decimal);
  if (code !== undefined) return rewrittenCode(code) ?? found;
  if (name !== undefined) {
    if (KNOWN.has(name)) return found;
    const small = name.toLowerCase();
    if (small === 'lt') return OPENING;
    return small === 'gt' ? CLOSING : AMPERSAND + found.slice(1);
  }
  if (found.startsWith('&')) return AMPERSAND;
  if (found === '<') return OPENING;
  if (found === '>') return CLOSING;
  return found.length === 3 ? REPLACEMENT : ' ';
}

/**
 * What stands in the place of a character that is written as a number; undefined where it may stay
 * so.
 */
function rewrittenCode(code: number): string | undefined {
  if (code === 0x3c) return OPENING;
  if (code === 0x3e) return CLOSING;
  if (code === 0x26) return AMPERSAND;
  if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return ' ';
  const isSurrogate = code >= 0xd800 && code <= 0xdfff;
  if (isSurrogate || code === 0xfffe || code === 0xffff || code > 0x10ffff) return REPLACEMENT;
  // YaCy keeps 16 bits of it, which are another character.
  return code > 0xffff ? Buffer.from(String.fromCodePoint(code)).toString('latin1') : undefined;
}

function rewrittenNoncharacter(found: string, hex?: string, decimal?: string): string {
  const code = codeOf(hex, decimal);
  if (code === undefined) return REPLACEMENT;
  return (code & 0xffff) >= 0xfffe ? '&#65533;' : found;
}

function codeOf(hex: string | undefined, decimal: string | undefined): number | undefined {
  if (hex !== undefined) return Number.parseInt(hex, 16);
  return decimal === undefined ? undefined : Number.parseInt(decimal, 10);
}
