import type { Clock } from '../lib/clock.js';
import { Yielder } from '../lib/slices.js';
import { counted } from '../lib/text.js';
import { escapeMarkup, nameMarkup } from '../web/markup.js';
import { shownTitle } from './content.js';
import { type Database, int } from './database.js';
import { findDocument } from './document-endpoints.js';
import type { Document, DocumentStore } from './documents.js';
import { originOf, placeOf, type Site } from './markup.js';
import type { Context } from './server.js';
import { fold, wordsOf } from './words.js';

/**
 * The least number of common sentences of a similar document, unless `ch` gives another. YaCy has
 * the same.
 */
const DEFAULT_CH = 10;
const MAX_CH = 999_999_999;
/** The most documents that are listed. Those with the most common sentences come first. */
const MAX_CITING = 1_000;
/**
 * The shortest sentence that is compared, in characters. Too many documents have shorter ones by
 * chance. YaCy has the same.
 */
const MIN_CITED_CHARS = 40;
/** The most documents that are compared for one sentence. */
const MAX_HITS = 100;
/** The most sentences of a document that are listed and compared. */
const MAX_SENTENCES = 1_000;
/** The characters of a document that are split into sentences. */
const MAX_TEXT_CHARS = 2_097_152;
/**
 * The number of consecutive words with which the index is searched for a sentence. The longest ones
 * are chosen, because they are the rarest. Searching for all words takes 7 ms a sentence instead of
 * 0.8 ms over 100,000 documents, because the index then reads the postings of "the" and "of" as
 * well.
 */
const SEARCHED_WORDS = 5;
/** The characters of other documents that are read for one request. */
const MAX_COMPARED = 64 * 1_048_576;
/**
 * The characters at the end of a part of a text that are compared again with the next part, for
 * sentences that span both.
 */
const OVERLAP = 8_192;

/** A sentence in its comparable form, and the documents that have it, as far as known. */
interface SearchedSentence {
  readonly comparable: string;
  readonly documents: Set<number>;
}

/**
 * Finds the sentences of a document in other documents. The index yields candidates by a few
 * consecutive words. Their texts are then compared.
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
   * Answers with the citations of one document, by `url` or by `hash` (which takes precedence): its
   * sentences, and the documents that have them. `filter=true` keeps only sentences that occur
   * elsewhere. Similar documents are on other hosts and have at least `ch` of them. A document that
   * is not in the index is refused with 404.
   */
  async answer(context: Context): Promise<string> {
    const form = await context.form();
    const isFiltered = form.isTrue('filter');
    const ch = form.number('ch', DEFAULT_CH, MAX_CH);
    const document = findDocument(form, 'hash', this.#documents);
    // One at a time, so that the slices of several requests do not add up.
    const record = this.#last.then(() =>
      this.#record(document, isFiltered, ch, () => context.isGone),
    );
    this.#last = record.catch(() => undefined);
    if (context.as === 'json') return context.record('', await record);
    return citationPage(await record, { ch, shortest: MIN_CITED_CHARS }, context.deps.site);
  }

  /** Stops early if the client is gone. */
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
    const searched = new Map<string, SearchedSentence>();
    const candidates = new Map<number, SearchedSentence[]>();
    let more = !isWhole;
    for (const text of sentencesOf(whole)) {
      more ||= texts.length === MAX_SENTENCES;
      if (isGone() || texts.length === MAX_SENTENCES) break;
      texts.push(text);
      await yielder.turn();
      if (text.length < MIN_CITED_CHARS || searched.has(text)) continue;
      const entry = { comparable: comparableSentence(text), documents: new Set<number>() };
      searched.set(text, entry);
      for (const other of this.#candidates(text, id))
        candidates.set(other, [...(candidates.get(other) ?? []), entry]);
    }
    more = !(await this.#compare(candidates, yielder, isGone)) || more;

    const others = new Map<number, OtherDocument>();
    const sentences: CitationRecord['sentences'][number][] = [];
    for (const [number, text] of texts.entries()) {
      const appearsIn: string[] = [];
      for (const documentId of searched.get(text)?.documents ?? []) {
        const found = others.get(documentId) ?? this.#documents.find('id', documentId);
        await yielder.turn();
        if (!found) continue;
        const before = others.get(documentId)?.sentences ?? 0;
        others.set(documentId, { url: found.url, title: found.title, sentences: before + 1 });
        appearsIn.push(found.url);
      }
      if (!isFiltered || appearsIn.length > 0) sentences.push({ number, text, appearsIn });
    }
    const citing = [...others]
      .sort(([a, most], [b, least]) => least.sentences - most.sentences || a - b)
      .slice(0, MAX_CITING)
      .map(([, other]) => other);
    const hostOf = (address: string): string => new URL(address).hostname;
    const similar = citing.filter(
      (other) => other.sentences >= ch && hostOf(other.url) !== hostOf(url),
    );
    more ||= others.size > MAX_CITING;
    return { url, urlhash, title, sentences, citing, similar, more };
  }

  #textOf(id: number): { readonly text: string; readonly isWhole: boolean } {
    let text = '';
    for (let part = 0; text.length < MAX_TEXT_CHARS; part += 1) {
      const next = this.#documents.textPart(id, part);
      if (next === undefined) return { text, isWhole: true };
      text += next;
    }
    return { text, isWhole: false };
  }

  #candidates(sentence: string, except: number): number[] {
    const words = wordsOf(sentence);
    let longest: string[] = [];
    for (let at = 0; at === 0 || at + SEARCHED_WORDS <= words.length; at += 1) {
      const run = words.slice(at, at + SEARCHED_WORDS);
      if (run.join('').length > longest.join('').length) longest = run;
    }
    if (longest.length === 0) return [];
    const sql = 'SELECT rowid FROM words WHERE words MATCH ? AND rowid <> ? LIMIT ?';
    const rows = this.#database.rows(sql, `body : "${longest.join(' ')}"`, except, MAX_HITS);
    return rows.map((row) => int(row, 'rowid'));
  }

  /** Compares the candidates with the sentences. @returns false if a limit ended it */
  async #compare(
    candidates: ReadonlyMap<number, readonly SearchedSentence[]>,
    yielder: Yielder,
    isGone: () => boolean,
  ): Promise<boolean> {
    let left = MAX_COMPARED;
    for (const [id, sentences] of candidates) {
      let missing = sentences;
      let overlap = '';
      for (let part = 0; missing.length > 0; part += 1) {
        const text = this.#documents.textPart(id, part);
        if (text === undefined) break;
        left -= text.length;
        if (left < 0 || isGone()) return false;
        const within = comparable(overlap + text);
        for (const sentence of missing) {
          if (within.includes(sentence.comparable)) sentence.documents.add(id);
          await yielder.turn();
        }
        missing = missing.filter(({ documents }) => !documents.has(id));
        overlap = (overlap + text).slice(-OVERLAP);
      }
    }
    return true;
  }
}

/**
 * Returns the comparable form of a text. The ends of sentences differ. Quotes, dashes, line breaks,
 * case and accents do not.
 */
function comparable(text: string): string {
  return fold(text).replace(/[^\p{L}\p{N}\p{M}.!?؟۔。।॥]+/gu, ' ');
}

/** Returns the comparable form of a sentence, without its ends, which may be others elsewhere. */
function comparableSentence(sentence: string): string {
  return comparable(sentence).replace(/^[\s.!?؟۔。।॥]+|[\s.!?؟۔。।॥]+$/gu, '');
}

/**
 * A longer sentence is cut, at a space if possible. It is a table, or a list without full stops.
 */
export const MAX_SENTENCE_CHARS = 2_000;
const BOUND = new RegExp(
  `\\S(?:.{0,${MAX_SENTENCE_CHARS - 1}}(?=\\s|$)|.{${MAX_SENTENCE_CHARS - 1}})`,
  'gsu',
);

/**
 * Matches an empty line, and a line that begins like a list item, a heading, a quote or a table
 * row.
 */
const PARAGRAPH_BREAK = /\n[^\S\n]*\n\s*|\n(?=[^\S\n]*(?:[-*+•#>|]|\d{1,3}[.)]\s))/g;
const LINE_BREAK = /\n\s*/g;
/**
 * Matches the marks that end a sentence. A full stop is no end after a single letter or a number of
 * one or two digits ("z. B.", "3. Oktober"), nor before a lower-case letter. The marks of Chinese,
 * Japanese and Indian scripts need no space after them. Repetition is bounded, so that a text of
 * full stops takes no longer than another.
 */
const SENTENCE_END =
  /(?:[!?…؟۔]|(?<![^\p{L}\p{N}](?:\p{L}|\p{N}{1,2}))\.)[.!?…؟۔]{0,8}["'”’»)\]]{0,4}(?=\s(?!\p{Ll}))|[。！？｡।॥]{1,8}[”’」』）]{0,4}/gu;

/**
 * Yields the sentences of a text, in order. If the text has empty lines, they separate its
 * paragraphs, and a line may break within a sentence. Otherwise, as in the text of HTML, each line
 * is a paragraph.
 *
 * Intl.Segmenter does not fit: it also cuts after "e.g." and "Dr.", and took 44 ms for 64 KB of
 * English and 428 ms for 64 KB of Chinese.
 */
export function* sentencesOf(text: string): Iterable<string> {
  const plain = text.replaceAll('\r\n', '\n');
  const breaks = /\n[^\S\n]*\n/.test(plain) ? PARAGRAPH_BREAK : LINE_BREAK;
  for (const paragraph of withoutTables(plain).split(breaks))
    if (!RULE.test(paragraph)) yield* cutSentences(paragraph);
}

/** Matches a ruled line: between parts of a text, below a heading, or in a table. */
const RULE = /^[\s|:=_*~+-]*$/;

function isTableRule(line: string): boolean {
  return RULE.test(line) && line.includes('|') && line.includes('-');
}

/** Replaces each line of a Markdown table by a bar. Its cells are no sentences. */
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

/** Another document with some of the same sentences. */
interface OtherDocument {
  readonly url: string;
  readonly title: string;
  /** The number of common sentences. */
  readonly sentences: number;
}

/** The sentences of a document, and the other documents that have them. The answer in JSON. */
interface CitationRecord {
  readonly url: string;
  readonly urlhash: string;
  readonly title: string;
  readonly sentences: readonly {
    /** Counted from 0. */
    readonly number: number;
    readonly text: string;
    readonly appearsIn: readonly string[];
  }[];
  readonly citing: readonly OtherDocument[];
  /** Documents on other hosts with at least `ch` common sentences. */
  readonly similar: readonly OtherDocument[];
  /** Whether some sentences or documents were not compared or listed. */
  readonly more: boolean;
}

const NONE = '<p class="hint">none</p>';

interface Limits {
  /** The least number of common sentences of a similar document. */
  readonly ch: number;
  /** The length of the shortest sentence that is compared, in characters. */
  readonly shortest: number;
}

/** Returns the citations of a document as a page. */
function citationPage(record: CitationRecord, { ch, shortest }: Limits, site: Site): string {
  const { citing, more, sentences, similar, url, urlhash } = record;
  const title = `Documents with the same sentences as ${shownTitle(record)}`;
  const back = `<a href="/document?urlhash=${encodeURIComponent(urlhash)}">← Document</a>`;
  const top = `<p class="back">${back}</p>
<h1 dir="auto">${escapeMarkup(title)}</h1>
<p class="origin">${originOf(url)}</p>`;
  const rest = more
    ? ' Not everything was compared or listed: the document is long, or too many others have its sentences.'
    : '';
  const json = `/api/citation.json?hash=${encodeURIComponent(urlhash)}`;
  const body = `<p class="hint">Sentences of ${shortest} characters or more count. Case, accents, quotes and line breaks make no difference.${rest}</p>
<h2>Documents</h2>
${documentList(citing)}
<h2>Similar documents: on other hosts, with ${counted(ch, 'sentence')} or more in common</h2>
${documentList(similar)}
<h2>Sentences</h2>
${sentenceTable(sentences, shortest)}
<p class="more-of-it"><a href="${json}">This record as JSON</a></p>`;
  return site.page({ title, section: 'search', top, body });
}

function documentList(documents: readonly OtherDocument[]): string {
  if (documents.length === 0) return NONE;
  const items = documents.map((document) => {
    const { sentences, url } = document;
    return `<li><a href="${pageOf(url)}" dir="auto">${escapeMarkup(shownTitle(document))}</a>
<p class="origin">${originOf(url)} · ${counted(sentences, 'sentence')} in common</p></li>`;
  });
  return `<ul class="citing">\n${items.join('\n')}\n</ul>`;
}

function sentenceTable(sentences: CitationRecord['sentences'], shortest: number): string {
  if (sentences.length === 0) return NONE;
  const rows = sentences.map(({ number, text, appearsIn }) => {
    const places = appearsIn.map(
      (url) => `<a href="${pageOf(url)}">${nameMarkup(placeOf(url))}</a>`,
    );
    const nowhere = text.length < shortest ? 'too short' : 'none';
    const others = places.join('<br>') || `<span class="hint">${nowhere}</span>`;
    return `<tr><td>${number + 1}</td><td dir="auto">${escapeMarkup(text)}</td><td>${others}</td></tr>`;
  });
  return `<div class="scroll"><table class="sentences">
<thead><tr><th>No.</th><th>Sentence</th><th>Also in</th></tr></thead>
<tbody>
${rows.join('\n')}
</tbody></table></div>`;
}

/** Returns the address of a document's page, for an attribute. */
function pageOf(url: string): string {
  return escapeMarkup(`/document?${new URLSearchParams({ url })}`);
}
