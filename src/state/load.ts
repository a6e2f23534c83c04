import { stat } from 'node:fs/promises';
import { joinPath } from '../lib/file.js';
import { nextTurn, Pace } from '../lib/slices.js';
import { counted } from '../lib/text.js';
import { type Acknowledged, readAcknowledged } from './acknowledged.js';
import { decompressed } from './compression.js';
import { listStateFiles, type OpenFile, pathOf, StateError, stateError } from './directory.js';
import { baseOf } from './line.js';
import { applyLine, type LinesFound, readLines, StateData } from './rows.js';

/**
 * Bytes read in one go. Compressed lines take about 4 ms of the event loop, plain ones 1 ms.
 */
const READ_BYTES = 64 * 1024;
/** The number of records whose URL base is checked without a pause. */
const LINES_PER_SLICE = 5_000;

/** The files that make up the state, and their sizes in bytes. */
export interface StateSizes {
  /** The generation that reading starts from. All files from it on are needed. */
  base: number;
  /** The newest generation; 0 if there is none. */
  generation: number;
  /** 0 if there is no snapshot. */
  snapshotBytes: number;
  /** Total size of the intact parts of all journals since `base`. */
  journalBytes: number;
}

/** The state as it was read from a directory. */
export interface LoadedState extends StateSizes {
  readonly data: StateData;
  /** One sentence for each damage that was worked around. */
  readonly repairs: readonly string[];
  /** The names of unfinished files. */
  readonly unfinished: readonly string[];
  /** The newest journal; undefined if there is none. */
  readonly newest: LinesFound | undefined;
  /**
   * Whether data that had been on disk may be lost. A torn end of the newest journal is no loss if
   * it was never acknowledged.
   */
  readonly hasLost: boolean;
}

/**
 * Reads the state in `dir` without writing: the newest intact snapshot, then the journals from its
 * generation on. From a damaged snapshot it applies the intact lines, then falls back to the
 * snapshot before it.
 *
 * @throws StateError STATE_NEWER, STATE_DAMAGED (nothing is readable), STATE_UNREADABLE,
 *   STATE_NOT_A_DIRECTORY
 */
export async function loadState(dir: string, open: OpenFile): Promise<LoadedState> {
  try {
    // Read before the journals: a daemon may append to them meanwhile.
    const acknowledged = await readAcknowledged(dir, open);
    const { journal, snapshot, unfinished } = await listStateFiles(dir);
    const loading = new Loading(dir, open, snapshot, journal);
    await loading.readSnapshots();
    await loading.readJournals(acknowledged);
    return { ...(await loading.finish(acknowledged)), unfinished };
  } catch (error) {
    throw await stateError(error, dir, 'read');
  }
}

/** One reading of a directory: snapshots, then journals, then a check of what was found. */
class Loading {
  readonly #data = new StateData();
  readonly #repairs: string[] = [];
  readonly #sizes: StateSizes;
  #newest: LinesFound | undefined;
  /** The bytes of intact lines in all files. */
  #intactBytes = 0;

  /**
   * @param snapshots the generations of the snapshots, in ascending order
   * @param journals the generations of the journals, in ascending order
   */
  constructor(
    private readonly dir: string,
    private readonly open: OpenFile,
    private readonly snapshots: readonly number[],
    private readonly journals: readonly number[],
  ) {
    const generation = Math.max(0, ...snapshots, ...journals);
    const base = Math.max(1, Math.min(generation, ...snapshots, ...journals));
    this.#sizes = { base, generation, snapshotBytes: 0, journalBytes: 0 };
  }

  /** Reads the newest snapshot, and the ones before it until one is whole. */
  async readSnapshots(): Promise<void> {
    for (const generation of this.snapshots.toReversed()) {
      const path = pathOf(this.dir, 'snapshot', generation);
      const { isWhole } = await this.#read(decompressed(await this.#chunksOf(path)));
      if (isWhole) {
        this.#sizes.base = generation;
        this.#sizes.snapshotBytes = (await stat(path)).size;
        return;
      }
      this.#repairs.push(
        `snapshot-${generation} is damaged; what came before it was read instead.`,
      );
    }
    if (this.#sizes.base > 1)
      this.#repairs.push(
        'No snapshot is whole; what is sound was read, and files that are missing in it are new again.',
      );
  }

  /** Reads all journals since the snapshot. */
  async readJournals(acknowledged: Acknowledged | undefined): Promise<void> {
    const { base, generation: last } = this.#sizes;
    for (let generation = base; generation <= last; generation += 1) {
      if (!this.journals.includes(generation)) {
        this.#repairs.push(`journal-${generation} is missing; its changes are lost.`);
        continue;
      }
      const path = pathOf(this.dir, 'journal', generation);
      const found = await this.#read(await this.#chunksOf(path));
      const end = acknowledged?.generation === generation ? acknowledged.end : 0;
      this.#noteDamage(generation, found, end);
      this.#sizes.journalBytes += found.intactBytes;
      if (generation === last) this.#newest = found;
    }
    if (acknowledged !== undefined && acknowledged.generation > last)
      this.#repairs.push(`journal-${acknowledged.generation} is missing; its changes are lost.`);
  }

  /** @param end how much of the journal was known to be on disk, in bytes */
  #noteDamage(generation: number, { damaged, intactBytes }: LinesFound, end: number): void {
    if (damaged > 0)
      this.#repairs.push(
        `journal-${generation} has ${counted(damaged, 'damaged line')}; the files of these lines are checked again.`,
      );
    if (intactBytes === 0)
      this.#repairs.push(`journal-${generation} is empty; its changes are lost.`);
    else if (intactBytes < end)
      this.#repairs.push(
        `journal-${generation} lacks its last ${counted(end - intactBytes, 'byte')}; those changes are lost.`,
      );
  }

  /** Returns what was read, without records that cannot be used. */
  async finish(acknowledged: Acknowledged | undefined): Promise<Omit<LoadedState, 'unfinished'>> {
    const newest = this.#newest;
    if (this.#intactBytes === 0 && this.#sizes.generation > 0)
      throw new StateError('STATE_DAMAGED', {
        dir: this.dir,
        detail: 'none of its files has a sound header',
      });
    if (this.#repairs.length > 0) {
      const dropped = await dropRecordsWithoutBase(this.#data);
      const are = dropped === 1 ? 'it is' : 'they are';
      if (dropped > 0)
        this.#repairs.push(
          `The URL base of ${counted(dropped, 'file')} is lost; ${are} new again.`,
        );
    }
    const isTorn = newest !== undefined && newest.intactBytes < newest.bytes;
    const isUnacknowledged = acknowledged?.generation === this.#sizes.generation;
    return {
      ...this.#sizes,
      data: this.#data,
      repairs: this.#repairs,
      newest,
      hasLost: this.#repairs.length > 0 || (isTorn && !isUnacknowledged),
    };
  }

  async #chunksOf(path: string): Promise<AsyncIterable<Buffer>> {
    const file = await this.open(path, 'r');
    return file.createReadStream({ highWaterMark: READ_BYTES });
  }

  async #read(chunks: AsyncIterable<Buffer>): Promise<LinesFound> {
    const found = await readLines(chunks, (text) => applyLine(this.#data, text, this.dir));
    this.#intactBytes += found.intactBytes;
    return found;
  }
}

/** Deletes the records whose URL base is missing; returns the count. */
async function dropRecordsWithoutBase({ entries }: StateData): Promise<number> {
  const pace = new Pace(LINES_PER_SLICE);
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
