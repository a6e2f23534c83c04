import { readFile } from 'node:fs/promises';
import { configOf, type GlobalOptions, isThere, openLog } from '../cli/global-options.js';
import { complain } from '../cli/output.js';
import { onSignals } from '../cli/signals.js';
import { type Config, ConfigError, type FolderConfig } from '../config/config.js';
import { askDaemon } from '../daemon/control.js';
import type { Daemon } from '../daemon/daemon.js';
import { systemClock } from '../lib/clock.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import { writtenPath } from '../lib/home.js';
import type { Logger } from '../lib/logger.js';
import { sentence, shellWord } from '../lib/text.js';
import { PEER_FAILURE_WORDS, type PeerFailure, type PeerFailureKind } from '../queue/breaker.js';
import type { QueueStatus, RequestQueue } from '../queue/request-queue.js';
import type { Question } from '../report/answers.js';
import type { StatusReport } from '../report/status.js';
import type { StateView } from '../state/state.js';

/**
 * The configuration of a command that asks the daemon. Where its file is broken and the daemon goes
 * on with the one before, that is said, and what is needed to ask it is taken from the file as far
 * as it can be read.
 */
export async function configToAsk(options: GlobalOptions): Promise<Config> {
  try {
    return (await configOf(options)).config;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const { checkConfig } = await import('../config/load.js');
    const path = writtenPath(options.config);
    const text = await readFile(path, 'utf8').catch(() => '');
    const dir = /"state"\s*:\s*\{[^}]*?"dir"\s*:\s*"([^"]+)"/.exec(text)?.[1];
    const input = {
      folders: [{ path: '/unknown', collection: 'unknown' }],
      ...(dir && { state: { dir } }),
    };
    const config = await checkConfig(input, path);
    const status = await runningStatus(config.state.dir).catch(() => undefined);
    if (status === undefined) throw error;
    complain(`peersync: ${error.message}\n  ${askedInstead(status, path)}\n`);
    const folders = status.folders.map(
      ({ name, path }) => ({ ...config.folders[0], name, path }) as FolderConfig,
    );
    return { ...config, folders, mirror: { ...config.mirror, root: status.mirrorRoot } };
  }
}

/** Names the daemon that is asked though the configuration `path` cannot be used. */
function askedInstead({ configuration, pid }: StatusReport, path: string): string {
  const { file = path } = configuration ?? {};
  if (file === path) return 'The daemon goes on as before, and is asked.';
  return `A daemon (pid ${pid}) runs here on ${file}, and is asked; give \`-c ${shellWord(file)}\`.`;
}

/** How a question is asked. */
interface Asking {
  readonly patienceMs?: number;
  /** Where no daemon runs; one that warns on the standard error unless given. */
  readonly log?: Logger;
}

/**
 * A daemon that has the state and answers no questions yet is waited for at most so long: it reads
 * the state.
 */
const STARTING_MS = 10_000;

/**
 * What the running daemon answers or, where none runs, what would answer is opened for this
 * question alone.
 *
 * @throws PeersyncError STATE_LOCKED where another peersync has the state, and does not answer
 */
export async function* askAnyone(
  options: GlobalOptions,
  { state }: Config,
  question: Question,
  asking: Asking = {},
): AsyncGenerator<unknown> {
  const end = systemClock.now() + Math.min(asking.patienceMs || STARTING_MS, STARTING_MS);
  for (;;) {
    try {
      yield* (await askDaemon(state.dir, question, asking)) ??
        answerAlone(options, question, asking.log);
      return;
    } catch (error) {
      if (!(error instanceof PeersyncError) || error.code !== 'STATE_LOCKED') throw error;
      if (systemClock.now() >= end)
        throw new PeersyncError({
          code: error.code,
          message: `${error.message} It does not answer yet: it is starting, or does something else.`,
          hint: 'Ask again in a moment; `peersync status` says when it runs.',
          cause: error,
        });
    }
    await systemClock.sleep(LOOK_MS);
  }
}

/** The same for a question that is answered in one line. */
export async function askAnyoneOnce<T>(
  options: GlobalOptions,
  config: Config,
  question: Question,
): Promise<T> {
  return (await firstOf<T>(askAnyone(options, config, question))) as T;
}

/** The status of the running daemon; undefined where none runs. */
export async function runningStatus(stateDir: string): Promise<StatusReport | undefined> {
  return await firstOf(await askDaemon(stateDir, { ask: 'status', parameters: {} }));
}

async function firstOf<T>(answer: AsyncIterable<unknown> | undefined): Promise<T | undefined> {
  if (answer === undefined) return undefined;
  for await (const line of answer) return line as T;
  throw new PeersyncError({
    code: 'CONTROL_FAILED',
    message: 'The daemon ended its answer before it began.',
    hint: 'Ask it again.',
  });
}

/**
 * The state as it is on disk. Its code is loaded here: most often a daemon runs, and who only asks
 * it is quicker without.
 */
export async function readState(config: Config): Promise<StateView> {
  const { State } = await import('../state/state.js');
  return await State.read(config.state.dir);
}

export type MissingState = NonNullable<Awaited<ReturnType<typeof missingState>>>;

/** What it may mean that nothing is where the state should be; undefined where something is. */
export async function missingState(stateDir: string) {
  if (await isThere(stateDir)) return undefined;
  const moved =
    'If a daemon runs already, its state.dir was another when it started: stop it, move that directory here, and start it again.';
  return {
    message: `Nothing has run with this configuration yet: there is no state in ${stateDir}.`,
    moved,
  };
}

const READS: readonly string[] = ['status', 'list', 'why'];
const CHANGES: readonly string[] = ['retry', 'pause', 'resume', 'approve-deletes', 'forget'];

/**
 * What a daemon would answer, where none runs: never on a broken configuration, and only what the
 * question needs is opened, so that the peer and its password are left alone where the state is
 * enough.
 */
export async function* answerAlone(
  options: GlobalOptions,
  question: Question,
  given?: Logger,
): AsyncGenerator<unknown> {
  const { config } = await configOf(options);
  const { dir } = config.state;
  if (READS.includes(question.ask)) {
    const { answersOfState } = await import('../report/answers.js');
    yield* answersOfState(config, await readState(config))(question);
    return;
  }
  const log = given ?? (await openLog(options, 2, 'warn'));
  if (!CHANGES.includes(question.ask)) {
    yield* answerOfDaemon(config, log, question);
    return;
  }
  const [{ answersOfChanges }, { lockState }, { State }] = await Promise.all([
    import('../report/answers.js'),
    import('../state/directory.js'),
    import('../state/state.js'),
  ]);
  const clock = systemClock;
  const lock = await lockState(dir, { clock });
  try {
    const state = await State.open(dir, { clock, log });
    try {
      yield* answersOfChanges(config, { state, clock, log })(question);
    } finally {
      await state.close();
    }
  } finally {
    await lock.release();
  }
}

/**
 * What a daemon answers that is opened for the question, and neither scans nor pushes.
 *
 * @throws PeersyncError STOPPED at the first SIGINT or SIGTERM; what the trouble of the peer is,
 *   where that lasts
 */
async function* answerOfDaemon(
  config: Config,
  log: Logger,
  question: Question,
): AsyncGenerator<unknown> {
  const ending = new AbortController();
  const { signal } = ending;
  const stopped = new PeersyncError({
    code: 'STOPPED',
    message: 'Stopped before it was done.',
    hint: 'Nothing is lost: every file is whole, and the next run goes on from here.',
  });
  const unlisten = onSignals(() => ending.abort(stopped));
  try {
    // Any port: nobody else needs to know it, and the configured one may be in use.
    const { peer } = config;
    const embedded = { ...peer.embedded, port: 0 };
    const daemon = await openAlone({ ...config, peer: { ...peer, embedded } }, log, ending);
    const { answers, LiveFeed } = await import('../report/answers.js');
    let closed: Promise<void> | undefined;
    const close = () => (closed ??= daemon.stop());
    // What is under way is called off.
    signal.addEventListener('abort', () => void close().catch(() => {}));
    const lookingOut = giveUpInTime(daemon.parts.queue, ending);
    try {
      yield* answers(daemon, new LiveFeed(daemon))(question);
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    } finally {
      ending.abort();
      await lookingOut;
      await close();
    }
  } finally {
    unlisten();
  }
}

/**
 * Opens a daemon for one piece of work, which follows nothing. What ends its work aborts `ending`.
 */
export async function openAlone(
  config: Config,
  log: Logger,
  ending: AbortController,
): Promise<Daemon> {
  const { Daemon } = await import('../daemon/daemon.js');
  const onFailure = (error: unknown) => ending.abort(error);
  return await Daemon.open({
    config,
    clock: systemClock,
    log,
    follow: false,
    waitWhileDiskFull: false,
    onFailure,
  });
}

/** How long a command bears a trouble of the peer. */
const GIVE_UP_MS: Readonly<Record<PeerFailureKind, number>> = {
  // Longer than a peer needs that is being restarted.
  unreachable: 15_000,
  // Longer than one that has just started answers with errors.
  failing: 60_000,
  // For another try: it is seldom that this mends itself.
  denied: 8_000,
  weak: 8_000,
};
/**
 * Trouble that turns from one kind into another and back: as long as it takes for each kind once.
 */
const GIVE_UP_AT_LAST_MS = Object.values(GIVE_UP_MS).reduce((sum, ms) => sum + ms);
const LOOK_MS = 500;

/** The trouble of the peer, where it has lasted for too long. */
export function lastingFailure(
  { reason, since, downSince = since }: QueueStatus['circuit'],
  now: number,
): PeerFailure | undefined {
  if (reason === undefined) return undefined;
  return now - since > GIVE_UP_MS[reason.kind] || now - downSince > GIVE_UP_AT_LAST_MS
    ? reason
    : undefined;
}

export function peerFailed({ kind, code, message, hint }: PeerFailure): PeersyncError {
  return new PeersyncError({
    code: code ?? 'PEER_FAILED',
    message: `The peer ${PEER_FAILURE_WORDS[kind]}: ${sentence(message)}`,
    hint: `${hint === undefined ? '' : `${sentence(hint)} `}Nothing is lost: the next run goes on from here.`,
    exitCode: kind === 'unreachable' ? EXIT.unreachable : EXIT.failure,
  });
}

/** Calls `ending` off where the peer is in trouble for too long. Ends with it. */
async function giveUpInTime(
  queue: Pick<RequestQueue, 'status'>,
  ending: AbortController,
): Promise<void> {
  while (!ending.signal.aborted) {
    const reason = lastingFailure(queue.status().circuit, systemClock.now());
    if (reason !== undefined) ending.abort(peerFailed(reason));
    await systemClock.sleep(LOOK_MS, ending.signal);
  }
}
