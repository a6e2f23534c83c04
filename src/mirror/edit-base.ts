import { createHash, randomBytes } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { syncDirectory, writeFileAtomic } from '../lib/atomic.js';
import type { Clock } from '../lib/clock.js';
import { systemCode } from '../lib/errors.js';
import { EarlierCopies, LONGEST_KEPT } from './edit-copies.js';
import { absorb, type Intents, readIntents, storeIntents, together } from './edit-intents.js';
import { gridOf, lines } from './edit-lines.js';
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
  /** When it was mirrored, in ms since the epoch. */
  readonly at?: number;
  /** The base that held before, and what of the person's edits was told to the peer between the two. */
  readonly before?: { readonly id: string; readonly told: Intents };
  readonly stale?: Stale;
  /** The peer's rows with all their cells, in the order of the file; read when they are asked for. */
  grid(): Promise<Grid>;
}

/** The file had been saved from an earlier copy, and the newer changes of the peer were kept. Times are ms since the epoch. */
export interface Stale {
  /** The sha256 of the file that was saved. Undefined once the peer changed something after it. */
  readonly saved?: string | undefined;
  /** When it was seen. */
  readonly at: number;
  /** When the earlier copy was mirrored; undefined where that is not known. */
  readonly copyAt?: number | undefined;
}

interface BaseStoreParts {
  readonly stateDir: string;
  /** Of the mirror. */
  readonly name: string;
  readonly table: string;
  readonly clock: Clock;
}

/** What a base is made of. */
export interface BaseContent {
  readonly file: string;
  readonly shown: readonly string[];
  readonly digest: string;
  readonly grid: Grid;
  readonly stale?: Stale | undefined;
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
  at: z.number().optional(),
  before: z.object({ id: z.string(), told: z.string() }).optional(),
  stale: z.object({ saved: z.string().optional(), at: z.number(), copyAt: z.number().optional() }).optional(),
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

/**
 * Keeps the base of one two-way table on disk, and brings it through a crash.
 *
 * - `prepare` writes the base that will hold once the file is replaced, beside the one that holds now.
 * - `settle` makes it the one that holds, after the file was replaced.
 * - In between, after a crash, `load` looks at the file: if it is the one that the prepared base is of, that one holds; if it
 *   is neither that one nor the one before, both may be the base of it.
 * - `withdraw` takes back what was prepared: the file was not replaced.
 * - `intend` keeps what is about to be told to the peer; it is over with the base that it began from.
 * - A base that is about to be replaced is kept as an earlier copy, for `earlier`. Each names the one before.
 */
export class BaseStore {
  readonly #directory: string;
  readonly #path: string;
  readonly #table: string;
  readonly #copies: EarlierCopies;
  readonly #clock: Clock;

  constructor({ stateDir, name, table, clock }: BaseStoreParts) {
    this.#directory = join(stateDir, 'mirrors');
    const hash = createHash('sha256').update(name).digest('hex').slice(0, 24);
    this.#path = join(this.#directory, `${hash}.base`);
    this.#table = table;
    this.#copies = new EarlierCopies(this.#path);
    this.#clock = clock;
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
    const intents = await this.#intents(base);
    const isEither = next === undefined || next.file === file || base.file === file;
    return isEither ? { base, intents } : { base, intents, other: next };
  }

  /** @throws MirrorError */
  intend(intents: Intents, base: Base): Promise<void> {
    return this.#onDisk(() => writeFileAtomic(`${this.#path}.intents`, storeIntents(intents, base.id)));
  }

  /**
   * The copies that were mirrored before the last one, the latest first, and what was told to the peer since each of them.
   * Where nobody knows which of two holds, neither of them is among these.
   */
  async *earlier({ base, other }: Last): AsyncGenerator<{ readonly copy: Base; readonly told: Intents }> {
    let told: Intents = { set: [], deletes: [] };
    let after = other ?? base;
    while (after.before !== undefined && this.#clock.now() - (after.at ?? 0) <= LONGEST_KEPT) {
      const copy = await this.#read(this.#copies.pathOf(after.before.id)).catch(() => undefined);
      if (copy === undefined || copy.id !== after.before.id) return;
      told = together(after.before.told, told);
      if (copy.id !== base.id) yield { copy, told };
      after = copy;
    }
  }

  /**
   * @param last the base that holds
   * @throws MirrorError
   */
  prepare(base: BaseContent, last: Base | undefined): Promise<void> {
    return this.#onDisk(async () => {
      if (last !== undefined) await this.#copies.keep(last.id, this.#clock.now());
      await this.#writeNext(base, last);
    });
  }

  async #intents(base: Base): Promise<Intents> {
    const text = await contentOf(`${this.#path}.intents`);
    return readIntents(text?.toString('utf8') ?? '', base.id);
  }

  async #writeNext(base: BaseContent, last: Base | undefined): Promise<void> {
    const told = last && absorb(base.grid, await this.#intents(last), base.grid).done;
    const head: Head = {
      version: 1,
      table: this.#table,
      id: randomBytes(12).toString('hex'),
      salt: last?.salt ?? randomBytes(12).toString('hex'),
      file: base.file,
      shown: [...base.shown],
      columns: [...base.grid.columns],
      digest: base.digest,
      at: this.#clock.now(),
      ...(last && told && { before: { id: last.id, told: storeIntents(told, last.id) } }),
      ...(base.stale && { stale: base.stale }),
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
    await this.#copies.forget();
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
    const { columns, at, before, stale, ...facts } = head.data;
    return {
      ...{ ...facts, columns },
      ...(at !== undefined && { at }),
      ...(before && { before: { id: before.id, told: readIntents(before.told, before.id) } }),
      ...(stale && { stale }),
      grid: () => gridOf(whole.subarray(end + 1), columns),
    };
  }
}

const NEWLINE = 0x0a;

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
