import type { Config } from '../config/config.js';
import { systemClock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { acquireLock } from '../service/lock.js';
import { State } from '../state/state.js';

/** Changes the state where no daemon runs; resolves when that is on disk. */
export async function withState<T>(config: Config, log: Logger, change: (state: State) => T): Promise<T[]> {
  const lock = await acquireLock(config.state.dir, { clock: systemClock });
  try {
    const state = await State.open(config.state.dir, { clock: systemClock, log });
    try {
      return [change(state)];
    } finally {
      await state.close();
    }
  } finally {
    await lock.release();
  }
}
