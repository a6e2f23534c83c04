const PLAIN = /^[\x20-\x7e]*$/;
const MARKS_ONLY = /^[\p{M}\p{Cf}]+$/u;
const EMOJI = /^\p{Regional_Indicator}{2}|\p{Emoji_Presentation}|\ufe0f/u;
/** Scripts that are written in squares, their punctuation, and the full-width forms. */
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1b000}-\u{1b2ff}\u{20000}-\u{3fffd}]/u;

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** How many columns a text without control characters takes on a terminal, as most of them count. */
export function displayWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const { segment } of segmenter.segment(text)) width += characterWidth(segment);
  return width;
}

/** The text in `width` columns: cut with an ellipsis, never within a character, and filled up with blanks. */
export function fitted(text: string, width: number, align: 'left' | 'right' = 'left'): string {
  const cut = displayWidth(text) <= width ? text : `${beginOf(text, width - 1)}…`;
  const blanks = ' '.repeat(Math.max(0, width - displayWidth(cut)));
  return align === 'left' ? cut + blanks : blanks + cut;
}

function beginOf(text: string, width: number): string {
  if (PLAIN.test(text)) return text.slice(0, width);
  let begin = '';
  let left = width;
  for (const { segment } of segmenter.segment(text)) {
    left -= characterWidth(segment);
    if (left < 0) break;
    begin += segment;
  }
  return begin;
}

function characterWidth(character: string): number {
  if (MARKS_ONLY.test(character)) return 0;
  return WIDE.test(character) || EMOJI.test(character) ? 2 : 1;
}
