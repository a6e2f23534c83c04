// Runs the daemon for a long time while files come, change and go, the peer is away now and then, and the daemon is
// killed now and then; tells how it stands every half minute. In the end every file at rest has to be confirmed in its last
// version, and the daemon's memory must not have grown with time. Arguments: minutes (10 unless given), seed.
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
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const minutes = Number(process.argv[2] ?? 10);
let seed = Number(process.argv[3] ?? Date.now() % 1_000_000);
const cli = new URL('../../dist/cli.js', import.meta.url).pathname;
const root = mkdtempSync(join(tmpdir(), 'peersync-soak-'));
const inbox = join(root, 'inbox');
const configPath = join(root, 'config.json');
console.log(`soaking for ${minutes} minutes with the seed ${seed} in ${root}`);

const started = Date.now();
const end = started + minutes * 60_000;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
function random() {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
  return seed / 2 ** 32;
}

let port = 0;
let peer;
let daemon;
let wanted = true;
let kills = 0;
let outages = 0;

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

async function work() {
  const names = Array.from({ length: 2_000 }, (_, i) => join(inbox, `d${i % 40}`, `file ${i}.txt`));
  for (let i = 0; i < 40; i += 1) mkdirSync(join(inbox, `d${i}`), { recursive: true });
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

async function troubles() {
  while (Date.now() < end) {
    await sleep(20_000 + random() * 30_000);
    if (Date.now() > end) return;
    if (random() < 0.5) {
      kills += 1;
      const gone = ended(daemon);
      daemon.kill('SIGKILL');
      await gone;
      startDaemon();
    } else {
      outages += 1;
      const gone = ended(peer);
      peer.kill('SIGKILL');
      await gone;
      await sleep(random() * 15_000);
      await startPeer();
    }
  }
}

async function listed() {
  const list = spawn(process.execPath, [cli, 'list', '-c', configPath, '--json']);
  let out = '';
  list.stdout.on('data', (data) => {
    out += data;
  });
  await ended(list);
  return out.split('\n').filter(Boolean).map(JSON.parse);
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
    memory.push(rss);
    const minute = ((Date.now() - started) / 60_000).toFixed(1);
    console.log(
      `${minute} min: ${JSON.stringify(counts)}, ${rss.toFixed(0)} MB, ${kills} kills, ${outages} outages`,
    );
  }
}

mkdirSync(inbox, { recursive: true });
await startPeer();
const config = {
  peer: {
    url: `http://127.0.0.1:${port}`,
    auth: { username: 'admin', password: { file: join(root, 'peer', 'admin-password') } },
  },
  folders: [
    { name: 'inbox', path: inbox, collection: 'soak', url: 'https://soak.example/', settle: '300ms' },
  ],
  state: { dir: join(root, 'state') },
  log: { level: 'warn' },
};
writeFileSync(configPath, JSON.stringify(config));
startDaemon();
await Promise.all([work(), troubles(), tell()]);

const onDisk = new Map();
for (const entry of readdirSync(inbox, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile()) continue;
  const file = join(entry.parentPath, entry.name);
  onDisk.set(file.slice(inbox.length + 1), createHash('sha256').update(readFileSync(file)).digest('hex'));
}
let wrong = [];
for (let i = 0; i < 120; i += 1) {
  const known = new Map((await listed()).map((entry) => [entry.path, entry]));
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
wanted = false;
daemon.kill('SIGTERM');
peer.kill('SIGTERM');
await Promise.all([ended(daemon), ended(peer)]);

const quarter = Math.ceil(memory.length / 4);
const mean = (figures) => figures.reduce((sum, figure) => sum + figure, 0) / Math.max(1, figures.length);
const [early, late] = [mean(memory.slice(0, quarter)), mean(memory.slice(-quarter))];
const grew = late > early * 1.5 + 30;
console.log(
  `${onDisk.size} files, ${wrong.length} not confirmed in their last version; memory ${early.toFixed(0)} → ${late.toFixed(0)} MB`,
);
if (wrong.length > 0) console.log(wrong.slice(0, 10));
else rmSync(root, { recursive: true, force: true });
console.log(wrong.length > 0 || grew ? 'FAILED' : 'passed');
process.exit(wrong.length > 0 || grew ? 1 : 0);
