import { hash } from 'node:crypto';
import { basename } from 'node:path';
import { fromLatin1 } from '../content/encoding.js';
import { readWhole } from '../content/file-reader.js';
import { ShortageError, type Tools } from '../content/helpers/tools.js';
import {
  DocumentError,
  type Extract,
  MomentaryError,
  PAGE_END_CLASS,
  type ReadContext,
  wholeText,
} from '../content/readers/document-reader.js';
import { PlainWords } from '../content/words.js';
import { systemClock } from '../lib/clock.js';
import { bounded } from '../lib/extracted-by.js';
import { escapeText } from '../lib/markup.js';
import { withoutSequences } from '../lib/rewriting.js';
import type { ContentRules } from '../peer/dialects/dialect.js';
import { plainTextRewriting } from '../peer/dialects/yacy-text.js';
import type { Failure } from '../state/entry.js';
import { MAX_LACK, MAX_LACKS } from './document-answer.js';
import { type DocumentOrder, type Extracted, refused, STALE } from './documents.js';
import { rewritten } from './upload-plan.js';

/** A longer word counts as several: one of 5,000,000 letters overflows the stack. */
const WORD = /[\p{L}\p{N}]{1,1000}/gu;
/**
 * Number of characters of a document in which words are counted; most pages of a long document are
 * not read.
 */
const COUNTED_CHARACTERS = 4_000;

/**
 * Reads a document with its reader, and makes an HTML page of its text or counts its words. Blocks,
 * and may need any time and memory: meant for a process that can be killed. Must not be called
 * again before it returns, because documents share a buffer.
 *
 * @param onPage called after each page of a document that has pages
 * @param tools the programs that may be used; none by default
 */
export async function extractDocument(
  order: DocumentOrder,
  onPage: ReadContext['onPage'] = () => {},
  tools?: Tools,
): Promise<Extracted> {
  const { file, linksWithin, rules, version, wanted } = order;
  const beganAt = systemClock.now();
  const bytes = readWhole({ file, stat: version, linksWithin });
  if (!Buffer.isBuffer(bytes)) return refused(bytes);
  if (hash('sha256', bytes, 'hex') !== version.sha256) return STALE;
  try {
    const { readDocument } = await import('../content/readers/registry.js');
    const read = await readDocument(bytes, basename(file), {
      enoughCharacters: wanted === 'words' ? COUNTED_CHARACTERS : Number.POSITIVE_INFINITY,
      onPage,
      tools,
    });
    // The configuration, or an earlier version of this program, took it for a document.
    if (read === undefined) return STALE;
    const isScanned = (read.found?.ocrPages ?? 0) > 0;
    const isText = wanted === 'text' || (wanted === 'textIfScanned' && isScanned);
    // A peer that gets the document itself finds nothing that is attached to it.
    const text = isText ? wholeText(read) : read.text;
    const counter = new PlainWords();
    counter.write(Buffer.from(text));
    const words = counter.end() ?? 0;
    const lacks = lacksOf(tools);
    const rest = { words, ...(lacks.length > 0 && { lacks }) };
    if (!isText) return { kind: 'extracted', ...rest };
    let found = 0;
    for (const _ of text.matchAll(WORD)) found += 1;
    if (found === 0) return { kind: 'wordless', reader: read.reader };
    const extracted = {
      ...bounded(read.found),
      reader: read.reader,
      words: found,
      ms: Math.round(systemClock.now() - beganAt),
    };
    return {
      kind: 'extracted',
      ...rest,
      page: { bytes: pageOf({ ...read, text }, rules), extracted },
    };
  } catch (error) {
    if (error instanceof ShortageError) return STALE;
    if (error instanceof DocumentError)
      return {
        kind: 'refused',
        failure: failureOf(error),
        ...(error instanceof MomentaryError && { isMomentary: true }),
      };
    throw error;
  }
}

/** Returns why another reading may find more, within the limits of an answer. */
function lacksOf(tools: Tools | undefined): readonly string[] {
  const lacks = [...(tools?.lacks ?? [])].filter(({ length }) => length <= MAX_LACK);
  return lacks.slice(0, MAX_LACKS);
}

/**
 * Returns an HTML page, which every search peer can read. It carries the title, the author, the
 * date, the language, and where pages end.
 */
function pageOf(
  { author, date, language, pageEnds = [], text, title }: Extract,
  { readsTextAsHtml }: ContentRules,
): Buffer {
  const safe = readsTextAsHtml ? withoutMarkup : escaped;
  const meta = (name: string, content: string | undefined) =>
    content === undefined
      ? ''
      : `<meta name="${name}" content="${safe(content).replaceAll('"', '&quot;')}">\n`;
  const languageAttribute = /^[a-z]{2,3}(-[\w-]{1,20})?$/i.test(language ?? '')
    ? ` lang="${language}"`
    : '';
  const day = date === undefined ? undefined : new Date(date).toISOString();
  const head = `${title === undefined ? '' : `<title>${safe(title)}</title>\n`}${meta('author', author)}${meta('date', day)}`;
  const lines = (piece: string): string => safe(piece).replaceAll('\n', '<br>\n');
  // A peer that reads HTML by patterns of its own gets no elements that it need not know.
  const ends = readsTextAsHtml ? [] : pageEnds;
  const pages = [...ends, text.length].map((end, i) => lines(text.slice(ends[i - 1] ?? 0, end)));
  const body = pages.join(`</p>\n<hr class="${PAGE_END_CLASS}">\n<p>`);
  return Buffer.from(
    `<!doctype html>\n<html${languageAttribute}>\n<head>\n<meta charset="utf-8">\n${head}</head>\n<body>\n<p>${body}</p>\n</body>\n</html>\n`,
  );
}

const CONTROLS = /(?![\t\n])[\p{Cc}\ufffe\uffff]/gu;
const clean = (text: string) =>
  withoutSequences(fromLatin1(text.toWellFormed())).replace(CONTROLS, ' ');

function escaped(text: string): string {
  return escapeText(clean(text));
}

/**
 * Replaces the characters of tags, for a peer that decodes entities before it removes tags: none
 * may be left.
 */
function withoutMarkup(text: string): string {
  return Buffer.from(rewritten(Buffer.from(clean(text)), plainTextRewriting())).toString();
}

/** Returns the failure of an item. @param why the reason, without a full stop */
export function unreadableDocument(
  code: 'DOCUMENT_BROKEN' | 'DOCUMENT_TOO_LARGE',
  why: string,
): Failure {
  return failureOf(new DocumentError(code, { why }));
}

function failureOf({ code, hint, message }: DocumentError): Failure {
  return { code, message, hint };
}
