import { z } from 'zod';
import type { Config } from '../config/config.js';
import type { Clock } from '../lib/clock.js';
import { pageInPackage } from '../lib/documentation.js';
import { badRequest, PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { Live } from '../report/live.js';
import type { State, StateView } from '../state/state.js';
import type { LiveFeed } from './live-feed.js';

/**
 * The dependencies of requests.
 *
 * - `reading`: the state as it is on disk. The request is answered without a daemon too.
 * - `writing`: the state, to change it. The request is answered without a daemon too.
 * - `daemon`: a running daemon, with its folders, its queue and its mirrors.
 */
export interface Needs {
  readonly reading: {
    readonly config: Config;
    readonly view: StateView;
    /** Undefined where no daemon runs. */
    readonly live?: Live | undefined;
  };
  readonly writing: {
    readonly config: Config;
    readonly state: State;
    readonly clock: Clock;
    readonly log: Logger;
    /** Undefined where no daemon runs. */
    readonly live?: Live | undefined;
  };
  readonly daemon: { readonly live: Live; readonly feed: LiveFeed };
}
export type Need = keyof Needs;

/**
 * Lines of an answer that are handed on together. They may be made while they are read, so a lot is
 * read once, and before the next one is asked for.
 */
export type Lot<Line> = Iterable<Line>;

/** One thing that people and programs can ask of peersync. */
export interface Request<N extends Need, Input, Line> {
  /** A unique name. If a command asks it, that is the name of the command. */
  readonly name: string;
  /** Its place below `/api/`. */
  readonly path: string;
  /** The field that holds the answer in a JSON document. Undefined: the line is the document. */
  readonly field: string | undefined;
  readonly needs: N;
  /** Whether the answer has one line or any number of them. */
  readonly answers: 'once' | 'line by line';
  readonly question: z.ZodType<unknown, Input>;
  /** The shape of one line of the answer. */
  readonly line: z.ZodType<Line>;
  /**
   * Checks the question and answers it.
   *
   * @throws PeersyncError BAD_REQUEST if the question does not have its shape
   */
  run(deps: Needs[N], question: unknown): AsyncGenerator<Lot<Line>, void>;
}

/** A request whose answer has one line. */
export interface OneLineRequest<N extends Need, Input, Line> extends Request<N, Input, Line> {
  readonly answers: 'once';
}

/** A request whose answer has any number of lines. */
export interface ManyLinesRequest<N extends Need, Input, Line> extends Request<N, Input, Line> {
  readonly answers: 'line by line';
}

/** Any request whose question and lines have these types. `needs` distinguishes them. */
export type AnyRequest<Input, Line> = { [N in Need]: Request<N, Input, Line> }[Need];
/** The same if its answer has one line. */
export type AnyOneLineRequest<Input, Line> = { [N in Need]: OneLineRequest<N, Input, Line> }[Need];

interface Definition<N extends Need, Input, Question, Line> {
  readonly name: string;
  /** @default the name */
  readonly path?: string;
  /** @default none: the only line of the answer is the document */
  readonly field?: string;
  readonly needs: N;
  readonly question: z.ZodType<Question, Input>;
  readonly line: z.ZodType<Line>;
}

/** Defines a request whose answer has one line. */
export function oneLine<const N extends Need, Input, Question, Line>(
  definition: Definition<N, Input, Question, Line> & {
    answer(deps: Needs[N], question: Question): Line | Promise<Line>;
  },
): OneLineRequest<N, Input, Line> {
  const { answer, question, ...parts } = definition;
  return {
    path: parts.name,
    field: undefined,
    ...parts,
    question,
    answers: 'once',
    async *run(deps, asked) {
      yield [await answer(deps, checked(question, asked))];
    },
  };
}

/** Defines a request whose answer has any number of lines, which are made in lots. */
export function manyLines<const N extends Need, Input, Question, Line>(
  definition: Definition<N, Input, Question, Line> & {
    lots(deps: Needs[N], question: Question): AsyncIterable<Lot<Line>>;
  },
): ManyLinesRequest<N, Input, Line> {
  const { lots, question, ...parts } = definition;
  return {
    path: parts.name,
    field: undefined,
    ...parts,
    question,
    answers: 'line by line',
    async *run(deps, asked) {
      yield* lots(deps, checked(question, asked));
    },
  };
}

function checked<Question>(schema: z.ZodType<Question>, question: unknown): Question {
  const parsed = schema.safeParse(question);
  if (parsed.success) return parsed.data;
  const page = pageInPackage('src/report/README.md');
  throw badRequest(
    'BAD_REQUEST',
    `${issuesText(parsed.error)}.`,
    `See "Monitoring" in ${page} for what can be asked.`,
  );
}

/** Returns the faults of a value as one text: `folder: expected string; files: too small`. */
function issuesText({ issues }: z.ZodError): string {
  return issues.map(({ message, path }) => [...path, message].join(': ')).join('; ');
}

/** Returns whether a value has a shape. Fields that the shape does not name are allowed. */
export function hasShape<T>(schema: z.ZodType<T>, value: unknown): value is T {
  // Compiling a faster parser takes longer than checking the few lines of a command.
  return schema.safeParse(value, { jitless: true }).success;
}

/** From so many lines on, compiling a faster parser takes less time than it saves. */
const MANY_LINES = 100;

/**
 * Returns whether all values have a shape; see `hasShape`. A line of `list` takes 0.3 µs, 1.6 where
 * each is checked by itself, and 3.5 where the parser is not compiled.
 */
export function haveShape<T>(
  schema: z.ZodType<T>,
  values: readonly unknown[],
): values is readonly T[] {
  const jitless = values.length < MANY_LINES;
  return z.array(schema).safeParse(values, { jitless }).success;
}

/** The question of a request that takes no parameters. */
export const NOTHING = z.object({});

/** @throws PeersyncError PAUSED: mirrors would wait for the end of the pause */
export function assertNotPaused({ parts }: Live): void {
  if (parts.queue.status().paused === undefined) return;
  throw new PeersyncError({
    code: 'PAUSED',
    message: 'peersync is paused, and so are its mirrors.',
    hint: 'End the pause with `peersync resume`.',
  });
}
