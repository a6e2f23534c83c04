import {
  appendFileSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import type { FolderConfig } from '../../src/config/config.js';
import { fingerprintNow } from '../../src/content/file-reader.js';
import { NO_PROGRAMS } from '../../src/content/helpers/programs.js';
import { systemClock } from '../../src/lib/clock.js';
import { fileStat } from '../../src/lib/file.js';
import type { Logger } from '../../src/lib/logger.js';
import type { Entry, PendingItem, Sent } from '../../src/state/entry.js';
import { State } from '../../src/state/state.js';
import { accepted, skipped } from '../../src/state/transitions.js';
import type { ReadMode } from '../../src/watch/debouncer.js';
import type { PeerFacts, ReadingPrograms } from '../../src/watch/deps.js';
import { type List, list } from '../../src/watch/lister.js';
import {
  type FolderStatus,
  type ScanReport,
  Watcher,
  type WatcherOptions,
} from '../../src/watch/watcher.js';
import { afterwards } from '../support/afterwards.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

/** Long enough that a test can write twice within it, short enough to wait for. */
export const SETTLE_MS = 60;

export function folderOf(path: string, changes: Partial<FolderConfig> = {}): FolderConfig {
  return {
    name: 'inbox',
    path,
    collection: 'inbox',
    url: 'https://files.example.org/inbox/',
    include: ['*'],
    ignore: ['.git', '*.part'],
    ignoreDefaults: false,
    rules: [],
    settle: SETTLE_MS,
    maxFileSize: 1_048_576,
    followSymlinks: false,
    extract: 'auto' as const,
    onDelete: 'remove' as const,
    ...changes,
  };
}

/** A peer that takes no binary files. Its kind is not known. */
export const PEER: PeerFacts = {
  refusalOf: (encoding, typeName = 'not text') =>
    encoding === 'binary'
      ? { code: 'NOT_TEXT', message: `It is ${typeName}.`, hint: 'None.' }
      : undefined,
  isEmbedded: () => undefined,
};

/** No program reads documents. */
export const PROGRAMS: ReadingPrograms = { current: NO_PROGRAMS, onScan: () => {} };

/** Lists in this thread. */
export const listHere: List = async (order) => list(order);

interface Options extends Partial<WatcherOptions> {
  /** Changes to the configuration of the one folder. */
  readonly folder?: Partial<FolderConfig>;
}

type Status = Entry['status'] | undefined;

/**
 * A folder on disk with a real state and a watcher. Everything ends with the test. Paths are
 * relative to the folder.
 */
export class Inbox {
  readonly root = join(temporaryDirectory(), 'inbox');
  /** The lines of the log, as `level: message`. */
  readonly lines: string[] = [];
  readonly log: Logger;
  #state: State | undefined;
  #watcher: Watcher | undefined;

  /** @param files the contents of the files by path, or only the paths */
  constructor(files: Readonly<Record<string, string | Uint8Array>> | readonly string[] = []) {
    mkdirSync(this.root);
    const say = (level: string) => (_: object, message: string) =>
      void this.lines.push(`${level}: ${message}`);
    this.log = { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') };
    if (Symbol.iterator in files) for (const path of files) this.write(path);
    else for (const [path, content] of Object.entries(files)) this.write(path, content);
    afterwards('test', async () => {
      await this.#watcher?.stop();
      await this.#state?.close();
    });
  }

  /** Starts a watcher, the second time with the state so far. Resolves when all files are known. */
  async start(options: Options = {}): Promise<this> {
    await this.begin(options);
    await this.idle();
    return this;
  }

  /** Starts a watcher without waiting for the first scan. */
  async begin({ folder, ...options }: Options = {}): Promise<void> {
    const { log } = this;
    const { clock = systemClock } = options;
    await this.#watcher?.stop();
    this.#state ??= options.state ?? (await State.open(temporaryDirectory(), { clock, log }));
    this.#watcher = new Watcher({
      folders: [folderOf(this.root, folder)],
      clock,
      log,
      peer: PEER,
      programs: PROGRAMS,
      hints: true,
      rescanMs: 3_600_000,
      list: listHere,
      readGroup: async (orders) => orders.map(fingerprintNow),
      ...options,
      policy: { rootCheckMs: 100, deletionPauseMs: 20, deletionScanMs: 50, ...options.policy },
      state: this.#state,
    });
    this.#watcher.start();
  }

  get watcher(): Watcher {
    if (this.#watcher === undefined) throw new Error('nothing watches yet');
    return this.#watcher;
  }

  get state(): State {
    if (this.#state === undefined) throw new Error('nothing watches yet');
    return this.#state;
  }

  /** The status of the folder. */
  get folder(): Partial<FolderStatus> {
    return this.watcher.status()[0] ?? {};
  }

  /** The absolute path of a path. */
  at(path: string): string {
    return join(this.root, path);
  }

  write(path: string, content: string | Uint8Array = `content of ${path}`): string {
    mkdirSync(dirname(this.at(path)), { recursive: true });
    writeFileSync(this.at(path), content);
    return this.at(path);
  }

  append(path: string, content: string): void {
    appendFileSync(this.at(path), content);
  }

  truncate(path: string): void {
    truncateSync(this.at(path));
  }

  remove(...paths: readonly string[]): void {
    for (const path of paths) rmSync(this.at(path), { recursive: true });
  }

  /** Renames a path; `..` leads out of the folder. */
  rename(from: string, to: string): void {
    renameSync(this.at(from), this.at(to));
  }

  /** Replaces the folder's directory by another one with another inode. */
  replace(files: Readonly<Record<string, string>> = {}): void {
    this.write('../new/file');
    this.remove('../new/file');
    for (const [path, content] of Object.entries(files)) this.write(`../new/${path}`, content);
    renameSync(this.root, `${this.root}.old`);
    renameSync(join(this.root, '../new'), this.root);
  }

  link(target: string, path: string): void {
    mkdirSync(dirname(this.at(path)), { recursive: true });
    symlinkSync(target, this.at(path));
  }

  /** Resolves when a file has been at rest for a while. */
  async long(path: string): Promise<void> {
    await until(
      () => Date.now() - statSync(this.at(path)).ctimeMs > 2 * SETTLE_MS,
      `${path} is at rest`,
    );
  }

  async idle(): Promise<void> {
    await this.watcher.idle();
  }

  /** Scans everything. Resolves when all that was found is in state. */
  async rescan(folder?: string): Promise<ScanReport | undefined> {
    const [report] = await (folder === undefined
      ? this.watcher.scanAll()
      : this.watcher.scanAcceptingRoot(folder));
    await this.idle();
    return report;
  }

  /** Looks at a path as if an event had named it. */
  async look(path: string, read?: ReadMode): Promise<void> {
    this.watcher.lookSoon({ folder: 'inbox', path }, read);
    await this.idle();
  }

  get(path: string, folder = 'inbox'): Entry | undefined {
    return this.state.get(folder, path);
  }

  status(path: string, folder = 'inbox'): Status {
    return this.get(path, folder)?.status;
  }

  sha(path: string): string | undefined {
    const version = this.get(path)?.version;
    return version !== undefined && 'sha256' in version ? version.sha256 : undefined;
  }

  /** The paths of all records of state. */
  paths(): string[] {
    return [...this.state.entries.all()].map(({ path }) => path).sort();
  }

  /** Resolves when all of these files have these statuses. */
  async becomes(expected: Readonly<Record<string, Status>>): Promise<void> {
    const isSo = () =>
      Object.entries(expected).every(([path, status]) => this.status(path) === status);
    await until(isSo, `the files are ${JSON.stringify(expected)}`);
  }

  /** Resolves when the folder has this state and failure. */
  async reaches(state: FolderStatus['state'], code?: string): Promise<void> {
    const isSo = () => this.folder.state === state && this.folder.failure?.code === code;
    await until(isSo, `the folder is ${state} ${code}`);
  }

  /** Expects all of these files to have these statuses. */
  expect(expected: Readonly<Record<string, Status>>): void {
    const found = Object.keys(expected).map((path) => [path, this.status(path)]);
    expect(Object.fromEntries(found)).toEqual(expected);
  }

  /** Counts the lines of the log that contain a text. */
  logged(part: string): number {
    return this.lines.filter((line) => line.includes(part)).length;
  }
}

export function sentOf({ version, url, collection }: PendingItem): Sent {
  const { sha256, size } = version;
  return { sha256, size, digest: sha256, url, collection, at: 1 };
}

/** Marks every pending item as accepted by the peer. */
export function send(inbox: Inbox): Inbox {
  for (const entry of [...inbox.state.entries.all()])
    if (entry.status === 'pending') inbox.state.put(accepted(entry, sentOf(entry), entry.since));
  return inbox;
}

/** Skips a pending item, as the uplink does with a document that lacks a program. */
export function skipAsUplink(inbox: Inbox, path: string, code: string): void {
  const entry = inbox.get(path);
  if (entry?.status !== 'pending') throw new Error(`${path} is ${entry?.status}`);
  const failure = { code, message: 'It is a scan.', hint: 'Install it.' };
  inbox.state.put(skipped(entry, entry, fileStat(entry.version), failure, entry.since));
}

/** A promise that a test fulfils. */
export function gate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open: () => open(), opened };
}
