import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { TableMirrorConfig } from '../../src/config/config.js';
import type { Logger } from '../../src/lib/logger.js';
import { silentLogger } from '../../src/lib/logger.js';
import { MirrorAlarm } from '../../src/mirror/errors.js';
import type { Followed, MirrorDeps, MirrorPeer } from '../../src/mirror/mirror.js';
import type { Conflict, Facts, MirrorRecord } from '../../src/mirror/record.js';
import { TwoWayTable } from '../../src/mirror/two-way/two-way-table.js';
import type { TableRow } from '../../src/peer/table.js';
import { FakeClock } from '../support/fake-clock.js';

type Cells = Record<string, string>;

/** A table of a peer, in memory; `onCall` is told of every row that is about to change and has changed. */
export class TableInMemory {
  readonly rows = new Map<string, Cells>();
  readonly calls: string[] = [];
  onCall: (call: string) => void = () => {};

  constructor(rows: Record<string, Cells> = {}) {
    for (const [pk, cells] of Object.entries(rows)) this.rows.set(pk, { ...cells });
  }

  maxKeyBytes: () => Promise<number | undefined> = async () => undefined;

  readonly tables: MirrorPeer['tables'] = {
    maxKeyBytes: () => this.maxKeyBytes(),
    list: async () => ['T'],
    stream: async (_, use) => {
      this.#call('read');
      const keys = [...this.rows.keys()].sort();
      const rows = keys.map(
        (pk): TableRow => ({ pk, cells: new Map(Object.entries(this.rows.get(pk) ?? {})) }),
      );
      return use({ name: 'T', columns: this.columns(), rows: inGroups(rows) });
    },
    set: async (_, rows) => {
      for (const { pk, cells } of rows) {
        this.#call(`set ${pk} ${JSON.stringify(Object.fromEntries(cells))}`);
        this.rows.set(pk, { ...this.rows.get(pk), ...Object.fromEntries(cells) });
        this.onCall('was set');
      }
      return rows;
    },
    deleteRows: async (_, keys) => {
      for (const pk of keys) {
        this.#call(`delete ${pk}`);
        this.rows.delete(pk);
        this.onCall('was deleted');
      }
      return keys;
    },
  };

  columns(): string[] {
    return [...new Set([...this.rows.values()].flatMap((cells) => Object.keys(cells)))].sort();
  }

  /** All rows without their empty cells. */
  content(): Record<string, Cells> {
    return Object.fromEntries([...this.rows].sort().map(([pk, cells]) => [pk, filled(cells)]));
  }

  /** What was written to it. */
  get writes(): string[] {
    return this.calls.filter((call) => call !== 'read');
  }

  #call(call: string): void {
    this.onCall(call);
    this.calls.push(call);
  }
}

async function* inGroups(rows: readonly TableRow[]): AsyncGenerator<readonly TableRow[]> {
  for (let at = 0; at < rows.length; at += 500) yield rows.slice(at, at + 500);
}

export function filled(cells: Cells): Cells {
  return Object.fromEntries(Object.entries(cells).filter(([, value]) => value !== ''));
}

interface RunOptions {
  /** A person accepts that rows are deleted. */
  readonly accept?: boolean;
  readonly signal?: AbortSignal;
}

/** How a run ended. */
type Outcome =
  | {
      readonly kind: 'settled';
      readonly changed: boolean;
      readonly record: Facts;
      /** What was written to the peer. */
      readonly written: { readonly rows: number; readonly deleted: number };
    }
  | { readonly kind: 'later' }
  | { readonly kind: 'alarm'; readonly trouble: MirrorAlarm };

export type DeskSettings = Partial<TableMirrorConfig>;

/** A person at a desk, with a two-way table in front. */
export class Desk {
  readonly root: string;
  readonly file: string;
  /** An hour ahead: every file that is written now is at rest. */
  clock = new FakeClock(Date.now() + 3_600_000);
  known: Partial<MirrorRecord> = {};
  table: TwoWayTable;
  /** Throw here, to end a run as a crash would. */
  onStep: (step: string) => void = () => {};
  readonly #peer: TableInMemory;
  readonly #stateDir: string;
  readonly #settings: DeskSettings;
  #edits = 0;

  constructor(
    directory: string,
    peer: TableInMemory,
    settings: DeskSettings = {},
    readonly path = 'tables/T.ndjson',
  ) {
    this.root = join(directory, 'root');
    this.#stateDir = join(directory, 'state');
    this.file = join(this.root, path);
    this.#settings = { format: 'ndjson', deletes: true, maxDeletes: 10, versions: 0, ...settings };
    this.#peer = peer;
    this.table = this.open();
  }

  open(): TwoWayTable {
    const log: Logger = { ...silentLogger, debug: (_, step) => this.onStep(step) };
    const deps: Partial<MirrorDeps> = {
      peer: this.#peer as unknown as MirrorPeer,
      isListed: () => true,
      ask: (signal, work) => work(signal ?? new AbortController().signal),
      ...{ root: this.root, stateDir: this.#stateDir, clock: this.clock, log },
    };
    const settings = this.#settings as TableMirrorConfig;
    const plan = { kind: 'table', name: 'T', source: 'T', role: 'single', settings } as const;
    this.table = new TwoWayTable(plan, { path: this.path, notes: [] }, deps as MirrorDeps);
    return this.table;
  }

  get record(): MirrorRecord {
    return { kind: 'table', path: this.path, ...this.known };
  }

  async run({ accept = false, signal = new AbortController().signal }: RunOptions = {}): Promise<Outcome> {
    // What becomes of rows and columns that others remove is not what these tests are about.
    const accepted = ['TABLE_EMPTY', 'COLUMNS_LOST', ...(accept ? ['EDIT_DELETES'] : [])];
    const before = this.#peer.calls.length;
    let outcome: Followed;
    try {
      outcome = await this.table.follow(this.record, { accepted, signal });
    } catch (error) {
      if (!(error instanceof MirrorAlarm)) throw error;
      const { code, message, hint, conflicts = [] } = error;
      const alarm = { code, message, hint, since: this.clock.now() };
      this.known = { ...this.known, conflicts, alarm };
      return { kind: 'alarm', trouble: error };
    }
    if (outcome.kind === 'over') throw new Error('a table that is over');
    if (outcome.kind === 'later') return outcome;
    this.known = outcome.facts;
    const calls = this.#peer.calls.slice(before);
    const count = (what: string) => calls.filter((call) => call.startsWith(what)).length;
    const written = { rows: count('set '), deleted: count('delete ') };
    return { kind: 'settled', changed: outcome.changed, record: outcome.facts, written };
  }

  async settled(options: RunOptions = {}): Promise<Extract<Outcome, { kind: 'settled' }>> {
    const outcome = await this.run(options);
    if (outcome.kind !== 'settled') throw new Error(`not settled: ${JSON.stringify(outcome)}`);
    return outcome;
  }

  async alarm(): Promise<MirrorAlarm> {
    const outcome = await this.run();
    if (outcome.kind !== 'alarm') throw new Error(`no alarm: ${JSON.stringify(outcome)}`);
    return outcome.trouble;
  }

  text(): string {
    return readFileSync(this.file, 'utf8');
  }

  /** Writes the file as an editor does: in place, or whole. Each write is a second later than the one before. */
  write(text: string, how: 'in place' | 'whole' = 'whole'): void {
    mkdirSync(join(this.file, '..'), { recursive: true });
    const to = how === 'whole' ? `${this.file}~` : this.file;
    writeFileSync(to, text);
    this.#edits += 1;
    const at = Date.now() / 1000 - 100_000 + this.#edits;
    utimesSync(to, at, at);
    if (how === 'whole') renameSync(to, this.file);
  }

  /** The rows of an NDJSON file. */
  rows(): Cells[] {
    const lines = existsSync(this.file) ? this.text().split('\n') : [];
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Cells);
  }

  /** Changes the rows of an NDJSON file. */
  edit(change: (rows: Cells[]) => readonly Cells[], how: 'in place' | 'whole' = 'whole'): void {
    const rows = change(this.rows());
    this.write(rows.map((row) => `${JSON.stringify(row)}\n`).join(''), how);
  }

  /** As `TableInMemory.content`. */
  content(): Record<string, Cells> {
    return Object.fromEntries(this.rows().map(({ pk = '', ...cells }) => [pk, filled(cells)]));
  }

  conflictFiles(): string[] {
    const directory = join(this.file, '..');
    return readdirSync(directory).filter((name) => name.includes('.conflict-'));
  }

  conflictTexts(): string[] {
    return this.conflictFiles().map((name) => readFileSync(join(this.file, '..', name), 'utf8'));
  }

  conflicts(): readonly Conflict[] {
    return this.known.conflicts ?? [];
  }
}

/** Ends the next run at a step, as a crash would, and starts anew. */
export async function crashAt(desk: Desk, step: string): Promise<void> {
  desk.onStep = (at) => {
    if (at === step) throw new Error('crash');
  };
  await expect(desk.run()).rejects.toThrow('crash');
  desk.onStep = () => {};
  desk.open();
}
