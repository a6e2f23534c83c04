import { opendir, realpath } from 'node:fs/promises';
import { type Clock, within } from '../lib/clock.js';
import { LOOK_MS } from './protocol.js';

interface Folder {
  readonly name: string;
  readonly path: string;
}

/**
 * Looks into the roots of folders. A root in which there is nothing counts as not seen: the place
 * of a disk that is not mounted is empty.
 */
export class FolderCheck {
  /** The looks that have no answer yet. A hanging disk gets one, not one more at each beat. */
  readonly #underWay = new Map<string, Promise<boolean>>();

  constructor(private readonly clock: Clock) {}

  /** Returns the names of the folders in which there are files. */
  async visible(folders: readonly Folder[]): Promise<string[]> {
    const seen = await Promise.all(folders.map(({ path }) => this.#look(path)));
    return folders.filter((_, i) => seen[i]).map(({ name }) => name);
  }

  async #look(path: string): Promise<boolean> {
    const pending = this.#underWay.get(path);
    const look = pending ?? hasEntries(path).finally(() => this.#underWay.delete(path));
    this.#underWay.set(path, look);
    return await within(this.clock, LOOK_MS, look, false);
  }
}

/** Whether a directory can be read and has an entry. Never rejects. */
async function hasEntries(path: string): Promise<boolean> {
  try {
    const directory = await opendir(await realpath(path));
    try {
      return (await directory.read()) !== null;
    } finally {
      await directory.close();
    }
  } catch {
    return false;
  }
}
