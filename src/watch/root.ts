import type { Stats } from 'node:fs';
import { lstat, opendir, realpath, stat } from 'node:fs/promises';
import type { FolderConfig } from '../config/config.js';
import type { Clock, Timer } from '../lib/clock.js';
import { systemCode } from '../lib/errors.js';
import { HealthCheck } from '../lib/health.js';
import type { Logger } from '../lib/logger.js';
import type { Trouble } from '../state/entry.js';
import type { State } from '../state/state.js';
import { joinPath } from './paths.js';
import { trouble } from './trouble.js';

/** What watching needs of the state. */
export type WatchState = Pick<State, 'get' | 'put' | 'remove' | 'commit' | 'meta' | 'setMeta' | 'entries'>;

/** One step of a look: a disk that is far away may take long for it. In ms. */
export const LONGEST_STEP_MS = 15 * 60_000;

export type RootState =
  | { readonly kind: 'same' }
  /** A directory that was not the folder before, and may well be it now; also at the very first time. */
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

  /** Where a path of the folder stands, links on the way to the folder resolved. */
  absolute(path: string): string {
    return path === '' ? this.#real : `${this.#real}/${path}`;
  }

  /** The same for a person: as the configuration writes it. */
  shown(path: string): string {
    return path === '' ? this.#folder.path : `${this.#folder.path}/${path}`;
  }

  /** Whether it was ever there, as far as the state shows. */
  wasSeen(): boolean {
    return wasSeen(this.#folder, this.#state);
  }

  /** Looks at the root, which must be readable; `replaced` stays so until `accept`. */
  async check(): Promise<RootState> {
    try {
      const { stats, empty } = await this.#look();
      const known = this.#known();
      if (known === undefined || known.path !== this.#folder.path) return { kind: 'replaced' };
      if (isSame(known, stats)) return { kind: 'same' };
      if (!hasRecords(this.#folder, this.#state)) return { kind: 'replaced' };
      if (!empty && (known.dev === stats.dev || (await this.#isRecognised(known, stats)))) {
        return { kind: 'replaced' };
      }
      return { kind: 'doubtful' };
    } catch (error) {
      return { kind: 'missing', code: systemCode(error) ?? 'UNKNOWN' };
    }
  }

  /** From now on the directory that is there is the folder. Goes to the disk with the next commit. */
  async accept(): Promise<void> {
    const { stats } = await this.#look();
    this.#state.setMeta(this.#key(), { path: this.#folder.path, dev: stats.dev, ino: stats.ino });
  }

  /** The directory that is there is not to be recognised by its files: from now on they may have come since. */
  async doubt(): Promise<void> {
    const { stats } = await this.#look();
    const known = this.#known();
    if (known !== undefined) {
      this.#state.setMeta(this.#key(), { ...known, doubted: { dev: stats.dev, ino: stats.ino } });
    }
  }

  async #look(): Promise<{ readonly stats: Stats; readonly empty: boolean }> {
    const { path } = this.#folder;
    const stats = await stat(path);
    const empty = await isEmpty(path);
    this.#real = await realpath(path);
    return { stats, empty };
  }

  async #isRecognised(known: Known, stats: Stats): Promise<boolean> {
    if (known.doubted !== undefined && isSame(known.doubted, stats)) return false;
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

  #known(): Known | undefined {
    return knownOf(this.#folder, this.#state);
  }

  #key(): string {
    return keyOf(this.#folder);
  }
}

/** What shows what a folder that is away was. */
export type KnownState = Pick<WatchState, 'meta' | 'entries'>;

/** Whether the folder was there before, or files of it are known: where it is away, something has to come back. */
export function wasSeen(folder: Pick<FolderConfig, 'name' | 'path'>, state: KnownState): boolean {
  return knownOf(folder, state)?.path === folder.path || hasRecords(folder, state);
}

function hasRecords({ name }: Pick<FolderConfig, 'name'>, state: KnownState): boolean {
  const { gone: _, ...live } = state.entries.counts(name);
  return Object.values(live).some((count) => count > 0);
}

function knownOf(folder: Pick<FolderConfig, 'name'>, state: KnownState): Known | undefined {
  const value = state.meta(keyOf(folder));
  if (!isIdentity(value) || !('path' in value) || typeof value.path !== 'string') return undefined;
  const doubted = 'doubted' in value ? value.doubted : undefined;
  const { path, dev, ino } = value;
  return {
    path,
    dev,
    ino,
    ...(isIdentity(doubted) ? { doubted: { dev: doubted.dev, ino: doubted.ino } } : {}),
  };
}

function keyOf({ name }: Pick<FolderConfig, 'name'>): string {
  return `watch.root.${name}`;
}

/** A type and not an interface, for it is kept as JSON. */
type Identity = { readonly dev: number; readonly ino: number };

/** What is remembered of the root. */
type Known = Identity & {
  readonly path: string;
  /** A directory that stood there and was not accepted. */
  readonly doubted?: Identity;
};

function isIdentity(value: unknown): value is Identity {
  if (typeof value !== 'object' || value === null || !('dev' in value) || !('ino' in value)) return false;
  return typeof value.dev === 'number' && typeof value.ino === 'number';
}

function isSame(a: Identity, b: Identity): boolean {
  return a.dev === b.dev && a.ino === b.ino;
}

async function isEmpty(path: string): Promise<boolean> {
  const directory = await opendir(path);
  try {
    return (await directory.read()) === null;
  } finally {
    await directory.close();
  }
}

/** How a root stands: `missing` also before it was looked at for the first time. */
export type Standing = 'there' | 'doubtful' | 'missing';

export interface RootGuardParts {
  readonly folder: FolderConfig;
  readonly root: Root;
  readonly clock: Clock;
  readonly log: Logger;
  readonly intervalMs: number;
  /** The root is not what it was, and is there: everything is to be looked at. */
  readonly onChanged: () => void;
  /** Something of the root was put into state. */
  readonly onRemembered: () => void;
  /** The root went away: there is nothing to wait for. */
  readonly onMissing: () => void;
  /** It stands otherwise than before. */
  readonly onStanding: () => void;
}

/**
 * Checks the root of a folder every few seconds, and says once what is wrong with it.
 *
 * The folder is *held* while its root is *missing* (or cannot be listed), and then nothing is looked at; or while it is
 * *doubtful*, and then new files are taken and none counts as removed.
 */
export class RootGuard {
  readonly health: HealthCheck;
  readonly #parts: RootGuardParts;
  #held: Trouble | undefined;
  #missing = false;
  #standing: Standing = 'missing';
  #scanIsDue = false;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(parts: RootGuardParts) {
    this.#parts = parts;
    const { name } = parts.folder;
    const limitMs = LONGEST_STEP_MS;
    this.health = new HealthCheck(`root ${name}`, `the folder ${name} is not checked`, { limitMs });
  }

  /** Why the folder is held, if it is. */
  get held(): Trouble | undefined {
    return this.#held;
  }

  get missing(): boolean {
    return this.#missing;
  }

  get standing(): Standing {
    return this.#standing;
  }

  start(): void {
    const { clock, intervalMs } = this.#parts;
    this.#timer = clock.after(intervalMs, async () => {
      await this.follow();
      if (!this.#stopped) this.start();
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** The root could not be listed, though the last check was fine: the next one leads to a scan. */
  wasUnseen(): void {
    this.#scanIsDue = true;
  }

  /** Checks the root, and calls `onChanged` when it is there and not what it was. */
  async follow(): Promise<void> {
    if ((await this.check()) === 'changed') this.#scanIsDue = true;
    if (!this.#scanIsDue || this.#missing || this.#stopped) return;
    this.#scanIsDue = false;
    this.#parts.onChanged();
  }

  /** Checks the root. For a caller that is about to look at everything. */
  async check(): Promise<'same' | 'changed'> {
    const { root } = this.#parts;
    const found = await this.health.during(() => root.check());
    if (this.#stopped) return 'same';
    const { path } = this.#parts.folder;
    const before = this.#held;
    if (found.kind === 'missing') this.#held = trouble.rootMissing(path, found.code, root.wasSeen());
    else if (found.kind === 'doubtful') this.#held = trouble.rootReplaced(path);
    else this.#held = undefined;
    const wasMissing = this.#missing;
    this.#missing = found.kind === 'missing';
    this.#stand(found.kind === 'same' || found.kind === 'replaced' ? 'there' : found.kind);
    if (found.kind === 'replaced' || (found.kind === 'doubtful' && before?.code !== this.#held?.code)) {
      await this.#remember(found.kind);
    }
    this.#say(before);
    if (this.#missing && !wasMissing) this.#parts.onMissing();
    return before?.code !== this.#held?.code || found.kind === 'replaced' ? 'changed' : 'same';
  }

  #stand(standing: Standing): void {
    if (standing === this.#standing) return;
    this.#standing = standing;
    this.#parts.onStanding();
  }

  async #remember(found: 'replaced' | 'doubtful'): Promise<void> {
    const { root, onRemembered } = this.#parts;
    try {
      await (found === 'replaced' ? root.accept() : root.doubt());
      onRemembered();
    } catch {
      // It went away again, which the next check sees.
      this.#scanIsDue = true;
    }
  }

  #say(before: Trouble | undefined): void {
    const { folder, log } = this.#parts;
    if (this.#held !== undefined && this.#held.code !== before?.code) {
      log.warn({ folder: folder.name, code: this.#held.code }, `${this.#held.message} ${this.#held.hint}`);
    }
    if (this.#held === undefined && before !== undefined) {
      log.info({ folder: folder.name }, `The folder ${folder.path} is back and is scanned.`);
    }
  }
}
