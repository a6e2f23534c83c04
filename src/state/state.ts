import { open } from 'node:fs/promises';
import { Low } from 'lowdb';
import { PeersyncError, systemCode } from '../lib/errors.js';
import { HealthCheck } from '../lib/health.js';
import type { CommitListener } from './committed.js';
import type { OpenFile, StateError } from './directory.js';
import type { EntriesView } from './entries.js';
import type { Counts, EntriesReader } from './entries-reader.js';
import { type AwayItem, type Entry, isAway, type Place } from './entry.js';
import {
  type AdapterOptions,
  JournalAdapter,
  type Json,
  loadState,
  REPAIRED_META,
  StateData,
} from './journal.js';
import { sinceOf, statusOf } from './line.js';

/** Sees each change of a record as it is made, before it is on disk. Must not throw. */
export type ChangeListener = (
  after: Entry | undefined,
  statusBefore: Entry['status'] | undefined,
  place: Place,
) => void;

/** What a reader sees of the state. */
export class StateView<Records extends EntriesReader = EntriesReader> {
  /** @param repairs one sentence for each damage that was found when the state was read */
  constructor(
    readonly entries: Records,
    protected readonly data: StateData,
    readonly repairs: readonly string[],
  ) {}

  /** What keeps the last changes from the disk, until they are on it. */
  get failure(): PeersyncError | undefined {
    return this.data.failure;
  }

  get(folder: string, path: string): Entry | undefined {
    return this.entries.get(folder, path);
  }

  /** Of one folder, or of all. */
  counts(folder?: string): Counts {
    return this.entries.counts(folder);
  }

  /** A small value that was kept under this name. */
  meta(name: string): Json | undefined {
    return this.data.meta.get(name);
  }

  /**
   * When the state was last opened with something lost that had been on disk, in ms since the
   * epoch: what it says of documents may be from before. Undefined where that never happened.
   */
  get repairedAt(): number | undefined {
    const at = this.data.meta.get(REPAIRED_META);
    return typeof at === 'number' ? at : undefined;
  }

  /** The names of all small values that begin like this. */
  metaNames(prefix: string): readonly string[] {
    return [...this.data.meta.keys()].filter((name) => name.startsWith(prefix));
  }
}

/** A commit waits for the one before it, and for a disk that has much to write. In ms. */
const LONGEST_COMMIT_MS = 5 * 60_000;
/** Between two tries of a commit that waits for space, in ms. */
const TRY_AGAIN_MS = 5_000;
const HOLDS =
  'Free some space there. What you asked holds already, but a stop before there is space would forget it.';
/** How often a reader starts over when the daemon's compaction removes a file under its hands. */
const READ_ATTEMPTS = 10;

/**
 * What peersync knows, in memory for everyone to see, and on disk for after a restart.
 *
 * `put` and its kind change memory at once and tell the listeners; `commit` resolves when all
 * changes so far are on disk. Whoever acts on a change commits it first. Close it to commit what is
 * left; it is of no use afterwards.
 */
export class State extends StateView<EntriesView> {
  readonly health = new HealthCheck('state', 'what is known is not brought to the disk', {
    limitMs: LONGEST_COMMIT_MS,
  });
  /**
   * The same as it is on disk, for all that people and programs are told. Small values are those in
   * memory.
   */
  readonly committed: StateView;
  readonly #listeners = new Set<ChangeListener>();
  /** A commit found the disk full, and none has succeeded since. */
  #isWaiting = false;
  /** The time until the next try, which all commits wait out together. */
  #pause: Promise<void> | undefined;

  private constructor(
    private readonly low: Low<StateData>,
    private readonly adapter: JournalAdapter,
    private readonly options: AdapterOptions,
  ) {
    super(low.data.entries, low.data, adapter.repairs);
    this.committed = new StateView(low.data.committed, low.data, adapter.repairs);
  }

  /**
   * Opens the state in `dir`, creating it where there is none and repairing what a crash left
   * behind. The caller holds the lock of the directory.
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
   * Reads the state in `dir` as it is now, without lock, repair or write: also while a daemon works
   * on it. A directory without state reads as an empty one.
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

  /** For `status` and the metrics; `unsaved` are changes that are not on disk yet. */
  figures() {
    const { committed, changes, failure } = this.data;
    return { records: committed.size, unsaved: changes.size, failure, ...this.adapter.figures() };
  }

  /** Is called with how long each sync of changes took, in seconds. */
  set onSync(listener: (seconds: number) => void) {
    this.adapter.onSync = listener;
  }

  /** Puts a record in the place of the one before. In memory; see `commit`. */
  put(entry: Entry): void {
    const [before, line] = this.data.entries.put(entry);
    if (before !== line) this.#changed(entry, entry, before, line);
  }

  /** Forgets a file. In memory; see `commit`. */
  remove(folder: string, path: string): void {
    const before = this.data.entries.delete(folder, path);
    if (before !== undefined) this.#changed({ folder, path }, undefined, before, undefined);
  }

  /**
   * Keeps a small value under a name, or forgets it when `value` is undefined. In memory; see
   * `commit`.
   */
  setMeta(name: string, value: Json | undefined): void {
    const { meta, changes } = this.data;
    if (value === undefined) meta.delete(name);
    else meta.set(name, value);
    changes.add(name);
  }

  /**
   * Resolves when all changes so far are on disk. Many may wait at once: they share one sync.
   * Nothing acts on what is not on disk, so where it waits out a full disk, everything simply waits
   * meanwhile; it says so once, and when there is space.
   *
   * @param whose a person is told of a full disk instead of waiting; what was asked holds, and is
   *   written when there is space
   * @throws StateError STATE_FULL or STATE_UNWRITABLE: nothing is lost, and a later commit tries
   *   again
   */
  async commit(whose: 'work' | 'person' = 'work'): Promise<void> {
    const { clock, log, waitsUntil } = this.options;
    for (;;) {
      if (whose === 'work' && this.#pause !== undefined) await this.#pause;
      try {
        await this.health.during(() => this.low.write());
        if (this.#isWaiting)
          log.info({ event: 'space' }, 'there is space for the state again; the work goes on');
        this.#isWaiting = false;
        return;
      } catch (error) {
        const { failure } = this;
        if (failure?.code !== 'STATE_FULL' || waitsUntil?.aborted !== false) throw error;
        const { code, message, hint } = failure;
        if (!this.#isWaiting) log.error({ event: 'full', code }, `${message} ${hint}`);
        this.#isWaiting = true;
        if (whose === 'person') {
          // What is not written in the end, `close` says.
          this.commit().catch(() => {});
          throw new PeersyncError({ code, message, hint: HOLDS });
        }
        this.#pause ??= clock.sleep(TRY_AGAIN_MS, waitsUntil).finally(() => {
          this.#pause = undefined;
        });
      }
    }
  }

  /** Calls `listener` for each change of a record from now on; returns how to stop that. */
  onChange(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Calls `listener` for each change of a record that reaches the disk from now on; returns how to
   * stop that.
   */
  onCommit(listener: CommitListener): () => void {
    return this.data.committed.onCommit(listener);
  }

  /**
   * Forgets the files that were removed, and the documents, more than `ms` ago, and returns how
   * many.
   *
   * @param isUndecided whether it is still to be decided what becomes of the document: then it is
   *   not forgotten
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
   * Rewrites the journal into a snapshot now; it happens by itself when the journal has grown
   * large.
   */
  compact(): Promise<void> {
    return this.adapter.compact(this.data);
  }

  /** The directory was removed, or another peersync has it: no commit succeeds any more. */
  lose(reason: StateError): void {
    this.adapter.lose(reason);
  }

  /**
   * Writes everything into the directory anew, which has no state in it; the caller holds its lock.
   */
  writeAnew(): Promise<void> {
    return this.adapter.writeAnew(this.data);
  }

  /**
   * Writes everything anew in the background where the journal was removed from the directory, or
   * replaced.
   */
  checkJournal(): Promise<void> {
    return this.adapter.checkJournal(this.data);
  }

  /** Commits what is left, and closes even if that fails. */
  async close(): Promise<void> {
    try {
      await this.low.write();
    } finally {
      await this.adapter.close();
    }
  }

  #changed(
    place: Place,
    after: Entry | undefined,
    lineBefore: string | undefined,
    lineAfter: string | undefined,
  ): void {
    this.data.committed.changed(place.folder, place.path, lineBefore, lineAfter);
    if (this.#listeners.size === 0) return;
    const before = lineBefore === undefined ? undefined : statusOf(lineBefore);
    for (const listener of this.#listeners) listener(after, before, place);
  }
}
