import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { appendFile, mkdir, open, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Where people and programs work: two watched folders, a place outside of both, and an eye on what is confirmed. */
export interface Workplace {
  readonly inbox: string;
  readonly archive: string;
  readonly outside: string;
  /** Resolves when the file is confirmed as it is now. */
  readonly confirmed: (file: string) => Promise<void>;
  /** Files that were confirmed, and then removed or moved away for good. */
  readonly removed: string[];
}

/** What a person or program does to files. Every content it writes is one that nobody else writes. */
export type Work = (at: Workplace) => Promise<void>;

function text(...words: readonly (string | number)[]): string {
  return `# ${words.join(' ')}\n\nWritten by somebody at work.\n`;
}

async function write(file: string, content: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, content);
}

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

/** A pause, shorter or longer than a file needs to settle, so that what follows meets every stage of a file's way. */
const aWhile = (n: number) => sleep((n * 137) % 600);

const dropsFiles: Work = async ({ inbox }) => {
  for (const i of numbers(150)) {
    await write(join(inbox, 'drops', `${i % 7}`, `dropped ${i}.md`), text('dropped', i));
    await sleep(5);
  }
};

const appendsSlowly: Work = async ({ inbox }) => {
  await Promise.all(
    numbers(6).map(async (log) => {
      const file = join(inbox, 'logs', `${log}.txt`);
      await write(file, text('log', log));
      for (const line of numbers(25)) {
        await sleep(30 + log * 25);
        await appendFile(file, `log ${log}, line ${line}\n`);
      }
    }),
  );
};

const rewritesInPlace: Work = async ({ inbox }) => {
  await Promise.all(
    numbers(8).map(async (n) => {
      const file = join(inbox, 'in place', `${n}.md`);
      await write(file, text('in place', n, 'round', 100));
      for (const round of numbers(8)) {
        await aWhile(n + round * 3);
        const handle = await open(file, 'r+');
        await handle.write(text('in place', n, 'round', 101 + round), 0);
        await handle.close();
      }
    }),
  );
};

const replacesAtomically: Work = async ({ inbox }) => {
  await Promise.all(
    numbers(8).map(async (n) => {
      const file = join(inbox, 'replaced', `${n}.md`);
      await write(file, text('replaced', n, 'round', 0));
      for (const round of numbers(8)) {
        await aWhile(n * 5 + round);
        const beside = n % 2 === 0 ? `${file}.tmp` : `${file}.new`;
        await writeFile(beside, text('replaced', n, 'round', round + 1));
        await rename(beside, file);
      }
    }),
  );
};

const renamesFiles: Work = async ({ inbox, confirmed, removed }) => {
  await Promise.all(
    numbers(12).map(async (n) => {
      const name = (round: number) => join(inbox, 'renamed', `${n} for the ${round}. time.md`);
      await write(name(0), text('renamed', n));
      if (n % 2 === 0) {
        await confirmed(name(0));
        removed.push(name(0));
      }
      for (const round of numbers(4)) {
        await aWhile(n + round);
        await rename(name(round), name(round + 1));
      }
    }),
  );
};

/** Two files of the same size, written at the same time, change their places. */
const swapsFiles: Work = async ({ inbox, confirmed }) => {
  const [one, other] = [join(inbox, 'swapped', 'one.md'), join(inbox, 'swapped', 'two.md')];
  await Promise.all([write(one, text('swapped', 1)), write(other, text('swapped', 2))]);
  await Promise.all([confirmed(one), confirmed(other)]);
  await rename(one, `${one}.part`);
  await rename(other, one);
  await rename(`${one}.part`, other);
};

const movesBetweenFolders: Work = async ({ inbox, archive, confirmed, removed }) => {
  await Promise.all(
    numbers(12).map(async (n) => {
      const [here, there] = [join(inbox, 'moved', `${n}.md`), join(archive, 'moved', `${n}.md`)];
      await write(here, text('moved', n));
      await mkdir(dirname(there), { recursive: true });
      if (n % 2 === 0) await confirmed(here);
      await rename(here, there);
      await aWhile(n);
      await rename(there, here);
      if (n % 4 === 0) await confirmed(here);
      else await aWhile(n + 1);
      await rename(here, there);
      if (n % 2 === 0) removed.push(here);
    }),
  );
};

const deletesFiles: Work = async ({ inbox, confirmed, removed }) => {
  await Promise.all(
    numbers(30).map(async (n) => {
      const file = join(inbox, 'deleted', `${n}.md`);
      await write(file, text('deleted', n));
      if (n % 3 === 0) {
        await confirmed(file);
        removed.push(file);
      } else await aWhile(n);
      await rm(file);
    }),
  );
};

const renamesDirectories: Work = async ({ inbox, archive, confirmed, removed }) => {
  const at = (root: string, round: number) => join(root, `project ${round}`);
  const names = numbers(60).map((n) => join('part', String(n % 4), 'deeper', `${n}.md`));
  for (const name of names) await write(join(at(inbox, 0), name), text('project', name));
  for (const name of names.slice(0, 10)) await confirmed(join(at(inbox, 0), name));
  removed.push(...names.slice(0, 10).map((name) => join(at(inbox, 0), name)));
  for (const round of numbers(3)) {
    await rename(at(inbox, round), at(inbox, round + 1));
    await write(join(at(inbox, round + 1), 'part', 'new', `${round}.md`), text('project, new', round));
    await aWhile(round + 1);
  }
  await rename(at(inbox, 3), at(archive, 4));
};

/** A whole tree appears at once, is removed, and another one with the same names takes its place. */
const unpacksTrees: Work = async ({ inbox, outside, confirmed }) => {
  const unpacked = join(inbox, 'unpacked');
  for (const round of numbers(2)) {
    const tree = join(outside, `tree ${round}`);
    for (const n of numbers(80)) await write(join(tree, `${n % 9}`, `${n}.md`), text('tree', round, n));
    await rm(unpacked, { recursive: true, force: true });
    await rename(tree, unpacked);
    if (round === 0) await confirmed(join(unpacked, '0', '0.md'));
  }
};

/** A file becomes a directory and a directory a file, under the same names, without a pause. */
const changesKinds: Work = async ({ inbox, confirmed }) => {
  const [file, directory] = [join(inbox, 'kinds', 'file'), join(inbox, 'kinds', 'directory')];
  await write(file, text('kinds', 'file'));
  await write(join(directory, 'in.md'), text('kinds', 'in'));
  await Promise.all([confirmed(file), confirmed(join(directory, 'in.md'))]);
  rmSync(file);
  mkdirSync(file);
  writeFileSync(join(file, 'below.md'), text('kinds', 'below'));
  rmSync(directory, { recursive: true });
  writeFileSync(directory, text('kinds', 'directory'));
};

/** 5,000 files in 500 new directories, nested four deep, as fast as they can be written. */
const floods: Work = async ({ inbox }) => {
  await sleep(500);
  for (const d of numbers(500)) {
    const directory = join(inbox, 'flood', `${d % 5}`, `${d % 25}`, `${d % 100}`, `${d}`);
    mkdirSync(directory, { recursive: true });
    for (const f of numbers(10)) writeFileSync(join(directory, `${f}.md`), text('flood', d, f));
    if (d % 5 === 0) await sleep(1);
    if (d % 50 === 0) renameSync(join(directory, '0.md'), join(directory, 'renamed.md'));
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
