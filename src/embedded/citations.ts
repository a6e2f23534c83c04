import type { Clock } from '../lib/clock.js';
import { Yielder } from '../lib/slices.js';
import { type CitationRecord, citationPage, type OtherDocument } from './citation-page.js';
import { type Database, int } from './database.js';
import { findDocument } from './document-endpoints.js';
import type { Document, DocumentStore } from './documents.js';
import type { Context } from './server.js';
import { fold, wordsOf } from './words.js';

/**
 * From how many common sentences on a document counts as similar, unless `ch` says otherwise;
 * YaCy's number.
 */
const SIMILAR_FROM = 10;
const LARGEST_CH = 999_999_999;
/** Other documents that are listed, those with the most common sentences first. */
const MOST_CITING = 1_000;
/** Shorter sentences are not looked up, as in YaCy: too many documents have them by chance. */
const SHORTEST_CITED = 40;
/** Other documents that are looked for, for one sentence. */
const MOST_HITS = 100;
/** Sentences of a document that are listed and looked up. */
const MOST_SENTENCES = 1_000;
/** Characters of a document that are cut into sentences. */
const MOST_TEXT = 2_097_152;
/**
 * Words in a row of a sentence that the index is asked for, the longest there are: these are the
 * rarest. Asked for all words, the index walks through the documents of "the" and "of" as well:
 * over 100,000 of them 7 ms a sentence and not 0.8.
 */
const ASKED_WORDS = 5;
/** Characters of other documents' texts that are read to compare, for one citation record. */
const MOST_COMPARED = 64 * 1_048_576;
/**
 * Characters at the end of one part of a text that are looked at again with the next, for a
 * sentence across the two.
 */
const OVERLAP = 8_192;

/** A sentence as it is compared, and the documents that hold it as far as is known. */
interface Wanted {
  readonly comparable: string;
  readonly holders: Set<number>;
}

/**
 * Finds where else the sentences of a document stand: candidates by a few words in a row from the
 * index, then compared with the text of each candidate.
 */
export class Citations {
  readonly #database: Database;
  readonly #documents: DocumentStore;
  readonly #clock: Clock;
  #last: Promise<unknown> = Promise.resolve();

  constructor(database: Database, documents: DocumentStore, clock: Clock) {
    this.#database = database;
    this.#documents = documents;
    this.#clock = clock;
  }

  /**
   * Shows the references around one document, by `url` or by `hash` (which wins where both are
   * given): its sentences and which other documents hold them, only those that some do with
   * `filter=true`; who holds most of them; and which of these, on other hosts, hold at least `ch`.
   * A document that is not in the index is refused with 404.
   */
  async answer(context: Context): Promise<string> {
    const form = await context.form();
    const isFiltered = form.isTrue('filter');
    const ch = form.number('ch', SIMILAR_FROM, LARGEST_CH);
    const document = findDocument(form, 'hash', this.#documents);
    // One at a time, so that many who ask at once do not add up their slices.
    const record = this.#last.then(() =>
      this.#record(document, isFiltered, ch, () => context.isGone),
    );
    this.#last = record.catch(() => undefined);
    if (context.as === 'json') return context.record('', await record);
    return citationPage(await record, { ch, shortest: SHORTEST_CITED }, context.deps.site);
  }

  /** For who is gone meanwhile, no more is looked for. */
  async #record(
    document: Document,
    isFiltered: boolean,
    ch: number,
    isGone: () => boolean,
  ): Promise<CitationRecord> {
    const yielder = new Yielder(this.#clock);
    const { id, url, urlhash, title } = document;
    const { text: whole, isWhole } = this.#textOf(id);
    const texts: string[] = [];
    const wanted = new Map<string, Wanted>();
    const candidates = new Map<number, Wanted[]>();
    let more = !isWhole;
    for (const text of sentencesOf(whole)) {
      more ||= texts.length === MOST_SENTENCES;
      if (isGone() || texts.length === MOST_SENTENCES) break;
      texts.push(text);
      await yielder.turn();
      if (text.length < SHORTEST_CITED || wanted.has(text)) continue;
      const entry = { comparable: comparableSentence(text), holders: new Set<number>() };
      wanted.set(text, entry);
      for (const other of this.#candidates(text, id))
        candidates.set(other, [...(candidates.get(other) ?? []), entry]);
    }
    more = !(await this.#compare(candidates, yielder, isGone)) || more;

    const others = new Map<number, OtherDocument>();
    const sentences: CitationRecord['sentences'][number][] = [];
    for (const [number, text] of texts.entries()) {
      const appearsIn: string[] = [];
      for (const holder of wanted.get(text)?.holders ?? []) {
        const found = others.get(holder) ?? this.#documents.find('id', holder);
        await yielder.turn();
        if (!found) continue;
        const before = others.get(holder)?.sentences ?? 0;
        others.set(holder, { url: found.url, title: found.title, sentences: before + 1 });
        appearsIn.push(found.url);
      }
      if (!isFiltered || appearsIn.length > 0) sentences.push({ number, text, appearsIn });
    }
    const citing = [...others]
      .sort(([a, most], [b, least]) => least.sentences - most.sentences || a - b)
      .slice(0, MOST_CITING)
      .map(([, other]) => other);
    const hostOf = (address: string): string => new URL(address).hostname;
    const similar = citing.filter(
      (other) => other.sentences >= ch && hostOf(other.url) !== hostOf(url),
    );
    more ||= others.size > MOST_CITING;
    return { url, urlhash, title, sentences, citing, similar, more };
  }

  #textOf(id: number): { readonly text: string; readonly isWhole: boolean } {
    let text = '';
    for (let part = 0; text.length < MOST_TEXT; part += 1) {
      const next = this.#documents.textPart(id, part);
      if (next === undefined) return { text, isWhole: true };
      text += next;
    }
    return { text, isWhole: false };
  }

  #candidates(sentence: string, except: number): number[] {
    const words = wordsOf(sentence);
    let asked: string[] = [];
    for (let at = 0; at === 0 || at + ASKED_WORDS <= words.length; at += 1) {
      const inRow = words.slice(at, at + ASKED_WORDS);
      if (inRow.join('').length > asked.join('').length) asked = inRow;
    }
    if (asked.length === 0) return [];
    const sql = 'SELECT rowid FROM words WHERE words MATCH ? AND rowid <> ? LIMIT ?';
    const rows = this.#database.rows(sql, `body : "${asked.join(' ')}"`, except, MOST_HITS);
    return rows.map((row) => int(row, 'rowid'));
  }

  /** Whether all of it was compared. */
  async #compare(
    candidates: ReadonlyMap<number, readonly Wanted[]>,
    yielder: Yielder,
    isGone: () => boolean,
  ): Promise<boolean> {
    let left = MOST_COMPARED;
    for (const [id, sentences] of candidates) {
      let open = sentences;
      let overlap = '';
      for (let part = 0; open.length > 0; part += 1) {
        const text = this.#documents.textPart(id, part);
        if (text === undefined) break;
        left -= text.length;
        if (left < 0 || isGone()) return false;
        const within = comparable(overlap + text);
        for (const sentence of open) {
          if (within.includes(sentence.comparable)) sentence.holders.add(id);
          await yielder.turn();
        }
        open = open.filter(({ holders }) => !holders.has(id));
        overlap = (overlap + text).slice(-OVERLAP);
      }
    }
    return true;
  }
}

/**
 * The ends of sentences make a difference; quotes, dashes, line breaks, case and accents make none.
 */
function comparable(text: string): string {
  return fold(text).replace(/[^\p{L}\p{N}\p{M}.!?؟۔。।॥]+/gu, ' ');
}

/**
 * A sentence as it is looked for in comparable text, where it may end otherwise or stand in quotes.
 */
function comparableSentence(sentence: string): string {
  return comparable(sentence).replace(/^[\s.!?؟۔。।॥]+|[\s.!?؟۔。।॥]+$/gu, '');
}

/**
 * Longer ones are cut, at a blank where they have one: a table or a list without a full stop is no
 * sentence.
 */
export const LONGEST_SENTENCE = 2_000;
const BOUND = new RegExp(
  `\\S(?:.{0,${LONGEST_SENTENCE - 1}}(?=\\s|$)|.{${LONGEST_SENTENCE - 1}})`,
  'gsu',
);

/**
 * A blank line, or a line that begins like an item of a list, a heading, a quote or a row of a
 * table.
 */
const PARAGRAPH_BREAK = /\n[^\S\n]*\n\s*|\n(?=[^\S\n]*(?:[-*+•#>|]|\d{1,3}[.)]\s))/g;
const LINE_BREAK = /\n\s*/g;
/**
 * The marks that end a sentence. A full stop ends none after a lone letter or a number of one or
 * two digits ("z. B.", "3. Oktober"), nor before a small letter; the marks of Chinese, Japanese and
 * Indian scripts need no blank after them. Repetition is bounded, so that a text of nothing but
 * full stops takes no longer than another.
 */
const SENTENCE_END =
  /(?:[!?…؟۔]|(?<![^\p{L}\p{N}](?:\p{L}|\p{N}{1,2}))\.)[.!?…؟۔]{0,8}["'”’»)\]]{0,4}(?=\s(?!\p{Ll}))|[。！？｡।॥]{1,8}[”’」』）]{0,4}/gu;

/**
 * The sentences of a text, in order. Where it has blank lines they divide its paragraphs and a line
 * may break within a sentence; where it has none, as after HTML was taken off, each line is a
 * paragraph.
 *
 * (Intl.Segmenter also cuts after "e.g." and "Dr.", and took 44 ms for 64 KB of English, 428 ms for
 * 64 KB of Chinese.)
 */
export function* sentencesOf(text: string): Iterable<string> {
  const plain = text.replaceAll('\r\n', '\n');
  const breaks = /\n[^\S\n]*\n/.test(plain) ? PARAGRAPH_BREAK : LINE_BREAK;
  for (const paragraph of withoutTables(plain).split(breaks))
    if (!RULE.test(paragraph)) yield* cutSentences(paragraph);
}

/** A line that is drawn: between parts of a text, below a heading, or below the head of a table. */
const RULE = /^[\s|:=_*~+-]*$/;

function isTableRule(line: string): boolean {
  return RULE.test(line) && line.includes('|') && line.includes('-');
}

/**
 * The text with a bar in the place of each line of a table of Markdown: its cells are no sentences.
 */
function withoutTables(text: string): string {
  const lines = text.split('\n');
  if (!lines.some(isTableRule)) return text;
  let isTable = false;
  const others = lines.map((line, i) => {
    isTable = line.includes('|') && (isTable || isTableRule(lines[i + 1] ?? ''));
    return isTable ? '|' : line;
  });
  return others.join('\n');
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
  for (const [text] of raw.trim().matchAll(BOUND)) yield text;
}
