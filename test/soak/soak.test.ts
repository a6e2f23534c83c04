import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { PeerProcess } from '../support/peer-process.js';
import { Random } from '../support/random.js';
import { type Listed, Site } from '../support/site.js';
import { until } from '../support/wait.js';

/** Number of rows of the table. Now and then one of them is changed in the peer. */
const ROWS = 50;
/** Everything that is configured at the end. */
const AT_LAST = { hasNotes: true, collection: 'notes', settle: '300ms', every: '2s' };

const minutes = Number(process.env.SOAK_MINUTES ?? 2);
const started = Date.now();
const end = started + minutes * 60_000;
/** The daemon lives through the second half, so that its memory can be seen to grow. */
const lastLife = started + minutes * 30_000;
const random = Random.seeded();
const happened = {
  kills: 0,
  outages: 0,
  reloads: 0,
  refusals: 0,
  pauses: 0,
  events: 0,
  scrapes: 0,
  rows: 0,
};

let site: Site;
let peer: PeerProcess;
let page: string;
let fail: (reason: Error) => void;

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}

/** Folders come and go and change, the mirror is asked for more or less often. */
function configure({ hasNotes, collection, settle, every }: typeof AT_LAST): void {
  site.configure({
    peer: peer.section(),
    folders: [
      { name: 'inbox', settle },
      ...(hasNotes ? [{ name: 'notes', collection, settle }] : []),
    ],
    mirror: { tables: [{ table: 'soak', path: 'soak.csv', every }] },
    status: { listen: new URL(page).host },
  });
}

function startDaemon(): void {
  void site.spawn('--log-level', 'warn').ended.then(({ code, signal, stdout, stderr }) => {
    const isOurs = signal === 'SIGKILL' || Date.now() > end;
    if (!isOurs)
      fail(new Error(`the daemon ended by itself (${code ?? signal})\n${stdout}${stderr}`));
  });
}

async function works(folder: string, files: number): Promise<void> {
  for (let n = 0; Date.now() < end; n += 1) {
    const i = random.between(0, files - 1);
    const file = `${folder}/d${i % 40}/file ${i}.txt`;
    const share = random.next();
    if (share < 0.75)
      site.drop(file, `version ${n} of ${file}\n${'words '.repeat(random.between(0, 400))}`);
    else if (share < 0.9) {
      site.drop(`${file}.tmp`, `replaced ${n} of ${file}`);
      renameSync(site.path(`${file}.tmp`), site.path(file));
    } else rmSync(site.path(file), { force: true });
    await sleep(random.next() * 60);
  }
}

async function kill(): Promise<void> {
  happened.kills += 1;
  await site.daemon.kill('SIGKILL');
  startDaemon();
}

async function outage(): Promise<void> {
  happened.outages += 1;
  await peer.running.kill('SIGKILL');
  await sleep(random.next() * 15_000);
  peer = await PeerProcess.start(peer.data, { port: Number(new URL(peer.url).port) });
}

async function reload(): Promise<void> {
  configure({
    hasNotes: random.chance(0.7),
    collection: `notes${random.between(0, 2)}`,
    settle: random.pick(['300ms', '1s']),
    every: random.pick(['2s', '5s']),
  });
  const { code, stderr } = await site.run('reload');
  if (code === 0) happened.reloads += 1;
  else console.log(`a reload was not done: ${stderr.trim()}`);
}

async function refusedReload(): Promise<void> {
  happened.refusals += 1;
  const right = readFileSync(site.config, 'utf8');
  writeFileSync(site.config, JSON.stringify({ ...JSON.parse(right), push: { maxItems: 'many' } }));
  site.daemon.child.kill('SIGHUP');
  await sleep(1_000);
  writeFileSync(site.config, right);
}

async function pause(): Promise<void> {
  happened.pauses += 1;
  await site.run('pause', '--for', '1h');
  await sleep(random.next() * 10_000);
  await site.run('resume');
}

async function outages(): Promise<void> {
  for (;;) {
    await sleep(10_000 + random.next() * 20_000);
    if (Date.now() > end) return;
    // A short soak has one kill at least.
    const share = happened.kills === 0 && Date.now() < lastLife ? 0 : random.next();
    if (share < 0.15) await (Date.now() < lastLife ? kill() : outage());
    else if (share < 0.35) await outage();
    else if (share < 0.75) await reload();
    else if (share < 0.85) await refusedReload();
    else await pause();
  }
}

/** Somebody else changes the table, also while the peer is away. */
async function changesTable(): Promise<void> {
  while (Date.now() < end) {
    await sleep(3_000 + random.next() * 10_000);
    const key = `row${random.between(0, ROWS - 1)}`;
    const { code } = await site.run('table', 'set', 'soak', '--pk', key, `at=${Date.now()}`);
    if (code === 0) happened.rows += 1;
  }
}

/** One browser stays, others come and go, and monitoring asks; the daemon may be away. */
async function looks(stays: boolean): Promise<void> {
  while (Date.now() < end) {
    try {
      const signal = AbortSignal.timeout(stays ? 24 * 3_600_000 : random.between(2_000, 12_000));
      if (!stays) {
        const headers = { accept: 'application/openmetrics-text' };
        const metrics = await fetch(`${page}/metrics`, { headers, signal });
        if ((await metrics.text()).endsWith('# EOF\n')) happened.scrapes += 1;
      }
      const live = await fetch(`${page}/api/live`, { signal });
      for await (const _ of live.body ?? []) {
        happened.events += 1;
        if (Date.now() > end) break;
      }
    } catch {
      await sleep(1_000);
    }
  }
}

/** Tells every half minute how it stands. @returns the memory of the last life, in MB */
async function watches(): Promise<number[]> {
  const memory: number[] = [];
  while (Date.now() < end) {
    await sleep(30_000);
    const counts: Record<string, number> = {};
    // The command, for the daemon may be away.
    const { lines } = await site.json<Listed>('list');
    for (const { status } of lines) counts[status] = (counts[status] ?? 0) + 1;
    const file = `/proc/${site.daemon.child.pid}/status`;
    const status = existsSync(file) ? readFileSync(file, 'utf8') : '';
    const rss = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1000;
    if (Date.now() > lastLife) memory.push(rss);
    const minute = ((Date.now() - started) / 60_000).toFixed(1);
    console.log(
      `${minute} min: ${JSON.stringify(counts)}, ${rss.toFixed(0)} MB, ${JSON.stringify(happened)}`,
    );
  }
  return memory;
}

it(`after ${minutes} minutes of work, kills, outages, reloads and pauses every file is confirmed, the mirror equals the table, and memory has not grown`, async () => {
  console.log(`soaking for ${minutes} minutes; PEERSYNC_TEST_SEED=${random.seed} repeats this`);
  const broken = new Promise<never>((_, reject) => {
    fail = reject;
  });
  site = await Site.begin();
  page = `http://127.0.0.1:${await freePort()}`;
  peer = await PeerProcess.start(site.path('peer'));
  configure(AT_LAST);
  startDaemon();
  const changes = [works('inbox', 2_000), works('notes', 300), outages(), changesTable()];
  const all = Promise.all([watches(), looks(true), looks(false), ...changes]);
  const [memory] = await Promise.race([all, broken]);

  configure(AT_LAST);
  expect(await site.run('reload')).toMatchObject({ code: 0 });
  await site.allConfirmed();
  await site.expectAllInPeer(peer);
  const { stdout } = await site.run('table', 'get', 'soak', '--format', 'csv');
  expect(stdout.split('\n').length).toBeGreaterThan(2);
  const isMirrored = () => readFileSync(site.path('mirror/soak.csv'), 'utf8') === stdout;
  await until(isMirrored, `on disk is the table\n${stdout}`, 30_000);
  await site.stop();

  const quarter = Math.ceil(memory.length / 4);
  const mean = (figures: readonly number[]) =>
    figures.reduce((sum, each) => sum + each, 0) / quarter;
  const [early, late] = [mean(memory.slice(0, quarter)), mean(memory.slice(-quarter))];
  console.log(
    `${site.onDisk().size} files; memory of the last life ${early.toFixed(0)} → ${late.toFixed(0)} MB`,
  );
  expect(late).toBeLessThan(early * 1.5 + 30);
});
