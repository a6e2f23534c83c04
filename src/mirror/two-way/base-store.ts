import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { syncDirectory, writeFileAtomic } from '../../lib/atomic.js';
import type { Clock } from '../../lib/clock.js';
import { systemCode } from '../../lib/errors.js';
import { inSlices, nextTurn, withPauses } from '../../lib/slices.js';
import type { TableRow } from '../../peer/table.js';
import { onDisk } from '../errors.js';
import { type EarlierCopy, earlierCopy, extended } from './history.js';
import { type Cells, type Changes, type Grid, NO_CHANGES } from './merge.js';

/** The last state that file and peer had in common. */
export interface Base extends Pick<EarlierCopy, 'at' | 'shown' | 'columns'> {
  /** Unique for each base. */
  readonly id: string;
  /** Part of the keys of new rows. Stays the same from base to base. */
  readonly salt: string;
  /** The earlier copies of the file, the latest last. */
  readonly history: readonly EarlierCopy[];
  /** The rows of the peer with all their cells, in the order of the file. */
  readonly grid: Grid;
  /** The sha256 of the file that was written from this base. Empty for a doubtful base. */
  readonly file: string;
  /** The sha256 of the file that was to be replaced. Undefined if there was none. */
  readonly replaces?: string | undefined;
  readonly stale?: StaleSave | undefined;
}

/** Says that the file was saved from an earlier copy. Times are ms since the epoch. */
export interface StaleSave {
  /** The sha256 of the file that was saved. Undefined once the peer changed something after it. */
  readonly saved?: string | undefined;
  /** When the run found it. */
  readonly at: number;
  /** When the earlier copy was mirrored. */
  readonly copyAt: number;
}

/** The parts of a base that a run determines. */
type BaseContent = Pick<Base, 'file' | 'replaces' | 'shown' | 'stale' | 'grid'>;

/** The first line of a base on disk. The other lines are rows: the key, then its cells. */
type Head = Omit<Base, 'grid'> & { readonly table: string };

/** The first line of the write-ahead file. The other lines are rows to be set. */
interface PushHead {
  /** The id of the base that the run began from. */
  readonly base: string;
  readonly deletes: readonly string[];
}

type SetLine = readonly [pk: string, cells: readonly (readonly [string, string])[]];

/** The current base, and the pushes of interrupted runs since. */
export interface SyncedState {
  readonly base: Base;
  /** The changes that were pushed, or about to be pushed, since the base was written. */
  readonly pushed: Changes;
}

export interface LoadedBase {
  /** Undefined if there is no base, if it cannot be read, or if it is doubtful (see BaseStore). */
  readonly synced?: SyncedState;
  /** The base whose history the next base continues. */
  readonly previous?: Base;
}

/**
 * Keeps the base of one two-way table on disk, and brings it through a crash. Three files:
 *
 * - `NAME.base`: the current base.
 * - `NAME.base.intents`: the write-ahead record of a push. `writeAhead` writes it before anything
 *   is sent. It belongs to the base that it names, and is ignored beside another one.
 * - `NAME.base.next`: the next base, which becomes current when the file is replaced. `prepare`
 *   writes it just before the rename of the file, `activate` makes it current just after.
 *
 * After a crash between `prepare` and `activate` the file decides. `load` activates the next base
 * if the file is the new one, and ignores it if the file is the one that was to be replaced. If the
 * file is neither, a person edited it in between, and it is unknown which of the two copies was
 * edited. Then `load` writes a *doubtful* base (`file` is empty). The next merge has no base, also
 * after another crash.
 */
export class BaseStore {
  readonly #path: string;
  readonly #next: string;
  readonly #pushes: string;

  /**
   * @param mirror the name of the mirror
   * @param table the name of the table in the peer
   */
  constructor(
    stateDir: string,
    mirror: string,
    private readonly table: string,
    private readonly clock: Clock,
  ) {
    this.#path = join(stateDir, 'mirrors', fileNameOf(mirror));
    this.#next = `${this.#path}.next`;
    this.#pushes = `${this.#path}.intents`;
  }

  /**
   * Removes the bases of mirrors that are not configured any more. Their files stay. If such a
   * mirror comes back, it merges without a base: edits are saved as a conflict file.
   */
  static async removeOthers(stateDir: string, mirrors: readonly string[]): Promise<void> {
    const directory = join(stateDir, 'mirrors');
    const kept = new Set(mirrors.map(fileNameOf));
    const files = await readdir(directory).catch(() => []);
    for (const file of files) {
      const base = /^[\da-f]{24}\.base/.exec(file)?.[0];
      if (base !== undefined && !kept.has(base)) await rm(join(directory, file), { force: true });
    }
  }

  /** @param file the sha256 of the current file, undefined if there is none */
  async load(file: string | undefined): Promise<LoadedBase> {
    const next = await this.#read(this.#next);
    if (next !== undefined && next.file === file) {
      await this.activate();
      return { synced: { base: next, pushed: NO_CHANGES }, previous: next };
    }
    const base = await this.#read(this.#path);
    const isReplaced = next === undefined || next.replaces === file || base?.file === file;
    if (!isReplaced) {
      const doubtful = { ...next, file: '' };
      await this.#write(this.#path, doubtful);
      await this.discardPrepared();
      return { previous: doubtful };
    }
    if (base === undefined) return {};
    if (base.file === '') return { previous: base };
    return { synced: { base, pushed: await this.#pushedSince(base) }, previous: base };
  }

  /**
   * Writes the changes down that are about to be pushed.
   *
   * @throws MirrorError
   */
  async writeAhead({ set, deletes }: Changes, { id }: Base): Promise<void> {
    const head: PushHead = { base: id, deletes };
    const lineOf = ({ pk, cells }: TableRow): SetLine => [pk, [...cells]];
    await writeCheckedLines(this.#pushes, head, set, lineOf);
  }

  /**
   * Writes the next base beside the current one.
   *
   * @param byFile the changes that came from the file since the previous base
   * @returns false if nothing changed: then the previous base stays current
   * @throws MirrorError
   */
  async prepare(
    content: BaseContent,
    previous: Base | undefined,
    byFile: Changes,
  ): Promise<boolean> {
    const now = this.clock.now();
    const { grid, file, replaces, shown } = content;
    const copy = previous && (await earlierCopy(previous, grid, byFile, now));
    const isSameStale = content.stale === previous?.stale;
    if (previous?.file === file && copy === undefined && isSameStale) return false;
    await this.#write(this.#next, {
      id: randomBytes(12).toString('hex'),
      salt: previous?.salt ?? randomBytes(12).toString('hex'),
      file,
      replaces,
      shown,
      stale: staleSave(content.stale, copy, isSameStale),
      columns: grid.columns,
      at: copy === undefined && previous !== undefined ? previous.at : now,
      history: extended(previous?.history ?? [], copy, now),
      grid,
    });
    return true;
  }

  /** Makes the prepared base the current one. */
  async activate(): Promise<void> {
    await rename(this.#next, this.#path);
    await this.clearPushes();
    await syncDirectory(dirname(this.#path));
  }

  async discardPrepared(): Promise<void> {
    await rm(this.#next, { force: true });
  }

  /** Called when file and peer are equal to the base again. */
  async clearPushes(): Promise<void> {
    await rm(this.#pushes, { force: true });
  }

  async remove(): Promise<void> {
    for (const path of [this.#next, this.#pushes, this.#path]) await rm(path, { force: true });
  }

  /** Returns no changes if the record is missing, damaged, or of another base. */
  async #pushedSince({ id }: Base): Promise<Changes> {
    const stored = await readCheckedLines<PushHead, SetLine>(this.#pushes);
    if (stored?.head.base !== id) return NO_CHANGES;
    const set: TableRow[] = [];
    for await (const [pk, cells] of stored.lines) set.push({ pk, cells: new Map(cells) });
    return { set, deletes: [...stored.head.deletes] };
  }

  /** Returns undefined if the base is missing, damaged, or of another table. */
  async #read(path: string): Promise<Base | undefined> {
    const stored = await readCheckedLines<Head, readonly string[]>(path);
    if (stored?.head.table !== this.table) return undefined;
    const { columns } = stored.head;
    const rows = new Map<string, Cells>();
    for await (const [pk = '', ...values] of stored.lines) {
      const cells = values.map((value, i) => [columns[i] ?? '', value] as const);
      rows.set(pk, new Map(cells.filter(([, value]) => value !== '')));
    }
    return { ...stored.head, grid: { columns, rows } };
  }

  async #write(path: string, { grid, ...rest }: Base): Promise<void> {
    const head: Head = { ...rest, table: this.table };
    await writeCheckedLines(path, head, grid.rows, ([pk, cells]) => [
      pk,
      ...head.columns.map((column) => cells.get(column) ?? ''),
    ]);
  }
}

/**
 * Returns the stale save to keep. If the same file is saved a second time, its changes are meant,
 * and it is no stale save. After another change of the peer, it would undo more than the person
 * saw. Therefore the sha256 of the file is dropped then.
 */
function staleSave(
  stale: StaleSave | undefined,
  copy: EarlierCopy | undefined,
  isKnown: boolean,
): StaleSave | undefined {
  if (stale === undefined) return undefined;
  const isChangedByPeer = copy?.changes.some(([, , , byFile]) => !byFile) === true;
  return { ...stale, saved: isKnown || isChangedByPeer ? undefined : stale.saved };
}

function fileNameOf(mirror: string): string {
  return `${createHash('sha256').update(mirror).digest('hex').slice(0, 24)}.base`;
}

/** The lines that are written or parsed between two pauses. */
const LINES_PER_SLICE = 500;
/** The bytes that are hashed between two pauses: a few milliseconds of work. */
const HASHED_PER_SLICE = 2 ** 21;

/** The content of a file of checked lines. */
interface CheckedLines<Head, Line> {
  readonly head: Head;
  readonly lines: AsyncIterable<Line>;
}

/**
 * Replaces a file of JSON lines: the head, one line an item, and a last line with the sha256 of the
 * others. Directories are made with mode 0700.
 *
 * @throws MirrorError
 */
async function writeCheckedLines<T>(
  path: string,
  head: object,
  items: Iterable<T>,
  lineOf: (item: T) => unknown,
): Promise<void> {
  async function* text(): AsyncGenerator<string> {
    const hash = createHash('sha256');
    let lines = `${JSON.stringify(head)}\n`;
    for await (const group of inSlices(items, LINES_PER_SLICE)) {
      hash.update(lines);
      yield lines;
      lines = group.map((item) => `${JSON.stringify(lineOf(item))}\n`).join('');
    }
    yield lines + checksumLine(hash.update(lines).digest('hex'));
  }
  await onDisk(path, async () => {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeFileAtomic(path, text(), { temporary: `${path}.tmp` });
  });
}

/** Reads what `writeCheckedLines` wrote. Returns undefined if the file is missing or damaged. */
async function readCheckedLines<Head, Line>(
  path: string,
): Promise<CheckedLines<Head, Line> | undefined> {
  const content = await readFile(path).catch((error: unknown) => {
    if (['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '')) return undefined;
    throw error;
  });
  if (content === undefined) return undefined;
  const checked = content.subarray(0, content.lastIndexOf('\n', -2) + 1);
  const checksum = content.toString('utf8', checked.length);
  if (checksum !== checksumLine(await sha256Of(checked))) return undefined;
  const lines = parsedLines(checked);
  const head = lines.next().value as Head;
  return { head, lines: withPauses(lines as Iterable<Line>, LINES_PER_SLICE) };
}

/** Returns the sha256 in lower-case hex. Pauses between slices of a large buffer. */
export async function sha256Of(bytes: Buffer): Promise<string> {
  const hash = createHash('sha256');
  for (let at = 0; at < bytes.length; at += HASHED_PER_SLICE) {
    hash.update(bytes.subarray(at, at + HASHED_PER_SLICE));
    await nextTurn();
  }
  return hash.digest('hex');
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
