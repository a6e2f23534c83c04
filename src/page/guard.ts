import { isLoopback, type Listen } from '../config/listen.js';
import type { Clock } from '../lib/clock.js';
import type { Attempts } from './attempts.js';
import { PageError } from './errors.js';
import type { Tokens } from './tokens.js';

/** What the guard looks at of a request. Header names are in lower case. */
export interface Visitor {
  readonly method: string;
  /** The route, or what was asked for where there is none; without its query. */
  readonly path: string;
  readonly address: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

export interface GuardParts {
  /** Undefined where everybody who reaches the page is let in. */
  readonly tokens: Tokens | undefined;
  readonly attempts: Attempts;
  readonly clock: Clock;
  /** Where the server really listens. */
  readonly address: () => Listen;
}

/**
 * Decides who gets in.
 *
 * With a token: who shows it, or a session that was begun with it. The files of the page are no secret, nor is that the
 * daemon is alive. Without one only names that cannot belong to somebody else's page are answered to: a page of the web
 * may let its own name lead to this machine, and then ask here as if it were ours.
 *
 * With and without, only the page itself changes anything: a browser says where a request comes from.
 */
export class Guard {
  readonly #parts: GuardParts;

  constructor(parts: GuardParts) {
    this.#parts = parts;
  }

  /** Cookies do not know ports: each instance on a machine needs a name of its own. */
  get cookieName(): string {
    return `peersync_${this.#parts.address().port}`;
  }

  /** Where the browser asks by TLS, which a server in front of this one tells; a name that browsers take by TLS alone. */
  get secureCookieName(): string {
    return `__Host-${this.cookieName}`;
  }

  /** @throws PageError */
  check(visitor: Visitor): void {
    const { tokens } = this.#parts;
    if (tokens === undefined) this.#checkHost(visitor);
    else if (!isOpen(visitor.path)) this.#checkToken(visitor, tokens);
    if (visitor.method !== 'GET' && visitor.method !== 'HEAD') checkOrigin(visitor);
    else if (visitor.path.startsWith('/api/')) checkSite(visitor);
  }

  /**
   * Looks at a token.
   *
   * @throws PageError TOO_MANY_TRIES without having looked; TOKEN_WRONG
   */
  admit(address: string, token: string): void {
    const { attempts, tokens } = this.#parts;
    if (attempts.waitMs(address) > 0) throw new PageError('TOO_MANY_TRIES');
    if (tokens?.isToken(token) === true) {
      attempts.right(address);
      return;
    }
    attempts.wrong(address);
    throw new PageError('TOKEN_WRONG');
  }

  #checkHost({ headers }: Visitor): void {
    const host = text(headers.host).toLowerCase();
    if (!this.#ownNames().has(host)) throw new PageError('FOREIGN_HOST');
  }

  #ownNames(): ReadonlySet<string> {
    const listen = this.#parts.address();
    const own = listen.host.includes(':') ? `[${listen.host}]` : listen.host;
    const names = isLoopback(listen) ? [own, 'localhost', '127.0.0.1', '[::1]'] : [own];
    return new Set(
      names.flatMap((name) => [`${name}:${listen.port}`, ...(listen.port === 80 ? [name] : [])]),
    );
  }

  #checkToken({ headers, address }: Visitor, tokens: Tokens): void {
    const now = this.#parts.clock.now();
    const all = cookies(text(headers.cookie));
    const sessions = [all.get(this.secureCookieName), all.get(this.cookieName)];
    if (sessions.some((session) => session !== undefined && tokens.isSession(session, now))) return;
    const bearer = /^Bearer +(.+)$/i.exec(text(headers.authorization))?.[1];
    if (bearer === undefined) throw new PageError('TOKEN_NEEDED');
    // What a header holds beyond ASCII comes byte by byte.
    this.admit(address, Buffer.from(bearer, 'latin1').toString());
  }
}

/** Whether a server in front of this one was asked by TLS. Who says so of itself only gets a cookie that is kept closer. */
export function isByTls(headers: Visitor['headers']): boolean {
  return /^https(,|$)/i.test(text(headers['x-forwarded-proto']).trim());
}

function isOpen(path: string): boolean {
  return path === '/healthz' || path === '/sign-in' || path.startsWith('/assets/');
}

/** A program that is no browser says nothing of where its request comes from, and cannot be made to send one by a page. */
function checkOrigin({ headers, path }: Visitor): void {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin') throw new PageError('FOREIGN_ORIGIN');
  if (path === '/sign-in') return;
  const { origin } = headers;
  // A proxy may ask by another name than the browser does, so the browser's own word goes first.
  if (site === undefined && origin !== undefined && hostOf(text(origin)) !== text(headers.host).toLowerCase())
    throw new PageError('FOREIGN_ORIGIN');
  if (!/^application\/json\s*(;|$)/i.test(text(headers['content-type']))) throw new PageError('NOT_JSON');
}

/** Another page could not read the answer, but have it made again and again. */
function checkSite({ headers }: Visitor): void {
  const site = headers['sec-fetch-site'];
  if (site === 'cross-site' || site === 'same-site') throw new PageError('FOREIGN_ORIGIN');
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined;
}

function cookies(header: string): ReadonlyMap<string, string> {
  return new Map(
    header.split(';').map((pair) => {
      const at = pair.indexOf('=');
      return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()] as const;
    }),
  );
}

function text(value: string | readonly string[] | undefined): string {
  return typeof value === 'string' ? value : (value?.[0] ?? '');
}
