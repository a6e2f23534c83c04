import { createHash, randomBytes } from 'node:crypto';

export const REALM =
  "The YaCy access is limited to administrators. If you don't know the password, you can change it using <yacy-home>/bin/passwd.sh <new-password>";

const MAX_COUNT = 1_024;

/** Whether a request may come in; if not, whether the peer says that only the nonce was too old. */
export type Verdict = 'in' | 'out' | 'stale';

interface Nonce {
  readonly issued: number;
  readonly counts: Set<number>;
}

/**
 * Access control of the pages of the administrator. With a password, a request must answer a
 * challenge (Digest, MD5, `auth`). Without one, it must not come from a page of another host.
 */
export class Gatekeeper {
  readonly #password: string | undefined;
  readonly #nonceMs: number;
  readonly #now: () => number;
  readonly #nonces = new Map<string, Nonce>();

  constructor(password: string | undefined, nonceMs: number, now: () => number) {
    this.#password = password;
    this.#nonceMs = nonceMs;
    this.#now = now;
  }

  judge(method: string, authorization: string | undefined, referer: string | undefined): Verdict {
    if (this.#password === undefined) return isForeign(referer) ? 'out' : 'in';
    if (authorization === undefined) return 'out';
    const {
      username,
      realm,
      nonce = '',
      uri,
      response,
      nc = '',
      cnonce,
      qop,
    } = parametersOf(authorization);
    const known = this.#nonces.get(nonce);
    const count = Number.parseInt(nc, 16);
    if (known === undefined || this.#now() - known.issued > this.#nonceMs || count >= MAX_COUNT)
      return 'stale';
    if (qop !== 'auth' || Number.isNaN(count) || known.counts.has(count)) return 'out';
    known.counts.add(count);
    const secret = md5(`admin:${realm}:${this.#password}`);
    const expected = md5(`${secret}:${nonce}:${nc}:${cnonce}:${qop}:${md5(`${method}:${uri}`)}`);
    return username === 'admin' && realm === REALM && response === expected ? 'in' : 'out';
  }

  /** A new challenge, for `WWW-Authenticate`. */
  challenge(verdict: Verdict): string {
    const nonce = randomBytes(24).toString('base64');
    this.#nonces.set(nonce, { issued: this.#now(), counts: new Set() });
    return `Digest realm="${REALM}", domain="", nonce="${nonce}", algorithm=MD5, qop="auth", stale=${verdict === 'stale'}`;
  }
}

function isForeign(referer: string | undefined): boolean {
  return referer !== undefined && !/^https?:\/\/(localhost|127\.|\[::1\])/.test(referer);
}

function parametersOf(header: string): Record<string, string> {
  if (!/^digest /i.test(header)) return {};
  const found: Record<string, string> = {};
  for (const [, name = '', quoted, token] of header.matchAll(
    /(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))/g,
  )) {
    found[name] = token ?? (quoted ?? '').replace(/\\(.)/g, '$1');
  }
  return found;
}

function md5(text: string): string {
  return createHash('md5').update(text).digest('hex');
}
