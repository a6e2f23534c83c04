import type { Config } from '../config/config.js';
import { askDaemon } from '../daemon/control.js';
import { systemClock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import type { StatusReport } from '../report/status.js';
import type { State, StateView } from '../state/state.js';
import { type GlobalOptions, isThere, openLog } from './context.js';

/**
 * What the running daemon answers in one line, or, where none runs, what `offline` finds out by itself.
 *
 * @throws PeersyncError of either
 */
export async function askOnce<T>(
  config: Config,
  ask: string,
  parameters: Readonly<Record<string, unknown>>,
  offline: () => Promise<T>,
): Promise<T> {
  return (await firstOf<T>(await askDaemon(config.state.dir, { ask, parameters }))) ?? (await offline());
}

/** The status of the running daemon; undefined where none runs. */
export async function runningStatus(
  stateDir: string,
  patience: { readonly patienceMs?: number } = {},
): Promise<StatusReport | undefined> {
  return await firstOf(await askDaemon(stateDir, { ask: 'status', parameters: {} }, patience));
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

// Where no daemon runs, a command reads and changes the state itself. What that needs is loaded here: most often one runs, and
// the command that only asks it is quicker without.

/** The state as it is on disk. */
export async function readState(config: Config): Promise<StateView> {
  const { State } = await import('../state/state.js');
  return await State.read(config.state.dir);
}

/** Changes the state; resolves when that is on disk. */
export async function withState<T>(
  config: Config,
  options: GlobalOptions,
  change: (state: State) => T | Promise<T>,
): Promise<T> {
  const [{ State }, { lockState }] = await Promise.all([
    import('../state/state.js'),
    import('../state/directory.js'),
  ]);
  const log = await openLog(options, 2, 'warn');
  const lock = await lockState(config.state.dir, { clock: systemClock });
  try {
    const state = await State.open(config.state.dir, { clock: systemClock, log });
    try {
      return await change(state);
    } finally {
      await state.close();
    }
  } finally {
    await lock.release();
  }
}

export interface MissingState {
  readonly message: string;
  readonly hint: string;
}

/** What it may mean that nothing is where the state should be; undefined where something is. */
export async function missingState(stateDir: string): Promise<MissingState | undefined> {
  if (await isThere(stateDir)) return undefined;
  return {
    message: `No daemon runs with this configuration: its state would be in ${stateDir}, where nothing is.`,
    hint: 'If state.dir was changed, which takes effect only by a restart: stop the daemon, move its old directory here, and start it again. Else start it with `peersync run`.',
  };
}
