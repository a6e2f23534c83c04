import { lstatSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Fingerprint, fileStat } from '../../src/watch/fingerprint.js';
import { Intake } from '../../src/watch/intake.js';
import { temporaryDirectory } from '../support/temp.js';

function setUp(readers: number, crowd: number) {
  const directory = temporaryDirectory();
  const done: [string, Fingerprint['kind']][] = [];
  let isQuiet = () => {};
  const quiet = new Promise<void>((resolve) => {
    isQuiet = resolve;
  });
  const intake = new Intake({
    readers,
    crowd,
    onQuiet: () => isQuiet(),
    onError: (error) => expect.fail(String(error)),
  });
  const add = (path: string) => {
    const file = join(directory, path);
    writeFileSync(file, path);
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
