import { isUtf8 } from 'node:buffer';
import { PeerError } from './errors.js';
import type { HttpAnswer } from './http.js';
import { readJson } from './read-json.js';
import { readHtml, readXml } from './read-markup.js';
import { readText } from './read-text.js';
import { type Answer, type AnswerRecord, Unreadable } from './record.js';

/**
 * Reads HTML, XML, RSS, JSON-like or plain text into records.
 *
 * The form is told from the first characters: peers leave Content-Type out or get it wrong. JSON with quotes or control
 * characters that are not escaped, XML with control characters, and HTML of any kind are read; what ends too early
 * is not.
 *
 * @throws PeerError PEER_ANSWER for an empty or unreadable answer
 */
export function readAnswer(answer: HttpAnswer): Answer {
  try {
    const read = readForm(decoded(answer.body));
    if (isEmpty(read.record) && read.prose.trim() === '') throw new Unreadable('gave an empty answer');
    return read;
  } catch (error) {
    if (error instanceof Unreadable) throw unusable(answer, error.message);
    throw error;
  }
}

/** The error for an answer that came, but does not say what it should. */
export function unusable({ url, status, body, delivered }: HttpAnswer, what: string): PeerError {
  return new PeerError('PEER_ANSWER', { url, what, status, answer: body, delivered });
}

const FAILURE = /HTTP ERROR:? \d{3}|Problem accessing |^[ \t]*at [\w$.<>/]+\(.*\)[ \t]*$|^Traceback \(most/m;
const FAILURE_TITLE = /^[ \t]*(HTTP )?(Error|Status) \d{3}\b/im;

/** A program's failure on a page for people, whatever its status: Jetty's, Java's, Python's. */
export function isFailurePage({ form, prose, record }: Answer): boolean {
  if (form === 'json' || form === 'xml') return false;
  return FAILURE.test(prose) || (isEmpty(record) && FAILURE_TITLE.test(prose));
}

function readForm(text: string): Answer {
  const start = text.trimStart().slice(0, 1);
  if (start === '{' || start === '[') return readJson(text);
  if (start !== '<') return readText(text);
  return isHtml(text) ? readHtml(text) : readXml(text);
}

const HTML_TAGS = new Set(
  'html head body title meta div p dl table form span pre h1 h2 h3 h4 h5 h6 ul ol b'.split(' '),
);

/** By the document type, else by the first tag after declarations and comments. */
function isHtml(text: string): boolean {
  let at = 0;
  for (;;) {
    while (/\s/.test(text[at] ?? '')) at += 1;
    if (/^<!doctype\s+html\b/i.test(text.slice(at, at + 32))) return true;
    if (!text.startsWith('<!', at) && !text.startsWith('<?', at)) break;
    const end = text.startsWith('<!--', at) ? '-->' : '>';
    const found = text.indexOf(end, at);
    if (found === -1) return false;
    at = found + end.length;
    while (/[\s\]>]/.test(text[at] ?? '')) at += 1;
  }
  const [, tag] = /^<([a-z][\w:-]*)/i.exec(text.slice(at, at + 64)) ?? [];
  return HTML_TAGS.has(tag?.toLowerCase() ?? '');
}

/** UTF-8, as peers write whatever they declare, else ISO 8859-1. */
export function decoded(body: Buffer): string {
  return isUtf8(body) ? new TextDecoder().decode(body) : body.toString('latin1');
}

function isEmpty({ fields, records }: AnswerRecord): boolean {
  return fields.length === 0 && records.every(isEmpty);
}
