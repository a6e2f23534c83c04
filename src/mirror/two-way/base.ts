import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory, writeFileAtomic } from '../../lib/atomic.js';
import type { Clock } from '../../lib/clock.js';
import { systemCode } from '../../lib/errors.js';
import type { TableRow } from '../../peer/table.js';
import { onDisk } from '../errors.js';
import { inGroups, inTurns } from '../turns.js';
import { type Copies, nextHistory, type Version } from './history.js';
import { type Cells, type Outbound, sha256Of } from './merge.js';

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
  readonly copyAt: number;
}

/** What a base is made of. */
export type BaseContent = Pick<Base, 'file' | 'replaces' | 'shown' | 'stale' | 'grid'>;

/** The first line of a base on disk; its columns are those of the rows in the lines that follow. */
type Head = Omit<Base, 'grid'> & { readonly table: string };

/** A row with its changed cells in the lines of intents. */
type SetLine = readonly [pk: string, cells: readonly (readonly [string, string])[]];

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
    const next = file === undefined ? undefined : await this.#base(this.#next);
    if (next !== undefined && next.file === file) {
      await this.settle();
      return { base: next, sent: NOTHING };
    }
    const base = await this.#base(this.#path);
    // Somebody edited the file after the crash: nobody knows which of the two.
    const isEither = next !== undefined && next.replaces !== file && base?.file !== file;
    return base === undefined || isEither ? undefined : { base, sent: await this.#sentSince(base) };
  }

  /** @throws MirrorError */
  async intend({ set, deletes }: Outbound, { id }: Base): Promise<void> {
    await this.#write(
      this.#intents,
      { base: id, deletes },
      set,
      ({ pk, cells }): SetLine => [pk, [...cells]],
    );
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
    const { columns, rows } = grid;
    const head: Head = {
      table: this.#table,
      id: randomBytes(12).toString('hex'),
      salt: last?.salt ?? randomBytes(12).toString('hex'),
      ...content,
      columns,
      at: version === undefined && last !== undefined ? last.at : now,
      history: nextHistory(last?.history ?? [], version, now),
    };
    const lineOf = ([pk, cells]: readonly [string, Cells]) => [
      pk,
      ...columns.map((column) => cells.get(column) ?? ''),
    ];
    await this.#write(this.#next, head, rows, lineOf);
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

  /** Intents of another base, or none that can be read, are none. */
  async #sentSince({ id }: Base): Promise<Outbound> {
    const stored = await this.#read<{ readonly base: string; readonly deletes: string[] }, SetLine>(
      this.#intents,
    );
    if (stored?.head.base !== id) return NOTHING;
    const set: TableRow[] = [];
    for await (const [pk, cells] of inTurns(stored.lines, ROWS_A_TURN))
      set.push({ pk, cells: new Map(cells) });
    return { set, deletes: stored.head.deletes };
  }

  /** Undefined also where it is of another table. */
  async #base(path: string): Promise<Base | undefined> {
    const stored = await this.#read<Head, readonly string[]>(path);
    if (stored?.head.table !== this.#table) return undefined;
    const { columns } = stored.head;
    const rows = new Map<string, Cells>();
    for await (const [pk = '', ...values] of inTurns(stored.lines, ROWS_A_TURN)) {
      const cells = values.map((value, i) => [columns[i] ?? '', value] as const);
      rows.set(pk, new Map(cells.filter(([, value]) => value !== '')));
    }
    return { ...stored.head, grid: { columns, rows } };
  }

  /** Writes a line of JSON for the head and for each item, and a last one that says the sha256 of the others. */
  async #write<T>(
    path: string,
    head: object,
    items: Iterable<T>,
    lineOf: (item: T) => unknown,
  ): Promise<void> {
    async function* text(): AsyncGenerator<string> {
      const hash = createHash('sha256');
      let lines = `${JSON.stringify(head)}\n`;
      for await (const group of inGroups(items, ROWS_A_TURN)) {
        hash.update(lines);
        yield lines;
        lines = group.map((item) => `${JSON.stringify(lineOf(item))}\n`).join('');
      }
      yield lines + checksumLine(hash.update(lines).digest('hex'));
    }
    await onDisk(this.#path, async () => {
      await mkdir(this.#directory, { recursive: true, mode: 0o700 });
      await writeFileAtomic(path, text(), { temporary: `${path}.tmp` });
    });
  }

  /** What `#write` wrote; undefined where there is none, or it is damaged. */
  async #read<H, L>(path: string): Promise<{ readonly head: H; readonly lines: Iterable<L> } | undefined> {
    const content = await readFile(path).catch((error: unknown) => {
      if (systemCode(error) === 'ENOENT' || systemCode(error) === 'ENOTDIR') return undefined;
      throw error;
    });
    if (content === undefined) return undefined;
    const whole = content.subarray(0, content.lastIndexOf('\n', -2) + 1);
    if (content.toString('utf8', whole.length) !== checksumLine(await sha256Of(whole))) return undefined;
    const lines = parsedLines(whole);
    return { head: lines.next().value as H, lines: lines as Iterable<L> };
  }
}

function checksumLine(sha256: string): string {
  return `${JSON.stringify({ sha256 })}\n`;
}

function* parsedLines(text: Buffer): Generator<unknown> {
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf('\n', at);
    yield JSON.parse(text.toString('utf8', at, end));
    at = end + 1;
  }
}
