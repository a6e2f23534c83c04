import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { isLoopback, type Listen } from '../config/url.js';
import type { Clock } from '../lib/clock.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';

/** What every error is answered with: one sentence what happened, one what to do. */
export interface ApiError {
  readonly error: { readonly code: string; readonly message: string; readonly hint: string };
}

const ERRORS = {
  TOKEN_NEEDED: [
    401,
    'This page needs its token.',
    'Sign in at /sign-in, or send "Authorization: Bearer TOKEN".',
  ],
  TOKEN_WRONG: [401, 'That is not the token of this page.', 'Give the secret that status.token names.'],
  TOO_MANY_TRIES: [
    429,
    'Too many wrong tokens came from this address.',
    'Wait a moment before the next try.',
  ],
  FOREIGN_HOST: [
    403,
    'The page was asked for by a name that is not its own.',
    'Use the address in status.listen; behind another name the page needs a status.token.',
  ],
  FOREIGN_ORIGIN: [
    403,
    'The request came from a page of another origin.',
    'Use the status page itself, or a program that sends no Origin.',
  ],
  NOT_JSON: [
    403,
    'A request to change something has to be JSON.',
    'Send "Content-Type: application/json" and a body, {} where there is nothing to say.',
  ],
  TOO_LARGE: [413, 'The request is too large.', 'Name fewer paths at a time; up to 64 KiB are taken.'],
  BAD_REQUEST: [
    400,
    'The request could not be understood.',
    'See "Status page" in the README for what can be asked.',
  ],
  NOT_FOUND: [404, 'There is nothing at this address.', 'The status page is at /.'],
  TOO_MANY_FOLLOWERS: [
    503,
    'Too many browsers follow this page already.',
    'Close one of them; a new try comes by itself.',
  ],
  FAILED: [500, 'Something went wrong inside peersync.', 'See its log.'],
} as const;

/** What the server of the status page refuses by itself. */
export class PageError extends PeersyncError {
  readonly status: number;

  constructor(code: keyof typeof ERRORS, cause?: unknown) {
    const [status, message, hint] = ERRORS[code];
    super({ code, message, hint, cause });
    this.status = status;
  }
}

/** Codes of other rooms whose status says more than that of all others. */
const STATUSES: Readonly<Record<string, number>> = {
  UNKNOWN_FOLDER: 404,
  MIRROR_UNKNOWN: 404,
  UNKNOWN_QUESTION: 501,
  STATE_FULL: 503,
  STATE_UNWRITABLE: 503,
};

/** Any error as an answer, without a word of where in the program it arose. */
export function answerOf(error: unknown): { readonly status: number; readonly body: ApiError } {
  const known = error instanceof PeersyncError ? error : frameworkError(error);
  const { code, exitCode, hint, message } = known;
  const other = STATUSES[code] ?? (exitCode === EXIT.usage ? 400 : 409);
  const status = known instanceof PageError ? known.status : other;
  return { status, body: { error: { code, message, hint } } };
}

/** What fastify refuses before a route sees it, in our words; anything else is a bug of ours. */
function frameworkError(error: unknown): PageError {
  const status = Number(error instanceof Error && 'statusCode' in error ? error.statusCode : 500);
  if (status === 413) return new PageError('TOO_LARGE', error);
  if (status === 415) return new PageError('NOT_JSON', error);
  return new PageError(status >= 400 && status < 500 ? 'BAD_REQUEST' : 'FAILED', error);
}

/** The route, or what was asked for where there is none; without its query. */
function pathOf({ routeOptions, url }: FastifyRequest): string {
  return routeOptions.url ?? url.replace(/\?.*/s, '');
}

/** How long a browser stays signed in, in ms. */
const SESSION_MS = 30 * 86_400_000;

/**
 * Decides who gets in.
 *
 * With a token: who shows it, or a session that was begun with it. The files of the page are no secret, nor is that the
 * daemon is alive. Without one only names that cannot belong to somebody else's page are answered to: a page of the web
 * may let its own name lead to this machine, and then ask here as if it were ours.
 *
 * With and without, only the page itself changes anything: a browser says where a request comes from.
 *
 * A session is its end and a signature that only who has the token could make: nothing is remembered of it, it
 * survives a restart, and another token ends them all. It is not the token, nor does it lead there sooner than guessing.
 */
export class Guard {
  readonly #token: string | undefined;
  readonly #key: Buffer;
  readonly #clock: Clock;
  readonly #address: () => Listen;
  readonly #attempts: Attempts;

  /**
   * @param token undefined where everybody who reaches the page is let in
   * @param address where the server really listens
   */
  constructor(token: string | undefined, clock: Clock, log: Logger, address: () => Listen) {
    this.#token = token;
    this.#key = createHmac('sha256', token ?? '')
      .update('peersync status page session')
      .digest();
    this.#clock = clock;
    this.#address = address;
    this.#attempts = new Attempts(clock, log);
  }

  get hasToken(): boolean {
    return this.#token !== undefined;
  }

  /** @throws PageError */
  check(request: FastifyRequest): void {
    const { headers, method } = request;
    const path = pathOf(request);
    if (this.#token === undefined) this.#checkHost(request);
    else if (path !== '/healthz' && path !== '/sign-in' && !path.startsWith('/assets/'))
      this.#checkToken(request);
    if (method !== 'GET' && method !== 'HEAD') checkOrigin(request);
    else if (path.startsWith('/api/') && /^(cross|same)-site$/.test(text(headers['sec-fetch-site'])))
      // Another page could not read the answer, but have it made again and again.
      throw new PageError('FOREIGN_ORIGIN');
  }

  /**
   * Looks at a token.
   *
   * @throws PageError TOO_MANY_TRIES without having looked; TOKEN_WRONG
   */
  admit(address: string, offered: string): void {
    if (this.#attempts.waitMs(address) > 0) throw new PageError('TOO_MANY_TRIES');
    // Of equal length, so that it takes as long for a wrong token as for the right one.
    const isRight = this.#token !== undefined && isSame(this.#sign(offered), this.#sign(this.#token));
    if (isRight) this.#attempts.right(address);
    else this.#attempts.wrong(address);
    if (!isRight) throw new PageError('TOKEN_WRONG');
  }

  /** What `set-cookie` says when a session begins. */
  newSession(headers: IncomingHttpHeaders): string {
    const end = String(this.#clock.now() + SESSION_MS);
    return this.#cookie(headers, `${end}.${this.#sign(end)}`, SESSION_MS / 1_000);
  }

  /** What `set-cookie` says when a session is over. */
  noSession(headers: IncomingHttpHeaders): string {
    return this.#cookie(headers, '', 0);
  }

  /**
   * Where a server in front of this one was asked by TLS, it has a name that browsers take by TLS alone. Cookies do not know
   * ports: each instance on a machine needs a name of its own.
   */
  #cookie(headers: IncomingHttpHeaders, value: string, seconds: number): string {
    const isByTls = /^https(,|$)/i.test(text(headers['x-forwarded-proto']).trim());
    const set = `${this.#cookieName}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict`;
    return isByTls ? `__Host-${set}; Secure` : set;
  }

  get #cookieName(): string {
    return `peersync_${this.#address().port}`;
  }

  #sign(what: string): string {
    return createHmac('sha256', this.#key).update(what).digest('hex');
  }

  #checkHost({ headers }: FastifyRequest): void {
    const listen = this.#address();
    const own = listen.host.includes(':') ? `[${listen.host}]` : listen.host;
    const names = isLoopback(listen) ? [own, 'localhost', '127.0.0.1', '[::1]'] : [own];
    const host = text(headers.host).toLowerCase();
    const isOwn = names.some(
      (name) => host === `${name}:${listen.port}` || (listen.port === 80 && host === name),
    );
    if (!isOwn) throw new PageError('FOREIGN_HOST');
  }

  #checkToken({ headers, ip }: FastifyRequest): void {
    for (const pair of text(headers.cookie).split(';')) {
      const [name = '', session = ''] = pair.trim().split('=');
      const [end = '', signature = ''] = session.split('.');
      const isOurs = name === this.#cookieName || name === `__Host-${this.#cookieName}`;
      if (isOurs && isSame(signature, this.#sign(end)) && Number(end) > this.#clock.now()) return;
    }
    const bearer = /^Bearer +(.+)$/i.exec(text(headers.authorization))?.[1];
    if (bearer === undefined) throw new PageError('TOKEN_NEEDED');
    // What a header holds beyond ASCII comes byte by byte.
    this.admit(ip, Buffer.from(bearer, 'latin1').toString());
  }
}

/** Anything may stand in a cookie: its bytes are counted, not its letters. */
function isSame(offered: string, right: string): boolean {
  const [a, b] = [Buffer.from(offered), Buffer.from(right)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** A program that is no browser says nothing of where its request comes from, and cannot be made to send one by a page. */
function checkOrigin(request: FastifyRequest): void {
  const { headers } = request;
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin') throw new PageError('FOREIGN_ORIGIN');
  if (pathOf(request) === '/sign-in') return;
  const { origin } = headers;
  const from = origin !== undefined && URL.canParse(origin) ? new URL(origin).host : undefined;
  // A proxy may ask by another name than the browser does, so the browser's own word goes first.
  if (site === undefined && origin !== undefined && from !== text(headers.host).toLowerCase())
    throw new PageError('FOREIGN_ORIGIN');
  if (!/^application\/json\s*(;|$)/i.test(text(headers['content-type']))) throw new PageError('NOT_JSON');
}

function text(value: string | readonly string[] | undefined): string {
  return typeof value === 'string' ? value : (value?.[0] ?? '');
}

/** So many wrong tokens cost nothing: a person mistypes. */
const FREE = 3;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** After so long without a wrong one, an address begins anew. */
const FORGET_MS = 15 * 60_000;
/** How many addresses are remembered. */
const MOST_ADDRESSES = 1_000;
const SAY_AGAIN_MS = 60_000;

/**
 * Slows down who guesses the token: after a few wrong ones an address has to wait before its next is even looked at,
 * twice as long each time. Told in the log once an address, and at most once a minute. Bounded: of very many addresses the
 * ones that were longest quiet are forgotten.
 */
export class Attempts {
  readonly #clock: Clock;
  readonly #log: Logger;
  /** Those that were quiet the longest come first. */
  readonly #addresses = new Map<
    string,
    { readonly wrong: number; readonly lastAt: number; readonly nextAt: number }
  >();
  #saidAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  /** How long the next try of this address has to wait, in ms. */
  waitMs(address: string): number {
    return Math.max(0, (this.#addresses.get(networkOf(address))?.nextAt ?? 0) - this.#clock.now());
  }

  wrong(address: string): void {
    const now = this.#clock.now();
    const network = networkOf(address);
    const known = this.#addresses.get(network);
    const wrong = known !== undefined && now - known.lastAt < FORGET_MS ? known.wrong + 1 : 1;
    const waitMs = wrong > FREE ? Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (wrong - FREE - 1)) : 0;
    this.#addresses.delete(network);
    this.#addresses.set(network, { wrong, lastAt: now, nextAt: now + waitMs });
    const [quietest = network] = this.#addresses.keys();
    if (this.#addresses.size > MOST_ADDRESSES) this.#addresses.delete(quietest);
    if (wrong > 1 || now - this.#saidAt < SAY_AGAIN_MS) return;
    this.#saidAt = now;
    this.#log.warn(
      { event: 'token', address },
      `Somebody at ${address} gave a wrong token for the status page; more of them are slowed down.`,
    );
  }

  right(address: string): void {
    this.#addresses.delete(networkOf(address));
  }
}

/** Who has one IPv6 address has the 2^64 beside it too. */
function networkOf(address: string): string {
  if (!address.includes(':') || address.startsWith('::ffff:')) return address;
  const [before = [], after = []] = address.split('::').map((half) => half.split(':').filter(Boolean));
  const zeros = Array.from({ length: Math.max(0, 8 - before.length - after.length) }, () => '0');
  return [...before, ...zeros, ...after].slice(0, 4).join(':');
}
