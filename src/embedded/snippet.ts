import { placedWords } from './words.js';

/** A piece of a snippet; `hit` where it is one of the words that were asked for. */
export interface SnippetPiece {
  readonly text: string;
  readonly hit: boolean;
}

const LENGTH = 240;
/** Characters shown before the first word that was asked for. */
const LEAD = 60;

/** The place in `text` around the first of the `asked` words; undefined where none is in it. */
export function snippetOf(text: string, asked: ReadonlySet<string>): SnippetPiece[] | undefined {
  const hits: { start: number; end: number }[] = [];
  for (const placed of placedWords(text)) {
    const first = hits[0];
    if (first && placed.end > first.start - LEAD + LENGTH) break;
    if (asked.has(placed.word)) hits.push(placed);
  }
  const [first] = hits;
  if (!first) return undefined;
  const start = blankBefore(text, first.start - LEAD, first.start);
  return pieces(text, start, endOf(text, start), hits);
}

/** The beginning of `text`, for where no word was asked for or found. */
export function beginningOf(text: string): SnippetPiece[] {
  return pieces(text, 0, endOf(text, 0), []);
}

function blankBefore(text: string, from: number, to: number): number {
  if (from <= 0) return 0;
  const blank = /\s/.exec(text.slice(from, to));
  if (blank) return from + blank.index + 1;
  return (text.charCodeAt(from) & 0xfc00) === 0xdc00 ? from + 1 : from;
}

function endOf(text: string, start: number): number {
  const end = start + LENGTH;
  if (end >= text.length) return text.length;
  const blank = text.slice(start, end).search(/\s\S*$/);
  if (blank > LENGTH / 2) return start + blank;
  return (text.charCodeAt(end) & 0xfc00) === 0xdc00 ? end + 1 : end;
}

function pieces(
  text: string,
  start: number,
  end: number,
  hits: readonly { start: number; end: number }[],
): SnippetPiece[] {
  const result: SnippetPiece[] = [];
  const add = (from: number, to: number, hit: boolean): void => {
    const piece = text.slice(from, to).replace(/[\s\p{Cc}]+/gu, ' ');
    if (piece !== '') result.push({ text: piece, hit });
  };
  if (start > 0) result.push({ text: '… ', hit: false });
  let at = start;
  for (const hit of hits) {
    if (hit.end > end) break;
    add(at, hit.start, false);
    add(hit.start, hit.end, true);
    at = hit.end;
  }
  add(at, end, false);
  if (end < text.length) result.push({ text: ' …', hit: false });
  return result;
}
