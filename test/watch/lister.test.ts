import { chmodSync, mkdirSync, renameSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { WorkThread } from '../../src/lib/work-thread.js';
import { entriesOf, type List, type Listing, listHere, listIn } from '../../src/watch/lister.js';
import { compiledProgram } from '../support/program.js';
import { temporaryDirectory } from '../support/temp.js';

let program = '';
beforeAll(async () => {
  program = await compiledProgram(resolve(import.meta.dirname, '../../src/file-thread.ts'));
});

const inThreads = () => {
  const open = () => new WorkThread(pathToFileURL(program));
  return [open(), open()] as const;
};

async function listed(list: List, directory: string, known?: number): Promise<Listing> {
  const listing = await list({ directory, known, follow: false });
  if ('code' in listing) throw new Error(listing.code);
  return listing;
}

describe.each([
  ['here', () => listHere],
  ['in threads', () => listIn(inThreads())],
])('a directory that is listed %s', (_, open) => {
  it('shows what stands in it, however much that is', async () => {
    const directory = temporaryDirectory();
    mkdirSync(join(directory, 'd'));
    symlinkSync('nowhere', join(directory, 'link'));
    for (let i = 0; i < 1_700; i += 1) writeFileSync(join(directory, `f${i}`), 'x'.repeat(i % 7));
    const listing = await listed(open(), directory);
    expect(listing).toMatchObject({ files: 1_700, directories: ['d'], failed: [] });
    const entries = new Map([...entriesOf(listing)].map((entry) => [entry.name, entry]));
    expect(entries.size).toBe(1_702);
    expect(['d', 'link'].map((name) => entries.get(name)?.kind)).toEqual(['directory', 'link']);
    expect(entries.get('f1699')).toMatchObject({ kind: 'file', stat: { size: 5 } });
  });

  it('shows no entries where its digest is the known one, and all of them after any change', async () => {
    const list = open();
    const directory = temporaryDirectory();
    const file = join(directory, 'a');
    writeFileSync(file, 'x');
    mkdirSync(join(directory, 'd'));
    let { digest } = await listed(list, directory);
    // What happens inside of a directory is that directory's own.
    writeFileSync(join(directory, 'd/b'), 'x');
    const unchanged = await listed(list, directory, digest);
    expect([[...entriesOf(unchanged)], unchanged.digest, unchanged.directories]).toEqual([[], digest, ['d']]);
    for (const change of [
      () => utimesSync(file, 1, 1),
      () => writeFileSync(file, 'xy'),
      () => chmodSync(file, 0o600),
      () => renameSync(file, join(directory, 'b')),
      () => symlinkSync('b', join(directory, 'c')),
      () => mkdirSync(join(directory, 'e')),
    ]) {
      change();
      const listing = await listed(list, directory, digest);
      expect(listing.digest).not.toBe(digest);
      expect([...entriesOf(listing)].length).toBeGreaterThan(1);
      digest = listing.digest;
    }
  });

  it.each([
    ['none', false, { code: 'ENOENT' }],
    ['f/d', false, { code: 'ENOTDIR' }],
    ['f', false, { code: 'ENOTDIR' }],
    ['link', false, { code: 'ENOTDIR' }],
    ['link', true, { files: 1 }],
  ])(
    'is said with the code of the system where none stands: %s, links followed: %s',
    async (path, follow, to) => {
      const top = temporaryDirectory();
      writeFileSync(join(top, 'f'), 'x');
      symlinkSync(top, join(top, 'link'));
      expect(await open()({ directory: join(top, path), known: undefined, follow })).toMatchObject(to);
    },
  );
});

it('threads that list share the work', async () => {
  const threads = inThreads();
  const list = listIn(threads);
  const both = [listed(list, temporaryDirectory()), listed(list, temporaryDirectory())];
  expect(threads.map(({ waiting }) => waiting)).toEqual([1, 1]);
  expect((await Promise.all(both)).map(({ files }) => files)).toEqual([0, 0]);
  for (const thread of threads) await thread.close();
});
