import { lstat, opendir, realpath, stat } from 'node:fs/promises';
import type { FolderConfig } from '../config/config.js';
import { systemCode } from '../lib/errors.js';
import { joinPath } from './paths.js';
import type { WatchState } from './watch-state.js';

export type RootState =
  | { readonly kind: 'same' }
  /** Another directory, which is now the folder. */
  | { readonly kind: 'replaced' }
  /** Another directory that looks as if something were not mounted: nothing in it counts as removed. */
  | { readonly kind: 'doubtful' }
  /** `code` is the system's. */
  | { readonly kind: 'missing'; readonly code: string };

/** So many known files are looked for to recognise a file system under another device number. */
const SAMPLE = 20;

/**
 * The directory of a folder, recognised by device and inode across restarts.
 *
 * Where they changed, it is still the folder when it is not empty and either on the same device (somebody replaced the
 * directory) or with a known file in it (device numbers change with a reboot). Without records nothing is at stake and
 * every directory is fine; so it is when the configuration names another path.
 */
export class Root {
  readonly #folder: FolderConfig;
  readonly #state: WatchState;

  #real: string;

  constructor(folder: FolderConfig, state: WatchState) {
    this.#folder = folder;
    this.#real = folder.path;
    this.#state = state;
  }

  /** The path of the directory, links resolved, when it was checked last. */
  get real(): string {
    return this.#real;
  }

  async check(): Promise<RootState> {
    const { path } = this.#folder;
    try {
      const stats = await stat(path);
      if (!stats.isDirectory()) return { kind: 'missing', code: 'ENOTDIR' };
      this.#real = await realpath(path);
      const now = { path, dev: stats.dev, ino: stats.ino };
      const known = this.#known();
      if (known?.path === path && known.dev === now.dev && known.ino === now.ino) return { kind: 'same' };
      if (known === undefined || known.path !== path) {
        this.#remember(now);
        return { kind: 'same' };
      }
      const empty = await isEmpty(path);
      if (!this.#hasRecords() || (!empty && (known.dev === now.dev || (await this.#recognised())))) {
        this.#remember(now);
        return { kind: 'replaced' };
      }
      return { kind: 'doubtful' };
    } catch (error) {
      return { kind: 'missing', code: systemCode(error) ?? 'UNKNOWN' };
    }
  }

  async #recognised(): Promise<boolean> {
    let left = SAMPLE;
    for (const { path, status, version } of this.#state.entries.all(this.#folder.name)) {
      if (status === 'gone') continue;
      const found = await lstat(joinPath(this.#folder.path, path)).catch(() => undefined);
      if (found?.ino === version.ino && found.size === version.size && found.mtimeMs === version.mtimeMs)
        return true;
      left -= 1;
      if (left === 0) return false;
    }
    return false;
  }

  #hasRecords(): boolean {
    for (const entry of this.#state.entries.all(this.#folder.name)) if (entry.status !== 'gone') return true;
    return false;
  }

  #known(): Identity | undefined {
    const value = this.#state.meta(this.#key());
    if (typeof value !== 'object' || value === null || !('dev' in value)) return undefined;
    const { path, dev, ino } = value;
    return typeof path === 'string' && typeof dev === 'number' && typeof ino === 'number'
      ? { path, dev, ino }
      : undefined;
  }

  #remember(identity: Identity): void {
    this.#state.setMeta(this.#key(), { ...identity });
  }

  #key(): string {
    return `watch.root.${this.#folder.name}`;
  }
}

interface Identity {
  readonly path: string;
  readonly dev: number;
  readonly ino: number;
}

async function isEmpty(path: string): Promise<boolean> {
  const directory = await opendir(path);
  try {
    return (await directory.read()) === null;
  } finally {
    await directory.close();
  }
}
