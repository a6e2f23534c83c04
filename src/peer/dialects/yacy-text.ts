import { type Rewriting, rewriting } from '../../lib/rewriting.js';

/**
 * Rewrites plain text in UTF-8 so that YaCy loses none of its words. YaCy reads plain text with its
 * HTML parser, and writes its index as XML (measured with 1.92, and read in its
 * `CharacterCoding.html2unicode`).
 *
 * - `<` and `>` become `‹` and `›`, also if they are written as entities.
 * - Control characters become spaces. Otherwise one of them drops the whole text, or joins two
 *   words.
 * - U+FFFE and U+FFFF become U+FFFD. Otherwise one of them fails the update of the index for all
 *   documents in it.
 * - An `&` that begins no entity known to YaCy becomes `＆`. Otherwise YaCy drops all text up to the
 *   next `;`.
 * - A byte order mark is removed.
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
 * Rewrites HTML: replaces the characters that fail the update of YaCy's index, and nothing else.
 * The encoding does not matter.
 */
export function htmlRewriting(): Rewriting {
  return rewriting({
    pattern: NONCHARACTER,
    replacer: rewrittenNoncharacter,
    cut: CUT,
    longest: LONGEST,
  });
}

// All patterns match bytes of UTF-8, read as Latin-1.
const MARK = '\xef\xbb\xbf';
const OPENING = '\xe2\x80\xb9';
const CLOSING = '\xe2\x80\xba';
const REPLACEMENT = '\xef\xbf\xbd';
const AMPERSAND = '\xef\xbc\x86';

/** A character written as a number. YaCy decodes `&amp;` first, so a number may follow it. */
const NUMBER = '#(?:[xX]0*([0-9a-fA-F]{1,6})|0*(\\d{1,7}));';
// Never matched without regard to case: Latin-1 pairs letters such as \xc2 and \xe2, which are
// bytes here.
const PLAIN = new RegExp(
  `&(?:amp;)*(?:${NUMBER}|([A-Za-z][A-Za-z0-9]{1,7});|)|[<>\\x00-\\x07\\x0e-\\x1f\\x7f]|\\xc2[\\x80-\\x9f]|\\xef\\xbf[\\xbe\\xbf]`,
  'g',
);
const NONCHARACTER = new RegExp(`\\xef\\xbf[\\xbe\\xbf]|&(?:amp;)*${NUMBER}`, 'g');
/** The longest match, in bytes: a number behind several `amp;`. */
const LONGEST = 64;
/** Matches text at the end of a piece that may be the beginning of a match. */
const CUT = /(?:&[A-Za-z0-9#;]{0,40}|\xc2|\xef[\xbb\xbf]?)$/;

/**
 * The named entities that YaCy knows besides `lt` and `gt`. It distinguishes upper and lower case.
 */
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
 * Returns the replacement for a character that is written as a number; undefined if it can stay.
 */
function rewrittenCode(code: number): string | undefined {
  if (code === 0x3c) return OPENING;
  if (code === 0x3e) return CLOSING;
  if (code === 0x26) return AMPERSAND;
  if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return ' ';
  const isSurrogate = code >= 0xd800 && code <= 0xdfff;
  if (isSurrogate || code === 0xfffe || code === 0xffff || code > 0x10ffff) return REPLACEMENT;
  // YaCy keeps only 16 bits of the number, which are another character.
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
