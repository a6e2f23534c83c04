// Tries to take a lock on each `try`, releases it on `release`, and prints the outcome.
import { createInterface } from 'node:readline';
import { systemClock } from '../../src/lib/clock.js';
import { type Lock, takeLock } from '../../src/lib/lock.js';

const path = process.argv[2] ?? '';
let lock: Lock | undefined;

async function outcome(command: string): Promise<string> {
  if (command === 'release') {
    await lock?.release();
    return 'released';
  }
  try {
    lock = await takeLock(path, systemClock, ({ pid }) => new Error(`held by ${pid}`));
    return 'won';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

console.log('ready');
for await (const command of createInterface({ input: process.stdin }))
  console.log(await outcome(command));
