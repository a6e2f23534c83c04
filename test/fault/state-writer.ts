// Writes to a state without end, compacting all the time, and tells the number of each change that is on disk.
import { writeSync } from 'node:fs';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { State } from '../../src/state/state.js';
import { pendingRecord } from '../state/records.js';

const [directory = '', files = ''] = process.argv.slice(2);
const policy = { compactMinBytes: 30_000, writeBytes: 2_000 };
const state = await State.open(directory, { clock: systemClock, log: silentLogger, policy });
let number = Number(state.meta('number') ?? 0);
console.log('ready');

async function tell(commit: Promise<void>, change: number): Promise<void> {
  await commit;
  writeSync(1, `${change}\n`);
}

for (;;) {
  const commits: Promise<void>[] = [];
  for (let i = 0; i < 10; i += 1) {
    number += 1;
    const file = number % Number(files);
    const path = `${file % 7}/${file}`;
    if (number % 11 === 0) state.remove('inbox', path);
    else state.put({ ...pendingRecord(path), attempts: number });
    state.setMeta('number', number);
    if (number % 3 === 0) commits.push(tell(state.commit(), number));
  }
  if (number % 20 === 0) await Promise.all(commits);
  else await commits[0];
}
