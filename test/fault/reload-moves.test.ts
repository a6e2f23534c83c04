import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { answers, ask } from '../support/ask.js';
import { Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { PeerProcess } from '../support/peer-process.js';
import { Random } from '../support/random.js';
import { ScriptedPeer, slow, when } from '../support/scripted-peer.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { BusyUser } from './busy-user.js';
import type { Listed } from './setting.js';

const RELOADS = 12;
const SAME = 30;
const DIRECTORIES = ['one', 'two', 'three'] as const;

function shuffled<T>(values: readonly T[], random: Random): T[] {
  const rest = [...values];
  const out: T[] = [];
  while (rest.length > 0) out.push(...rest.splice(random.between(0, rest.length - 1), 1));
  return out;
}

it(`folders that swap places, names, addresses and collections ${RELOADS} times while a slow peer is pushed to end as they are on disk`, async () => {
  const random = Random.seeded();
  const peer = await PeerProcess.start(temporaryDirectory());
  const proxy = await ScriptedPeer.start(peer.url);
  proxy.behaviour = when(
    ({ items }) => items.length > 0,
    (call) => slow(random.chance(0.2) ? random.between(500, 3_000) : random.between(0, 100))(call),
  );
  const directory = temporaryDirectory();
  for (const name of DIRECTORIES) mkdirSync(join(directory, name), { recursive: true });
  const user = new BusyUser(directory, ['one', 'two', 'three'], new Random(random.seed + 1));
  for (const name of DIRECTORIES) for (let i = 0; i < SAME; i += 1) user.write(`${name}/same/${i}.txt`);
  type Folder = {
    readonly name: string;
    readonly path: string;
    readonly url: string;
    readonly collection: string;
    readonly settle: string;
  };
  let folders: Folder[] = [];
  const change = (): string => {
    const paths = shuffled(DIRECTORIES, random);
    // Mostly a directory keeps its URL, and a name its collection: then what was before is back after a few changes.
    const urls = random.chance(0.7) ? paths : shuffled(DIRECTORIES, random);
    const collections = random.chance(0.6) ? DIRECTORIES : shuffled(DIRECTORIES, random);
    const names = random.chance(0.3) ? ['uno', 'two', 'tres'] : DIRECTORIES;
    folders = names
      .map((name, i) => ({
        name,
        path: join(directory, paths[i] ?? ''),
        url: `https://files.example.org/${urls[i]}/`,
        collection: collections[i] ?? '',
        settle: random.chance(0.5) ? '100ms' : '250ms',
      }))
      .slice(0, random.chance(0.2) ? 2 : 3);
    return writeConfig(directory, {
      peer: peer.section(proxy.url),
      folders,
      push: { maxItems: 10 },
      confirm: { maxInterval: '200ms' },
    });
  };
  const daemon = new Running(['run', '--config', change()]);
  const stateDir = join(directory, 'state');
  await answers(stateDir);
  user.work();
  for (let i = 0; i < RELOADS; i += 1) {
    change();
    expect(await ask(stateDir, 'reload')).toHaveLength(1);
    for (let j = 0; j < 5; j += 1)
      if (random.chance(0.5))
        user.write(`${random.pick(DIRECTORIES)}/same/${random.between(0, SAME - 1)}.txt`);
    await new Promise((resolve) => setTimeout(resolve, random.between(0, 800)));
  }
  user.rest();
  do change();
  while (folders.length < 3);
  await ask(stateDir, 'reload');
  const wrong = async (): Promise<string[]> => {
    const listed = (await ask(stateDir, 'list')) as Listed[];
    const known = new Map(listed.map((entry) => [`${entry.folder}/${entry.path}`, entry]));
    const out: string[] = [];
    for (const [file, digest] of user.files()) {
      const [dir = ''] = file.split('/');
      const rest = file.slice(dir.length + 1);
      const folder = folders.find(({ path }) => path.endsWith(`/${dir}`));
      if (folder === undefined) continue;
      const entry = known.get(`${folder.name}/${rest}`);
      known.delete(`${folder.name}/${rest}`);
      const url = `${folder.url}${rest}`;
      if (entry?.status !== 'confirmed' || entry.sha256 !== digest || entry.url !== url)
        out.push(`${file} for ${url} in ${folder.collection}: ${JSON.stringify(entry)}`);
    }
    for (const [path, { status }] of known) if (status !== 'gone') out.push(`ghost ${path} ${status}`);
    return out;
  };
  let last: string[] = [];
  const isDone = async () => {
    last = await wrong();
    return last.length === 0;
  };
  await until(isDone, 'all are confirmed', 120_000).catch((error: unknown) => {
    throw new Error(`PEERSYNC_TEST_SEED=${random.seed}\n${last.join('\n')}\n${daemon.stdout.slice(-3000)}`, {
      cause: error,
    });
  });
  const bad: string[] = [];
  for (const [file, digest] of user.files()) {
    const [dir = ''] = file.split('/');
    const folder = folders.find(({ path }) => path.endsWith(`/${dir}`));
    const url = `${folder?.url}${file.slice(dir.length + 1)}`;
    const shown = await peer.peerdoc(url);
    if (shown?.digest !== digest || shown.collections.join() !== folder?.collection)
      bad.push(
        `PEERSYNC_TEST_SEED=${random.seed}: ${file} is ${digest} in ${folder?.collection}: ${JSON.stringify(shown)}`,
      );
  }
  expect(await daemon.kill('SIGTERM')).toMatchObject({ code: 0, stderr: '' });
  expect(bad).toEqual([]);
  expect(daemon.stdout).not.toContain('"level":50');
}, 400_000);
