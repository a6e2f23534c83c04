import { open } from 'node:fs/promises';
import { Low } from 'lowdb';
import { PeersyncError, systemCode } from '../lib/errors.js';
import { HealthCheck } from '../lib/health.js';
import type { Counts, EntriesView } from './entries.js';
import { type AwayItem, type Entry, isAway, type Place } from './entry.js';
import {
  type AdapterOptions,
  JournalAdapter,
  type Json,
  loadState,
  type OpenFile,
  StateData,
} from './journal.js';
import { decode, sinceOf } from './line.js';

/** Sees each change of a record as it is made, before it is on disk. Must not throw. */
export type ChangeListener = (after: Entry | undefined, before: Entry | undefined, place: Place) => void;

/** What a reader sees of the state. */
export class StateView {
  readonly entries: EntriesView;

  /** @param repairs one sentence for each damage that was found when the state was read */
  constructor(
    protected readonly data: StateData,
    readonly repairs: readonly string[],
  ) {
    this.entries = data.entries;
  }

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
 * `put` and its kind change memory at once and tell the listeners; `commit` resolves when all changes so far are on
 * disk. Whoever acts on a change commits it first. Close it to commit what is left; it is of no use afterwards.
 */
export class State extends StateView {
  readonly health = new HealthCheck('state', 'what is known is not brought to the disk', {
    limitMs: LONGEST_COMMIT_MS,
  });
  readonly #listeners = new Set<ChangeListener>();
  /** A commit found the disk full, and none has succeeded since. */
  #isWaiting = false;

  private constructor(
    private readonly low: Low<StateData>,
    private readonly adapter: JournalAdapter,
    private readonly options: AdapterOptions,
  ) {
    super(low.data, adapter.repairs);
  }

  /**
   * Opens the state in `dir`, creating it where there is none and repairing what a crash left behind. The caller holds
   * the lock of the directory.
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
   * Reads the state in `dir` as it is now, without lock, repair or write: also while a daemon works on it. A directory
   * without state reads as an empty one.
   *
   * @throws StateError
   */
  static async read(dir: string, options: { readonly open?: OpenFile } = {}): Promise<StateView> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const { data, repairs } = await loadState(dir, options.open ?? open);
        return new StateView(data, repairs);
      } catch (error) {
        const vanished = error instanceof Error && systemCode(error.cause) === 'ENOENT';
        if (!vanished || attempt === READ_ATTEMPTS) throw error;
      }
    }
  }

  /** For `status` and the metrics; `unsaved` are changes that are not on disk yet. */
  figures() {
    const { entries, changes, failure } = this.data;
    return { records: entries.size, unsaved: changes.size, failure, ...this.adapter.figures() };
  }

  /** Is called with how long each sync of changes took, in seconds. */
  set onSync(listener: (seconds: number) => void) {
    this.adapter.onSync = listener;
  }

  /** Puts a record in the place of the one before. In memory; see `commit`. */
  put(entry: Entry): void {
    const [before, line] = this.data.entries.put(entry);
    if (before !== line) this.#changed(entry, entry, before);
  }

  /** Forgets a file. In memory; see `commit`. */
  remove(folder: string, path: string): void {
    const before = this.data.entries.delete(folder, path);
    if (before !== undefined) this.#changed({ folder, path }, undefined, before);
  }

  /** Keeps a small value under a name, or forgets it when `value` is undefined. In memory; see `commit`. */
  setMeta(name: string, value: Json | undefined): void {
    const { meta, changes } = this.data;
    if (value === undefined) meta.delete(name);
    else meta.set(name, value);
    changes.add(name);
  }

  /**
   * Resolves when all changes so far are on disk. Many may wait at once: they share one sync. Nothing acts on what is not on
   * disk, so where it waits out a full disk, everything simply waits meanwhile; it says so once, and when there is space.
   *
   * @param whose a person is told of a full disk instead of waiting; what was asked holds, and is written when there is space
   * @throws StateError STATE_FULL or STATE_UNWRITABLE: nothing is lost, and a later commit tries again
   */
  async commit(whose: 'work' | 'person' = 'work'): Promise<void> {
    const { clock, log, waitsUntil } = this.options;
    for (;;) {
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
        await clock.sleep(TRY_AGAIN_MS, waitsUntil);
      }
    }
  }

  /** Calls `listener` for each change of a record from now on; returns how to stop that. */
  onChange(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Forgets the files that were removed, and the documents, more than `ms` ago, and returns how many.
   *
   * @param isUndecided whether it is still to be decided what becomes of the document: then it is not forgotten
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

  /** Rewrites the journal into a snapshot now; it happens by itself when the journal has grown large. */
  compact(): Promise<void> {
    return this.adapter.compact(this.data);
  }

  /** Commits what is left, and closes even if that fails. */
  async close(): Promise<void> {
    try {
      await this.low.write();
    } finally {
      await this.adapter.close();
    }
  }

  #changed(place: Place, after: Entry | undefined, line: string | undefined): void {
    const { entries, changes } = this.data;
    changes.add(`${place.folder}\0${place.path}`);
    if (this.#listeners.size === 0) return;
    const before = line === undefined ? undefined : decode(line, place.folder, place.path, entries.bases);
    for (const listener of this.#listeners) listener(after, before, place);
  }
}
