import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { syncDirectory, writeFileAtomic } from '../../lib/atomic.js';
import type { Clock } from '../../lib/clock.js';
import { systemCode } from '../../lib/errors.js';
import { writeError } from '../errors.js';
import { type Copies, historySchema, nextHistory, type Version } from './history.js';
import { type Grid, inGroups, inTurns, type Outbound } from './merge.js';

/** The last state that the file and the peer had in common. */
export interface Base extends Copies {
  /** No two bases have the same. */
  readonly id: string;
  /** The sha256 of the file that was written from it. */
  readonly file: string;
  /** The sha256 of the file that this one was to replace; undefined where there was none. */
  readonly replaces?: string | undefined;
  readonly stale?: Stale | undefined;
}

/** The file had been saved from an earlier copy, and the newer changes of the peer were kept. Times are ms since the epoch. */
export interface Stale {
  /** The sha256 of the file that was saved. Undefined once the peer changed something after it. */
  readonly saved?: string | undefined;
  /** When it was seen. */
  readonly at: number;
  /** When the earlier copy was mirrored. */
  readonly copyAt?: number | undefined;
}

/** What a base is made of. */
export interface BaseContent extends Pick<Base, 'file' | 'replaces' | 'shown' | 'stale'> {
  readonly grid: Grid;
}

const headSchema = z.object({
  version: z.literal(1),
  table: z.string(),
  id: z.string(),
  salt: z.string(),
  file: z.string(),
  replaces: z.string().optional(),
  shown: z.array(z.string()),
  columns: z.array(z.string()),
  at: z.number().default(0),
  stale: z.object({ saved: z.string().optional(), at: z.number(), copyAt: z.number().optional() }).optional(),
  history: historySchema.default([]),
});

/** What the runs before left. */
export interface Last {
  readonly base: Base;
  /** What was sent to the peer since, or was about to be. */
  readonly sent: Outbound;
}

const NOTHING: Outbound = { set: [], deletes: [] };
const NEWLINE = 0x0a;
/** Rows that are read or written without giving way to other work. */
const ROWS_A_TURN = 500;

/**
 * Keeps the base of one two-way table on disk, and brings it through a crash.
 *
 * - `intend` keeps what is about to be sent to the peer; it is over with the base that it began from.
 * - `prepare` writes the base that will hold once the file is replaced, beside the one that holds now.
 * - `settle` makes it the one that holds, after the file was replaced.
 * - In between, after a crash, `load` looks at the file: it is the new one, the one that was to be replaced, or neither.
 * - `withdraw` takes back what was prepared: the file was not replaced.
 */
export class BaseStore {
  readonly #directory: string;
  readonly #path: string;
  readonly #table: string;
  readonly #clock: Clock;

  /** @param name of the mirror */
  constructor(stateDir: string, name: string, table: string, clock: Clock) {
    this.#directory = join(stateDir, 'mirrors');
    const hash = createHash('sha256').update(name).digest('hex').slice(0, 24);
    this.#path = join(this.#directory, `${hash}.base`);
    this.#table = table;
    this.#clock = clock;
  }

  /**
   * The base that holds, and what was sent since.
   *
   * @param file the sha256 of the file that stands there; undefined where there is none
   * @returns undefined where there is no base of this table, or none that can be read, or nobody knows which of two holds
   */
  async load(file: string | undefined): Promise<Last | undefined> {
    await this.#sweep();
    const next = file === undefined ? undefined : await this.#read(`${this.#path}.next`);
    if (next !== undefined && next.file === file) {
      await this.settle();
      return { base: next, sent: NOTHING };
    }
    const base = await this.#read(this.#path);
    // Somebody edited the file after the crash: nobody knows which of the two.
    const isEither = next !== undefined && next.replaces !== file && base?.file !== file;
    return base === undefined || isEither ? undefined : { base, sent: await this.#sentSince(base) };
  }

  /** @throws MirrorError */
  intend({ set, deletes }: Outbound, base: Base): Promise<void> {
    const stored = { base: base.id, set: set.map(({ pk, cells }) => [pk, [...cells]]), deletes };
    return this.#onDisk(() => writeFileAtomic(this.#intents, JSON.stringify(stored)));
  }

  /**
   * @param last the base that holds
   * @param version how the rows came to be from those of `last`; undefined where they are the same
   * @throws MirrorError
   */
  async prepare(
    { grid, ...content }: BaseContent,
    last: Base | undefined,
    version: Version | undefined,
  ): Promise<void> {
    const now = this.#clock.now();
    const head: z.input<typeof headSchema> = {
      version: 1,
      table: this.#table,
      id: randomBytes(12).toString('hex'),
      salt: last?.salt ?? randomBytes(12).toString('hex'),
      ...{ ...content, shown: [...content.shown], columns: [...grid.columns] },
      at: version === undefined && last !== undefined ? last.at : now,
      history: nextHistory(last?.history ?? [], version, now),
    };
    await this.#onDisk(() => writeFileAtomic(`${this.#path}.next`, baseText(head, grid)));
  }

  /** The prepared base holds from now on. */
  async settle(): Promise<void> {
    await rename(`${this.#path}.next`, this.#path);
    await this.fulfil();
    await syncDirectory(this.#directory);
  }

  async withdraw(): Promise<void> {
    await rm(`${this.#path}.next`, { force: true });
  }

  /** File and peer are again what the base says: the intents are over. */
  async fulfil(): Promise<void> {
    await rm(this.#intents, { force: true });
  }

  async forget(): Promise<void> {
    for (const path of [`${this.#path}.next`, this.#intents, this.#path]) await rm(path, { force: true });
  }

  get #intents(): string {
    return `${this.#path}.intents`;
  }

  async #onDisk(write: () => Promise<void>): Promise<void> {
    try {
      await mkdir(this.#directory, { recursive: true, mode: 0o700 });
      await write();
    } catch (error) {
      throw systemCode(error) === undefined ? error : writeError(error, this.#path);
    }
  }

  /** Removes what a killed process left unfinished, and copies of whole tables that earlier versions of peersync kept. */
  async #sweep(): Promise<void> {
    const own = basename(this.#path);
    for (const name of await readdir(this.#directory).catch(() => [])) {
      const isOurs = name.startsWith(own) && (name.endsWith('.tmp') || name.includes('.earlier-'));
      if (isOurs) await rm(join(this.#directory, name), { force: true });
    }
  }

  /** Intents of another base, or none that can be read, are none. */
  async #sentSince({ id }: Base): Promise<Outbound> {
    try {
      const stored = JSON.parse((await contentOf(this.#intents))?.toString() ?? '') as {
        readonly base: string;
        readonly set: readonly (readonly [string, readonly (readonly [string, string])[]])[];
        readonly deletes: readonly string[];
      };
      if (stored.base !== id) return NOTHING;
      return {
        set: stored.set.map(([pk, cells]) => ({ pk, cells: new Map(cells) })),
        deletes: stored.deletes,
      };
    } catch {
      return NOTHING;
    }
  }

  async #read(path: string): Promise<Base | undefined> {
    const content = await contentOf(path);
    const whole = content && withoutChecksum(content);
    if (whole === undefined) return undefined;
    const end = whole.indexOf(NEWLINE);
    const head = headSchema.safeParse(JSON.parse(whole.toString('utf8', 0, end)));
    if (!head.success || head.data.table !== this.#table) return undefined;
    let grid: Promise<Grid> | undefined;
    return {
      ...head.data,
      grid: () => {
        grid ??= gridOf(whole.subarray(end + 1), head.data.columns);
        return grid;
      },
    };
  }
}

async function contentOf(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if (systemCode(error) === 'ENOENT' || systemCode(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}

/** The head, a line for each row, and a last line that says the sha256 of the others. */
async function* baseText(head: object, { columns, rows }: Grid): AsyncGenerator<string> {
  const hash = createHash('sha256');
  const begin = `${JSON.stringify(head)}\n`;
  hash.update(begin);
  yield begin;
  for await (const group of inGroups(rows, ROWS_A_TURN)) {
    const lists = group.map(([pk, cells]) => [pk, ...columns.map((column) => cells.get(column) ?? '')]);
    const text = lists.map((list) => `${JSON.stringify(list)}\n`).join('');
    hash.update(text);
    yield text;
  }
  yield `${JSON.stringify({ sha256: hash.digest('hex') })}\n`;
}

/** The content without its last line, which says the sha256 of the others; undefined where that is not so. */
function withoutChecksum(content: Buffer): Buffer | undefined {
  const end = content.lastIndexOf(NEWLINE, -2);
  if (end === -1) return undefined;
  const whole = content.subarray(0, end + 1);
  const sha256 = createHash('sha256').update(whole).digest('hex');
  return content.toString('utf8', end + 1) === `${JSON.stringify({ sha256 })}\n` ? whole : undefined;
}

/** The rows that `baseText` wrote. */
async function gridOf(lines: Buffer, columns: readonly string[]): Promise<Grid> {
  const rows = new Map<string, ReadonlyMap<string, string>>();
  for await (const line of inTurns(linesOf(lines), ROWS_A_TURN)) {
    const [pk = '', ...values] = JSON.parse(line) as string[];
    const cells = values.map((value, i) => [columns[i] ?? '', value] as const);
    rows.set(pk, new Map(cells.filter(([, value]) => value !== '')));
  }
  return { columns, rows };
}

function* linesOf(text: Buffer): Generator<string> {
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf(NEWLINE, at);
    yield text.toString('utf8', at, end);
    at = end + 1;
  }
}
