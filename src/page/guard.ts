import { createHmac, randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { httpStatusOf } from '../api/protocol.js';
import { isLoopback, type Listen } from '../config/url.js';
import type { Clock } from '../lib/clock.js';
import { pageInPackage } from '../lib/documentation.js';
import { type ErrorTable, PeersyncError, tableError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { Live } from '../report/live.js';
import type { State } from '../state/state.js';
import { isForeign, isRight, isSame } from '../web/server.js';

/** The body of every error: one sentence that says what happened, and one that says what to do. */
export interface ApiError {
  readonly error: { readonly code: string; readonly message: string; readonly hint: string };
}

const ERRORS = {
  TOKEN_NEEDED: {
    status: 401,
    message: 'This page needs its token.',
    hint: 'Sign in at /sign-in, or send "Authorization: Bearer TOKEN". {where}',
  },
  TOKEN_WRONG: {
    status: 401,
    message: 'That is not the token of this page.',
    hint: 'Look whether a space came along. {where}',
  },
  FOREIGN_HOST: {
    status: 403,
    message: 'The page was asked for by a name that is not its own.',
    hint: 'Use the address in status.listen; behind another name the page needs a status.token.',
  },
  FOREIGN_ORIGIN: {
    status: 403,
    message: 'The request came from a page of another origin.',
    hint: 'Use the status page itself, or a program that sends no Origin.',
  },
  NOT_JSON: {
    status: 403,
    message: 'A request to change something has to be JSON.',
    hint: 'Send "Content-Type: application/json" and a body, {} where there is nothing to say.',
  },
  TOO_LARGE: {
    status: 413,
    message: 'The request is too large.',
    hint: 'Name fewer paths at a time; up to 64 KiB are taken.',
  },
  BAD_REQUEST: {
    status: 400,
    message: 'The request could not be understood.',
    hint: `See "Monitoring" in ${pageInPackage('src/report/README.md')} for what can be asked.`,
  },
  NOT_FOUND: {
    status: 404,
    message: 'There is nothing at this address.',
    hint: 'The status page is at /.',
  },
  TOO_MANY_FOLLOWERS: {
    status: 503,
    message: 'Too many browsers follow this page already.',
    hint: 'Close one of them; a new try comes by itself.',
  },
  FAILED: {
    status: 500,
    message: 'Something went wrong inside peersync.',
    hint: 'See its log.',
  },
} as const satisfies ErrorTable;

/** Thrown when the server of the status page refuses a request. */
export class PageError extends tableError(ERRORS) {}

/** Any error as an answer, without a word of where in the program it arose. */
export function answerOf(error: unknown): { readonly status: number; readonly body: ApiError } {
  const known = error instanceof PeersyncError ? error : frameworkError(error);
  const { code, hint, message } = known;
  const status = (known instanceof PageError ? known.status : undefined) ?? httpStatusOf(known);
  return { status, body: { error: { code, message, hint } } };
}

/** Returns a refusal of Fastify as an error of the page. Any other error is a bug of ours. */
function frameworkError(error: unknown): PageError {
  const status = Number(error instanceof Error && 'statusCode' in error ? error.statusCode : 500);
  if (status === 413) return new PageError('TOO_LARGE', {}, { cause: error });
  if (status === 415) return new PageError('NOT_JSON', {}, { cause: error });
  const code = status >= 400 && status < 500 ? 'BAD_REQUEST' : 'FAILED';
  return new PageError(code, {}, { cause: error });
}

/** Returns the route of a request or, without a route, its path without the query. */
function pathOf({ routeOptions, url }: FastifyRequest): string {
  return routeOptions.url ?? url.replace(/\?.*/s, '');
}

/** The interval between two log lines about wrong tokens, in ms. */
const LOG_AGAIN_MS = 60_000;
/** The lifetime of a session, in ms. */
const SESSION_MS = 30 * 86_400_000;
const ENDED_META = 'endedSessions';
/**
 * The number of ended sessions that are remembered. Only someone with the token can create
 * sessions.
 */
const MAX_ENDED = 1_000;

/**
 * Admits requests to the page.
 *
 * With a token, it admits requests that carry the token, or a session that was begun with it. The
 * files of the page and its liveness are public. Without a token, it admits only requests for host
 * names that cannot belong to another page: a page on the web can point its own name at this
 * machine, and then send requests as if they came from ours (DNS rebinding).
 *
 * In both cases only the page itself can change anything: a browser names the origin of a request.
 *
 * A session consists of its end, a random name and a signature that needs the token. It survives a
 * restart, and a new token ends all sessions. The cookie does not contain the token, and does not
 * help to guess it. The names of sessions that were signed out are remembered until they would have
 * ended.
 */
export class Guard {
  readonly #token: string | undefined;
  readonly #key: Buffer;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #address: () => Listen;
  readonly #ended: EndedSessions;
  #loggedAt = Number.NEGATIVE_INFINITY;

  /** A sentence that says where the token is. */
  readonly #where: string;

  /**
   * @param token undefined if every request is admitted
   * @param where a sentence that says where the token is
   * @param address returns the address on which the server listens
   */
  constructor(
    token: string | undefined,
    where: string,
    { clock, log, parts }: Pick<Live, 'clock' | 'log' | 'parts'>,
    address: () => Listen,
  ) {
    this.#ended = new EndedSessions(parts.state);
    this.#token = token;
    this.#where = where;
    this.#key = createHmac('sha256', token ?? '')
      .update('peersync status page session')
      .digest();
    this.#clock = clock;
    this.#log = log;
    this.#address = address;
  }

  get hasToken(): boolean {
    return this.#token !== undefined;
  }

  /** @throws PageError */
  async check(request: FastifyRequest): Promise<void> {
    const { headers, method } = request;
    const path = pathOf(request);
    if (this.#token === undefined) this.#checkHost(request);
    else if (path !== '/healthz' && path !== '/sign-in' && !path.startsWith('/assets/'))
      await this.#checkToken(request);
    if (method !== 'GET' && method !== 'HEAD') checkOrigin(request);
    else if (
      path.startsWith('/api/') &&
      /^(cross|same)-site$/.test(text(headers['sec-fetch-site']))
    )
      // Another page cannot read the answer, but it could have it computed again and again.
      throw new PageError('FOREIGN_ORIGIN', {});
  }

  /** Returns whether a token is the right one. Wrong tokens are logged at most once a minute. */
  async isRightToken(address: string, offered: string): Promise<boolean> {
    const isIn = this.#token !== undefined && (await isRight(offered, this.#token, this.#clock));
    const now = this.#clock.now();
    if (!isIn && now - this.#loggedAt >= LOG_AGAIN_MS) {
      this.#loggedAt = now;
      const message = `Somebody at ${address} gave a wrong token for the status page; guesses are slowed down.`;
      this.#log.warn({ event: 'token', address }, message);
    }
    return isIn;
  }

  /** Returns the header `set-cookie` for a new session. */
  newSession(headers: IncomingHttpHeaders): string {
    const session = `${this.#clock.now() + SESSION_MS}-${randomBytes(12).toString('hex')}`;
    return this.#cookie(headers, `${session}.${this.#sign(session)}`, SESSION_MS / 1_000);
  }

  /**
   * Ends the session of a browser. The cookie of the session is enough for that.
   *
   * @returns the header `set-cookie` for the answer, once the end is on disk
   * @throws PeersyncError STATE_FULL if the session is ended, but that is not on disk yet
   */
  async endSession(headers: IncomingHttpHeaders): Promise<string> {
    await this.#ended.add(this.#sessionsOf(headers), this.#clock.now());
    return this.#cookie(headers, '', 0);
  }

  /** Returns whether a request was admitted by a session that has ended since. */
  isSignedOut({ headers }: FastifyRequest): boolean {
    return (
      this.#token !== undefined && !headers.authorization && this.#sessionsOf(headers).length === 0
    );
  }

  /**
   * Behind a TLS proxy, the cookie has a name that browsers accept only over TLS. Cookies ignore
   * ports, so the name contains the port: each instance on a machine needs its own.
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

  /** The sessions that a browser shows, and that are not over. */
  #sessionsOf(headers: IncomingHttpHeaders): readonly string[] {
    return text(headers.cookie)
      .split(';')
      .flatMap((pair) => {
        const [name = '', value = ''] = pair.trim().split('=');
        const [session = '', signature = ''] = value.split('.');
        const isOurs = name === this.#cookieName || name === `__Host-${this.#cookieName}`;
        if (!isOurs || !isSame(signature, this.#sign(session))) return [];
        return endOf(session) > this.#clock.now() && !this.#ended.has(session) ? [session] : [];
      });
  }

  #checkHost({ headers }: FastifyRequest): void {
    const listen = this.#address();
    const own = listen.host.includes(':') ? `[${listen.host}]` : listen.host;
    const names = isLoopback(listen) ? [own, 'localhost', '127.0.0.1', '[::1]'] : [own];
    const host = text(headers.host).toLowerCase();
    const isOwn = names.some(
      (name) => host === `${name}:${listen.port}` || (listen.port === 80 && host === name),
    );
    if (!isOwn) throw new PageError('FOREIGN_HOST', {});
  }

  async #checkToken({ headers, ip }: FastifyRequest): Promise<void> {
    if (this.#sessionsOf(headers).length > 0) return;
    const bearer = /^Bearer +(.+)$/i.exec(text(headers.authorization))?.[1];
    if (bearer === undefined) throw new PageError('TOKEN_NEEDED', { where: this.#where });
    // Node decodes header bytes as latin1.
    if (!(await this.isRightToken(ip, Buffer.from(bearer, 'latin1').toString())))
      throw new PageError('TOKEN_WRONG', { where: this.#where });
  }
}

/** When a session ends by itself, in ms since the epoch. */
function endOf(session: string): number {
  return Number(session.split('-', 1)[0]);
}

/** Names of sessions that were signed out before their end. */
class EndedSessions {
  constructor(private readonly state: Pick<State, 'meta' | 'setMeta' | 'commit'>) {}

  has(session: string): boolean {
    return this.#names.includes(session);
  }

  async add(sessions: readonly string[], now: number): Promise<void> {
    const others = this.#names.filter((name) => endOf(name) > now).slice(-MAX_ENDED);
    this.state.setMeta(ENDED_META, [...others, ...sessions]);
    await this.state.commit('person');
  }

  get #names(): readonly string[] {
    const names = this.state.meta(ENDED_META);
    return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [];
  }
}

function checkOrigin(request: FastifyRequest): void {
  const { headers } = request;
  // The sign-in form is a page of its own without a script. Sent from another page, it could sign
  // in only someone who knows the token.
  const isSignIn = pathOf(request) === '/sign-in';
  if (isForeign(isSignIn ? { 'sec-fetch-site': headers['sec-fetch-site'] } : headers))
    throw new PageError('FOREIGN_ORIGIN', {});
  if (!isSignIn && !/^application\/json\s*(;|$)/i.test(text(headers['content-type'])))
    throw new PageError('NOT_JSON', {});
}

function text(value: string | readonly string[] | undefined): string {
  return typeof value === 'string' ? value : (value?.[0] ?? '');
}
