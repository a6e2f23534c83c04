import { constants } from 'node:fs';
import { copyFile, link, open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, posix } from 'node:path';
import { syncDirectory, writeFileAtomic } from '../lib/atomic.js';
import type { Clock } from '../lib/clock.js';
import { MirrorError, onDisk } from './errors.js';
import { type HeldPath, type Target, withHeldDirectory } from './held-directory.js';
import { hashOf, statsAt, temporaryOf } from './whole-file.js';

/** The most copies of one file that `keep` makes. A program that writes in a loop fills no disk. */
const MAX_KEPT = 100;

/**
 * The conflict files of one mirrored file: whole copies beside it, as NAME.conflict-TIME, with
 * edits that the peer does not have. They belong to the person, and are never changed. A conflict
 * is *open* as long as its file exists. The same content is saved once.
 */
export class ConflictFiles {
  constructor(
    private readonly target: Target,
    private readonly clock: Clock,
  ) {}

  /** Returns the paths of all conflict files below the root, the oldest first. */
  async list(): Promise<readonly string[]> {
    const { path } = this.target;
    const begin = `${posix.basename(path)}.conflict-`;
    const names = await withHeldDirectory(this.target, ({ at }) => readdir(dirname(at)));
    const ours = names.filter((name) => name.startsWith(begin)).sort();
    return ours.map((name) => posix.join(posix.dirname(path), name));
  }

  /**
   * Saves content that was read from the file.
   *
   * @param sha256 of the bytes
   * @returns its path, below the root
   */
  async save(bytes: Buffer, sha256: string, mode: number): Promise<string> {
    const paths = await this.list();
    return await this.#work(async ({ at }) => {
      const same = await this.#findSame(paths, dirname(at), bytes.length, sha256);
      if (same !== undefined) return same;
      const path = this.#freePath(paths);
      const temporary = temporaryOf(at, 'conflict');
      await writeFileAtomic(join(dirname(at), basename(path)), bytes, { mode, temporary });
      return path;
    });
  }

  /**
   * Keeps the existing file, of any size, by a hard link. A program that has it open goes on
   * writing into the conflict file.
   *
   * @param sha256 of its content
   * @returns the path of the copy, below the root
   * @throws MirrorError MIRROR_EDITED_AGAIN if there are too many already
   */
  async keep(sha256: string): Promise<string> {
    const paths = await this.list();
    return await this.#work(async ({ at: file }) => {
      const directory = dirname(file);
      const size = (await statsAt(file))?.size;
      const same = await this.#findSame(paths, directory, size, sha256);
      if (same !== undefined) return same;
      if (paths.length >= MAX_KEPT)
        throw new MirrorError('MIRROR_EDITED_AGAIN', { what: this.#shown, detail: `${MAX_KEPT}` });
      const path = this.#freePath(paths);
      const temporary = temporaryOf(file, 'conflict');
      await rm(temporary, { force: true });
      // A copy if the file system has no hard links.
      await link(file, temporary).catch(() => copyFile(file, temporary, constants.COPYFILE_EXCL));
      const handle = await open(temporary, 'r');
      await handle.sync().finally(() => handle.close());
      await rename(temporary, join(directory, basename(path)));
      await syncDirectory(directory);
      return path;
    });
  }

  async #work<T>(work: (place: HeldPath) => Promise<T>): Promise<T> {
    return await onDisk(this.#shown, () => withHeldDirectory(this.target, work));
  }

  /** The path of the file, for messages. */
  get #shown(): string {
    return join(this.target.root, this.target.path);
  }

  async #findSame(
    paths: readonly string[],
    directory: string,
    size: number | undefined,
    sha256: string,
  ): Promise<string | undefined> {
    for (const path of paths) {
      const name = join(directory, basename(path));
      const stats = await statsAt(name);
      if (stats?.isFile() && stats.size === size && (await hashOf(name)) === sha256) return path;
    }
    return undefined;
  }

  #freePath(paths: readonly string[]): string {
    const time = new Date(this.clock.now()).toISOString().replace(/[-:]|\.\d+/g, '');
    const first = `${this.target.path}.conflict-${time}`;
    let path = first;
    for (let i = 2; paths.includes(path); i += 1) path = `${first}-${i}`;
    return path;
  }
}
