import { readdir, rm, stat, utimes } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { systemCode } from '../lib/errors.js';
import { linkOrCopy } from './versions.js';

/** Earlier copies of one table. */
const MOST_COPIES = 100;
/** Bytes of all earlier copies of one table: to look for the one that a file was made from, all are read. */
const MOST_BYTES = 16 * 2 ** 20;
/** Ms: who has had a file open for longer is not looked for. */
export const LONGEST_KEPT = 7 * 86_400_000;

const END = '.earlier-';

/**
 * The bases of one two-way table that held before, each in a file of its own beside the base. They are a help and no more:
 * any of them may be missing or damaged, and then nobody looks for those before it.
 */
export class EarlierCopies {
  readonly #base: string;

  /** @param base the path of the base that holds */
  constructor(base: string) {
    this.#base = base;
  }

  pathOf(id: string): string {
    return this.#base + END + id;
  }

  /**
   * Keeps the base that holds, which is about to be replaced, and lets go of what is too much or too old. Where it cannot
   * be kept, the table does without.
   */
  async keep(id: string, now: number): Promise<void> {
    const path = this.pathOf(id);
    try {
      // A run that was cut short may have kept it already.
      await linkOrCopy(this.#base, path).catch(() => undefined);
      // Its age counts from here: it may have held for months.
      await utimes(path, now / 1000, now / 1000).catch(() => undefined);
      await this.#prune(now);
    } catch (error) {
      if (systemCode(error) === undefined) throw error;
    }
  }

  async forget(): Promise<void> {
    for (const path of await this.#paths()) await rm(path, { force: true });
  }

  async #prune(now: number): Promise<void> {
    const copies = await Promise.all((await this.#paths()).map(statsOf));
    const latestFirst = copies.flat().sort((a, b) => b.mtimeMs - a.mtimeMs);
    let bytes = 0;
    for (const [i, { path, size, mtimeMs }] of latestFirst.entries()) {
      bytes += size;
      const isOld = now - mtimeMs > LONGEST_KEPT;
      if (i >= MOST_COPIES || bytes > MOST_BYTES || isOld) await rm(path, { force: true });
    }
  }

  async #paths(): Promise<readonly string[]> {
    const directory = dirname(this.#base);
    const names = await readdir(directory).catch(() => []);
    return names
      .filter((name) => name.startsWith(basename(this.#base) + END))
      .map((name) => join(directory, name));
  }
}

async function statsOf(path: string) {
  try {
    const { size, mtimeMs } = await stat(path);
    return [{ path, size, mtimeMs }];
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  }
}
