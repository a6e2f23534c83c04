import { createHash } from 'node:crypto';
import { lstatSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import type { Clock } from '../lib/clock.js';
import { messageOf, systemCode } from '../lib/errors.js';
import { contentOf, LARGEST_EDITED, openExisting, statsAt } from './edit-bytes.js';
import type { ConflictFiles } from './edit-conflicts.js';
import { reach, type Spot } from './root.js';
import {
  type FileStamp,
  removeWhole,
  replaceWhole,
  sameStamp,
  stampAt,
  type WholeFile,
} from './whole-file.js';

/** Ms: a file that was written less long ago may be written still. */
const REST_MS = 2_000;
/** Ms: how long a run waits for it to come to rest. */
const PATIENCE_MS = 6_000;

/** The user's file, as it was read while at rest. Its inode stays open until `close`. */
export interface ReadFile {
  readonly kind: 'read';
  readonly bytes: Buffer;
  readonly sha256: string;
  readonly stamp: FileStamp;
  readonly mode: number;
  readonly handle: FileHandle;
}

export type Reading =
  | ReadFile
  | { readonly kind: 'missing' }
  /** It is being written. */
  | { readonly kind: 'moving' }
  /** `what` stands there, as the end of a sentence. */
  | { readonly kind: 'unfit'; readonly code: 'EDIT_UNREADABLE' | 'EDIT_TOO_LARGE'; readonly what: string };

/** Somebody wrote the file between the reading and the replacing; the new one is as they left it. */
export class Overtaken extends Error {}

/**
 * The file that a person edits: read only while at rest, replaced only while it is what was read.
 *
 * An editor may have the file open when it is replaced, and write into what no name leads to any more. So the inode that
 * was replaced stays open, is looked at again by the next run, and what was written there is saved as a conflict file.
 */
export class EditFile {
  readonly spot: Spot;
  readonly #clock: Clock;
  readonly #conflicts: Pick<ConflictFiles, 'save'>;
  /** As the last run left it, or found it; undefined where there was none. */
  #left: FileStamp | undefined;
  #seen: { readonly stamp: FileStamp; readonly since: number } | undefined;
  #replaced:
    | { readonly handle: FileHandle; stamp: FileStamp; readonly sha256: string; readonly mode: number }
    | undefined;

  constructor(spot: Spot, clock: Clock, conflicts: Pick<ConflictFiles, 'save'>) {
    this.spot = spot;
    this.#clock = clock;
    this.#conflicts = conflicts;
  }

  async looksEdited(): Promise<boolean> {
    if (await this.#writtenLate()) return true;
    const now = await stampAt(await reach(this.spot));
    if (now === undefined || this.#left === undefined) return now !== this.#left;
    return !sameStamp(now, this.#left);
  }

  /** Reads the file, after a while if it was written just now. */
  async read(signal: AbortSignal | undefined): Promise<Reading> {
    const path = await reach(this.spot);
    const until = this.#clock.now() + PATIENCE_MS;
    for (;;) {
      const reading = await this.#readOnce(path);
      if (reading.kind !== 'moving') return reading;
      if (signal?.aborted || this.#clock.now() >= until) return reading;
      await this.#clock.sleep(REST_MS / 4, signal);
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
    options: { readonly versions: number; readonly signal: AbortSignal | undefined },
  ): Promise<WholeFile> {
    const path = await reach(this.spot);
    const lastLook = () => lookAgain(path, read);
    const written = await replaceWhole(this.spot, content, { ...options, lastLook });
    this.#left = written.file;
    if (written.changed && read !== undefined) {
      // The one that was replaced before may have been written while this run went on.
      await this.close();
      const { handle, stamp, sha256, mode } = read;
      this.#replaced = { handle, stamp, sha256, mode };
    }
    return written;
  }

  /** Ends with a file that was read: it is looked at again once it is another one. */
  async leave(read: ReadFile): Promise<void> {
    if (this.#replaced?.handle === read.handle) return;
    await read.handle.close();
  }

  /**
   * Saves what was written into the file after it was replaced.
   *
   * @returns the path of the conflict file, below the root; undefined where nothing was
   */
  async saveLate(): Promise<string | undefined> {
    const replaced = this.#replaced;
    if (replaced === undefined || !(await this.#writtenLate())) return undefined;
    const bytes = await contentOf(replaced.handle);
    const saved =
      hashOf(bytes) === replaced.sha256 ? undefined : await this.#conflicts.save(bytes, replaced.mode);
    replaced.stamp = stampOf(await replaced.handle.stat());
    return saved;
  }

  /** Ends with the inode that was replaced last; what was written into it is saved before. */
  async close(): Promise<void> {
    const replaced = this.#replaced;
    try {
      await this.saveLate();
    } finally {
      this.#replaced = undefined;
      await replaced?.handle.close();
    }
  }

  /**
   * Removes the file that was read.
   *
   * @throws Overtaken when that is not what stands there any more
   */
  async remove(read: ReadFile, options: { readonly versions: number }): Promise<void> {
    const path = await reach(this.spot);
    await removeWhole(this.spot, { ...options, lastLook: () => lookAgain(path, read) });
  }

  async #readOnce(path: string): Promise<Reading> {
    const before = await statsAt(path);
    this.#left = before && stampOf(before);
    if (before === undefined) return { kind: 'missing' };
    if (!before.isFile()) {
      return {
        kind: 'unfit',
        code: 'EDIT_UNREADABLE',
        what: 'something that is no regular file stands there',
      };
    }
    if (!this.#isAtRest(stampOf(before))) {
      this.#left = undefined;
      return { kind: 'moving' };
    }
    if (before.size > LARGEST_EDITED) {
      return {
        kind: 'unfit',
        code: 'EDIT_TOO_LARGE',
        what: `it has ${before.size} bytes, of at most ${LARGEST_EDITED}`,
      };
    }
    const handle = await openExisting(path).catch((error: unknown) => {
      if (systemCode(error) === undefined) throw error;
      return messageOf(error);
    });
    if (handle === undefined) return { kind: 'moving' };
    if (typeof handle === 'string') return { kind: 'unfit', code: 'EDIT_UNREADABLE', what: handle };
    let isKept = false;
    try {
      const bytes = await contentOf(handle);
      const stamp = stampOf(await handle.stat());
      const now = await stampAt(path);
      const isWhole = bytes.length === stamp.size && sameStamp(stamp, stampOf(before));
      if (!isWhole || now === undefined || !sameStamp(now, stamp)) {
        this.#left = undefined;
        return { kind: 'moving' };
      }
      isKept = true;
      return { kind: 'read', bytes, sha256: hashOf(bytes), stamp, mode: before.mode & 0o777, handle };
    } finally {
      if (!isKept) await handle.close();
    }
  }

  /** Times that lie in the future say nothing: then it has to look the same for as long. */
  #isAtRest(stamp: FileStamp): boolean {
    const now = this.#clock.now();
    if (this.#seen === undefined || !sameStamp(this.#seen.stamp, stamp)) this.#seen = { stamp, since: now };
    return this.#clock.wall() - stamp.mtimeMs >= REST_MS || now - this.#seen.since >= REST_MS;
  }

  async #writtenLate(): Promise<boolean> {
    const replaced = this.#replaced;
    if (replaced === undefined) return false;
    const { size, mtimeMs } = await replaced.handle.stat();
    return size !== replaced.stamp.size || mtimeMs !== replaced.stamp.mtimeMs;
  }
}

function stampOf({ size, mtimeMs, ino }: FileStamp): FileStamp {
  return { size, mtimeMs, ino };
}

/** @throws Overtaken when what stands there is not what was read */
function lookAgain(path: string, read: ReadFile | undefined): void {
  const now = stampNow(path);
  const isAsRead = read === undefined ? now === undefined : now !== undefined && sameStamp(now, read.stamp);
  if (!isAsRead) throw new Overtaken();
}

function stampNow(path: string): FileStamp | undefined {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats && stampOf(stats);
}

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
