import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { StatusReport } from '../../src/report/status-report.js';
import type { WhyReport } from '../../src/report/why.js';
import type { Life } from './afterwards.js';
import { ask } from './ask.js';
import { type Ended, Running } from './cli.js';
import { type ConfigParts, writeConfig } from './config.js';
import { PeerProcess } from './peer-process.js';
import { ScriptedPeer } from './scripted-peer.js';
import { temporaryDirectory } from './temp.js';
import { sha256 } from './tree.js';
import { until } from './wait.js';
import { peersync } from './warm-cli.js';

/** Before each question to the daemon, in ms: asking is not to be most of the work. */
const ASK_AGAIN_MS = 30;
/** To compare thousands of files without a rest is more work than the daemon has with them. */
const COMPARE_AGAIN_MS = 200;

/** One line of `list --json`. */
export interface Listed {
  readonly folder: string;
  readonly path: string;
  readonly status: string;
  readonly sha256?: string;
  readonly url: string;
}

/** The expected document of a file on disk. */
interface Expected {
  readonly digest: string;
  readonly url: string;
  readonly collection: string;
}

interface Folder {
  readonly name: string;
  readonly path: string;
  readonly url: string;
  readonly collection: string;
}

let peerOfAll: Promise<PeerProcess> | undefined;

/** One peer for all tests of a file; each uses documents and tables of its own. */
export function remotePeer(): Promise<PeerProcess> {
  peerOfAll ??= PeerProcess.start(join(temporaryDirectory('file'), 'peer'), { life: 'file' });
  return peerOfAll;
}

/**
 * The world of whole programs: a directory with folders and a configuration that a test rewrites, a
 * scripted peer before the real one, and daemons one after the other. It is apart from `world`
 * because nothing in it runs in the process of the test. Files are named `FOLDER/PATH`, by the
 * directory that they are in.
 */
export class Site {
  readonly directory: string;
  readonly stateDirectory: string;
  config = '';
  /**
   * Environment variables of daemons that are started from now on, in addition to those of the
   * tests.
   */
  daemonEnv: NodeJS.ProcessEnv = {};
  #folders: readonly Folder[] = [];
  #daemon: Daemon | undefined;

  private constructor(
    readonly peer: PeerProcess,
    readonly proxy: ScriptedPeer,
    readonly life: Life,
  ) {
    this.directory = temporaryDirectory(life);
    this.stateDirectory = join(this.directory, 'state');
  }

  static async begin(parts: Partial<ConfigParts> = {}, life: Life = 'test'): Promise<Site> {
    const peer = await remotePeer();
    const site = new Site(peer, await ScriptedPeer.start(peer.url, { life }), life);
    site.configure(parts);
    return site;
  }

  /** The `peer` of the configuration, with other settings too. */
  section(more: object = {}): Readonly<Record<string, unknown>> {
    return { ...this.peer.section(this.proxy.url), ...more };
  }

  /** Writes the configuration; nobody is told. */
  configure({ folders = [{ name: 'inbox' }], ...parts }: Partial<ConfigParts>): void {
    this.#folders = folders.map((folder) => ({
      path: this.path(folder.name),
      url: this.url(`${folder.name}/`),
      collection: folder.name,
      ...folder,
    }));
    this.config = writeConfig(this.directory, {
      peer: this.section(),
      ...parts,
      folders: this.#folders.map((folder) => ({ ...folder })),
      mirror: { root: this.path('mirror'), ...parts.mirror },
    });
  }

  /** The daemon that was started last. */
  get daemon(): Daemon {
    if (this.#daemon === undefined) throw new Error('no daemon was started');
    return this.#daemon;
  }

  /** Starts a daemon, and waits for nothing. */
  spawn(...args: readonly string[]): Daemon {
    const { daemonEnv: env, life } = this;
    this.#daemon = new Daemon(['run', '--config', this.config, ...args], { env, life });
    return this.#daemon;
  }

  /** Starts a daemon, and waits until it answers. */
  async start(...args: readonly string[]): Promise<Daemon> {
    const daemon = this.spawn(...args);
    await daemon.says('pushing to');
    await until(
      async () => (await ask(this.stateDirectory, 'status')) !== undefined,
      'the daemon answers',
    );
    return daemon;
  }

  async stop(): Promise<Ended> {
    const ended = await this.daemon.kill('SIGTERM');
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    return ended;
  }

  /** Sends SIGHUP, and waits until a reload has ended that began after that. */
  async hangUp(): Promise<void> {
    const ended = () => this.daemon.stdout.match(/"event":"reload(ed|-failed)"/g)?.length ?? 0;
    // Output about an earlier event may have arrived and not been read.
    for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    const before = ended();
    this.daemon.child.kill('SIGHUP');
    await until(() => ended() > before, 'the configuration was read anew');
  }

  /** Runs a command to its end. */
  run(...args: readonly string[]): Promise<Ended> {
    return peersync(args, { cwd: this.directory, env: { PEERSYNC_CONFIG: this.config } });
  }

  /** Runs a command with `--json`; `lines` are the values that it printed. */
  async json<T>(...args: readonly string[]): Promise<Ended & { readonly lines: T[] }> {
    const ended = await this.run(...args, '--json');
    const lines = ended.stdout.split('\n').filter((line) => line !== '');
    return { ...ended, lines: lines.map((line) => JSON.parse(line) as T) };
  }

  /** Asks the daemon. @returns the last line of its answer */
  async ask<T>(question: string, parameters: Record<string, unknown> = {}): Promise<T> {
    await sleep(ASK_AGAIN_MS);
    const lines = await ask<T>(this.stateDirectory, question, parameters);
    if (lines === undefined)
      throw new Error(`the daemon does not run:\n${this.daemon.stdout.slice(-2_000)}`);
    return lines.at(-1) as T;
  }

  status(): Promise<StatusReport> {
    return this.ask<StatusReport>('status');
  }

  why(file: string): Promise<WhyReport> {
    return this.ask<WhyReport>('why', { path: this.path(file) });
  }

  /** Returns the records of all files, whether a daemon runs or not. */
  async list(): Promise<Listed[]> {
    const listed = await ask<Listed>(this.stateDirectory, 'list');
    if (listed !== undefined) return listed;
    const { code, stderr, lines } = await this.json<Listed>('list');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return lines;
  }

  path(file: string): string {
    return join(this.directory, file);
  }

  /** The URL of a file's document, where its folder has no other. */
  url(file: string): string {
    const host = basename(this.directory).toLowerCase();
    return `https://${host}.example.org/${file.split('/').map(encodeURIComponent).join('/')}`;
  }

  drop(file: string, content = `${file} of ${this.directory}\n`): void {
    mkdirSync(dirname(this.path(file)), { recursive: true });
    writeFileSync(this.path(file), content);
  }

  /** Drops a dozen files into the inbox. @returns their names */
  dropSome(prefix: string): string[] {
    const files = Array.from({ length: 12 }, (_, i) => `inbox/${prefix}${i}.txt`);
    for (const file of files) this.drop(file);
    return files;
  }

  /** Waits until a file has a status in `why`. */
  async becomes(file: string, status: WhyReport['status']): Promise<void> {
    await until(async () => (await this.why(file)).status === status, `${file} is ${status}`);
  }

  /** Waits until files are confirmed as they are on disk, and the peer shows them. */
  async confirmed(...files: readonly string[]): Promise<void> {
    for (const file of files) {
      const digest = sha256(readFileSync(this.path(file)));
      const isConfirmed = async () => {
        const { status, version } = await this.why(file);
        return status === 'confirmed' && version?.sha256 === digest;
      };
      await until(isConfirmed, `${file} is confirmed`).catch((error: unknown) => {
        throw new Error(this.daemon.stdout.slice(-3_000), { cause: error });
      });
      const { url = '' } = await this.why(file);
      expect(await this.peer.peerdoc(url), file).toMatchObject({ digest });
    }
  }

  /** Returns the expected documents of the files on disk, by folder and path. */
  onDisk(): Map<string, Expected> {
    const files = new Map<string, Expected>();
    for (const { name, path, url, collection } of this.#folders) {
      for (const entry of readdirSync(path, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile()) continue;
        const file = join(entry.parentPath, entry.name);
        const below = relative(path, file);
        const escaped = below.split('/').map(encodeURIComponent).join('/');
        const digest = sha256(readFileSync(file));
        files.set(`${name}/${below}`, { digest, url: url + escaped, collection });
      }
    }
    return files;
  }

  /**
   * Returns the differences between the records and the disk: files that are not confirmed in their
   * current version, and removed files that are not gone.
   */
  async differences(disk = this.onDisk()): Promise<string[]> {
    const known = new Map(
      (await this.list()).map((entry) => [`${entry.folder}/${entry.path}`, entry]),
    );
    const isRight = (entry: Listed | undefined, { digest, url }: Expected) =>
      entry?.status === 'confirmed' && entry.sha256 === digest && entry.url === url;
    const unconfirmed = [...disk].filter(([file, expected]) => !isRight(known.get(file), expected));
    const ghosts = [...known].filter(
      ([file, { status }]) => !disk.has(file) && !/^(gone|removed)$/.test(status),
    );
    return [
      ...unconfirmed.map(
        ([file, { digest }]) => `${file}, ${digest}: ${JSON.stringify(known.get(file))}`,
      ),
      ...ghosts.map(([file, entry]) => `${file} is removed: ${JSON.stringify(entry)}`),
    ];
  }

  /** Waits until the daemon knows every file as it is on disk. */
  async allConfirmed(limitMs = 120_000): Promise<void> {
    const disk = this.onDisk();
    let wrong: string[] = [];
    const isDone = async () => {
      await sleep(COMPARE_AGAIN_MS);
      wrong = await this.differences(disk);
      return wrong.length === 0;
    };
    await until(isDone, 'every file is confirmed as it is', limitMs).catch((error: unknown) => {
      const log = this.daemon.stdout.slice(-2_000);
      throw new Error(`${wrong.slice(0, 50).join('\n')}\n${log}`, { cause: error });
    });
  }

  /** The peer shows every file as it is on disk. */
  async expectAllInPeer(peer = this.peer): Promise<void> {
    const wrong: string[] = [];
    const files = this.onDisk().entries();
    const check = async () => {
      for (const [file, { digest, url, collection }] of files) {
        const shown = await peer.peerdoc(url);
        if (shown?.digest !== digest || shown.collections.join() !== collection)
          wrong.push(`${file}, ${digest} in ${collection}: ${JSON.stringify(shown)}`);
      }
    };
    await Promise.all([check(), check(), check(), check()]);
    expect(wrong).toEqual([]);
  }

  /** Returns the collections of the accepted pushes of a file, in order. */
  collectionsOf(file: string): readonly string[] {
    const url = this.url(file);
    return this.proxy.requests
      .filter(({ status }) => status === 200)
      .flatMap(({ items }) =>
        items.filter((item) => item.url === url).map(({ collection }) => collection),
      );
  }
}

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly event?: string;
  /** The event that a count of lines is about. */
  readonly of?: string;
}

/** A daemon, and what it logs. */
export class Daemon extends Running {
  readonly #read: Line[] = [];
  #readTo = 0;

  /** The lines of the log. Each line is parsed once, because tests read them often. */
  get lines(): readonly Line[] {
    const end = this.stdout.lastIndexOf('\n') + 1;
    for (const line of this.stdout.slice(this.#readTo, end).split('\n'))
      if (line !== '') this.#read.push(JSON.parse(line) as Line);
    this.#readTo = Math.max(this.#readTo, end);
    return this.#read;
  }

  /**
   * Number of confirmed files in the log. If there are many at once, only a detailed log has a line
   * for each.
   */
  get confirmed(): number {
    return this.lines.filter(({ event }) => event === 'confirmed').length;
  }

  /** The lines after the start that are not about confirmed files: `warn: the sentence`. */
  get logged(): string[] {
    return this.lines
      .filter(({ level }) => level >= 30)
      .filter(({ event, of }) => !['confirmed', 'watching', 'peer'].includes(of ?? event ?? ''))
      .map(({ level, msg }) => `${{ 30: 'info', 40: 'warn', 50: 'error' }[level]}: ${msg}`);
  }

  async confirms(count: number): Promise<void> {
    await until(() => this.confirmed === count, `${count} confirmed`).catch((error: unknown) => {
      throw new Error(`${error}, but ${this.confirmed}\n${this.logged.join('\n')}`);
    });
  }
}
