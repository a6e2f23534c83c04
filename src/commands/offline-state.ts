import type { Config } from '../config/config.js';
import { systemClock } from '../lib/clock.js';
import type { State, StateView } from '../state/state.js';
import { type GlobalOptions, openLog } from './context.js';

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
): Promise<T[]> {
  const [{ State }, { lockState }] = await Promise.all([
    import('../state/state.js'),
    import('../state/directory.js'),
  ]);
  const log = await openLog(options, 2, 'warn');
  const lock = await lockState(config.state.dir, { clock: systemClock });
  try {
    const state = await State.open(config.state.dir, { clock: systemClock, log });
    try {
      return [await change(state)];
    } finally {
      await state.close();
    }
  } finally {
    await lock.release();
  }
}
