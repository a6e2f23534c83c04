import { createHash } from 'node:crypto';
import type { Extract } from '../content/readers/document-reader.js';
import { readHtml } from '../content/readers/html.js';
import { isOwnName } from '../content/readers/own-names.js';
import { withoutSequences } from '../lib/rewriting.js';
import { decodedPart, escapeInvisible, parseUrl } from '../lib/text.js';
import { Refusal } from './form.js';
import { endOfProperties, readProperties } from './front-matter.js';

declare const normal: unique symbol;
/** The URL of a document in normal form, which is its key. */
export type NormalUrl = string & { readonly [normal]: true };

/**
 * The longest URL, in bytes. The longest path of Linux (4,096 bytes) fits, also if all of it is
 * percent-encoded.
 */
const MAX_URL_BYTES = 16_384;
const SCHEMES = new Set(['http:', 'https:', 'ftp:', 'sftp:', 'smb:', 'file:']);

/**
 * Returns the normal form of a URL: lower-case host, no default port, no fragment.
 *
 * @throws Refusal 400 if it has none
 */
export function normaliseUrl(url: string): NormalUrl {
  if (Buffer.byteLength(url) > MAX_URL_BYTES)
    throw new Refusal(400, `The URL is longer than ${MAX_URL_BYTES} bytes.`);
  // URL() silently drops control characters.
  if (/\p{Cc}/u.test(url)) throw new Refusal(400, 'The URL holds control characters.');
  const parsed = parseUrl(url);
  if (parsed === undefined)
    throw new Refusal(
      400,
      'The URL cannot be parsed: it has to be absolute, like https://host/path.',
    );
  if (!SCHEMES.has(parsed.protocol) || !/^[a-z]+:\/\//i.test(url.trimStart()))
    throw new Refusal(
      400,
      'The URL has to begin with http, https, ftp, sftp, smb or file and ://.',
    );
  parsed.hash = '';
  return parsed.href as NormalUrl;
}

/** Returns the hash of a URL: twelve characters of A-Z a-z 0-9 - _. */
export function urlHash(url: NormalUrl): string {
  return createHash('sha256').update(url).digest('base64url').slice(0, 12);
}

/** Returns the last part of the path, decoded; the whole URL if it has no path. */
function lastSegment(url: NormalUrl): string {
  const segment = new URL(url).pathname.split('/').findLast((part) => part !== '');
  return segment === undefined ? url : segmentText(segment);
}

/**
 * Returns the title of a document for a page. If it is the name of its file, invisible characters
 * are written as escapes.
 */
export function shownTitle({
  title,
  url,
}: {
  readonly title: string;
  readonly url: string;
}): string {
  if (title !== lastSegment(url as NormalUrl)) return title;
  const name = new URL(url).pathname.split('/').findLast((part) => part !== '') ?? url;
  return escapeInvisible(decodedPart(name));
}

/** Returns a part of a path, decoded, with a space for control characters. */
function segmentText(segment: string): string {
  return decodedPart(segment).replace(/\p{Cc}+/gu, ' ');
}

/** Returns the names of the path, decoded, for the index; the whole URL if it has no path. */
export function pathText(url: NormalUrl): string {
  const names = new URL(url).pathname.split('/').filter((name) => name !== '');
  if (names.length === 0) return url;
  return names.map(segmentText).join(' ');
}

/** The text of a document without markup, and its metadata. */
export interface Content extends Pick<Extract, 'author' | 'date' | 'language'> {
  readonly title: string;
  readonly text: string | Buffer;
}

const TITLE_LENGTH = 200;
/** The characters of a line that are considered for a title. */
const LINE_LENGTH = 1_600;
/** The bytes at the start of a text that are searched for a title. */
const TITLE_BYTES = 16_384;
/** The names of Markdown files. */
const MARKDOWN = /\.(md|mdx|markdown|mdown|mkdn?)$/i;
/** A line of Markdown that is text: no quote, list, table, rule, or indented code. */
const PARAGRAPH = /^ {0,3}(?![ >|]|[-*+][ \t]|\d+[.)][ \t]).*[\p{L}\p{N}]/u;
/** A language tag (BCP 47). */
const LANGUAGE = /^[a-z]{2,8}(-[a-z0-9]{1,8}){0,4}$/i;
/** The character that begins a terminal escape sequence. */
const ESCAPE = 0x1b;
/**
 * Reads pushed data (UTF-8) as HTML if its URL or its first bytes say so. Otherwise it is plain
 * text, without terminal escape sequences.
 */
export function readContent(url: NormalUrl, data: Buffer): Content {
  if (isHtml(url, data)) return readPage(url, data);
  const text = data.includes(ESCAPE) ? Buffer.from(withoutSequences(data.toString())) : data;
  const lines = firstLines(text);
  if (!MARKDOWN.test(lastSegment(url)))
    return { title: firstTitle(lines) || lastSegment(url), text };
  const { author = '', date, title = '' } = readProperties(lines);
  const body = lines.slice(endOfProperties(lines));
  return {
    text,
    title: ownTitle(title) || markdownHeading(body) || firstTitle(body) || lastSegment(url),
    author: tidy(author) || undefined,
    date,
  };
}

function isHtml(url: NormalUrl, data: Buffer): boolean {
  if (/\.x?html?$/i.test(lastSegment(url))) return true;
  return /^\s*<(!doctype html|html[\s>])/i.test(
    data.toString('latin1', 0, 1024).replace(/^\xef\xbb\xbf/, ''),
  );
}

function readPage(url: NormalUrl, data: Buffer): Content {
  const { text, title = '', author = '', date, language = '' } = readHtml(data.toString());
  return {
    text,
    title: ownTitle(title) || firstTitle(firstLines(Buffer.from(text))) || lastSegment(url),
    author: tidy(author) || undefined,
    date: Number.isSafeInteger(date) ? date : undefined,
    language: LANGUAGE.test(language) ? language : undefined,
  };
}

/** Returns the lines at the start of a text, each with the characters that are considered. */
function firstLines(data: Buffer): string[] {
  const head = data.subarray(0, TITLE_BYTES).toString();
  return head.split(/\r?\n|\r/).map((line) => cut(line));
}

/** Returns the first line that says something; empty if there is none. */
function firstTitle(lines: readonly string[]): string {
  for (const line of lines) {
    const title = /[\p{L}\p{N}]/u.test(line) ? ownTitle(line) : '';
    if (title !== '') return title;
  }
  return '';
}

/** Returns a title on one line; empty if a program gave it by itself. */
function ownTitle(title: string): string {
  const line = tidy(title);
  return isOwnName(line) ? line : '';
}

/**
 * Returns the first heading of Markdown, which begins with `#` or is underlined; empty if there is
 * none. Blocks of code are skipped.
 */
function markdownHeading(lines: readonly string[]): string {
  let isCode = false;
  for (const [i, line] of lines.entries()) {
    if (/^ {0,3}(```|~~~)/.test(line)) isCode = !isCode;
    if (isCode) continue;
    const isUnderlined = /^ {0,3}(=+|-+)\s*$/.test(lines[i + 1] ?? '') && PARAGRAPH.test(line);
    const marked = /^ {0,3}#{1,6}[ \t](.*)$/s.exec(line)?.[1]?.replace(/(^|[ \t])#+[ \t]*$/, '');
    const title = ownTitle(withoutMarks(marked ?? (isUnderlined ? line : '')));
    if (title !== '') return title;
  }
  return '';
}

/**
 * Returns the text of a Markdown heading: no images (usually badges), links by their text, no
 * emphasis.
 */
function withoutMarks(heading: string): string {
  return heading
    .replace(/!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])/g, '')
    .replace(/\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])/g, '$1')
    .replace(/\*\*|__|`/g, '');
}

function tidy(title: string): string {
  const line = cut(title)
    .replace(/[\s\p{Cc}\ufeff]+/gu, ' ')
    .trim();
  return line.length <= TITLE_LENGTH ? line : `${cut(line, TITLE_LENGTH - 1)}…`;
}

/** Cuts a text, but not within a surrogate pair. */
function cut(text: string, length = LINE_LENGTH): string {
  return text.length <= length ? text : text.slice(0, length).replace(/[\ud800-\udbff]$/, '');
}
