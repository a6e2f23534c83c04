import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { MirrorConfig } from '../../src/config/config.js';
import { mirrorSchema } from '../../src/config/schema.js';
import { type Clock, systemClock } from '../../src/lib/clock.js';
import type { MirrorPeer } from '../../src/mirror/mirror.js';
import { Mirrors } from '../../src/mirror/mirrors.js';
import type { MirrorReport } from '../../src/mirror/record.js';
import type { Citation, CitationQuery } from '../../src/peer/citation.js';
import { PeerError, type PeerErrorCode } from '../../src/peer/errors.js';
import type { ShareQuery, ShareStream } from '../../src/peer/share.js';
import type { TableQuery, TableRow, TableStream } from '../../src/peer/table.js';
import { RequestQueue } from '../../src/queue/request-queue.js';
import { State } from '../../src/state/state.js';
import { classify } from '../../src/uplink/batch-sender.js';
import { waitMs } from '../queue/queue-setup.js';
import { afterwards } from '../support/afterwards.js';
import { temporaryDirectory } from '../support/temp.js';

/** A shared object of the fake peer; a function may answer anything, or throw. */
export type Shared = { readonly type?: string; readonly content: string | readonly string[] };

export type Cells = Readonly<Record<string, string>>;

/** A peer in memory, with every behaviour open to a test. */
export class FakePeer implements MirrorPeer {
  readonly baseUrl = 'http://127.0.0.1:1';
  readonly objects = new Map<string, Shared | (() => Shared)>();
  readonly tableRows = new Map<string, Map<string, Cells>>();
  readonly citations = new Map<string, Citation>();
  /** What was asked for, in order: `share x`, `table t`, `list`, `citation url`. */
  readonly asked: string[] = [];
  /** Called before anything is answered; may throw or wait. */
  onAsk: (what: string) => void | Promise<void> = () => {};
  /** Said ahead of the rows. */
  columns: readonly string[] | undefined;

  async citation(query: CitationQuery): Promise<Citation | undefined> {
    const of = 'url' in query ? query.url : query.hash;
    await this.#ask(`citation ${of}`);
    return this.citations.get(of);
  }

  async share<T>(
    { data, c }: ShareQuery,
    use: (share: ShareStream) => Promise<T>,
    { maxBytes = 10 ** 9, signal }: { readonly maxBytes?: number; readonly signal?: AbortSignal } = {},
  ): Promise<T | undefined> {
    const name = c === undefined ? data : `${c}/${data}`;
    await this.#ask(`share ${name}`);
    const shared = this.objects.get(name);
    if (shared === undefined) return undefined;
    const { type, content } = typeof shared === 'function' ? shared() : shared;
    async function* chunks(): AsyncGenerator<Uint8Array> {
      let size = 0;
      for (const chunk of typeof content === 'string' ? [content] : content) {
        signal?.throwIfAborted();
        await new Promise((resolve) => setImmediate(resolve));
        const bytes = Buffer.from(chunk);
        size += bytes.length;
        if (size > maxBytes) throw peerError('PEER_ANSWER_TOO_LARGE');
        yield bytes;
      }
    }
    return use({ type, size: undefined, lastModified: undefined, chunks: chunks() });
  }

  /** Undefined for a peer that does not tell. */
  listed: readonly string[] | undefined;
  maxKeyBytes: number | undefined;

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
      async function* groups(): AsyncGenerator<TableRow[]> {
        for (const [pk, cells] of rows ?? []) yield [{ pk, cells: new Map(Object.entries(cells)) }];
      }
      return use({ name: table, columns: this.columns, rows: groups() });
    },
    set: async (table: string, rows: readonly TableRow[]): Promise<readonly TableRow[]> => {
      await this.#ask(`set ${table} ${rows.map(({ pk }) => pk).join(' ')}`);
      const all = this.tableRows.get(table) ?? new Map<string, Cells>();
      for (const { pk, cells } of rows) all.set(pk, { ...all.get(pk), ...Object.fromEntries(cells) });
      this.tableRows.set(table, all);
      return rows;
    },
    deleteRows: async (table: string, keys: readonly string[]): Promise<readonly string[]> => {
      await this.#ask(`delete ${table} ${keys.join(' ')}`);
      for (const key of keys) this.tableRows.get(table)?.delete(key);
      return keys;
    },
  };

  table(name: string, rows: Readonly<Record<string, Cells>>): void {
    this.tableRows.set(name, new Map(Object.entries(rows)));
  }

  async #ask(what: string): Promise<void> {
    this.asked.push(what);
    await this.onAsk(what);
  }
}

export function peerError(code: PeerErrorCode, status?: number): PeerError {
  return new PeerError(code, {
    url: 'http://127.0.0.1:1/api/x.html',
    what: 'gave no usable answer',
    delivered: 'yes',
    status,
  });
}

export type Settings = Parameters<typeof mirrorSchema.parse>[0];

/** Mirrors of a fake peer, with a real root, state and queue. */
export class Engine {
  readonly root = join(temporaryDirectory(), 'mirror');
  readonly stateDir = temporaryDirectory();
  readonly said: string[] = [];
  readonly log = {
    debug: () => {},
    info: (_: object, message: string) => void this.said.push(`info: ${message}`),
    warn: (_: object, message: string) => void this.said.push(`warn: ${message}`),
    error: (_: object, message: string) => void this.said.push(`error: ${message}`),
  };
  failure: unknown;
  random = () => 0;
  #mirrors: Mirrors | undefined;
  #state: State | undefined;
  #queue: RequestQueue | undefined;

  constructor(
    readonly peer: MirrorPeer = new FakePeer(),
    readonly clock: Clock = systemClock,
  ) {
    afterwards('test', () => this.stop());
  }

  get mirrors(): Mirrors {
    if (this.#mirrors === undefined) throw new Error('not opened');
    return this.#mirrors;
  }

  get state(): State {
    if (this.#state === undefined) throw new Error('not opened');
    return this.#state;
  }

  /** As the configuration file has them; what is missing gets its default. Opened again it is as after a restart. */
  async open(settings: {
    readonly shares?: readonly object[];
    readonly tables?: readonly object[];
    readonly citations?: readonly object[];
  }): Promise<Mirrors> {
    await this.stop();
    const { clock, log } = this;
    this.#state = await State.open(this.stateDir, { clock, log });
    const lane = { requestsPerSecond: 100_000, concurrency: 4 };
    this.#queue = new RequestQueue({
      lanes: { interactive: lane, confirm: lane, push: lane, mirror: lane, audit: lane },
      classify,
      clock,
      log,
      peerName: 'the peer',
      policy: { waitMs: waitMs(10, 20) },
    });
    this.#mirrors = await Mirrors.open({
      settings: completed(settings, this.root),
      stateDir: this.stateDir,
      state: this.#state,
      queue: this.#queue,
      peer: this.peer,
      clock,
      log,
      random: () => this.random(),
    });
    return this.#mirrors;
  }

  /** From now on these settings hold, as after a change of the configuration file. */
  async configure(settings: Parameters<Engine['open']>[0], root = this.root): Promise<void> {
    await this.mirrors.configure(completed(settings, root));
  }

  start(): void {
    this.mirrors.start((error) => {
      this.failure = error;
    });
  }

  async stop(): Promise<void> {
    const stopped = this.#mirrors?.stop();
    await this.#queue?.stop(0);
    await stopped;
    await this.#state?.close();
    this.#mirrors = undefined;
    this.#queue = undefined;
    this.#state = undefined;
    if (this.failure !== undefined) throw this.failure;
  }

  get circuit(): string | undefined {
    return this.#queue?.status().circuit.state;
  }

  async run(...names: string[]): Promise<MirrorReport[]> {
    const reports: MirrorReport[] = [];
    for await (const report of this.mirrors.run(names.length > 0 ? names : undefined)) reports.push(report);
    return reports;
  }

  /** Runs one mirror, and says how that ended. */
  async once(name: string): Promise<MirrorReport> {
    const [report] = await this.run(name);
    if (report === undefined) throw new Error('no report');
    return report;
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

  /** All files below the root, and everything else that stands beside it. */
  files(): string[] {
    return filesBelow(this.root);
  }
}

export function filesBelow(directory: string): string[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .sort();
}

/** As the configuration is completed. */
function completed(settings: object, root: string): MirrorConfig {
  const { shares, tables, citations, ...rest } = mirrorSchema.parse({ ...settings, root });
  return {
    ...rest,
    root,
    shares: shares.map((share) => {
      const whole = share.c === undefined ? share.data : `${share.c}/${share.data}`;
      const target = /[*?]/.test(share.data) ? whole.replace(share.data, '{data}') : whole;
      return { ...share, name: share.name ?? whole, path: share.path ?? `shares/${target}` };
    }),
    tables: tables.map((table) => ({
      ...table,
      name: table.name ?? table.table,
      path: table.path ?? `tables/{table}.${table.format}`,
    })),
    citations: citations.map((each) => ({
      ...each,
      name: each.name ?? `citations/${each.folder}`,
      path: each.path ?? 'citations/{folder}/{path}.json',
    })),
  };
}
