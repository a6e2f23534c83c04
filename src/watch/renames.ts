import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import {
  type Entry,
  hasContent,
  type ItemKey,
  isAway,
  isMissing,
  itemName,
  renamedFrom,
  renamedTo,
} from '../state/entry.js';
import type { State } from '../state/state.js';

/** So many files that went, and that came, are remembered; the oldest are forgotten first. */
const KEPT = 20_000;
/**
 * A file that came longer than this before another went is a link to it or was one, and no rename.
 * In ms.
 */
const LONGEST_MS = 60_000;

/** A file that came, and when, in ms since the epoch. */
interface Came extends ItemKey {
  readonly at: number;
}

/**
 * Finds the files that went and came as one, under another name: a rename keeps the inode, the time
 * of modification and the content.
 *
 * Whichever of the two is noticed first is remembered by its inode, until the other is noticed.
 * Then the log says so, and the histories of both records.
 */
export class Renames {
  readonly #went = new Map<number, ItemKey>();
  readonly #came = new Map<number, Came>();

  constructor(
    private readonly state: State,
    private readonly clock: Clock,
    private readonly log: Logger,
  ) {}

  /** The file of a record is not there any more; to be called when the record says so. */
  went({ folder, path, version: { ino } }: Entry): void {
    const came = this.#came.get(ino);
    const isRecent = came !== undefined && this.clock.now() - came.at <= LONGEST_MS;
    if (isRecent && this.#pair({ folder, path }, came)) return;
    keep(this.#went, ino, { folder, path });
  }

  /** A file was read that was not there before; to be called when its record says so. */
  came({ folder, path, version: { ino } }: Entry): void {
    const went = this.#went.get(ino);
    if (went !== undefined && this.#pair(went, { folder, path })) return;
    keep(this.#came, ino, { folder, path, at: this.clock.now() });
  }

  /** @returns whether the two are one file, which is told then */
  #pair(before: ItemKey, after: ItemKey): boolean {
    const { log, state } = this;
    const from = state.get(before.folder, before.path);
    const to = state.get(after.folder, after.path);
    if (from === undefined || to === undefined || !isSameFile(from, to)) return false;
    if (!isAway(from) || !isMissing(from) || isMissing(to)) return false;
    this.#went.delete(to.version.ino);
    this.#came.delete(to.version.ino);
    state.put(renamedTo(from, after));
    state.put(renamedFrom(to, before));
    const fields = { event: 'renamed', ...after, from: before.path };
    log.info(fields, `renamed ${itemName(before)} to ${itemName(after)}`);
    return true;
  }
}

function isSameFile({ version: a }: Entry, { version: b }: Entry): boolean {
  if (!hasContent(a) || !hasContent(b)) return false;
  return a.ino === b.ino && a.mtimeMs === b.mtimeMs && a.sha256 === b.sha256;
}

function keep<T>(map: Map<number, T>, ino: number, value: T): void {
  map.delete(ino);
  map.set(ino, value);
  if (map.size <= KEPT) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}
