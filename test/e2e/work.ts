import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { appendFile, open, rename, rm, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Site } from '../support/site.js';

/**
 * Changes to files in `inbox` and `archive`, as people and programs make them. Every content is
 * unique.
 *
 * @param removed files that were confirmed, and then removed or moved away for good
 */
type Work = (site: Site, removed: string[]) => Promise<void>;

function text(...words: readonly (string | number)[]): string {
  return `# ${words.join(' ')}\n\nWritten by somebody at work.\n`;
}

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

/** Does something to many files at once. */
const toMany = async (count: number, work: (n: number) => Promise<void>) => {
  await Promise.all(numbers(count).map(work));
};

/**
 * A pause, shorter or longer than a file needs to settle, so that what follows meets every stage of
 * a file's way.
 */
const aWhile = (n: number) => sleep((n * 137) % 600);

const dropsFiles: Work = async (site) => {
  for (const i of numbers(150)) {
    site.drop(`inbox/drops/${i % 7}/dropped ${i}.md`, text('dropped', i));
    await sleep(5);
  }
};

const appendsSlowly: Work = (site) =>
  toMany(6, async (log) => {
    const file = `inbox/logs/${log}.txt`;
    site.drop(file, text('log', log));
    for (const line of numbers(25)) {
      await sleep(30 + log * 25);
      await appendFile(site.path(file), `log ${log}, line ${line}\n`);
    }
  });

const rewritesInPlace: Work = (site) =>
  toMany(8, async (n) => {
    const file = `inbox/in place/${n}.md`;
    site.drop(file, text('in place', n, 'round', 100));
    for (const round of numbers(8)) {
      await aWhile(n + round * 3);
      const handle = await open(site.path(file), 'r+');
      await handle.write(text('in place', n, 'round', 101 + round), 0);
      await handle.close();
    }
  });

const replacesAtomically: Work = (site) =>
  toMany(8, async (n) => {
    const file = `inbox/replaced/${n}.md`;
    site.drop(file, text('replaced', n, 'round', 0));
    for (const round of numbers(8)) {
      await aWhile(n * 5 + round);
      const beside = site.path(`${file}.${n % 2 === 0 ? 'tmp' : 'new'}`);
      await writeFile(beside, text('replaced', n, 'round', round + 1));
      await rename(beside, site.path(file));
    }
  });

const renamesFiles: Work = (site, removed) =>
  toMany(12, async (n) => {
    const name = (round: number) => `inbox/renamed/${n} for the ${round}. time.md`;
    site.drop(name(0), text('renamed', n));
    if (n % 2 === 0) {
      await site.confirmed(name(0));
      removed.push(name(0));
    }
    for (const round of numbers(4)) {
      await aWhile(n + round);
      await rename(site.path(name(round)), site.path(name(round + 1)));
    }
  });

/** Two files of the same size, written at the same time, change their places. */
const swapsFiles: Work = async (site) => {
  const files = ['inbox/swapped/one.md', 'inbox/swapped/two.md'] as const;
  for (const [n, file] of files.entries()) site.drop(file, text('swapped', n));
  await site.confirmed(...files);
  const [one, other] = [site.path(files[0]), site.path(files[1])];
  await rename(one, `${one}.part`);
  await rename(other, one);
  await rename(`${one}.part`, other);
};

const movesBetweenFolders: Work = (site, removed) =>
  toMany(12, async (n) => {
    const file = `inbox/moved/${n}.md`;
    const [here, there] = [site.path(file), site.path(`archive/moved/${n}.md`)];
    site.drop(file, text('moved', n));
    mkdirSync(site.path('archive/moved'), { recursive: true });
    if (n % 2 === 0) await site.confirmed(file);
    await rename(here, there);
    await aWhile(n);
    await rename(there, here);
    if (n % 4 === 0) await site.confirmed(file);
    else await aWhile(n + 1);
    await rename(here, there);
    if (n % 2 === 0) removed.push(file);
  });

const deletesFiles: Work = (site, removed) =>
  toMany(30, async (n) => {
    const file = `inbox/deleted/${n}.md`;
    site.drop(file, text('deleted', n));
    if (n % 3 === 0) {
      await site.confirmed(file);
      removed.push(file);
    } else await aWhile(n);
    await rm(site.path(file));
  });

const renamesDirectories: Work = async (site, removed) => {
  const files = numbers(60).map((n) => `inbox/project 0/part/${n % 4}/deeper/${n}.md`);
  for (const file of files) site.drop(file, text('project', file));
  await site.confirmed(...files.slice(0, 10));
  removed.push(...files.slice(0, 10));
  for (const round of numbers(3)) {
    const next = `inbox/project ${round + 1}`;
    await rename(site.path(`inbox/project ${round}`), site.path(next));
    site.drop(`${next}/part/new/${round}.md`, text('project, new', round));
    await aWhile(round + 1);
  }
  await rename(site.path('inbox/project 3'), site.path('archive/project 4'));
};

/**
 * A whole tree appears at once, is removed, and another one with the same names takes its place.
 */
const unpacksTrees: Work = async (site) => {
  const unpacked = site.path('inbox/unpacked');
  for (const round of numbers(2)) {
    const tree = `outside/tree ${round}`;
    for (const n of numbers(80)) site.drop(`${tree}/${n % 9}/${n}.md`, text('tree', round, n));
    await rm(unpacked, { recursive: true, force: true });
    await rename(site.path(tree), unpacked);
    if (round === 0) await site.confirmed('inbox/unpacked/0/0.md');
  }
};

/** A file becomes a directory and a directory a file, under the same names, without a pause. */
const changesKinds: Work = async (site) => {
  const [file, directory] = ['inbox/kinds/file', 'inbox/kinds/directory'];
  site.drop(file, text('kinds', 'file'));
  site.drop(`${directory}/in.md`, text('kinds', 'in'));
  await site.confirmed(file, `${directory}/in.md`);
  rmSync(site.path(file));
  site.drop(`${file}/below.md`, text('kinds', 'below'));
  rmSync(site.path(directory), { recursive: true });
  writeFileSync(site.path(directory), text('kinds', 'directory'));
};

/** 5,000 files in 500 new directories, nested four deep, as fast as they can be written. */
const floods: Work = async (site) => {
  await sleep(500);
  for (const d of numbers(500)) {
    const directory = `inbox/flood/${d % 5}/${d % 25}/${d % 100}/${d}`;
    for (const f of numbers(10)) site.drop(`${directory}/${f}.md`, text('flood', d, f));
    if (d % 5 === 0) await sleep(1);
    if (d % 50 === 0)
      renameSync(site.path(`${directory}/0.md`), site.path(`${directory}/renamed.md`));
  }
};

export const ALL_WORK: readonly Work[] = [
  dropsFiles,
  appendsSlowly,
  rewritesInPlace,
  replacesAtomically,
  renamesFiles,
  swapsFiles,
  movesBetweenFolders,
  deletesFiles,
  renamesDirectories,
  unpacksTrees,
  changesKinds,
  floods,
];
