import { lstat, mkdir, mkdtemp, opendir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock, Timer } from '../lib/clock.js';
import { systemCode } from '../lib/errors.js';
import { type Lock, readLock, takeLock } from '../lib/lock.js';
import type { Logger } from '../lib/logger.js';
import { DocumentProcesses } from '../uplink/document-processes.js';
import type { Packers } from '../uplink/documents.js';

/** The private directories of workers begin with this, in the directory for temporary files. */
const DIRECTORY_PREFIX = 'peersync-worker-';
/** Held as long as the worker of a directory lives. */
const LOCK = 'lock';
/** A directory without a lock is that of a worker which is starting, unless it is so old, in ms. */
const STARTING_MS = 10 * 60_000;
/**
 * A page that was read by OCR is kept for this long after its last use, in ms: so that a document
 * whose process was killed does not begin anew.
 */
const PAGE_KEPT_MS = 60 * 60_000;
/** Interval at which old pages are removed, in ms. Eight processes read about 3,000 meanwhile. */
const SWEEP_MS = 15 * 60_000;

/** The processes that read documents for a worker, and their private files. */
export class WorkerReaders {
  #documents: DocumentProcesses;
  #started = 0;
  #sweep: Timer | undefined;

  private constructor(
    private readonly program: URL,
    /** Its private directory. */
    readonly directory: string,
    private readonly lock: Lock,
    private readonly clock: Clock,
    private readonly log: Logger,
  ) {
    this.#documents = this.#start();
    this.#sweepLater();
  }

  /**
   * Makes a directory for private files, and removes those of workers that were killed. No process
   * runs yet.
   *
   * @param program the program that reads documents; see `document-process.ts`
   */
  static async open(program: URL, clock: Clock, log: Logger): Promise<WorkerReaders> {
    await removeLeftovers(clock);
    const directory = await mkdtemp(join(tmpdir(), DIRECTORY_PREFIX));
    const lock = await takeLock(join(directory, LOCK), clock, () => new Error('it is taken'));
    await mkdir(join(directory, 'pages'), { mode: 0o700 });
    return new WorkerReaders(program, directory, lock, clock, log);
  }

  readonly extractDocument: Packers['extractDocument'] = async (order, onProgress) => {
    return await this.#documents.read(order, onProgress);
  };

  /** Ends what is being read. Other documents can be read afterwards. */
  async restart(): Promise<void> {
    const before = this.#documents;
    this.#documents = this.#start();
    await before.close();
  }

  /** Ends what is being read. Every document is reported as stale afterwards. */
  async close(): Promise<void> {
    await this.#documents.close();
  }

  /** Removes the private files. Must be called after `close`. */
  async remove(): Promise<void> {
    this.#sweep?.cancel();
    await this.lock.release();
    await rm(this.directory, { recursive: true, force: true });
  }

  get #pages(): string {
    return join(this.directory, 'pages');
  }

  #start(): DocumentProcesses {
    this.#started += 1;
    const directory = join(this.directory, `reading-${this.#started}`);
    return new DocumentProcesses(this.program, directory, this.#pages, this.clock, this.log);
  }

  #sweepLater(): void {
    const sweep = () => void removeOldPages(this.#pages, this.clock).then(() => this.#sweepLater());
    this.#sweep = this.clock.after(SWEEP_MS, sweep, { background: true });
  }
}

/** Removes pages that were not used for long. Never rejects. */
async function removeOldPages(directory: string, clock: Clock): Promise<void> {
  try {
    for await (const { name } of await opendir(directory)) {
      const file = join(directory, name);
      const { mtimeMs } = await stat(file);
      if (clock.wall() - mtimeMs > PAGE_KEPT_MS) await rm(file, { force: true });
    }
  } catch {
    // A file went meanwhile. The rest is removed the next time.
  }
}

/** Removes the directories of workers that do not live any more, as far as they may be removed. */
async function removeLeftovers(clock: Clock): Promise<void> {
  for await (const entry of await opendir(tmpdir())) {
    if (!entry.isDirectory() || !entry.name.startsWith(DIRECTORY_PREFIX)) continue;
    const directory = join(tmpdir(), entry.name);
    if (!(await mayLive(directory, clock)))
      await rm(directory, { recursive: true, force: true }).catch(() => {});
  }
}

/**
 * Whether the worker of a directory may live. One of another user does, for all we know: everybody
 * may write to the directory for temporary files, and nothing that others wrote is opened.
 */
async function mayLive(directory: string, clock: Clock): Promise<boolean> {
  const found = await lstat(directory).catch(() => undefined);
  const isOwn = found?.isDirectory() && found.uid === process.getuid?.();
  if (found === undefined || !isOwn || (found.mode & 0o777) !== 0o700) return true;
  const lock = join(directory, LOCK);
  try {
    if (!(await lstat(lock)).isFile()) return true;
    return (await readLock(lock)) !== undefined;
  } catch (error) {
    return systemCode(error) !== 'ENOENT' || clock.wall() - found.mtimeMs < STARTING_MS;
  }
}
