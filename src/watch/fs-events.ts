import { watch as watchDirectory } from 'node:fs';
import { basename, dirname } from 'node:path';
import { FSWatcher } from 'chokidar';
import type { Clock } from '../lib/clock.js';
import { systemCode } from '../lib/errors.js';
import { nextTurn } from '../lib/slices.js';
import { type DirectoryStat, look } from './lister.js';

/**
 * A name in a watched directory that something happened to; without a name, something happened
 * somewhere in it.
 */
export type EventListener = (directory: string, name: string | undefined) => void;

/**
 * So many directories are watched by chokidar, `fs.watch` serves the others. Measured for 1,000
 * directories: chokidar 335 ms of processor time and 29 MB, `fs.watch` 41 ms and 12 MB; for 10,000:
 * 1,930 ms and 108 MB, 190 ms and 39 MB.
 */
const MOST_BY_CHOKIDAR = 250;
/**
 * A directory of this size in bytes (some 500 to 1,500 names on ext4, xfs, btrfs and tmpfs) is not
 * watched by chokidar. It lists its directory and stats every file in it at an event, once a
 * second: 101 ms for 10,000 files.
 */
const LARGE_BYTES = 32_768;

/**
 * The time that chokidar has to open a watch, in ms. It never says that it is ready where a
 * directory becomes a file just when it is opened (8 of 40 in a bare loop).
 */
const LONGEST_OPENING_MS = 10_000;
/** The code of a watch that was not open in that time. */
export const WATCH_LATE = 'WATCH_LATE';

/** A watch of one library. */
interface LibraryWatch {
  /**
   * Resolves when the watch stands; rejects with what kept it from that. It is settled after some
   * seconds, whatever happens.
   */
  readonly opened: Promise<void>;
  close(): Promise<void> | void;
}

/** A watch that opens or stands. */
interface Watch extends LibraryWatch {
  readonly identity: string;
  readonly byChokidar: boolean;
  /** The watched directories that stand in this one. */
  readonly below: Set<string>;
}

/**
 * Events of the file system. Any of them may be missing, doubled or late, so they only say where to
 * look. Paths are absolute.
 *
 * One watcher a directory: chokidar in trees of ordinary size, and on other systems than Linux;
 * `fs.watch` for large directories, and for those above a number of them.
 *
 * A watch belongs to the inode and not to the path. When a directory is removed or moved its own
 * watch says so, and those below it are given up with it; the scan asks again for what it finds.
 */
export class DirectoryEvents {
  readonly #mostByChokidar: number;
  readonly #watches = new Map<string, Watch>();
  readonly #closing = new Set<Promise<void>>();
  /** Those that chokidar did not open in time; `fs.watch` serves them from then on. */
  readonly #late = new Set<string>();
  #byChokidar = 0;
  #closed = false;

  constructor(
    private readonly listener: EventListener,
    private readonly clock: Clock,
    mostByChokidar = MOST_BY_CHOKIDAR,
  ) {
    this.#mostByChokidar = process.platform !== 'linux' ? Number.POSITIVE_INFINITY : mostByChokidar;
  }

  /** How many directories are watched. */
  get watched(): number {
    return this.#watches.size;
  }

  /**
   * Watches one directory, not what is below it; to be asked before the directory is listed.
   * Watching it already is fine, and if it is another one since, the old watch is replaced.
   *
   * @returns `watched`, or why not: the system's code (ENOSPC is the watch limit), CLOSED, or
   *   WATCH_LATE, after which the next call watches it in another way
   */
  async watch(directory: string): Promise<string> {
    const there = await look(directory);
    if ('code' in there) return there.code;
    if (there.kind !== 'directory') return 'ENOTDIR';
    const { stat } = there;
    if (this.#watches.get(directory)?.identity !== identityOf(stat)) this.unwatch(directory);
    // chokidar shares a watch by path, so an old one must be closed before a new one is opened.
    if (this.#closing.size > 0) await Promise.all(this.#closing);
    // A scan that is still ending must not open what nobody would close: it would keep the process
    // alive.
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

  /** Gives up a directory and all below it. */
  unwatch(directory: string): void {
    const watch = this.#watches.get(directory);
    if (watch === undefined) return;
    this.#watches.delete(directory);
    this.#watches.get(dirname(directory))?.below.delete(directory);
    for (const below of watch.below) this.unwatch(below);
    this.#close(watch);
  }

  /** Whether a directory is watched, and if `stat` is given, whether it is that one. */
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
   * Whether chokidar may watch a directory; it takes a backslash for a separator, and would watch
   * another one.
   */
  #isForChokidar(directory: string, { size }: DirectoryStat): boolean {
    const isSmall = size < LARGE_BYTES || this.#mostByChokidar === Number.POSITIVE_INFINITY;
    return isSmall && !directory.includes('\\') && !this.#late.has(directory);
  }

  #open(directory: string, stat: DirectoryStat): Watch {
    const byChokidar =
      this.#byChokidar < this.#mostByChokidar && this.#isForChokidar(directory, stat);
    const onEvent = (name: unknown) => this.#onEvent(directory, watch, name);
    // An error of a watch that stood means that it died: only looking helps.
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
    // What happens to the directory itself comes with its own name, as for an entry that is called
    // the same.
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
    // chokidar closed halfway through its opening leaves a watch behind, but never between two
    // turns of the event loop.
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
    // The scan looks for itself; chokidar would watch each file, too.
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
  const late = Object.assign(new Error('chokidar does not say that it is ready'), {
    code: WATCH_LATE,
  });
  const timer = clock.after(LONGEST_OPENING_MS, () => giveUp(late), { background: true });
  return {
    opened: opened.finally(() => timer.cancel()),
    close: () => {
      giveUp(new Error('it was closed while it opened'));
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

/** The public face of DirectoryEvents, for another source of events. */
export type FsEvents = Pick<DirectoryEvents, 'watch' | 'unwatch' | 'watches' | 'watched' | 'close'>;

function identityOf({ dev, ino, birthtimeMs }: DirectoryStat): string {
  return `${dev}:${ino}:${birthtimeMs}`;
}
