import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Adapter } from 'lowdb';
import { Buckets, type BucketsReading } from '../lib/buckets.js';
import type { Clock } from '../lib/clock.js';
import type { PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { Changes, StateData } from './data.js';
import { writeError } from './errors.js';
import { journalPath, listStateFiles, newHeader, type OpenFile, openFile, snapshotPath } from './files.js';
import { LineBuffer } from './framing.js';
import { Journal } from './journal.js';
import { type Loader, loadState } from './load.js';
import { baseRows, metaRow, recordText, writeSnapshot } from './snapshot.js';

/** The numbers of the state. */
export interface StatePolicy {
  /** The journals since the last snapshot are compacted only when they are larger than this, in bytes. */
  readonly compactMinBytes: number;
  /** And larger than this many times that snapshot. */
  readonly compactRatio: number;
  /** How much is encoded without a pause, in bytes (256 KiB cost about 1 ms of the event loop). */
  readonly writeBytes: number;
}

const STATE_POLICY: StatePolicy = {
  compactMinBytes: 16 * 1024 * 1024,
  compactRatio: 1,
  writeBytes: 256 * 1024,
};

export interface AdapterOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly policy?: Partial<StatePolicy>;
  /** @default open of node:fs/promises */
  readonly open?: OpenFile;
}

/** Sizes in bytes. */
export interface DiskFigures {
  /** The changes since the last snapshot. */
  readonly journalBytes: number;
  readonly snapshotBytes: number;
  readonly generation: number;
  readonly compacting: boolean;
  /** How often that happened since the state was opened. */
  readonly compactions: number;
  /** How long the syncs of changes took, in seconds. */
  readonly syncs: BucketsReading;
  /** What the last commit failed with; absent when it did not. */
  readonly failure?: PeersyncError;
}

/** In seconds: from a disk that only remembers to one that is going to fail. */
const SYNC_BOUNDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/**
 * Keeps what lowdb holds on disk, at a cost that follows what changed and not what is stored.
 *
 * `write` appends what changed to the journal of the present generation and syncs once for all who wait. A journal that
 * has grown large is *compacted*: the next generation's journal begins, and while the work goes on in it, its snapshot
 * is written from the live data. Then what is older than the snapshot before goes; that one, with the journals since,
 * stays as the fallback. A journal that the disk spoiled is left behind the same way.
 *
 * One process at a time may use a directory; that is what lock.ts is for.
 */
export class JournalAdapter implements Adapter<StateData> {
  readonly #dir: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #policy: StatePolicy;
  readonly #open: OpenFile;
  readonly #closing = new AbortController();
  readonly #lines = new LineBuffer();
  /** So many URL bases stand in the present journal. */
  #basesWritten = 0;

  #journal: Journal | undefined;
  #generation = 0;
  /** The generation that a reader has to begin with. */
  #base = 1;
  #snapshotBytes = 0;
  /** Journals since the base, without the present one, in bytes. */
  #olderJournalBytes = 0;
  /** A compaction that failed is not tried again before the journals have grown to this, in bytes. */
  #putOffTo = 0;
  #compaction: Promise<void> | undefined;
  #compactions = 0;
  readonly #syncs = new Buckets(SYNC_BOUNDS);
  #failure: PeersyncError | undefined;
  readonly #repairs: string[] = [];

  /** What touches the journal happens one after the other; this is the last of it. */
  #last: Promise<void> = Promise.resolve();
  /** The write that has not begun yet: who comes now joins it. */
  #group: Promise<void> | undefined;

  constructor(dir: string, options: AdapterOptions) {
    this.#dir = dir;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#policy = { ...STATE_POLICY, ...options.policy };
    this.#open = options.open ?? openFile;
  }

  /** One sentence for each repair that reading made. */
  get repairs(): readonly string[] {
    return this.#repairs;
  }

  figures(): DiskFigures {
    return {
      journalBytes: this.#journalBytes,
      snapshotBytes: this.#snapshotBytes,
      generation: this.#generation,
      compacting: this.#compaction !== undefined,
      compactions: this.#compactions,
      syncs: this.#syncs.read(),
      ...(this.#failure === undefined ? {} : { failure: this.#failure }),
    };
  }

  /** What the last write failed with; undefined when it did not. */
  get failure(): PeersyncError | undefined {
    return this.#failure;
  }

  /** Reads the directory, created if it is not there, and repairs what a crash left behind. To be called once. */
  async read(): Promise<StateData> {
    try {
      await mkdir(this.#dir, { recursive: true, mode: 0o700 });
      const loaded = await loadState(this.#dir, this.#open);
      for (const name of loaded.files.unfinished) await rm(join(this.#dir, name), { force: true });
      await this.#resume(loaded);
      for (const repair of this.#repairs) this.#log.warn({ dir: this.#dir }, `State repaired: ${repair}`);
      if (loaded.damage.length > 0 || loaded.outdated || this.#isLarge()) this.#startCompaction(loaded.data);
      return loaded.data;
    } catch (error) {
      throw writeError(error, this.#dir);
    }
  }

  /**
   * Resolves when all changes of `data` so far are on disk; they are then no changes any more.
   *
   * @throws StateError STATE_FULL or STATE_UNWRITABLE: the changes are kept, and a later write tries again
   */
  write(data: StateData): Promise<void> {
    this.#group ??= this.#inTurn(() => {
      this.#group = undefined;
      return this.#append(data);
    });
    return this.#group;
  }

  /** Rewrites everything into a new generation; resolves when that is on disk. Joins a compaction under way. */
  async compact(data: StateData): Promise<void> {
    this.#compaction ??= this.#compact(data).finally(() => {
      this.#compaction = undefined;
    });
    await this.#compaction;
  }

  /** Gives up a compaction under way and closes the journal. Does not write. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#compaction?.catch(() => undefined);
    await this.#inTurn(async () => this.#journal?.close());
  }

  async #resume({ last, files, damage, base, journalBytes, snapshotBytes }: Loader): Promise<void> {
    this.#repairs.push(...damage);
    if (last === undefined) {
      await this.#begin(Math.max(0, ...files.snapshots, ...files.journals) + 1);
    } else {
      const { generation, soundBytes, tornBytes } = last;
      if (tornBytes > 0)
        this.#repairs.push(`The last ${tornBytes} bytes of journal-${generation} were torn and cut off.`);
      this.#journal = await Journal.resume(journalPath(this.#dir, generation), soundBytes, this.#open);
      this.#generation = generation;
      this.#olderJournalBytes = journalBytes - soundBytes;
      if (!last.current) await this.#begin(generation + 1);
    }
    this.#base = Math.min(base, this.#generation);
    this.#snapshotBytes = snapshotBytes;
  }

  async #append(data: StateData): Promise<void> {
    if (data.changes.size === 0) return;
    if (this.#closing.signal.aborted) throw new Error('The state was changed after it was closed.');
    const taken = data.changes.take();
    try {
      if (this.#journal === undefined || this.#journal.spoiled) await this.#begin(this.#generation + 1);
      const bases = data.entries.bases.size;
      await this.#journal?.append(this.#chunks(data, taken), (sync) => this.#timed(sync));
      this.#basesWritten = bases;
      this.#failure = undefined;
    } catch (error) {
      data.changes.giveBack(taken);
      this.#failure = writeError(error, this.#dir);
      throw this.#failure;
    }
    if (this.#isLarge()) this.#startCompaction(data);
  }

  async #timed(sync: () => Promise<void>): Promise<void> {
    const started = this.#clock.now();
    await sync();
    this.#syncs.add((this.#clock.now() - started) / 1000);
  }

  /** The changed records as they are by now, with the URL bases that are new in this journal before and behind them. */
  *#chunks({ entries, meta }: StateData, changes: Changes): Generator<Uint8Array> {
    const lines = this.#lines;
    lines.take();
    for (const row of baseRows(entries.bases, this.#basesWritten)) lines.add(row);
    for (const place of changes.records.values()) {
      lines.add(recordText(place, entries.line(place.folder, place.path)));
      if (lines.length >= this.#policy.writeBytes) yield lines.take();
    }
    for (const name of changes.meta) lines.add(metaRow(name, meta));
    // Twice, so that one damaged line costs no more than itself.
    for (const row of baseRows(entries.bases, this.#basesWritten)) lines.add(row);
    yield lines.take();
  }

  /** Begins the journal of a new generation and leaves the one before. */
  async #begin(generation: number): Promise<void> {
    const header = newHeader('journal', generation, this.#clock.now());
    const next = await Journal.create(journalPath(this.#dir, generation), header, this.#open);
    const before = this.#journal;
    this.#journal = next;
    this.#basesWritten = 0;
    this.#generation = generation;
    this.#olderJournalBytes += before?.size ?? 0;
    await before?.close().catch(() => undefined);
  }

  get #journalBytes(): number {
    return this.#olderJournalBytes + (this.#journal?.size ?? 0);
  }

  #isLarge(): boolean {
    const { compactMinBytes, compactRatio } = this.#policy;
    return this.#journalBytes > Math.max(compactMinBytes, compactRatio * this.#snapshotBytes, this.#putOffTo);
  }

  /** In the background: a failure is told, and tried again when the journal has grown further. */
  #startCompaction(data: StateData): void {
    if (this.#closing.signal.aborted || this.#compaction !== undefined) return;
    this.compact(data).catch((error: unknown) => {
      if (this.#closing.signal.aborted) return;
      this.#putOffTo = this.#journalBytes + this.#policy.compactMinBytes;
      const { code, message, hint } = writeError(error, this.#dir);
      this.#log.warn({ code }, `The state could not be compacted yet: ${message} ${hint}`);
    });
  }

  async #compact(data: StateData): Promise<void> {
    await this.#inTurn(() => this.#begin(this.#generation + 1));
    const generation = this.#generation;
    const journalsBefore = this.#olderJournalBytes;
    const started = this.#clock.now();
    const size = await writeSnapshot(snapshotPath(this.#dir, generation), data, {
      header: newHeader('snapshot', generation, this.#clock.now()),
      writeBytes: this.#policy.writeBytes,
      open: this.#open,
      signal: this.#closing.signal,
    });
    const fallback = this.#base;
    this.#base = generation;
    this.#snapshotBytes = size;
    this.#olderJournalBytes -= journalsBefore;
    this.#putOffTo = 0;
    this.#compactions += 1;
    await this.#removeBefore(fallback);
    const ms = Math.round(this.#clock.now() - started);
    this.#log.debug({ generation, bytes: size, records: data.entries.size, ms }, 'The state was compacted.');
  }

  async #removeBefore(generation: number): Promise<void> {
    const { journals, snapshots } = await listStateFiles(this.#dir);
    for (const old of snapshots.filter((g) => g < generation))
      await rm(snapshotPath(this.#dir, old), { force: true });
    for (const old of journals.filter((g) => g < generation))
      await rm(journalPath(this.#dir, old), { force: true });
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }
}
