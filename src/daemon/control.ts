import { join } from 'node:path';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { cannotAsk } from '../api/client.js';
import { CONTROL_DIRECTORY, CONTROL_SOCKET, httpStatusOf } from '../api/protocol.js';
import { type Answerer, REQUESTS } from '../api/requests.js';
import { badRequest, messageOf, PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { listenInPrivate } from '../lib/socket.js';
import { sentence } from '../lib/text.js';
import type { WebLimits } from '../web/server.js';

/** Only this user connects, so the limits only bound memory. */
const LIMITS: WebLimits = { head: 16 * 1024, headMs: 60_000, connections: 2_000 };
/** A question may name as many paths as a command line holds. */
const MAX_BODY = 16 * 1024 * 1024;

/**
 * Answers commands on a socket below the state directory, which only the daemon's own user can
 * reach. It has the routes of the status page's API, and those of all other requests, without the
 * guard of the page. The caller holds the lock of the state, so a socket that a crash left is
 * replaced.
 *
 * @returns a function that ends that
 */
export async function openControl(
  stateDirectory: string,
  answer: Answerer,
  log: Logger,
): Promise<() => Promise<void>> {
  // Fastify is a CommonJS package. It is loaded first, because Node 20 may give modules that import
  // it at the same time an empty one.
  await import('fastify');
  const [{ requestRoutes }, { webServer }] = await Promise.all([
    import('../api/requests.js'),
    import('../web/server.js'),
  ]);
  const app = webServer(LIMITS, { bodyLimit: MAX_BODY, forceCloseConnections: true });
  app.setErrorHandler((error, request, reply) => sendError(error, request, reply, log));
  app.setNotFoundHandler(({ url }) => {
    throw new PeersyncError({
      code: 'UNKNOWN_QUESTION',
      message: `The daemon does not know the request ${url.replace(/^\/api\//, '')}.`,
      hint: 'Use the command of the same version as the daemon.',
    });
  });
  requestRoutes(app, REQUESTS, answer);
  await app.ready();
  const directory = join(stateDirectory, CONTROL_DIRECTORY);
  const socket = await listenInPrivate(app.server, directory, CONTROL_SOCKET);
  return async () => {
    const closed = app.close();
    app.server.closeAllConnections();
    await closed;
    await socket.close();
  };
}

const NO_QUESTION = 'Send the question as JSON, {} if there are no parameters.';

function sendError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  log: Logger,
): FastifyReply {
  const { status, shown } = answerTo(error);
  if (status === 500)
    log.error({ err: error, route: request.routeOptions.url }, 'A request failed.');
  const { code, message, hint, exitCode } = shown;
  return reply.code(status).send({ error: { code, message, hint, exitCode } });
}

/** Returns the error that the client gets, and the HTTP status. */
function answerTo(error: unknown): { readonly status: number; readonly shown: PeersyncError } {
  if (error instanceof PeersyncError) return { status: httpStatusOf(error), shown: error };
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 500;
  if (status < 400 || status >= 500) return { status: 500, shown: cannotAsk(error) };
  // Fastify refuses a body that is too large, or not JSON.
  return { status, shown: badRequest('BAD_REQUEST', sentence(messageOf(error)), NO_QUESTION) };
}
