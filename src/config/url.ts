import { isIP } from 'node:net';
import { encodePath, parseUrl } from '../lib/text.js';

/**
 * Returns the URL of the document for a file: the base of its folder and the percent-encoded
 * relative path. The URL of a file must never change, so a change here needs a migration.
 *
 * Names are normalised to NFC: a name from a Mac and the same name typed elsewhere give one
 * document. All characters but `A-Z a-z 0-9 - _ . ~` are escaped in upper case, which URL parsers
 * do not change. Lone surrogates become U+FFFD and are not distinguished. No name on disk contains
 * them.
 *
 * @param base as `normaliseBase` returns it
 * @param relativePath the path below the folder, with `/` between names, and without empty, `.` or
 *   `..` names
 */
export function documentUrl(base: string, relativePath: string): string {
  return base + encodePath(relativePath);
}

/** Returns the `file://` base of an absolute directory path. */
export function fileBase(directory: string): string {
  return asDirectory(`file://${encodePath(directory)}`);
}

const BASE_SCHEMES: ReadonlySet<string> = new Set(['http:', 'https:', 'ftp:', 'file:']);

/**
 * Normalises the URL base of a folder: lower-case scheme and host, NFC, upper-case escapes only
 * where needed, `/` at the end.
 *
 * @returns undefined for another scheme, credentials, a query or a fragment
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
 * Normalises the base URL of the peer, without a slash at its end.
 *
 * @returns undefined for a URL that is not http or https, or has credentials, a query or a fragment
 */
export function normalisePeerUrl(text: string): string | undefined {
  const url = parseBase(text);
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) return undefined;
  return url.href.replace(/\/+$/, '');
}

function parseBase(text: string): URL | undefined {
  const composed = text.normalize('NFC');
  // The URL parser would remove outer white space and all line breaks without an error.
  if (/[\t\n\r?#]|^\s|\s$/.test(composed) || !/^[a-z]+:\/\//i.test(composed)) return undefined;
  const url = parseUrl(composed);
  return url?.username === '' && url.password === '' ? url : undefined;
}

function asDirectory(url: string): string {
  return url.endsWith('/') ? url : `${url}/`;
}

/** The address on which a server listens. */
export interface Listen {
  /** An IP address, without brackets. */
  readonly host: string;
  readonly port: number;
}

/**
 * Parses `"HOST:PORT"`. The host is an IP address, or `localhost` for 127.0.0.1. @returns undefined
 * for anything else
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

/** Whether only this machine can connect to it. */
export function isLoopback({ host }: Listen): boolean {
  return host.startsWith('127.') || host === '::1';
}

/** The address of a Redis. */
export type RedisAddress = {
  /** The number of the database. */
  readonly db: number;
} & (
  | { readonly path: string }
  | { readonly host: string; readonly port: number; readonly tls: boolean }
);

const REDIS_PORT = 6379;

/**
 * Parses `redis://HOST:PORT/DB`, `rediss://HOST:PORT/DB` or `unix:///PATH`. Port and database may
 * be left out.
 *
 * @returns undefined for anything else, and for an address with credentials
 */
export function parseRedisUrl(text: string): RedisAddress | undefined {
  const socket = /^unix:\/\/(\/[^?#\0]+)$/.exec(text)?.[1];
  if (socket !== undefined) return { path: socket, db: 0 };
  const parts =
    /^(rediss?):\/\/(\[[0-9a-f:.]+\]|[^/:@?#\s[\]]+)(?::(\d{1,5}))?(?:\/(\d{0,3}))?$/i.exec(text);
  if (parts === null) return undefined;
  const [, scheme = '', host = '', port = `${REDIS_PORT}`, db = '0'] = parts;
  if (Number(port) < 1 || Number(port) > 65_535) return undefined;
  const tls = scheme.toLowerCase() === 'rediss';
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port), tls, db: Number(db) };
}
