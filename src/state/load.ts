import { emptyData, type Json, type StateData } from './data.js';
import { readError, StateError } from './errors.js';
import {
  FORMAT_VERSION,
  type Footer,
  type Header,
  journalPath,
  listStateFiles,
  type OpenFile,
  SCHEMA_VERSION,
  type StateFiles,
  snapshotPath,
} from './files.js';
import { type LinesFound, readLines } from './framing.js';
import { baseOf } from './line.js';
import { entryOfSchema1 } from './schema-1.js';

/** How much is read and taken in without a pause, in bytes: 2 ms of the event loop. */
const READ_BYTES = 256 * 1024;

interface LastJournal {
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
export async function loadState(dir: string, open: OpenFile): Promise<Loader> {
  try {
    const loader = new Loader(dir, await listStateFiles(dir), open);
    await loader.load();
    return loader;
  } catch (error) {
    throw await readError(error, dir);
  }
}

/** Reads the files of a state directory, and has what they say. */
export class Loader {
  readonly files: StateFiles;
  data = emptyData();
  /** The generation that reading began with: all files from it on are needed. */
  base = Number.MAX_SAFE_INTEGER;
  /** The snapshot that reading began with, in bytes; 0 without one. */
  snapshotBytes = 0;
  /** The journals that were read, in bytes. */
  journalBytes = 0;
  /** The newest journal; undefined in a directory without state. */
  last: LastJournal | undefined;
  /** One sentence for each damage that was read around. */
  readonly damage: string[] = [];
  /** Some of it is in an older schema. */
  outdated = false;
  readonly #dir: string;
  readonly #open: OpenFile;
  /** The numbers of the URL bases that were met in records. */
  readonly #used = new Set<number>();
  #headers = 0;

  constructor(dir: string, files: StateFiles, open: OpenFile) {
    this.#dir = dir;
    this.files = files;
    this.#open = open;
  }

  async load(): Promise<void> {
    const { snapshots, journals } = this.files;
    for (const generation of snapshots.toReversed()) {
      const found = await this.#readFile(snapshotPath(this.#dir, generation));
      if (isWhole(found)) {
        this.base = generation;
        this.snapshotBytes = found.bytes;
        break;
      }
      this.damage.push(`snapshot-${generation} is damaged; what came before it was read instead.`);
      this.data = emptyData();
    }
    if (this.snapshotBytes === 0) {
      // The usual way of a state without a snapshot; else all that is left is read.
      this.base = Math.min(...snapshots, ...journals, this.base);
      if (this.base > 1 && snapshots.length + journals.length > 0) {
        this.damage.push(
          'No snapshot is whole; what is sound was read, and files that are missing in it are new again.',
        );
      }
      for (const generation of snapshots) await this.#readFile(snapshotPath(this.#dir, generation));
    }
    await this.#readJournals();
    if (this.#headers === 0 && snapshots.length + journals.length > 0) {
      const detail = 'none of its files has a sound header';
      throw new StateError('STATE_DAMAGED', { dir: this.#dir, detail });
    }
    this.#dropUnreadable();
  }

  async #readJournals(): Promise<void> {
    let expected = this.base;
    for (const generation of this.files.journals) {
      if (generation < this.base) continue;
      if (generation !== expected) this.#missing(expected);
      expected = generation + 1;
      const { damaged, soundBytes, bytes, header } = await this.#readFile(journalPath(this.#dir, generation));
      if (damaged > 0) {
        this.damage.push(
          `journal-${generation} has ${damaged} damaged ${damaged === 1 ? 'line' : 'lines'}; ` +
            'the files they told of are looked at again.',
        );
      }
      this.journalBytes += soundBytes;
      const current = header?.schema === SCHEMA_VERSION;
      this.last = { generation, soundBytes, tornBytes: bytes - soundBytes, current };
    }
    if (this.last === undefined && this.files.snapshots.includes(this.base)) this.#missing(this.base);
  }

  #missing(generation: number): void {
    this.damage.push(`journal-${generation} is missing; its changes are lost.`);
  }

  async #readFile(path: string): Promise<FileFound> {
    const taker = new LineTaker(this.#dir, this.data, this.#used);
    const file = await this.#open(path, 'r');
    try {
      const found = await readLines(file, READ_BYTES, (buffer, start, end) => taker.take(buffer, start, end));
      const { header, footer } = taker;
      if (header !== undefined) this.#headers += 1;
      if (header !== undefined && header.schema < SCHEMA_VERSION) this.outdated = true;
      return { ...found, header, footer };
    } finally {
      await file.close();
    }
  }

  /** Forgets the items whose URL base is lost: it stands twice where it is first used, and once in each later file. */
  #dropUnreadable(): void {
    const { entries } = this.data;
    if (![...this.#used].some((base) => entries.bases.get(base) === undefined)) return;
    let dropped = 0;
    for (const [folder, directory, name, line] of entries.lines()) {
      const base = baseOf(line);
      if (base === undefined || entries.bases.get(base) !== undefined) continue;
      entries.delete(folder, directory === '' ? name : `${directory}/${name}`);
      dropped += 1;
    }
    if (dropped === 0) return;
    const [files, are] = dropped === 1 ? ['1 file', 'it is'] : [`${dropped} files`, 'they are'];
    this.damage.push(`The URL base of ${files} is lost; ${are} new again.`);
  }
}

interface FileFound extends LinesFound {
  readonly header: Header | undefined;
  readonly footer: Footer | undefined;
}

function isWhole({ header, footer, lines, sumBeforeLast, damaged, soundBytes, bytes }: FileFound): boolean {
  const isComplete = footer?.records === lines - 2 && footer.sum === sumBeforeLast;
  return header !== undefined && isComplete && damaged === 0 && soundBytes === bytes;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SLASH = 0x2f;
const BRACE = 0x7b;

/** Takes the lines of one file into `data`. The directory of a record is looked up only where it is not that of the last one. */
class LineTaker {
  readonly #dir: string;
  readonly #data: StateData;
  readonly #used: Set<number>;
  #place = '';
  #folder = '';
  #directory = '';
  header: Header | undefined;
  footer: Footer | undefined;

  constructor(dir: string, data: StateData, used: Set<number>) {
    this.#dir = dir;
    this.#data = data;
    this.#used = used;
  }

  take(buffer: Buffer, start: number, end: number): void {
    const first = buffer[start];
    if (first === QUOTE) this.#record(buffer, start, end);
    else if (first === BRACE) this.#frame(JSON.parse(buffer.toString('utf8', start, end)));
    else this.#row(JSON.parse(buffer.toString('utf8', start, end)));
  }

  /** `"folder","directory/name",[…]` */
  #record(buffer: Buffer, start: number, end: number): void {
    const path = endOfString(buffer, start) + 3;
    const pathEnd = endOfString(buffer, path - 1);
    const slash = buffer.lastIndexOf(SLASH, pathEnd);
    const name = slash >= path ? slash + 1 : path;
    const place = buffer.toString('latin1', start, name);
    if (place !== this.#place) {
      this.#place = place;
      this.#folder = JSON.parse(buffer.toString('utf8', start, path - 2));
      this.#directory = slash >= path ? JSON.parse(`"${buffer.toString('utf8', path, slash)}"`) : '';
    }
    const isEscaped = buffer.subarray(name, pathEnd).includes(BACKSLASH);
    const text = buffer.toString('utf8', name, pathEnd);
    const line = buffer.toString('utf8', pathEnd + 2, end);
    const base = baseOf(line);
    if (base !== undefined) this.#used.add(base);
    this.#data.entries.setLine(
      this.#folder,
      this.#directory,
      isEscaped ? JSON.parse(`"${text}"`) : text,
      line,
    );
  }

  #row(row: readonly unknown[]): void {
    const { entries, meta } = this.#data;
    const [kind, first, second, third] = row as readonly [string, string, string, string | undefined];
    if (kind === '-') entries.delete(first, second);
    else if (kind === 'u') entries.bases.set(Number(first), { collection: second, url: third ?? undefined });
    else if (kind === 'm' && row.length > 2) meta.set(first, second as Json);
    else if (kind === 'm') meta.delete(first);
    else entries.put(entryOfSchema1(row));
  }

  #frame(frame: Partial<Header & Footer>): void {
    if (frame.sum !== undefined) this.footer = frame as Footer;
    if (frame.peersync === undefined) return;
    const header = frame as Header;
    const { format, schema } = header;
    this.header = header;
    if (format <= FORMAT_VERSION && schema <= SCHEMA_VERSION) return;
    const detail = `schema ${format}.${schema}; this one knows ${FORMAT_VERSION}.${SCHEMA_VERSION}`;
    throw new StateError('STATE_NEWER', { dir: this.#dir, detail });
  }
}

/** Where the string of JSON ends that begins at `start`: at its closing quote. */
function endOfString(buffer: Buffer, start: number): number {
  let at = start + 1;
  while (buffer[at] !== QUOTE) {
    if (at >= buffer.length) throw new Error('a record has no place');
    at += buffer[at] === BACKSLASH ? 2 : 1;
  }
  return at;
}
