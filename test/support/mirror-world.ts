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
import { silentLogger } from '../../src/lib/logger.js';
import type { MirrorPeer } from '../../src/mirror/mirror.js';
import { Mirrors } from '../../src/mirror/mirrors.js';
import type { MirrorReport } from '../../src/mirror/record.js';
import { MARKER } from '../../src/mirror/target-path.js';
import { PeerClient } from '../../src/peer/client.js';
import type { Timeouts } from '../../src/peer/exchange-options.js';
import { RequestQueue } from '../../src/queue/request-queue.js';
import { State } from '../../src/state/state.js';
import { classify } from '../../src/uplink/outcomes.js';
import { waitMs } from '../queue/queue-setup.js';
import { afterwards } from './afterwards.js';
import { loggerTo } from './logger.js';
import { FakePeer, type Rows, type Shared } from './mirror-peer.js';
import { temporaryDirectory } from './temp.js';

/** Settings as in the configuration file. */
export interface MirrorSettings {
  readonly shares?: readonly object[];
  readonly tables?: readonly object[];
  readonly citations?: readonly object[];
}

/** Requests at no rate that a test would notice. */
const LANE = { requestsPerSecond: 100_000, concurrency: 4 };
const LANES = {
  interactive: LANE,
  confirm: LANE,
  push: LANE,
  removal: LANE,
  mirror: LANE,
  audit: LANE,
};

export interface MirrorWorldOptions {
  readonly clock?: Clock | undefined;
  /** The directory of `mirror` and `state`. @default a temporary one */
  readonly directory?: string;
}

/** Mirrors of a peer without the rest of the daemon, with a real root, state and queue. */
export class MirrorWorld<P extends MirrorPeer = FakePeer> {
  root: string;
  readonly stateDir: string;
  readonly clock: Clock;
  /** The log: `warn: mirror prices: …`. */
  readonly logged: string[] = [];
  failure: unknown;
  random = () => 0;
  #opened:
    | { readonly mirrors: Mirrors; readonly state: State; readonly queue: RequestQueue }
    | undefined;

  constructor(
    readonly peer: P,
    { clock = systemClock, directory = temporaryDirectory() }: MirrorWorldOptions = {},
  ) {
    this.clock = clock;
    this.root = join(directory, 'mirror');
    this.stateDir = join(directory, 'state');
    afterwards('test', () => this.stop());
  }

  /** Opens the mirrors. A second call is a restart. Missing settings get their defaults. */
  async open(settings: MirrorSettings): Promise<this> {
    await this.stop();
    const { clock, peer, stateDir } = this;
    const log = loggerTo(this.logged);
    const state = await State.open(stateDir, { clock, log });
    const queue = new RequestQueue({
      lanes: LANES,
      classify,
      clock,
      log,
      peerName: 'the peer',
      policy: { waitMs: waitMs(10, 20) },
    });
    const mirrors = await Mirrors.open({
      settings: completed(settings, this.root),
      stateDir,
      state,
      queue,
      peer,
      clock,
      log,
      random: () => this.random(),
    });
    this.#opened = { mirrors, state, queue };
    return this;
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

  async stop(): Promise<void> {
    const { mirrors, queue, state } = this.#opened ?? {};
    const stopped = mirrors?.stop();
    await queue?.stop(0);
    await stopped;
    await state?.close();
    this.#opened = undefined;
    if (this.failure !== undefined) throw this.failure;
  }

  /** Loses the state. */
  async loseState(): Promise<void> {
    await this.stop();
    rmSync(this.stateDir, { recursive: true });
    mkdirSync(this.stateDir);
  }

  get mirrors(): Mirrors {
    return this.#parts.mirrors;
  }

  get state(): State {
    return this.#parts.state;
  }

  get circuit(): string {
    return this.#parts.queue.status().circuit.state;
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

  get #parts() {
    if (this.#opened === undefined) throw new Error('not opened');
    return this.#opened;
  }
}

/** Opens a world whose mirrors ran once: `tables` of the peer by name, `objects` as text. */
export async function mirrored(
  settings: MirrorSettings,
  {
    tables = {},
    objects = {},
  }: { readonly tables?: Record<string, Rows>; objects?: Record<string, Shared> },
  clock?: Clock,
) {
  const peer = new FakePeer();
  for (const [name, rows] of Object.entries(tables)) peer.table(name, rows);
  for (const [name, shared] of Object.entries(objects)) peer.objects.set(name, shared);
  const world = await new MirrorWorld(peer, { clock }).open(settings);
  await world.run();
  return { peer, world };
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

export interface ServerSetting extends Pick<MirrorSettings, 'tables' | 'shares'> {
  readonly baseUrl: string;
  /** The directory of `mirror` and `state`. */
  readonly directory: string;
  readonly timeouts?: Partial<Timeouts>;
  readonly clock?: Clock;
}

/** Opens the mirrors of a real server. */
export async function openMirrors({
  baseUrl,
  directory,
  timeouts = {},
  clock = systemClock,
  ...settings
}: ServerSetting): Promise<{
  readonly mirrors: Mirrors;
  readonly root: string;
  close(): Promise<void>;
}> {
  const log = silentLogger;
  const peer = new PeerClient({ dialect: 'standard', timeouts, baseUrl, clock, log });
  const world = await new MirrorWorld(peer, { clock, directory }).open(settings);
  const close = async (): Promise<void> => {
    await world.stop();
    await peer.close();
  };
  return { mirrors: world.mirrors, root: world.root, close };
}

/** Completes settings by the schema of the section. The schema of the whole file does more. */
function completed(settings: MirrorSettings, root: string): MirrorConfig {
  return { ...mirrorSchema.parse({ ...settings, root }), root } as MirrorConfig;
}
