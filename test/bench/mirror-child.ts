// Mirrors the table of a server to CSV once, or reads the same bytes and throws them away, and tells how long that took
// and the most memory of the process. Its own process, so that its memory is its own. Arguments: port, directory, way
// (mirror; read: the bare bytes with undici).
import { join } from 'node:path';
import { request } from 'undici';
import { checkConfig } from '../../src/config/load.js';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { growHeapSlowly } from '../../src/lib/process.js';
import { Mirrors } from '../../src/mirror/mirrors.js';
import { PeerClient } from '../../src/peer/client.js';
import { RequestQueue } from '../../src/queue/request-queue.js';
import { State } from '../../src/state/state.js';
import { classify } from '../../src/uplink/batch-sender.js';
import { longestPause } from './pause.js';

const [port, directory = '', way] = process.argv.slice(2);
const clock = systemClock;
const log = silentLogger;
const started = performance.now();
let read = 0;

const { pauseMs } = await longestPause(way === 'read' ? bare : mirror);
const ms = performance.now() - started;
const { user, system } = process.cpuUsage();
process.stdout.write(
  `${JSON.stringify({ ms, pauseMs, read, cpuMs: (user + system) / 1_000, rssBytes: process.resourceUsage().maxRSS * 1024 })}\n`,
);
process.exit(0);

async function bare(): Promise<void> {
  const { body } = await request(`http://127.0.0.1:${port}/api/table_p.html`, {
    method: 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
    body: 'table=bench',
  });
  for await (const chunk of body) read += chunk.length;
}

async function mirror(): Promise<void> {
  growHeapSlowly();
  const folder = join(directory, 'folder');
  const config = await checkConfig(
    {
      folders: [{ name: 'bench', path: folder, collection: 'bench', url: 'https://bench.example/' }],
      state: { dir: join(directory, 'state') },
      mirror: { root: join(directory, 'mirror'), tables: [{ table: 'bench', path: 'bench.csv' }] },
      peer: { embedded: { dir: join(directory, 'peer') } },
    },
    join(directory, 'config.json'),
  );
  const state = await State.open(config.state.dir, { clock, log });
  const { timeouts, maxAnswer } = config.peer;
  const peer = new PeerClient({
    dialect: 'standard',
    timeouts,
    maxAnswer,
    baseUrl: `http://127.0.0.1:${port}`,
    clock,
    log,
  });
  const lane = { requestsPerSecond: 20, concurrency: 2 };
  const queue = new RequestQueue({
    lanes: { interactive: lane, confirm: lane, push: lane, mirror: lane, audit: lane },
    classify,
    clock,
    log,
    peerName: 'bench',
  });
  const mirrors = await Mirrors.open({
    settings: config.mirror,
    stateDir: config.state.dir,
    state,
    queue,
    peer,
    clock,
    log,
  });
  for await (const report of mirrors.run(undefined)) {
    if (report.failure !== undefined || report.alarm !== undefined) throw new Error(JSON.stringify(report));
    read += report.bytes ?? 0;
  }
  await state.close();
}
