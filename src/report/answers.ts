import type { Config } from '../config/config.js';
import type { Clock } from '../lib/clock.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { Mirrors } from '../mirror/mirrors.js';
import type { Peerdoc } from '../peer/peerdoc.js';
import type { Place } from '../state/entries.js';
import type { State } from '../state/state.js';
import { patienceOf } from '../uplink/audit.js';
import { retryItems } from '../uplink/retry.js';
import { type VerifyParts, verify } from '../uplink/verify.js';
import { chosen, chosenCount, listEntries } from './list.js';
import type { Live, ReloadReport } from './live.js';
import type { LiveFeed } from './live-feed.js';
import { knownFolder, listFilter, scopesOf, text, texts } from './parameters.js';
import { LONGEST_PAUSE_MS, type Pausing, SHORTEST_PAUSE_MS } from './pausing.js';
import { statusReport } from './status.js';
import { explain } from './why.js';

/** A question to the daemon: one word and its parameters. */
export interface Question {
  readonly ask: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** Answers a question with lines, each one JSON value. */
export type Answerer = (question: Question) => AsyncIterable<unknown> | Iterable<unknown>;

export interface AnswerParts {
  /** A reload replaces the configuration that it holds. */
  readonly current: { readonly config: Config };
  readonly state: State;
  readonly live: Live;
  readonly clock: Clock;
  look(place: Place): void;
  /** Asks a peer that was in trouble again, at once. */
  tryPeer(): void;
  /** What the peer shows of a document. */
  lookUp(url: string): Promise<Peerdoc | undefined>;
  /** So long after a push the peer may take back what it shows, in ms. */
  holdMs(): number | undefined;
  readonly log: Logger;
  /** Scans again; resolves when it is done. */
  rescan(folder: string | undefined): Promise<Iterable<unknown>>;
  readonly mirrors: Pick<Mirrors, 'run' | 'accept'>;
  readonly pausing: Pick<Pausing, 'pause' | 'resume'>;
  /** Takes up the configuration as its file is now. */
  reload(): Promise<ReloadReport>;
  readonly feed: LiveFeed;
  /** Aborts when the daemon stops. */
  readonly stopping: AbortSignal;
}

/** What the running daemon answers to the commands. */
export function answers(parts: AnswerParts): Answerer {
  return (question) => answer(parts, question);
}

async function* answer(parts: AnswerParts, { ask, parameters }: Question): AsyncGenerator<unknown> {
  const { state, live, clock } = parts;
  const { config } = parts.current;
  switch (ask) {
    case 'status':
      yield statusReport(config, state, live);
      return;
    case 'live':
      yield* parts.feed.follow(parts.stopping);
      return;
    case 'list':
      yield* listEntries(state, listFilter(config, parameters));
      return;
    case 'why':
      yield await explain(text(parameters.path), config, state, live);
      return;
    case 'retry': {
      const report = await retryItems(state, await scopesOf(config, parameters), clock);
      await state.commit();
      for (const place of report.lookedAt) parts.look(place);
      parts.tryPeer();
      yield { retried: report.retried, lookedAt: report.lookedAt.length };
      return;
    }
    case 'rescan': {
      const folder = parameters.folder === undefined ? undefined : text(parameters.folder);
      if (folder !== undefined) knownFolder(config, folder);
      yield* await parts.rescan(folder);
      return;
    }
    case 'verify': {
      const { progress, repair, sample } = parameters;
      const count = typeof sample === 'number' ? sample : undefined;
      const of = progress === true ? { of: chosenCount(state, count) } : {};
      yield* verify(chosen(state, count), verifyParts(parts), { repair: repair === true, ...of });
      return;
    }
    case 'reload':
      yield await parts.reload();
      return;
    case 'pause':
      yield await parts.pausing.pause(forMs(parameters.forMs));
      return;
    case 'resume':
      yield { wasPaused: await parts.pausing.resume() };
      return;
    case 'mirror':
      unlessPaused(live);
      yield* parts.mirrors.run(parameters.names === undefined ? undefined : texts(parameters.names));
      return;
    case 'mirror-accept':
      unlessPaused(live);
      for (const name of texts(parameters.names)) yield await parts.mirrors.accept(name);
      return;
    default:
      throw new PeersyncError({
        code: 'UNKNOWN_QUESTION',
        message: `The daemon does not know the question "${ask}".`,
        hint: 'Use the command of the same version as the daemon.',
      });
  }
}

function verifyParts({ state, lookUp, holdMs, clock, log }: AnswerParts): VerifyParts {
  return {
    ...{ state, clock, log, lookUp },
    commit: () => state.commit(),
    concurrency: 2,
    patienceMs: patienceOf(holdMs()),
  };
}

/** Mirrors would wait for the end of the pause, and who asked for them as well. */
function unlessPaused(live: Live): void {
  if (live.queue().paused === undefined) return;
  throw new PeersyncError({
    code: 'PAUSED',
    message: 'peersync is paused, and mirrors rest as well.',
    hint: 'End the pause with `peersync resume`.',
  });
}

/** How long a pause is to be, in ms; undefined for one without an end. */
function forMs(value: unknown): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'number' && value >= SHORTEST_PAUSE_MS && value <= LONGEST_PAUSE_MS)
    return Math.round(value);
  throw new PeersyncError({
    code: 'USAGE',
    message: `A pause cannot last ${JSON.stringify(value)} ms.`,
    hint: 'Give from 1 s to 3650 days, or no time at all for a pause until it is ended.',
    exitCode: EXIT.usage,
  });
}
