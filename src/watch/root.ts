import { lstat, opendir, realpath, stat } from 'node:fs/promises';
import type { FolderConfig } from '../config/config.js';
import { systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { Trouble } from '../state/entry.js';
import type { State, StateView } from '../state/state.js';
import { trouble } from './problems.js';

/**
 * How the root of a folder stands. `missing`: it is not there, or cannot be listed, or was not looked at yet; then nothing is
 * looked at. `doubtful`: another directory that looks as if something were not mounted; new files are taken, none counts as
 * removed.
 */
export type Standing = 'there' | 'doubtful' | 'missing';

/** Distinguishes a directory from others. A type and not an interface, for it is kept as JSON. */
type Identity = { readonly dev: number; readonly ino: number };

/** What is remembered of the root. */
type Known = Identity & {
  readonly path: string;
  /** A directory that stood there and was not accepted: files may have come into it since, so that they show nothing. */
  readonly doubted?: Identity;
};

/** So many known files are looked for to recognise a file system under another device number. */
const SAMPLE = 20;

/**
 * The directory of a folder, recognised by device and inode across restarts. The folder is *held* while it is `missing` or
 * `doubtful`.
 *
 * Another directory is still the folder when it is not empty and either on the same device (somebody replaced the
 * directory) or with a known file in it (device numbers change with a reboot). Without records nothing is at stake and
 * every directory is fine; so it is when the configuration names another path.
 */
export class Root {
  readonly #folder: FolderConfig;
  readonly #state: State;
  readonly #log: Logger;
  #real: string;
  #standing: Standing = 'missing';
  #held: Trouble | undefined;

  constructor(folder: FolderConfig, state: State, log: Logger) {
    this.#folder = folder;
    this.#state = state;
    this.#log = log;
    this.#real = folder.path;
  }

  /** The path of the directory, links resolved, when it was checked last. */
  get real(): string {
    return this.#real;
  }

  get standing(): Standing {
    return this.#standing;
  }

  /** Why the folder is held, if it is. */
  get held(): Trouble | undefined {
    return this.#held;
  }

  /** Where a path of the folder stands, links on the way to the folder resolved. */
  absolute(path: string): string {
    return path === '' ? this.#real : `${this.#real}/${path}`;
  }

  /** The same for a person: as the configuration writes it. */
  shown(path: string): string {
    return path === '' ? this.#folder.path : `${this.#folder.path}/${path}`;
  }

  /** Looks at the root, and takes it for the folder if it is. @returns whether it is not what it was */
  async check(): Promise<boolean> {
    const { path } = this.#folder;
    try {
      const { dev, ino } = await stat(path);
      const isEmpty = await isEmptyDirectory(path);
      this.#real = await realpath(path);
      const known = knownOf(this.#folder, this.#state);
      if (known?.path === path && isSame(known, { dev, ino })) return this.#stand('there');
      if (known?.path !== path || !hasRecords(this.#folder, this.#state)) return this.#accept({ dev, ino });
      const isDoubted = known.doubted !== undefined && isSame(known.doubted, { dev, ino });
      if (!isEmpty && (known.dev === dev || (!isDoubted && (await this.#hasKnownFiles()))))
        return this.#accept({ dev, ino });
      if (!isDoubted) this.#remember({ ...known, doubted: { dev, ino } });
      return this.#stand('doubtful', trouble.rootReplaced(path));
    } catch (error) {
      const wasThere = wasSeen(this.#folder, this.#state);
      return this.#stand('missing', trouble.rootMissing(path, systemCode(error) ?? 'UNKNOWN', wasThere));
    }
  }

  #accept({ dev, ino }: Identity): true {
    this.#remember({ path: this.#folder.path, dev, ino });
    this.#stand('there');
    return true;
  }

  #stand(standing: Standing, held?: Trouble): boolean {
    const before = this.#held;
    this.#standing = standing;
    this.#held = held;
    if (held?.code === before?.code) return false;
    const { name, path } = this.#folder;
    if (held === undefined) this.#log.info({ folder: name }, `The folder ${path} is back and is scanned.`);
    else this.#log.warn({ folder: name, code: held.code }, `${held.message} ${held.hint}`);
    return true;
  }

  /** Goes to the disk with the next commit; if that never comes, the next start looks again. */
  #remember(known: Known): void {
    this.#state.setMeta(keyOf(this.#folder), known);
  }

  async #hasKnownFiles(): Promise<boolean> {
    let left = SAMPLE;
    for (const { path, status, version } of this.#state.entries.all(this.#folder.name)) {
      if (status === 'gone') continue;
      const found = await lstat(`${this.#folder.path}/${path}`).catch(() => undefined);
      if (found?.ino === version.ino && found.size === version.size && found.mtimeMs === version.mtimeMs)
        return true;
      left -= 1;
      if (left === 0) return false;
    }
    return false;
  }
}

type FolderName = Pick<FolderConfig, 'name' | 'path'>;

/** Whether the folder was there before, or files of it are known: where it is away, something has to come back. */
export function wasSeen(folder: FolderName, state: StateView): boolean {
  return knownOf(folder, state)?.path === folder.path || hasRecords(folder, state);
}

function hasRecords({ name }: FolderName, state: StateView): boolean {
  const { gone: _, ...live } = state.counts(name);
  return Object.values(live).some((count) => count > 0);
}

function knownOf(folder: FolderName, state: StateView): Known | undefined {
  return state.meta(keyOf(folder)) as Known | undefined;
}

function keyOf({ name }: FolderName): string {
  return `watch.root.${name}`;
}

function isSame(a: Identity, b: Identity): boolean {
  return a.dev === b.dev && a.ino === b.ino;
}

async function isEmptyDirectory(path: string): Promise<boolean> {
  const directory = await opendir(path);
  try {
    return (await directory.read()) === null;
  } finally {
    await directory.close();
  }
}
