import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import {
  type Entry,
  hasContent,
  type ItemKey,
  isAway,
  isMissing,
  itemName,
} from '../state/entry.js';
import { renamedFrom, renamedTo } from '../state/history.js';
import type { State } from '../state/state.js';

/** Maximum number of files that are remembered on each side. The oldest are forgotten first. */
const MAX_REMEMBERED = 20_000;
/**
 * The longest time between a new name and the removal of the old one, in ms. After that, the new
 * name was a hard link, and its file was not renamed.
 */
const MAX_PAIR_MS = 60_000;

/** A file that came, and when, in ms since the epoch. */
interface Came extends ItemKey {
  readonly at: number;
}

/**
 * Finds renames: a file that went and a file that came with the same inode, mtime and content.
 *
 * The side that is noticed first is remembered by its inode until the other one is noticed. Then
 * the log and the histories of both records say so.
 */
export class Renames {
  readonly #went = new Map<number, ItemKey>();
  readonly #came = new Map<number, Came>();

  constructor(
    private readonly state: State,
    private readonly clock: Clock,
    private readonly log: Logger,
  ) {}

  /** Called after the record of a file says that the file is gone. */
  went({ folder, path, version: { ino } }: Entry): void {
    const came = this.#came.get(ino);
    const isRecent = came !== undefined && this.clock.now() - came.at <= MAX_PAIR_MS;
    if (isRecent && this.#pair({ folder, path }, came)) return;
    remember(this.#went, ino, { folder, path });
  }

  /** Called after the record of a new file, or of one that is back, says that it was read. */
  came({ folder, path, version: { ino } }: Entry): void {
    const went = this.#went.get(ino);
    if (went !== undefined && this.#pair(went, { folder, path })) return;
    remember(this.#came, ino, { folder, path, at: this.clock.now() });
  }

  /** Records a rename if the two are one file. @returns whether they are */
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

function remember<T>(map: Map<number, T>, ino: number, value: T): void {
  map.delete(ino);
  map.set(ino, value);
  if (map.size <= MAX_REMEMBERED) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}
