// Takes the picture of the status page that the README shows: a real daemon with a peer of its own, at work for a while.
// Needs the build and a Chromium:
//
//   node test/tools/page-picture.mjs [MINUTES] [DIRECTORY]
//
// DIRECTORY is where the example lives while the picture is taken; it must not exist yet, and is removed again.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';

const root = resolve(import.meta.dirname, '../..');
const cli = join(root, 'dist/cli.js');
const picture = join(root, '.github/status-page.png');
const minutes = Number(process.argv[2] ?? 15);
const home = resolve(process.argv[3] ?? join(tmpdir(), 'library'));
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
if (existsSync(home)) throw new Error(`${home} is there already`);

const FOLDERS = { notes: 90, papers: 420, letters: 40 };
const WORDS =
  'harbour lantern orchard winter ledger compass meadow granite violin saffron tide archive'.split(' ');

function write(folder, n) {
  const [a, b, c] = [n, n * 7 + 3, n * 5 + 1].map((i) => WORDS[i % WORDS.length]);
  const path = join(home, folder, String(2019 + (n % 8)), `${a}-${b}-${n}.md`);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(
    path,
    `# The ${a} and the ${b}\n\n${`Of the ${c}, and what became of it. `.repeat(20 + (n % 40))}\n`,
  );
}

const config = {
  peer: { url: 'embedded', embedded: { port: 0 } },
  folders: Object.keys(FOLDERS).map((name) => ({
    path: join(home, name),
    collection: name,
    url: `https://library.example.org/${name}/`,
    settle: '500ms',
  })),
  state: { dir: join(home, '.state') },
  mirror: {
    root: join(home, 'mirror'),
    tables: [
      { table: 'readers', every: '5m' },
      { table: 'shelves', every: '15m' },
    ],
  },
  status: { listen: '127.0.0.1:8397' },
};

mkdirSync(home, { recursive: true });
const file = join(home, '.config.json');
writeFileSync(file, JSON.stringify(config));
for (const folder of Object.keys(FOLDERS)) write(folder, 0);
writeFileSync(join(home, 'papers/to-be-written.md'), '');

const daemon = spawn(process.execPath, [cli, 'run', '-c', file, '--create'], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
try {
  let said = '';
  daemon.stdout.setEncoding('utf8').on('data', (text) => {
    said += text;
  });
  while (!said.includes('status page at')) {
    if (daemon.exitCode !== null) throw new Error(`the daemon ended: ${said}`);
    await sleep(100);
  }
  for (let n = 1; n <= 60; n += 1)
    await run('table', 'add', n % 5 === 0 ? 'shelves' : 'readers', `name=${WORDS[n % 12]}`, `place=${n}`);
  await run('mirror');

  // The files come in waves, as when people work.
  const steps = minutes * 6;
  const left = { ...FOLDERS };
  for (let step = 0; step < steps; step += 1) {
    const tide = Math.max(0.04, Math.sin((step / steps) * 3.4 * Math.PI) ** 3);
    for (const [folder, count] of Object.entries(FOLDERS)) {
      const now = Math.min(left[folder] - 1, Math.round((count * 2.6 * tide) / steps + Math.random() * 0.6));
      for (let i = 0; i < now; i += 1) {
        write(folder, left[folder]);
        left[folder] -= 1;
      }
    }
    await sleep(10_000);
  }

  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  const page = await browser.newPage({
    viewport: { width: 1120, height: 908 },
    colorScheme: 'light',
    reducedMotion: 'reduce',
  });
  await page.goto('http://127.0.0.1:8397/');
  await page.getByRole('heading', { name: /^\d+ files searchable\.$/ }).waitFor();
  mkdirSync(dirname(picture), { recursive: true });
  await page.screenshot({ path: picture });
  await browser.close();
  console.log(`${picture}: ${Math.round(statSync(picture).size / 1000)} KB`);
} finally {
  if (daemon.exitCode === null) {
    daemon.kill('SIGTERM');
    await once(daemon, 'exit');
  }
  rmSync(home, { recursive: true, force: true });
}

async function run(...words) {
  const child = spawn(process.execPath, [cli, ...words, '-c', file], { stdio: 'ignore' });
  await once(child, 'exit');
}
