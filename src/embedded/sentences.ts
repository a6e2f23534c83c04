/** A sentence of a document; `number` is its place among all sentences, from 0. */
export interface Sentence {
  readonly number: number;
  readonly text: string;
}

/** Longer ones are cut at a blank: a table or a list without a full stop is no sentence. */
export const LONGEST_SENTENCE = 2_000;

/** A blank line, or a line that begins like an item of a list, a heading, a quote or a row of a table. */
const PARAGRAPH_BREAK = /\n[^\S\n]*\n\s*|\n(?=[^\S\n]*(?:[-*+•#>|]|\d{1,3}[.)]\s))/g;
const LINE_BREAK = /\n\s*/g;
/**
 * The marks that end a sentence. A full stop ends none after a lone letter or a number of one or two digits ("z. B.",
 * "3. Oktober"), nor before a small letter; the marks of Chinese, Japanese and Indian scripts need no blank after them.
 * Repetition is bounded, so that a text of nothing but full stops takes no longer than another.
 */
const SENTENCE_END =
  /(?:[!?…؟۔]|(?<![^\p{L}\p{N}](?:\p{L}|\p{N}{1,2}))\.)[.!?…؟۔]{0,8}["'”’»)\]]{0,4}(?=\s(?!\p{Ll}))|[。！？｡।॥]{1,8}[”’」』）]{0,4}/gu;

/**
 * The sentences of a text that comes in parts, cut anywhere, in order. Where a text has blank lines they divide its paragraphs and a
 * line may break within a sentence; where it has none, as after HTML was taken off, each line is a paragraph.
 *
 * (Intl.Segmenter also cuts after "e.g." and "Dr.", and took 44 ms for 64 KB of English, 428 ms for 64 KB of Chinese.)
 */
export function* sentencesOf(parts: Iterable<string>): Iterable<Sentence> {
  let number = 0;
  for (const paragraph of paragraphsOf(parts)) {
    for (const text of cutSentences(paragraph)) {
      yield { number, text };
      number += 1;
    }
  }
}

function* paragraphsOf(parts: Iterable<string>): Iterable<string> {
  let rest = '';
  let breaks: RegExp | undefined;
  for (const part of parts) {
    rest = (rest + part).replaceAll('\r\n', '\n');
    breaks ??= /\n[^\S\n]*\n/.test(rest) ? PARAGRAPH_BREAK : LINE_BREAK;
    const paragraphs = rest.split(breaks);
    // The last may go on in the next part; one that does not end anywhere is cut.
    rest = paragraphs.pop() ?? '';
    yield* paragraphs;
    if (rest.length <= 2 * LONGEST_SENTENCE) continue;
    const end = lastEnd(rest);
    yield rest.slice(0, end);
    rest = rest.slice(end);
  }
  yield rest;
}

/** Where the last whole sentence of a long text ends, or its last blank, or where it is cut through. */
function lastEnd(text: string): number {
  const tail = text.length - LONGEST_SENTENCE;
  let end = 0;
  for (const match of text.matchAll(SENTENCE_END)) end = match.index + match[0].length;
  if (end > tail) return end;
  return wholeEnd(text, text.lastIndexOf(' ') > tail ? text.lastIndexOf(' ') : text.length);
}

/** Not between the two halves of a surrogate pair. */
function wholeEnd(text: string, end: number): number {
  return (text.charCodeAt(end - 1) & 0xfc00) === 0xd800 && end < text.length ? end - 1 : end;
}

function* cutSentences(raw: string): Iterable<string> {
  const paragraph = raw.replace(/[\s\p{Cc}\ufeff]+/gu, ' ');
  let start = 0;
  for (const match of paragraph.matchAll(SENTENCE_END)) {
    const end = match.index + match[0].length;
    yield* boundSentence(paragraph.slice(start, end));
    start = end;
  }
  yield* boundSentence(paragraph.slice(start));
}

function* boundSentence(raw: string): Iterable<string> {
  let text = raw.trim();
  while (text.length > LONGEST_SENTENCE) {
    const blank = text.lastIndexOf(' ', LONGEST_SENTENCE);
    const end = wholeEnd(text, blank > LONGEST_SENTENCE / 2 ? blank : LONGEST_SENTENCE);
    yield text.slice(0, end).trim();
    text = text.slice(end).trim();
  }
  if (text !== '') yield text;
}
