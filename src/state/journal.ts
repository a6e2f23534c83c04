import { constants } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Adapter } from 'lowdb';
import { syncDirectory } from '../lib/atomic.js';
import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { AcknowledgedFile } from './acknowledged.js';
import { blockOf } from './compression.js';
import { listStateFiles, type OpenFile, pathOf, type StateError, stateError } from './directory.js';
import { loadState, type StateSizes } from './load.js';
import {
  changedLines,
  framedLines,
  LinesFile,
  REPAIRED_META,
  type StateData,
  snapshotTexts,
  VERSIONS,
} from './rows.js';

const STATE_POLICY = {
  /**
   * Compaction starts when the journals since the last snapshot are larger than this, in bytes, and
   * larger than `JOURNAL_SHARE`.
   */
  compactMinBytes: 4 * 1024 * 1024,
  /**
   * Lines written in one go, in bytes. 128 KiB take about 1 ms of the event loop, and 1.5 ms in a
   * snapshot, where they are one block.
   */
  writeBytes: 128 * 1024,
  /** Pause between two writes, in ms, so that more changes share a sync. */
  pauseMs: 0,
};

/**
 * The size of the journals at which compaction starts, as a share of the lines of all records. A
 * snapshot has about a third of their size, so three snapshots and two journals, which is the most
 * while a snapshot is written, take twice their size.
 */
const JOURNAL_SHARE = 0.5;

export interface AdapterOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly policy?: Partial<typeof STATE_POLICY>;
  /** @default open of node:fs/promises */
  readonly open?: OpenFile;
  /**
   * With this signal, commits wait while the disk is full, until it aborts. Without it they fail.
   */
  readonly waitsUntil?: AbortSignal | undefined;
}

/**
 * Keeps the data of lowdb on disk. A write costs as much as what changed, not as much as what is
 * stored.
 *
 * Generation n is `journal-n` and, after a compaction, `snapshot-n`. The journal continues the
 * snapshot or, if there is none, the journal of the generation before. Generation 1 starts from
 * nothing.
 *
 * - *Appending*: `write` appends the changes to the newest journal. Callers that wait at the same
 *   time share one sync.
 * - *Compacting*, entered by `compact`, when the journals have grown large, and when reading
 *   repaired something: the journal of the next generation begins. New changes go there while the
 *   snapshot is written from the live data. When the snapshot is on disk, files older than the
 *   snapshot before it are removed. That one stays, with the journals since, as the fallback.
 * - *Replacing a spoiled journal*, entered when a sync or a truncation failed: the next write
 *   begins the journal of a new generation.
 * - *Lost*, entered by `lose`: no write succeeds until `writeAnew`.
 *
 * The file `acknowledged` says how much of the newest journal was known to be on disk.
 *
 * The caller holds the lock of the directory (`lockState`): only one process may use it at a time.
 */
export class JournalAdapter implements Adapter<StateData> {
  readonly #dir: string;
  readonly #options: AdapterOptions;
  readonly #policy: typeof STATE_POLICY;
  readonly #open: OpenFile;
  readonly #acknowledged: AcknowledgedFile;
  readonly #closing = new AbortController();
  /** One sentence for each repair made by `read`. */
  readonly repairs: string[] = [];
  /** Called after each sync with its duration, in seconds. */
  onSync: (seconds: number) => void = () => {};

  #journal: LinesFile | undefined;
  /** Number of URL bases written to the present journal since it was opened. */
  #basesWritten = 0;
  #files: StateSizes = { base: 1, generation: 0, snapshotBytes: 0, journalBytes: 0 };
  /** After a failed compaction, the journals have to grow larger than this first, in bytes. */
  #retryAbove = 0;
  #compaction: Promise<void> | undefined;
  #compactions = 0;
  /** Why writes are refused; set by `lose`. */
  #refusal: StateError | undefined;

  /** The last operation on the journal. Each waits for the one before it. */
  #lastOperation: Promise<void> = Promise.resolve();
  /** Resolves when the pause after the last write is over. */
  #pause: Promise<void> | undefined;
  /** The write that has not started yet. New callers of `write` join it. */
  #nextWrite: Promise<void> | undefined;

  constructor(dir: string, options: AdapterOptions) {
    this.#dir = dir;
    this.#options = options;
    this.#policy = { ...STATE_POLICY, ...options.policy };
    this.#open = options.open ?? open;
    this.#acknowledged = new AcknowledgedFile(dir, this.#open);
  }

  /**
   * Returns the sizes of the journals and the snapshot in bytes, and the number of compactions
   * since the state was opened.
   */
  figures() {
    const compacting = this.#compaction !== undefined;
    return { ...this.#files, compacting, compactions: this.#compactions };
  }

  /**
   * Reads the directory and repairs what a crash left behind. Creates the directory if it is
   * missing. Called once.
   *
   * @throws StateError
   */
  async read(): Promise<StateData> {
    try {
      await mkdir(this.#dir, { recursive: true, mode: 0o700 });
      const { data, repairs, unfinished, newest, hasLost, ...sizes } = await loadState(
        this.#dir,
        this.#open,
      );
      for (const name of unfinished) await rm(join(this.#dir, name), { force: true });
      this.#files = sizes;
      this.repairs.push(...repairs);
      if (newest === undefined) await this.#beginJournal();
      else {
        const torn = newest.bytes - newest.intactBytes;
        if (torn > 0)
          this.repairs.push(
            `The last ${torn} bytes of journal-${sizes.generation} were torn and cut off.`,
          );
        const file = await this.#open(
          pathOf(this.#dir, 'journal', sizes.generation),
          constants.O_RDWR | constants.O_NOFOLLOW,
        );
        this.#journal = new LinesFile(file, this.#policy.writeBytes, newest.intactBytes);
        await file.truncate(newest.intactBytes);
        await file.sync();
      }
      for (const repair of this.repairs)
        this.#options.log.warn({ dir: this.#dir }, `State repaired: ${repair}`);
      if (hasLost) await this.#recordLoss(data);
      if (repairs.length > 0) this.#startCompaction(data);
      return data;
    } catch (error) {
      await this.#acknowledged.close();
      await this.#journal?.file.close();
      throw await stateError(error, this.#dir, 'write');
    }
  }

  /**
   * Records the time of the loss at once: the damage that shows it may be gone at the next start.
   * If the disk is full, a later write saves it.
   */
  async #recordLoss(data: StateData): Promise<void> {
    data.meta.set(REPAIRED_META, this.#options.clock.now());
    data.changes.add(REPAIRED_META);
    await this.#writeChanges(data).catch((error: unknown) => {
      if (data.failure === undefined) throw error;
    });
  }

  /**
   * Resolves when all changes of `data` so far are on disk. They leave `data.changes`.
   *
   * @throws StateError STATE_FULL or STATE_UNWRITABLE: the changes are kept, and a later write
   *   tries again
   */
  write(data: StateData): Promise<void> {
    this.#nextWrite ??= this.#serialize(async () => {
      await this.#pause;
      this.#nextWrite = undefined;
      await this.#writeChanges(data);
      if (this.#policy.pauseMs > 0) this.#pause = this.#options.clock.sleep(this.#policy.pauseMs);
    });
    return this.#nextWrite;
  }

  /**
   * Writes all data into a new generation, and resolves when it is on disk. Joins a compaction that
   * is running.
   */
  async compact(data: StateData): Promise<void> {
    this.#compaction ??= this.#compact(data).finally(() => {
      this.#compaction = undefined;
    });
    await this.#compaction;
  }

  /** Aborts a running compaction and closes the journal. Does not write. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#compaction?.catch(() => undefined);
    await this.#serialize(async () => {
      await this.#acknowledged.close();
      await this.#journal?.file.close();
    });
  }

  async #writeChanges(data: StateData): Promise<void> {
    if (data.changes.size === 0) return;
    if (this.#closing.signal.aborted) throw new Error('The state was changed after it was closed.');
    data.changes.beginWrite();
    try {
      if (this.#refusal !== undefined) throw this.#refusal;
      const journal =
        this.#journal?.isSpoiled === false ? this.#journal : await this.#beginJournal();
      const [bases, before] = [data.entries.bases.length, journal.end];
      const started = this.#options.clock.now();
      await journal.append(changedLines(data, this.#basesWritten));
      await this.#acknowledge(this.#files.generation, journal.end);
      this.onSync((this.#options.clock.now() - started) / 1000);
      this.#files.journalBytes += journal.end - before;
      this.#basesWritten = bases;
      data.failure = undefined;
    } catch (error) {
      data.changes.abortWrite();
      data.failure = await stateError(error, this.#dir, 'write');
      throw data.failure;
    }
    await data.committed.afterWrite();
    if (this.#files.journalBytes > this.#journalLimit(data)) this.#startCompaction(data);
  }

  /**
   * Called when the directory no longer belongs to this state. Makes every write fail until
   * `writeAnew`.
   */
  lose(reason: StateError): void {
    this.#refusal = reason;
  }

  /** Writes all data into the directory, which must not contain a state. */
  async writeAnew(data: StateData): Promise<void> {
    await this.#compaction?.catch(() => undefined);
    await this.#serialize(async () => {
      await this.#journal?.file.close().catch(() => undefined);
      this.#journal = undefined;
      this.#files = { base: 1, generation: 0, snapshotBytes: 0, journalBytes: 0 };
      this.#refusal = undefined;
    });
    await this.compact(data);
  }

  /**
   * Checks that the journal is still in the directory. If it was removed or replaced, writes all
   * data into a new generation, in the background.
   */
  async checkJournal(data: StateData): Promise<void> {
    await this.#serialize(async () => {
      const journal = this.#journal;
      if (journal === undefined || journal.isSpoiled || this.#closing.signal.aborted) return;
      const { generation } = this.#files;
      const found = await stat(pathOf(this.#dir, 'journal', generation)).catch(() => undefined);
      const { dev, ino } = await journal.file.stat();
      if (found?.dev === dev && found.ino === ino) return;
      journal.isSpoiled = true;
      const words = `journal-${generation} in ${this.#dir} was removed or replaced; everything known is written anew.`;
      this.#options.log.warn({ event: 'journal-gone' }, words);
      this.#startCompaction(data);
    });
  }

  /** Begins the journal of a new generation and closes the one before. */
  async #beginJournal(): Promise<LinesFile> {
    if (this.#refusal !== undefined) throw this.#refusal;
    const generation = this.#files.generation + 1;
    const journal = await this.#createFile('journal', generation, []);
    await this.#acknowledged.close();
    await this.#acknowledge(generation, journal.end);
    await this.#journal?.file.close().catch(() => undefined);
    this.#journal = journal;
    this.#files.generation = generation;
    this.#files.journalBytes += journal.end;
    this.#basesWritten = 0;
    return journal;
  }

  /**
   * Records how much of the journal is on disk. A failure does no harm: the earlier value stays, as
   * after a power cut.
   */
  async #acknowledge(generation: number, end: number): Promise<void> {
    try {
      await this.#acknowledged.write({ generation, end });
    } catch (error) {
      this.#options.log.debug(
        { err: error },
        'it could not be noted how far the journal is on disk',
      );
    }
  }

  /**
   * Compacts in the background. A failure is logged, and compaction is tried again when the
   * journals have grown further.
   */
  #startCompaction(data: StateData): void {
    if (this.#closing.signal.aborted || this.#compaction !== undefined) return;
    this.compact(data).catch(async (error: unknown) => {
      if (this.#closing.signal.aborted) return;
      this.#retryAbove = this.#files.journalBytes + this.#policy.compactMinBytes;
      const { code, message, hint } = await stateError(error, this.#dir, 'write');
      this.#options.log.warn({ code }, `The state could not be compacted yet: ${message} ${hint}`);
    });
  }

  async #compact(data: StateData): Promise<void> {
    let journalsBefore = 0;
    await this.#serialize(async () => {
      journalsBefore = this.#files.journalBytes;
      await this.#beginJournal();
    });
    const { base: fallback, generation } = this.#files;
    const snapshot = await this.#createFile(
      'snapshot',
      generation,
      snapshotTexts(data, this.#closing.signal),
    );
    await snapshot.file.close();
    this.#files.base = generation;
    this.#files.snapshotBytes = snapshot.end;
    this.#files.journalBytes -= journalsBefore;
    this.#retryAbove = 0;
    this.#compactions += 1;
    const files = await listStateFiles(this.#dir);
    for (const kind of ['snapshot', 'journal'] as const) {
      for (const old of files[kind].filter((found) => found < fallback))
        await rm(pathOf(this.#dir, kind, old), { force: true });
    }
  }

  /**
   * Creates a journal or a snapshot that lines can be appended to. After a crash the file exists
   * complete or not at all.
   */
  async #createFile(peersync: 'journal' | 'snapshot', generation: number, texts: Iterable<string>) {
    const path = pathOf(this.#dir, peersync, generation);
    const created = this.#options.clock.now();
    const header = JSON.stringify({ peersync, ...VERSIONS, generation, created });
    await rm(`${path}.tmp`, { force: true });
    const file = await this.#open(`${path}.tmp`, 'wx', 0o600);
    const stored = peersync === 'snapshot' ? blockOf : undefined;
    const made = new LinesFile(file, this.#policy.writeBytes, 0, stored);
    try {
      await made.append(framedLines(header, texts));
      await rename(`${path}.tmp`, path);
      await syncDirectory(this.#dir, this.#open);
      return made;
    } catch (error) {
      await file.close();
      await rm(`${path}.tmp`, { force: true });
      throw error;
    }
  }

  #journalLimit({ entries }: StateData): number {
    const share = JOURNAL_SHARE * entries.lineLength;
    return Math.max(this.#policy.compactMinBytes, this.#retryAbove, share);
  }

  #serialize(work: () => Promise<void>): Promise<void> {
    const done = this.#lastOperation.then(work);
    this.#lastOperation = done.catch(() => undefined);
    return done;
  }
}
