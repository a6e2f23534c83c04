import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../lib/clock.js';
import { READ_FLAGS } from '../../lib/descriptor.js';
import { messageOf, systemCode } from '../../lib/errors.js';
import { numberText } from '../../lib/text.js';
import { ConflictFiles } from '../conflict-files.js';
import type { ConditionCode, MirrorCondition } from '../errors.js';
import { atPlace, type Place, type Target } from '../place.js';
import type { Conflict } from '../record.js';
import {
  type FileStamp,
  lookAgain,
  Overtaken,
  type ReplaceOptions,
  removeWhole,
  replaceWhole,
  sameStamp,
  stampOf,
  statsAt,
  type WholeFile,
} from '../whole-file.js';
import { type MergeConflict, sha256Of } from './merge.js';

/** Bytes: a larger file is not taken for one that a person edits. */
export const LARGEST_EDITED = 64 * 2 ** 20;
/** Ms: a file that was written less long ago may be written still. */
const REST_MS = 2_000;
/** Ms: how long a run waits for it to come to rest. */
const PATIENCE_MS = 6_000;
/** Conflicts that are listed of one conflict file; the file itself has all. */
const LISTED = 100;

/** The user's file, as it was read while at rest. */
export interface ReadFile {
  readonly bytes: Buffer;
  readonly sha256: string;
  readonly stamp: FileStamp;
  readonly mode: number;
}

/**
 * The file that a person edits: read only while at rest, replaced only while it is what was read.
 * What cannot be merged is saved as a conflict file.
 */
export class EditedFile {
  /** As the last run left it, or found it; undefined where there was none. */
  #left: FileStamp | undefined;
  readonly #conflictFiles: ConflictFiles;
  #seen: { readonly stamp?: FileStamp; readonly since: number } = { since: 0 };

  constructor(
    private readonly target: Target,
    private readonly clock: Clock,
    private readonly condition: (code: ConditionCode, detail: string) => MirrorCondition,
  ) {
    this.#conflictFiles = new ConflictFiles(target, clock);
  }

  /**
   * Makes no directories on the way: where the disk of the root is away, its mount point stays
   * empty.
   */
  async looksEdited(): Promise<boolean> {
    return !sameStamp(await statsAt(join(this.target.root, this.target.path)), this.#left);
  }

  /**
   * Reads the file, after a while if it was written just now.
   *
   * @returns undefined where there is none
   * @throws Overtaken while it is being written; MirrorCondition EDIT_UNREADABLE, EDIT_TOO_LARGE;
   *   the reason of the signal
   */
  async read(signal: AbortSignal | undefined): Promise<ReadFile | undefined> {
    const until = this.clock.now() + PATIENCE_MS;
    for (;;) {
      signal?.throwIfAborted();
      const read = await atPlace(this.target, (place) => this.#readOnce(place));
      if (read !== 'moving') return read;
      // What moves looks edited, until it is read.
      this.#left = undefined;
      if (this.clock.now() >= until) throw new Overtaken();
      await this.clock.sleep(REST_MS / 4, signal);
    }
  }

  /**
   * Puts new content in the place of what was read (of nothing, where nothing was).
   *
   * @throws Overtaken when that is not what stands there any more
   */
  async replace(
    read: ReadFile | undefined,
    content: AsyncIterable<string>,
    options: Omit<ReplaceOptions, 'lastLook'>,
  ): Promise<WholeFile> {
    const written = await replaceWhole(this.target, content, {
      ...options,
      lastLook: (path) => lookAgain(path, read?.stamp),
    });
    this.#left = written.file;
    return written;
  }

  /**
   * Removes the file that was read.
   *
   * @throws Overtaken when that is not what stands there any more
   */
  async remove(read: ReadFile, versions: number): Promise<void> {
    await removeWhole(this.target, {
      versions,
      lastLook: (path) => lookAgain(path, read.stamp),
    });
  }

  /**
   * Saves a conflict file.
   *
   * @returns its path, below the root
   */
  async saveConflict({ bytes, sha256, mode }: ReadFile): Promise<string> {
    return await this.#conflictFiles.save(bytes, sha256, mode);
  }

  /**
   * The conflicts whose files a person has not removed yet, and new ones.
   *
   * @param known what stood before
   * @param file where the file with new conflicts was saved
   */
  async standing(
    known: readonly Conflict[] = [],
    file?: string,
    conflicts: readonly MergeConflict[] = [],
  ): Promise<readonly Conflict[]> {
    const at = this.clock.now();
    const fresh =
      file === undefined ? [] : conflicts.slice(0, LISTED).map((each) => ({ ...each, file, at }));
    const all = [...known.filter((conflict) => conflict.file !== file), ...fresh];
    return (await this.#conflictFiles.list()).flatMap((path) => {
      const listed = all.filter((conflict) => conflict.file === path);
      return listed.length > 0 ? listed : [{ pk: '', file: path, at }];
    });
  }

  async #readOnce({ at: path, path: shown }: Place): Promise<ReadFile | 'moving' | undefined> {
    const before = await statsAt(path);
    this.#left = before && stampOf(before);
    if (before === undefined) return undefined;
    if (!before.isFile()) {
      throw this.condition('EDIT_UNREADABLE', 'something that is no regular file stands there');
    }
    if (!this.#isAtRest(stampOf(before))) return 'moving';
    if (before.size > LARGEST_EDITED) {
      const detail = `it has ${numberText(before.size)} bytes, of at most ${numberText(LARGEST_EDITED)}`;
      throw this.condition('EDIT_TOO_LARGE', detail);
    }
    const handle = await open(path, READ_FLAGS).catch((error: unknown) => {
      // By now nothing stands there, or a link.
      if (['ENOENT', 'ELOOP'].includes(systemCode(error) ?? '')) return undefined;
      throw this.condition('EDIT_UNREADABLE', messageOf(error).replace(path, shown));
    });
    if (handle === undefined) return 'moving';
    try {
      const bytes = await handle.readFile();
      const stamp = stampOf(await handle.stat());
      const isWhole = bytes.length === stamp.size && sameStamp(stamp, before);
      if (!isWhole || !sameStamp(await statsAt(path), stamp)) return 'moving';
      return { bytes, sha256: await sha256Of(bytes), stamp, mode: before.mode & 0o777 };
    } finally {
      await handle.close();
    }
  }

  /** Times that lie in the future say nothing: then it has to look the same for as long. */
  #isAtRest(stamp: FileStamp): boolean {
    const now = this.clock.now();
    if (!sameStamp(this.#seen.stamp, stamp)) this.#seen = { stamp, since: now };
    return this.clock.wall() - stamp.mtimeMs >= REST_MS || now - this.#seen.since >= REST_MS;
  }
}
