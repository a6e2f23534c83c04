import { parseUrl } from '../lib/text.js';

/**
 * Returns one spelling of a URL for comparisons: lower-case scheme and host, no default port, no
 * fragment, uniform escapes. Peers show URLs with more or fewer escapes than they were given.
 */
export function comparableUrl(text: string): string {
  const url = parseUrl(text);
  if (url === undefined) return text.trim();
  const authority = `${url.protocol}//${url.username}${url.password ? `:${url.password}` : ''}@${url.host}`;
  const path = url.pathname.replace(/[^/]+/g, escapedOnce);
  return `${authority}${path}${url.search.replace(/[^?&=+]+/g, escapedOnce)}`;
}

export function isSameUrl(a: string, b: string): boolean {
  return a === b || comparableUrl(a) === comparableUrl(b);
}

/** Escapes part of a URL uniformly. If its escapes are no UTF-8, only their case is changed. */
function escapedOnce(part: string): string {
  try {
    return encodeURIComponent(decodeURIComponent(part));
  } catch {
    return part.replace(/%[0-9a-f]{2}/gi, (code) => code.toUpperCase());
  }
}
