import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { MirrorConfig } from '../../src/config/config.js';
import { mirrorSchema } from '../../src/config/mirror-schema.js';
import { type Clock, systemClock } from '../../src/lib/clock.js';
import type { MirrorPeer } from '../../src/mirror/mirror.js';
import { Mirrors } from '../../src/mirror/mirrors.js';
import type { MirrorReport } from '../../src/mirror/record.js';
import { MARKER } from '../../src/mirror/target-path.js';
import { type BaseOptions, BaseWorld } from './base-world.js';
import { FakePeer } from './fake-peer.js';

/** Settings as in the configuration file. Missing ones get their defaults. */
export interface MirrorSettings {
  readonly shares?: readonly object[];
  readonly tables?: readonly object[];
  readonly citations?: readonly object[];
}

export interface MirrorWorldOptions<P> extends BaseOptions {
  readonly mirrors: MirrorSettings;
  readonly peer?: P;
  /** The mirror root. @default a directory of its own */
  readonly root?: string;
}

/** The mirrors of a peer, without the rest of the daemon. */
export class MirrorWorld<P extends MirrorPeer = FakePeer> extends BaseWorld<P> {
  readonly root: string;
  random = () => 0;
  #mirrors: Mirrors | undefined;

  constructor({
    peer = new FakePeer() as MirrorPeer as P,
    root,
    ...options
  }: Omit<MirrorWorldOptions<P>, 'mirrors'>) {
    super(peer, options);
    this.root = root ?? join(this.directory, 'mirror');
  }

  /** Opens the mirrors. A second call is a restart with other settings. */
  async open(settings: MirrorSettings): Promise<this> {
    await this.stop();
    await this.openState();
    const { clock, log, peer, queue, state, stateDir } = this;
    this.#mirrors = await Mirrors.open({
      settings: completed(settings, this.root),
      stateDir,
      state,
      queue,
      peer,
      clock,
      log,
      random: () => this.random(),
    });
    return this;
  }

  protected override async stopPart(): Promise<void> {
    await this.#mirrors?.stop();
    this.#mirrors = undefined;
  }

  /** Applies other settings, as after a change of the configuration file. */
  async configure(settings: MirrorSettings, root = this.root): Promise<void> {
    await this.mirrors.configure(completed(settings, root));
  }

  start(): void {
    this.mirrors.start((error) => {
      this.failure = error;
    });
  }

  /** Loses the state. */
  async loseState(): Promise<void> {
    await this.stop();
    rmSync(this.stateDir, { recursive: true });
    mkdirSync(this.stateDir);
  }

  get mirrors(): Mirrors {
    if (this.#mirrors === undefined) throw new Error('the mirrors are not open');
    return this.#mirrors;
  }

  get names(): readonly string[] {
    return this.mirrors.names;
  }

  async run(...names: string[]): Promise<MirrorReport[]> {
    const reports: MirrorReport[] = [];
    for await (const report of this.mirrors.run(names.length > 0 ? names : undefined))
      reports.push(report);
    return reports;
  }

  /** Runs one mirror, and returns its report. */
  async once(name: string): Promise<MirrorReport> {
    const [report] = await this.run(name);
    if (report === undefined) throw new Error('no report');
    return report;
  }

  status(name?: string): MirrorReport | undefined {
    return this.mirrors.status().find((report) => name === undefined || report.name === name);
  }

  read(path: string): string {
    return readFileSync(join(this.root, path), 'utf8');
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(join(this.root, path)), { recursive: true });
    writeFileSync(join(this.root, path), text);
  }

  has(path: string): boolean {
    return existsSync(join(this.root, path));
  }

  mtime(path: string): number {
    return statSync(join(this.root, path)).mtimeMs;
  }

  /** Returns all files below the root except the marker. */
  files(): string[] {
    return filesBelow(this.root).filter((name) => name !== MARKER);
  }
}

/** A clock by which a file that is saved now was saved a minute ago. */
export const A_MINUTE_LATER: Clock = { ...systemClock, wall: () => Date.now() + 60_000 };

export function filesBelow(directory: string): string[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .sort();
}

/**
 * Returns the open files of this process below a directory, unlinked ones too. None on a system
 * without /proc.
 */
export function openBelow(directory: string): readonly string[] {
  const descriptors = '/proc/self/fd';
  if (!existsSync(descriptors)) return [];
  return readdirSync(descriptors).flatMap((name) => {
    try {
      return [readlinkSync(join(descriptors, name))].filter((path) => path.startsWith(directory));
    } catch {
      return [];
    }
  });
}

/** Completes settings by the schema of the section. The schema of the whole file does more. */
function completed(settings: MirrorSettings, root: string): MirrorConfig {
  return { ...mirrorSchema.parse({ ...settings, root }), root } as MirrorConfig;
}
