import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Adapter } from 'lowdb';
import { syncDirectory, writeFileAtomic } from '../lib/atomic.js';
import type { Clock } from '../lib/clock.js';
import type { PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { journalPath, listStateFiles, snapshotPath, stateError } from './directory.js';
import type { UrlBases } from './line.js';
import { Framer, loadState, type OpenFile, type StateData } from './load.js';

/** The numbers of the state. */
const STATE_POLICY = {
  /** The journals since the last snapshot are compacted when they are larger than this, in bytes, and than that snapshot. */
  compactMinBytes: 16 * 1024 * 1024,
  /** How much is encoded without a pause, in characters (128 Ki cost about 1 ms of the event loop). */
  writeBytes: 128 * 1024,
};

export interface AdapterOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly policy?: Partial<typeof STATE_POLICY>;
  /** @default open of node:fs/promises */
  readonly open?: OpenFile;
}

/** How much of a snapshot may wait for the disk, so that the syncs of commits do not stand behind all of it. */
const SYNC_EVERY_BYTES = 8 * 1024 * 1024;

/** The journal that is written to. */
interface Journal {
  readonly file: FileHandle;
  /** Bytes known to be on disk. */
  end: number;
  /**
   * A sync failed, or a cut did: the kernel may have dropped what it could not write and report success the next time, so
   * nothing may be appended any more and its successor repeats what is not known to be durable.
   */
  isSpoiled: boolean;
}

/**
 * Keeps what lowdb holds on disk, at a cost that follows what changed and not what is stored.
 *
 * `write` appends what changed to the journal of the present generation and syncs once for all who wait. A journal that
 * has grown large is *compacted*: the next generation's journal begins, and while the work goes on in it, its snapshot
 * is written from the live data. Then what is older than the snapshot before goes; that one, with the journals since,
 * stays as the fallback. A journal that the disk spoiled is left behind the same way.
 *
 * One process at a time may use a directory; that is what `lockState` is for.
 */
export class JournalAdapter implements Adapter<StateData> {
  readonly #dir: string;
  readonly #options: Required<AdapterOptions>;
  readonly #policy: typeof STATE_POLICY;
  readonly #closing = new AbortController();
  /** One sentence for each repair that reading made. */
  readonly repairs: string[] = [];
  /** Called with how long each sync of changes took, in seconds. */
  onSync: (seconds: number) => void = () => {};
  /** What the last write failed with; undefined when it did not. */
  failure: PeersyncError | undefined;

  #journal: Journal | undefined;
  /** So many URL bases stand in the present journal. */
  #basesWritten = 0;
  #generation = 0;
  /** The generation that a reader has to begin with. */
  #base = 1;
  #snapshotBytes = 0;
  /** Of all journals since the base. */
  #journalBytes = 0;
  /** A journal larger than this is compacted: larger than the snapshot, and after a failure than it was then. In bytes. */
  #compactAbove = 0;
  #compaction: Promise<void> | undefined;
  #compactions = 0;

  /** What touches the journal happens one after the other; this is the last of it. */
  #last: Promise<void> = Promise.resolve();
  /** The write that has not begun yet: who comes now joins it. */
  #group: Promise<void> | undefined;

  constructor(dir: string, options: AdapterOptions) {
    this.#dir = dir;
    this.#policy = { ...STATE_POLICY, ...options.policy };
    this.#options = { ...options, policy: this.#policy, open: options.open ?? open };
  }

  /** Sizes in bytes: the changes since the last snapshot, and that. How often there was one since the state was opened. */
  figures() {
    return {
      journalBytes: this.#journalBytes,
      snapshotBytes: this.#snapshotBytes,
      generation: this.#generation,
      compacting: this.#compaction !== undefined,
      compactions: this.#compactions,
      /** What the last commit failed with; undefined when it did not. */
      failure: this.failure,
    };
  }

  /** Reads the directory, created if it is not there, and repairs what a crash left behind. To be called once. */
  async read(): Promise<StateData> {
    try {
      await mkdir(this.#dir, { recursive: true, mode: 0o700 });
      const loaded = await loadState(this.#dir, this.#options.open);
      const { files, last, damage, outdated, data } = loaded;
      for (const name of files.unfinished) await rm(join(this.#dir, name), { force: true });
      this.repairs.push(...damage);
      this.#generation = Math.max(0, ...files.snapshots, ...files.journals);
      if (last !== undefined) {
        if (last.tornBytes > 0)
          this.repairs.push(
            `The last ${last.tornBytes} bytes of journal-${last.generation} were torn and cut off.`,
          );
        await this.#resume(last.generation, last.soundBytes);
        this.#journalBytes = loaded.journalBytes;
      }
      if (last === undefined || outdated) await this.#begin();
      this.#base = Math.min(loaded.base, this.#generation);
      this.#snapshotBytes = loaded.snapshotBytes;
      this.#compactAbove = Math.max(this.#policy.compactMinBytes, loaded.snapshotBytes);
      for (const repair of this.repairs)
        this.#options.log.warn({ dir: this.#dir }, `State repaired: ${repair}`);
      if (damage.length > 0 || outdated || this.#journalBytes > this.#compactAbove)
        this.#startCompaction(data);
      return data;
    } catch (error) {
      throw await stateError(error, this.#dir, 'write');
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
      return this.#writeChanges(data);
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
    await this.#inTurn(async () => this.#journal?.file.close());
  }

  /** Begins the journal of a new generation, which exists with its header or not at all. */
  async #begin(): Promise<void> {
    const generation = this.#generation + 1;
    const header = new Framer().header('journal', generation, this.#options.clock.now());
    await writeFileAtomic(journalPath(this.#dir, generation), header);
    await this.#resume(generation, header.length);
    this.#journalBytes += header.length;
  }

  /** Goes on with a journal from `end` on, once what follows is cut off and what is there is on disk; leaves the one before. */
  async #resume(generation: number, end: number): Promise<void> {
    const file = await this.#options.open(journalPath(this.#dir, generation), 'r+');
    try {
      await file.truncate(end);
      await file.sync();
    } catch (error) {
      await file.close();
      throw error;
    }
    await this.#journal?.file.close().catch(() => undefined);
    this.#journal = { file, end, isSpoiled: false };
    this.#generation = generation;
    this.#basesWritten = 0;
  }

  async #writeChanges(data: StateData): Promise<void> {
    const taken = data.changes;
    if (taken.size === 0) return;
    if (this.#closing.signal.aborted) throw new Error('The state was changed after it was closed.');
    data.changes = new Set();
    try {
      if (this.#journal === undefined || this.#journal.isSpoiled) await this.#begin();
      const bases = data.entries.bases.size;
      if (this.#journal !== undefined)
        await this.#append(this.#journal, changedRows(data, taken, this.#basesWritten));
      this.#basesWritten = bases;
      this.failure = undefined;
    } catch (error) {
      for (const change of taken) data.changes.add(change);
      this.failure = await stateError(error, this.#dir, 'write');
      throw this.failure;
    }
    if (this.#journalBytes > this.#compactAbove) this.#startCompaction(data);
  }

  /** Appends the rows with one sync: when it resolves they are on disk, when it rejects none of them counts. */
  async #append(journal: Journal, rows: Iterable<string>): Promise<void> {
    const { file } = journal;
    let end = journal.end;
    let isWritten = false;
    try {
      for (const chunk of chunksOf(rows, this.#policy.writeBytes)) end += await writeFully(file, chunk, end);
      isWritten = true;
      const started = this.#options.clock.now();
      await file.datasync();
      this.onSync((this.#options.clock.now() - started) / 1000);
      this.#journalBytes += end - journal.end;
      journal.end = end;
    } catch (error) {
      journal.isSpoiled = isWritten;
      await file.truncate(journal.end).catch(() => {
        journal.isSpoiled = true;
      });
      throw error;
    }
  }

  /** In the background: a failure is told, and tried again when the journal has grown further. */
  #startCompaction(data: StateData): void {
    if (this.#closing.signal.aborted || this.#compaction !== undefined) return;
    this.compact(data).catch(async (error: unknown) => {
      if (this.#closing.signal.aborted) return;
      this.#compactAbove = this.#journalBytes + this.#policy.compactMinBytes;
      const { code, message, hint } = await stateError(error, this.#dir, 'write');
      this.#options.log.warn({ code }, `The state could not be compacted yet: ${message} ${hint}`);
    });
  }

  async #compact(data: StateData): Promise<void> {
    let journalsBefore = 0;
    await this.#inTurn(async () => {
      journalsBefore = this.#journalBytes;
      await this.#begin();
    });
    const generation = this.#generation;
    const started = this.#options.clock.now();
    const bytes = await this.#writeSnapshot(snapshotPath(this.#dir, generation), generation, data);
    const fallback = this.#base;
    this.#base = generation;
    this.#snapshotBytes = bytes;
    this.#journalBytes -= journalsBefore;
    this.#compactAbove = Math.max(this.#policy.compactMinBytes, bytes);
    this.#compactions += 1;
    const { journals, snapshots } = await listStateFiles(this.#dir);
    const isOld = (found: number) => found < fallback;
    for (const old of snapshots.filter(isOld)) await rm(snapshotPath(this.#dir, old), { force: true });
    for (const old of journals.filter(isOld)) await rm(journalPath(this.#dir, old), { force: true });
    const ms = Math.round(this.#options.clock.now() - started);
    this.#options.log.debug(
      { generation, bytes, records: data.entries.size, ms },
      'The state was compacted.',
    );
  }

  /**
   * Writes a snapshot while `data` goes on changing, a slice at a time; it exists whole or not at all. What changes meanwhile
   * may be in it or not, and has to be in the journal of the same generation.
   *
   * @returns its size in bytes
   */
  async #writeSnapshot(path: string, generation: number, data: StateData): Promise<number> {
    const temporary = `${path}.tmp`;
    const lines = snapshotLines(data, generation, this.#options.clock.now());
    let [size, synced] = [0, 0];
    try {
      const file = await this.#options.open(temporary, 'w', 0o600);
      try {
        for (const chunk of chunksOf(lines, this.#policy.writeBytes)) {
          this.#closing.signal.throwIfAborted();
          size += await writeFully(file, chunk, size);
          if (size - synced < SYNC_EVERY_BYTES) continue;
          await file.datasync();
          synced = size;
        }
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, path);
      await syncDirectory(this.#dir);
      return size;
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }
}

/** The changed records as they are by now, each behind its URL base where that is new in this journal. */
function* changedRows(
  { entries, meta }: StateData,
  changes: Set<string>,
  fromBase: number,
): Iterable<string> {
  const framer = new Framer();
  let written = fromBase;
  for (const change of changes) {
    const [name = '', path] = change.split('\0');
    const row = path === undefined ? metaRow(name, meta) : recordRow(name, path, entries.line(name, path));
    // A crash may cut the journal off behind any line, and new bases come while it is written.
    const bases = baseRows(entries.bases, written);
    written = entries.bases.size;
    for (const base of bases) yield framer.line(base);
    yield framer.line(row);
  }
  // Twice, so that one damaged line costs no more than itself.
  for (const row of baseRows(entries.bases, fromBase)) yield framer.line(row);
}

function* snapshotLines({ entries, meta }: StateData, generation: number, now: number): Iterable<string> {
  const framer = new Framer();
  yield framer.header('snapshot', generation, now);
  for (const name of meta.keys()) yield framer.line(metaRow(name, meta));
  for (const [folder, directory, name, line] of entries.lines())
    yield framer.line(recordRow(folder, directory === '' ? name : `${directory}/${name}`, line));
  // At the end, as new ones may have come meanwhile.
  for (const row of baseRows(entries.bases, 0)) yield framer.line(row);
  yield framer.footer();
}

/** `"folder","path",[record]`, or a row `["-", folder, path]` where the record is removed. */
function recordRow(folder: string, path: string, line: string | undefined): string {
  if (line === undefined) return JSON.stringify(['-', folder, path]);
  return `${JSON.stringify(folder)},${JSON.stringify(path)},${line}`;
}

/** A row `["m", name, value]`; without a value: removed. */
function metaRow(name: string, meta: StateData['meta']): string {
  return JSON.stringify(meta.has(name) ? ['m', name, meta.get(name)] : ['m', name]);
}

/** A row `["u", number, collection, url]` for each base from number `from` on. */
function baseRows(bases: UrlBases, from: number): string[] {
  const rows: string[] = [];
  for (let number = from; number < bases.size; number += 1) {
    const base = bases.get(number);
    if (base !== undefined) rows.push(JSON.stringify(['u', number, base.collection, base.url]));
  }
  return rows;
}

/** The lines in pieces of about so many characters. */
function* chunksOf(lines: Iterable<string>, characters: number): Iterable<Buffer> {
  let chunk = '';
  for (const line of lines) {
    chunk += line;
    if (chunk.length < characters) continue;
    yield Buffer.from(chunk);
    chunk = '';
  }
  yield Buffer.from(chunk);
}

/** Writes `bytes` at `position`, whatever number of calls that takes. Returns how many they are. */
async function writeFully(file: FileHandle, bytes: Uint8Array, position: number): Promise<number> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
  return bytes.length;
}
