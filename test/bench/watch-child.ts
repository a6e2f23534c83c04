// Scans a folder into a state, or does no more than the system calls that this takes, and tells how long that took, how
// long the event loop stood still meanwhile, and the memory it took. Its own process, so that its memory is its own.
// Arguments: `scan`, `again` (after one scan that is not measured), `read` or `list`; folder; state directory.
import { createHash } from 'node:crypto';
import { lstat } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { checkConfig } from '../../src/config/load.js';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { WorkThread } from '../../src/lib/work-thread.js';
import { State } from '../../src/state/state.js';
import { listIn } from '../../src/watch/lister.js';
import { Watcher } from '../../src/watch/watcher.js';
import { longestPause } from './pause.js';

const [way, folder = '', stateDir = ''] = process.argv.slice(2);

if (way === 'read' || way === 'list') {
  tell(await measured(() => walk(folder, way)));
} else {
  const config = await checkConfig(
    {
      folders: [{ name: 'bench', path: folder, collection: 'bench', url: 'https://bench.example/' }],
      state: { dir: stateDir },
      mirror: { root: `${stateDir}-mirror` },
      peer: { embedded: { dir: `${stateDir}-peer` } },
    },
    join(stateDir, 'config.json'),
  );
  const options = { clock: systemClock, log: silentLogger };
  const state = await State.open(stateDir, options);
  const thread = () => new WorkThread(new URL('../../src/file-thread.js', import.meta.url));
  const fileThread = thread();
  const watcher = new Watcher({
    ...{ ...options, folders: config.folders, state, commit: () => state.commit() },
    accepts: () => undefined,
    readGroup: (orders) => fileThread.ask('read', orders),
    list: listIn([thread(), thread()]),
    hints: true,
    rescanMs: 3_600_000,
  });
  const first = measured(async () => {
    await watcher.start();
    await watcher.idle();
  });
  await first;
  tell(way === 'scan' ? await first : await measured(() => watcher.rescan()));
}
process.exit(0);

async function measured(work: () => Promise<unknown>): Promise<object> {
  globalThis.gc?.();
  const before = process.memoryUsage.rss();
  const cpuBefore = process.cpuUsage();
  const started = performance.now();
  const { pauseMs } = await longestPause(work);
  const ms = performance.now() - started;
  const { user, system } = process.cpuUsage(cpuBefore);
  return { ms, pauseMs, cpuMs: (user + system) / 1_000, rssBytes: process.memoryUsage.rss() - before };
}

/** What cannot be left out: every directory listed, every file stat'ed, and for `read` read and hashed. */
async function walk(directory: string, what: 'read' | 'list'): Promise<void> {
  const entries = await readdir(directory, { withFileTypes: true });
  const rest = entries.filter((entry) => !entry.isDirectory()).values();
  const one = async () => {
    for (const entry of rest) await look(entry.name);
  };
  const look = async (name: string) => {
    const path = join(directory, name);
    await new Promise((resolve) => lstat(path, resolve));
    if (what === 'read')
      createHash('sha256')
        .update(await readFile(path))
        .digest('hex');
  };
  await Promise.all(Array.from({ length: what === 'read' ? 8 : 32 }, one));
  for (const entry of entries) if (entry.isDirectory()) await walk(join(directory, entry.name), what);
}

function tell(figures: object): void {
  process.stdout.write(`${JSON.stringify(figures)}\n`);
}
