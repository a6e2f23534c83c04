import { type FileHandle, open } from 'node:fs/promises';
import type { OpenFile } from '../../src/state/directory.js';

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: injected`), { code });
}

/** Opens real files whose writes and syncs fail on demand. */
export class DiskWithFaults {
  /** The files that were synced, in order. */
  synced: string[] = [];
  /** Number of files open for writing. */
  writing = 0;
  /** Number of syncs that wait for the release by `holdSyncs`. */
  heldSyncs = 0;
  /** Free space, in bytes. */
  space = Number.POSITIVE_INFINITY;
  /** The code with which the next sync fails, once. */
  nextSyncFails: string | undefined;
  /** Whether truncating a file fails. */
  truncateFails = false;
  #held: Promise<void> = Promise.resolve();
  /** All writes to journals and snapshots: path and number of bytes. */
  readonly writes: { path: string; bytes: number }[] = [];

  /** Whether opening this file fails for lack of space. */
  refuses: (path: string) => boolean = () => false;

  readonly open: OpenFile = async (path, flags, mode) => {
    if (this.refuses(String(path))) throw systemError('ENOSPC');
    return this.#wrap(String(path), await open(path, flags, mode), flags !== 'r');
  };

  /** Makes syncs wait until the returned function is called. */
  holdSyncs(): () => void {
    let release = () => {};
    this.#held = new Promise((resolve) => {
      release = resolve;
    });
    return release;
  }

  #wrap(path: string, file: FileHandle, isWritten: boolean): FileHandle {
    if (isWritten) this.writing += 1;
    const sync = (real: () => Promise<void>) => async () => {
      this.synced.push(path);
      this.heldSyncs += 1;
      await this.#held;
      this.heldSyncs -= 1;
      const code = this.nextSyncFails;
      this.nextSyncFails = undefined;
      if (code !== undefined) throw systemError(code);
      await real();
    };
    const faulty = {
      close: async () => {
        if (isWritten) this.writing -= 1;
        await file.close();
      },
      datasync: sync(() => file.datasync()),
      sync: sync(() => file.sync()),
      truncate: async (length?: number) => {
        if (this.truncateFails) throw systemError('EIO');
        await file.truncate(length);
      },
      write: async (bytes: Uint8Array, offset: number, length: number, position: number) => {
        if (this.space === 0) throw systemError('ENOSPC');
        const fits = Math.min(length, this.space);
        this.space -= fits;
        if (!path.endsWith('acknowledged')) this.writes.push({ path, bytes: fits });
        return await file.write(bytes, offset, fits, position);
      },
    };
    return new Proxy(file, {
      get(target, name) {
        if (name in faulty) return faulty[name as keyof typeof faulty];
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }
}
