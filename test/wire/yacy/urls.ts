import { createHash } from 'node:crypto';
import { domainToASCII } from 'node:url';

/** The part of the network that a peer takes documents of: `network.unit.domain`. */
export type Network = 'global' | 'local' | 'any';

/** A URL that the peer cannot read; the message is the one of its answer. */
export class BadUrl extends Error {}

/** @throws BadUrl */
export function normalUrl(given: string): string {
  const url = given.trim().replace(/#.*$/, '');
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase();
  if (url === '' || url === 'http://') throw new BadUrl("URL not parseable: 'http://'");
  if (scheme === undefined) return normalUrl(`http://${url.replace(/^\/+/, '')}`);
  if (!['http', 'https', 'ftp', 'smb', 'file'].includes(scheme))
    throw new BadUrl(`unknown protocol: ${url}`);
  const rest = url.slice(scheme.length + 1);
  if (scheme === 'file' && rest.startsWith('/')) {
    const path = rest.replace(/^\/\/(localhost)?(?=\/)/i, '');
    return `file://${collapsed(decoded(path))}`;
  }
  const [, authority = '', path = ''] = /^(?:\/\/)?([^/?]*)(.*)$/s.exec(rest) ?? [];
  const [, user = '', host = '', port = ''] = /^(.*@)?(.*?)(:\d+)?$/.exec(authority) ?? [];
  const usual = { http: ':80', https: ':443', ftp: ':21' }[scheme];
  const name = /[^ -~]/.test(host) ? domainToASCII(host) : host;
  const [, plain = '', query = ''] = /^([^?]*)(.*)$/s.exec(path) ?? [];
  return `${scheme === 'file' ? 'http' : scheme}://${user}${name}${port === usual ? '' : port}${escaped(collapsed(plain))}${escaped(query)}`;
}

/** The peer's name of a document, 12 characters. */
export function hashOf(normal: string): string {
  return createHash('md5').update(normal).digest('base64url').slice(0, 12);
}

/** The words of a URL, which the peer indexes where it can read nothing else. */
export function urlTokens(url: string): string[] {
  return decoded(url)
    .split(/[^\p{L}\p{N}]+/u)
    .filter((token) => token !== '');
}

/** Whether a peer of this network takes the document; if not, it says so only in its own log. */
export function takes(network: Network, normal: string): boolean {
  if (network === 'any') return true;
  return isLocal(normal) === (network === 'local');
}

function isLocal(url: string): boolean {
  if (/^(file|smb):/.test(url)) return true;
  const host = /^[a-z]+:\/\/(?:[^/]*@)?([^/:?]*|\[[^\]]*\])/.exec(url)?.[1] ?? '';
  if (/^(127|10)\.[\d.]+$|^192\.168\.|^172\.(1[6-9]|2\d|3[01])\.|^169\.254\.|^\[/.test(host))
    return true;
  if (!host.includes('.') || host.includes(' ') || host !== host.toLowerCase()) return true;
  return /\.(local|internal|invalid|localhost|test|lan|intranet|home)$/.test(host);
}

function collapsed(path: string): string {
  const parts: string[] = [];
  for (const part of path
    .replace(/\/{2,}/g, '/')
    .split('/')
    .slice(1)) {
    if (part === '..') parts.pop();
    else if (part !== '.') parts.push(part);
  }
  return `/${parts.join('/')}`;
}

function escaped(path: string): string {
  return path.replace(/[^!-~]+|"|<|>/gu, encodeURIComponent);
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
