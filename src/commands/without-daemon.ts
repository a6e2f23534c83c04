import type { LiveFeed } from '../api/live-feed.js';
import type { AnyRequest, Lot } from '../api/request.js';
import { configOf, type GlobalOptions, openLog } from '../cli/global-options.js';
import { onSignals } from '../cli/signals.js';
import type { Config } from '../config/config.js';
import type { Daemon } from '../daemon/daemon.js';
import { systemClock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { State, StateView } from '../state/state.js';
import { giveUpInTime } from './patience.js';

/**
 * Answers a request where no daemon runs, in lots of lines. It opens only what the request needs,
 * so the peer and its password are left alone if the state is enough. The configuration has to be
 * valid.
 *
 * @param given the log. @default one that warns on the standard error
 * @throws PeersyncError STATE_LOCKED if another peersync uses the state
 */
export async function* answerWithoutDaemon<Line>(
  options: GlobalOptions,
  request: AnyRequest<unknown, Line>,
  question: unknown,
  given?: Logger,
): AsyncGenerator<Lot<Line>, void> {
  const { config } = await configOf(options);
  if (request.needs === 'reading') {
    yield* request.run({ config, view: await readState(config) }, question);
    return;
  }
  const log = given ?? (await openLog(options, 2, 'warn'));
  if (request.needs === 'writing')
    yield* withState(config, log, (state) =>
      request.run({ config, state, clock: systemClock, log }, question),
    );
  else
    yield* withDaemon(config, log, (daemon, feed) => request.run({ live: daemon, feed }, question));
}

/**
 * Returns the state as it is on disk. Its code is loaded here: usually a daemon runs, and a command
 * that asks it starts faster without.
 */
export async function readState(config: Config): Promise<StateView> {
  const { State } = await import('../state/state.js');
  return await State.read(config.state.dir);
}

/** Opens the state for the duration of one answer. */
async function* withState<T>(
  { state: { dir } }: Config,
  log: Logger,
  answer: (state: State) => AsyncIterable<T>,
): AsyncGenerator<T, void> {
  const [{ lockState }, { State }] = await Promise.all([
    import('../state/directory.js'),
    import('../state/state.js'),
  ]);
  const clock = systemClock;
  const lock = await lockState(dir, { clock });
  try {
    const state = await State.open(dir, { clock, log });
    try {
      yield* answer(state);
    } finally {
      await state.close();
    }
  } finally {
    await lock.release();
  }
}

/**
 * Opens a daemon for the duration of one answer. It neither scans nor pushes.
 *
 * @throws PeersyncError STOPPED at the first SIGINT or SIGTERM; the failure of the peer if it lasts
 */
async function* withDaemon<T>(
  config: Config,
  log: Logger,
  answer: (daemon: Daemon, feed: LiveFeed) => AsyncIterable<T>,
): AsyncGenerator<T, void> {
  const ending = new AbortController();
  const { signal } = ending;
  const stopped = new PeersyncError({
    code: 'STOPPED',
    message: 'Stopped before it was done.',
    hint: 'Nothing is lost: every file is whole, and the next run goes on from here.',
  });
  const unlisten = onSignals(() => ending.abort(stopped));
  try {
    // Any port: nothing else connects to it, and the configured one may be in use.
    const { peer } = config;
    const embedded = { ...peer.embedded, port: 0 };
    const daemon = await openAlone({ ...config, peer: { ...peer, embedded } }, log, ending);
    const { LiveFeed } = await import('../api/live-feed.js');
    let closed: Promise<void> | undefined;
    const close = () => (closed ??= daemon.stop());
    // An abort cancels the work under way.
    signal.addEventListener('abort', () => void close().catch(() => {}));
    const givingUp = giveUpInTime(daemon.parts.queue, ending);
    try {
      yield* answer(daemon, new LiveFeed(daemon));
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    } finally {
      ending.abort();
      await givingUp;
      await close();
    }
  } finally {
    unlisten();
  }
}

/**
 * Opens a daemon for one piece of work. It does not follow changes. A failure that ends its work
 * aborts `ending`.
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
