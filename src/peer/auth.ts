import { randomBytes } from 'node:crypto';
import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { type Challenge, parseChallenges } from './challenge.js';
import { type Credentials, type DigestChallenge, digestAuthorization, digestChallenge } from './digest.js';

/** How the server wants to be convinced, and how often we did it that way. */
type Scheme =
  | { readonly kind: 'basic' }
  | {
      readonly kind: 'digest';
      readonly challenge: DigestChallenge;
      /** When it came, for durations. */
      readonly since: number;
      count: number;
    };

/** What one request carried. */
export interface Authorization {
  readonly header: string;
  readonly scheme: Scheme;
}

export interface AuthOptions {
  readonly credentials: Credentials;
  readonly origin: URL;
  readonly log: Logger;
  readonly clock: Clock;
}

/** Jetty takes a nonce for 60 s and in 1,023 requests, and says so only to one that comes too late. */
const NONCE_MS = 50_000;
const NONCE_USES = 1_000;

/**
 * Our way in: Basic or Digest, as the server's challenge says.
 *
 * - Nothing known: requests carry no credentials.
 * - A challenge came (401): requests answer it. Of several the strongest counts: Digest with SHA-256, Digest with
 *   MD5, Basic. A Digest nonce is used again and again, each time with the next count, by all requests together.
 * - A 401 to an answered challenge: the nonce was too old (`stale`), or the server forgot one that had worked: its new
 *   challenge is answered. Otherwise the credentials are wrong.
 *
 * - A nonce that will not last is given up before a body is sent with it (`renew`): a new one is asked for.
 *
 * The caller limits how often one request is sent.
 */
export class Auth {
  readonly #credentials: Credentials;
  readonly #origin: URL;
  readonly #log: Logger;
  readonly #clock: Clock;
  #scheme: Scheme | undefined;
  /** The scheme that last convinced the server. */
  #proven: Scheme | undefined;
  /** The scheme that was given up, until the server asks for credentials again. */
  #givenUp: Scheme | undefined;
  #settled = false;
  #warned = false;

  constructor({ credentials, origin, log, clock }: AuthOptions) {
    this.#clock = clock;
    this.#credentials = credentials;
    this.#origin = origin;
    this.#log = log;
  }

  /** What the next request is to carry; undefined while no challenge is known. Counts as one use of a nonce. */
  authorize(method: string, uri: string): Authorization | undefined {
    const scheme = this.#scheme;
    if (scheme === undefined) return undefined;
    if (scheme.kind === 'basic') {
      this.#warnOfPlainText();
      return { header: basic(this.#credentials), scheme };
    }
    scheme.count += 1;
    const request = { method, uri, count: scheme.count, cnonce: randomBytes(12).toString('hex') };
    return { header: digestAuthorization(scheme.challenge, this.#credentials, request), scheme };
  }

  /** Whether the server let a protected request in since it last turned one away, and will let the next one in. */
  get settled(): boolean {
    return this.#settled && !this.#isWorn();
  }

  /** Gives up a nonce that will not last, so that the next request asks for a new one. */
  renew(): void {
    if (!this.#isWorn()) return;
    this.#givenUp = this.#scheme;
    this.#scheme = undefined;
    this.#settled = false;
  }

  /** The server let a protected request in, or one that carried `used`. */
  admitted(used: Authorization | undefined): void {
    if (used === undefined || used.scheme === this.#scheme) this.#settled = true;
    if (used !== undefined) this.#proven = used.scheme;
  }

  /** The server answered 401 to a request that carried `used`: whether sending it again can help. */
  refused(header: string | readonly string[] | undefined, used: Authorization | undefined): boolean {
    const again = this.#learn(this.#strongest(parseChallenges(header)), used);
    if (!again) this.#settled = false;
    return again;
  }

  #learn(offered: Scheme | undefined, used: Authorization | undefined): boolean {
    if (offered === undefined) return false;
    if (this.#scheme === undefined || isOther(offered, this.#scheme)) this.#scheme = this.#continued(offered);
    if (used === undefined) return true;
    const stale = offered.kind === 'digest' && offered.challenge.stale;
    return isOther(offered, used.scheme) && (stale || this.#proven === used.scheme);
  }

  /** A server that gives the same nonce again counts on. */
  #continued(offered: Scheme): Scheme {
    const before = this.#givenUp;
    this.#givenUp = undefined;
    if (offered.kind !== 'digest' || before?.kind !== 'digest' || isOther(offered, before)) return offered;
    return { ...offered, count: before.count };
  }

  #isWorn(): boolean {
    const scheme = this.#scheme;
    if (scheme?.kind !== 'digest') return false;
    return this.#clock.now() - scheme.since > NONCE_MS || scheme.count >= NONCE_USES;
  }

  #strongest(challenges: readonly Challenge[]): Scheme | undefined {
    return strongest(challenges, this.#clock.now());
  }

  #warnOfPlainText(): void {
    if (this.#warned || this.#origin.protocol !== 'http:' || isLoopback(this.#origin.hostname)) return;
    this.#warned = true;
    this.#log.warn(
      { origin: this.#origin.origin },
      'The peer wants the password in plain text (Basic over http); use https, or Digest on the peer.',
    );
  }
}

const STRENGTH = ['digest sha256', 'digest md5', 'basic'];

function strongest(challenges: readonly Challenge[], since: number): Scheme | undefined {
  return challenges
    .map((challenge) => schemeOf(challenge, since))
    .filter((scheme) => scheme !== undefined)
    .sort((a, b) => STRENGTH.indexOf(nameOf(a)) - STRENGTH.indexOf(nameOf(b)))[0];
}

function schemeOf(challenge: Challenge, since: number): Scheme | undefined {
  if (challenge.scheme === 'basic') return { kind: 'basic' };
  const digest = digestChallenge(challenge);
  return digest === undefined ? undefined : { kind: 'digest', challenge: digest, since, count: 0 };
}

function nameOf(scheme: Scheme): string {
  return scheme.kind === 'basic' ? 'basic' : `digest ${scheme.challenge.hash}`;
}

function isOther(offered: Scheme, used: Scheme): boolean {
  if (offered.kind === 'basic' || used.kind === 'basic') return offered.kind !== used.kind;
  return offered.challenge.nonce !== used.challenge.nonce;
}

function basic({ username, password }: Credentials): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

function isLoopback(hostname: string): boolean {
  return /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}
