// Runs the daemon for a long time while files come, change and go, a table of the peer changes, somebody looks at the status
// page, the peer is away now and then, and the daemon is killed, paused, and given another configuration, a wrong one too;
// tells how it stands every half minute. In the end every file at rest has to be confirmed in its last version, the mirror
// has to be as the table is, and the daemon's memory must not have grown with time, for which it lives through the second
// half. Arguments: minutes (10 unless given), seed.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const minutes = Number(process.argv[2] ?? 10);
let seed = Number(process.argv[3] ?? Date.now() % 1_000_000);
const cli = resolve(import.meta.dirname, '../../dist/cli.js');
const root = mkdtempSync(join(tmpdir(), 'peersync-soak-'));
const inbox = join(root, 'inbox');
const notes = join(root, 'notes');
const configPath = join(root, 'config.json');
console.log(`soaking for ${minutes} minutes with the seed ${seed} in ${root}`);

const started = Date.now();
const end = started + minutes * 60_000;
const lastLife = started + minutes * 30_000;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
function random() {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
  return seed / 2 ** 32;
}

let port = 0;
let peer;
let daemon;
let wanted = true;
const happened = { kills: 0, outages: 0, reloads: 0, refusals: 0, pauses: 0, events: 0, scrapes: 0, rows: 0 };

async function startPeer() {
  peer = spawn(process.execPath, [cli, 'peer', '--data', join(root, 'peer'), '--port', String(port)]);
  let said = '';
  peer.stdout.on('data', (data) => {
    said += data;
  });
  while (!/listens on http:\/\/127\.0\.0\.1:\d+/.test(said)) {
    if (peer.exitCode !== null) throw new Error(`the peer ended: ${said}`);
    await sleep(50);
  }
  port = Number(/listens on http:\/\/127\.0\.0\.1:(\d+)/.exec(said)[1]);
}

function startDaemon() {
  daemon = spawn(process.execPath, [cli, 'run', '-c', configPath], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  daemon.on('exit', (code, signal) => {
    if (wanted && signal !== 'SIGKILL') {
      console.log(`FAILED: the daemon ended by itself (${code ?? signal})`);
      process.exit(1);
    }
  });
}

const ended = (child) => new Promise((resolve) => child.once('exit', resolve));

/** Runs a command to its end; its exit code and what it printed. */
async function command(...args) {
  const child = spawn(process.execPath, [cli, ...args, '-c', configPath], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  let complaint = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    said += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    complaint += text;
  });
  const code = await new Promise((resolve) => child.once('close', resolve));
  return { code, said, complaint };
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function work(top, count) {
  const names = Array.from({ length: count }, (_, i) => join(top, `d${i % 40}`, `file ${i}.txt`));
  for (let i = 0; i < 40; i += 1) mkdirSync(join(top, `d${i}`), { recursive: true });
  for (let n = 0; Date.now() < end; n += 1) {
    const name = names[Math.floor(random() * names.length)];
    const what = random();
    if (what < 0.75)
      writeFileSync(name, `version ${n} of ${name}\n${'words '.repeat(Math.floor(random() * 400))}`);
    else if (what < 0.9) {
      writeFileSync(`${name}.tmp`, `replaced ${n}`);
      renameSync(`${name}.tmp`, name);
    } else rmSync(name, { force: true });
    await sleep(random() * 60);
  }
}

async function kill() {
  happened.kills += 1;
  const gone = ended(daemon);
  daemon.kill('SIGKILL');
  await gone;
  startDaemon();
}

async function outage() {
  happened.outages += 1;
  const gone = ended(peer);
  peer.kill('SIGKILL');
  await gone;
  await sleep(random() * 15_000);
  await startPeer();
}

/** Folders come and go and change, the mirror is asked for more or less often. */
async function reload() {
  configure({
    notes: random() < 0.7,
    collection: `notes${Math.floor(random() * 3)}`,
    settle: random() < 0.5 ? '300ms' : '1s',
    every: random() < 0.5 ? '2s' : '5s',
  });
  const { code, complaint } = await command('reload');
  if (code === 0) happened.reloads += 1;
  else console.log(`a reload was not done: ${complaint.trim()}`);
}

async function refusedReload() {
  const right = readFileSync(configPath);
  writeFileSync(configPath, JSON.stringify({ ...JSON.parse(right), push: { maxItems: 'many' } }));
  daemon.kill('SIGHUP');
  await sleep(1_000);
  writeFileSync(configPath, right);
  happened.refusals += 1;
}

async function pause() {
  happened.pauses += 1;
  await command('pause', '--for', '1h');
  await sleep(random() * 10_000);
  await command('resume');
}

async function troubles() {
  while (Date.now() < end) {
    await sleep(10_000 + random() * 20_000);
    if (Date.now() > end) return;
    // A short soak has one kill at least.
    const what = happened.kills === 0 && Date.now() < lastLife ? 0 : random();
    if (what < 0.15) await (Date.now() < lastLife ? kill() : outage());
    else if (what < 0.35) await outage();
    else if (what < 0.75) await reload();
    else if (what < 0.85) await refusedReload();
    else await pause();
  }
}

/** Somebody else changes the table, also while the peer is away. */
async function changeTable() {
  while (Date.now() < end) {
    await sleep(3_000 + random() * 10_000);
    const { code } = await command(
      'table',
      'set',
      'soak',
      '--pk',
      `row${Math.floor(random() * 50)}`,
      `at=${Date.now()}`,
    );
    if (code === 0) happened.rows += 1;
  }
}

/** One browser stays, others come and go, and monitoring asks; the daemon may be away. */
async function look(stays) {
  while (Date.now() < end) {
    try {
      const leaving = AbortSignal.timeout(stays ? 24 * 3_600_000 : 2_000 + Math.floor(random() * 10_000));
      if (!stays) {
        const metrics = await fetch(`http://127.0.0.1:${pagePort}/metrics`, {
          headers: { accept: 'application/openmetrics-text' },
          signal: leaving,
        });
        if ((await metrics.text()).endsWith('# EOF\n')) happened.scrapes += 1;
      }
      const live = await fetch(`http://127.0.0.1:${pagePort}/api/live`, { signal: leaving });
      for await (const _ of live.body) {
        happened.events += 1;
        if (Date.now() > end) break;
      }
    } catch {
      await sleep(1_000);
    }
  }
}

async function listed() {
  const { said } = await command('list', '--json');
  return said.split('\n').filter(Boolean).map(JSON.parse);
}

function rssMb(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)[1]) / 1000;
}

const memory = [];
async function tell() {
  while (Date.now() < end) {
    await sleep(30_000);
    const counts = {};
    for (const { status } of await listed()) counts[status] = (counts[status] ?? 0) + 1;
    const rss = daemon.exitCode === null ? rssMb(daemon.pid) : 0;
    if (Date.now() > lastLife) memory.push(rss);
    const minute = ((Date.now() - started) / 60_000).toFixed(1);
    console.log(
      `${minute} min: ${JSON.stringify(counts)}, ${rss.toFixed(0)} MB, ${JSON.stringify(happened)}`,
    );
  }
}

function configure(choice) {
  const folder = (name, path, collection) => ({
    name,
    path,
    collection,
    url: `https://soak.example/${name}/`,
    settle: choice.settle,
  });
  const config = {
    peer: {
      url: `http://127.0.0.1:${port}`,
      auth: { username: 'admin', password: { file: join(root, 'peer', 'admin-password') } },
    },
    folders: [
      folder('inbox', inbox, 'soak'),
      ...(choice.notes ? [folder('notes', notes, choice.collection)] : []),
    ],
    mirror: {
      root: join(root, 'mirror'),
      tables: [{ table: 'soak', path: 'soak.csv', every: choice.every }],
    },
    state: { dir: join(root, 'state') },
    status: { listen: `127.0.0.1:${pagePort}` },
    log: { level: 'warn' },
  };
  writeFileSync(`${configPath}.new`, JSON.stringify(config));
  renameSync(`${configPath}.new`, configPath);
}

const AT_LAST = { notes: true, collection: 'notes', settle: '300ms', every: '2s' };
mkdirSync(inbox, { recursive: true });
mkdirSync(notes, { recursive: true });
const pagePort = await freePort();
await startPeer();
configure(AT_LAST);
startDaemon();
await Promise.all([
  work(inbox, 2_000),
  work(notes, 300),
  troubles(),
  changeTable(),
  look(true),
  look(false),
  tell(),
]);
configure(AT_LAST);
const { code, complaint } = await command('reload');
if (code !== 0) console.log(`the last reload was not done: ${complaint}`);

const onDisk = new Map();
for (const [folder, top] of [
  ['inbox', inbox],
  ['notes', notes],
]) {
  for (const entry of readdirSync(top, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    const path = `${folder}/${file.slice(top.length + 1)}`;
    onDisk.set(path, createHash('sha256').update(readFileSync(file)).digest('hex'));
  }
}
let wrong = [];
for (let i = 0; i < 120; i += 1) {
  const known = new Map((await listed()).map((entry) => [`${entry.folder}/${entry.path}`, entry]));
  wrong = [...onDisk].filter(([path, sha256]) => {
    const entry = known.get(path);
    return entry?.status !== 'confirmed' || entry.sha256 !== sha256;
  });
  if (wrong.length === 0) break;
  await sleep(1_000);
}
for (const [path, sha256] of onDisk) {
  const url = `https://soak.example/${path.split('/').map(encodeURIComponent).join('/')}`;
  const shown = await fetch(`http://127.0.0.1:${port}/api/peerdoc.json?url=${encodeURIComponent(url)}`);
  const { digest } = shown.ok ? await shown.json() : {};
  if (digest !== sha256) wrong.push([path, `the peer shows ${digest}`]);
}
const table = await command('table', 'get', 'soak', '--format', 'csv');
for (let i = 0; i < 30; i += 1) {
  const mirrored = readFileSync(join(root, 'mirror', 'soak.csv'), 'utf8');
  if (mirrored === table.said) break;
  if (i === 29)
    wrong.push(['soak.csv', `the peer has ${table.said}${table.complaint}, on disk is ${mirrored}`]);
  await sleep(1_000);
}
wanted = false;
daemon.kill('SIGTERM');
peer.kill('SIGTERM');
await Promise.all([ended(daemon), ended(peer)]);

const quarter = Math.ceil(memory.length / 4);
const mean = (figures) => figures.reduce((sum, figure) => sum + figure, 0) / Math.max(1, figures.length);
const [early, late] = [mean(memory.slice(0, quarter)), mean(memory.slice(-quarter))];
const grew = late > early * 1.5 + 30;
console.log(
  `${onDisk.size} files and a table of ${table.said.split('\n').length - 2} rows, ${wrong.length} of them not as they are elsewhere; memory of the last life ${early.toFixed(0)} → ${late.toFixed(0)} MB`,
);
if (wrong.length > 0) console.log(wrong.slice(0, 10));
else rmSync(root, { recursive: true, force: true });
console.log(wrong.length > 0 || grew ? 'FAILED' : 'passed');
process.exit(wrong.length > 0 || grew ? 1 : 0);
