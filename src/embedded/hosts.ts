import { isIP } from 'node:net';

const WILDCARDS = new Set(['0.0.0.0', '::']);

/** The host of a Host header or URL authority, without port and brackets, in lower case. */
function hostOf(authority: string): string {
  return authority
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .toLowerCase();
}

/**
 * Whether a request was meant for this peer. A page of another site can make its own name resolve to this machine (DNS rebinding);
 * its requests then bear that name. A peer that listens on all addresses cannot know its own, but an address, unlike a name,
 * cannot be rebound.
 */
export function isOwnHost(authority: string, configured: string): boolean {
  const host = hostOf(authority);
  if (['localhost', '127.0.0.1', '::1', hostOf(configured)].includes(host)) return true;
  return WILDCARDS.has(configured) && isIP(host) !== 0;
}

/**
 * Whether a page of another site may have caused the request: a browser says so, or it does not say otherwise. To a peer without TLS
 * on another machine browsers send no Sec-Fetch-Site, and with GET no Origin; then only Referer can speak for it.
 */
export function isFromElsewhere(headers: {
  readonly host?: string | undefined;
  readonly origin?: string | undefined;
  readonly referer?: string | undefined;
  readonly 'sec-fetch-site'?: string | string[] | undefined;
  readonly 'user-agent'?: string | undefined;
}): boolean {
  if (headers.origin !== undefined) return headers.origin.replace(/^https?:\/\//, '') !== headers.host;
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  const isBrowser = headers['user-agent']?.startsWith('Mozilla/') ?? false;
  return isBrowser && /^https?:\/\/([^/]*)\//.exec(headers.referer ?? '')?.[1] !== headers.host;
}

/** How a client on this machine reaches a server that listens on `host`. */
export function urlOf(host: string, port: number): string {
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}`;
}
