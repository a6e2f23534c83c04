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
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { MirrorConfig } from '../../src/config/config.js';
import { mirrorSchema } from '../../src/config/mirror-schema.js';
import { type Clock, systemClock } from '../../src/lib/clock.js';
import type { MirrorPeer } from '../../src/mirror/mirror.js';
import { Mirrors } from '../../src/mirror/mirrors.js';
import type { MirrorReport } from '../../src/mirror/record.js';
import { MARKER } from '../../src/mirror/target-path.js';
import type { Citation, CitationOptions, CitationQuery } from '../../src/peer/citation.js';
import { PeerError, type PeerErrorCode } from '../../src/peer/errors.js';
import type { ShareQuery, ShareStream } from '../../src/peer/share.js';
import type { TableQuery, TableRow, TableStream } from '../../src/peer/table.js';
import { RequestQueue } from '../../src/queue/request-queue.js';
import { State } from '../../src/state/state.js';
import { classify } from '../../src/uplink/batch-sender.js';
import { waitMs } from '../queue/queue-setup.js';
import { afterwards } from '../support/afterwards.js';
import { loggerTo } from '../support/logger.js';
import { temporaryDirectory } from '../support/temp.js';

/** A shared object of the fake peer: a list comes in as many pieces. */
export type Shared = { readonly type?: string; readonly content: string | readonly string[] };
export type Cells = Readonly<Record<string, string>>;
export type Rows = Readonly<Record<string, Cells>>;

/** A peer in memory, with every behaviour open to a test. */
export class FakePeer implements MirrorPeer {
  readonly baseUrl = 'http://127.0.0.1:1';
  readonly objects = new Map<string, Shared>();
  readonly tableRows = new Map<string, Map<string, Cells>>();
  readonly citations = new Map<string, Citation>();
  /**
   * What was asked for, in order: `share x`, `shares`, `table t`, `list`, `citation url`, `set t k
   * {"a":"1"}`, `delete t k`.
   */
  readonly asked: string[] = [];
  /**
   * Called before anything is answered, and with `did …` after a row was changed; may throw or
   * wait.
   */
  onAsk: (what: string) => unknown = () => {};
  /** Said ahead of the rows. */
  columns: readonly string[] | undefined;
  /** The shared objects; undefined for a peer that does not tell. */
  listed: readonly string[] | undefined;
  maxKeyBytes: number | undefined;
  /** Whether the bytes of its tables were UTF-8. */
  isUtf8 = true;
  /** Keys that each table shows once more. */
  twice: readonly string[] = [];

  async citation(query: CitationQuery, _options?: CitationOptions): Promise<Citation | undefined> {
    const of = 'url' in query ? query.url : query.hash;
    await this.#ask(`citation ${of}`);
    return this.citations.get(of);
  }

  async share<T>(
    { data, c }: ShareQuery,
    use: (share: ShareStream) => Promise<T>,
    {
      maxBytes = 10 ** 9,
      signal,
    }: { readonly maxBytes?: number; readonly signal?: AbortSignal } = {},
  ): Promise<T | undefined> {
    const name = c === undefined ? data : `${c}/${data}`;
    await this.#ask(`share ${name}`);
    const shared = this.objects.get(name);
    if (shared === undefined) return undefined;
    async function* chunks(content: Shared['content']): AsyncGenerator<Uint8Array> {
      let size = 0;
      for (const chunk of typeof content === 'string' ? [content] : content) {
        signal?.throwIfAborted();
        await nextTurn();
        size += chunk.length;
        if (size > maxBytes) throw peerError('PEER_ANSWER_TOO_LARGE');
        yield Buffer.from(chunk);
      }
    }
    const { type, content } = shared;
    return use({ type, size: undefined, lastModified: undefined, chunks: chunks(content) });
  }

  async shares(): Promise<readonly string[] | undefined> {
    await this.#ask('shares');
    return this.listed;
  }

  readonly tables = {
    maxKeyBytes: async () => this.maxKeyBytes,
    list: async (): Promise<readonly string[]> => {
      await this.#ask('list');
      return [...this.tableRows.keys()];
    },
    stream: async <T>(
      { table }: TableQuery,
      use: (table: TableStream) => Promise<T>,
    ): Promise<T | undefined> => {
      await this.#ask(`table ${table}`);
      const rows = this.tableRows.get(table);
      if (rows === undefined) return undefined;
      async function* groups(all: readonly TableRow[]): AsyncGenerator<readonly TableRow[]> {
        for (let at = 0; at < all.length; at += 500) yield all.slice(at, at + 500);
      }
      const all = [...rows].map(([pk, cells]) => row(pk, cells));
      all.push(...this.twice.map((pk) => row(pk, { name: 'Twin' })));
      return use({
        name: table,
        columns: this.columns,
        rows: groups(all),
        isUtf8: () => this.isUtf8,
      });
    },
    set: async (table: string, rows: readonly TableRow[]): Promise<readonly TableRow[]> => {
      for (const { pk, cells } of rows) {
        const set = Object.fromEntries(cells);
        await this.#change(table, `set ${table} ${pk} ${JSON.stringify(set)}`, (all) =>
          all.set(pk, { ...all.get(pk), ...set }),
        );
      }
      return rows;
    },
    deleteRows: async (table: string, keys: readonly string[]): Promise<readonly string[]> => {
      for (const pk of keys)
        await this.#change(table, `delete ${table} ${pk}`, (all) => all.delete(pk));
      return keys;
    },
  };

  table(name: string, rows: Rows): void {
    this.tableRows.set(name, new Map(Object.entries(rows)));
  }

  /** What it was told to change. */
  get writes(): string[] {
    return this.asked.filter((what) => /^(set|delete) /.test(what));
  }

  async #ask(what: string): Promise<void> {
    this.asked.push(what);
    await this.onAsk(what);
  }

  async #change(
    table: string,
    what: string,
    change: (rows: Map<string, Cells>) => unknown,
  ): Promise<void> {
    await this.#ask(what);
    const rows = this.tableRows.get(table) ?? new Map<string, Cells>();
    change(rows);
    this.tableRows.set(table, rows);
    await this.onAsk(`did ${what}`);
  }
}

export function row(pk: string, cells: Cells = {}): TableRow {
  return { pk, cells: new Map(Object.entries(cells)) };
}

export function peerError(code: PeerErrorCode, status?: number): PeerError {
  return new PeerError(code, {
    url: 'http://127.0.0.1:1/api/x.html',
    what: 'gave no usable answer',
    delivered: 'yes',
    status,
  });
}

/** As the configuration file has them. */
interface Settings {
  readonly shares?: readonly object[];
  readonly tables?: readonly object[];
  readonly citations?: readonly object[];
}

/** Mirrors of a peer, with a real root, state and queue. */
export class Engine<P extends MirrorPeer = FakePeer> {
  root = join(temporaryDirectory(), 'mirror');
  readonly stateDir = temporaryDirectory();
  /** The log: `warn: mirror prices: …`. */
  readonly said: string[] = [];
  failure: unknown;
  random = () => 0;
  #opened:
    | { readonly mirrors: Mirrors; readonly state: State; readonly queue: RequestQueue }
    | undefined;

  constructor(
    readonly peer: P,
    readonly clock: Clock = systemClock,
  ) {
    afterwards('test', () => this.stop());
  }

  /** What is missing in the settings gets its default. Opened again it is as after a restart. */
  async open(settings: Settings): Promise<this> {
    await this.stop();
    const { clock, peer, stateDir } = this;
    const log = loggerTo(this.said);
    const state = await State.open(stateDir, { clock, log });
    const lane = { requestsPerSecond: 100_000, concurrency: 4 };
    const queue = new RequestQueue({
      lanes: {
        interactive: lane,
        confirm: lane,
        push: lane,
        removal: lane,
        mirror: lane,
        audit: lane,
      },
      classify,
      clock,
      log,
      peerName: 'the peer',
      policy: { waitMs: waitMs(10, 20) },
    });
    const random = () => this.random();
    const parts = {
      settings: completed(settings, this.root),
      stateDir,
      state,
      queue,
      peer,
      clock,
      log,
    };
    this.#opened = { mirrors: await Mirrors.open({ ...parts, random }), state, queue };
    return this;
  }

  /** From now on these settings hold, as after a change of the configuration file. */
  async configure(settings: Settings, root = this.root): Promise<void> {
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

  /** Its state is lost. */
  async forget(): Promise<void> {
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

  /** Runs one mirror, and says how that ended. */
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

  /** All files below the root, but for its marker. */
  files(): string[] {
    return filesBelow(this.root).filter((name) => name !== MARKER);
  }

  get #parts() {
    if (this.#opened === undefined) throw new Error('not opened');
    return this.#opened;
  }
}

/** Mirrors that ran once: `tables` of the peer by name, `objects` as text. */
export async function mirrored(
  settings: Settings,
  {
    tables = {},
    objects = {},
  }: { readonly tables?: Record<string, Rows>; objects?: Record<string, Shared> },
  clock?: Clock,
) {
  const peer = new FakePeer();
  for (const [name, rows] of Object.entries(tables)) peer.table(name, rows);
  for (const [name, shared] of Object.entries(objects)) peer.objects.set(name, shared);
  const engine = await new Engine(peer, clock).open(settings);
  await engine.run();
  return { peer, engine };
}

/** Whatever is saved now was saved a while ago. */
export const A_MINUTE_LATER: Clock = { ...systemClock, wall: () => Date.now() + 60_000 };

/** Answers nothing to a question before it is told to. */
export function hold(peer: FakePeer, what: string): () => void {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  peer.onAsk = (asked) => (asked === what ? released : undefined);
  return release;
}

export function filesBelow(directory: string): string[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .sort();
}

/** As the configuration is completed; the schema of the whole file does more. */
function completed(settings: Settings, root: string): MirrorConfig {
  return { ...mirrorSchema.parse({ ...settings, root }), root } as MirrorConfig;
}

/**
 * Files below a directory that this process has open, also those without a name; none where the
 * system does not tell.
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
