import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Adapter } from 'lowdb';
import { syncDirectory } from '../lib/atomic.js';
import type { Clock } from '../lib/clock.js';
import type { PeersyncError } from '../lib/errors.js';
import { joinPath } from '../lib/file.js';
import type { Logger } from '../lib/logger.js';
import { nextTurn, Pace } from '../lib/slices.js';
import { counted } from '../lib/text.js';
import { AcknowledgedFile, readAcknowledged } from './acknowledged.js';
import { Changes, CommittedEntries } from './committed.js';
import { listStateFiles, type OpenFile, pathOf, StateError, stateError } from './directory.js';
import { Entries } from './entries.js';
import { baseOf, type UrlBases } from './line.js';

/** A small value that survives a restart beside the records. */
export type Json =
  | string
  | number
  | boolean
  | null
  | readonly Json[]
  | { readonly [name: string]: Json | undefined };

/** Everything that survives a restart. lowdb holds it in `data`. */
export class StateData {
  readonly entries = new Entries();
  /** Small values by name: folder identities, what was learned of the peer. */
  readonly meta = new Map<string, Json>();
  /** Changes that are not on disk yet. */
  readonly changes = new Changes();
  /** The records as they are on disk. */
  readonly committed = new CommittedEntries(this.entries, this.changes);
  /** The error of the last write; undefined if it succeeded. */
  failure?: PeersyncError | undefined;
}

/**
 * Name of the small value that records when opening the state last found that data had been lost
 * from disk, in ms since the epoch.
 */
export const REPAIRED_META = 'repairedAt';

const STATE_POLICY = {
  /**
   * Compaction starts when the journals since the last snapshot are larger than this and larger
   * than the snapshot. In bytes.
   */
  compactMinBytes: 16 * 1024 * 1024,
  /** Text encoded in one go, in characters. 128 Ki take about 1 ms of the event loop. */
  writeBytes: 128 * 1024,
};
/**
 * Bytes written between two syncs. It keeps the sync of a commit from waiting for a whole snapshot.
 */
const SYNC_EVERY_BYTES = 8 * 1024 * 1024;
/** Bytes read and applied in one go. They take about 2 ms of the event loop. */
const READ_BYTES = 128 * 1024;

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
  /**
   * Compaction starts when the journals are larger than this, in bytes. After a failed compaction
   * they have to grow further first.
   */
  #compactAbove = 0;
  #compaction: Promise<void> | undefined;
  #compactions = 0;
  /** Why writes are refused; set by `lose`. */
  #refusal: StateError | undefined;

  /** The last operation on the journal. Each waits for the one before it. */
  #lastOperation: Promise<void> = Promise.resolve();
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
      this.#compactAbove = Math.max(this.#policy.compactMinBytes, sizes.snapshotBytes);
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
    this.#nextWrite ??= this.#serialize(() => {
      this.#nextWrite = undefined;
      return this.#writeChanges(data);
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
    if (this.#files.journalBytes > this.#compactAbove) this.#startCompaction(data);
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
      this.#compactAbove = this.#files.journalBytes + this.#policy.compactMinBytes;
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
    this.#compactAbove = Math.max(this.#policy.compactMinBytes, snapshot.end);
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
    const made = new LinesFile(file, this.#policy.writeBytes);
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

  #serialize(work: () => Promise<void>): Promise<void> {
    const done = this.#lastOperation.then(work);
    this.#lastOperation = done.catch(() => undefined);
    return done;
  }
}

/** A file that lines are appended to. */
class LinesFile {
  /**
   * Set when a sync or a truncation failed. The kernel may have dropped the data and report success
   * for the next sync, so nothing more is appended. The next journal repeats the changes that are
   * not known to be on disk.
   */
  isSpoiled = false;

  /** @param end bytes known to be on disk */
  constructor(
    readonly file: FileHandle,
    readonly writeBytes: number,
    public end = 0,
  ) {}

  /**
   * Appends lines, which may be generated while it writes. When it resolves, all of them are on
   * disk. When it rejects, none of them counts.
   */
  async append(lines: Iterable<string>): Promise<void> {
    let [end, synced, chunk] = [this.end, this.end, ''];
    try {
      for (const line of lines) {
        chunk += line;
        if (chunk.length < this.writeBytes) continue;
        end = await this.#write(chunk, end);
        chunk = '';
        if (end - synced < SYNC_EVERY_BYTES) continue;
        await this.#sync();
        synced = end;
      }
      end = await this.#write(chunk, end);
      await this.#sync();
      this.end = end;
    } catch (error) {
      await this.file.truncate(this.end).catch(() => {
        this.isSpoiled = true;
      });
      throw error;
    }
  }

  /** @returns the position in the file at which the text ends */
  async #write(text: string, position: number): Promise<number> {
    const bytes = Buffer.from(text);
    let done = 0;
    while (done < bytes.length) {
      const left = bytes.length - done;
      done += (await this.file.write(bytes, done, left, position + done)).bytesWritten;
    }
    return position + done;
  }

  async #sync(): Promise<void> {
    this.isSpoiled = true;
    await this.file.datasync();
    this.isSpoiled = false;
  }
}

/**
 * Versions of the line format and of the record schema. They are raised whenever older lines would
 * be misread.
 */
const VERSIONS = { format: 1, schema: 2 };

/**
 * Frames one line of a journal or a snapshot: the CRC-32 of the text in eight hex digits, a space,
 * the text, a newline. The texts are
 *
 * - a header, the first line of every file: `{"peersync":"journal",…}`;
 * - a footer, which ends the lines that the file was created with (in a snapshot, all lines):
 *   `{"records":…,"sum":…}`;
 * - `"folder","path",[record]` for a record, and `["-","folder","path"]` for one that was removed;
 * - `["m","name",value]` for a small value, without `value` if it was removed;
 * - `["u",number,"collection","url"]` for a URL base. In a snapshot it may follow the records that
 *   use it.
 */
export function lineOf(text: string, checksum = crc32(text)): string {
  return `${checksum.toString(16).padStart(8, '0')} ${text}\n`;
}

/**
 * Running totals of the lines of a file: their number, and a sum of their checksums. The sum
 * detects intact lines that are missing or in the wrong order.
 */
class LineTotals {
  #lines = 0;
  #sum = 0;

  add(checksum: number): void {
    this.#lines += 1;
    this.#sum = (Math.imul(this.#sum, 31) + checksum) | 0;
  }

  footer(): string {
    return JSON.stringify({ records: this.#lines - 1, sum: this.#sum });
  }
}

function recordRow(folder: string, path: string, line: string | undefined): string {
  if (line === undefined) return JSON.stringify(['-', folder, path]);
  return `${JSON.stringify(folder)},${JSON.stringify(path)},${line}`;
}

function metaRow(name: string, meta: StateData['meta']): string {
  return JSON.stringify(meta.has(name) ? ['m', name, meta.get(name)] : ['m', name]);
}

function baseRows(bases: UrlBases, from: number, to = bases.length): readonly string[] {
  return bases
    .slice(from, to)
    .flatMap((base, i) => (base ? JSON.stringify(['u', from + i, base.collection, base.url]) : []));
}

/**
 * Yields the changed records in their latest version. A URL base that is new in this journal
 * precedes the first record that uses it.
 */
function* changedLines({ changes, entries, meta }: StateData, from: number): Iterable<string> {
  const { bases } = entries;
  let next = from;
  for (const change of changes.keysBeingWritten()) {
    const [name = '', path] = change.split('\0');
    const row =
      path === undefined ? metaRow(name, meta) : recordRow(name, path, entries.line(name, path));
    // A crash may cut the journal after any line, and new bases appear while it is written.
    const rows = baseRows(bases, next);
    next = bases.length;
    for (const base of rows) yield lineOf(base);
    yield lineOf(row);
  }
  // Written twice, so that one damaged line costs no more than itself.
  for (const base of baseRows(bases, from, next)) yield lineOf(base);
}

/** Yields the header, the texts and a footer as framed lines. */
function* framedLines(header: string, texts: Iterable<string>): Iterable<string> {
  const totals = new LineTotals();
  totals.add(crc32(header));
  yield lineOf(header);
  for (const text of texts) {
    const checksum = crc32(text);
    totals.add(checksum);
    yield lineOf(text, checksum);
  }
  yield lineOf(totals.footer());
}

/**
 * Yields the texts of a snapshot while the data goes on changing. A change made meanwhile may be
 * missing from the snapshot, so the journal of the same generation must contain it.
 */
function* snapshotTexts({ entries, meta }: StateData, signal: AbortSignal): Iterable<string> {
  for (const name of meta.keys()) yield metaRow(name, meta);
  for (const [folder, directory, name, line] of entries.lines()) {
    signal.throwIfAborted();
    yield recordRow(folder, joinPath(directory, name), line);
  }
  // At the end: new bases may have appeared meanwhile.
  yield* baseRows(entries.bases, 0);
}

/** The files that make up the state, and their sizes in bytes. */
interface StateSizes {
  /** The generation that reading starts from. All files from it on are needed. */
  base: number;
  /** The newest generation; 0 if there is none. */
  generation: number;
  /** 0 if there is no snapshot. */
  snapshotBytes: number;
  /** Total size of the intact parts of all journals since `base`. */
  journalBytes: number;
}

/**
 * Reads the state in `dir` without writing: the newest intact snapshot, then the journals from its
 * generation on. From a damaged snapshot it applies the intact lines, then falls back to the
 * snapshot before it.
 *
 * @returns the data, the sizes of its files, one sentence for each damage that was worked around,
 *   the names of unfinished files, the scan of the newest journal, and whether data that had been
 *   on disk may be lost. A torn end of the newest journal is no loss if it was never acknowledged
 * @throws StateError STATE_NEWER, STATE_DAMAGED (nothing is readable), STATE_UNREADABLE,
 *   STATE_NOT_A_DIRECTORY
 */
export async function loadState(dir: string, open: OpenFile) {
  return await load(dir, open).catch(async (error: unknown) => {
    throw await stateError(error, dir, 'read');
  });
}

async function load(dir: string, open: OpenFile) {
  // Read before the journals: a daemon may append to them meanwhile.
  const acknowledged = await readAcknowledged(dir, open);
  const { journal: journals, snapshot: snapshots, unfinished } = await listStateFiles(dir);
  const data = new StateData();
  const repairs: string[] = [];
  const last = Math.max(0, ...snapshots, ...journals);
  const first = Math.max(1, Math.min(last, ...snapshots, ...journals));
  const sizes: StateSizes = { base: first, generation: last, snapshotBytes: 0, journalBytes: 0 };
  let newest: Awaited<ReturnType<typeof readLines>> | undefined;
  let intactBytes = 0;
  const read = async (kind: 'journal' | 'snapshot', generation: number) => {
    const found = await readLines(pathOf(dir, kind, generation), open, (text) =>
      applyLine(data, text, dir),
    );
    intactBytes += found.intactBytes;
    return found;
  };
  for (const generation of snapshots.toReversed()) {
    const { isWhole, bytes } = await read('snapshot', generation);
    if (isWhole) {
      sizes.base = generation;
      sizes.snapshotBytes = bytes;
      break;
    }
    repairs.push(`snapshot-${generation} is damaged; what came before it was read instead.`);
  }
  if (sizes.snapshotBytes === 0 && sizes.base > 1)
    repairs.push(
      'No snapshot is whole; what is sound was read, and files that are missing in it are new again.',
    );
  for (let generation = sizes.base; generation <= last; generation += 1) {
    if (!journals.includes(generation)) {
      repairs.push(`journal-${generation} is missing; its changes are lost.`);
      continue;
    }
    const found = await read('journal', generation);
    if (found.damaged > 0)
      repairs.push(
        `journal-${generation} has ${counted(found.damaged, 'damaged line')}; the files they told of are looked at again.`,
      );
    const end = acknowledged?.generation === generation ? acknowledged.end : 0;
    if (found.intactBytes === 0)
      repairs.push(`journal-${generation} is empty; its changes are lost.`);
    else if (found.intactBytes < end)
      repairs.push(
        `journal-${generation} lacks its last ${counted(end - found.intactBytes, 'byte')}; those changes are lost.`,
      );
    sizes.journalBytes += found.intactBytes;
    if (generation === last) newest = found;
  }
  if (acknowledged !== undefined && acknowledged.generation > last)
    repairs.push(`journal-${acknowledged.generation} is missing; its changes are lost.`);
  if (intactBytes === 0 && last > 0)
    throw new StateError('STATE_DAMAGED', { dir, detail: 'none of its files has a sound header' });
  if (repairs.length > 0) {
    const dropped = await dropUnreadable(data);
    const are = dropped === 1 ? 'it is' : 'they are';
    if (dropped > 0)
      repairs.push(`The URL base of ${counted(dropped, 'file')} is lost; ${are} new again.`);
  }
  const isTorn = newest !== undefined && newest.intactBytes < newest.bytes;
  const hasLost = repairs.length > 0 || (isTorn && acknowledged?.generation !== last);
  return { data, repairs, unfinished, newest, hasLost, ...sizes };
}

const NEWLINE = 0x0a;
/** Length of the checksum and the space after it. */
const PREFIX = 9;

/**
 * Reads a file of framed lines in one pass, chunk by chunk.
 *
 * @param onText called with the text of each intact line except footers
 * @returns the size of the file, the end of the last intact line (the rest is torn), the number of
 *   damaged lines before it, and whether the file ends with a footer that matches its lines
 */
async function readLines(path: string, open: OpenFile, onText: (text: string) => void) {
  const file = await open(path, 'r');
  const totals = new LineTotals();
  // `possiblyTorn` counts the damaged lines since the last intact one. They are a torn end if no
  // intact line follows.
  let [bytes, intactBytes, damaged, possiblyTorn, endsWithFooter] = [0, 0, 0, 0, false];
  let rest = Buffer.alloc(0);
  for await (const chunk of file.createReadStream({ highWaterMark: READ_BYTES })) {
    const part = Buffer.concat([rest, chunk]);
    let start = 0;
    for (
      let end = part.indexOf(NEWLINE, rest.length);
      end !== -1;
      end = part.indexOf(NEWLINE, start)
    ) {
      const line = part.toString('utf8', start, end);
      const text = line.slice(PREFIX);
      const checksum = crc32(part.subarray(start + PREFIX, end));
      if (Number(`0x${line.slice(0, PREFIX - 1)}`) === checksum) {
        damaged += possiblyTorn;
        possiblyTorn = 0;
        intactBytes = bytes + end + 1;
        endsWithFooter = text.startsWith('{') && text === totals.footer();
        totals.add(checksum);
        if (!endsWithFooter) onText(text);
      } else possiblyTorn += 1;
      start = end + 1;
    }
    bytes += start;
    rest = part.subarray(start);
  }
  bytes += rest.length;
  return { bytes, intactBytes, damaged, isWhole: endsWithFooter };
}

/**
 * Applies the text of one line to `data`.
 *
 * @throws StateError STATE_NEWER if it is the header of a later version
 */
function applyLine(data: StateData, text: string, dir: string): void {
  if (text.startsWith('"')) applyRecord(data.entries, text);
  else if (text.startsWith('{')) checkVersion(JSON.parse(text), dir);
  else applyRow(data, JSON.parse(text));
}

function applyRow({ entries, meta }: StateData, row: readonly [kind: string, ...string[]]): void {
  const [kind, first = '', second = '', url] = row;
  if (kind === '-') entries.delete(first, second);
  else if (kind === 'u')
    entries.bases[Number(first)] = { collection: second, url: url ?? undefined };
  else if (kind === 'm' && row.length > 2) meta.set(first, row[2] as Json);
  else if (kind === 'm') meta.delete(first);
  else throw new Error(`a record has the unknown status ${JSON.stringify(kind)}`);
}

function applyRecord(entries: Entries, text: string): void {
  const [middle, end] = [text.indexOf('","'), text.indexOf('",[')];
  if (text.includes('\\')) {
    const [folder, path, record] = JSON.parse(`[${text}]`);
    entries.set(folder, path, JSON.stringify(record));
  } else entries.set(text.slice(1, middle), text.slice(middle + 3, end), text.slice(end + 2));
}

/** Checks the version in a header. A footer has none. */
function checkVersion(line: Readonly<Partial<typeof VERSIONS>>, dir: string): void {
  const { format, schema } = { ...VERSIONS, ...line };
  if (schema < VERSIONS.schema)
    throw new StateError('STATE_DAMAGED', { dir, detail: 'it is from before the first release' });
  if (format <= VERSIONS.format && schema === VERSIONS.schema) return;
  const detail = `schema ${format}.${schema}; this one knows ${VERSIONS.format}.${VERSIONS.schema}`;
  throw new StateError('STATE_NEWER', { dir, detail });
}

/** Deletes the records whose URL base is missing; returns the count. */
async function dropUnreadable({ entries }: StateData): Promise<number> {
  const pace = new Pace();
  let dropped = 0;
  for (const [folder, directory, name, line] of entries.lines()) {
    if (pace.step()) await nextTurn();
    const base = baseOf(line);
    if (Number.isNaN(base) || entries.bases[base] !== undefined) continue;
    // The number is not reused: the journal has lines with it until the next snapshot.
    entries.bases.length = Math.max(entries.bases.length, base + 1);
    entries.delete(folder, joinPath(directory, name));
    dropped += 1;
  }
  return dropped;
}
