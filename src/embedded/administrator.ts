import { createHash, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../lib/clock.js';
import { Nonces } from './nonces.js';

const REALM = 'peersync embedded peer';
const ALGORITHMS = { 'SHA-256': 'sha256', MD5: 'md5' } as const;

export type Verdict =
  | { readonly access: 'granted' }
  | { readonly access: 'denied'; readonly challenges: string[]; readonly why: string }
  | { readonly access: 'malformed'; readonly why: string };

export interface AskedAccess {
  readonly method: string;
  /** The request target as it stood in the request line. */
  readonly target: string;
  readonly authorization: string | undefined;
}

/** The one user of the peer who may push: Digest with SHA-256 or MD5 (RFC 7616, qop=auth), or Basic (RFC 7617). */
export class Administrator {
  readonly username = 'admin';
  readonly #password: string;
  readonly #nonces: Nonces;

  constructor(password: string, clock: Clock) {
    this.#password = password;
    this.#nonces = new Nonces(clock);
  }

  judge(asked: AskedAccess): Verdict {
    const { authorization } = asked;
    if (authorization === undefined) return this.#deny('this page needs the administrator');
    const space = authorization.indexOf(' ');
    const scheme = authorization.slice(0, space === -1 ? undefined : space).toLowerCase();
    const rest = space === -1 ? '' : authorization.slice(space + 1).trim();
    if (scheme === 'basic') return this.#judgeBasic(rest);
    if (scheme === 'digest') return this.#judgeDigest(asked, parseParameters(rest));
    return this.#deny('the authentication has to be Digest or Basic');
  }

  #judgeBasic(encoded: string): Verdict {
    const given = Buffer.from(encoded, 'base64').toString();
    if (equal(given, `${this.username}:${this.#password}`)) return { access: 'granted' };
    return this.#deny('the user or the password is wrong');
  }

  #judgeDigest(asked: AskedAccess, given: ReadonlyMap<string, string> | undefined): Verdict {
    if (!given) return { access: 'malformed', why: 'the Authorization header cannot be read' };
    const field = (name: string): string => given.get(name) ?? '';
    const algorithm = given.get('algorithm')?.toUpperCase() ?? 'MD5';
    if (algorithm !== 'MD5' && algorithm !== 'SHA-256')
      return this.#deny('the algorithm has to be MD5 or SHA-256');
    if (field('qop').toLowerCase() !== 'auth') return this.#deny('the digest has to be of qop=auth');
    if (field('uri') !== asked.target)
      return { access: 'malformed', why: 'the digest was made for another address (uri)' };
    if (!/^[0-9a-f]{8}$/i.test(field('nc')) || field('cnonce') === '')
      return { access: 'malformed', why: 'the digest lacks nc or cnonce' };
    const hash = (text: string): string => createHash(ALGORITHMS[algorithm]).update(text).digest('hex');
    const expected = hash(
      [
        hash(`${this.username}:${REALM}:${this.#password}`),
        field('nonce'),
        field('nc'),
        field('cnonce'),
        field('qop'),
        hash(`${asked.method}:${asked.target}`),
      ].join(':'),
    );
    const right = equal(field('response').toLowerCase(), expected) && equal(field('username'), this.username);
    if (!this.#nonces.isFresh(field('nonce'))) return this.#deny('the nonce is too old', right);
    if (!right) return this.#deny('the user or the password is wrong');
    if (!this.#nonces.use(field('nonce'), Number.parseInt(field('nc'), 16)))
      return this.#deny('this use of the nonce was seen before', true);
    return { access: 'granted' };
  }

  /** `stale` tells a client that its password is right, so that it tries again with the new nonce and asks nobody. */
  #deny(why: string, stale = false): Verdict {
    const challenges = Object.keys(ALGORITHMS).map(
      (algorithm) =>
        `Digest realm="${REALM}", qop="auth", algorithm=${algorithm}, nonce="${this.#nonces.issue()}", ` +
        `stale=${stale}, charset=UTF-8`,
    );
    return { access: 'denied', challenges: [...challenges, `Basic realm="${REALM}", charset="UTF-8"`], why };
  }
}

/** Compares without telling by its duration how much was right. */
function equal(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

/** `name=token, name="quoted, with \"escapes\""`, names in lower case; undefined where it is no such list. */
function parseParameters(text: string): ReadonlyMap<string, string> | undefined {
  const parameters = new Map<string, string>();
  const next = /\s*([!#$%&'*+.^_`|~\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))\s*(?:,|$)/y;
  while (next.lastIndex < text.length) {
    const match = next.exec(text);
    if (!match?.[1]) return undefined;
    parameters.set(match[1].toLowerCase(), match[2]?.replace(/\\(.)/g, '$1') ?? match[3] ?? '');
  }
  return parameters;
}
