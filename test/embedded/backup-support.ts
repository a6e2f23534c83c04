import { join } from 'node:path';
import { backUp } from '../../src/embedded/backup.js';
import { restore } from '../../src/embedded/restore.js';
import { systemClock } from '../../src/lib/clock.js';
import { PeersyncError } from '../../src/lib/errors.js';
import { temporaryDirectory } from '../support/temp.js';
import { driver } from './support.js';

/** The signal of commands that nobody stops. */
export const signal = new AbortController().signal;

/** Makes a backup of a peer. */
export function save(dir: string, file: string, options = {}) {
  const given = { dir, file, force: false, check: true, clock: systemClock, signal, driver };
  return backUp({ ...given, ...options });
}

/** Makes a backup of a peer. @returns its path */
export async function backupOf(dir: string, options = {}): Promise<string> {
  const file = join(temporaryDirectory(), 'peer.backup');
  await save(dir, file, options);
  return file;
}

/** Restores a peer. */
export function bring(dir: string, file: string, options = {}) {
  return restore({ dir, file, check: true, discard: false, signal, driver, ...options });
}

/** Returns the code of the error with which something ends. */
export async function codeOf(work: Promise<unknown>): Promise<string> {
  return await work.then(
    () => 'it succeeded',
    (error: unknown) => (error instanceof PeersyncError ? error.code : String(error)),
  );
}
