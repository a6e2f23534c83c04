import { emptyData, type StateData } from './data.js';
import { readError, StateError } from './errors.js';
import { journalPath, listStateFiles, type OpenFile, type StateFiles, snapshotPath } from './files.js';
import { LineReader, type LinesFound } from './lines.js';
import type { StatePolicy } from './policy.js';
import type { Row } from './row.js';
import { RowReader } from './row-reader.js';
import {
  FORMAT_VERSION,
  type Footer,
  type Header,
  isFooter,
  isHeader,
  type Migration,
  migrationFrom,
  SCHEMA_VERSION,
} from './schema.js';

export interface LoadParts {
  readonly policy: StatePolicy;
  readonly open: OpenFile;
}

/** What the files of a state directory say. */
export interface Loaded {
  readonly data: StateData;
  readonly files: StateFiles;
  /** The generation that reading began with: all files from it on are needed. */
  readonly base: number;
  /** The snapshot that reading began with, in bytes; 0 without one. */
  readonly snapshotBytes: number;
  /** The journals that were read, in bytes. */
  readonly journalBytes: number;
  /** The newest journal; undefined in a directory without state. */
  readonly last: LastJournal | undefined;
  /** One sentence for each damage that was read around. */
  readonly damage: readonly string[];
  /** Some of it is in an older schema. */
  readonly outdated: boolean;
}

export interface LastJournal {
  readonly generation: number;
  /** Where its last sound line ends. */
  readonly soundBytes: number;
  /** What a crash left unfinished behind that, in bytes. */
  readonly tornBytes: number;
  /** Its header is sound and of the present schema: it may be gone on with. */
  readonly current: boolean;
}

/**
 * Reads the state in `dir` and writes nothing: the newest sound snapshot, then the journals from its generation on. If
 * no snapshot is sound, everything there is, oldest first, as far as it is sound.
 *
 * @throws StateError STATE_NEWER, STATE_DAMAGED (nothing is readable), STATE_UNREADABLE, STATE_NOT_A_DIRECTORY
 */
export async function loadState(dir: string, parts: LoadParts): Promise<Loaded> {
  try {
    return await new Loader(dir, await listStateFiles(dir), parts).load();
  } catch (error) {
    throw await readError(error, dir);
  }
}

interface FileFound extends LinesFound {
  readonly header: Header | undefined;
  readonly footer: Footer | undefined;
}

class Loader {
  readonly #dir: string;
  readonly #files: StateFiles;
  readonly #parts: LoadParts;
  readonly #damage: string[] = [];
  #headers = 0;
  #outdated = false;

  constructor(dir: string, files: StateFiles, parts: LoadParts) {
    this.#dir = dir;
    this.#files = files;
    this.#parts = parts;
  }

  async load(): Promise<Loaded> {
    const { snapshots } = this.#files;
    for (const generation of snapshots.toReversed()) {
      const data = emptyData();
      const found = await this.#readSnapshot(generation, data);
      if (found === undefined) continue;
      return this.#finish(data, generation, found.bytes, await this.#readJournals(data, generation));
    }
    return this.#salvage();
  }

  /** Undefined when the snapshot is not whole; `data` is then of no use. */
  async #readSnapshot(generation: number, data: StateData): Promise<FileFound | undefined> {
    const found = await this.#readFile(snapshotPath(this.#dir, generation), data);
    const { header, footer } = found;
    const whole =
      header !== undefined &&
      footer?.records === found.rows &&
      footer.sum === found.sumBeforeLast &&
      found.damaged === 0 &&
      found.soundBytes === found.bytes;
    if (whole) return found;
    this.#damage.push(`snapshot-${generation} is damaged; what came before it was read instead.`);
    return undefined;
  }

  /** Reads all that is left when no snapshot is whole, which is the usual way of a state without one. */
  async #salvage(): Promise<Loaded> {
    const { snapshots, journals } = this.#files;
    const data = emptyData();
    const base = Math.min(...snapshots, ...journals, Number.MAX_SAFE_INTEGER);
    const nothing = snapshots.length + journals.length === 0;
    if (base > 1 && !nothing) {
      this.#damage.push(
        'No snapshot is whole; what is sound was read, and files that are missing in it are new again.',
      );
    }
    for (const generation of snapshots) await this.#readFile(snapshotPath(this.#dir, generation), data);
    return this.#finish(data, base, 0, await this.#readJournals(data, base));
  }

  async #readJournals(
    data: StateData,
    base: number,
  ): Promise<{ bytes: number; last: LastJournal | undefined }> {
    const journals = this.#files.journals.filter((generation) => generation >= base);
    let bytes = 0;
    let last: LastJournal | undefined;
    let expected = base;
    for (const generation of journals) {
      if (generation !== expected) this.#missing(expected);
      expected = generation + 1;
      const found = await this.#readFile(journalPath(this.#dir, generation), data);
      if (found.damaged > 0) {
        this.#damage.push(
          `journal-${generation} has ${found.damaged} damaged ${found.damaged === 1 ? 'line' : 'lines'}; ` +
            'the files they told of are looked at again.',
        );
      }
      bytes += found.soundBytes;
      last = {
        generation,
        soundBytes: found.soundBytes,
        tornBytes: found.bytes - found.soundBytes,
        current: found.header?.schema === SCHEMA_VERSION,
      };
    }
    if (last === undefined && this.#files.snapshots.includes(base)) this.#missing(base);
    return { bytes, last };
  }

  #missing(generation: number): void {
    this.#damage.push(`journal-${generation} is missing; its changes are lost.`);
  }

  #finish(
    data: StateData,
    base: number,
    snapshotBytes: number,
    journals: { readonly bytes: number; readonly last: LastJournal | undefined },
  ): Loaded {
    const { snapshots, journals: generations } = this.#files;
    if (this.#headers === 0 && snapshots.length + generations.length > 0) {
      throw new StateError('STATE_DAMAGED', {
        dir: this.#dir,
        detail: 'none of its files has a sound header',
      });
    }
    return {
      data,
      files: this.#files,
      base,
      snapshotBytes,
      journalBytes: journals.bytes,
      last: journals.last,
      damage: this.#damage,
      outdated: this.#outdated,
    };
  }

  async #readFile(path: string, data: StateData): Promise<FileFound> {
    const content = new Content(this.#dir, data);
    const file = await this.#parts.open(path, 'r');
    try {
      const found = await new LineReader(content).read(file, this.#parts.policy.readBytes);
      if (content.header !== undefined) this.#headers += 1;
      if (content.header !== undefined && content.header.schema < SCHEMA_VERSION) this.#outdated = true;
      return { ...found, header: content.header, footer: content.footer };
    } finally {
      await file.close();
    }
  }
}

/** What the lines of one file mean. */
class Content {
  readonly #dir: string;
  readonly #reader: RowReader;
  #migration: Migration | undefined;
  header: Header | undefined;
  footer: Footer | undefined;

  constructor(dir: string, data: StateData) {
    this.#dir = dir;
    this.#reader = new RowReader(data);
  }

  frame(frame: unknown): void {
    if (isFooter(frame)) this.footer = frame;
    if (!isHeader(frame)) return;
    if (frame.format > FORMAT_VERSION || frame.schema > SCHEMA_VERSION) {
      const detail = `schema ${frame.format}.${frame.schema}; this one knows ${FORMAT_VERSION}.${SCHEMA_VERSION}`;
      throw new StateError('STATE_NEWER', { dir: this.#dir, detail });
    }
    this.header = frame;
    if (frame.schema < SCHEMA_VERSION) this.#migration = migrationFrom(frame.schema);
  }

  rows(rows: readonly Row[]): void {
    for (const row of rows) this.#reader.apply(this.#migration === undefined ? row : this.#migration(row));
  }
}
