// Keeps a table and the file that a person edits equal, as fast as it can. Arguments: the peer's
// URL, a directory, a lock.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { systemClock } from '../../src/lib/clock.js';
import { openMirrors } from './open-mirrors.js';

const [baseUrl = '', directory = '', lock = ''] = process.argv.slice(2);

// Between the last look at the file and the rename there are some microseconds that no system call
// closes. Here nobody edits in them, so that each edit that is lost is one too many.
const { lstatSync } = fs;
const guarded = (path: string, options: object) => {
  for (let taken = false; !taken; ) {
    try {
      fs.mkdirSync(lock);
      taken = true;
    } catch {
      // The person will have ended soon.
    }
  }
  setImmediate(() => fs.rmdirSync(lock));
  return lstatSync(path, options);
};
Object.assign(fs, { lstatSync: guarded });
syncBuiltinESMExports();

const { mirrors } = await openMirrors({
  baseUrl,
  directory,
  tables: [{ table: 't', path: 't.csv', edit: true, deletes: true, maxDeletes: 1_000 }],
  // The clock is a minute ahead, so that every saved edit counts as settled.
  clock: { ...systemClock, wall: () => systemClock.wall() + 60_000 },
});
console.log('ready');
for (let round = 1; ; round += 1) {
  for await (const { condition, failure } of mirrors.run(undefined)) {
    // Between a commit and its reading back another client may have been there.
    const unexpected = condition ?? (failure?.code === 'PEER_NOT_DONE' ? undefined : failure);
    if (unexpected !== undefined) throw new Error(unexpected.message);
  }
  console.log(`round ${round}`);
}
