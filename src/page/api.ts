import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { MirrorReport } from '../mirror/record.js';
import type { QueueStatus } from '../queue/request-queue.js';
import type { Answerer, LiveFeed, Requests } from '../report/answers.js';
import type { Live } from '../report/status.js';
import type { ScanReport } from '../watch/watcher.js';
import { PageError } from './guard.js';

/*
 * What the server of the status page and the page in the browser say to each other. The browser
 * takes types only, so that nothing of the server comes into it with them. Times are ms since the
 * epoch.
 *
 * | request | answer |
 * | --- | --- |
 * | `GET /api/status` | `StatusReport` |
 * | `GET /api/live` | server-sent events: the event is a `LiveLine['kind']`, its data a `StatusReport`, `Sample[]` or `RecentEvent[]` |
 * | `GET /api/why?path=` | `WhyReport`, of an absolute path or of `FOLDER/path`, as lists and logs name files |
 * | `GET /api/items?status=&folder=&name=&after=&limit=` | `ItemsPage` |
 * | `POST /api/retry` | `RetryRequest` -> `RetryAnswer` |
 * | `POST /api/try` | `{}` -> `{}`; a peer in trouble is asked now |
 * | `POST /api/approve-deletes` | `ApproveDeletesRequest` -> `{}`; documents of removed files are removed from the peer |
 * | `POST /api/rescan` | `RescanRequest` -> `RescanAnswer`, when the scan is over |
 * | `POST /api/pause`, `POST /api/resume` | `PauseRequest`, `{}` -> `PauseAnswer` |
 * | `POST /api/mirrors/run`, `POST /api/mirrors/accept` | `MirrorsRequest` -> `MirrorsAnswer`, when they are done |
 * | `GET /sign-in`, `POST /sign-in` | the page `sign-in.html`, whose form sends the field `token` |
 * | `POST /sign-out` | `{}` -> `{}`; the session of this browser is over |
 *
 * A `POST` to the API has a body in JSON, `{}` where nothing is to be said. Every error has a
 * status from 400 up and is an `ApiError`. 401 says that a token is needed: go to `/sign-in`. A
 * wrong token leads back to `/sign-in#wrong`, so that the page can say so without a script
 * (`:target`). What is below `/assets/`, `/sign-in` itself and `/healthz` need no token.
 */

export type { ItemLine, ItemsPage } from '../report/items.js';
export type { ApiError } from './guard.js';
export type RetryRequest = Requests['retry'];
export type ApproveDeletesRequest = Requests['approve-deletes'];
export type RescanRequest = Requests['rescan'];
export type PauseRequest = Requests['pause'];
export type MirrorsRequest = Requests['mirror'];

export interface RetryAnswer {
  readonly retried: number;
  /** Files that were skipped or could not be read, and are looked at again. */
  readonly lookedAt: number;
}

export interface RescanAnswer {
  readonly scans: readonly ScanReport[];
}

export interface PauseAnswer {
  readonly paused?: NonNullable<QueueStatus['paused']>;
}

export interface MirrorsAnswer {
  readonly mirrors: readonly MirrorReport[];
}

export interface PageDeps {
  readonly live: Live;
  /** What the commands are answered with: the page does nothing in another way. */
  readonly ask: Answerer;
  readonly feed: LiveFeed;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Told where the page is, as soon as it is open or shut. */
  readonly onUrl?: ((url: string | undefined) => void) | undefined;
  /** Of the page as the build left it. @default beside this file */
  readonly assetsDirectory?: string;
}

/** So many browsers follow at a time. */
const MOST_FOLLOWERS = 32;
/**
 * Who has not read what was sent for so long is not there any more, in ms; a status is sent every
 * 15 s.
 */
const SLOW_MS = 30_000;

/** The browsers that follow the page at the moment, each with the request that it began by. */
export class Followers {
  readonly #all = new Map<AbortController, FastifyRequest>();

  get size(): number {
    return this.#all.size;
  }

  /** @returns aborted when the connection is closed, or the follower is ended */
  add(request: FastifyRequest, reply: FastifyReply): AbortSignal {
    const end = new AbortController();
    this.#all.set(end, request);
    reply.raw.on('close', () => {
      end.abort();
      this.#all.delete(end);
    });
    return end.signal;
  }

  /** Ends the followers whose request is one of these. */
  endIf(isOver: (request: FastifyRequest) => boolean): void {
    for (const [end, request] of this.#all) if (isOver(request)) end.abort();
  }
}

/** The routes below `/api`. */
export function apiRoutes(
  app: FastifyInstance,
  { ask, feed, live }: PageDeps,
  followers: Followers,
  slowMs = SLOW_MS,
): void {
  /** All lines of an answer. */
  const every = async (question: keyof Requests, parameters: unknown): Promise<unknown[]> => {
    const lines: unknown[] = [];
    for await (const line of ask({ ask: question, parameters })) lines.push(line);
    return lines;
  };
  const only = async (question: keyof Requests, parameters: unknown) =>
    (await every(question, parameters))[0];

  app.get('/api/status', () => only('status', {}));
  app.get('/api/items', ({ query }) => only('items', query));

  app.get('/api/why', ({ query }) => only('why', query));

  app.get('/api/live', { exposeHeadRoute: false }, async (request, reply) => {
    // Behind an answer that has not ended it would not be seen that its connection is closed.
    if (reply.raw.socket === null) throw new PageError('BAD_REQUEST', {});
    if (followers.size >= MOST_FOLLOWERS) throw new PageError('TOO_MANY_FOLLOWERS', {});
    const signal = followers.add(request, reply);
    request.raw.setTimeout(slowMs);
    // A server in between is not to collect events before it passes them on.
    reply.type('text/event-stream; charset=utf-8').header('x-accel-buffering', 'no');
    return reply.send(
      Readable.from(eventsOf(feed, signal), { objectMode: false, highWaterMark: 1 }),
    );
  });

  app.post('/api/retry', ({ body }) => only('retry', body));
  app.post('/api/try', () => {
    live.parts.queue.tryNow();
    return {};
  });
  app.post('/api/approve-deletes', async ({ body }) => {
    await every('approve-deletes', body);
    return {};
  });
  app.post('/api/rescan', async ({ body }) => ({ scans: await every('rescan', body) }));
  app.post('/api/mirrors/run', async ({ body }) => ({ mirrors: await every('mirror', body) }));
  app.post('/api/mirrors/accept', async ({ body }) => ({
    mirrors: await every('mirror-accept', body),
  }));
  for (const what of ['pause', 'resume'] as const)
    app.post(`/api/${what}`, async ({ body }) => {
      await every(what, body);
      return { paused: live.parts.queue.status().paused };
    });
}

/** Server-sent events. JSON has no line breaks of its own, which would end one. */
async function* eventsOf(feed: LiveFeed, signal: AbortSignal): AsyncGenerator<string> {
  for await (const line of feed.follow(signal))
    yield `event: ${line.kind}\ndata: ${feed.textOf(line)}\n\n`;
}
