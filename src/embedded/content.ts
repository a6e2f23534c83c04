import { createHash } from 'node:crypto';
import { readHtml } from '../content/readers/html.js';
import type { Extract } from '../content/readers/reader.js';
import { withoutSequences } from '../lib/rewriting.js';
import { escapeInvisible, parseUrl } from '../lib/text.js';
import { Refusal } from './form.js';

declare const normal: unique symbol;
/** A document's URL in the one form that is its key. */
export type NormalUrl = string & { readonly [normal]: true };

/**
 * Longest URL in bytes; a path as long as Linux allows (4,096 bytes), all of it percent-encoded,
 * fits.
 */
const LONGEST_URL = 16_384;
const SCHEMES = new Set(['http:', 'https:', 'ftp:', 'sftp:', 'smb:', 'file:']);

/**
 * The URL's key form: lower-case host, no default port, no fragment. @throws Refusal 400 where it
 * has none
 */
export function normaliseUrl(url: string): NormalUrl {
  if (Buffer.byteLength(url) > LONGEST_URL)
    throw new Refusal(400, `The URL is longer than ${LONGEST_URL} bytes.`);
  // URL() drops control characters silently.
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

/** Twelve characters of A-Z a-z 0-9 - _ that stand for a URL. */
export function urlHash(url: NormalUrl): string {
  return createHash('sha256').update(url).digest('base64url').slice(0, 12);
}

/** The last part of the path, decoded for a reader; the whole URL where it has none. */
export function lastSegment(url: NormalUrl): string {
  const segment = new URL(url).pathname.split('/').findLast((part) => part !== '');
  return segment === undefined ? url : decoded(segment);
}

/**
 * A document's title for a page. Where that is the name of its file, what would not be seen in it
 * is written out.
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
  try {
    return escapeInvisible(decodeURIComponent(name));
  } catch {
    return title;
  }
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment).replace(/\p{Cc}+/gu, ' ');
  } catch {
    return segment;
  }
}

/** The path with all its names, decoded for the index; the whole URL where it has none. */
export function pathText(url: NormalUrl): string {
  const names = new URL(url).pathname.split('/').filter((name) => name !== '');
  if (names.length === 0) return url;
  return names.map((name) => decoded(name)).join(' ');
}

/** What a document says: its title, its text without markup, and what it tells of itself. */
export interface Content extends Pick<Extract, 'author' | 'date' | 'language'> {
  readonly title: string;
  readonly text: string | Buffer;
}

const TITLE_LENGTH = 200;
/** Of a line, no more is looked at for a title. */
const LINE_LENGTH = 1_600;
/** The title is looked for in so many bytes at the start. */
const TITLE_BYTES = 16_384;
/** As BCP 47 writes them. */
const LANGUAGE = /^[a-z]{2,8}(-[a-z0-9]{1,8}){0,4}$/i;
/** What coloured text is written with. */
const ESCAPE = 0x1b;
/**
 * Reads pushed `data` (UTF-8) as HTML where its URL or its beginning says so, else as plain text,
 * which loses its colours.
 */
export function readContent(url: NormalUrl, data: Buffer): Content {
  if (isHtml(url, data)) return readPage(url, data);
  const text = data.includes(ESCAPE) ? Buffer.from(withoutSequences(data.toString())) : data;
  return { title: plainTitle(text) || lastSegment(url), text };
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
    title: tidy(title) || plainTitle(Buffer.from(text)) || lastSegment(url),
    author: tidy(author) || undefined,
    date: Number.isSafeInteger(date) ? date : undefined,
    language: LANGUAGE.test(language) ? language : undefined,
  };
}

/** The first Markdown heading, else the first line with a word in it. */
function plainTitle(data: Buffer): string {
  const head = data.subarray(0, TITLE_BYTES);
  const lines = head
    .toString()
    .split(/\r?\n|\r/)
    .map((line) => cut(line));
  for (const line of lines) {
    const heading = /^ {0,3}#{1,6}[ \t](.*)$/s.exec(line)?.[1] ?? '';
    const title = tidy(withoutMarks(heading.replace(/#+$/, '')));
    if (title !== '') return title;
  }
  return tidy(lines.find((line) => /[\p{L}\p{N}]/u.test(line)) ?? '');
}

/**
 * A Markdown heading as a reader sees it: no images (badges, as a rule), links by their text, no
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

/** The beginning of a text, not ending within a pair of surrogates. */
function cut(text: string, length = LINE_LENGTH): string {
  return text.length <= length ? text : text.slice(0, length).replace(/[\ud800-\udbff]$/, '');
}
