import { execFile } from 'node:child_process';
import type { Clock } from '../lib/clock.js';

/** A directory that the work depends on, for the disk that it is on. */
export interface Disk {
  readonly path: string;
  /** Whether it is for peersync to write to; where it is not, nothing is ever written. */
  readonly isOwn: boolean;
}

export interface InquiryParts {
  readonly disks: () => readonly Disk[];
  /** Resolves when the disk answered. @default a program asks it */
  readonly ask?: ((disk: Disk) => Promise<void>) | undefined;
  readonly clock: Clock;
  /** A disk that gives no answer for so long is silent, in ms. */
  readonly answersMs: number;
}

/**
 * Finds out whether disks answer.
 *
 * A file system that is frozen, or whose device hangs, still answers to much: what it has in memory is read, and there is
 * nothing to bring to a disk where nothing was changed. So a directory of our own gets a new time, which has to reach the disk.
 */
export class DiskInquiry {
  readonly #parts: InquiryParts;
  readonly #asking = new Map<string, Promise<void>>();

  constructor(parts: InquiryParts) {
    this.#parts = parts;
  }

  /** The first directory whose disk does not answer in time. */
  async silent(): Promise<string | undefined> {
    const { answersMs, clock, disks } = this.#parts;
    const all = disks();
    const silent = new Set(all.map(({ path }) => path));
    const enough = new AbortController();
    const answers = all.map((disk) => this.#ask(disk).then(() => silent.delete(disk.path)));
    await Promise.race([Promise.all(answers), clock.sleep(answersMs, enough.signal)]);
    enough.abort();
    return all.find(({ path }) => silent.has(path))?.path;
  }

  /** One question at a time: there is no need for more that wait. */
  #ask(disk: Disk): Promise<void> {
    const { ask = askByProgram } = this.#parts;
    const asking =
      this.#asking.get(disk.path) ??
      ask(disk)
        .catch(() => {}) // No for an answer is an answer.
        .finally(() => this.#asking.delete(disk.path));
    this.#asking.set(disk.path, asking);
    return asking;
  }
}

/** In a process by itself: the few threads of ours may all wait for one disk, and none could be told from another. */
function askByProgram({ path, isOwn }: Disk): Promise<void> {
  const script = isOwn ? 'touch -m -c -- "$1" && sync -- "$1"' : 'sync -- "$1"';
  return new Promise((resolve) => {
    const child = execFile('sh', ['-c', script, 'sh', path], () => resolve());
    // One that waits for ever keeps nobody from stopping.
    child.unref();
    child.stdout?.destroy();
    child.stderr?.destroy();
  });
}
