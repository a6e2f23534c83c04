import { setImmediate as nextTurn } from 'node:timers/promises';
import { joinPath } from '../lib/file.js';
import { pathBelow } from '../lib/text.js';
import { type Entry, isLiveAt, type Place, type QuarantinedItem } from './entry.js';
import { decode, statusOf, type UrlBases } from './line.js';

/** How many records have each status. */
export type Counts = Readonly<Record<Entry['status'], number>>;

/** Which records a pass is about: all where nothing is given. */
export interface Selection {
  readonly folder?: string | undefined;
  /** Only what is below this directory of the folder. */
  readonly directory?: string | undefined;
  readonly status?: readonly Entry['status'][];
  /** Only those whose line, not parsed yet, is as this says. */
  readonly where?: (line: string) => boolean;
}

/** A record as text, and where it belongs. */
export type Placed = readonly [folder: string, directory: string, name: string, line: string];

/** So many records are looked at in a slice. */
const SLICE = 1_000;

/**
 * Everything that is asked of records, over a few primitives: `Entries` has those of the records in
 * memory, `CommittedEntries` those of what is on disk.
 *
 * A record is parsed as it is asked for, each time into a new object: compare what it contains.
 * Iterables are live: they may be followed while records change. A pass over all of 1,000,000
 * records takes 2 s where each is parsed, and 0.1 s where their status leaves them out: use
 * `slices` for it.
 */
export abstract class EntriesReader {
  abstract readonly bases: UrlBases;

  /** The record as text; `statusOf` reads its status without parsing it. */
  abstract line(folder: string, path: string): string | undefined;

  /** Everything, all of one folder, or what is below one directory of it, as it stands here. */
  abstract lines(folder?: string, directory?: string): Iterable<Placed>;

  /** The files directly in `directory`, each with its record as text. */
  abstract linesIn(
    folder: string,
    directory: string,
  ): Iterable<readonly [name: string, line: string]>;

  /**
   * The names of the directories directly in `directory` that have records in memory in or below
   * them.
   */
  abstract knownDirectories(folder: string, directory: string): Iterable<string>;

  /** The paths of records that neither `linesIn` nor `knownDirectories` leads to. */
  abstract forgottenPaths(folder: string): Promise<string[]>;

  /** Of one folder, or of all. */
  abstract counts(folder?: string): Counts;

  /** The names of the folders that have records. */
  abstract folders(): Iterable<string>;

  /** Where the quarantined ones are, at a cost of their number; perhaps others as well. */
  abstract quarantinedPlaces(): Iterable<Place>;

  get size(): number {
    return Object.values(this.counts()).reduce((sum, count) => sum + count, 0);
  }

  get(folder: string, path: string): Entry | undefined {
    const line = this.line(folder, path);
    return line === undefined ? undefined : decode(line, folder, path, this.bases);
  }

  /** The records of all files below `directory`, at a cost of its directories and its records. */
  underDirectory(folder: string, directory: string): Iterable<Entry> {
    return parsed(this.lines(folder, directory), this.bases);
  }

  /** All records, or all of one folder, or those with one of the statuses, without a pause. */
  all(folder?: string, ...status: Entry['status'][]): Iterable<Entry> {
    return parsed(this.lines(folder), this.bases, { status });
  }

  /**
   * The chosen records, in slices that take a few milliseconds each; the event loop turns between
   * two. Iterate each slice as it comes: a record is read when its turn comes, so that it is never
   * an older one.
   */
  async *slices(selection: Selection = {}): AsyncGenerator<Iterable<Entry>> {
    const lines = this.lines(selection.folder, selection.directory)[Symbol.iterator]();
    let hasMore = true;
    const slice = function* () {
      for (let i = 0; i < SLICE && hasMore; i += 1) {
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

  /** The quarantined ones, at a cost of their number. */
  *quarantined(): Iterable<QuarantinedItem> {
    for (const { folder, path } of this.quarantinedPlaces()) {
      const entry = this.get(folder, path);
      if (entry?.status === 'quarantined') yield entry;
    }
  }

  /**
   * The record of another file that is there, and has this URL for its document or may have had it.
   */
  ownerOf(url: string, except: Place): Entry | undefined {
    for (const entry of this.mayBeAt(url))
      if ((entry.folder !== except.folder || entry.path !== except.path) && isLiveAt(entry, url))
        return entry;
    return undefined;
  }

  /**
   * The records of all files, of any folder, that have or ever had this URL, and of some others.
   */
  *mayBeAt(url: string): Iterable<Entry> {
    const seen = new Set<string>();
    for (const base of this.bases) {
      const path = base?.url === undefined ? undefined : pathBelow(base.url, url);
      if (path === undefined) continue;
      for (const form of new Set([path, path.normalize('NFD')])) {
        if (seen.has(form)) continue;
        seen.add(form);
        for (const folder of this.folders()) {
          const entry = this.get(folder, form);
          if (entry !== undefined) yield entry;
        }
      }
    }
  }
}

function* parsed(
  lines: Iterable<Placed>,
  bases: UrlBases,
  { status = [], where }: Selection = {},
): Iterable<Entry> {
  for (const [folder, directory, name, line] of lines) {
    if (status.length > 0 && !status.includes(statusOf(line))) continue;
    if (where?.(line) === false) continue;
    yield decode(line, folder, joinPath(directory, name), bases);
  }
}

export function noCounts(): Record<Entry['status'], number> {
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
