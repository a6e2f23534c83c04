import { open, readdir, rename, unlink } from 'node:fs/promises';
import { basename, dirname, join, posix } from 'node:path';
import { syncDirectory } from '../lib/atomic.js';
import type { Clock } from '../lib/clock.js';
import { contentOf, openExisting, statsAt } from './edit-bytes.js';
import { writeError } from './errors.js';
import type { Clash } from './merge.js';
import type { Conflict } from './record.js';
import { reach, type Spot } from './root.js';
import { temporaryName } from './temporary.js';

/** Conflicts that are listed of one conflict file; the file itself has all. */
const LISTED = 100;

/**
 * The conflict files of a file that a person edits: whole copies of it that hold what was not applied, beside it.
 *
 * Once written they are the person's, and are never changed. A conflict *stands* for as long as its file does.
 */
export class ConflictFiles {
  readonly #spot: Spot;
  readonly #clock: Clock;

  /** @param spot the file that is edited */
  constructor(spot: Spot, clock: Clock) {
    this.#spot = spot;
    this.#clock = clock;
  }

  /**
   * Writes a whole copy of the user's file beside it, as NAME.conflict-TIME; where there is one with the same content, that
   * one does.
   *
   * @returns its path, below the root
   */
  async save(bytes: Buffer, mode: number): Promise<string> {
    const directory = dirname(await reach(this.#spot));
    const names = await this.#paths();
    for (const name of names) {
      const there = await contentOfSize(join(directory, basename(name)), bytes.length);
      if (there?.equals(bytes)) return name;
    }
    const time = new Date(this.#clock.now()).toISOString().replace(/[-:]|\.\d+/g, '');
    const first = `${this.#spot.path}.conflict-${time}`;
    let path = first;
    for (let i = 2; names.includes(path); i += 1) path = `${first}-${i}`;
    try {
      await writeNew(join(directory, basename(path)), bytes, mode);
    } catch (error) {
      throw writeError(error, join(this.#spot.root, path));
    }
    return path;
  }

  /**
   * The conflicts whose files a person has not removed yet, and new ones.
   *
   * @param known what stood before
   * @param file where what clashed by now was saved
   */
  async standing(
    known: readonly Conflict[] | undefined,
    file?: string,
    clashes: readonly Clash[] = [],
  ): Promise<readonly Conflict[]> {
    const at = this.#clock.now();
    const files = await this.#paths();
    const fresh = file === undefined ? [] : clashes.slice(0, LISTED).map((clash) => ({ ...clash, file, at }));
    const old = (known ?? []).filter((conflict) => conflict.file !== file);
    return files.flatMap((path) => {
      const listed = [...old, ...fresh].filter((conflict) => conflict.file === path);
      return listed.length > 0 ? listed : [{ pk: '', file: path, at }];
    });
  }

  /** The conflict files that a person has not removed yet, below the root, the oldest first. */
  async #paths(): Promise<readonly string[]> {
    const directory = dirname(await reach(this.#spot));
    const begin = `${posix.basename(this.#spot.path)}.conflict-`;
    const names = (await readdir(directory)).filter((name) => name.startsWith(begin));
    return names.sort().map((name) => posix.join(posix.dirname(this.#spot.path), name));
  }
}

async function contentOfSize(path: string, size: number): Promise<Buffer | undefined> {
  const stats = await statsAt(path);
  if (stats === undefined || !stats.isFile() || stats.size !== size) return undefined;
  const handle = await openExisting(path);
  try {
    return handle && (await contentOf(handle));
  } finally {
    await handle?.close();
  }
}

async function writeNew(path: string, bytes: Buffer, mode: number): Promise<void> {
  const temporary = join(dirname(path), temporaryName());
  const handle = await open(temporary, 'wx', mode);
  try {
    await handle.writeFile(bytes);
    await handle.sync();
    await handle.close();
    await rename(temporary, path);
  } catch (error) {
    await handle.close();
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  await syncDirectory(dirname(path));
}
