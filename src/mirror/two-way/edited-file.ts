import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../lib/clock.js';
import { messageOf, systemCode } from '../../lib/errors.js';
import { READ_FLAGS } from '../../lib/file.js';
import { numberText } from '../../lib/text.js';
import { ConflictFiles } from '../conflict-files.js';
import { type ConditionCode, MirrorCondition } from '../errors.js';
import { type HeldPath, type Target, withHeldDirectory } from '../held-directory.js';
import type { Conflict } from '../record.js';
import {
  assertUnchanged,
  FileChanged,
  type FileStamp,
  type ReplaceOptions,
  removeWhole,
  replaceWhole,
  sameStamp,
  stampOf,
  statsAt,
  type WrittenFile,
} from '../whole-file.js';
import { sha256Of } from './base-store.js';
import type { MergeConflict } from './merge.js';

/** The size of the largest file that can be edited, in bytes. */
export const MAX_EDITED_BYTES = 64 * 2 ** 20;
/** A file that was written less long ago may still be being written, in ms. */
const REST_MS = 2_000;
/** The longest time that a run waits for the file to come to rest, in ms. */
const MAX_WAIT_MS = 6_000;
/** The most conflicts that are listed of one conflict file. The file itself has all. */
const MAX_LISTED = 100;

/** The content of the file, read while it was at rest. */
export interface FileContent {
  readonly bytes: Buffer;
  readonly sha256: string;
  readonly stamp: FileStamp;
  readonly mode: number;
}

/**
 * The file that a person edits. It is read only while at rest, and replaced only while it is still
 * what was read. A file that cannot be merged is saved as a conflict file.
 */
export class EditedFile {
  /** The stamp of the file after the last run. Undefined if there was no file. */
  #known: FileStamp | undefined;
  /** The stamp that was seen last, and the time since which it has been the same. */
  #seen: { readonly stamp?: FileStamp; readonly since: number } = { since: 0 };
  readonly #conflictFiles: ConflictFiles;

  constructor(
    private readonly target: Target,
    private readonly mirror: string,
    private readonly clock: Clock,
  ) {
    this.#conflictFiles = new ConflictFiles(target, clock);
  }

  /** The path, for messages. */
  get path(): string {
    return join(this.target.root, this.target.path);
  }

  /** Returns a condition about this file. */
  condition(code: ConditionCode, detail: string): MirrorCondition {
    return new MirrorCondition(code, this.mirror, this.path, detail);
  }

  /**
   * Returns whether the file has changed since the last run. Creates no directories, so that an
   * unmounted root stays empty.
   */
  async looksEdited(): Promise<boolean> {
    return !sameStamp(await statsAt(this.path), this.#known);
  }

  /**
   * Reads the file. Waits if it was written just now.
   *
   * @returns undefined if there is none
   * @throws FileChanged while it is being written; MirrorCondition EDIT_UNREADABLE, EDIT_TOO_LARGE;
   *   the reason of the signal
   */
  async read(signal: AbortSignal | undefined): Promise<FileContent | undefined> {
    const deadline = this.clock.now() + MAX_WAIT_MS;
    for (;;) {
      signal?.throwIfAborted();
      const content = await withHeldDirectory(this.target, (held) => this.#readOnce(held));
      if (content !== 'changing') return content;
      // `looksEdited` is true until the file is read.
      this.#known = undefined;
      if (this.clock.now() >= deadline) throw new FileChanged();
      await this.clock.sleep(REST_MS / 4, signal);
    }
  }

  /**
   * Replaces the file that was read, or creates it if there was none.
   *
   * @param beforeRename called right before the new content takes the place of the old. An error of
   *   the system after that call does not show which of them is there
   * @throws FileChanged if the file is not what was read any more
   */
  async replace(
    read: FileContent | undefined,
    text: AsyncIterable<string>,
    options: Omit<ReplaceOptions, 'lastLook'>,
    beforeRename: () => void,
  ): Promise<WrittenFile> {
    const written = await replaceWhole(this.target, text, {
      ...options,
      lastLook: (path) => {
        assertUnchanged(path, read?.stamp);
        beforeRename();
      },
    });
    this.#known = written.file;
    return written;
  }

  /**
   * Removes the file that was read.
   *
   * @throws FileChanged if the file is not what was read any more
   */
  async remove(read: FileContent, versions: number): Promise<void> {
    await removeWhole(this.target, {
      versions,
      lastLook: (path) => assertUnchanged(path, read.stamp),
    });
  }

  /**
   * Saves the content as a conflict file.
   *
   * @returns its path, below the root
   */
  async saveConflict({ bytes, sha256, mode }: FileContent): Promise<string> {
    return await this.#conflictFiles.save(bytes, sha256, mode);
  }

  /**
   * Returns the conflicts whose files a person has not removed yet. Conflict files that no record
   * knows are listed too.
   *
   * @param known the conflicts of the record
   * @param file the conflict file of this run
   * @param conflicts the conflicts of this run
   */
  async openConflicts(
    known: readonly Conflict[] = [],
    file?: string,
    conflicts: readonly MergeConflict[] = [],
  ): Promise<readonly Conflict[]> {
    const at = this.clock.now();
    const fresh =
      file === undefined
        ? []
        : conflicts.slice(0, MAX_LISTED).map((conflict) => ({ ...conflict, file, at }));
    const all = [...known.filter((conflict) => conflict.file !== file), ...fresh];
    return (await this.#conflictFiles.list()).flatMap((path) => {
      const listed = all.filter((conflict) => conflict.file === path);
      return listed.length > 0 ? listed : [{ pk: '', file: path, at }];
    });
  }

  async #readOnce({
    at: path,
    path: shown,
  }: HeldPath): Promise<FileContent | 'changing' | undefined> {
    const before = await statsAt(path);
    this.#known = before && stampOf(before);
    if (before === undefined) return undefined;
    if (!before.isFile()) {
      throw this.condition('EDIT_UNREADABLE', 'it is no regular file');
    }
    if (!this.#isAtRest(stampOf(before))) return 'changing';
    if (before.size > MAX_EDITED_BYTES) {
      const limit = numberText(MAX_EDITED_BYTES);
      const detail = `it has ${numberText(before.size)} bytes, of at most ${limit}`;
      throw this.condition('EDIT_TOO_LARGE', detail);
    }
    const handle = await open(path, READ_FLAGS).catch((error: unknown) => {
      // By now there is no file, or a link.
      if (['ENOENT', 'ELOOP'].includes(systemCode(error) ?? '')) return undefined;
      throw this.condition('EDIT_UNREADABLE', messageOf(error).replace(path, shown));
    });
    if (handle === undefined) return 'changing';
    try {
      const bytes = await handle.readFile();
      const stamp = stampOf(await handle.stat());
      const isWhole = bytes.length === stamp.size && sameStamp(stamp, before);
      if (!isWhole || !sameStamp(await statsAt(path), stamp)) return 'changing';
      return { bytes, sha256: await sha256Of(bytes), stamp, mode: before.mode & 0o777 };
    } finally {
      await handle.close();
    }
  }

  /**
   * Whether the file was not written for a while: by its time of modification or, as that may be in
   * the future, because it was seen unchanged for as long.
   */
  #isAtRest(stamp: FileStamp): boolean {
    const now = this.clock.now();
    if (!sameStamp(this.#seen.stamp, stamp)) this.#seen = { stamp, since: now };
    return this.clock.wall() - stamp.mtimeMs >= REST_MS || now - this.#seen.since >= REST_MS;
  }
}
