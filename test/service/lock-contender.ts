// Tries to take the lock of a directory each time it is told to, and tells what came of it.
import { createInterface } from 'node:readline';
import { systemClock } from '../../src/lib/clock.js';
import { PeersyncError } from '../../src/lib/errors.js';
import { acquireLock } from '../../src/service/lock.js';

const directory = process.argv[2] ?? '';

async function outcome(): Promise<string> {
  try {
    await acquireLock(directory, { clock: systemClock });
    return 'won';
  } catch (error) {
    return error instanceof PeersyncError ? `${error.code} ${error.message}` : String(error);
  }
}

console.log('ready');
for await (const _ of createInterface({ input: process.stdin })) console.log(await outcome());
