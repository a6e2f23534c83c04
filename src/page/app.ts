import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import mime from 'mime';
import type { Listen } from '../config/url.js';
import { systemCode } from '../lib/errors.js';
import { jsonWithConfig } from '../lib/hint.js';
import type { Logger } from '../lib/logger.js';
import { VERSION } from '../lib/process.js';
import { readyReasons } from '../report/conditions.js';
import type { Live } from '../report/live.js';
import { escapeMarkup } from '../web/markup.js';
import { type WebLimits, webServer } from '../web/server.js';
import { apiRoutes, Followers, type PageDeps } from './api.js';
import { answerOf, Guard, PageError } from './guard.js';
import type { Metrics } from './metrics.js';

interface AppOptions {
  /** Undefined if the page needs no token. */
  readonly token: string | undefined;
  /** A sentence that says where the token is; empty without a token. */
  readonly tokenPlace: string;
  /** Returns the address on which the server listens. */
  readonly address: () => Listen;
  readonly metrics: Metrics;
}

const LARGEST_BODY = 64 * 1024;
const LARGEST_FORM = 8 * 1024;
/** The head holds a path of 4 KiB, each byte of it escaped, and some more. */
const LIMITS: WebLimits = { head: 32 * 1024, headMs: 10_000, connections: 256 };
const LONGEST_URL = 16 * 1024;
/** The longest time in which a request must arrive, in ms. */
const REQUEST_MS = 30_000;
const IDLE_MS = 15_000;

/**
 * The page loads only its own files. Styles set by a script do not count as styles of the document.
 */
const HEADERS = {
  'content-security-policy':
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
} as const;

/**
 * Leads on to the page from within it: a browser that came here by a link from elsewhere would not
 * send its new session along with a redirect.
 */
const SIGNED_IN = `<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/"><title>peersync</title>
<p>You are signed in. <a href="/">Go on to the page.</a></p></html>`;

/** The server of the status page, with all its routes; it does not listen yet. */
export async function pageApp(deps: PageDeps, options: AppOptions): Promise<FastifyInstance> {
  const { log } = deps.live;
  const guard = new Guard(options.token, options.tokenPlace, deps.live, options.address);
  const assets = await readAssets(deps.assetsDirectory);
  const fail = (error: unknown, request: FastifyRequest, reply: FastifyReply) =>
    sendError(error, request, reply, { log, notFound: assets.get('not-found.html') });
  const app = webServer(LIMITS, {
    bodyLimit: LARGEST_BODY,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: IDLE_MS,
    forceCloseConnections: true,
    // Requests that Fastify refuses before it looks for a route pass no hook.
    frameworkErrors: (error, request, reply) => void fail(error, request, reply.headers(HEADERS)),
  });
  app.setReplySerializer((answer) => jsonWithConfig(answer, deps.live.configFile));
  app.removeContentTypeParser('text/plain');
  app.setErrorHandler((error, request, reply) => void fail(error, request, reply));
  app.setNotFoundHandler(() => {
    throw new PageError('NOT_FOUND', {});
  });
  app.addHook('onRequest', async (request, reply) => {
    const { ip: address, method, routeOptions, url } = request;
    reply.headers(HEADERS);
    log.debug({ method, route: routeOptions.url, address }, 'page request');
    if (url.length > LONGEST_URL) throw new PageError('TOO_LARGE', {});
    if (isLinkWithToken(request) && guard.hasToken) return;
    await guard.check(request);
  });
  const followers = new Followers();
  pageRoutes(app, guard, followers, assets, options.tokenPlace);
  apiRoutes(app, deps, followers);
  monitorRoutes(app, deps.live, () => followers.size, options.metrics);
  return app;
}

/** The page itself, its files, and the way in. */
function pageRoutes(
  app: FastifyInstance,
  guard: Guard,
  followers: Followers,
  assets: ReadonlyMap<string, Asset>,
  tokenPlace: string,
): void {
  const signIn = filled(
    assets.get('sign-in.html'),
    '{token place}',
    escapeMarkup(tokenPlace).replace(/`([^`]+)`/g, '<code>$1</code>'),
  );
  app.get('/', async (request, reply) => {
    const { token } = request.query as { readonly token?: unknown };
    // A link with the token signs in without typing it.
    if (isLinkWithToken(request) && guard.hasToken) {
      const isIn = await isAdmitted(guard, request, reply, String(token));
      return isIn ? reply.type('text/html; charset=utf-8').send(SIGNED_IN) : reply;
    }
    return token === undefined
      ? sendAsset(request, reply, assets.get('index.html'))
      : reply.redirect('/', 303);
  });

  app.get('/assets/:name', (request, reply) => {
    const { name } = request.params as { readonly name: string };
    return sendAsset(request, reply, name.endsWith('.html') ? undefined : assets.get(name));
  });

  app.get('/favicon.ico', (request, reply) =>
    sendAsset(request, reply, assets.get('favicon-ok.svg')),
  );

  app.get('/sign-in', (request, reply) =>
    guard.hasToken ? sendAsset(request, reply, signIn) : reply.redirect('/', 303),
  );

  // The guard lets no other route have a form.
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: LARGEST_FORM },
    (_request, body, done) => done(null, new URLSearchParams(String(body))),
  );
  app.post('/sign-in', async (request, reply) => {
    const { body } = request;
    const token = body instanceof URLSearchParams ? (body.get('token') ?? '') : '';
    if (guard.hasToken && !(await isAdmitted(guard, request, reply, token))) return reply;
    return reply.redirect('/', 303);
  });

  app.post('/sign-out', async ({ headers }, reply) => {
    const ended = guard.endSession(headers);
    followers.endIf((request) => guard.isSignedOut(request));
    reply.header('set-cookie', await ended);
    return {};
  });
}

/**
 * Returns whether a request is a link with the token that a person followed. A picture or another
 * resource that a foreign page embeds is no attempt to sign in.
 */
function isLinkWithToken({ headers, method, query, routeOptions }: FastifyRequest): boolean {
  const what = headers['sec-fetch-dest'];
  const isFollowed = what === undefined || what === 'document';
  const { token } = query as { readonly token?: unknown };
  return method === 'GET' && routeOptions.url === '/' && isFollowed && typeof token === 'string';
}

/** Begins a session where the token is the right one; else leads to where it can be given. */
async function isAdmitted(
  guard: Guard,
  { headers, ip }: FastifyRequest,
  reply: FastifyReply,
  token: string,
): Promise<boolean> {
  const isIn = await guard.isRightToken(ip, token);
  if (isIn) reply.header('set-cookie', guard.newSession(headers));
  else reply.redirect('/sign-in#wrong', 303);
  return isIn;
}

/** The routes for monitoring: `/metrics`, `/healthz`, `/readyz`. */
function monitorRoutes(
  app: FastifyInstance,
  live: Live,
  followers: () => number,
  metrics: Metrics,
): void {
  app.get('/metrics', async ({ headers }, reply) => {
    const { type, text } = await metrics.write(headers.accept, followers());
    return reply.type(type).send(text);
  });

  app.get('/healthz', async (_request, reply) => {
    // The process is not worth keeping when something stands still that nothing keeps.
    const reasons = live.status().conditions.filter(({ code }) => code === 'STUCK');
    reply.code(reasons.length === 0 ? 200 : 503);
    const upMs = live.clock.now() - live.startedAt;
    return { alive: reasons.length === 0, version: VERSION, upMs, reasons };
  });

  app.get('/readyz', async (_request, reply) => {
    const reasons = await readyReasons(live.status(), live.current.config.state.dir);
    reply.code(reasons.length === 0 ? 200 : 503);
    return { ready: reasons.length === 0, reasons };
  });
}

function sendAsset(
  request: FastifyRequest,
  reply: FastifyReply,
  asset: Asset | undefined,
): FastifyReply {
  if (asset === undefined) throw new PageError('NOT_FOUND', {});
  // The names of assets stay when their content changes, so a browser revalidates them.
  reply.header('cache-control', 'no-cache').header('etag', asset.etag);
  if (request.headers['if-none-match'] === asset.etag) return reply.code(304).send();
  return reply.type(asset.type).send(asset.body);
}

interface ErrorDeps {
  readonly log: Logger;
  /** The page for an address that there is not. */
  readonly notFound: Asset | undefined;
}

function sendError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  { log, notFound }: ErrorDeps,
): FastifyReply {
  const { status, body } = answerOf(error);
  const { code } = body.error;
  if (code === 'FAILED')
    log.error({ err: error, route: request.routeOptions.url }, 'The status page failed.');
  // A browser that comes without a session is led to where it gets one.
  const isPerson = request.method === 'GET' && /\btext\/html\b/i.test(request.headers.accept ?? '');
  const isPage = isPerson || request.routeOptions.url === '/';
  if (isPage && code === 'TOKEN_NEEDED') return reply.redirect('/sign-in', 303);
  if (isPerson && code === 'NOT_FOUND' && notFound !== undefined)
    return reply.code(status).type(notFound.type).send(notFound.body);
  if (status === 401) reply.header('www-authenticate', 'Bearer realm="peersync"');
  if (status === 503) reply.header('retry-after', '30');
  return reply.code(status).type('application/json; charset=utf-8').send(body);
}

/** A file of the page as it is sent. */
interface Asset {
  readonly body: Buffer;
  readonly type: string;
  readonly etag: string;
}

/** A page with this text in the place of that one. */
function filled(page: Asset | undefined, place: string, text: string): Asset | undefined {
  return page && assetOf(page.type, Buffer.from(page.body.toString().replace(place, () => text)));
}

function assetOf(type: string, body: Buffer): Asset {
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  return { body, type, etag };
}

/** The files of the page's directory that a browser may get. The others are for the build. */
const SENT = /\.(css|html|js|svg)$/;
const BROWSER_DIRECTORY = fileURLToPath(new URL('../page/browser/', import.meta.url));

/**
 * Reads everything that a browser may get, once: a request chooses from this list and never names a
 * file on disk.
 *
 * @param directory of the page as the build left it
 * @returns by name: `index.html`, `style.css`; empty where the page was not built
 */
async function readAssets(directory = BROWSER_DIRECTORY): Promise<ReadonlyMap<string, Asset>> {
  const names = await readdir(directory).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  });
  const paths = names.filter((name) => SENT.test(name)).map((name) => join(directory, name));
  const assets = paths.map(async (path): Promise<[string, Asset]> => {
    return [basename(path), assetOf(`${mime.getType(path)}; charset=utf-8`, await readFile(path))];
  });
  return new Map(await Promise.all(assets));
}
