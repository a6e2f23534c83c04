import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { syncDirectory, writeFileAtomic } from '../../lib/atomic.js';
import type { Clock } from '../../lib/clock.js';
import { systemCode } from '../../lib/errors.js';
import { inSlices, inTurns, nextTurn } from '../../lib/slices.js';
import type { TableRow } from '../../peer/table.js';
import { onDisk } from '../errors.js';
import type { TableText } from '../formats/read.js';
import { statsAt } from '../whole-file.js';
import { type Cells, differing, type Grid, type Outbound, sha256Of, withKeys } from './merge.js';

/** Ms: an editor that has had a file open for longer is not recognised. */
export const LONGEST_KEPT = 7 * 86_400_000;
/** Earlier copies of one table. */
const MOST_VERSIONS = 100;
/**
 * Characters of what is remembered of one table; a change counts as many as its text has, and 32
 * for the rest.
 */
const MOST_CHARACTERS = 2 ** 20;

/**
 * A cell that changed, or (without a column) a row that came or went: what was there before (of a
 * row the empty text, null where it was not there), and whether the change came from the file.
 */
type Change = readonly [pk: string, column: string | null, was: string | null, byFile: boolean];

/**
 * A copy that was mirrored before: what has to be undone to get it from the one that came after it.
 */
export interface Version {
  /** When it was mirrored first, and when the next one came, in ms since the epoch. */
  readonly at: number;
  readonly until: number;
  /**
   * The columns that the file had, and those in which something stood, also where the file did not
   * have them.
   */
  readonly shown: readonly string[];
  readonly columns: readonly string[];
  readonly changes: readonly Change[];
}

/** The last state that the file and the peer had in common. */
export interface Base extends Pick<Version, 'at' | 'shown' | 'columns'> {
  /** Goes into the keys of new rows; the same as long as there is a base. */
  readonly salt: string;
  /** The copies before it, the latest last. */
  readonly history: readonly Version[];
  /** The peer's rows with all their cells, in the order of the file. */
  readonly grid: Grid;
  /** No two bases have the same. */
  readonly id: string;
  /** The sha256 of the file that was written from it; '' where nobody knows. */
  readonly file: string;
  /** The sha256 of the file that this one was to replace; undefined where there was none. */
  readonly replaces?: string | undefined;
  readonly stale?: Stale | undefined;
}

/**
 * The file had been saved from an earlier copy, and the newer changes of the peer were kept. Times
 * are ms since the epoch.
 */
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
 * - `intend` keeps what is about to be sent to the peer; it is over with the base that it began
 *   from.
 * - `prepare` writes the base that will hold once the file is replaced, beside the one that holds
 *   now.
 * - `settle` makes it the one that holds, after the file was replaced.
 * - In between, after a crash, `load` looks at the file: it is the new one, the one that was to be
 *   replaced, or neither. Then nobody knows which copy it was made from, and `load` puts that on
 *   disk as a *doubtful* base (its `file` is ''), so that it is in doubt also after the next run
 *   was cut short.
 * - `withdraw` takes back what was prepared: the file was not replaced.
 */
export class BaseStore {
  readonly #path: string;
  readonly #next: string;
  readonly #intents: string;

  /** @param name of the mirror */
  constructor(
    stateDir: string,
    name: string,
    private readonly table: string,
    private readonly clock: Clock,
  ) {
    this.#path = join(stateDir, 'mirrors', fileOf(name));
    this.#next = `${this.#path}.next`;
    this.#intents = `${this.#path}.intents`;
  }

  /**
   * Removes what is kept of mirrors that are not configured any more. The file stays; where such a
   * mirror comes back, cells and rows that the peer does not have so are saved as a conflict file,
   * and rows that the file lacks come back.
   */
  static async forgetOthers(stateDir: string, names: readonly string[]): Promise<void> {
    const directory = join(stateDir, 'mirrors');
    const kept = new Set(names.map(fileOf));
    const files = await readdir(directory).catch(() => []);
    for (const file of files) {
      const base = /^[\da-f]{24}\.base/.exec(file)?.[0];
      if (base !== undefined && !kept.has(base)) await rm(join(directory, file), { force: true });
    }
  }

  async isThere(): Promise<boolean> {
    return ((await statsAt(this.#path)) ?? (await statsAt(this.#next))) !== undefined;
  }

  /**
   * The base that holds, and what was sent since.
   *
   * @param file the sha256 of the file that stands there; undefined where there is none
   * @returns `last` is undefined where there is no base of this table, or none that can be read, or
   *   nobody knows which of two holds. `before` is what the next base comes after: of two the newer
   *   one, whose history has the other.
   */
  async load(file: string | undefined): Promise<{ readonly last?: Last; readonly before?: Base }> {
    const next = await this.#base(this.#next);
    if (next !== undefined && next.file === file) {
      await this.settle();
      return { last: { base: next, sent: NOTHING }, before: next };
    }
    const base = await this.#base(this.#path);
    // Somebody edited the file after the crash: nobody knows which of the two.
    if (next !== undefined && next.replaces !== file && base?.file !== file) {
      const doubtful = { ...next, file: '' };
      await this.#writeBase(this.#path, doubtful);
      await this.withdraw();
      return { before: doubtful };
    }
    if (base === undefined) return {};
    return base.file === ''
      ? { before: base }
      : { last: { base, sent: await this.#sentSince(base) }, before: base };
  }

  /** @throws MirrorError */
  async intend({ set, deletes }: Outbound, { id }: Base): Promise<void> {
    const lineOf = ({ pk, cells }: TableRow): SetLine => [pk, [...cells]];
    await this.#write(this.#intents, { base: id, deletes }, set, lineOf);
  }

  /**
   * @param last the one before it
   * @param sent what the peer was sent since, or changed like the file
   * @returns whether there is anything new: where not, `last` goes on
   * @throws MirrorError
   */
  async prepare(
    { grid, ...content }: BaseContent,
    last: Base | undefined,
    sent: Outbound,
  ): Promise<boolean> {
    const now = this.clock.now();
    const { file, stale } = content;
    const version = last && (await versionBetween(last, grid, sent, now));
    const isSameStale = stale === last?.stale;
    if (last?.file === file && version === undefined && isSameStale) return false;
    // What the peer changed since that copy was read is not what the person saw, and saved over.
    const isPeerChanged = version?.changes.some(([, , , byFile]) => !byFile) === true;
    await this.#writeBase(this.#next, {
      id: randomBytes(12).toString('hex'),
      salt: last?.salt ?? randomBytes(12).toString('hex'),
      ...content,
      // After another change of the peer the same file would take back more than it did.
      stale: stale && { ...stale, saved: isSameStale || isPeerChanged ? undefined : stale.saved },
      columns: grid.columns,
      at: version === undefined && last !== undefined ? last.at : now,
      history: nextHistory(last?.history ?? [], version, now),
      grid,
    });
    return true;
  }

  /** The prepared base holds from now on. */
  async settle(): Promise<void> {
    await rename(this.#next, this.#path);
    await this.fulfil();
    await syncDirectory(dirname(this.#path));
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
    if (stored?.head.table !== this.table) return undefined;
    const { columns } = stored.head;
    const rows = new Map<string, Cells>();
    for await (const [pk = '', ...values] of inTurns(stored.lines, ROWS_A_TURN)) {
      const cells = values.map((value, i) => [columns[i] ?? '', value] as const);
      rows.set(pk, new Map(cells.filter(([, value]) => value !== '')));
    }
    return { ...stored.head, grid: { columns, rows } };
  }

  async #writeBase(path: string, { grid, ...rest }: Base): Promise<void> {
    const head: Head = { ...rest, table: this.table };
    await this.#write(path, head, grid.rows, ([pk, cells]) => [
      pk,
      ...head.columns.map((column) => cells.get(column) ?? ''),
    ]);
  }

  /**
   * Writes a line of JSON for the head and for each item, and a last one that says the sha256 of
   * the others.
   */
  async #write<T>(
    path: string,
    head: object,
    items: Iterable<T>,
    lineOf: (item: T) => unknown,
  ): Promise<void> {
    async function* text(): AsyncGenerator<string> {
      const hash = createHash('sha256');
      let lines = `${JSON.stringify(head)}\n`;
      for await (const group of inSlices(items, ROWS_A_TURN)) {
        hash.update(lines);
        yield lines;
        lines = group.map((item) => `${JSON.stringify(lineOf(item))}\n`).join('');
      }
      yield lines + checksumLine(hash.update(lines).digest('hex'));
    }
    await onDisk(this.#path, async () => {
      await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
      await writeFileAtomic(path, text(), { temporary: `${path}.tmp` });
    });
  }

  /** What `#write` wrote; undefined where there is none, or it is damaged. */
  async #read<H, L>(
    path: string,
  ): Promise<{ readonly head: H; readonly lines: Iterable<L> } | undefined> {
    const content = await readFile(path).catch((error: unknown) => {
      if (systemCode(error) === 'ENOENT' || systemCode(error) === 'ENOTDIR') return undefined;
      throw error;
    });
    if (content === undefined) return undefined;
    const whole = content.subarray(0, content.lastIndexOf('\n', -2) + 1);
    if (content.toString('utf8', whole.length) !== checksumLine(await sha256Of(whole)))
      return undefined;
    const lines = parsedLines(whole);
    return { head: lines.next().value as H, lines: lines as Iterable<L> };
  }
}

function fileOf(mirror: string): string {
  return `${createHash('sha256').update(mirror).digest('hex').slice(0, 24)}.base`;
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

/**
 * How the rows came to be from those of a base.
 *
 * @param sent what the peer was sent since, or changed like the file
 * @returns undefined where they are the same
 */
async function versionBetween(
  base: Base,
  grid: Grid,
  sent: Outbound,
  now: number,
): Promise<Version | undefined> {
  const before = base.grid;
  const columns = new Set([...before.columns, ...grid.columns]);
  const set = new Map<string, Cells>();
  for await (const { pk, cells } of inTurns(sent.set))
    set.set(pk, new Map([...(set.get(pk) ?? []), ...cells]));
  const deleted = new Set(sent.deletes);
  const none: Cells = new Map();
  const changes: Change[] = [];
  for await (const pk of inTurns(new Set([...before.rows.keys(), ...grid.rows.keys()]))) {
    const [was, is, sentCells] = [before.rows.get(pk), grid.rows.get(pk), set.get(pk)];
    const isRowByFile = is === undefined ? deleted.has(pk) : sentCells !== undefined;
    if ((was === undefined) !== (is === undefined)) {
      changes.push([pk, null, was === undefined ? null : '', isRowByFile]);
    }
    for (const column of differing(was ?? none, is ?? none, columns)) {
      const byFile =
        is === undefined ? isRowByFile : sentCells?.get(column) === (is.get(column) ?? '');
      changes.push([pk, column, was?.get(column) ?? '', byFile]);
    }
  }
  const { at, shown } = base;
  return changes.length === 0
    ? undefined
    : { at, until: now, shown, columns: base.columns, changes };
}

/** The history with one more version, without what is too old or too much: the oldest go first. */
function nextHistory(
  history: readonly Version[],
  version: Version | undefined,
  now: number,
): readonly Version[] {
  const latestFirst = [...history, ...(version ? [version] : [])].reverse();
  let characters = 0;
  const end = latestFirst.findIndex(({ until, changes }, i) => {
    for (const [, , was] of changes) characters += 32 + (was?.length ?? 0);
    return i >= MOST_VERSIONS || characters > MOST_CHARACTERS || now - until > LONGEST_KEPT;
  });
  return latestFirst.slice(0, end === -1 ? undefined : end).reverse();
}

/** The earlier copy that a file was made from. */
export interface Earlier extends Pick<Version, 'at' | 'shown' | 'columns'> {
  /** Whether it had a row. */
  readonly isTaken: (pk: string) => boolean;
  /**
   * What file and peer would have in common by now if nobody but the person had changed anything
   * since.
   */
  readonly common: Grid;
}

/**
 * Finds the earlier copy that a file was plainly made from: an editor had opened it, the mirror
 * wrote a newer one, and the editor saved its own over that. Compared with the newest copy such a
 * file looks as if the person had taken back what the peer changed since.
 *
 * Plain it is where nothing that the peer changed since stands in the file as the peer has it, and
 * at least one thing stands there as it was. What the person changed since is no change of the
 * peer: to undo one's own edit is an edit. Of several copies it is the one from which the file
 * differs least: merged with a newer one it would still look as if changes of the peer were taken
 * back.
 */
export async function findEarlier(
  mine: TableText,
  base: Base,
  now: number,
): Promise<Earlier | undefined> {
  if (base.history.length === 0) return undefined;
  const past = new Past(base.grid);
  const hasNewRows = mine.rows.some(({ pk }) => pk === '');
  let rows = await withKeys(mine.rows, () => false, base.salt);
  let found: Earlier | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const version of base.history.toReversed()) {
    if (now - version.until > LONGEST_KEPT) break;
    await nextTurn();
    for await (const change of inTurns(version.changes)) past.undo(change);
    if (lackedColumns(mine, version).length > 0) continue;
    if (hasNewRows) rows = await withKeys(mine.rows, past.isTaken(), base.salt);
    const columns = new Set([...version.shown, ...base.shown, ...mine.columns]);
    const differences = await past.differencesFrom(rows, columns);
    if (differences === undefined || differences >= least) continue;
    least = differences;
    found = { ...version, isTaken: past.isTaken(), common: past.common() };
  }
  return found;
}

/**
 * Columns in which something stands in the file that was written from a base, and that the file
 * does not have.
 */
export function lackedColumns(
  mine: Pick<TableText, 'columns'>,
  { shown, columns }: Pick<Version, 'shown' | 'columns'>,
): readonly string[] {
  const filled = new Set(columns);
  return shown.filter((column) => filled.has(column) && !mine.columns.includes(column));
}

/** Rows that were otherwise than in the newest copy; undefined where there was none. */
type Changed = ReadonlyMap<string, Cells | undefined>;

/** The newest copy and an earlier one, while one goes back from change to change. */
class Past {
  readonly #newest: Grid;
  /** As it was in the earlier copy. */
  readonly #copy = new Map<string, Cells | undefined>();
  /** As the person left it since, else as it was in the copy. */
  readonly #common = new Map<string, Cells | undefined>();
  /** The cells and rows that changed since; whether a change of the person was among those. */
  readonly #places = new Map<string, { pk: string; column: string | null; byFile: boolean }>();

  constructor(newest: Grid) {
    this.#newest = newest;
  }

  undo([pk, column, was, byFile]: Change): void {
    const key = JSON.stringify([pk, column]);
    const place = this.#places.get(key) ?? { pk, column, byFile: false };
    this.#places.set(key, place);
    place.byFile ||= byFile;
    for (const rows of place.byFile ? [this.#copy] : [this.#copy, this.#common]) {
      const row = this.#row(rows, pk);
      if (column === null) rows.set(pk, was === null ? undefined : (row ?? new Map()));
      else if (row !== undefined) rows.set(pk, new Map([...row, [column, was ?? '']]));
    }
  }

  /** Whether the copy had a row; holds also once one goes on. */
  isTaken(): (pk: string) => boolean {
    const copy = new Map(this.#copy);
    return (pk) => this.#row(copy, pk) !== undefined;
  }

  /** What file and peer have in common, as `Earlier` says. */
  common(): Grid {
    const rows = new Map(this.#newest.rows);
    for (const [pk, row] of this.#common) {
      if (row === undefined) rows.delete(pk);
      else rows.set(pk, row);
    }
    return { columns: this.#newest.columns, rows };
  }

  /**
   * In how many places more the file differs from the copy than from the newest one; undefined
   * where it was not plainly made from the copy.
   */
  async differencesFrom(
    rows: ReadonlyMap<string, Cells>,
    columns: ReadonlySet<string>,
  ): Promise<number | undefined> {
    let differences = 0;
    let isPlain = false;
    for await (const { pk, column } of inTurns(this.#places.values())) {
      const row = rows.get(pk);
      if (column !== null && (row === undefined || !columns.has(column))) continue;
      const newestRow = this.#newest.rows.get(pk);
      const all = [row, this.#row(this.#copy, pk), this.#row(this.#common, pk), newestRow];
      const [mine, copy, common, newest] = all.map((each) => cellOf(each, column));
      // Of a row that is not there its cells say nothing.
      const differsFrom = (value: string | null | undefined) =>
        mine !== value && (column === null || value !== null);
      differences += Number(differsFrom(common)) - Number(differsFrom(newest));
      if (common === newest || (column !== null && common === null)) continue;
      const isAsCopied = mine === copy || mine === common;
      // A row that both added is the peer's only if it is the same.
      const isAdded =
        column === null && common === null && row !== undefined && newestRow !== undefined;
      const isAnother = isAdded && differing(row, newestRow, columns).length > 0;
      if (mine !== newest || isAnother) isPlain ||= isAsCopied;
      else if (!isAsCopied) return undefined;
    }
    return isPlain ? differences : undefined;
  }

  #row(changed: Changed, pk: string): Cells | undefined {
    return changed.has(pk) ? changed.get(pk) : this.#newest.rows.get(pk);
  }
}

/** What stands in a cell; of a row (no column) the empty text. Null where there is no such row. */
function cellOf(row: Cells | undefined, column: string | null): string | null {
  if (row === undefined) return null;
  return column === null ? '' : (row.get(column) ?? '');
}
