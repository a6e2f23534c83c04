import { createHash } from 'node:crypto';

declare const normal: unique symbol;
/** A document's URL in the one form that is its key. */
export type NormalUrl = string & { readonly [normal]: true };

/** Longest URL in bytes; a path as long as Linux allows (4,096 bytes), all of it percent-encoded, fits. */
export const LONGEST_URL = 16_384;
const SCHEMES = new Set(['http:', 'https:', 'ftp:', 'sftp:', 'smb:', 'file:']);

/** The URL's key form (lower-case host, no default port, no fragment), or a sentence on why it has none. */
export function normaliseUrl(
  url: string,
): { readonly ok: true; readonly url: NormalUrl } | { readonly ok: false; readonly why: string } {
  if (Buffer.byteLength(url) > LONGEST_URL)
    return { ok: false, why: `the URL is longer than ${LONGEST_URL} bytes` };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for; URL() drops them silently.
  if (/[\u0000-\u001f\u007f]/.test(url)) return { ok: false, why: 'the URL holds control characters' };
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    return { ok: false, why: 'the URL cannot be parsed: it has to be absolute, like https://host/path' };
  }
  if (!SCHEMES.has(parsed.protocol) || !/^[a-z]+:\/\//i.test(url.trimStart()))
    return { ok: false, why: 'the URL has to begin with http, https, ftp, sftp, smb or file and ://' };
  parsed.hash = '';
  return { ok: true, url: parsed.href as NormalUrl };
}

/** Twelve characters of A-Z a-z 0-9 - _ that stand for a URL. */
export function urlHash(url: NormalUrl): string {
  return createHash('sha256').update(url).digest('base64url').slice(0, 12);
}

/** The last part of the path, decoded for a reader; the whole URL where it has none. */
export function lastSegment(url: NormalUrl): string {
  const segment = new URL(url).pathname.split('/').findLast((part) => part !== '');
  if (segment === undefined) return url;
  try {
    return decodeURIComponent(segment).replace(/\p{Cc}+/gu, ' ');
  } catch {
    return segment;
  }
}
