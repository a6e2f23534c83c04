import type { OcrPage } from '../page-store.js';

/*
 * Confidences of tesseract 5.3. Words that are right: 90 to 97 in scans of 150 dpi and more, 50 to
 * 97 in 75 dpi, a mean of 55 in 60 dpi with a third of them wrong. Words that are none: 20 to 60 on
 * photographs, with a mean of 40 to 45, and a mean of 25 on pages that are upside down.
 */

/** Confidence below which a word is left out. */
const MIN_CONFIDENCE = 30;
/** Mean confidence below which there is hardly a word on a page. */
const MIN_MEAN = 50;
/** Confidence below which a word is left out on such a page. A photograph may show a sign. */
const MIN_CONFIDENCE_OF_FEW = 80;

/** The level of the rows of words in a TSV of tesseract. The others are pages, blocks and lines. */
const WORD_LEVEL = '5';

/** A character of a script that has no blanks between words. */
const UNSPACED = '[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}、。]';
const UNSPACED_END = new RegExp(`${UNSPACED}$`, 'u');
const UNSPACED_BEGIN = new RegExp(`^${UNSPACED}`, 'u');

/** A word, or a mark between words. */
interface OcrWord {
  readonly text: string;
  /** From 0 to 100. */
  readonly confidence: number;
  readonly paragraph: string;
  readonly line: string;
}

/**
 * Returns the words of a TSV that tesseract writes. Each row of a word has the columns level, page,
 * block, paragraph, line, word, left, top, width, height, confidence, text.
 */
export function ocrWords(tsv: string): readonly OcrWord[] {
  const words: OcrWord[] = [];
  for (const row of tsv.split('\n')) {
    const [level, page, block, number, line, , , , , , confidence, word = ''] = row.split('\t');
    const text = word.trim();
    if (level !== WORD_LEVEL || text === '') continue;
    const paragraph = `${page} ${block} ${number}`;
    words.push({ text, confidence: Number(confidence), paragraph, line: `${paragraph} ${line}` });
  }
  return words;
}

/** Returns the mean confidence of the words with letters or digits; 0 if there are none. */
export function meanConfidence(words: readonly OcrWord[]): number {
  const real = words.filter(({ text }) => /[\p{L}\p{N}]/u.test(text));
  const sum = real.reduce((all, { confidence }) => all + confidence, 0);
  return real.length === 0 ? 0 : sum / real.length;
}

/** Returns the page with these words, without dust and pictures that were read as words. */
export function ocrPage(words: readonly OcrWord[]): OcrPage {
  const isPage = meanConfidence(words) >= MIN_MEAN;
  const kept = words.filter(({ confidence, text }) =>
    isPage
      ? confidence >= MIN_CONFIDENCE
      : confidence >= MIN_CONFIDENCE_OF_FEW && /[\p{L}\p{N}]{2}/u.test(text),
  );
  let text = '';
  let previous: OcrWord | undefined;
  for (const word of kept) {
    text += (previous === undefined ? '' : separator(previous, word)) + word.text;
    previous = word;
  }
  return {
    text,
    words: kept.filter((word) => /[\p{L}\p{N}]/u.test(word.text)).length,
    confidence: meanConfidence(kept),
  };
}

function separator(before: OcrWord, after: OcrWord): string {
  if (after.paragraph !== before.paragraph) return '\n\n';
  if (after.line !== before.line) return '\n';
  return UNSPACED_END.test(before.text) && UNSPACED_BEGIN.test(after.text) ? '' : ' ';
}
