import type { OutgoingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Config } from '../config/config.js';
import type { Clock } from '../lib/clock.js';
import type { MirrorReport } from '../mirror/record.js';
import type { Answerer } from '../report/answers.js';
import { LISTED_STATUSES } from '../report/list.js';
import type { Live } from '../report/live.js';
import { listFilter } from '../report/parameters.js';
import type { StatusReport } from '../report/status.js';
import type { WhyReport } from '../report/why.js';
import type { State } from '../state/state.js';
import type { ScanReport } from '../watch/watcher.js';
import type { ItemsPage, MirrorsAnswer, PauseAnswer, RescanAnswer, RetryAnswer } from './api.js';
import { PageError } from './errors.js';
import { isReallyInside, namedPath, outside } from './explained.js';
import type { Followers } from './followers.js';
import { itemsPage } from './items.js';

export interface ApiParts {
  readonly current: { readonly config: Config };
  readonly state: State;
  readonly live: Live;
  status(): StatusReport;
  /** What the commands are answered with: the page does nothing in another way. */
  readonly ask: Answerer;
  readonly followers: Followers;
  readonly clock: Clock;
}

const DEFAULT_LIMIT = 100;
const MOST_ITEMS = 500;
const MOST_NAMED = 1_000;
const LONGEST_PAUSE_MS = 366 * 86_400_000;

/** The routes below `/api`. */
export function apiRoutes(
  app: FastifyInstance,
  { current, state, live, status, ask, followers, clock }: ApiParts,
): void {
  app.get('/api/status', async () => status());

  app.get('/api/live', { exposeHeadRoute: false }, async (_request, reply) => {
    // Behind an answer that has not ended it would hear nothing, not even that its connection is closed.
    if (reply.raw.socket === null)
      throw new PageError('BAD_REQUEST', { message: 'To follow takes a connection of its own.' });
    const end = followers.admit();
    reply.hijack();
    await followers.serve(reply.raw, end, reply.getHeaders() as OutgoingHttpHeaders);
  });

  app.get('/api/why', async (request): Promise<WhyReport> => {
    const path = namedPath(parameter(request, 'path') ?? '', current.config);
    if (!(await isReallyInside(path, current.config))) return outside(path);
    return await only<WhyReport>(ask({ ask: 'why', parameters: { path } }));
  });

  app.get('/api/items', async (request): Promise<ItemsPage> => {
    const asked = parameter(request, 'status');
    const wanted = LISTED_STATUSES.find((known) => known === asked);
    if (asked !== undefined && wanted === undefined) {
      throw new PageError('BAD_REQUEST', { message: `The status is one of ${LISTED_STATUSES.join(', ')}.` });
    }
    const { folder } = listFilter(current.config, { folder: parameter(request, 'folder') });
    const question = { status: wanted, folder, after: parameter(request, 'after'), limit: limitOf(request) };
    return await itemsPage(current.config, state, question, clock);
  });

  app.post('/api/retry', async (request): Promise<RetryAnswer> => {
    const { all, paths } = bodyOf(request);
    if (all !== true && paths === undefined) {
      throw new PageError('BAD_REQUEST', {
        message: 'Say what to retry: {"all": true} or {"paths": [...]}.',
      });
    }
    const parameters =
      all === true
        ? { all }
        : { paths: names(paths, 'paths').map((path) => namedPath(path, current.config)) };
    return await only<RetryAnswer>(ask({ ask: 'retry', parameters }));
  });

  app.post('/api/rescan', async (request): Promise<RescanAnswer> => {
    const { folder } = bodyOf(request);
    const parameters = folder === undefined ? {} : { folder };
    return { scans: await every<ScanReport>(ask({ ask: 'rescan', parameters })) };
  });

  app.post('/api/pause', async (request): Promise<PauseAnswer> => {
    const { forMs } = bodyOf(request);
    if (forMs !== undefined && !(typeof forMs === 'number' && forMs >= 1 && forMs <= LONGEST_PAUSE_MS)) {
      throw new PageError('BAD_REQUEST', { message: 'forMs is a number of milliseconds, up to a year.' });
    }
    await every(ask({ ask: 'pause', parameters: forMs === undefined ? {} : { forMs } }));
    return pauseAnswer(live);
  });

  app.post('/api/resume', async (): Promise<PauseAnswer> => {
    await every(ask({ ask: 'resume', parameters: {} }));
    return pauseAnswer(live);
  });

  app.post('/api/mirrors/run', async (request): Promise<MirrorsAnswer> => {
    const asked = bodyOf(request).names;
    const parameters = asked === undefined ? {} : { names: names(asked, 'names') };
    return { mirrors: await every<MirrorReport>(ask({ ask: 'mirror', parameters })) };
  });

  app.post('/api/mirrors/accept', async (request): Promise<MirrorsAnswer> => {
    const parameters = { names: names(bodyOf(request).names, 'names') };
    return { mirrors: await every<MirrorReport>(ask({ ask: 'mirror-accept', parameters })) };
  });
}

function pauseAnswer(live: Live): PauseAnswer {
  const { paused } = live.queue();
  return paused === undefined ? {} : { paused };
}

/** All lines of an answer. */
async function every<T>(lines: ReturnType<Answerer>): Promise<T[]> {
  const all: T[] = [];
  for await (const line of lines) all.push(line as T);
  return all;
}

/** The one line of an answer. */
async function only<T>(lines: ReturnType<Answerer>): Promise<T> {
  const [line] = await every<T>(lines);
  if (line === undefined) throw new PageError('FAILED');
  return line;
}

function parameter({ query }: FastifyRequest, name: string): string | undefined {
  const value = (query as Readonly<Record<string, unknown>>)[name];
  if (value === undefined || typeof value === 'string') return value;
  throw new PageError('BAD_REQUEST', { message: `The parameter ${name} can be given once.` });
}

function limitOf(request: FastifyRequest): number {
  const text = parameter(request, 'limit');
  if (text === undefined) return DEFAULT_LIMIT;
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= MOST_ITEMS) return limit;
  throw new PageError('BAD_REQUEST', { message: `The limit is a whole number from 1 to ${MOST_ITEMS}.` });
}

function bodyOf({ body }: FastifyRequest): Readonly<Record<string, unknown>> {
  if (typeof body === 'object' && body !== null && !Array.isArray(body))
    return body as Record<string, unknown>;
  throw new PageError('BAD_REQUEST', {
    message: 'The body is a JSON object, {} where there is nothing to say.',
  });
}

function names(value: unknown, what: string): readonly string[] {
  const isList = Array.isArray(value) && value.length > 0 && value.length <= MOST_NAMED;
  if (isList && value.every((each): each is string => typeof each === 'string')) return value;
  throw new PageError('BAD_REQUEST', {
    message: `"${what}" is a list of names as text, with 1 to ${MOST_NAMED} of them.`,
  });
}
