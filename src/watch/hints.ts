import type { Stats } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { FSWatcher } from 'chokidar';
import { systemCode } from '../lib/errors.js';

/** A name in a watched directory that something happened to; without a name, something happened somewhere in it. */
export type HintListener = (directory: string, name: string | undefined) => void;

/**
 * Words from the file system that something changed somewhere. Any of them may be missing, doubled or late, so they
 * only say where to look. Paths are absolute.
 */
export interface Hints {
  /**
   * Watches one directory, not what is below it; to be asked before the directory is listed. Watching it already is
   * fine, and if `identity` (device, inode, birth) is another one since, the old watch is replaced.
   *
   * @returns `watched`, or why not: the system's code (ENOSPC is the watch limit), NOT_WATCHABLE for a path that this
   *   kind of hints cannot express, or CLOSED
   */
  watch(directory: string, identity: string): Promise<'watched' | { readonly code: string }>;
  /** Gives up a directory and all below it. */
  unwatch(directory: string): void;
  watches(directory: string): boolean;
  /** How many directories are watched. */
  readonly watched: number;
  close(): Promise<void>;
}

/**
 * chokidar lists its directory and stats every file in it at each event: seconds of CPU in a large one. The scan looks
 * for itself, so chokidar is told that it is never time to list; what remains is the watch and the `raw` events.
 */
class QuietWatcher extends FSWatcher {
  override _throttle(...args: Parameters<FSWatcher['_throttle']>): ReturnType<FSWatcher['_throttle']> {
    return args[0] === 'readdir' ? false : super._throttle(...args);
  }
}

interface Watch {
  readonly watcher: FSWatcher;
  readonly identity: string;
  /** Resolves once, when the watch stands or with the code of what kept it from that. */
  readonly opened: Promise<string | undefined>;
}

/** One directory in the tree of all that are watched. */
interface Node {
  readonly below: Map<string, Node>;
  watch: Watch | undefined;
}

/**
 * Hints of chokidar, one watcher a directory: it tells when it is ready, it reports its own failure, and closing it
 * leaves nothing behind.
 *
 * A watch belongs to the inode and not to the path. When a directory is removed or moved its own watch says so, and
 * those below it are given up with it; the scan asks again for what it finds.
 */
export class ChokidarHints implements Hints {
  readonly #listener: HintListener;
  readonly #root: Node = { below: new Map(), watch: undefined };
  readonly #closing = new Set<Promise<void>>();
  #watched = 0;
  #closed = false;

  constructor(listener: HintListener) {
    this.#listener = listener;
  }

  get watched(): number {
    return this.#watched;
  }

  async watch(directory: string, identity: string): Promise<'watched' | { readonly code: string }> {
    // chokidar takes a backslash for a separator, and would watch another directory.
    if (directory.includes('\\')) return { code: 'NOT_WATCHABLE' };
    const known = this.#nodeFor(directory).watch;
    if (known !== undefined && known.identity !== identity) this.unwatch(directory);
    // chokidar shares a watch by path, so an old one must be closed before a new one is opened.
    if (this.#closing.size > 0) await Promise.all(this.#closing);
    // A scan that is still ending must not open what nobody would close: it would keep the process alive.
    if (this.#closed) return { code: 'CLOSED' };
    const node = this.#nodeFor(directory);
    const watch = node.watch ?? this.#open(directory, identity);
    if (node.watch === undefined) {
      node.watch = watch;
      this.#watched += 1;
    }
    const code = await watch.opened;
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
    this.#close(node);
  }

  watches(directory: string): boolean {
    return this.#find(namesOf(directory))?.watch !== undefined;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#close(this.#root);
    await Promise.all(this.#closing);
  }

  #open(directory: string, identity: string): Watch {
    const watcher = new QuietWatcher({
      persistent: true,
      ignoreInitial: true,
      followSymlinks: false,
      depth: 0,
      atomic: false,
    });
    const opened = new Promise<string | undefined>((resolve) => {
      watcher.on('error', (error) => resolve(systemCode(error) ?? 'UNKNOWN'));
      watcher.once('ready', () => resolve(undefined));
    });
    const watch: Watch = { watcher, identity, opened };
    watcher.on('raw', (_event, name) => this.#heard(directory, watch, name));
    void opened.then(() => {
      // An error from now on means that the watch died: only looking helps.
      watcher.on('error', () => this.#listener(directory, undefined));
    });
    watcher.add(directory);
    return watch;
  }

  #heard(directory: string, watch: Watch, name: unknown): void {
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
    if (stats !== undefined && directoryIdentity(stats) === watch.identity) return;
    if (this.#find(namesOf(directory))?.watch !== watch) return;
    this.unwatch(directory);
    this.#listener(dirname(directory), basename(directory));
    this.#listener(directory, undefined);
  }

  #close(node: Node): void {
    for (const child of node.below.values()) this.#close(child);
    node.below.clear();
    if (node.watch === undefined) return;
    const { watcher, opened } = node.watch;
    // Closed halfway through its opening, chokidar may leave a watch behind and never say that it is ready.
    const closed = opened.then(() => watcher.close()).finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
    node.watch = undefined;
    this.#watched -= 1;
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

/** What tells a directory from another one that takes its place. */
export function directoryIdentity({ dev, ino, birthtimeMs }: Stats): string {
  return `${dev}:${ino}:${birthtimeMs}`;
}

function namesOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '');
}
