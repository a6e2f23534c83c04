import { watch as watchDirectory } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { FSWatcher } from 'chokidar';
import { systemCode } from '../lib/errors.js';
import type { DirectoryStat } from './lister.js';

/** A name in a watched directory that something happened to; without a name, something happened somewhere in it. */
export type EventListener = (directory: string, name: string | undefined) => void;

/** What distinguishes a directory from another one that takes its place, and how large it is. */
export type Identified = Pick<DirectoryStat, 'dev' | 'ino' | 'birthtimeMs' | 'size'>;

/**
 * Events of the file system. Any of them may be missing, doubled or late, so they only say where to look. Paths are
 * absolute.
 */
export interface FsEvents {
  /**
   * Watches one directory, not what is below it; to be asked before the directory is listed. Watching it already is
   * fine, and if it is another one since, the old watch is replaced.
   *
   * @returns `watched`, or why not: the system's code (ENOSPC is the watch limit), or CLOSED
   */
  watch(directory: string, stat: Identified): Promise<'watched' | { readonly code: string }>;
  /** Gives up a directory and all below it. */
  unwatch(directory: string): void;
  /** Whether a directory is watched, and if `stat` is given, whether it is that one. */
  watches(directory: string, stat?: Identified): boolean;
  /** How many directories are watched. */
  readonly watched: number;
  close(): Promise<void>;
}

/**
 * So many directories are watched by chokidar, `fs.watch` serves the others. Measured for 1,000 directories: chokidar 335 ms
 * of processor time and 29 MB, `fs.watch` 41 ms and 12 MB; for 10,000: 1,930 ms and 108 MB, 190 ms and 39 MB.
 */
const MOST_BY_CHOKIDAR = 250;
/**
 * A directory of this size in bytes (some 500 to 1,500 names on ext4, xfs, btrfs and tmpfs) is not watched by chokidar. It
 * lists its directory and stats every file in it at an event, once a second: 101 ms for 10,000 files.
 */
const LARGE_BYTES = 32_768;

interface Watch {
  readonly identity: string;
  readonly by: 'chokidar' | 'fs';
  /** Resolves once, when the watch stands or with the code of what kept it from that. */
  readonly opened: Promise<string | undefined>;
  readonly close: () => Promise<void> | void;
}

/** One directory in the tree of all that are watched. */
interface Node {
  readonly below: Map<string, Node>;
  watch: Watch | undefined;
}

/**
 * One watcher a directory: chokidar in trees of ordinary size, where it polls, and on other systems than Linux; `fs.watch`
 * for large directories and for those above a number of them.
 *
 * A watch belongs to the inode and not to the path. When a directory is removed or moved its own watch says so, and
 * those below it are given up with it; the scan asks again for what it finds.
 */
export class DirectoryEvents implements FsEvents {
  readonly #listener: EventListener;
  readonly #mostByChokidar: number;
  readonly #root: Node = { below: new Map(), watch: undefined };
  readonly #closing = new Set<Promise<void>>();
  #watched = 0;
  #byChokidar = 0;
  #closed = false;

  constructor(listener: EventListener, mostByChokidar = MOST_BY_CHOKIDAR) {
    this.#listener = listener;
    this.#mostByChokidar = mustBeChokidar() ? Number.POSITIVE_INFINITY : mostByChokidar;
  }

  get watched(): number {
    return this.#watched;
  }

  async watch(directory: string, stat: Identified): Promise<'watched' | { readonly code: string }> {
    const identity = identityOf(stat);
    const known = this.#nodeFor(directory).watch;
    if (known !== undefined && known.identity !== identity) this.unwatch(directory);
    // chokidar shares a watch by path, so an old one must be closed before a new one is opened.
    if (this.#closing.size > 0) await Promise.all(this.#closing);
    // A scan that is still ending must not open what nobody would close: it would keep the process alive.
    if (this.#closed) return { code: 'CLOSED' };
    const node = this.#nodeFor(directory);
    const before = node.watch;
    if (before === undefined || this.#isOutgrown(before, stat)) {
      node.watch = this.#open(directory, stat);
      if (before === undefined) this.#watched += 1;
      else this.#close(before);
    }
    const { watch } = node;
    const code = await watch?.opened;
    if (code === undefined) return 'watched';
    if (this.#find(namesOf(directory))?.watch === watch) this.unwatch(directory);
    return { code };
  }

  unwatch(directory: string): void {
    const names = namesOf(directory);
    const last = names.pop();
    const parent = this.#find(names);
    const node = last === undefined ? this.#root : parent?.below.get(last);
    if (node === undefined) return;
    if (last !== undefined) parent?.below.delete(last);
    this.#closeBelow(node);
  }

  watches(directory: string, stat?: Identified): boolean {
    const watch = this.#find(namesOf(directory))?.watch;
    if (watch === undefined || stat === undefined) return watch !== undefined;
    return watch.identity === identityOf(stat) && !this.#isOutgrown(watch, stat);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#closeBelow(this.#root);
    await Promise.all(this.#closing);
  }

  #isOutgrown({ by }: Watch, { size }: Identified): boolean {
    return by === 'chokidar' && size >= LARGE_BYTES && Number.isFinite(this.#mostByChokidar);
  }

  #open(directory: string, stat: Identified): Watch {
    const isLarge = stat.size >= LARGE_BYTES && Number.isFinite(this.#mostByChokidar);
    // chokidar takes a backslash for a separator, and would watch another directory.
    const byChokidar = this.#byChokidar < this.#mostByChokidar && !isLarge && !directory.includes('\\');
    return byChokidar ? this.#openChokidar(directory, stat) : this.#openPlain(directory, stat);
  }

  #openPlain(directory: string, stat: Identified): Watch {
    const identity = identityOf(stat);
    try {
      const watcher = watchDirectory(directory, (_event, name) => this.#onEvent(directory, watch, name));
      // An error from now on means that the watch died: only looking helps.
      watcher.on('error', () => this.#listener(directory, undefined));
      const close = () => watcher.close();
      const watch: Watch = { identity, by: 'fs', opened: Promise.resolve(undefined), close };
      return watch;
    } catch (error) {
      const opened = Promise.resolve(systemCode(error) ?? 'UNKNOWN');
      return { identity, by: 'fs', opened, close: () => {} };
    }
  }

  #openChokidar(directory: string, stat: Identified): Watch {
    const watcher = new FSWatcher({
      persistent: true,
      ignoreInitial: true,
      followSymlinks: false,
      depth: 0,
      atomic: false,
      // The scan looks for itself; chokidar would watch each file, too.
      ignored: (path) => path !== directory,
    });
    const opened = new Promise<string | undefined>((resolve) => {
      watcher.on('error', (error) => resolve(systemCode(error) ?? 'UNKNOWN'));
      watcher.once('ready', () => resolve(undefined));
    });
    this.#byChokidar += 1;
    const close = async () => {
      this.#byChokidar -= 1;
      // Closed halfway through its opening, chokidar may leave a watch behind and never say that it is ready.
      await opened;
      await watcher.close();
    };
    const watch: Watch = { identity: identityOf(stat), by: 'chokidar', opened, close };
    watcher.on('raw', (_event, name) => this.#onEvent(directory, watch, name));
    void opened.then(() => {
      // An error from now on means that the watch died: only looking helps.
      watcher.on('error', () => this.#listener(directory, undefined));
    });
    watcher.add(directory);
    return watch;
  }

  #onEvent(directory: string, watch: Watch, name: unknown): void {
    // Polling (CHOKIDAR_USEPOLLING) gives an absolute path: the directory itself.
    if (typeof name !== 'string' || name === '' || name.startsWith('/')) {
      this.#listener(directory, undefined);
      return;
    }
    this.#listener(directory, name);
    // What happens to the directory itself comes with its own name, as for an entry that is called the same.
    if (name === basename(directory)) void this.#checkSelf(directory, watch);
  }

  async #checkSelf(directory: string, watch: Watch): Promise<void> {
    const stats = await lstat(directory).catch(() => undefined);
    if (stats !== undefined && identityOf(stats) === watch.identity) return;
    if (this.#find(namesOf(directory))?.watch !== watch) return;
    this.unwatch(directory);
    this.#listener(dirname(directory), basename(directory));
    this.#listener(directory, undefined);
  }

  #closeBelow(node: Node): void {
    for (const child of node.below.values()) this.#closeBelow(child);
    node.below.clear();
    if (node.watch === undefined) return;
    this.#close(node.watch);
    node.watch = undefined;
    this.#watched -= 1;
  }

  #close(watch: Watch): void {
    const ended = watch.close();
    if (ended === undefined) return;
    const closed: Promise<void> = ended.finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }

  #find(names: readonly string[]): Node | undefined {
    let node: Node | undefined = this.#root;
    for (const name of names) node = node?.below.get(name);
    return node;
  }

  #nodeFor(directory: string): Node {
    let node = this.#root;
    for (const name of namesOf(directory)) {
      let next = node.below.get(name);
      if (next === undefined) {
        next = { below: new Map(), watch: undefined };
        node.below.set(name, next);
      }
      node = next;
    }
    return node;
  }
}

/** Other systems report changes in ways that chokidar knows; and only chokidar polls. */
function mustBeChokidar(): boolean {
  const { CHOKIDAR_USEPOLLING: polling } = process.env;
  return process.platform !== 'linux' || (polling !== undefined && polling !== 'false' && polling !== '0');
}

function identityOf({ dev, ino, birthtimeMs }: Identified): string {
  return `${dev}:${ino}:${birthtimeMs}`;
}

function namesOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '');
}
