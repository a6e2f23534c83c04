// Pushes the files of a folder to a server that only answers, and tells how long that took: from pending in the state
// to accepted on disk. Its own process, so that its memory is its own. Arguments: host and port, folder, state directory, way
// (prepare: only put the files into the state; pending: push what is in the state; whole: scan, read and push; yacy: push what is
// in the state to a YaCy, and look it up meanwhile), files.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { checkConfig } from '../../src/config/load.js';
import { queueLimits } from '../../src/daemon/parts.js';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { growHeapSlowly } from '../../src/lib/process.js';
import { WorkThread } from '../../src/lib/work-thread.js';
import { PeerClient } from '../../src/peer/client.js';
import { standard, yacy } from '../../src/peer/dialects.js';
import { RequestQueue } from '../../src/queue/request-queue.js';
import { read } from '../../src/state/entry.js';
import { State } from '../../src/state/state.js';
import { classify } from '../../src/uplink/batch-sender.js';
import { Uplink } from '../../src/uplink/uplink.js';
import { listHere } from '../../src/watch/lister.js';
import { Watcher } from '../../src/watch/watcher.js';

growHeapSlowly();
const [address, folder = '', stateDir = '', way] = process.argv.slice(2);
const clock = systemClock;
const log = silentLogger;
const config = await checkConfig(
  {
    folders: [
      { name: 'bench', path: folder, collection: 'bench', url: 'https://bench.example/', settle: '0ms' },
    ],
    state: { dir: stateDir },
    mirror: { root: `${stateDir}-mirror` },
    peer: { embedded: { dir: `${stateDir}-peer` } },
    push: { requestsPerSecond: 10_000 },
    ...(way === 'yacy' ? { push: {}, confirm: { hold: '2s' } } : {}),
  },
  join(stateDir, 'config.json'),
);
const state = await State.open(stateDir, { clock, log });
const { timeouts, maxAnswer } = config.peer;
const client = new PeerClient({
  dialect: way === 'yacy' ? 'yacy' : 'standard',
  timeouts,
  maxAnswer,
  baseUrl: `http://${address}`,
  clock,
  log,
});
const lane = { requestsPerSecond: 1, concurrency: 1 };
const queue = new RequestQueue({
  ...(way === 'yacy'
    ? queueLimits(config)
    : {
        lanes: {
          interactive: lane,
          confirm: lane,
          push: queueLimits(config).lanes.push,
          mirror: lane,
          audit: lane,
        },
      }),
  classify,
  clock,
  log,
  peerName: 'bench',
});
const fileThread = new WorkThread(new URL('../../src/file-thread.js', import.meta.url));
const uplink = new Uplink({
  state,
  queue,
  peer: client,
  dialect: { current: way === 'yacy' ? yacy : standard, known: async () => true, misfits: async () => false },
  pack: (order) => fileThread.ask('pack', order),
  clock,
  log,
  settings: config,
  pathOf: ({ path }) => join(folder, path),
  standing: () => 'there',
  look: () => {},
});
const watcher = new Watcher({
  folders: config.folders,
  state,
  clock,
  log,
  accepts: () => undefined,
  readGroup: (orders) => fileThread.ask('read', orders),
  list: listHere,
  hints: false,
  rescanMs: 3_600_000,
});

if (way === 'prepare') {
  await prepare();
  process.exit(0);
}
const files = way === 'whole' ? Number(process.argv[6]) : state.counts().pending;
const started = clock.now();
const cpuBefore = process.cpuUsage();
const done = new Promise<void>((resolve) => {
  state.onChange(() => {
    const { accepted, confirmed } = state.counts();
    if (accepted + confirmed === files) resolve();
  });
});
uplink.start((error) => {
  throw error;
});
if (way === 'whole') watcher.start();
await done;
await state.commit();
const ms = clock.now() - started;
const cpu = process.cpuUsage(cpuBefore);
const { push } = client.requests;
process.stdout.write(
  `${JSON.stringify({ ms, push, cpuMs: (cpu.user + cpu.system) / 1000, maxRssBytes: process.resourceUsage().maxRSS * 1024 })}\n`,
);
process.exit(0);

/** Puts all files into the state as pending, as the watcher would. */
async function prepare(): Promise<void> {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    const path = file.slice(folder.length + 1);
    const { size, mtimeMs, ctimeMs, ino } = statSync(file);
    const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex');
    const to = { folder: 'bench', path, url: `https://bench.example/${path}`, collection: 'bench' };
    state.put(read(undefined, to, { size, mtimeMs, ctimeMs, ino, sha256, encoding: 'utf-8' }, clock.now()));
  }
  await state.close();
}
