import { type NormalUrl, pathText } from './content.js';
import { symbolTerms } from './symbol-words.js';
import { indexable, PREFIX_MARK, prefixes } from './words.js';

/** The columns of the table `words` for a document, in UTF-8. */
export interface IndexedColumns {
  readonly title: Buffer;
  readonly name: Buffer;
  readonly body: Buffer;
}

/** The texts that the index holds for a document, in UTF-8. */
export interface IndexedText extends IndexedColumns {
  /** The column of the table `prefixes`. */
  readonly letters: Buffer;
}

/** The parts of a document that are indexed besides its text. */
export interface Named {
  readonly title: string;
  readonly url: NormalUrl;
}

const BLANK = Buffer.from(' ');
const NOTHING = Buffer.alloc(0);

/**
 * Returns what is indexed for a document. The index is contentless, so nothing else tells what it
 * should hold: `DocumentStore` writes this, and `checkDatabase` compares with it.
 *
 * In each column, symbol words follow the other words. In title and name, so do the prefixes of the
 * words: a prefix is ranked by these columns.
 *
 * @param body the text of the document, prepared by `indexable`
 */
export function indexedText(document: Named, body: Buffer): IndexedText {
  return { ...columnsWith(symbolTerms, document, body), letters: lettersOf(document, body) };
}

/** Returns what is indexed for a document that a migration has not reached: no symbol words. */
export function textBeforeMigration(document: Named, body: Buffer): IndexedText {
  return { ...columnsWith(() => NOTHING, document, body), letters: lettersOf(document, body) };
}

/** Returns the columns of a document with symbol words; undefined if it has none. */
export function columnsWithSymbols(document: Named, body: Buffer): IndexedColumns | undefined {
  const hasSymbols = [...headsOf(document), body].some((text) => symbolTerms(text).length > 0);
  return hasSymbols ? columnsWith(symbolTerms, document, body) : undefined;
}

function columnsWith(
  symbolsOf: (prepared: Buffer) => Buffer,
  document: Named,
  body: Buffer,
): IndexedColumns {
  const [title, name] = headsOf(document);
  const head = (text: Buffer): Buffer =>
    Buffer.concat([text, prefixes(text, PREFIX_MARK), symbolsOf(text)]);
  const symbols = symbolsOf(body);
  return {
    title: head(title),
    name: head(name),
    body: symbols.length === 0 ? body : Buffer.concat([body, symbols]),
  };
}

function lettersOf(document: Named, body: Buffer): Buffer {
  const heads = headsOf(document).flatMap((head) => [head, BLANK]);
  return prefixes(Buffer.concat([...heads, body]));
}

function headsOf({ title, url }: Named): readonly [title: Buffer, name: Buffer] {
  return [indexable(title), indexable(pathText(url))];
}
