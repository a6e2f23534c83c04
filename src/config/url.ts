import { isIP } from 'node:net';
import { encodePath, parseUrl } from '../lib/text.js';

/**
 * The URL of the document that a file becomes: the folder's base and the percent-encoded relative
 * path. The same file has the same URL for ever, so nothing here may change without a migration.
 *
 * Each name is NFC-normalised: a name that came from a Mac and the same name typed elsewhere are
 * one document. All but `A-Z a-z 0-9 - _ . ~` is escaped, in upper case, which every URL parser
 * leaves as it is. Lone surrogates, which no name read from a disk contains, become U+FFFD; they
 * are not told apart.
 *
 * @param base as `normaliseBase` returns it
 * @param relativePath of the file below its folder, `/` between names, without empty, `.` or `..`
 *   names
 */
export function documentUrl(base: string, relativePath: string): string {
  return base + encodePath(relativePath);
}

/** The `file://` base of an absolute directory path. */
export function fileBase(directory: string): string {
  return asDirectory(`file://${encodePath(directory)}`);
}

const BASE_SCHEMES: ReadonlySet<string> = new Set(['http:', 'https:', 'ftp:', 'file:']);

/**
 * The one way to write a folder's URL base: lower-case scheme and host, NFC, upper-case escapes and
 * only where they are needed, `/` at the end. Undefined when the text is no such base: another
 * scheme, credentials, a query or fragment.
 */
export function normaliseBase(text: string): string | undefined {
  const url = parseBase(text);
  if (!url || !BASE_SCHEMES.has(url.protocol)) return undefined;
  const path = url.pathname
    .replace(/%(?![0-9A-Fa-f]{2})/g, '%25')
    .replace(/%[0-9A-Fa-f]{2}/g, (escaped) => {
      const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
      return /[A-Za-z0-9\-._~]/.test(character) ? character : escaped.toUpperCase();
    });
  return asDirectory(`${url.protocol}//${url.host}${path}`);
}

/**
 * The peer's base URL without a slash at its end; undefined when the text is none (as for
 * `normaliseBase`).
 */
export function normalisePeerUrl(text: string): string | undefined {
  const url = parseBase(text);
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) return undefined;
  return url.href.replace(/\/+$/, '');
}

function parseBase(text: string): URL | undefined {
  const composed = text.normalize('NFC');
  // The parser would drop white space at the ends and line breaks anywhere without a word.
  if (/[\t\n\r?#]|^\s|\s$/.test(composed) || !/^[a-z]+:\/\//i.test(composed)) return undefined;
  const url = parseUrl(composed);
  return url?.username === '' && url.password === '' ? url : undefined;
}

function asDirectory(url: string): string {
  return url.endsWith('/') ? url : `${url}/`;
}

/** Where a server listens. */
export interface Listen {
  /** An IP address, without brackets. */
  readonly host: string;
  readonly port: number;
}

/**
 * @returns the place that `"HOST:PORT"` names; undefined for what is none. `localhost` is 127.0.0.1
 */
export function parseListen(text: string): Listen | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^[\]:]+)):(\d{1,5})$/.exec(text);
  if (match === null) return undefined;
  const named = match[1] ?? match[2] ?? '';
  const host = named === 'localhost' ? '127.0.0.1' : named;
  const port = Number(match[3]);
  if (port > 65_535 || isIP(host) !== (match[1] === undefined ? 4 : 6)) return undefined;
  return { host, port };
}

/** Whether only this machine can reach it. */
export function isLoopback({ host }: Listen): boolean {
  return host.startsWith('127.') || host === '::1';
}
