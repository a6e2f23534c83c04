import { createHash, randomBytes } from 'node:crypto';
import type { Clock } from '../lib/clock.js';
import type { PeerAccess, SchemeName, Weakness } from './access.js';

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

/**
 * One way in that a server offers: `Digest realm="…", nonce="…"`. Names of scheme and parameters
 * are in lower case.
 */
export interface Challenge {
  readonly scheme: string;
  readonly parameters: ReadonlyMap<string, string>;
}

const TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
/**
 * A name, alone behind a comma (a scheme) or with a value (a parameter), which may be quoted and
 * hold commas.
 */
const PART = new RegExp(
  `([\\t ,]*)(${TOKEN})(?:[\\t ]*=[\\t ]*(?:"((?:[^"\\\\]|\\\\.)*)"|(${TOKEN})))?`,
  'gs',
);

/** Reads WWW-Authenticate: several challenges in one header or in several (RFC 9110, 11.6.1). */
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

/** The hash of a Digest challenge; undefined for one that we do not speak. */
function hashOf({ parameters }: Challenge): string | undefined {
  return HASHES[parameters.get('algorithm')?.toUpperCase() ?? 'MD5'];
}

/**
 * Whether it can be answered: Basic, or Digest with a realm, a nonce and, if it has any qop, `auth`
 * among them.
 */
export function isSpoken(challenge: Challenge): boolean {
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

/** The kind of a challenge that can be answered. */
function nameOf(challenge: Challenge): SchemeName {
  if (challenge.scheme === 'basic') return 'basic';
  return hashOf(challenge) === 'sha256' ? 'digest-sha256' : 'digest-md5';
}

/**
 * The Authorization header that answers a challenge (RFC 7616, 3.4; without qop as in RFC 2069).
 *
 * A header is bytes, and undici reads and writes it as one character a byte: so are realm and nonce
 * kept, and user name and password become so by way of UTF-8.
 */
function digestAuthorization(
  challenge: Challenge,
  credentials: Credentials,
  request: {
    readonly method: string;
    /** Path and query, exactly as they are sent. */
    readonly uri: string;
    /** How often the nonce has been used, this time included. */
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

/** How the server wants to be convinced, and how often we did it that way. */
interface Scheme {
  readonly challenge: Challenge;
  /** When it came, for durations. */
  since: number;
  count: number;
  /** Whether it convinced the server. */
  isProven: boolean;
}

/** What one request carried. */
export interface Authorization {
  readonly header: string;
  readonly scheme: Scheme;
}

/**
 * Jetty takes a nonce for 60 s and in 1,023 requests, and says so only to one that comes too late.
 */
const NONCE_MS = 50_000;
const NONCE_USES = 1_000;

/**
 * Our way in: Basic or Digest, as the server's challenge says.
 *
 * - Nothing known: requests carry no credentials.
 * - A challenge came (401): requests answer it. Of several the strongest counts: Digest with
 *   SHA-256, Digest with MD5, Basic. A Digest nonce is used again and again, each time with the
 *   next count, by all requests together.
 * - A 401 to an answered challenge: the nonce was too old (`stale`), or the server forgot one that
 *   had worked: its new challenge is answered. Otherwise the credentials are wrong.
 * - A challenge that `PeerAccess` forbids is not answered; what was known of the peer before stays.
 * - A nonce that will not last is given up before a body is sent with it (`renew`): a new one is
 *   asked for.
 *
 * The caller limits how often one request is sent.
 */
export class Auth {
  /** A request without a body that learns and answers the challenge, as long as it is under way. */
  introduction: Promise<void> | undefined;
  /** The last challenge. */
  #scheme: Scheme | undefined;
  /** Whether requests answer it without being asked. */
  #isAnswered = false;
  #isAdmitted = false;

  constructor(
    private readonly credentials: Credentials,
    private readonly access: PeerAccess,
    private readonly clock: Clock,
  ) {}

  /**
   * What the next request is to carry; undefined while no challenge is known. Counts as one use of
   * a nonce.
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
   * Whether the server let a protected request in since it last turned one away, and will let the
   * next one in.
   */
  get isSettled(): boolean {
    return this.#isAdmitted && !this.#isWorn();
  }

  /** Gives up a nonce that will not last, so that the next request asks for a new one. */
  renew(): void {
    if (!this.#isWorn()) return;
    this.#isAnswered = false;
    this.#isAdmitted = false;
  }

  /** The server let a request in that needs access, and carried `used`. */
  async admitted(used: Authorization | undefined): Promise<void> {
    this.#isAdmitted = true;
    if (used === undefined || used.scheme.isProven) return;
    used.scheme.isProven = true;
    await this.access.worked(nameOf(used.scheme.challenge));
  }

  /**
   * The server answered 401 to a request that carried `used`.
   *
   * @returns `again` where sending it once more can help, `refused` where it cannot, or why its
   *   challenge is not answered
   */
  async refused(
    header: string | readonly string[] | undefined,
    used: Authorization | undefined,
  ): Promise<'again' | 'refused' | Weakness> {
    const offered = this.#strongest(parseChallenges(header));
    const name = offered && nameOf(offered.challenge);
    const weakness = name && (await this.access.forbids(name));
    if (name !== undefined && weakness === undefined) await this.access.wasAsked(name);
    const again =
      offered !== undefined && weakness === undefined && this.#learn(offered, used?.scheme);
    if (again) return 'again';
    this.#isAdmitted = false;
    return weakness ?? 'refused';
  }

  #learn(offered: Scheme, used: Scheme | undefined): boolean {
    // A server that gives the same nonce again counts on.
    if (this.#scheme === undefined || isOther(offered, this.#scheme)) this.#scheme = offered;
    else this.#scheme.since = offered.since;
    this.#isAnswered = true;
    if (used === undefined) return true;
    const isStale = offered.challenge.parameters.get('stale')?.toLowerCase() === 'true';
    return isOther(offered, used) && (isStale || used.isProven);
  }

  #isWorn(): boolean {
    if (this.#scheme?.challenge.scheme !== 'digest') return false;
    const { since, count } = this.#scheme;
    return this.clock.now() - since > NONCE_MS || count >= NONCE_USES;
  }

  #strongest(challenges: readonly Challenge[]): Scheme | undefined {
    const spoken = challenges.filter(isSpoken);
    const digests = spoken.filter(({ scheme }) => scheme === 'digest');
    const challenge = digests.find((each) => hashOf(each) === 'sha256') ?? digests[0] ?? spoken[0];
    return challenge && { challenge, since: this.clock.now(), count: 0, isProven: false };
  }
}

function isOther(offered: Scheme, used: Scheme): boolean {
  return offered.challenge.parameters.get('nonce') !== used.challenge.parameters.get('nonce');
}
