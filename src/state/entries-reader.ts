import { joinPath } from '../lib/file.js';
import { nextTurn, SLICE_ITEMS } from '../lib/slices.js';
import { pathBelow } from '../lib/text.js';
import { type Entry, type ItemKey, isLiveAt, type QuarantinedItem } from './entry.js';
import { decode, statusOf, type UrlBases } from './line.js';

/** The number of records by status. */
export type Counts = Readonly<Record<Entry['status'], number>>;

/** Selects records; all of them if nothing is given. */
export interface Selection {
  readonly folder?: string | undefined;
  /** Only records below this directory of the folder. */
  readonly directory?: string | undefined;
  readonly status?: readonly Entry['status'][];
  /** Only records whose unparsed line passes this test. */
  readonly where?: (line: string) => boolean;
}

/** A record as text, with its location. */
export type PlacedLine = readonly [folder: string, directory: string, name: string, line: string];

/**
 * The queries on records, built on a few primitives. `Entries` implements the primitives for the
 * records in memory, `CommittedEntries` for those on disk.
 *
 * Each query parses a record into a new object: compare contents, not references. Iterables are
 * live: records may change while you iterate. A pass over 1,000,000 records takes 2 s if each is
 * parsed, and 0.1 s if the status excludes them; use `slices` for it.
 */
export abstract class EntriesReader {
  abstract readonly bases: UrlBases;

  /** Returns the record as text; `statusOf` reads its status without parsing it. */
  abstract line(folder: string, path: string): string | undefined;

  /**
   * Yields all records, those of one folder, or those below one directory of it, in no particular
   * order.
   */
  abstract lines(folder?: string, directory?: string): Iterable<PlacedLine>;

  /** Yields the files directly in `directory`, with their records as text. */
  abstract linesIn(
    folder: string,
    directory: string,
  ): Iterable<readonly [name: string, line: string]>;

  /** Returns the names of the files directly in `directory` that have records in memory. */
  abstract names(folder: string, directory: string): Iterable<string>;

  /**
   * Returns the names of the directories directly in `directory` that have records in memory, at
   * any depth.
   */
  abstract knownDirectories(folder: string, directory: string): Iterable<string>;

  /** Returns the paths of the records that a walk by `linesIn` and `knownDirectories` may miss. */
  abstract pathsDeletedUncommitted(folder: string): Promise<string[]>;

  /** Counts the records of one folder, or of all. */
  abstract counts(folder?: string): Counts;

  /** Returns the names of the folders that have records. */
  abstract folders(): Iterable<string>;

  /**
   * Yields the keys of the quarantined records, in time proportional to their number. May yield
   * others too.
   */
  abstract quarantinedPlaces(): Iterable<ItemKey>;

  get size(): number {
    return Object.values(this.counts()).reduce((sum, count) => sum + count, 0);
  }

  /** Returns the status of a record, which is not parsed. */
  statusOf(folder: string, path: string): Entry['status'] | undefined {
    const line = this.line(folder, path);
    return line === undefined ? undefined : statusOf(line);
  }

  get(folder: string, path: string): Entry | undefined {
    const line = this.line(folder, path);
    return line === undefined ? undefined : decode(line, folder, path, this.bases);
  }

  /** Yields the records below `directory`, in time proportional to its directories and records. */
  underDirectory(folder: string, directory: string): Iterable<Entry> {
    return parsed(this.lines(folder, directory), this.bases);
  }

  /**
   * Yields all records, those of one folder, or those with one of the statuses, without yielding to
   * the event loop.
   */
  all(folder?: string, ...status: Entry['status'][]): Iterable<Entry> {
    return parsed(this.lines(folder), this.bases, { status });
  }

  /**
   * Yields the selected records in slices of a few milliseconds; the event loop runs between two.
   * Consume each slice before you ask for the next: each record is read when its turn comes, in its
   * latest version.
   */
  async *slices(selection: Selection = {}): AsyncGenerator<Iterable<Entry>> {
    const counts = this.counts(selection.folder);
    if (selection.status?.every((status) => counts[status] === 0)) return;
    const lines = this.lines(selection.folder, selection.directory)[Symbol.iterator]();
    let hasMore = true;
    // A slice is read while it is consumed, so that each record is in its latest version.
    // `inSlices` would read all of its lines first.
    const slice = function* () {
      for (let i = 0; i < SLICE_ITEMS && hasMore; i += 1) {
        const next = lines.next();
        if (next.done) hasMore = false;
        else yield next.value;
      }
    };
    while (hasMore) {
      yield parsed(slice(), this.bases, selection);
      await nextTurn();
    }
  }

  /** Yields the quarantined items, in time proportional to their number. */
  *quarantined(): Iterable<QuarantinedItem> {
    for (const { folder, path } of this.quarantinedPlaces()) {
      const entry = this.get(folder, path);
      if (entry?.status === 'quarantined') yield entry;
    }
  }

  /**
   * Returns the record of another existing file that has, or may have had, its document at `url`.
   */
  ownerOf(url: string, except: ItemKey): Entry | undefined {
    for (const entry of this.mayBeAt(url, except)) if (isLiveAt(entry, url)) return entry;
    return undefined;
  }

  /**
   * Yields the records of all files, in any folder, that have or ever had this URL. May yield
   * others too.
   *
   * @param except a file whose record is not needed
   */
  *mayBeAt(url: string, except?: ItemKey): Iterable<Entry> {
    const seen = new Set<string>();
    for (const base of this.bases) {
      const path = base?.url === undefined ? undefined : pathBelow(base.url, url);
      if (path === undefined) continue;
      const decomposed = path.normalize('NFD');
      for (const form of decomposed === path ? [path] : [path, decomposed]) {
        if (seen.has(form)) continue;
        seen.add(form);
        for (const folder of this.folders()) {
          if (form === except?.path && folder === except.folder) continue;
          const entry = this.get(folder, form);
          if (entry !== undefined) yield entry;
        }
      }
    }
  }
}

function* parsed(
  lines: Iterable<PlacedLine>,
  bases: UrlBases,
  { status = [], where }: Selection = {},
): Iterable<Entry> {
  for (const [folder, directory, name, line] of lines) {
    if (status.length > 0 && !status.includes(statusOf(line))) continue;
    if (where?.(line) === false) continue;
    yield decode(line, folder, joinPath(directory, name), bases);
  }
}

export function zeroCounts(): Record<Entry['status'], number> {
  return {
    pending: 0,
    accepted: 0,
    confirmed: 0,
    quarantined: 0,
    gone: 0,
    skipped: 0,
    removing: 0,
    removed: 0,
  };
}
