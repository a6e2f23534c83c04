import { createHash, randomBytes } from 'node:crypto';
import type { Clock } from '../lib/clock.js';
import type { PeerAccess, SchemeName, Weakness } from './access.js';

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

/**
 * One challenge of a server: `Digest realm="…", nonce="…"`. The names of the scheme and of the
 * parameters are in lower case.
 */
export interface Challenge {
  readonly scheme: string;
  readonly parameters: ReadonlyMap<string, string>;
}

const TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
/**
 * A scheme (a name behind a comma) or a parameter (a name with a value). A quoted value may contain
 * commas.
 */
const PART = new RegExp(
  `([\\t ,]*)(${TOKEN})(?:[\\t ]*=[\\t ]*(?:"((?:[^"\\\\]|\\\\.)*)"|(${TOKEN})))?`,
  'gs',
);

/** Parses WWW-Authenticate: several challenges in one header or in several (RFC 9110, 11.6.1). */
export function parseChallenges(
  header: string | readonly string[] | undefined,
): readonly Challenge[] {
  return [header ?? []].flat().flatMap((text) => {
    const challenges: { scheme: string; parameters: Map<string, string> }[] = [];
    for (const { 1: separator = '', 2: name = '', 3: quoted, 4: token, index } of text.matchAll(
      PART,
    )) {
      const value = quoted?.replace(/\\(.)/gs, '$1') ?? token;
      const parameters = challenges.at(-1)?.parameters;
      const key = name.toLowerCase();
      if (value !== undefined) {
        parameters?.set(key, value);
      } else if (index === 0 || separator.includes(','))
        challenges.push({ scheme: key, parameters: new Map() });
    }
    return challenges;
  });
}

const HASHES: Readonly<Record<string, string>> = { MD5: 'md5', 'SHA-256': 'sha256' };

/** Returns the hash of a Digest challenge; undefined if it is not supported. */
function hashOf({ parameters }: Challenge): string | undefined {
  return HASHES[parameters.get('algorithm')?.toUpperCase() ?? 'MD5'];
}

/**
 * Whether the challenge can be answered: Basic, or Digest with a realm and a nonce. If a Digest has
 * `qop`, `auth` must be one of its values.
 */
export function isSupported(challenge: Challenge): boolean {
  const { scheme, parameters } = challenge;
  if (scheme === 'basic') return true;
  const isWhole =
    parameters.has('realm') && parameters.has('nonce') && hashOf(challenge) !== undefined;
  return (
    scheme === 'digest' &&
    isWhole &&
    /(^|[\s,])auth([\s,]|$)/i.test(parameters.get('qop') ?? 'auth')
  );
}

/** Returns the scheme of a supported challenge. */
function nameOf(challenge: Challenge): SchemeName {
  if (challenge.scheme === 'basic') return 'basic';
  return hashOf(challenge) === 'sha256' ? 'digest-sha256' : 'digest-md5';
}

/**
 * Returns the Authorization header that answers a challenge (RFC 7616, 3.4; without qop as in RFC
 * 2069).
 *
 * undici reads and writes a header as one character for each byte. Realm and nonce are kept in that
 * form. The user name and the password are encoded as UTF-8 first.
 */
function digestAuthorization(
  challenge: Challenge,
  credentials: Credentials,
  request: {
    readonly method: string;
    /** Path and query, exactly as they are sent. */
    readonly uri: string;
    /** The number of uses of the nonce, including this one. */
    readonly count: number;
    readonly cnonce: string;
  },
): string {
  const { method, uri, count, cnonce } = request;
  const {
    algorithm,
    realm = '',
    nonce = '',
    opaque,
    qop,
  } = Object.fromEntries(challenge.parameters);
  const h = (bytes: string) =>
    createHash(hashOf(challenge) ?? 'md5')
      .update(bytes, 'latin1')
      .digest('hex');
  const bytesOf = (text: string) => Buffer.from(text).toString('latin1');
  const quoted = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`;
  const username = bytesOf(credentials.username);
  const nc = count.toString(16).padStart(8, '0');
  const a1 = h(`${username}:${realm}:${bytesOf(credentials.password)}`);
  const use = qop === undefined ? nonce : `${nonce}:${nc}:${cnonce}:auth`;
  const response = h(`${a1}:${use}:${h(`${method}:${uri}`)}`);
  return `Digest ${[
    `username=${quoted(username)}`,
    `realm=${quoted(realm)}`,
    `nonce=${quoted(nonce)}`,
    `uri=${quoted(uri)}`,
    `response="${response}"`,
    ...(algorithm === undefined ? [] : [`algorithm=${algorithm}`]),
    ...(opaque === undefined ? [] : [`opaque=${quoted(opaque)}`]),
    ...(qop === undefined ? [] : ['qop=auth', `nc=${nc}`, `cnonce="${cnonce}"`]),
  ].join(', ')}`;
}

/** A challenge of the server, and its use so far. */
interface Scheme {
  readonly challenge: Challenge;
  /** When the challenge arrived, by our clock, in ms. */
  since: number;
  count: number;
  /** Whether the server has accepted an answer to this challenge. */
  isProven: boolean;
}

/** The credentials that one request carries. */
export interface Authorization {
  readonly header: string;
  readonly scheme: Scheme;
}

/**
 * The limits at which a nonce is renewed. Jetty accepts a nonce for 60 s and in 1,023 requests. A
 * client learns that only when it is too late.
 */
const NONCE_MS = 50_000;
const NONCE_USES = 1_000;

/**
 * Authenticates requests with Basic or Digest, as the server's challenge demands.
 *
 * - *No challenge known*: requests carry no credentials. A 401 leads to the next mode.
 * - *Challenge known*: requests answer it. If a server offers several, the strongest is answered:
 *   Digest with SHA-256, Digest with MD5, Basic. All requests share a Digest nonce and its counter.
 * - *Another 401*: if the nonce was too old (`stale`), or the server forgot a nonce that it had
 *   accepted, the new challenge is answered. Otherwise the credentials are wrong.
 * - *Weak challenge*: `PeerAccess` forbids it, and it is not answered. The challenge known before
 *   stays.
 * - *Nonce expiring*: `renew` drops it before a body is sent. The next request then carries no
 *   credentials, and gets a new challenge.
 *
 * The caller limits how often one request is sent.
 */
export class Auth {
  /** The request without a body that authenticates, while it is under way. */
  handshake: Promise<void> | undefined;
  /** The latest challenge. */
  #scheme: Scheme | undefined;
  /** Whether requests answer the challenge in advance. */
  #isAnswered = false;
  /** Whether the server accepted the latest protected request. */
  #isAccepted = false;

  constructor(
    private readonly credentials: Credentials,
    private readonly access: PeerAccess,
    private readonly clock: Clock,
  ) {}

  /**
   * Returns the credentials for the next request; undefined if no challenge is known. Each call
   * counts as one use of the nonce.
   */
  authorize(method: string, uri: string): Authorization | undefined {
    const scheme = this.#isAnswered ? this.#scheme : undefined;
    if (scheme === undefined || this.access.isExposedBy(nameOf(scheme.challenge))) return undefined;
    const { username, password } = this.credentials;
    if (scheme.challenge.scheme === 'basic')
      return {
        header: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
        scheme,
      };
    scheme.count += 1;
    const request = { method, uri, count: scheme.count, cnonce: randomBytes(12).toString('hex') };
    return { header: digestAuthorization(scheme.challenge, this.credentials, request), scheme };
  }

  /**
   * Whether the server accepted the latest protected request, and the nonce will last for the next
   * one.
   */
  get isSettled(): boolean {
    return this.#isAccepted && !this.#isNonceExpiring();
  }

  /** Drops a nonce that is about to expire. The next request gets a new challenge. */
  renew(): void {
    if (!this.#isNonceExpiring()) return;
    this.#isAnswered = false;
    this.#isAccepted = false;
  }

  /** Called when the server accepted a protected request that carried `used`. */
  async accepted(used: Authorization | undefined): Promise<void> {
    this.#isAccepted = true;
    if (used === undefined || used.scheme.isProven) return;
    used.scheme.isProven = true;
    await this.access.recordSuccess(nameOf(used.scheme.challenge));
  }

  /**
   * Called when the server answered 401 to a request that carried `used`.
   *
   * @returns `again` if sending the request once more can help, `refused` if it cannot, or the
   *   reason not to answer the challenge
   */
  async refused(
    header: string | readonly string[] | undefined,
    used: Authorization | undefined,
  ): Promise<'again' | 'refused' | Weakness> {
    const offered = this.#strongest(parseChallenges(header));
    const name = offered && nameOf(offered.challenge);
    const weakness = name && (await this.access.weaknessOf(name));
    if (name !== undefined && weakness === undefined) await this.access.recordChallenge(name);
    const again =
      offered !== undefined && weakness === undefined && this.#adopt(offered, used?.scheme);
    if (again) return 'again';
    this.#isAccepted = false;
    return weakness ?? 'refused';
  }

  #adopt(offered: Scheme, used: Scheme | undefined): boolean {
    // If the server repeats a nonce, its counter goes on.
    if (this.#scheme === undefined || hasOtherNonce(offered, this.#scheme)) this.#scheme = offered;
    else this.#scheme.since = offered.since;
    this.#isAnswered = true;
    if (used === undefined) return true;
    const isStale = offered.challenge.parameters.get('stale')?.toLowerCase() === 'true';
    return hasOtherNonce(offered, used) && (isStale || used.isProven);
  }

  #isNonceExpiring(): boolean {
    if (this.#scheme?.challenge.scheme !== 'digest') return false;
    const { since, count } = this.#scheme;
    return this.clock.now() - since > NONCE_MS || count >= NONCE_USES;
  }

  #strongest(challenges: readonly Challenge[]): Scheme | undefined {
    const spoken = challenges.filter(isSupported);
    const digests = spoken.filter(({ scheme }) => scheme === 'digest');
    const challenge = digests.find((each) => hashOf(each) === 'sha256') ?? digests[0] ?? spoken[0];
    return challenge && { challenge, since: this.clock.now(), count: 0, isProven: false };
  }
}

function hasOtherNonce(offered: Scheme, used: Scheme): boolean {
  return offered.challenge.parameters.get('nonce') !== used.challenge.parameters.get('nonce');
}
