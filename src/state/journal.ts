import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import type { Adapter } from 'lowdb';
import { syncDirectory } from '../lib/atomic.js';
import type { Clock } from '../lib/clock.js';
import type { PeersyncError } from '../lib/errors.js';
import { joinPath } from '../lib/file.js';
import type { Logger } from '../lib/logger.js';
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

/** Everything that survives a restart: what lowdb holds in `data`. */
export class StateData {
  readonly entries = new Entries();
  /** Small values by name: folder identities, what was learned of the peer. */
  readonly meta = new Map<string, Json>();
  /** What is not on disk yet. */
  readonly changes = new Changes();
  /** The records as they are on disk. */
  readonly committed = new CommittedEntries(this.entries, this.changes);
  /** What the last write failed with; undefined when it did not. */
  failure?: PeersyncError | undefined;
}

/**
 * The small value that tells when the state was last opened with something lost that had been on
 * disk, in ms since the epoch.
 */
export const REPAIRED_META = 'repairedAt';

/** The numbers of the state. */
const STATE_POLICY = {
  /**
   * The journals since the last snapshot are compacted when they are larger than this, in bytes,
   * and than that snapshot.
   */
  compactMinBytes: 16 * 1024 * 1024,
  /**
   * How much is encoded without a pause, in characters (128 Ki cost about 1 ms of the event loop).
   */
  writeBytes: 128 * 1024,
};
/**
 * How much may wait for the disk, so that the syncs of commits do not stand behind a whole
 * snapshot.
 */
const SYNC_EVERY_BYTES = 8 * 1024 * 1024;
/** How much is read and taken in without a pause, in bytes: 2 ms of the event loop. */
const READ_BYTES = 128 * 1024;

export interface AdapterOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly policy?: Partial<typeof STATE_POLICY>;
  /** @default open of node:fs/promises */
  readonly open?: OpenFile;
  /** Commits wait out a full disk until this ends the waiting; without it they fail. */
  readonly waitsUntil?: AbortSignal | undefined;
}

/**
 * Keeps what lowdb holds on disk, at a cost that follows what changed and not what is stored.
 *
 * Generation n is the changes in `journal-n`, which follow on those of the generation before or,
 * where there is one, on `snapshot-n`. Generation 1 follows on nothing.
 *
 * `write` appends what changed to the newest journal and syncs once for all who wait. A journal
 * that has grown large is *compacted*: the next generation's journal begins, and while the work
 * goes on in it, its snapshot is written from the live data. Then what is older than the snapshot
 * before goes; that one, with the journals since, stays as the fallback. A journal that the disk
 * spoiled is left behind the same way. The file `acknowledged` tells how far the newest journal was
 * known to be on disk.
 *
 * One process at a time may use a directory; that is what `lockState` is for.
 */
export class JournalAdapter implements Adapter<StateData> {
  readonly #dir: string;
  readonly #options: AdapterOptions;
  readonly #policy: typeof STATE_POLICY;
  readonly #open: OpenFile;
  readonly #acknowledged: AcknowledgedFile;
  readonly #closing = new AbortController();
  /** One sentence for each repair that reading made. */
  readonly repairs: string[] = [];
  /** Called with how long it took to bring changes to the disk, in seconds. */
  onSync: (seconds: number) => void = () => {};

  #journal: LinesFile | undefined;
  /** So many URL bases stand in the present journal. */
  #basesWritten = 0;
  #files: StateSizes = { base: 1, generation: 0, snapshotBytes: 0, journalBytes: 0 };
  /**
   * A journal larger than this is compacted: larger than the snapshot, and after a failure than it
   * was then. In bytes.
   */
  #compactAbove = 0;
  #compaction: Promise<void> | undefined;
  #compactions = 0;
  /** Why nothing may be written to the directory any more. */
  #lost: StateError | undefined;

  /** What touches the journal happens one after the other; this is the last of it. */
  #last: Promise<void> = Promise.resolve();
  /** The write that has not begun yet: who comes now joins it. */
  #group: Promise<void> | undefined;

  constructor(dir: string, options: AdapterOptions) {
    this.#dir = dir;
    this.#options = options;
    this.#policy = { ...STATE_POLICY, ...options.policy };
    this.#open = options.open ?? open;
    this.#acknowledged = new AcknowledgedFile(dir, this.#open);
  }

  /**
   * Sizes in bytes: the changes since the last snapshot, and that. How often there was one since
   * the state was opened.
   */
  figures() {
    const compacting = this.#compaction !== undefined;
    return { ...this.#files, compacting, compactions: this.#compactions };
  }

  /**
   * Reads the directory, created if it is not there, and repairs what a crash left behind. To be
   * called once.
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
      if (newest === undefined) await this.#begin();
      else {
        const torn = newest.bytes - newest.soundBytes;
        if (torn > 0)
          this.repairs.push(
            `The last ${torn} bytes of journal-${sizes.generation} were torn and cut off.`,
          );
        const file = await this.#open(
          pathOf(this.#dir, 'journal', sizes.generation),
          constants.O_RDWR | constants.O_NOFOLLOW,
        );
        this.#journal = new LinesFile(file, this.#policy.writeBytes, newest.soundBytes);
        await file.truncate(newest.soundBytes);
        await file.sync();
      }
      for (const repair of this.repairs)
        this.#options.log.warn({ dir: this.#dir }, `State repaired: ${repair}`);
      if (hasLost) await this.#noteLoss(data);
      if (repairs.length > 0) this.#startCompaction(data);
      return data;
    } catch (error) {
      await this.#acknowledged.close();
      await this.#journal?.file.close();
      throw await stateError(error, this.#dir, 'write');
    }
  }

  /**
   * On disk before anything else, for what shows the loss may be gone by the next start. Where the
   * disk is full, a later write has it.
   */
  async #noteLoss(data: StateData): Promise<void> {
    data.meta.set(REPAIRED_META, this.#options.clock.now());
    data.changes.add(REPAIRED_META);
    await this.#writeChanges(data).catch((error: unknown) => {
      if (data.failure === undefined) throw error;
    });
  }

  /**
   * Resolves when all changes of `data` so far are on disk; they are then no changes any more.
   *
   * @throws StateError STATE_FULL or STATE_UNWRITABLE: the changes are kept, and a later write
   *   tries again
   */
  write(data: StateData): Promise<void> {
    this.#group ??= this.#inTurn(() => {
      this.#group = undefined;
      return this.#writeChanges(data);
    });
    return this.#group;
  }

  /**
   * Rewrites everything into a new generation; resolves when that is on disk. Joins a compaction
   * under way.
   */
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
    await this.#inTurn(async () => {
      await this.#acknowledged.close();
      await this.#journal?.file.close();
    });
  }

  async #writeChanges(data: StateData): Promise<void> {
    if (data.changes.size === 0) return;
    if (this.#closing.signal.aborted) throw new Error('The state was changed after it was closed.');
    data.changes.take();
    try {
      if (this.#lost !== undefined) throw this.#lost;
      const journal = this.#journal?.isSpoiled === false ? this.#journal : await this.#begin();
      const [bases, before] = [data.entries.bases.length, journal.end];
      const started = this.#options.clock.now();
      await journal.append(changedLines(data, this.#basesWritten));
      await this.#acknowledge(this.#files.generation, journal.end);
      this.onSync((this.#options.clock.now() - started) / 1000);
      this.#files.journalBytes += journal.end - before;
      this.#basesWritten = bases;
      data.failure = undefined;
    } catch (error) {
      data.changes.giveBack();
      data.failure = await stateError(error, this.#dir, 'write');
      throw data.failure;
    }
    await data.committed.written();
    if (this.#files.journalBytes > this.#compactAbove) this.#startCompaction(data);
  }

  /** The directory is not this state's any more: no write succeeds until `writeAnew`. */
  lose(reason: StateError): void {
    this.#lost = reason;
  }

  /** Writes everything into the directory, which has no state in it. */
  async writeAnew(data: StateData): Promise<void> {
    await this.#compaction?.catch(() => undefined);
    await this.#inTurn(async () => {
      await this.#journal?.file.close().catch(() => undefined);
      this.#journal = undefined;
      this.#files = { base: 1, generation: 0, snapshotBytes: 0, journalBytes: 0 };
      this.#lost = undefined;
    });
    await this.compact(data);
  }

  /**
   * A journal that was removed or replaced is left, and everything is written into a new
   * generation.
   */
  async checkJournal(data: StateData): Promise<void> {
    await this.#inTurn(async () => {
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

  /** Begins the journal of a new generation, and leaves the one before. */
  async #begin(): Promise<LinesFile> {
    if (this.#lost !== undefined) throw this.#lost;
    const generation = this.#files.generation + 1;
    const journal = await this.#create('journal', generation, []);
    await this.#acknowledged.close();
    await this.#acknowledge(generation, journal.end);
    await this.#journal?.file.close().catch(() => undefined);
    this.#journal = journal;
    this.#files.generation = generation;
    this.#files.journalBytes += journal.end;
    this.#basesWritten = 0;
    return journal;
  }

  /** A failure costs nothing now: the earlier value stays, as after a power cut. */
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

  /** In the background: a failure is told, and tried again when the journal has grown further. */
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
    await this.#inTurn(async () => {
      journalsBefore = this.#files.journalBytes;
      await this.#begin();
    });
    const { base: fallback, generation } = this.#files;
    const snapshot = await this.#create(
      'snapshot',
      generation,
      everything(data, this.#closing.signal),
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

  /** Makes a file of lines, which exists whole or not at all, and can be appended to. */
  async #create(peersync: 'journal' | 'snapshot', generation: number, texts: Iterable<string>) {
    const path = pathOf(this.#dir, peersync, generation);
    const created = this.#options.clock.now();
    const header = JSON.stringify({ peersync, ...VERSIONS, generation, created });
    await rm(`${path}.tmp`, { force: true });
    const file = await this.#open(`${path}.tmp`, 'wx', 0o600);
    const made = new LinesFile(file, this.#policy.writeBytes);
    try {
      await made.append(sealed(header, texts));
      await rename(`${path}.tmp`, path);
      await syncDirectory(this.#dir, this.#open);
      return made;
    } catch (error) {
      await file.close();
      await rm(`${path}.tmp`, { force: true });
      throw error;
    }
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }
}

/** A file that lines are appended to. */
class LinesFile {
  /**
   * A sync failed, or a cut did: the kernel may have dropped what it could not write and report
   * success the next time, so nothing may be appended any more and the successor repeats what is
   * not known to be durable.
   */
  isSpoiled = false;

  /** @param end bytes known to be on disk */
  constructor(
    readonly file: FileHandle,
    readonly writeBytes: number,
    public end = 0,
  ) {}

  /**
   * Appends lines, which may be made meanwhile: when it resolves they are on disk, when it rejects
   * none of them counts.
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

  /** @returns where the text ends in the file */
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
 * How the lines of a file are framed, and what they mean: raised whenever a line of before would be
 * misread.
 */
const VERSIONS = { format: 1, schema: 2 };

/**
 * Journal and snapshot have one format. A line is the CRC-32 of its text in eight hex digits, a
 * space, the text, a newline. The texts are
 *
 * - a header, which opens every file: `{"peersync":"journal",…}`;
 * - a footer, which closes what a file was made with, all of a snapshot: `{"records":…,"sum":…}`;
 * - `"folder","path",[record]`, and `["-","folder","path"]` for one that is removed;
 * - `["m","name",value]` for a small value; without a value it is removed;
 * - `["u",number,"collection","url"]` for a URL base, which may come behind the records of it in a
 *   snapshot.
 */
export function lineOf(text: string, checksum = crc32(text)): string {
  return `${checksum.toString(16).padStart(8, '0')} ${text}\n`;
}

/**
 * The lines of a file so far: how many, and the sum of their checksums, which catches sound lines
 * at a wrong place.
 */
class Seal {
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
 * The changed records as they are by now, each behind its URL base where that is new in this
 * journal.
 */
function* changedLines({ changes, entries, meta }: StateData, from: number): Iterable<string> {
  const { bases } = entries;
  let next = from;
  for (const change of changes.taken()) {
    const [name = '', path] = change.split('\0');
    const row =
      path === undefined ? metaRow(name, meta) : recordRow(name, path, entries.line(name, path));
    // A crash may cut the journal off behind any line, and new bases come while it is written.
    const rows = baseRows(bases, next);
    next = bases.length;
    for (const base of rows) yield lineOf(base);
    yield lineOf(row);
  }
  // Twice, so that one damaged line costs no more than itself.
  for (const base of baseRows(bases, from, next)) yield lineOf(base);
}

/** The texts as lines, between header and footer. */
function* sealed(header: string, texts: Iterable<string>): Iterable<string> {
  const seal = new Seal();
  seal.add(crc32(header));
  yield lineOf(header);
  for (const text of texts) {
    const checksum = crc32(text);
    seal.add(checksum);
    yield lineOf(text, checksum);
  }
  yield lineOf(seal.footer());
}

/**
 * The texts of a snapshot, made while the data goes on changing: what changes meanwhile may be in
 * it or not, and has to be in the journal of the same generation.
 */
function* everything({ entries, meta }: StateData, signal: AbortSignal): Iterable<string> {
  for (const name of meta.keys()) yield metaRow(name, meta);
  for (const [folder, directory, name, line] of entries.lines()) {
    signal.throwIfAborted();
    yield recordRow(folder, joinPath(directory, name), line);
  }
  // At the end, as new ones may have come meanwhile.
  yield* baseRows(entries.bases, 0);
}

/** The files that make up the state, and their sizes in bytes. */
interface StateSizes {
  /** The generation that a reader has to begin with: all files from it on are needed. */
  base: number;
  /** The newest one; 0 where there is none. */
  generation: number;
  /** 0 without one. */
  snapshotBytes: number;
  /** Of the sound parts of all journals since the base. */
  journalBytes: number;
}

/**
 * Reads the state in `dir` and writes nothing: the newest sound snapshot, then the journals from
 * its generation on. What is sound in a damaged snapshot is read too, before the one that it falls
 * back to.
 *
 * @returns the data, the sizes of its files, one sentence for each damage that was read around, the
 *   names of files that were never finished, what was found in the journal of the newest
 *   generation, and whether anything may be lost that had been on disk: a torn end of the newest
 *   journal is no loss where it is known that it was never acknowledged
 * @throws StateError STATE_NEWER, STATE_DAMAGED (nothing is readable), STATE_UNREADABLE,
 *   STATE_NOT_A_DIRECTORY
 */
export async function loadState(dir: string, open: OpenFile) {
  return await load(dir, open).catch(async (error: unknown) => {
    throw await stateError(error, dir, 'read');
  });
}

async function load(dir: string, open: OpenFile) {
  // Before the journals, which a daemon may append to meanwhile.
  const acknowledged = await readAcknowledged(dir, open);
  const { journal: journals, snapshot: snapshots, unfinished } = await listStateFiles(dir);
  const data = new StateData();
  const repairs: string[] = [];
  const last = Math.max(0, ...snapshots, ...journals);
  const first = Math.max(1, Math.min(last, ...snapshots, ...journals));
  const sizes: StateSizes = { base: first, generation: last, snapshotBytes: 0, journalBytes: 0 };
  let newest: Awaited<ReturnType<typeof readLines>> | undefined;
  let soundBytes = 0;
  const read = async (kind: 'journal' | 'snapshot', generation: number) => {
    const found = await readLines(pathOf(dir, kind, generation), open, (text) =>
      take(data, text, dir),
    );
    soundBytes += found.soundBytes;
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
    if (found.soundBytes === 0)
      repairs.push(`journal-${generation} is empty; its changes are lost.`);
    else if (found.soundBytes < end)
      repairs.push(
        `journal-${generation} lacks its last ${counted(end - found.soundBytes, 'byte')}; those changes are lost.`,
      );
    sizes.journalBytes += found.soundBytes;
    if (generation === last) newest = found;
  }
  if (acknowledged !== undefined && acknowledged.generation > last)
    repairs.push(`journal-${acknowledged.generation} is missing; its changes are lost.`);
  if (soundBytes === 0 && last > 0)
    throw new StateError('STATE_DAMAGED', dir, 'none of its files has a sound header');
  if (repairs.length > 0) {
    const dropped = await dropUnreadable(data);
    const are = dropped === 1 ? 'it is' : 'they are';
    if (dropped > 0)
      repairs.push(`The URL base of ${counted(dropped, 'file')} is lost; ${are} new again.`);
  }
  const isTorn = newest !== undefined && newest.soundBytes < newest.bytes;
  const hasLost = repairs.length > 0 || (isTorn && acknowledged?.generation !== last);
  return { data, repairs, unfinished, newest, hasLost, ...sizes };
}

const NEWLINE = 0x0a;
/** The length of a checksum and the space behind it. */
const PREFIX = 9;

/**
 * Reads a file of lines in one pass, a part at a time.
 *
 * @param onText is called for the text of each sound line but a footer
 * @returns how long it is, where the last sound line ends (what follows is torn), how many lines
 *   with a wrong checksum have sound lines after them, and whether it ends with a footer that is
 *   true of it
 */
async function readLines(path: string, open: OpenFile, onText: (text: string) => void) {
  const file = await open(path, 'r');
  const seal = new Seal();
  // Damaged lines since the last sound one: torn if nothing sound follows.
  let [bytes, soundBytes, damaged, doubtful, isSealed] = [0, 0, 0, 0, false];
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
        damaged += doubtful;
        doubtful = 0;
        soundBytes = bytes + end + 1;
        isSealed = text.startsWith('{') && text === seal.footer();
        seal.add(checksum);
        if (!isSealed) onText(text);
      } else doubtful += 1;
      start = end + 1;
    }
    bytes += start;
    rest = part.subarray(start);
  }
  bytes += rest.length;
  return { bytes, soundBytes, damaged, isWhole: isSealed };
}

/**
 * Takes in what the text of a line says.
 *
 * @throws StateError STATE_NEWER for the header of a later version
 */
function take(data: StateData, text: string, dir: string): void {
  if (text.startsWith('"')) takeRecord(data.entries, text);
  else if (text.startsWith('{')) checkVersion(JSON.parse(text), dir);
  else takeRow(data, JSON.parse(text));
}

function takeRow({ entries, meta }: StateData, row: readonly [kind: string, ...string[]]): void {
  const [kind, first = '', second = '', url] = row;
  if (kind === '-') entries.delete(first, second);
  else if (kind === 'u')
    entries.bases[Number(first)] = { collection: second, url: url ?? undefined };
  else if (kind === 'm' && row.length > 2) meta.set(first, row[2] as Json);
  else if (kind === 'm') meta.delete(first);
  else throw new Error(`a record has the unknown status ${JSON.stringify(kind)}`);
}

function takeRecord(entries: Entries, text: string): void {
  const [middle, end] = [text.indexOf('","'), text.indexOf('",[')];
  if (text.includes('\\')) {
    const [folder, path, record] = JSON.parse(`[${text}]`);
    entries.set(folder, path, JSON.stringify(record));
  } else entries.set(text.slice(1, middle), text.slice(middle + 3, end), text.slice(end + 2));
}

/** Of a header; a footer has no version. */
function checkVersion(line: Readonly<Partial<typeof VERSIONS>>, dir: string): void {
  const { format, schema } = { ...VERSIONS, ...line };
  if (schema < VERSIONS.schema)
    throw new StateError('STATE_DAMAGED', dir, 'it is from before the first release');
  if (format <= VERSIONS.format && schema === VERSIONS.schema) return;
  const detail = `schema ${format}.${schema}; this one knows ${VERSIONS.format}.${VERSIONS.schema}`;
  throw new StateError('STATE_NEWER', dir, detail);
}

/**
 * Forgets the items whose URL base is lost, and returns how many: it stands twice where it is first
 * used, and once in each later file.
 */
async function dropUnreadable({ entries }: StateData): Promise<number> {
  let [looked, dropped] = [0, 0];
  for (const [folder, directory, name, line] of entries.lines()) {
    looked += 1;
    if (looked % 5_000 === 0) await nextTurn();
    const base = baseOf(line);
    if (Number.isNaN(base) || entries.bases[base] !== undefined) continue;
    // The number is not given again: the lines with it are in the journal until the next snapshot.
    entries.bases.length = Math.max(entries.bases.length, base + 1);
    entries.delete(folder, joinPath(directory, name));
    dropped += 1;
  }
  return dropped;
}
