import { watch as watchDirectory } from 'node:fs';
import { basename, dirname } from 'node:path';
import { FSWatcher } from 'chokidar';
import type { Clock } from '../lib/clock.js';
import { systemCode } from '../lib/errors.js';
import { nextTurn } from '../lib/slices.js';
import { type DirectoryStat, look } from './lister.js';

/** Called when something happened to a name in a watched directory, or, without a name, in it. */
export type EventListener = (directory: string, name: string | undefined) => void;

/**
 * Maximum number of directories that chokidar watches; `fs.watch` watches the others. Measured for
 * 1,000 directories: chokidar 335 ms of processor time and 29 MB, `fs.watch` 41 ms and 12 MB. For
 * 10,000: 1,930 ms and 108 MB, 190 ms and 39 MB.
 */
const MAX_BY_CHOKIDAR = 50;

/**
 * Returns the maximum number of directories that chokidar watches in a tree of a known size. None
 * in a larger tree: chokidar stats every file when it opens a watch. For a directory of 100 files
 * that takes 5.6 ms of processor time, and `fs.watch` takes 0.2 ms.
 */
export function maxByChokidar(directories: number): number {
  return directories > MAX_BY_CHOKIDAR ? 0 : MAX_BY_CHOKIDAR;
}

/**
 * The size from which on chokidar does not watch a directory, in bytes: some 500 to 1,500 names on
 * ext4, xfs, btrfs and tmpfs. At an event, chokidar lists the directory and stats every file in it,
 * once a second. That takes 101 ms for 10,000 files.
 */
const LARGE_BYTES = 32_768;

/**
 * The longest time for chokidar to open a watch, in ms. It never emits `ready` if a directory
 * becomes a file at that moment (8 of 40 in a bare loop).
 */
const MAX_OPENING_MS = 10_000;
/** The code of a watch that did not open in that time. */
export const WATCH_LATE = 'WATCH_LATE';

/** A watch of one library. */
interface LibraryWatch {
  /**
   * Resolves when the watch is open, and rejects if it cannot be opened. It settles within
   * MAX_OPENING_MS.
   */
  readonly opened: Promise<void>;
  close(): Promise<void> | void;
}

/** A watch that is opening or open. */
interface Watch extends LibraryWatch {
  readonly identity: string;
  readonly byChokidar: boolean;
  /** The watched directories directly in this one. */
  readonly below: Set<string>;
}

/**
 * Events of the file system. Any event may be missing, doubled or late, so it only says where to
 * look. All paths are absolute.
 *
 * Each directory has one watch. It is of chokidar in trees of ordinary size, and on systems other
 * than Linux. It is of `fs.watch` for large directories, and beyond a number of directories.
 *
 * A watch belongs to the inode and not to the path. If a directory is removed or moved, its own
 * watch reports that, and the watches below it are closed with it. The next scan opens watches on
 * what it finds.
 */
export class DirectoryEvents {
  readonly #maxByChokidar: number;
  readonly #watches = new Map<string, Watch>();
  readonly #closing = new Set<Promise<void>>();
  /** Directories that chokidar did not open in time; `fs.watch` watches them from then on. */
  readonly #late = new Set<string>();
  #byChokidar = 0;
  #closed = false;

  constructor(
    private readonly listener: EventListener,
    private readonly clock: Clock,
    maxByChokidar = MAX_BY_CHOKIDAR,
  ) {
    this.#maxByChokidar = process.platform !== 'linux' ? Number.POSITIVE_INFINITY : maxByChokidar;
  }

  /** Number of watched directories. */
  get watched(): number {
    return this.#watches.size;
  }

  /**
   * Watches one directory without those below it. Called before the directory is listed. An open
   * watch stays, unless it belongs to another directory; then it is replaced.
   *
   * @returns `watched`, or the reason why it is not: the code of the system (ENOSPC is the limit of
   *   watches), CLOSED, or WATCH_LATE. After WATCH_LATE, the next call uses `fs.watch`.
   */
  async watch(directory: string): Promise<string> {
    const there = await look(directory);
    if ('code' in there) return there.code;
    if (there.kind !== 'directory') return 'ENOTDIR';
    const { stat } = there;
    if (this.#watches.get(directory)?.identity !== identityOf(stat)) this.unwatch(directory);
    // chokidar shares watches by path, so the old one must be closed before a new one opens.
    if (this.#closing.size > 0) await Promise.all(this.#closing);
    // A scan that is still ending must not open a watch now: nothing would close it, and it would
    // keep the process alive.
    if (this.#closed) return 'CLOSED';
    const known = this.#watches.get(directory);
    const watch =
      this.watches(directory, stat) && known !== undefined ? known : this.#open(directory, stat);
    for (const below of known?.below ?? []) watch.below.add(below);
    this.#watches.set(directory, watch);
    this.#watches.get(dirname(directory))?.below.add(directory);
    if (known !== undefined && known !== watch) this.#close(known);
    try {
      await watch.opened;
      return 'watched';
    } catch (error) {
      const code = systemCode(error) ?? 'UNKNOWN';
      if (code === WATCH_LATE) this.#late.add(directory);
      if (this.#watches.get(directory) === watch) this.unwatch(directory);
      return code;
    }
  }

  /** Closes the watches on a directory and on all below it. */
  unwatch(directory: string): void {
    const watch = this.#watches.get(directory);
    if (watch === undefined) return;
    this.#watches.delete(directory);
    this.#watches.get(dirname(directory))?.below.delete(directory);
    for (const below of watch.below) this.unwatch(below);
    this.#close(watch);
  }

  /** Whether a directory is watched and, if `stat` is given, whether it is still that one. */
  watches(directory: string, stat?: DirectoryStat): boolean {
    const watch = this.#watches.get(directory);
    if (watch === undefined || stat === undefined) return watch !== undefined;
    const isOutgrown = watch.byChokidar && !this.#isForChokidar(directory, stat);
    return watch.identity === identityOf(stat) && !isOutgrown;
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const watch of this.#watches.values()) this.#close(watch);
    this.#watches.clear();
    await Promise.all(this.#closing);
  }

  /**
   * Whether chokidar may watch a directory. It treats a backslash as a separator, and would watch
   * another directory.
   */
  #isForChokidar(directory: string, { size }: DirectoryStat): boolean {
    const isSmall = size < LARGE_BYTES || this.#maxByChokidar === Number.POSITIVE_INFINITY;
    return isSmall && !directory.includes('\\') && !this.#late.has(directory);
  }

  #open(directory: string, stat: DirectoryStat): Watch {
    const byChokidar =
      this.#byChokidar < this.#maxByChokidar && this.#isForChokidar(directory, stat);
    const onEvent = (name: unknown) => this.#onEvent(directory, watch, name);
    // After an error the watch reports nothing any more, so the directory is looked at.
    const onError = () => this.listener(directory, undefined);
    const { opened, close } = byChokidar
      ? openChokidar(directory, this.clock, onEvent, onError)
      : openPlain(directory, onEvent, onError);
    const watch: Watch = {
      opened,
      close,
      byChokidar,
      identity: identityOf(stat),
      below: new Set(),
    };
    if (byChokidar) this.#byChokidar += 1;
    return watch;
  }

  #onEvent(directory: string, watch: Watch, name: unknown): void {
    if (typeof name !== 'string' || name === '') {
      this.listener(directory, undefined);
      return;
    }
    this.listener(directory, name);
    // An event of the directory itself carries its own name, and so does an event of an entry with
    // that name.
    if (name === basename(directory)) void this.#checkSelf(directory, watch);
  }

  async #checkSelf(directory: string, watch: Watch): Promise<void> {
    const there = await look(directory);
    if ('stat' in there && identityOf(there.stat) === watch.identity) return;
    if (this.#watches.get(directory) !== watch) return;
    this.unwatch(directory);
    this.listener(dirname(directory), basename(directory));
    this.listener(directory, undefined);
  }

  #close({ byChokidar, close }: Watch): void {
    if (byChokidar) this.#byChokidar -= 1;
    // If chokidar is closed in the middle of opening, it leaves a watch behind. It never is in the
    // middle between two turns of the event loop.
    const closed: Promise<void> = nextTurn()
      .then(close)
      .catch(() => {})
      .finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }
}

function openChokidar(
  directory: string,
  clock: Clock,
  onEvent: (name: unknown) => void,
  onError: () => void,
): LibraryWatch {
  const watcher = new FSWatcher({
    persistent: true,
    ignoreInitial: true,
    followSymlinks: false,
    depth: 0,
    atomic: false,
    // Without this, chokidar would watch each file too. The scanner looks at files itself.
    ignored: (path) => path !== directory,
  });
  let giveUp = (_: Error): void => {};
  const opened = new Promise<void>((resolve, reject) => {
    giveUp = reject;
    watcher.on('error', reject);
    watcher.once('ready', () => {
      watcher.on('error', onError);
      resolve();
    });
  });
  watcher.on('raw', (_event, name) => onEvent(name));
  watcher.add(directory);
  const late = Object.assign(new Error('chokidar did not open the watch in time'), {
    code: WATCH_LATE,
  });
  const timer = clock.after(MAX_OPENING_MS, () => giveUp(late), { background: true });
  return {
    opened: opened.finally(() => timer.cancel()),
    close: () => {
      giveUp(new Error('the watch was closed while it opened'));
      return watcher.close();
    },
  };
}

function openPlain(
  directory: string,
  onEvent: (name: unknown) => void,
  onError: () => void,
): LibraryWatch {
  try {
    const watcher = watchDirectory(directory, (_event, name) => onEvent(name));
    watcher.on('error', onError);
    return { opened: Promise.resolve(), close: () => watcher.close() };
  } catch (error) {
    return { opened: Promise.reject(error), close: () => {} };
  }
}

/** A source of fs events; tests have others than DirectoryEvents. */
export type FsEvents = Pick<DirectoryEvents, 'watch' | 'unwatch' | 'watches' | 'watched' | 'close'>;

function identityOf({ dev, ino, birthtimeMs }: DirectoryStat): string {
  return `${dev}:${ino}:${birthtimeMs}`;
}
