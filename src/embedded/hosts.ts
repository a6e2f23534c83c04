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

/** Whether a browser says that a page of another site caused the request. */
export function isFromElsewhere(headers: {
  readonly host?: string | undefined;
  readonly origin?: string | undefined;
  readonly 'sec-fetch-site'?: string | string[] | undefined;
}): boolean {
  if (headers.origin !== undefined) return headers.origin.replace(/^https?:\/\//, '') !== headers.host;
  const site = headers['sec-fetch-site'];
  return site === 'cross-site' || site === 'same-site';
}

/** How a client on this machine reaches a server that listens on `host`. */
export function urlOf(host: string, port: number): string {
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}`;
}
