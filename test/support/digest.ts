import { createHash } from 'node:crypto';
import type { HttpRequest } from './http-peer.js';

export const CREDENTIALS = { username: 'Jürgen', password: 'sécret:"x"' };
const REALM = 'Administrators only. If you don\'t know the password, ask for "it", <politely> \\o/';

export interface DigestRules {
  readonly algorithm: 'MD5' | 'SHA-256';
  readonly qop: string;
  /** How often a nonce may be used. */
  readonly uses: number;
  /** Whether a challenge tells that a nonce was too old. */
  readonly saysStale: boolean;
}

/**
 * The Digest of a server, as RFC 7616 says: every nonce is its own, every count is used once. The
 * user is that of CREDENTIALS.
 */
export class Digest {
  password = CREDENTIALS.password;
  /** The counts that were used with each nonce. */
  readonly nonces = new Map<string, Set<string>>();
  /**
   * The requests in short form: `GET -` without credentials, `POST 1` with the count of its nonce.
   */
  readonly log: string[] = [];
  readonly #rules: DigestRules;
  #issued = 0;

  constructor(rules: Partial<DigestRules> = {}) {
    this.#rules = { algorithm: 'MD5', qop: 'auth', uses: Infinity, saysStale: true, ...rules };
  }

  /** Checks a request. @returns the challenge to answer it with; undefined if it may pass */
  challenge(request: HttpRequest): string | undefined {
    const { authorization } = request.headers;
    const { nc } = parameters(authorization);
    const count = nc === undefined ? 'old' : Number.parseInt(nc, 16);
    this.log.push(`${request.method} ${authorization === undefined ? '-' : count}`);
    const judged = this.#judge(request);
    if (judged === 'in') return undefined;
    this.#issued += 1;
    const nonce = `nonce+${this.#issued}/=`;
    this.nonces.set(nonce, new Set());
    const { algorithm, qop, saysStale } = this.#rules;
    const realm = REALM.replace(/["\\]/g, '\\$&');
    const parts = [
      `realm="${realm}"`,
      'domain=""',
      `nonce="${nonce}"`,
      'opaque="o,p"',
      `algorithm=${algorithm}`,
    ];
    if (qop !== '') parts.push(`qop="${qop}"`);
    if (saysStale) parts.push(`stale=${judged === 'stale'}`);
    return `Digest ${parts.join(', ')}`;
  }

  #judge({ method, url, headers: { authorization } }: HttpRequest): 'in' | 'wrong' | 'stale' {
    const {
      username,
      realm,
      nonce = '',
      uri,
      response,
      nc,
      cnonce,
      qop,
      opaque,
    } = parameters(authorization);
    const h = (text: string) =>
      createHash(this.#rules.algorithm === 'SHA-256' ? 'sha256' : 'md5')
        .update(text)
        .digest('hex');
    const use = this.#rules.qop === '' ? nonce : `${nonce}:${nc}:${cnonce}:${qop}`;
    const expected = h(
      `${h(`${CREDENTIALS.username}:${REALM}:${this.password}`)}:${use}:${h(`${method}:${url}`)}`,
    );
    const isNamed = Buffer.from(username ?? '', 'latin1').toString() === CREDENTIALS.username;
    const isRight = isNamed && realm === REALM && uri === url && opaque === 'o,p';
    const used = this.nonces.get(nonce);
    if (!isRight || response !== expected || used?.has(nc ?? '')) return 'wrong';
    if (used === undefined || used.size >= this.#rules.uses) return 'stale';
    used.add(nc ?? `${used.size}`);
    return 'in';
  }
}

/** Returns the parameters of a header, unquoted. */
export function parameters(header = ''): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [, name = '', quoted, token] of header.matchAll(
    /([\w*]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))/g,
  ))
    found[name] = token ?? (quoted ?? '').replace(/\\(.)/g, '$1');
  return found;
}
