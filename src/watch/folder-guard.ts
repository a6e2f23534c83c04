import type { FolderConfig } from '../config/config.js';
import { joinPath } from '../lib/file.js';
import { Modes, type Transitions } from '../lib/modes.js';
import type { Debouncer } from './debouncer.js';
import type { WatchDeps } from './deps.js';
import type { FsEvents } from './fs-events.js';
import { look } from './lister.js';
import type { FolderMounts } from './mounts.js';
import type { FolderRoot } from './root.js';
import type { ScanQueue } from './scan-queue.js';

/** The modes of the watch of one folder. FolderWatch describes each of them. */
export type FolderMode = 'starting' | 'scanning' | 'following' | 'held' | 'stopped';

const TRANSITIONS: Transitions<FolderMode> = {
  starting: ['scanning', 'held', 'stopped'],
  scanning: ['following', 'held', 'stopped'],
  following: ['scanning', 'held', 'stopped'],
  held: ['scanning', 'stopped'],
  stopped: [],
};

export function folderModes(): Modes<FolderMode> {
  return new Modes<FolderMode>('starting', TRANSITIONS);
}

/** Whether the folder may be looked at in its current mode. */
export function mayLook(modes: Modes<FolderMode>): boolean {
  return modes.is('scanning', 'following');
}

/** The dependencies of the guard of one folder. */
export interface GuardDeps extends WatchDeps {
  readonly folder: FolderConfig;
  readonly modes: Modes<FolderMode>;
  readonly root: FolderRoot;
  readonly mounts: FolderMounts;
  readonly debouncer: Debouncer;
  readonly scans: ScanQueue;
  /** Undefined if changes are found by scans alone. */
  readonly events: FsEvents | undefined;
  /**
   * The digest of each directory at its last listing. A directory with the same digest is not
   * compared again. The digest is deleted while the directory is *open*: something in it changed,
   * is not at rest, cannot be read, or waits for another name.
   */
  readonly digests: Map<string, number>;
}

/**
 * Guards the folder against conclusions from a root that is missing or replaced. Every conclusion
 * about its files asks `mayLook` first, and every removal asks `isCertain`.
 */
export class FolderGuard {
  /** Whether the next check accepts any directory that is not empty. */
  #acceptsAny = false;

  constructor(private readonly deps: GuardDeps) {}

  /** Whether the folder may be looked at now. */
  get mayLook(): boolean {
    return mayLook(this.deps.modes);
  }

  /** Whether a path is on a file system below the root that is away. */
  isUnmounted(path: string): boolean {
    return this.deps.mounts.isUnmounted(path);
  }

  /** Returns the absolute path of a path of the folder. Links on the way to it are resolved. */
  absolute(path: string): string {
    return joinPath(this.deps.root.real, path);
  }

  /** Has the next check accept whatever directory stands at the path, unless it is empty. */
  acceptAnyRoot(): void {
    this.#acceptsAny = true;
  }

  /** Checks the root, and enters *scanning* if it is there. @returns whether a scan may run */
  async beginScan(): Promise<boolean> {
    const { modes, root } = this.deps;
    await this.#check();
    if (modes.is('stopped') || !root.isThere) return false;
    if (!modes.is('scanning')) modes.enter('scanning');
    return true;
  }

  /** Enters *following*, unless the folder was held or the watch stopped meanwhile. */
  endScan(): void {
    const { modes } = this.deps;
    if (modes.is('scanning')) modes.enter('following');
  }

  /**
   * Checks the root and the mounts below it. Requests a full scan if the root is there and either
   * of them changed, and if the folder was held so far.
   */
  async check(): Promise<'same' | 'changed'> {
    const { modes, root, scans } = this.deps;
    const isChanged = await this.#check();
    const needsScan = isChanged || modes.is('held');
    if (needsScan && root.isThere && !modes.is('stopped')) void scans.request();
    return isChanged ? 'changed' : 'same';
  }

  /**
   * Whether the directory that was accepted as the root still stands there. If not, the root is
   * checked at once: nothing may be read in a directory that was put in its place.
   */
  async isRootInPlace(): Promise<boolean> {
    const { root } = this.deps;
    const found = await look(root.real);
    if ('stat' in found && root.isAccepted(found.stat)) return true;
    await this.check();
    return this.mayLook;
  }

  /** Whether the root is certainly the folder, so that a file which is absent was removed. */
  async isCertain(): Promise<boolean> {
    return (await this.check()) === 'same' && this.mayLook;
  }

  stop(): void {
    if (!this.deps.modes.is('stopped')) this.deps.modes.enter('stopped');
  }

  /** Checks the root and the mounts; enters *held* if need be. @returns whether they changed */
  async #check(): Promise<boolean> {
    const { modes, root, mounts, digests, debouncer, events } = this.deps;
    const accepts = this.#acceptsAny ? 'any' : 'known';
    this.#acceptsAny = false;
    const realBefore = root.real;
    const isRootChanged = await root.check(accepts);
    const areMountsChanged = root.isThere && (await mounts.check(accepts));
    if (modes.is('stopped')) return false;
    if (!root.isThere && !modes.is('held')) modes.enter('held');
    if (!isRootChanged && !areMountsChanged) return false;
    digests.clear();
    // The watches belong to directories that are gone or replaced.
    events?.unwatch(realBefore);
    if (!root.isThere) debouncer.clear();
    this.deps.committer.commitSoon();
    this.deps.onFolderStateChange?.();
    return true;
  }
}
