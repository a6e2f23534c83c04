import { chmodSync, mkdirSync, renameSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { WorkThread } from '../../src/lib/work-thread.js';
import { type Found, type Lister, type Listing, listHere, ThreadLister } from '../../src/watch/lister.js';
import { FakeClock } from '../support/fake-clock.js';
import { compiledProgram } from '../support/program.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

let program = '';
beforeAll(async () => {
  program = await compiledProgram(resolve(import.meta.dirname, '../../src/watch/list-thread.ts'));
});

const threads: WorkThread[] = [];
function inThreads(clock = new FakeClock()): ThreadLister {
  const open = () => {
    const thread = new WorkThread(pathToFileURL(program));
    threads.push(thread);
    return thread;
  };
  return new ThreadLister({ clock, open, threads: 2, idleMs: 1_000 });
}

async function listed(lister: Lister, directory: string, known?: number): Promise<Listing> {
  const listing = await lister.list(directory, known, false);
  if ('code' in listing) throw new Error(listing.code);
  return listing;
}

async function entriesOf({ entries }: Listing): Promise<Found[]> {
  const all: Found[] = [];
  for await (const batch of entries ?? []) all.push(...batch);
  return all;
}

describe.each([
  ['here', () => listHere],
  ['in threads', () => inThreads()],
])('a directory that is listed %s', (_, open) => {
  it('shows what stands in it, however much that is', async () => {
    const lister = open();
    const directory = temporaryDirectory();
    mkdirSync(join(directory, 'd'));
    symlinkSync('nowhere', join(directory, 'link'));
    for (let i = 0; i < 1_700; i += 1) writeFileSync(join(directory, `f${i}`), 'x'.repeat(i % 7));
    const listing = await listed(lister, directory);
    expect(listing).toMatchObject({ files: 1_700, hasLinks: true, directories: ['d'], failed: [] });
    const entries = await entriesOf(listing);
    expect(entries).toHaveLength(1_702);
    expect(entries.find(({ name }) => name === 'link')).toMatchObject({ kind: 'link' });
    expect(entries.find(({ name }) => name === 'd')).toMatchObject({ kind: 'directory' });
    expect(entries.find(({ name }) => name === 'f1699')).toMatchObject({ kind: 'file', stat: { size: 5 } });
  });

  it('shows no entries where its digest is the known one, and all of them after any change', async () => {
    const lister = open();
    const directory = temporaryDirectory();
    const file = join(directory, 'a');
    writeFileSync(file, 'x');
    mkdirSync(join(directory, 'd'));
    let { digest } = await listed(lister, directory);
    const unchanged = await listed(lister, directory, digest);
    expect([unchanged.entries, unchanged.digest, unchanged.directories]).toEqual([undefined, digest, ['d']]);
    // What happens inside of a directory is that directory's own.
    writeFileSync(join(directory, 'd/b'), 'x');
    expect((await listed(lister, directory, digest)).digest).toBe(digest);
    for (const change of [
      () => utimesSync(file, 1, 1),
      () => writeFileSync(file, 'xy'),
      () => chmodSync(file, 0o600),
      () => renameSync(file, join(directory, 'b')),
      () => symlinkSync('b', join(directory, 'c')),
      () => mkdirSync(join(directory, 'e')),
    ]) {
      change();
      const listing = await listed(lister, directory, digest);
      expect(listing.digest).not.toBe(digest);
      expect((await entriesOf(listing)).length).toBeGreaterThan(1);
      digest = listing.digest;
    }
  });

  it('is said with the code of the system where it cannot be listed, and where something else stands there', async () => {
    const lister = open();
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'f'), 'x');
    symlinkSync(directory, join(directory, 'link'));
    expect(await lister.list(join(directory, 'none'), undefined, false)).toEqual({ code: 'ENOENT' });
    expect(await lister.list(join(directory, 'f/d'), undefined, false)).toEqual({ code: 'ENOTDIR' });
    expect(await lister.list(join(directory, 'f'), undefined, false)).toEqual({ code: 'NOT_A_DIRECTORY' });
    expect(await lister.list(join(directory, 'link'), undefined, false)).toEqual({ code: 'NOT_A_DIRECTORY' });
    expect(await lister.list(join(directory, 'link'), undefined, true)).toMatchObject({ files: 1 });
  });
});

it('threads that list share the work, end when nothing was listed for a while, and start anew', async () => {
  const clock = new FakeClock();
  const lister = inThreads(clock);
  const directory = temporaryDirectory();
  threads.length = 0;
  const both = Promise.all([listed(lister, directory), listed(lister, directory)]);
  expect(threads.map(({ waiting }) => waiting)).toEqual([1, 1]);
  expect((await both).map(({ files }) => files)).toEqual([0, 0]);
  await clock.advance(1_000);
  await listed(lister, directory);
  expect(threads).toHaveLength(2);
  await clock.advance(1_000);
  await clock.advance(1_000);
  await listed(lister, directory);
  expect(threads).toHaveLength(4);
  await lister.close();
  await until(() => clock.waiting === 0, 'nothing waits');
});
