import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../lib/atomic.js';
import type { Clock } from '../lib/clock.js';
import { systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { EmbeddedError, failures } from './errors.js';

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

/** Milliseconds for which a nonce is good. */
const LIFETIME_MS = 300_000;
/** Uses of one nonce; a client that reaches it gets a new one. */
const MOST_USES = 100_000;
/** Nonces whose uses are remembered. */
const MOST_REMEMBERED = 1_000;

/** Counts below `upTo` are all used; `above` holds the ones that came out of order. */
interface Uses {
  upTo: number;
  readonly above: Set<number>;
}

/**
 * The nonces of digest authentication (RFC 7616, 3.3 and 3.4).
 *
 * A nonce carries its time and a signature, so issuing one costs no memory. It is *fresh* for LIFETIME_MS; each count (nc) of it
 * is accepted once, in any order, as parallel connections need. What happened to it is remembered from its first
 * successful use; where too many are remembered the oldest is dropped, and nonces as old as that are stale from then on.
 */
export class Nonces {
  readonly #secret = randomBytes(32);
  readonly #clock: Clock;
  readonly #uses = new Map<string, Uses>();
  #staleUpTo = -1;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  issue(): string {
    const head = Buffer.alloc(14);
    head.writeUIntBE(this.#clock.now(), 0, 6);
    randomBytes(8).copy(head, 6);
    return Buffer.concat([head, this.#sign(head)]).toString('base64url');
  }

  isFresh(nonce: string): boolean {
    const issued = this.#issuedAt(nonce);
    return issued !== undefined && issued > this.#staleUpTo && this.#clock.now() - issued <= LIFETIME_MS;
  }

  /** Takes the count `nc` of a fresh nonce; false where it was taken before or is past the last. */
  use(nonce: string, nc: number): boolean {
    if (!Number.isInteger(nc) || nc < 1 || nc > MOST_USES) return false;
    const uses = this.#uses.get(nonce) ?? this.#remember(nonce);
    if (nc <= uses.upTo || uses.above.has(nc)) return false;
    uses.above.add(nc);
    while (uses.above.delete(uses.upTo + 1)) uses.upTo += 1;
    return true;
  }

  #remember(nonce: string): Uses {
    const [oldest] = this.#uses.keys();
    if (oldest !== undefined && (this.#uses.size >= MOST_REMEMBERED || !this.isFresh(oldest))) {
      this.#uses.delete(oldest);
      this.#staleUpTo = Math.max(this.#staleUpTo, this.#issuedAt(oldest) ?? -1);
    }
    const uses: Uses = { upTo: 0, above: new Set() };
    this.#uses.set(nonce, uses);
    return uses;
  }

  #issuedAt(nonce: string): number | undefined {
    const raw = Buffer.from(nonce, 'base64url');
    if (raw.length !== 30) return undefined;
    const head = raw.subarray(0, 14);
    if (!timingSafeEqual(this.#sign(head), raw.subarray(14))) return undefined;
    return head.readUIntBE(0, 6);
  }

  #sign(head: Buffer): Buffer {
    return createHmac('sha256', this.#secret).update(head).digest().subarray(0, 16);
  }
}

const SHORTEST = 8;

/**
 * The administrator's password of the peer in `dir`: the line in `admin-password`, made at the first start
 * (32 random characters, readable by its owner alone).
 *
 * @throws EmbeddedError EMBEDDED_PASSWORD_UNUSABLE where the file holds none
 */
export async function administratorPassword(dir: string, log: Logger): Promise<string> {
  const path = join(dir, 'admin-password');
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (systemCode(error) !== 'ENOENT')
      throw new EmbeddedError(failures.passwordUnusable(path, systemCode(error) ?? 'it cannot be read'));
    const made = randomBytes(24).toString('base64url');
    await writeFileAtomic(path, `${made}\n`, { mode: 0o600 });
    log.info({ path }, `The embedded peer has a new administrator: user admin, password in ${path}`);
    return made;
  }
  const password = text.replace(/\r?\n$/, '');
  if (/[\r\n]/.test(password))
    throw new EmbeddedError(failures.passwordUnusable(path, 'it has several lines'));
  if (password.length < SHORTEST)
    throw new EmbeddedError(
      failures.passwordUnusable(path, `it has ${password.length} characters, fewer than ${SHORTEST}`),
    );
  if (((await stat(path)).mode & 0o077) !== 0)
    log.warn({ path }, `Others can read the administrator's password: chmod 600 ${path}`);
  return password;
}
