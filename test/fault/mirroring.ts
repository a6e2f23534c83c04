// Mirrors a table and a share of a peer without end, as fast as it can. Arguments: the peer's URL, a directory.
import { join } from 'node:path';
import type { MirrorConfig } from '../../src/config/config.js';
import { bytes, milliseconds } from '../../src/config/units.js';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { Mirrors } from '../../src/mirror/mirrors.js';
import { PeerClient } from '../../src/peer/client.js';
import { Door } from '../../src/queue/door.js';
import { State } from '../../src/state/state.js';
import { classify } from '../../src/uplink/trouble.js';

const [baseUrl = '', directory = ''] = process.argv.slice(2);
const clock = systemClock;
const log = silentLogger;
const usual = { every: milliseconds(3_600_000), maxSize: bytes(64 * 1024 * 1024) };
const settings: MirrorConfig = {
  root: join(directory, 'mirror'),
  requestsPerSecond: 10_000,
  tables: [
    {
      ...usual,
      name: 't',
      table: 't',
      path: 'table.csv',
      format: 'csv',
      versions: 2,
      neutralise: false,
      edit: false,
      deletes: false,
      maxDeletes: 10,
    },
  ],
  shares: [{ ...usual, name: 's', data: 's', path: 'share.bin', versions: 0 }],
  citations: [],
};
const stateDir = join(directory, 'state');
const timeouts = { connect: 10_000, headers: 10_000, body: 10_000, total: 60_000 };
const state = await State.open(stateDir, { clock, log });
const lane = { requestsPerSecond: 10_000, concurrency: 4 };
const mirrors = new Mirrors({
  settings,
  stateDir,
  state,
  door: new Door({
    lanes: { interactive: lane, confirm: lane, push: lane, mirror: lane, audit: lane },
    maxConcurrency: 8,
    classify,
    clock,
    log,
    peerName: 'the peer',
  }),
  peer: new PeerClient({ timeouts, maxAnswer: 1_000_000, baseUrl, clock, log }),
  clock,
  log,
});
mirrors.start((error) => {
  throw error;
});
console.log('ready');
for (;;) {
  for await (const { name, alarm, failure, changed } of mirrors.run(undefined)) {
    const trouble = alarm ?? failure;
    if (trouble !== undefined) throw new Error(`${name}: ${trouble.message}`);
    if (changed) console.log(`changed ${name}`);
  }
}
