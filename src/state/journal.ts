import type { FileHandle } from 'node:fs/promises';
import { writeFileAtomic } from '../lib/atomic.js';
import type { Header, OpenFile } from './files.js';
import { lineOf, writeFully } from './framing.js';

/**
 * One journal that is written to.
 *
 * It is *sound* as long as all before its end is known to be on disk. A write that fails is cut off again and leaves it
 * sound. A sync that fails (or a cut that does) makes it *spoiled* for ever: the kernel may have dropped what it could
 * not write and report success the next time, so nothing may be appended to it and its successor repeats what is
 * not known to be durable.
 */
export class Journal {
  readonly #file: FileHandle;
  /** Bytes known to be on disk. */
  #end: number;
  #spoiled = false;

  private constructor(file: FileHandle, end: number) {
    this.#file = file;
    this.#end = end;
  }

  /** Begins a journal; it exists with its header, or not at all, also after a power cut. */
  static async create(path: string, header: Header, open: OpenFile): Promise<Journal> {
    const line = lineOf(header);
    await writeFileAtomic(path, line);
    return new Journal(await open(path, 'r+'), Buffer.byteLength(line));
  }

  /** Goes on with a journal that was read up to `end`: cuts off what follows and syncs what is there. */
  static async resume(path: string, end: number, open: OpenFile): Promise<Journal> {
    const file = await open(path, 'r+');
    try {
      await file.truncate(end);
      await file.sync();
    } catch (error) {
      await file.close();
      throw error;
    }
    return new Journal(file, end);
  }

  /** Bytes. */
  get size(): number {
    return this.#end;
  }

  get spoiled(): boolean {
    return this.#spoiled;
  }

  /**
   * Appends all of the chunks with one sync: when it resolves they are on disk, when it rejects none of them counts.
   *
   * @param syncing does the sync, and may look how long it takes
   */
  async append(
    chunks: Iterable<Uint8Array>,
    syncing: (sync: () => Promise<void>) => Promise<void> = (sync) => sync(),
  ): Promise<void> {
    let end = this.#end;
    try {
      for (const chunk of chunks) {
        await writeFully(this.#file, chunk, end);
        end += chunk.length;
      }
    } catch (error) {
      await this.#cut();
      throw error;
    }
    try {
      await syncing(() => this.#file.datasync());
    } catch (error) {
      this.#spoiled = true;
      await this.#cut();
      throw error;
    }
    this.#end = end;
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async #cut(): Promise<void> {
    try {
      await this.#file.truncate(this.#end);
    } catch {
      this.#spoiled = true;
    }
  }
}
