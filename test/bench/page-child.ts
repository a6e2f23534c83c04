// The status page of a daemon that knows very many files and mirrors, and does nothing else. It says where it listens, and, for
// each message it gets, the longest time that its event loop stood still since the one before. Its own process, so that who asks
// does not stand in its way. Arguments: files, mirrors, directory.
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { checkConfig } from '../../src/config/load.js';
import { DaemonLog } from '../../src/daemon/log-repeats.js';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { Mirrors } from '../../src/mirror/mirrors.js';
import { records } from '../../src/mirror/plan.js';
import { StatusPage } from '../../src/page/status-page.js';
import { PeerClient } from '../../src/peer/client.js';
import { LANES } from '../../src/queue/options.js';
import { RequestQueue } from '../../src/queue/request-queue.js';
import { answers, LiveFeed } from '../../src/report/answers.js';
import { Statistics } from '../../src/report/statistics.js';
import type { Live, StatusReport } from '../../src/report/status.js';
import { statusReport } from '../../src/report/status.js';
import { quarantined } from '../../src/state/entry.js';
import { State } from '../../src/state/state.js';
import { classify } from '../../src/uplink/batch-sender.js';
import { lifeOf, pendingRecord } from '../state/records.js';

const [files = '0', mirrorCount = '0', directory = ''] = process.argv.slice(2);
const clock = systemClock;
const names = Array.from({ length: Number(mirrorCount) }, (_, i) => `object-${i}`);
const config = await checkConfig(
  {
    folders: ['bench', 'other'].map((name) => ({
      ...{ name, path: join(directory, name), collection: name, url: `https://${name}.example/` },
    })),
    state: { dir: join(directory, 'state') },
    mirror: { root: join(directory, 'mirror'), shares: names.map((data) => ({ name: data, data })) },
    peer: { url: 'http://127.0.0.1:1/' },
    status: { listen: '127.0.0.1:0' },
  },
  join(directory, 'config.json'),
);
const log = new DaemonLog(silentLogger, clock);
const state = await State.open(config.state.dir, { clock, log });
for (let i = 0; i < Number(files); i += 1) {
  const item = pendingRecord(`directory-${i % 10_000}/a file with a name ${i}.md`, 'bench', 'text');
  const [, , confirmed] = lifeOf(item);
  const trouble = { code: 'PEER_REFUSED', message: 'The peer refused it.', hint: 'Mend it.' };
  state.put(i % 1_000 === 0 ? quarantined(item, item, item.version, trouble, clock.now()) : confirmed);
}
for (const [i, name] of names.entries()) {
  const sha256 = createHash('sha256').update(name).digest('hex');
  const record = {
    path: `shares/${name}`,
    succeededAt: clock.now() - i,
    triedAt: clock.now() - i,
    changedAt: i,
    bytes: i,
  };
  records.keep(state, name, { kind: 'share', sha256, ...record });
}
await state.commit();
const limits = { requestsPerSecond: 10, concurrency: 2 };
const lanes = Object.fromEntries(LANES.map((lane) => [lane, limits])) as Record<
  (typeof LANES)[number],
  typeof limits
>;
const queue = new RequestQueue({
  lanes,
  classify,
  clock,
  log,
  peerName: 'The peer',
});
const client = new PeerClient({ baseUrl: 'http://127.0.0.1:1/', dialect: 'standard' });
const mirrors = await Mirrors.open({
  ...{ settings: config.mirror, stateDir: config.state.dir, state, queue, peer: client, clock, log },
});
const statistics = new Statistics({ state, clock, log, settings: () => config });
await statistics.start();
for (let i = 0; i < 200; i += 1)
  log.info({ event: `confirmed-${i}` }, `confirmed bench/a file with a name ${i}.md`);
const parts = {
  ...{ state, peerUrl: 'http://127.0.0.1:1/', client, queue, mirrors, statistics },
  dialect: { current: undefined },
  uplink: {
    status: () => ({ inFlight: 0, confirming: 0, timeToVisibleMs: 500 }),
    isInFlight: () => false,
    nextLook: () => undefined,
  },
  watcher: { status: () => [], problems: () => [], lookSoon: () => {}, rescan: async () => [] },
};
const live = {
  ...{ startedAt: clock.now(), clock, log, parts, recents: log.recents },
  current: { config, restart: [], report: { takenUpAt: clock.now() } },
  stopping: new AbortController().signal,
  status: (): StatusReport => statusReport(config, state, live),
  reload: async () => ({ changes: [], restart: [] }),
} as unknown as Live;
const feed = new LiveFeed(live);
const page = new StatusPage({ live, feed, ask: answers(live, feed), env: {} });
page.follow();
while (page.url === undefined) await clock.sleep(10);

let pauseMs = 0;
let last = performance.now();
const look = () => {
  const now = performance.now();
  pauseMs = Math.max(pauseMs, now - last);
  last = now;
  setImmediate(look);
};
look();
process.on('message', () => {
  process.send?.({ pauseMs });
  pauseMs = 0;
});
process.send?.({ url: page.url, rssBytes: process.memoryUsage().rss });
