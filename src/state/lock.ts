import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../lib/clock.js';
import { describeHolder, type Holder, isHere, type Lock, readLock, takeLock } from '../lib/lock.js';
import { StateError, writeError } from './errors.js';

/**
 * Takes the state directory `dir`, created if need be, for this process.
 *
 * @throws StateError STATE_LOCKED, STATE_LOCKED_ELSEWHERE, STATE_UNWRITABLE, STATE_FULL, STATE_NOT_A_DIRECTORY
 */
export async function lockState(dir: string, { clock }: { readonly clock: Clock }): Promise<Lock> {
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    return await takeLock(lockOf(dir), { clock, held: (holder) => locked(dir, holder) });
  } catch (error) {
    throw writeError(error, dir);
  }
}

/** Who works with the state in `dir`, if anybody living does. */
export async function stateHolder(dir: string): Promise<Holder | undefined> {
  return await readLock(lockOf(dir));
}

function lockOf(dir: string): string {
  return join(dir, 'lock');
}

function locked(dir: string, holder: Holder): StateError {
  const code = isHere(holder) ? 'STATE_LOCKED' : 'STATE_LOCKED_ELSEWHERE';
  return new StateError(code, { dir, detail: describeHolder(holder) });
}
