import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { isInstalled } from '../content/corpus/corpus.js';
import { pdf } from '../content/documents.js';
import { tar } from '../content/tar.js';
import { afterwards } from '../support/afterwards.js';
import { Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { MarkedPrograms } from '../support/marked-programs.js';
import { memoryMb } from '../support/memory.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { peersync } from '../support/warm-cli.js';
import { memberless } from './many-members.js';

const MB = 1_000_000;
/** The longest time until all has come to rest: one program may take two minutes. */
const REST_MS = 420_000;
const NOTE_SECONDS = 30;
/** Memory of the daemon and of all that it started, in MB, and the disk that programs may fill. */
const MOST_MEMORY_MB = 1_500;
const MOST_DISK_MB = 1_200;

/** What each program does, by the extension of the files that it reads, and what comes of it. */
const PROGRAMS: Readonly<Record<string, readonly [lines: string, outcome: RegExp]>> = {
  '.flood': ['exec yes', /^quarantined .*flood writes more than/],
  '.sleeps': ['exec sleep 100000', /^quarantined .*sleeps takes longer than/],
  '.forks': ['sleep 100000 & sleep 100000 & echo words of a program that forks', /^confirmed/],
  '.signal': ['kill -SEGV $$', /^quarantined .*signal was ended by SIGSEGV/],
  '.fails': ['echo "it has no heart" >&2; exit 3', /^quarantined .*code 3 \(it has no heart\)/],
  '.silent': ['exit 0', /^skipped .*no text/],
  '.binary': ['head -c 100000 /dev/urandom', /^quarantined .*binary writes no text/],
  '.shows': ['cat "$1"', /^confirmed/],
};
/** Programs that only `prlimit` holds back. */
const LIMITED: typeof PROGRAMS = {
  '.memory': ['dd if=/dev/zero of=/dev/null bs=3G count=1', /^quarantined .*memory/],
  '.disk': ['head -c 3000000000 /dev/zero > large; exit $?', /^quarantined .*disk/],
};

interface Listed {
  readonly path: string;
  readonly status: string;
  readonly message?: string;
}

/** Size of all files below a directory, in MB. */
function sizeMb(directory: string): number {
  let bytes = 0;
  try {
    for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' }))
      bytes += statSync(join(directory, name), { throwIfNoEntry: false })?.size ?? 0;
  } catch {
    // It was removed meanwhile.
  }
  return bytes / MB;
}

it('hostile programs and files cost their own document, and no process and no file is left of them', {
  timeout: 900_000,
}, async () => {
  const directory = temporaryDirectory();
  const scratch = temporaryDirectory();
  const programs = new MarkedPrograms(directory);
  const all = { ...PROGRAMS, ...(isInstalled('prlimit') ? LIMITED : {}) };
  const commands = Object.entries(all).map(([extension, [lines]]) => {
    const path = programs.add(extension.slice(1), lines);
    return [extension, [path, '{file}']] as const;
  });
  const config = writeConfig(directory, {
    peer: { url: 'embedded', embedded: { dir: './peer', port: 0 } },
    folders: [{ name: 'inbox', maxFileSize: '100 MiB' }],
    documents: { commands: Object.fromEntries(commands), pageTimeout: '15s' },
  });
  const inbox = (name: string) => join(directory, 'inbox', name);
  const written = join(directory, 'pwned');
  const files: Readonly<Record<string, readonly [content: Uint8Array | string, RegExp]>> = {
    ...Object.fromEntries(
      Object.entries(all).map(([extension, [, outcome]]) => [
        `a${extension}`,
        [`words in a${extension}`, outcome],
      ]),
    ),
    '-rf;$(touch pwned).pdf': [pdf('Zirbelnuss'), /^confirmed/],
    '--help;$(touch pwned) ".shows': ['Haselnuss', /^confirmed/],
    'link.tar': [
      tar(
        { name: 'passwords', type: '2', link: '/etc/passwd' },
        { name: 'passwords/a.txt', content: 'Walnuss' },
      ),
      /^confirmed/,
    ],
    'million.zip': [memberless(1_000_000), /^confirmed/],
  };
  for (const [name, [content]] of Object.entries(files)) writeFileSync(inbox(name), content);

  const daemon = new Running(['run', '-c', config], {
    cwd: directory,
    env: { TMPDIR: scratch },
  });
  const pid = daemon.child.pid ?? 0;
  let [mostMb, mostDiskMb] = [0, 0];
  const sampling = setInterval(() => {
    mostMb = Math.max(mostMb, memoryMb(pid));
    mostDiskMb = Math.max(mostDiskMb, sizeMb(scratch) + sizeMb(join(directory, 'state')));
  }, 100);
  afterwards('test', () => clearInterval(sampling));
  await daemon.says(/search it at/);
  const base = /search it at (http:\/\/[\d.:]+\/)/.exec(daemon.stdout)?.[1] ?? '';
  const list = async () => {
    const { stdout } = await peersync(['list', '--json', '-c', config]);
    return stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Listed]));
  };

  await until(() => programs.running().length > 0, 'a program runs');
  const droppedAt = performance.now();
  writeFileSync(inbox('note.md'), 'a note beside them');
  const noteIsThere = async () =>
    (await list()).some(({ path, status }) => path === 'note.md' && status === 'confirmed');
  await until(noteIsThere, 'the note is confirmed');
  const noteSeconds = (performance.now() - droppedAt) / 1_000;

  let listed: readonly Listed[] = [];
  await until(
    async () => {
      await new Promise((resolve) => setTimeout(resolve, 500));
      listed = await list();
      const waits = listed.some(({ status }) => status === 'pending' || status === 'accepted');
      return listed.length === Object.keys(files).length + 1 && !waits;
    },
    'each file has come to rest',
    REST_MS,
  );
  const seconds = (performance.now() - droppedAt) / 1_000;
  console.log(
    `note after ${noteSeconds.toFixed(1)} s, all after ${seconds.toFixed(0)} s;`,
    `most memory ${Math.round(mostMb)} MB, most disk ${Math.round(mostDiskMb)} MB`,
  );
  for (const [name, [, outcome]] of Object.entries(files)) {
    const { message = '', status } = listed.find(({ path }) => path === name) ?? {};
    expect(`${status} ${message}`, name).toMatch(outcome);
    if (status !== 'quarantined') continue;
    expect(message, name).toMatch(/^No text can be read from the file: .+[^.]\.$/);
    const { stdout } = await peersync(['why', inbox(name), '-c', config]);
    expect(stdout.replace(/\s+/g, ' '), name).toContain(message);
  }
  const { stdout: cut } = await peersync(['why', inbox('million.zip'), '-c', config]);
  expect(cut.replace(/\s+/g, ' ')).toContain('more than 10,000 members');
  const found = async (word: string) => {
    const answer = await fetch(`${base}search.json?query=${encodeURIComponent(`"${word}"`)}`);
    return ((await answer.json()) as { readonly total: number }).total;
  };
  for (const word of ['Zirbelnuss', 'Haselnuss', 'Walnuss', 'forks'])
    expect([word, await found(word)]).toEqual([word, 1]);
  // A word of the file that the link leads to.
  expect(await found('nologin')).toBe(0);
  expect([written, inbox('pwned'), join(scratch, 'pwned')].filter(existsSync)).toEqual([]);
  await until(() => programs.running().length === 0, 'no program is left', 20_000).catch(() => {});
  expect(programs.running()).toEqual([]);
  expect(mostMb).toBeLessThan(MOST_MEMORY_MB);
  expect(mostDiskMb).toBeLessThan(MOST_DISK_MB);
  // A machine that is slow delays the others, too.
  expect(noteSeconds).toBeLessThan(Math.max(NOTE_SECONDS, seconds / 2));
  expect((await daemon.kill('SIGTERM')).code).toBe(0);
  expect(readdirSync(scratch)).toEqual([]);
  expect(daemon.stderr).not.toMatch(/Abort|FATAL|Error:/);
});

it('a program that runs ends with a daemon that is killed', async () => {
  const directory = temporaryDirectory();
  const programs = new MarkedPrograms(directory);
  const path = programs.add('sleeps', 'sleep 100000 & sleep 100000');
  const config = writeConfig(directory, {
    peer: { url: 'embedded', embedded: { dir: './peer', port: 0 } },
    documents: { commands: { '.sleeps': [path, '{file}'] } },
  });
  writeFileSync(join(directory, 'inbox', 'a.sleeps'), 'words');
  const daemon = new Running(['run', '-c', config]);
  await until(() => programs.running().length >= 3, 'the program and what it started run');
  await daemon.kill('SIGKILL');
  await until(() => programs.running().length === 0, 'no program is left', 20_000);
});
