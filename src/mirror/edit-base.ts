import { createHash, randomBytes } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { z } from 'zod';
import { syncDirectory, writeFileAtomic } from '../lib/atomic.js';
import { systemCode } from '../lib/errors.js';
import { type Intents, readIntents, storeIntents } from './edit-intents.js';
import { writeError } from './errors.js';
import type { Grid } from './merge.js';

/** The last state that the file and the peer had in common. */
export interface Base {
  /** No two bases have the same. */
  readonly id: string;
  /** Goes into the keys of new rows; the same as long as there is a base. */
  readonly salt: string;
  /** The sha256 of the file that was written from it. */
  readonly file: string;
  /** The columns that the file had. */
  readonly shown: readonly string[];
  /** The columns in which something stood, also those that the file did not have. */
  readonly columns: readonly string[];
  /** Stands for its rows; see `digestOf`. */
  readonly digest: string;
  /** The peer's rows with all their cells, in the order of the file; read when they are asked for. */
  grid(): Promise<Grid>;
}

/** What a base is made of. */
export interface BaseContent {
  readonly file: string;
  readonly shown: readonly string[];
  readonly digest: string;
  readonly grid: Grid;
}

const headSchema = z.object({
  version: z.literal(1),
  table: z.string(),
  id: z.string(),
  salt: z.string(),
  file: z.string(),
  shown: z.array(z.string()),
  columns: z.array(z.string()),
  digest: z.string(),
});
type Head = z.output<typeof headSchema>;

/** What the runs before left. */
export interface Last {
  readonly base: Base;
  /**
   * A run was cut short while it replaced the file, and the file is neither the one that was there nor the one that was to
   * come: a person edited one of the two, and this may be the base of theirs as well.
   */
  readonly other?: Base;
  /** What was told to the peer since, or was about to be. */
  readonly intents: Intents;
}

/** Rows that are read or written without giving way to other work. */
const ROWS_A_TURN = 500;

/**
 * Keeps the base of one two-way table on disk, and brings it through a crash.
 *
 * - `prepare` writes the base that will hold once the file is replaced, beside the one that holds now.
 * - `settle` makes it the one that holds, after the file was replaced.
 * - In between, after a crash, `load` looks at the file: if it is the one that the prepared base is of, that one holds; if it
 *   is neither that one nor the one before, both may be the base of it.
 * - `withdraw` takes back what was prepared: the file was not replaced.
 * - `intend` keeps what is about to be told to the peer; it is over with the base that it began from.
 */
export class BaseStore {
  readonly #directory: string;
  readonly #path: string;
  readonly #table: string;

  constructor({ stateDir, name, table }: { stateDir: string; name: string; table: string }) {
    this.#directory = join(stateDir, 'mirrors');
    const hash = createHash('sha256').update(name).digest('hex').slice(0, 24);
    this.#path = join(this.#directory, `${hash}.base`);
    this.#table = table;
  }

  /**
   * The base that holds, and what was intended since.
   *
   * @param file the sha256 of the file that stands there; undefined where there is none
   * @returns undefined where there is no base of this table, or none that can be read
   */
  async load(file: string | undefined): Promise<Last | undefined> {
    await this.#sweep();
    const next = file === undefined ? undefined : await this.#read(`${this.#path}.next`);
    if (next !== undefined && next.file === file) await this.settle();
    const base = next !== undefined && next.file === file ? next : await this.#read(this.#path);
    if (base === undefined) return undefined;
    const text = await contentOf(`${this.#path}.intents`);
    const intents = readIntents(text?.toString('utf8') ?? '', base.id);
    const isEither = next === undefined || next.file === file || base.file === file;
    return isEither ? { base, intents } : { base, intents, other: next };
  }

  /** @throws MirrorError */
  intend(intents: Intents, base: Base): Promise<void> {
    return this.#onDisk(() => writeFileAtomic(`${this.#path}.intents`, storeIntents(intents, base.id)));
  }

  /** @throws MirrorError */
  prepare(base: BaseContent, salt: string | undefined): Promise<void> {
    return this.#onDisk(() => this.#writeNext(base, salt));
  }

  async #writeNext(base: BaseContent, salt: string | undefined): Promise<void> {
    const head: Head = {
      version: 1,
      table: this.#table,
      id: randomBytes(12).toString('hex'),
      salt: salt ?? randomBytes(12).toString('hex'),
      file: base.file,
      shown: [...base.shown],
      columns: [...base.grid.columns],
      digest: base.digest,
    };
    const temporary = `${this.#path}.next.${head.id}.tmp`;
    const handle = await open(temporary, 'wx', 0o600);
    try {
      const hash = createHash('sha256');
      const write = async (text: string): Promise<void> => {
        hash.update(text);
        await handle.writeFile(text);
      };
      await write(`${JSON.stringify(head)}\n`);
      for await (const text of lines(base.grid)) await write(text);
      await handle.writeFile(`${JSON.stringify({ sha256: hash.digest('hex') })}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, `${this.#path}.next`);
    await syncDirectory(this.#directory);
  }

  /** The prepared base holds from now on. */
  async settle(): Promise<void> {
    await rename(`${this.#path}.next`, this.#path);
    await rm(`${this.#path}.intents`, { force: true });
    await syncDirectory(this.#directory);
  }

  async withdraw(): Promise<void> {
    await rm(`${this.#path}.next`, { force: true });
  }

  /** File and peer are again what the base says: the intents are over. */
  async fulfil(): Promise<void> {
    await rm(`${this.#path}.intents`, { force: true });
  }

  async forget(): Promise<void> {
    for (const end of ['.next', '.intents', '']) await rm(this.#path + end, { force: true });
  }

  async #onDisk(write: () => Promise<void>): Promise<void> {
    try {
      await mkdir(this.#directory, { recursive: true, mode: 0o700 });
      await write();
    } catch (error) {
      throw systemCode(error) === undefined ? error : writeError(error, this.#path);
    }
  }

  /** What a killed process left unfinished. */
  async #sweep(): Promise<void> {
    const names = await readdir(this.#directory).catch(() => []);
    const [own] = this.#path.split('/').slice(-1);
    for (const name of names) {
      if (own !== undefined && name.startsWith(own) && name.endsWith('.tmp')) {
        await rm(join(this.#directory, name), { force: true });
      }
    }
  }

  async #read(path: string): Promise<Base | undefined> {
    const content = await contentOf(path);
    const whole = content === undefined ? undefined : withoutChecksum(content);
    if (whole === undefined) return undefined;
    const end = whole.indexOf(NEWLINE);
    const head = headSchema.safeParse(JSON.parse(whole.toString('utf8', 0, end)));
    if (!head.success || head.data.table !== this.#table) return undefined;
    const { columns } = head.data;
    return { ...head.data, grid: () => gridOf(whole.subarray(end + 1), columns) };
  }
}

/** Stands for the rows of a table: equal where they are, in the same order. */
export async function digestOf(grid: Grid): Promise<string> {
  const hash = createHash('sha256');
  hash.update(JSON.stringify(grid.columns));
  for await (const text of lines(grid)) hash.update(text);
  return hash.digest('hex');
}

const NEWLINE = 0x0a;

async function* lines({ columns, rows }: Grid): AsyncGenerator<string> {
  let text = '';
  let gathered = 0;
  for (const [pk, cells] of rows) {
    text += `${JSON.stringify([pk, ...columns.map((column) => cells.get(column) ?? '')])}\n`;
    gathered += 1;
    if (gathered % ROWS_A_TURN !== 0) continue;
    yield text;
    text = '';
    await nextTurn();
  }
  yield text;
}

async function gridOf(lines: Buffer, columns: readonly string[]): Promise<Grid> {
  const rows = new Map<string, ReadonlyMap<string, string>>();
  for (let at = 0; at < lines.length; ) {
    const end = lines.indexOf(NEWLINE, at);
    const [pk = '', ...values] = JSON.parse(lines.toString('utf8', at, end)) as string[];
    const cells = new Map<string, string>();
    values.forEach((value, i) => {
      const column = columns[i];
      if (column !== undefined && value !== '') cells.set(column, value);
    });
    rows.set(pk, cells);
    at = end + 1;
    if (rows.size % ROWS_A_TURN === 0) await nextTurn();
  }
  return { columns, rows };
}

async function contentOf(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if (systemCode(error) === 'ENOENT' || systemCode(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}

/** The content without its last line, which says the sha256 of the others; undefined where that is not so. */
function withoutChecksum(content: Buffer): Buffer | undefined {
  const end = content.lastIndexOf(NEWLINE, -2);
  if (end === -1) return undefined;
  const whole = content.subarray(0, end + 1);
  const sha256 = createHash('sha256').update(whole).digest('hex');
  return content.toString('utf8', end + 1) === `${JSON.stringify({ sha256 })}\n` ? whole : undefined;
}
