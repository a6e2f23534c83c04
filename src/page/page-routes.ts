import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../lib/clock.js';
import type { Asset } from './assets.js';
import { PageError } from './errors.js';
import { type Guard, isByTls } from './guard.js';
import { SESSION_MS, type Tokens } from './tokens.js';

export interface PageRoutesParts {
  readonly assets: ReadonlyMap<string, Asset>;
  readonly guard: Guard;
  readonly tokens: Tokens | undefined;
  readonly clock: Clock;
}

const LARGEST_FORM = 8 * 1024;

/** For where the page was not built with its own. */
const PLAIN_SIGN_IN = `<!doctype html><html lang="en"><meta charset="utf-8"><title>peersync: sign in</title>
<main><h1>peersync</h1><form method="post" action="/sign-in"><label>Token <input type="password" name="token" autocomplete="current-password" required></label> <button>Sign in</button></form></main></html>`;

/**
 * Leads on to the page from within it: a browser that came here by a link from elsewhere would not send its new session along
 * with a redirect.
 */
const SIGNED_IN = `<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/"><title>peersync</title>
<p>You are signed in. <a href="/">Go on to the page.</a></p></html>`;

/** The page itself, its files, and the way in. */
export function pageRoutes(app: FastifyInstance, { assets, guard, tokens, clock }: PageRoutesParts): void {
  app.get('/', async (request, reply) => {
    if ('token' in (request.query as object)) return await reply.redirect('/', 303);
    return await sendAsset(request, reply, assets.get('index.html'));
  });

  app.get('/assets/:name', async (request, reply) => {
    const { name } = request.params as { readonly name: string };
    return await sendAsset(request, reply, name.endsWith('.html') ? undefined : assets.get(name));
  });

  app.get('/favicon.ico', async (request, reply) => {
    return await sendAsset(request, reply, assets.get('favicon.ico') ?? assets.get('favicon.svg'));
  });

  app.get('/sign-in', async (request, reply) => {
    if (tokens === undefined) return await reply.redirect('/', 303);
    return await sendAsset(request, reply, assets.get('sign-in.html') ?? plainSignIn());
  });

  app.register(async (scope) => {
    scope.addContentTypeParser(
      'application/x-www-form-urlencoded',
      { parseAs: 'string', bodyLimit: LARGEST_FORM },
      (_request, body, done) => done(null, Object.fromEntries(new URLSearchParams(String(body)))),
    );
    scope.post('/sign-in', async (request, reply) => {
      if (tokens === undefined) return await reply.redirect('/', 303);
      const { token } = (request.body ?? {}) as { readonly token?: unknown };
      if (!enter(request, reply, typeof token === 'string' ? token : '')) return reply;
      return await reply.redirect('/', 303);
    });
  });

  app.post('/sign-out', async (request, reply) => {
    reply.header('set-cookie', sessionCookie(request, '', 0));
    return {};
  });

  /** A link with the token in it is the way in for who does not want to type it. */
  app.addHook('onRequest', async (request, reply) => {
    if (tokens === undefined || request.method !== 'GET' || request.routeOptions.url !== '/') return;
    const { token } = request.query as { readonly token?: unknown };
    if (typeof token !== 'string' || !isFollowed(request)) return;
    if (enter(request, reply, token)) reply.type('text/html; charset=utf-8').send(SIGNED_IN);
    return reply;
  });

  function enter(request: FastifyRequest, reply: FastifyReply, token: string): boolean {
    try {
      guard.admit(request.ip, token);
    } catch (error) {
      if (!(error instanceof PageError)) throw error;
      reply.redirect(error.code === 'TOO_MANY_TRIES' ? '/sign-in#later' : '/sign-in#wrong', 303);
      return false;
    }
    const session = tokens?.newSession(clock.now()) ?? '';
    reply.header('set-cookie', sessionCookie(request, session, SESSION_MS / 1000));
    return true;
  }

  function sessionCookie({ headers }: FastifyRequest, value: string, seconds: number): string {
    if (!isByTls(headers)) return cookie(guard.cookieName, value, seconds);
    return `${cookie(guard.secureCookieName, value, seconds)}; Secure`;
  }
}

/** As a picture of its own, another page could have wrong tokens tried until nobody at this address is let in. */
function isFollowed({ headers }: FastifyRequest): boolean {
  const what = headers['sec-fetch-dest'];
  return what === undefined || what === 'document';
}

async function sendAsset(
  request: FastifyRequest,
  reply: FastifyReply,
  asset: Asset | undefined,
): Promise<FastifyReply> {
  if (asset === undefined) throw new PageError('NOT_FOUND');
  // Names do not change with what is in a file: a browser asks whether it did.
  reply.header('cache-control', 'no-cache').header('etag', asset.etag);
  if (request.headers['if-none-match'] === asset.etag) return await reply.code(304).send();
  return await reply.type(asset.type).send(asset.body);
}

function plainSignIn(): Asset {
  const body = Buffer.from(PLAIN_SIGN_IN);
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  return { body, type: 'text/html; charset=utf-8', etag };
}

function cookie(name: string, value: string, seconds: number): string {
  return `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict`;
}
