import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory, writeFileAtomic } from '../../lib/atomic.js';
import type { Clock } from '../../lib/clock.js';
import { systemCode } from '../../lib/errors.js';
import { onDisk } from '../errors.js';
import { inGroups, inTurns } from '../turns.js';
import { type Copies, nextHistory, type Version } from './history.js';
import { type Cells, type Grid, type Outbound, sha256Of } from './merge.js';

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
export type BaseContent = Pick<Base, 'file' | 'replaces' | 'shown' | 'stale' | 'grid'>;

/** The first line of a base on disk; its columns are those of the lines that follow. */
interface Head extends Omit<Base, 'grid'> {
  readonly version: 1;
  readonly table: string;
}

/** What the runs before left. */
export interface Last {
  readonly base: Base;
  /** What was sent to the peer since, or was about to be. */
  readonly sent: Outbound;
}

export const NOTHING: Outbound = { set: [], deletes: [] };
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
  readonly #next: string;
  readonly #intents: string;
  readonly #table: string;
  readonly #clock: Clock;

  /** @param name of the mirror */
  constructor(stateDir: string, name: string, table: string, clock: Clock) {
    this.#directory = join(stateDir, 'mirrors');
    const hash = createHash('sha256').update(name).digest('hex').slice(0, 24);
    this.#path = join(this.#directory, `${hash}.base`);
    this.#next = `${this.#path}.next`;
    this.#intents = `${this.#path}.intents`;
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
    const next = file === undefined ? undefined : await this.#read(this.#next);
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
  async intend(sent: Outbound, base: Base): Promise<void> {
    await this.#write(this.#intents, intentsText(sent, base));
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
    const head: Head = {
      version: 1,
      table: this.#table,
      id: randomBytes(12).toString('hex'),
      salt: last?.salt ?? randomBytes(12).toString('hex'),
      ...content,
      columns: grid.columns,
      at: version === undefined && last !== undefined ? last.at : now,
      history: nextHistory(last?.history ?? [], version, now),
    };
    await this.#write(this.#next, baseText(head, grid));
  }

  /** The prepared base holds from now on. */
  async settle(): Promise<void> {
    await rename(this.#next, this.#path);
    await this.fulfil();
    await syncDirectory(this.#directory);
  }

  async withdraw(): Promise<void> {
    await rm(this.#next, { force: true });
  }

  /** File and peer are again what the base says: the intents are over. */
  async fulfil(): Promise<void> {
    await rm(this.#intents, { force: true });
  }

  async forget(): Promise<void> {
    for (const path of [this.#next, this.#intents, this.#path]) await rm(path, { force: true });
  }

  async #write(path: string, content: string | AsyncIterable<string>): Promise<void> {
    await onDisk(this.#path, async () => {
      await mkdir(this.#directory, { recursive: true, mode: 0o700 });
      await writeFileAtomic(path, content, { temporary: `${path}.tmp` });
    });
  }

  /** Intents of another base, or none that can be read, are none. */
  async #sentSince({ id }: Base): Promise<Outbound> {
    try {
      const stored = JSON.parse(String(await contentOf(this.#intents))) as {
        readonly base: string;
        readonly set: readonly (readonly [string, readonly (readonly [string, string])[]])[];
        readonly deletes: string[];
      };
      if (stored.base !== id) return NOTHING;
      const set = stored.set.map(([pk, cells]) => ({ pk, cells: new Map(cells) }));
      return { set, deletes: stored.deletes };
    } catch {
      return NOTHING;
    }
  }

  /** What `baseText` wrote; undefined where there is none, or it is damaged, or of another table. */
  async #read(path: string): Promise<Base | undefined> {
    const content = await contentOf(path);
    if (content === undefined) return undefined;
    const whole = content.subarray(0, content.lastIndexOf('\n', -2) + 1);
    if (content.toString('utf8', whole.length) !== checksumLine(await sha256Of(whole))) return undefined;
    const lines = linesOf(whole);
    const head = JSON.parse(String(lines.next().value)) as Head;
    if (head.version !== 1 || head.table !== this.#table || head.history === undefined) return undefined;
    const { columns } = head;
    const rows = new Map<string, Cells>();
    for await (const line of inTurns(lines, ROWS_A_TURN)) {
      const [pk = '', ...values] = JSON.parse(line) as string[];
      const cells = values.map((value, i) => [columns[i] ?? '', value] as const);
      rows.set(pk, new Map(cells.filter(([, value]) => value !== '')));
    }
    return { ...head, grid: { columns, rows } };
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

async function* intentsText({ set, deletes }: Outbound, { id }: Base): AsyncGenerator<string> {
  yield `{"base":${JSON.stringify(id)},"deletes":${JSON.stringify(deletes)},"set":[`;
  let separator = '';
  for await (const group of inGroups(set, ROWS_A_TURN)) {
    yield separator + group.map(({ pk, cells }) => JSON.stringify([pk, [...cells]])).join(',');
    separator = ',';
  }
  yield ']}';
}

/** The head, a line for each row, and a last line that says the sha256 of the others. */
async function* baseText(head: Head, { columns, rows }: Grid): AsyncGenerator<string> {
  const hash = createHash('sha256');
  let text = `${JSON.stringify(head)}\n`;
  for await (const group of inGroups(rows, ROWS_A_TURN)) {
    hash.update(text);
    yield text;
    const lists = group.map(([pk, cells]) => [pk, ...columns.map((column) => cells.get(column) ?? '')]);
    text = lists.map((list) => `${JSON.stringify(list)}\n`).join('');
  }
  yield text + checksumLine(hash.update(text).digest('hex'));
}

function checksumLine(sha256: string): string {
  return `${JSON.stringify({ sha256 })}\n`;
}

function* linesOf(text: Buffer): Generator<string> {
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf('\n', at);
    yield text.toString('utf8', at, end);
    at = end + 1;
  }
}
