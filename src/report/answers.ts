import { z } from 'zod';
import type { Config } from '../config/config.js';
import type { Clock } from '../lib/clock.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { Mirrors } from '../mirror/mirrors.js';
import type { Peerdoc } from '../peer/peerdoc.js';
import type { RequestQueue } from '../queue/request-queue.js';
import type { State } from '../state/state.js';
import { retryItems } from '../uplink/retry.js';
import { verify } from '../uplink/verify.js';
import type { Watcher } from '../watch/watcher.js';
import {
  chosen,
  chosenCount,
  itemsPage,
  knownFolder,
  LISTED_STATUSES,
  listEntries,
  namedPath,
  scopesOf,
} from './items.js';
import { LONGEST_PAUSE_MS, type PausingDeps, pause, resume, SHORTEST_PAUSE_MS } from './pausing.js';
import type { Sample, Statistics } from './statistics.js';
import { type Live, type ReloadReport, type StatusReport, statusReport } from './status.js';
import { explain } from './why.js';

const nothing = z.object({});
const filter = z.object({ status: z.enum(LISTED_STATUSES).optional(), folder: z.string().optional() });
const names = z.array(z.string()).min(1);

/** What can be asked of the daemon, and with which parameters: by commands, and by the page. */
const REQUESTS = {
  status: nothing,
  /** Follows what the daemon does; see `LiveLine`. */
  live: nothing,
  list: filter,
  /** One page of `list`. */
  items: filter.extend({
    after: z.string().optional(),
    limit: z.coerce.number().int().min(1).max(500).default(100),
  }),
  /** An absolute path, or `FOLDER/path`. */
  why: z.object({ path: z.string() }),
  /** Everything, or these files and directories with all below. */
  retry: z.union([z.object({ all: z.literal(true) }), z.object({ paths: names })]),
  rescan: z.object({ folder: z.string().optional() }),
  verify: z.object({
    /** So many items by chance; all of them unless given. */
    sample: z.number().optional(),
    /** Whether what is missing is pushed again. */
    repair: z.boolean().optional(),
    /** Whether it is told how far it has come. */
    progress: z.boolean().optional(),
  }),
  reload: nothing,
  /** Until `resume` unless given. */
  pause: z.object({ forMs: z.number().min(SHORTEST_PAUSE_MS).max(LONGEST_PAUSE_MS).optional() }),
  resume: nothing,
  /** All mirrors unless given. */
  mirror: z.object({ names: names.optional() }),
  'mirror-accept': z.object({ names }),
};

/** As they are sent. */
export type Requests = { readonly [ask in keyof typeof REQUESTS]: z.input<(typeof REQUESTS)[ask]> };

/** A question to the daemon: one word and its parameters, which are not checked yet. */
export interface Question {
  readonly ask: string;
  readonly parameters: unknown;
}

type Answer = AsyncIterable<unknown> | Iterable<unknown>;

/** Answers a question with lines, each one JSON value or a list of such. @throws PeersyncError */
export type Answerer = (question: Question) => Answer;

export interface AnswerDeps extends PausingDeps {
  /** A reload replaces the configuration that it holds. */
  readonly current: { readonly config: Config };
  readonly state: State;
  readonly live: Live;
  readonly queue: Pick<RequestQueue, 'pause' | 'resume' | 'status' | 'tryNow'>;
  readonly watcher: Pick<Watcher, 'lookSoon' | 'rescan'>;
  /** What the peer shows of a document. */
  lookUp(url: string): Promise<Peerdoc | undefined>;
  /** So long after a push the peer may take back what it shows, in ms. */
  holdMs(): number | undefined;
  readonly mirrors: Pick<Mirrors, 'run' | 'accept'>;
  /** Takes up the configuration as its file is now. */
  reload(): Promise<ReloadReport>;
  readonly feed: LiveFeed;
  /** Aborts when the daemon stops. */
  readonly stopping: AbortSignal;
}

/** What the running daemon answers, to commands and to the page alike. */
export function answers(deps: AnswerDeps): Answerer {
  const { clock, current, feed, live, log, lookUp, mirrors, state, stopping, watcher } = deps;
  const commit = () => state.commit();
  const handlers: {
    readonly [ask in keyof Requests]: (asked: z.output<(typeof REQUESTS)[ask]>) => Answer | Promise<Answer>;
  } = {
    status: () => [statusReport(current.config, state, live)],
    live: () => feed.follow(stopping),
    list: ({ folder, status }) => listEntries(state, { folder: knownFolder(current.config, folder), status }),
    items: async (asked) => {
      knownFolder(current.config, asked.folder);
      return [await itemsPage(current.config, state.entries, asked)];
    },
    why: async ({ path }) => [await explain(namedPath(current.config, path), current.config, state, live)],
    retry: async (asked) => {
      const scopes = 'paths' in asked ? await scopesOf(current.config, asked.paths) : undefined;
      const { lookedAt, retried } = await retryItems(state, scopes, clock);
      await state.commit();
      for (const place of lookedAt) watcher.lookSoon(place);
      deps.queue.tryNow();
      return [{ retried, lookedAt: lookedAt.length }];
    },
    rescan: ({ folder }) => watcher.rescan(knownFolder(current.config, folder)),
    verify: async ({ progress, repair = false, sample }) => {
      const of = progress ? { of: chosenCount(state, sample) } : {};
      const parts = { state, clock, log, lookUp, commit, concurrency: 2, holdMs: deps.holdMs() };
      return verify(await chosen(state, sample), parts, { repair, ...of });
    },
    reload: async () => [await deps.reload()],
    pause: async ({ forMs }) => [await pause(deps, forMs)],
    resume: async () => [{ wasPaused: await resume(deps) }],
    mirror: (asked) => {
      unlessPaused(deps.queue);
      return mirrors.run(asked.names);
    },
    'mirror-accept': async function* (asked) {
      unlessPaused(deps.queue);
      for (const name of asked.names) yield await mirrors.accept(name);
    },
  };
  return async function* ({ ask, parameters }) {
    if (!isKnown(ask))
      throw new PeersyncError({
        code: 'UNKNOWN_QUESTION',
        message: `The daemon does not know the question "${ask}".`,
        hint: 'Use the command of the same version as the daemon.',
      });
    const asked = REQUESTS[ask].safeParse(parameters);
    if (!asked.success) throw badRequest(asked.error);
    yield* await handlers[ask](asked.data as never);
  };
}

function isKnown(ask: string): ask is keyof Requests {
  return Object.hasOwn(REQUESTS, ask);
}

function badRequest({ issues }: z.ZodError): PeersyncError {
  return new PeersyncError({
    code: 'BAD_REQUEST',
    message: `${issues.map(({ message, path }) => [...path, message].join(': ')).join('; ')}.`,
    hint: 'See "Status page" in the README for what can be asked.',
    exitCode: EXIT.usage,
  });
}

/** Mirrors would wait for the end of the pause, and who asked for them as well. */
function unlessPaused(queue: AnswerDeps['queue']): void {
  if (queue.status().paused === undefined) return;
  throw new PeersyncError({
    code: 'PAUSED',
    message: 'peersync is paused, and mirrors rest as well.',
    hint: 'End the pause with `peersync resume`.',
  });
}

/** A line of the log that a person may want to see on the page. */
export interface RecentEvent {
  /** Grows by one with each. */
  readonly id: number;
  /** In ms since the epoch. */
  readonly at: number;
  readonly level: 'info' | 'warn' | 'error';
  readonly message: string;
  /** What kind of event it is, where it says so. */
  readonly event?: string | undefined;
}

const EVENTS_KEPT = 200;

/** A logger that also remembers the last lines from `info` up, for who looks later. */
export class RecentEvents implements Logger {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #events: RecentEvent[] = [];
  #count = 0;
  readonly info = this.#keeping('info');
  readonly warn = this.#keeping('warn');
  readonly error = this.#keeping('error');

  constructor(log: Logger, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Oldest first. */
  list(): readonly RecentEvent[] {
    return this.#events;
  }

  debug(fields: object, message: string): void {
    this.#log.debug(fields, message);
  }

  #keeping(level: RecentEvent['level']): Logger['info'] {
    return (fields, message) => {
      this.#count += 1;
      const event = 'event' in fields && typeof fields.event === 'string' ? fields.event : undefined;
      this.#events.push({ id: this.#count, at: this.#clock.now(), level, message, event });
      if (this.#events.length > EVENTS_KEPT) this.#events.shift();
      this.#log[level](fields, message);
    };
  }
}

/**
 * What follows a running daemon, one at a time: first everything (`status`, all samples, all recent events), then what
 * changes. A `status` comes at most once a second, and at least every 15 s.
 */
export type LiveLine =
  | { readonly kind: 'status'; readonly status: StatusReport }
  | { readonly kind: 'samples'; readonly samples: readonly Sample[] }
  | { readonly kind: 'recents'; readonly recents: readonly RecentEvent[] };

/** How often it is looked at what changed. */
const TICK_MS = 1_000;
/** A status comes at least this often, so that who follows knows that the daemon is alive. */
const QUIET_MS = 15_000;

export interface LiveFeedDeps {
  status(): StatusReport;
  readonly statistics: Pick<Statistics, 'samples'>;
  readonly recents: Pick<RecentEvents, 'list'>;
  readonly clock: Clock;
}

/** What the daemon does, for as many as want to follow it; a status is made, and put into words, once for all of them. */
export class LiveFeed {
  readonly #deps: LiveFeedDeps;
  #made: { readonly at: number; readonly status: StatusReport; readonly text: string } | undefined;

  constructor(deps: LiveFeedDeps) {
    this.#deps = deps;
  }

  /** Follows until `signal` aborts. What comes faster than it is read is put together, and nothing is kept for a reader. */
  async *follow(signal: AbortSignal): AsyncGenerator<LiveLine, void> {
    const { statistics, recents, clock } = this.#deps;
    let [sampledAt, eventId] = [0, 0];
    let [told, toldAt] = ['', 0];
    while (!signal.aborted) {
      const { status, text } = this.#now();
      if (text !== told || clock.now() - toldAt >= QUIET_MS) {
        [told, toldAt] = [text, clock.now()];
        yield { kind: 'status', status };
      }
      const samples = statistics.samples().filter(({ at }) => at > sampledAt);
      sampledAt = samples.at(-1)?.at ?? sampledAt;
      if (samples.length > 0) yield { kind: 'samples', samples };
      const events = recents.list().filter(({ id }) => id > eventId);
      eventId = events.at(-1)?.id ?? eventId;
      if (events.length > 0) yield { kind: 'recents', recents: events };
      await clock.sleep(TICK_MS, signal);
    }
  }

  /** The data of a line as JSON. */
  textOf(line: LiveLine): string {
    if (line.kind === 'samples') return JSON.stringify(line.samples);
    if (line.kind === 'recents') return JSON.stringify(line.recents);
    return line.status === this.#made?.status ? this.#made.text : JSON.stringify(line.status);
  }

  #now() {
    const at = this.#deps.clock.now();
    if (this.#made === undefined || at - this.#made.at >= TICK_MS / 2) {
      const status = this.#deps.status();
      this.#made = { at, status, text: JSON.stringify(status) };
    }
    return this.#made;
  }
}
