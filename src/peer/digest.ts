import { createHash } from 'node:crypto';
import type { Challenge } from './challenge.js';

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

/** A Digest challenge that can be answered. */
export interface DigestChallenge {
  readonly hash: 'md5' | 'sha256';
  /** The name as the server wrote it; undefined where it wrote none (MD5). */
  readonly algorithm: string | undefined;
  readonly session: boolean;
  readonly realm: string;
  readonly nonce: string;
  readonly opaque: string | undefined;
  /** `auth`, or undefined for the form of RFC 2069. */
  readonly qop: 'auth' | undefined;
  readonly utf8: boolean;
  readonly stale: boolean;
}

const HASHES: ReadonlyMap<string, 'md5' | 'sha256'> = new Map([
  ['MD5', 'md5'],
  ['SHA-256', 'sha256'],
]);

/** Undefined where the server asks for something that we do not speak (auth-int alone, another hash). */
export function digestChallenge({ scheme, parameters }: Challenge): DigestChallenge | undefined {
  if (scheme !== 'digest') return undefined;
  const algorithm = parameters.get('algorithm');
  const [, base, session] = /^(.*?)(-SESS)?$/.exec(algorithm?.toUpperCase() ?? 'MD5') ?? [];
  const hash = HASHES.get(base ?? '');
  const realm = parameters.get('realm');
  const nonce = parameters.get('nonce');
  const offered = parameters
    .get('qop')
    ?.toLowerCase()
    .split(/[\s,]+/);
  if (hash === undefined || realm === undefined || nonce === undefined) return undefined;
  if (offered !== undefined && !offered.includes('auth')) return undefined;
  return {
    hash,
    algorithm,
    session: session !== undefined,
    realm,
    nonce,
    opaque: parameters.get('opaque'),
    qop: offered === undefined ? undefined : 'auth',
    utf8: parameters.get('charset')?.toUpperCase() === 'UTF-8',
    stale: parameters.get('stale')?.toLowerCase() === 'true',
  };
}

export interface DigestRequest {
  readonly method: string;
  /** Path and query, exactly as they are sent. */
  readonly uri: string;
  /** How often the nonce has been used, this time included. */
  readonly count: number;
  readonly cnonce: string;
}

/**
 * The Authorization header that answers a challenge (RFC 7616, 3.4; without qop as in RFC 2069).
 *
 * A header is bytes, and undici reads and writes it as one character a byte: so are realm and nonce kept, and user name
 * and password become so by way of UTF-8.
 */
export function digestAuthorization(
  challenge: DigestChallenge,
  { username, password }: Credentials,
  { method, uri, count, cnonce }: DigestRequest,
): string {
  const { hash, algorithm, session, realm, nonce, opaque, qop, utf8 } = challenge;
  const h = (bytes: string) => createHash(hash).update(bytes, 'latin1').digest('hex');
  const nc = count.toString(16).padStart(8, '0');
  const secret = h(`${bytesOf(username)}:${realm}:${bytesOf(password)}`);
  const a1 = session ? h(`${secret}:${nonce}:${cnonce}`) : secret;
  const a2 = h(`${method}:${uri}`);
  const response = h(
    qop === undefined ? `${a1}:${nonce}:${a2}` : `${a1}:${nonce}:${nc}:${cnonce}:${qop}:${a2}`,
  );
  const parts = [
    usernamePart(username, utf8),
    `realm=${quoted(realm)}`,
    `nonce=${quoted(nonce)}`,
    `uri=${quoted(uri)}`,
    `response="${response}"`,
    ...(algorithm === undefined ? [] : [`algorithm=${algorithm}`]),
    ...(opaque === undefined ? [] : [`opaque=${quoted(opaque)}`]),
    ...(qop === undefined ? [] : [`qop=${qop}`, `nc=${nc}`]),
    ...(qop !== undefined || session ? [`cnonce="${cnonce}"`] : []),
  ];
  return `Digest ${parts.join(', ')}`;
}

/** A name outside ASCII travels as `username*` where the server knows it, else as its bytes. */
function usernamePart(username: string, utf8: boolean): string {
  if (utf8 && !/^[\x20-\x7e]*$/.test(username)) return `username*=UTF-8''${extended(username)}`;
  return `username=${quoted(bytesOf(username))}`;
}

function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1');
}

/** RFC 8187. */
function extended(text: string): string {
  return encodeURIComponent(text).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}
