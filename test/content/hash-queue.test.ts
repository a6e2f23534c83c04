import { lstatSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { HashQueue, type ReadGroup } from '../../src/content/hash-queue.js';
import { type Fingerprint, fingerprintNow } from '../../src/content/reader.js';
import { fileStat } from '../../src/lib/file.js';
import { WorkThread } from '../../src/lib/work-thread.js';
import { compiledProgram } from '../support/program.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const readGroupNow: ReadGroup = async (orders) => orders.map(fingerprintNow);

function setUp(readers: number, crowd: number, readGroup: ReadGroup = readGroupNow) {
  const directory = temporaryDirectory();
  const done: [string, Fingerprint['kind'] | undefined][] = [];
  const queue = new HashQueue(readGroup, readers, crowd);
  let isWanted = true;
  const reads: Promise<unknown>[] = [];
  const add = (path: string, content = path, wanted = () => isWanted) => {
    const file = join(directory, path);
    writeFileSync(file, content);
    const stat = fileStat(lstatSync(file));
    reads.push(queue.read({ file, stat }, wanted).then((found) => done.push([path, found?.kind])));
  };
  const forget = () => {
    isWanted = false;
  };
  return { queue, add, done, forget, quiet: () => Promise.all(reads) };
}

describe('the hash queue', () => {
  it('reads every file that is added', async () => {
    const { add, done, quiet } = setUp(3, 100);
    for (let i = 0; i < 20; i += 1) add(`f${i}`);
    await quiet();
    expect(done.map(([path]) => path).sort()).toEqual(Array.from({ length: 20 }, (_, i) => `f${i}`).sort());
  });

  it('makes progress with every piece of a large file, for as long as that takes', async () => {
    const { queue, add, done, quiet } = setUp(1, 100);
    let steps = 0;
    const progress = queue.health.progress.bind(queue.health);
    queue.health.progress = () => {
      steps += 1;
      progress();
    };
    add('large', 'x'.repeat(20 * 1024 * 1024));
    expect(queue.health.busy).toBe(true);
    await until(() => done.length > 0, 'it was read');
    await quiet();
    expect(steps).toBeGreaterThanOrEqual(20);
    expect(queue.health.busy).toBe(false);
  });

  it('is not busy while groups are under way in the thread, and is crowded by what waits behind them', async () => {
    let answer: () => void = () => {};
    const readGroup: ReadGroup = (orders) =>
      new Promise((resolve) => {
        const before = answer;
        answer = () => {
          before();
          resolve(orders.map(fingerprintNow));
        };
      });
    const { queue, add, quiet } = setUp(1, 100, readGroup);
    for (let i = 0; i < 150; i += 1) add(`f${i}`);
    await until(() => !queue.isCrowded, 'two groups are under way');
    expect(queue.health.busy).toBe(false);
    for (let i = 0; i < 100; i += 1) add(`g${i}`);
    expect([queue.isCrowded, queue.health.busy]).toEqual([true, false]);
    const isQuiet = quiet().then(() => true);
    await until(() => {
      answer();
      return Promise.race([isQuiet, new Promise<false>((resolve) => setImmediate(resolve, false))]);
    }, 'all was read');
    expect(queue.health.busy).toBe(false);
  });

  it('keeps nobody waiting for files that were forgotten, nor for room among them', async () => {
    const { queue, add, done, forget, quiet } = setUp(1, 2);
    const large = 'x'.repeat(2 * 1024 * 1024);
    for (let i = 0; i < 5; i += 1) add(`f${i}`, large);
    add('of another folder', large, () => true);
    const room = queue.room();
    forget();
    await room;
    await quiet();
    expect(done.filter(([, kind]) => kind === undefined)).toHaveLength(4);
    expect(done).toContainEqual(['of another folder', 'version']);
  });

  it('makes a scan wait as long as it is crowded', async () => {
    const { queue, add, done } = setUp(1, 5);
    await queue.room();
    for (let i = 0; i < 10; i += 1) add(`f${i}`, 'x'.repeat(2 * 1024 * 1024));
    await queue.room();
    // One of ten is read at once, and five of the others must be taken up before there are fewer than five.
    expect(done.length).toBeGreaterThanOrEqual(5);
  });
});

describe('small files', () => {
  const names = Array.from({ length: 300 }, (_, i) => `f${i}`);
  const all = names.map((name) => [name, 'version']).sort();

  it('are read once each, in groups where many wait', async () => {
    const sizes: number[] = [];
    const { add, done, quiet } = setUp(2, 1_000, (orders) => {
      sizes.push(orders.length);
      return readGroupNow(orders);
    });
    for (const name of names) add(name);
    await quiet();
    expect(done.sort()).toEqual(all);
    expect(sizes.length).toBeLessThan(10);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(64);
  });

  it('are not held up by large ones, which are read by themselves', async () => {
    const sizes: number[] = [];
    const { add, done, quiet } = setUp(2, 1_000, (orders) => {
      sizes.push(orders.length);
      return readGroupNow(orders);
    });
    const large = 'x'.repeat(1024 * 1024 + 1);
    for (let i = 0; i < 70; i += 1) add(`large${i}`, large);
    add('small');
    await quiet();
    expect(done).toHaveLength(71);
    expect(sizes).toEqual([1]);
  });

  it('are read here when the thread breaks down', async () => {
    const { add, done, quiet } = setUp(2, 1_000, () => Promise.reject(new Error('broken')));
    for (const name of names) add(name);
    await quiet();
    expect(done.sort()).toEqual(all);
  });

  it('are not read here when they were forgotten before the thread ended', async () => {
    const { add, done, forget, quiet } = setUp(2, 1_000, () => {
      forget();
      return Promise.reject(new Error('ended'));
    });
    add('f0');
    await quiet();
    expect(done).toEqual([['f0', undefined]]);
  });

  it('are read in a thread, which may break down', async () => {
    const program = await compiledProgram(resolve(import.meta.dirname, '../../src/file-thread.ts'));
    const thread = new WorkThread(pathToFileURL(program));
    const { add, done, quiet } = setUp(2, 1_000, (orders) => thread.ask('read', orders));
    for (const name of names) add(name);
    await quiet();
    expect(done.sort()).toEqual(all);
    await expect(thread.ask('dance', [])).rejects.toThrow('does not know the work "dance"');
    expect(await thread.ask('read', [])).toEqual([]);
    await thread.close();
  });
});
