import { lstatSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { WorkThread } from '../../src/lib/work-thread.js';
import { type Fingerprint, fileStat } from '../../src/watch/fingerprint.js';
import { Intake } from '../../src/watch/intake.js';
import { type ReadingOrder, readNow } from '../../src/watch/reading.js';
import { type GroupReader, ThreadReader } from '../../src/watch/thread-reader.js';
import { compiledProgram } from '../support/program.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

function setUp(readers: number, crowd: number, groups?: GroupReader) {
  const directory = temporaryDirectory();
  const done: [string, Fingerprint['kind']][] = [];
  let isQuiet = () => {};
  const quiet = new Promise<void>((resolve) => {
    isQuiet = resolve;
  });
  const intake = new Intake({
    readers,
    groups,
    crowd,
    onQuiet: () => isQuiet(),
    onError: (error) => expect.fail(String(error)),
  });
  const add = (path: string, content = path) => {
    const file = join(directory, path);
    writeFileSync(file, content);
    const stat = fileStat(lstatSync(file));
    intake.add({ folder: 'inbox', path, file, stat, read: ({ kind }) => done.push([path, kind]) });
  };
  return { intake, add, done, quiet };
}

describe('the intake', () => {
  it('reads every file that is added', async () => {
    const { add, done, quiet } = setUp(3, 100);
    for (let i = 0; i < 20; i += 1) add(`f${i}`);
    await quiet;
    expect(done.map(([path]) => path).sort()).toEqual(Array.from({ length: 20 }, (_, i) => `f${i}`).sort());
  });

  it('does not read a file twice at the same time', async () => {
    const { add, done, quiet } = setUp(2, 100);
    add('f');
    // Written again: whoever reads the first finds out that it raced.
    add('f');
    await quiet;
    expect(done).toEqual([['f', 'raced']]);
  });

  it('moves with every piece of a large file, and reads it for as long as that takes', async () => {
    const { intake, add, done, quiet } = setUp(1, 100);
    const moves = new Set([intake.moves]);
    add('large', 'x'.repeat(20 * 1024 * 1024));
    add('next');
    expect([intake.reading, intake.readable, intake.isCrowded]).toEqual([1, 0, false]);
    await until(() => {
      moves.add(intake.moves);
      return done.length > 0;
    }, 'it was read');
    await quiet;
    expect(intake.moves).toBeGreaterThanOrEqual(20);
    expect([intake.reading, intake.readable]).toEqual([0, 0]);
  });

  it('leaves what a group reads, and what waits for the next group, to whoever reads groups', async () => {
    let answer: () => void = () => {};
    const groups: GroupReader = {
      read: (orders) =>
        new Promise((resolve) => {
          answer = () => resolve(orders.map(readNow));
        }),
    };
    const { intake, add, quiet } = setUp(1, 100, groups);
    add('large', 'x'.repeat(2 * 1024 * 1024));
    for (let i = 0; i < 150; i += 1) add(`f${i}`);
    await until(() => intake.reading === 0, 'the large one was read');
    expect([intake.size, intake.readable, intake.isCrowded]).toEqual([150, 0, false]);
    for (let i = 0; i < 50; i += 1) add(`g${i}`);
    expect([intake.readable, intake.isCrowded]).toEqual([0, true]);
    const isQuiet = quiet.then(() => true);
    await until(() => {
      answer();
      return Promise.race([isQuiet, new Promise<false>((resolve) => setImmediate(resolve, false))]);
    }, 'all was read');
    expect([intake.size, intake.readable, intake.reading]).toEqual([0, 0, 0]);
  });

  it('reads to nobody what was forgotten, and reads the same file again for somebody else', async () => {
    const { intake, add, done, quiet } = setUp(1, 100);
    add('reading');
    add('waiting');
    intake.forget('inbox');
    expect(intake.size).toBe(0);
    add('reading', 'of somebody else');
    await quiet;
    await until(() => done.length > 0, 'it was read');
    expect(done).toEqual([['reading', 'version']]);
  });

  it('keeps nobody waiting for room among files that were forgotten', async () => {
    const { intake, add } = setUp(1, 2);
    for (let i = 0; i < 5; i += 1) add(`f${i}`);
    const room = intake.room();
    intake.forget('inbox');
    await room;
    expect(intake.size).toBe(0);
  });

  it('takes a newer look at a file that still waits', async () => {
    const { add, done, quiet } = setUp(1, 100);
    add('first');
    add('f');
    add('f');
    await quiet;
    expect(done).toEqual([
      ['first', 'version'],
      ['f', 'version'],
    ]);
  });

  it('makes a scan wait as long as it is crowded', async () => {
    const { intake, add, done } = setUp(1, 5);
    await intake.room();
    for (let i = 0; i < 10; i += 1) add(`f${i}`);
    await intake.room();
    // One of ten is read at once, and five of the others must be taken up before there are fewer than five.
    expect(done.length).toBeGreaterThanOrEqual(5);
  });

  it('says nothing more, and keeps nobody waiting, once it is stopped', async () => {
    const { intake, add, done, quiet } = setUp(1, 2);
    for (let i = 0; i < 5; i += 1) add(`f${i}`);
    const room = intake.room();
    intake.stop();
    add('late');
    await Promise.all([room, quiet]);
    expect(done).toEqual([]);
    expect(intake.size).toBe(0);
  });
});

describe('an intake with a reader of groups', () => {
  /** Reads as the thread does, and notes how many files each group had. */
  class Groups implements GroupReader {
    readonly sizes: number[] = [];
    broken = false;
    async read(orders: readonly ReadingOrder[]) {
      this.sizes.push(orders.length);
      if (this.broken) throw new Error('broken');
      return orders.map(readNow);
    }
  }
  const names = Array.from({ length: 300 }, (_, i) => `f${i}`);
  const all = names.map((name) => [name, 'version']).sort();

  it('reads every file once, small ones in groups where many wait', async () => {
    const groups = new Groups();
    const { add, done, quiet } = setUp(2, 1_000, groups);
    for (const name of names) add(name);
    await quiet;
    expect(done.sort()).toEqual(all);
    expect(groups.sizes.length).toBeGreaterThan(2);
    expect(Math.max(...groups.sizes)).toBeLessThanOrEqual(64);
  });

  it('reads large files by themselves', async () => {
    const groups = new Groups();
    const { add, done, quiet } = setUp(2, 1_000, groups);
    const large = 'x'.repeat(1024 * 1024 + 1);
    for (let i = 0; i < 70; i += 1) add(`large${i}`, large);
    await quiet;
    expect(done).toHaveLength(70);
    expect(groups.sizes).toEqual([]);
  });

  it('reads each file by itself when groups cannot be read', async () => {
    const groups = new Groups();
    groups.broken = true;
    const { add, done, quiet } = setUp(2, 1_000, groups);
    for (const name of names) add(name);
    await quiet;
    expect(done.sort()).toEqual(all);
    expect(groups.sizes).toHaveLength(1);
  });

  it('reads in a thread, which may break down', async () => {
    const program = await compiledProgram(resolve(import.meta.dirname, '../../src/file-thread.ts'));
    const thread = new WorkThread(pathToFileURL(program));
    const { add, done, quiet } = setUp(2, 1_000, new ThreadReader(thread));
    for (const name of names) add(name);
    await quiet;
    expect(done.sort()).toEqual(all);
    await expect(thread.ask('dance', [])).rejects.toThrow('does not know the work "dance"');
    expect(await thread.ask('read', [])).toEqual([]);
    await thread.close();
  });
});
