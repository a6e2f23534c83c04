import { open } from 'node:fs/promises';
import { Low } from 'lowdb';
import { PeersyncError, systemCode } from '../lib/errors.js';
import { HealthCheck } from '../lib/health.js';
import type { CommitListener } from './committed.js';
import type { OpenFile, StateError } from './directory.js';
import type { EntriesView } from './entries.js';
import type { Counts, EntriesReader } from './entries-reader.js';
import { type AwayItem, type Entry, type ItemKey, isAway } from './entry.js';
import { type AdapterOptions, JournalAdapter } from './journal.js';
import { sinceOf, statusOf } from './line.js';
import { loadState } from './load.js';
import { type Json, REPAIRED_META, StateData } from './rows.js';

/** Called for each change of a record as it is made, before it is on disk. Must not throw. */
export type ChangeListener = (
  after: Entry | undefined,
  statusBefore: Entry['status'] | undefined,
  place: ItemKey,
) => void;

/** A read-only view of the state. */
export class StateView<Records extends EntriesReader = EntriesReader> {
  /** @param repairs one sentence for each damage found when the state was read */
  constructor(
    readonly entries: Records,
    protected readonly data: StateData,
    readonly repairs: readonly string[],
  ) {}

  /** The error that keeps the latest changes from the disk; undefined once they are saved. */
  get failure(): PeersyncError | undefined {
    return this.data.failure;
  }

  get(folder: string, path: string): Entry | undefined {
    return this.entries.get(folder, path);
  }

  /** Counts the records of one folder, or of all. */
  counts(folder?: string): Counts {
    return this.entries.counts(folder);
  }

  /** Returns the small value saved under this name. */
  meta(name: string): Json | undefined {
    return this.data.meta.get(name);
  }

  /**
   * When the state last lost data from disk, or the peer another database, in ms since the epoch.
   * Records and the documents in the peer may differ then. Undefined if that never happened.
   */
  get repairedAt(): number | undefined {
    const at = this.data.meta.get(REPAIRED_META);
    return typeof at === 'number' ? at : undefined;
  }

  /** Returns the names of all small values that begin with `prefix`. */
  metaNames(prefix: string): readonly string[] {
    return [...this.data.meta.keys()].filter((name) => name.startsWith(prefix));
  }
}

/**
 * Longest time for a commit, in ms. It waits for the commit before it, and the disk may be busy.
 */
const MAX_COMMIT_MS = 5 * 60_000;
/** Time between two attempts of a commit that waits for disk space, in ms. */
const RETRY_MS = 5_000;
const FULL_DISK_HINT =
  'Free some space there. What you asked holds already, but a stop before there is space would forget it.';
/**
 * Number of attempts to read the state. The daemon's compaction may remove a file while it is read.
 */
const READ_ATTEMPTS = 10;

/**
 * Everything peersync knows: in memory while it runs, on disk across restarts.
 *
 * `put`, `remove` and `setMeta` change memory at once; `put` and `remove` call the listeners.
 * `commit` resolves when all changes so far are on disk. Commit a change before you act on it.
 * `close` commits the rest; do not use the state afterwards.
 */
export class State extends StateView<EntriesView> {
  readonly health = new HealthCheck('state', 'what is known is not brought to the disk', {
    limitMs: MAX_COMMIT_MS,
  });
  /**
   * The state as it is on disk, for everything that is shown to people and programs. Its small
   * values are those in memory.
   */
  readonly committed: StateView;
  readonly #listeners = new Set<ChangeListener>();
  /** Set while the disk is full: a commit failed and none has succeeded since. */
  #isDiskFull = false;
  /** The delay before the next attempt, shared by all waiting commits. */
  #retryDelay: Promise<void> | undefined;

  private constructor(
    private readonly low: Low<StateData>,
    private readonly adapter: JournalAdapter,
    private readonly options: AdapterOptions,
  ) {
    super(low.data.entries, low.data, adapter.repairs);
    this.committed = new StateView(low.data.committed, low.data, adapter.repairs);
  }

  /**
   * Opens the state in `dir`. Creates it if there is none, and repairs what a crash left behind.
   * The caller holds the lock of the directory.
   *
   * @throws StateError
   */
  static async open(dir: string, options: AdapterOptions): Promise<State> {
    const adapter = new JournalAdapter(dir, options);
    const low = new Low<StateData>(adapter, new StateData());
    await low.read();
    return new State(low, adapter, options);
  }

  /**
   * Reads the state in `dir` without locking, repairing or writing. A daemon may use it at the same
   * time. A directory without state reads as an empty state.
   *
   * @throws StateError
   */
  static async read(dir: string, options: { readonly open?: OpenFile } = {}): Promise<StateView> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const { data, repairs } = await loadState(dir, options.open ?? open);
        return new StateView(data.entries, data, repairs);
      } catch (error) {
        const vanished = error instanceof Error && systemCode(error.cause) === 'ENOENT';
        if (!vanished || attempt === READ_ATTEMPTS) throw error;
      }
    }
  }

  /**
   * Returns figures for the metrics. `unsaved` counts the changes that are not on disk yet: the
   * committer of `watch` and the housekeeping of the daemon commit while there are any.
   */
  figures() {
    const { committed, changes, failure } = this.data;
    return { records: committed.size, unsaved: changes.size, failure, ...this.adapter.figures() };
  }

  /** Called after each sync with its duration, in seconds. */
  set onSync(listener: (seconds: number) => void) {
    this.adapter.onSync = listener;
  }

  /** Adds a record or replaces it, in memory; see `commit`. */
  put(entry: Entry): void {
    const [before, line] = this.data.entries.put(entry);
    if (before !== line) this.#changed(entry, entry, before, line);
  }

  /** Removes the record of a file, in memory; see `commit`. */
  remove(folder: string, path: string): void {
    const before = this.data.entries.delete(folder, path);
    if (before !== undefined) this.#changed({ folder, path }, undefined, before, undefined);
  }

  /**
   * Saves a small value under a name, or removes it if `value` is undefined. In memory; see
   * `commit`.
   */
  setMeta(name: string, value: Json | undefined): void {
    const { meta, changes } = this.data;
    if (value === undefined) meta.delete(name);
    else meta.set(name, value);
    changes.add(name);
  }

  /**
   * Resolves when all changes so far are on disk. Commits that wait at the same time share one
   * sync.
   *
   * If the disk is full, a commit waits until there is space, and so does the work that depends on
   * it. The wait is logged once when it begins and once when it ends.
   *
   * @param whose `person` fails at once with STATE_FULL instead of waiting; the change still
   *   applies and is saved when there is space
   * @throws StateError STATE_FULL or STATE_UNWRITABLE: nothing is lost, and a later commit tries
   *   again
   */
  async commit(whose: 'work' | 'person' = 'work'): Promise<void> {
    const { clock, log, waitsUntil } = this.options;
    for (;;) {
      if (whose === 'work' && this.#retryDelay !== undefined) await this.#retryDelay;
      try {
        await this.health.during(() => this.low.write());
        if (this.#isDiskFull)
          log.info({ event: 'space' }, 'there is space for the state again; the work goes on');
        this.#isDiskFull = false;
        return;
      } catch (error) {
        const { failure } = this;
        if (failure?.code !== 'STATE_FULL' || waitsUntil?.aborted !== false) throw error;
        const { code, message, hint } = failure;
        if (!this.#isDiskFull) log.error({ event: 'full', code }, `${message} ${hint}`);
        this.#isDiskFull = true;
        if (whose === 'person') {
          // `close` reports changes that are never written.
          this.commit().catch(() => {});
          throw new PeersyncError({ code, message, hint: FULL_DISK_HINT });
        }
        this.#retryDelay ??= clock.sleep(RETRY_MS, waitsUntil).finally(() => {
          this.#retryDelay = undefined;
        });
      }
    }
  }

  /** Calls `listener` for each change of a record. Returns a function that unsubscribes. */
  onChange(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Calls `listener` for each change of a record that reaches the disk. Returns a function that
   * unsubscribes.
   */
  onCommit(listener: CommitListener): () => void {
    return this.data.committed.onCommit(listener);
  }

  /**
   * Removes the records that have been `gone` or `removed` for more than `ms`; returns their
   * number.
   *
   * @param isUndecided whether the removal of the document is still undecided; such records are
   *   kept
   */
  async forgetGone(ms: number, isUndecided = (_: AwayItem) => false): Promise<number> {
    const limit = this.options.clock.now() - ms;
    const where = (line: string) => sinceOf(line) < limit;
    let forgotten = 0;
    for await (const slice of this.entries.slices({ status: ['gone', 'removed'], where })) {
      for (const entry of slice) {
        if (!isAway(entry) || isUndecided(entry)) continue;
        this.remove(entry.folder, entry.path);
        forgotten += 1;
      }
    }
    await this.commit();
    return forgotten;
  }

  /**
   * Compacts the journal into a snapshot now. Compaction also starts by itself when the journal has
   * grown large.
   */
  compact(): Promise<void> {
    return this.adapter.compact(this.data);
  }

  /**
   * Called when the directory was removed or another peersync uses it. Makes every commit fail
   * until `writeAnew`.
   */
  lose(reason: StateError): void {
    this.adapter.lose(reason);
  }

  /**
   * Writes the whole state into the directory, which must not contain one. The caller holds its
   * lock.
   */
  writeAnew(): Promise<void> {
    return this.adapter.writeAnew(this.data);
  }

  /**
   * Checks that the journal is still in the directory. If it was removed or replaced, writes the
   * whole state anew in the background.
   */
  checkJournal(): Promise<void> {
    return this.adapter.checkJournal(this.data);
  }

  /** Commits the remaining changes, and closes even if that fails. */
  async close(): Promise<void> {
    try {
      await this.low.write();
    } finally {
      await this.adapter.close();
    }
  }

  #changed(
    place: ItemKey,
    after: Entry | undefined,
    lineBefore: string | undefined,
    lineAfter: string | undefined,
  ): void {
    this.data.committed.recordChange(place.folder, place.path, lineBefore, lineAfter);
    if (this.#listeners.size === 0) return;
    const before = lineBefore === undefined ? undefined : statusOf(lineBefore);
    for (const listener of this.#listeners) listener(after, before, place);
  }
}
