import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { approveDeletes } from '../api/approve-deletes.js';
import { items } from '../api/list.js';
import type { LiveFeed } from '../api/live-feed.js';
import { mirror, mirrorAccept } from '../api/mirror.js';
import { pause, resume, tryNow } from '../api/pause.js';
import type { Request } from '../api/request.js';
import { type Answerer, requestRoutes } from '../api/requests.js';
import { rescan } from '../api/rescan.js';
import { retry } from '../api/retry.js';
import { status } from '../api/status.js';
import { why } from '../api/why.js';
import type { Live } from '../report/live.js';
import { PageError } from './guard.js';

/*
 * The requests between the status page's server and the page in the browser. The browser imports
 * only types from here, so no code of the server reaches it.
 *
 * The routes are those of `api/requests.ts`, for the requests that the page offers. A GET has its
 * question in the query. A POST has its question as a JSON body, `{}` if there are no parameters.
 * An answer is one JSON document. Beside them there are:
 *
 * | request | answer |
 * | --- | --- |
 * | `GET /api/live` | server-sent events: the event is a `LiveLine['kind']`, its data a `StatusReport`, `Sample[]` or `RecentEvent[]` |
 * | `GET /sign-in`, `POST /sign-in` | the page `sign-in.html`, whose form sends the field `token` |
 * | `POST /sign-out` | `{}` -> `{}`; the session of this browser ends |
 *
 * Every error has a status from 400 up and is an `ApiError`. 401 means that a token is needed: go
 * to `/sign-in`. A wrong token redirects to `/sign-in#wrong`, so that the page can say so without a
 * script (`:target`). `/assets/`, `/sign-in` and `/healthz` need no token.
 */

/** The requests that the page offers. */
const OFFERED = [
  status,
  items,
  why,
  retry,
  tryNow,
  approveDeletes,
  rescan,
  pause,
  resume,
  mirror,
  mirrorAccept,
] as const;

export type { ItemLine, ItemsPage } from '../report/items.js';
export type { ApiError } from './guard.js';

/** The body that asks a request. */
type QuestionOf<R> = R extends Request<infer _Need, infer Input, infer _Line> ? Input : never;
/** A line of the answer to a request. */
type LineOf<R> = R extends Request<infer _Need, infer _Input, infer Line> ? Line : never;

export type RetryRequest = QuestionOf<typeof retry>;
export type ApproveDeletesRequest = QuestionOf<typeof approveDeletes>;
export type MirrorsRequest = QuestionOf<typeof mirror>;

export type RetryAnswer = LineOf<typeof retry>;
export interface RescanAnswer {
  readonly scans: readonly LineOf<typeof rescan>[];
}
export interface PauseAnswer {
  readonly paused: LineOf<typeof pause>;
}
export interface MirrorsAnswer {
  readonly mirrors: readonly LineOf<typeof mirror>[];
}

export interface PageDeps {
  readonly live: Live;
  /** Answers the requests of the page, as it answers those of commands. */
  readonly answer: Answerer;
  readonly feed: LiveFeed;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Called with the URL of the page when it opens, and with undefined when it closes. */
  readonly onUrl?: ((url: string | undefined) => void) | undefined;
  /** The directory of the page as the build left it. @default beside this file */
  readonly assetsDirectory?: string;
}

/** The largest number of browsers that follow at a time. */
const MAX_FOLLOWERS = 32;
/**
 * A connection that has not read what was sent for this time is closed, in ms. A status is sent
 * every 15 s.
 */
const SLOW_MS = 30_000;

/** The browsers that follow the page, each with its request. */
export class Followers {
  readonly #all = new Map<AbortController, FastifyRequest>();

  get size(): number {
    return this.#all.size;
  }

  /** @returns a signal that aborts when the connection closes, or the follower is ended */
  add(request: FastifyRequest, reply: FastifyReply): AbortSignal {
    const end = new AbortController();
    this.#all.set(end, request);
    reply.raw.on('close', () => {
      end.abort();
      this.#all.delete(end);
    });
    return end.signal;
  }

  /** Ends the followers whose request meets a condition. */
  endIf(isOver: (request: FastifyRequest) => boolean): void {
    for (const [end, request] of this.#all) if (isOver(request)) end.abort();
  }
}

/** The routes below `/api`. */
export function apiRoutes(
  app: FastifyInstance,
  { answer, feed }: Pick<PageDeps, 'answer' | 'feed'>,
  followers: Followers,
  slowMs = SLOW_MS,
): void {
  requestRoutes(app, OFFERED, answer);
  app.get('/api/live', { exposeHeadRoute: false }, async (request, reply) => {
    // If an earlier answer on the connection has not ended, its end would not be noticed.
    if (reply.raw.socket === null) throw new PageError('BAD_REQUEST', {});
    if (followers.size >= MAX_FOLLOWERS) throw new PageError('TOO_MANY_FOLLOWERS', {});
    const signal = followers.add(request, reply);
    request.raw.setTimeout(slowMs);
    // A proxy must not collect events before it passes them on.
    reply.type('text/event-stream; charset=utf-8').header('x-accel-buffering', 'no');
    return reply.send(
      Readable.from(eventsOf(feed, signal), { objectMode: false, highWaterMark: 1 }),
    );
  });
}

/** Yields server-sent events. JSON has no line breaks, which would end an event. */
async function* eventsOf(feed: LiveFeed, signal: AbortSignal): AsyncGenerator<string> {
  for await (const line of feed.follow(signal))
    yield `event: ${line.kind}\ndata: ${feed.textOf(line)}\n\n`;
}
