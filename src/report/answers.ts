import { z } from 'zod';
import type { Config } from '../config/config.js';
import { pageInPackage } from '../lib/documentation.js';
import { PeersyncError } from '../lib/errors.js';
import { jsonWithConfig } from '../lib/hint.js';
import { nextTurn } from '../lib/slices.js';
import type { RequestQueue } from '../queue/request-queue.js';
import type { State, StateView } from '../state/state.js';
import { retryItems } from '../uplink/retry.js';
import { itemsToVerify, verify } from '../uplink/verify.js';
import { approve, forget } from './deletions.js';
import {
  itemsPage,
  knownFolder,
  LISTED_STATUSES,
  listEntries,
  namedPaths,
  scopesOf,
  wrongly,
} from './items.js';
import { LONGEST_PAUSE_MS, type PausingDeps, pause, resume, SHORTEST_PAUSE_MS } from './pausing.js';
import type { Sample } from './statistics.js';
import { type Live, type RecentEvent, type StatusReport, statusReport } from './status.js';
import { explain } from './why.js';

const nothing = z.object({});
const filter = z.object({
  status: z.enum(LISTED_STATUSES).optional(),
  folder: z.string().optional(),
});
const names = z.array(z.string()).min(1);
/** Everything, or these files and directories with all below. */
const toRetry = z.union([z.object({ all: z.literal(true) }), z.object({ paths: names })]);
const page = filter.extend({
  /** What the path holds, in whichever case. */
  name: z.string().optional(),
  after: z.string().optional(),
  limit: z.coerce.number().int().min(1).max(500).default(100),
});

type Answer = AsyncIterable<unknown> | Iterable<unknown>;

/** What the state answers, with a daemon or without. */
function requestsToState(current: { readonly config: Config }, state: StateView, live?: Live) {
  return {
    status: request(nothing, () => [
      live?.status() ?? statusReport(current.config, state, undefined),
    ]),
    list: request(filter, ({ folder, status }) =>
      listEntries(state, { folder: knownFolder(current.config, folder), status }),
    ),
    /** One page of `list`. */
    items: request(page, async (asked) => {
      knownFolder(current.config, asked.folder);
      return [await itemsPage(current.config, state.entries, asked)];
    }),
    /** Of an absolute path, `FOLDER/path`, or a bare name. */
    why: request(z.object({ path: z.string() }), async ({ path }) => {
      const [absolute = ''] = await namedPaths(current.config, state.entries, [path]);
      return [await explain(absolute, current.config, state, live)];
    }),
  };
}

/** What changes the state, with a daemon or without. */
function requestsToChange(
  current: { readonly config: Config },
  pausing: PausingDeps & { readonly state: State },
  live?: Live,
) {
  const { clock, state } = pausing;
  return {
    retry: request(toRetry, async (asked) => {
      const scopes =
        'paths' in asked ? await scopesOf(current.config, state.entries, asked.paths) : undefined;
      const { lookedAt, retried } = await retryItems(state, scopes, clock);
      await state.commit('person');
      // Their records are gone, so that any look reads them, and the next scan does: of very many
      // it is one a directory.
      for (const [i, place] of lookedAt.entries()) {
        if (i % 1_000 === 999) await nextTurn();
        live?.parts.watcher.lookSoon(place, 'ifChanged');
      }
      live?.parts.queue.tryNow();
      return [{ retried, lookedAt: lookedAt.length }];
    }),
    /** Until `resume` unless it is given for how long. */
    pause: request(
      z.object({ forMs: z.number().min(SHORTEST_PAUSE_MS).max(LONGEST_PAUSE_MS).optional() }),
      async ({ forMs }) => [await pause(pausing, forMs)],
    ),
    resume: request(nothing, async () => [{ wasPaused: await resume(pausing) }]),
    /** As many removed files as a person was shown. */
    'approve-deletes': request(
      z.object({ folder: z.string(), files: z.number().int().min(1) }),
      async (asked) => {
        const approved = await approve({ config: current.config, state, clock }, asked);
        await live?.parts.watcher.scan(asked.folder);
        return [approved];
      },
    ),
    forget: request(
      z.object({
        folder: z.string(),
        remove: z.boolean().default(false),
        atMost: z.number().int().min(0).optional(),
      }),
      async (asked) => [await forget({ config: current.config, state, clock }, asked)],
    ),
  };
}

/** What can be asked of the daemon, and with which parameters: by commands, and by the page. */
function requestsTo(live: Live, feed: LiveFeed) {
  const { clock, current, log, parts } = live;
  const { client, dialect, mirrors, queue, state, watcher } = parts;
  return {
    ...requestsToState(current, state.committed, live),
    ...requestsToChange(current, { state, queue, clock, log }, live),
    /** Follows what the daemon does; see `LiveLine`. */
    live: request(nothing, () => feed.follow(live.stopping)),
    rescan: request(z.object({ folder: z.string().optional() }), ({ folder }) =>
      watcher.rescan(knownFolder(current.config, folder)),
    ),
    /**
     * So many items by chance, or all of them; `repair` pushes again what is lost, and removes
     * again what is back.
     */
    verify: request(
      z.object({ sample: z.number().optional(), repair: z.boolean().default(false) }),
      async ({ repair, sample }) => {
        const { items, of } = await itemsToVerify(state, sample);
        const deps = { state, queue, peer: client, dialect, settings: current.config, clock, log };
        return verify(items, deps, { lane: 'interactive', repair, of });
      },
    ),
    reload: request(nothing, async () => [await live.reload()]),
    /** All mirrors unless given. */
    mirror: request(z.object({ names: names.optional() }), (asked) => {
      unlessPaused(queue);
      return mirrors.run(asked.names);
    }),
    'mirror-accept': request(z.object({ names }), async function* (asked) {
      unlessPaused(queue);
      for (const name of asked.names) yield await mirrors.accept(name);
    }),
  };
}

/** @throws PeersyncError BAD_REQUEST where the parameters are not as `schema` has them */
function request<Schema extends z.ZodType>(
  schema: Schema,
  answer: (asked: z.output<Schema>) => Answer | Promise<Answer>,
) {
  return (parameters: z.input<Schema>) => {
    const asked = schema.safeParse(parameters);
    if (asked.success) return answer(asked.data);
    const { issues } = asked.error;
    const words = `${issues.map(({ message, path }) => [...path, message].join(': ')).join('; ')}.`;
    const page = pageInPackage('src/report/README.md');
    throw wrongly('BAD_REQUEST', words, `See "Monitoring" in ${page} for what can be asked.`);
  };
}

type RequestTable = ReturnType<typeof requestsTo>;
/** Parameters as they are sent. */
export type Requests = { readonly [ask in keyof RequestTable]: Parameters<RequestTable[ask]>[0] };

/** A question to the daemon: one word and its parameters, which are not checked yet. */
export interface Question {
  readonly ask: string;
  readonly parameters: unknown;
}

/** Answers a question with lines, each one JSON value or a list of such. @throws PeersyncError */
export type Answerer = (question: Question) => Answer;

/** What the running daemon answers, to commands and to the page alike. */
export function answers(live: Live, feed: LiveFeed): Answerer {
  return answerer(requestsTo(live, feed));
}

/** What a state answers that was only read, where no daemon runs. */
export function answersOfState(config: Config, state: StateView): Answerer {
  return answerer(requestsToState({ config }, state));
}

/** The same of a state that was opened to be changed. */
export function answersOfChanges(
  config: Config,
  deps: PausingDeps & { readonly state: State },
): Answerer {
  return answerer(requestsToChange({ config }, deps));
}

function answerer(
  requests: Readonly<Record<string, (parameters: never) => Answer | Promise<Answer>>>,
) {
  return async function* ({ ask, parameters }: Question) {
    const request = Object.hasOwn(requests, ask) ? requests[ask] : undefined;
    if (request === undefined)
      throw new PeersyncError({
        code: 'UNKNOWN_QUESTION',
        message: `The daemon does not know the question "${ask}".`,
        hint: 'Use the command of the same version as the daemon.',
      });
    yield* await request(parameters as never);
  };
}

/** Mirrors would wait for the end of the pause, and who asked for them as well. */
function unlessPaused(queue: RequestQueue): void {
  if (queue.status().paused === undefined) return;
  throw new PeersyncError({
    code: 'PAUSED',
    message: 'peersync is paused, and mirrors rest as well.',
    hint: 'End the pause with `peersync resume`.',
  });
}

/**
 * What follows a running daemon, one at a time: first everything (`status`, all samples, all recent
 * events), then what changes. A `status` comes at most once a second, and at least every 15 s.
 */
export type LiveLine =
  | { readonly kind: 'status'; readonly status: StatusReport }
  | { readonly kind: 'samples'; readonly samples: readonly Sample[] }
  | { readonly kind: 'recents'; readonly recents: readonly RecentEvent[] };

/** How often it is looked at what changed. */
const TICK_MS = 1_000;
/** A status comes at least this often, so that who follows knows that the daemon is alive. */
const QUIET_MS = 15_000;

/**
 * What the daemon does, for as many as want to follow it; a status is made, and put into words,
 * once for all of them.
 */
export class LiveFeed {
  #made: { readonly at: number; readonly status: StatusReport; readonly text: string } | undefined;

  constructor(private readonly live: Live) {}

  /**
   * Follows until `signal` aborts. What comes faster than it is read is put together, and nothing
   * is kept for a reader.
   */
  async *follow(signal: AbortSignal): AsyncGenerator<LiveLine, void> {
    const { clock, parts, recents } = this.live;
    let [sampledAt, eventId] = [0, 0];
    let [told, toldAt] = ['', 0];
    while (!signal.aborted) {
      const { status, text } = this.#now();
      if (text !== told || clock.now() - toldAt >= QUIET_MS) {
        [told, toldAt] = [text, clock.now()];
        yield { kind: 'status', status };
      }
      const samples = parts.statistics.samples.filter(({ at }) => at > sampledAt);
      sampledAt = samples.at(-1)?.at ?? sampledAt;
      if (samples.length > 0) yield { kind: 'samples', samples };
      const events = recents.filter(({ id }) => id > eventId);
      eventId = events.at(-1)?.id ?? eventId;
      if (events.length > 0) yield { kind: 'recents', recents: events };
      await clock.sleep(TICK_MS, signal);
    }
  }

  /** The data of a line as JSON. */
  textOf(line: LiveLine): string {
    if (line.kind === 'samples') return JSON.stringify(line.samples);
    if (line.kind === 'recents') return this.#json(line.recents);
    return line.status === this.#made?.status ? this.#made.text : this.#json(line.status);
  }

  #json(value: unknown): string {
    return jsonWithConfig(value, this.live.configFile);
  }

  #now() {
    const at = this.live.clock.now();
    if (this.#made === undefined || at - this.#made.at >= TICK_MS / 2) {
      const status = this.live.status();
      this.#made = { at, status, text: this.#json(status) };
    }
    return this.#made;
  }
}
