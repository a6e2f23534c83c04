// Loads a state, or a lowdb JSONFile, and tells how long that took, how long the event loop stood still meanwhile, and the
// memory it took. Its own process, so that its memory is its own. Arguments: `state` or `json`, path.
import { JSONFilePreset } from 'lowdb/node';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { growHeapSlowly } from '../../src/lib/process.js';
import { State } from '../../src/state/state.js';
import { longestPause } from './pause.js';

const [kind, path = ''] = process.argv.slice(2);
// As the daemon does.
if (kind === 'state') growHeapSlowly();
globalThis.gc?.();
const before = process.memoryUsage().rss;
const started = performance.now();
const {
  value: held,
  pauseMs,
  busyMs,
} = await longestPause<unknown>(() =>
  kind === 'state'
    ? State.open(path, { clock: systemClock, log: silentLogger })
    : JSONFilePreset<unknown[]>(path, []),
);
const ms = performance.now() - started;
globalThis.gc?.();
const rssBytes = process.memoryUsage().rss - before;
const wholeBytes = process.memoryUsage().rss;
const passOver = async () => {
  if (!(held instanceof State)) return;
  for await (const slice of held.entries.slices()) for (const _ of slice);
};
// The first one also sweeps what the forced collection left.
await passOver();
const pass = await longestPause(passOver);
process.stdout.write(
  `${JSON.stringify({ ms, pauseMs, rssBytes, wholeBytes, busyMs, passMs: pass.ms, passBusyMs: pass.busyMs })}\n`,
);
process.exit(0);
