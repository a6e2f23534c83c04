import { type FileHandle, mkdir, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { writeError } from './errors.js';
import { temporaryName } from './temporary.js';

const WRITE_BYTES = 2 ** 18;
const LINE_FEED = 10;

/**
 * Lines on disk that are read again later. The file has no name any more as soon as it is open: nothing of it stays, however the
 * process ends.
 */
export class ScratchFile {
  readonly #directory: string;
  readonly #handle: FileHandle;
  #waiting: string[] = [];
  #waitingLength = 0;
  #size = 0;

  private constructor(directory: string, handle: FileHandle) {
    this.#directory = directory;
    this.#handle = handle;
  }

  /**
   * @param directory made (0700) when it does not exist
   * @throws MirrorError MIRROR_FULL, MIRROR_BLOCKED, MIRROR_UNWRITABLE; so does every other call
   */
  static async open(directory: string): Promise<ScratchFile> {
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const path = join(directory, temporaryName());
      const handle = await open(path, 'wx+', 0o600);
      await unlink(path);
      return new ScratchFile(directory, handle);
    } catch (error) {
      throw writeError(error, directory);
    }
  }

  /** Adds a line; it holds no line break. Well-formed, or what stands alone of a pair becomes U+FFFD. */
  async add(line: string): Promise<void> {
    this.#waiting.push(line);
    this.#waitingLength += line.length;
    if (this.#waitingLength >= WRITE_BYTES) await this.flush();
  }

  /** @returns how many bytes stand in the file, now that all lines that were added do */
  async flush(): Promise<number> {
    if (this.#waiting.length > 0) {
      const chunk = Buffer.from(`${this.#waiting.join('\n')}\n`);
      this.#waiting = [];
      this.#waitingLength = 0;
      try {
        await this.#handle.writeFile(chunk);
      } catch (error) {
        throw writeError(error, this.#directory);
      }
      this.#size += chunk.length;
    }
    return this.#size;
  }

  /** The lines from byte `from` to before byte `to`, read about `step` bytes at a time: each group is what one read ends. */
  async *lines(from: number, to: number, step: number): AsyncGenerator<readonly string[], void> {
    const chunk = Buffer.allocUnsafe(Math.min(step, to - from));
    let begun: Buffer[] = [];
    for (let at = from; at < to; ) {
      const read = chunk.subarray(0, await this.#read(chunk, at, Math.min(step, to - at)));
      at += read.length;
      const end = read.lastIndexOf(LINE_FEED);
      if (end !== -1) yield textOf([...begun, read.subarray(0, end)]).split('\n');
      // What a line begins with is copied: the next read overwrites it.
      const rest = Buffer.from(read.subarray(end + 1));
      begun = end === -1 ? [...begun, rest] : [rest];
    }
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  async #read(chunk: Buffer, at: number, bytes: number): Promise<number> {
    try {
      const { bytesRead } = await this.#handle.read(chunk, 0, bytes, at);
      if (bytesRead === 0) throw new Error('it became shorter');
      return bytesRead;
    } catch (error) {
      throw writeError(error, this.#directory);
    }
  }
}

function textOf(parts: readonly Buffer[]): string {
  return Buffer.concat(parts).toString();
}
