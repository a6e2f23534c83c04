import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { mirrorSchema } from '../../src/config/mirror-schema.js';
import type { Logger } from '../../src/lib/logger.js';
import { silentLogger } from '../../src/lib/logger.js';
import { MirrorCondition } from '../../src/mirror/errors.js';
import type { MirrorDeps } from '../../src/mirror/mirror.js';
import type { MirrorRecord } from '../../src/mirror/record.js';
import { TwoWayTable } from '../../src/mirror/two-way/two-way-table.js';
import { FileChanged } from '../../src/mirror/whole-file.js';
import { FakeClock } from '../support/fake-clock.js';
import { FakePeer } from '../support/fake-peer.js';
import { temporaryDirectory } from '../support/temp.js';

export type Cells = Record<string, string>;
export type Rows = Record<string, Cells>;

/** The steps at which a run can crash, with their lines in the debug log. */
export const STEPS: Readonly<Record<string, string>> = {
  ahead: 'the changes are written ahead',
  pushing: 'rows are about to be pushed',
  pushed: 'rows were pushed',
  deleted: 'rows were deleted in the peer',
  conflict: 'the conflicts are saved',
  prepared: 'the new base is prepared',
  written: 'the file is written',
  activated: 'the new base holds',
};

/** The end of a run: the facts of a report, `busy`, or a condition. */
type Outcome = Omit<Partial<MirrorRecord>, 'kind'> & {
  readonly kind: string;
  readonly changed?: boolean;
};

/**
 * The two-way table `T` of a fake peer, and its file. It is apart from the world of all mirrors
 * because its tests play thousands of edits, runs and crashes: a run needs no scheduler, no queue
 * and no state, and can crash at each of its steps.
 */
export class TwoWayWorld {
  readonly peer = new FakePeer();
  /** The rows of the peer. */
  readonly remote: Map<string, Cells>;
  readonly root: string;
  readonly path: string;
  readonly file: string;
  /** The directory of the base. */
  readonly bases: string;
  /** An hour ahead: every file that is written now is at rest. */
  readonly clock = new FakeClock(Date.now() + 3_600_000);
  known: Partial<MirrorRecord> = {};
  /** The lines of the log. */
  readonly logged: string[] = [];
  table: TwoWayTable;
  /** Throw here, to end a run as a crash would. */
  onStep: (step: string) => unknown = () => {};
  readonly #settings: object;
  #edits = 0;

  /** @param settings as in the configuration; `ndjson`, with deletes, unless given */
  constructor(rows: Rows, settings: Readonly<Record<string, unknown>> = {}) {
    const directory = temporaryDirectory();
    this.peer.table('T', rows);
    this.remote = this.peer.tableRows.get('T') as Map<string, Cells>;
    this.#settings = { table: 'T', edit: true, format: 'ndjson', deletes: true, ...settings };
    this.root = join(directory, 'root');
    this.path = `tables/T.${settings.format ?? 'ndjson'}`;
    this.file = join(this.root, this.path);
    this.bases = join(directory, 'mirrors');
    this.table = this.open();
  }

  /** Restarts. */
  open(): TwoWayTable {
    const log: Logger = {
      ...silentLogger,
      debug: (_, step) => this.onStep(step),
      info: (_, message) => this.logged.push(message),
    };
    const deps: Partial<MirrorDeps> = {
      catalog: { has: () => true, replace: async () => {} },
      requests: {
        run: (signal, work) => work(signal ?? new AbortController().signal),
        commit: async () => {},
      },
      peer: this.peer,
      root: this.root,
      stateDir: dirname(this.bases),
      clock: this.clock,
      log,
    };
    const settings = mirrorSchema.parse({ tables: [this.#settings] }).tables[0];
    if (settings === undefined) throw new Error('one table');
    const plan = { kind: 'table', name: 'T', source: 'T', role: 'single', settings } as const;
    this.table = new TwoWayTable(plan, { path: this.path, notes: [] }, deps as MirrorDeps);
    return this.table;
  }

  get record(): MirrorRecord {
    return { kind: 'table', path: this.path, ...this.known };
  }

  /**
   * @param accept the code of a condition to accept, besides those about rows and columns
   */
  async run({ accept = '', signal = new AbortController().signal } = {}): Promise<Outcome> {
    const accepted = ['TABLE_EMPTY', 'COLUMNS_LOST', accept];
    try {
      const followed = await this.table.follow(this.record, { accepted, signal });
      if (followed.kind !== 'current') return { kind: followed.kind };
      this.known = followed.facts;
      return { kind: 'current', changed: followed.changed, ...followed.facts };
    } catch (error) {
      if (error instanceof FileChanged) return { kind: 'busy' };
      if (!(error instanceof MirrorCondition)) throw error;
      const { code, message, hint, conflicts = [] } = error;
      this.known = {
        ...this.known,
        conflicts,
        condition: { code, message, hint, since: this.clock.now() },
      };
      return { kind: 'condition', ...this.known };
    }
  }

  /** Runs, and expects no error. */
  async settled(accept?: string): Promise<Outcome> {
    const outcome = await this.run(accept === undefined ? {} : { accept });
    expect(outcome).toMatchObject({ kind: 'current' });
    return outcome;
  }

  /** Runs, and returns the code and text of the condition. */
  async condition(): Promise<string> {
    const { condition } = await this.run();
    return `${condition?.code}: ${condition?.message} ${condition?.hint}`;
  }

  /** Crashes the next run at a step, and restarts. */
  async crashAt(step: string): Promise<void> {
    this.onStep = (at) => {
      if (at === step) throw new Error('crash');
    };
    await expect(this.run()).rejects.toThrow('crash');
    this.onStep = () => {};
    this.open();
  }

  /** Runs while the file is saved again just before it is replaced. */
  async race(): Promise<void> {
    this.onStep = (at) => at === STEPS.prepared && this.write(this.text());
    expect(await this.run()).toEqual({ kind: 'busy' });
    this.onStep = () => {};
  }

  /**
   * Plays a script of steps, and runs at its end.
   *
   * - `edit k1 a=1` and `peer k1 a=1` change cells in the file and in the peer. `+` is a new row
   *   without a key, and `k1 -` removes a row.
   * - `open` opens the file in an editor. `save k1 a=1` changes it there, and saves it.
   * - `remove` removes the file.
   * - `run` runs a minute later. `crash STEP` crashes at a step (see STEPS). `race` is a run during
   *   which the file is saved again.
   * - `wait N` waits for days.
   */
  async play(script: string): Promise<Outcome> {
    let opened: Cells[] = [];
    for (const step of script.split(' · ')) {
      const [what, pk = '', ...rest] = step.split(' ');
      const cells =
        rest[0] === '-' ? undefined : Object.fromEntries(rest.map((cell) => cell.split('=')));
      if (what === 'open') opened = this.rows();
      else if (what === 'save') {
        opened = changed(opened, pk, cells);
        this.save(opened);
      } else if (what === 'edit') this.save(changed(this.rows(), pk, cells));
      else if (what === 'peer' && cells === undefined) this.remote.delete(pk);
      else if (what === 'peer') this.remote.set(pk, { ...this.remote.get(pk), ...cells });
      else if (what === 'remove') rmSync(this.file);
      else if (what === 'race') await this.race();
      else if (what === 'crash') await this.crashAt(STEPS[pk] ?? pk);
      else if (what === 'wait') await this.clock.advance(Number(pk) * 86_400_000);
      else if (what === 'run') {
        await this.clock.advance(60_000);
        await this.settled();
      }
    }
    return await this.settled();
  }

  /**
   * Returns the writes to the peer: `k1 a=1` for a row, `+ a=1` for one under a new key, `-k1` for
   * a removed one.
   */
  get writes(): string[] {
    return this.peer.writes.map((what) => {
      const [, pk = '', json] = /^(?:set|delete) T (\S+)(?: (.*))?$/.exec(what) ?? [];
      if (json === undefined) return `-${pk}`;
      const cells = Object.entries(JSON.parse(json)).map((cell) => cell.join('='));
      return [/^[0-9a-z]{12}$/.test(pk) ? '+' : pk, ...cells].join(' ');
    });
  }

  text(): string {
    return readFileSync(this.file, 'utf8');
  }

  /**
   * Writes the file as an editor does: in place, or whole. Each write is a second later than the
   * one before.
   */
  write(text: string, how: 'in place' | 'whole' = 'whole'): void {
    mkdirSync(dirname(this.file), { recursive: true });
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

  /** Writes these rows as an NDJSON file. */
  save(rows: readonly Cells[], how?: 'in place' | 'whole'): void {
    this.write(rows.map((row) => `${JSON.stringify(row)}\n`).join(''), how);
  }

  /** Returns the rows of the file without their empty cells. */
  content(): Rows {
    return Object.fromEntries(this.rows().map(({ pk = '', ...cells }) => [pk, filled(cells)]));
  }

  /** Returns the rows of the peer without their empty cells. */
  theirs(): Rows {
    return Object.fromEntries([...this.remote].sort().map(([pk, cells]) => [pk, filled(cells)]));
  }

  conflictFiles(): string[] {
    return readdirSync(dirname(this.file)).filter((name) => name.includes('.conflict-'));
  }

  conflictTexts(): string[] {
    return this.conflictFiles().map((name) => readFileSync(join(dirname(this.file), name), 'utf8'));
  }

  /** Returns the cells or rows in conflict: `k1 a`. */
  conflicts(): string[] {
    return (this.known.conflicts ?? []).map(({ pk, column = '' }) => `${pk} ${column}`.trim());
  }
}

/** The rows with other cells in one of them, with one more, or with one less. */
function changed(rows: readonly Cells[], pk: string, cells: Cells | undefined): Cells[] {
  if (cells === undefined) return rows.filter((row) => row.pk !== pk);
  if (pk === '') return [...rows];
  const known = rows.find((row) => row.pk === pk);
  if (known === undefined) return [...rows, { pk: pk === '+' ? '' : pk, ...cells }];
  return rows.map((row) => (row === known ? { ...row, ...cells } : row));
}

export function filled(cells: Cells): Cells {
  return Object.fromEntries(Object.entries(cells).filter(([, value]) => value !== ''));
}

/** `k1 a=1 b=2; k2 a=3` as rows. */
export function rowsOf(text: string): Rows {
  const rows = text.split(';').map((row) => row.trim().split(' '));
  const named = rows.filter(([pk]) => pk !== '' && pk !== undefined);
  return Object.fromEntries(
    named.map(([pk = '', ...cells]) => [
      pk,
      Object.fromEntries(cells.map((cell) => cell.split('='))),
    ]),
  );
}

/** Creates a world with a mirrored file. */
export async function twoWayWorld(
  rows: string | Rows = 'k1 a=1 b=2; k2 a=3 b=4',
  settings: Readonly<Record<string, unknown>> = {},
) {
  const world = new TwoWayWorld(typeof rows === 'string' ? rowsOf(rows) : rows, settings);
  await world.settled();
  world.peer.requests.length = 0;
  return world;
}
