import { lstatSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { type Fingerprint, fingerprintNow, type ReadOrder } from '../../src/content/file-reader.js';
import { HashQueue, type ReadGroup } from '../../src/content/hash-queue.js';
import { fileStat } from '../../src/lib/file.js';
import { WorkThread } from '../../src/lib/work-thread.js';
import { compiledProgram } from '../support/program.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const LARGE = 'x'.repeat(2 * 1024 * 1024);
const readGroupNow: ReadGroup = async (orders) => orders.map(fingerprintNow);

/** A queue with files added to it, and the result of each. `sizes` are the sizes of the groups. */
class Setting {
  readonly #directory = temporaryDirectory();
  readonly #reads: Promise<unknown>[] = [];
  readonly done: [path: string, Fingerprint['kind'] | undefined][] = [];
  readonly sizes: number[] = [];
  readonly queue: HashQueue;
  isWanted = true;

  constructor(readers: number, crowd: number, readGroup = readGroupNow) {
    const read = (orders: readonly ReadOrder[]) => {
      this.sizes.push(orders.length);
      return readGroup(orders);
    };
    this.queue = new HashQueue(read, readers, crowd);
  }

  add(count: number, name = 'f', content = name, isWanted = () => this.isWanted): void {
    for (let i = 0; i < count; i += 1) {
      const path = `${name}${i}`;
      const file = join(this.#directory, path);
      writeFileSync(file, content);
      const reading = this.queue.read({ file, stat: fileStat(lstatSync(file)) }, isWanted);
      this.#reads.push(reading.then((found) => this.done.push([path, found?.kind])));
    }
  }

  async quiet(): Promise<void> {
    await Promise.all(this.#reads);
  }

  /** Waits until every file was read, each exactly once. */
  async expectRead(count: number): Promise<void> {
    await this.quiet();
    expect(new Set(this.done.map(([path]) => path)).size).toBe(count);
    expect(this.done.map(([, kind]) => kind)).toEqual(
      Array.from({ length: count }, () => 'version'),
    );
  }
}

describe('the hash queue', () => {
  it('reports progress with every piece of a large file, however long the file takes', async () => {
    const s = new Setting(1, 100);
    const { health } = s.queue;
    let steps = 0;
    const progress = health.progress.bind(health);
    health.progress = () => {
      steps += 1;
      progress();
    };
    s.add(1, 'large', 'x'.repeat(20 * 1024 * 1024));
    expect(health.busy).toBe(true);
    await s.expectRead(1);
    expect(steps).toBeGreaterThanOrEqual(20);
    expect(health.busy).toBe(false);
  });

  it('is idle while groups are read in the thread, and crowded when many files wait behind them', async () => {
    const answers: (() => void)[] = [];
    const s = new Setting(1, 100, (orders) => {
      return new Promise((resolve) => answers.push(() => resolve(orders.map(fingerprintNow))));
    });
    const { queue } = s;
    s.add(150);
    await until(() => !queue.isCrowded, 'two groups are under way');
    expect(queue.health.busy).toBe(false);
    s.add(100, 'g');
    expect([queue.isCrowded, queue.health.busy]).toEqual([true, false]);
    await until(() => {
      for (const answer of answers.splice(0)) answer();
      return s.done.length === 250;
    }, 'all was read');
    expect(queue.health.busy).toBe(false);
  });

  it('resolves at once for unwanted files, and gives their room to others', async () => {
    const s = new Setting(1, 2);
    s.add(5, 'f', LARGE);
    s.add(1, 'of another folder ', LARGE, () => true);
    const room = s.queue.room();
    s.isWanted = false;
    await room;
    await s.quiet();
    expect(s.done.filter(([, kind]) => kind === undefined)).toHaveLength(4);
    expect(s.done).toContainEqual(['of another folder 0', 'version']);
  });

  it('makes a scan wait while it is crowded', async () => {
    const s = new Setting(1, 5);
    await s.queue.room();
    s.add(10, 'f', LARGE);
    await s.queue.room();
    // One of ten files is read at once. Five of the others must start before fewer than five wait.
    expect(s.done.length).toBeGreaterThanOrEqual(5);
  });
});

describe('small files', () => {
  it('do not wait for large ones, which are read separately', async () => {
    const s = new Setting(2, 1_000);
    s.add(70, 'large', LARGE);
    s.add(1);
    await s.expectRead(71);
    expect(s.sizes).toEqual([1]);
    expect(s.done[0]?.[0]).toBe('f0');
  });

  it('are read in this thread if the worker fails, unless they are no longer wanted', async () => {
    const s = new Setting(2, 1_000, () => Promise.reject(new Error('broken')));
    s.add(300);
    await s.expectRead(300);
    const other = new Setting(2, 1_000, () => {
      other.isWanted = false;
      return Promise.reject(new Error('ended'));
    });
    other.add(1);
    await other.quiet();
    expect(other.done).toEqual([['f0', undefined]]);
  });

  it('are each read once in a worker, in groups if many wait', async () => {
    const program = await compiledProgram(resolve(import.meta.dirname, '../../src/file-thread.ts'));
    const thread = new WorkThread(pathToFileURL(program));
    const s = new Setting(2, 1_000, (orders) => thread.ask('read', orders));
    s.add(300);
    await s.expectRead(300);
    expect(s.sizes.length).toBeLessThan(10);
    expect(Math.max(...s.sizes)).toBeLessThanOrEqual(64);
    await thread.close();
  });
});
