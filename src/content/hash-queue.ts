import PQueue from 'p-queue';
import { HealthCheck } from '../lib/health.js';
import { type Fingerprint, fingerprint, fingerprintNow, type ReadOrder } from './file-reader.js';

/** Reads many small files together, off the event loop. Rejects if the worker itself failed. */
export type ReadGroup = (orders: readonly ReadOrder[]) => Promise<readonly Fingerprint[]>;

/** Maximum number of small files in a group. Their results are delivered in one go. */
const MAX_GROUP_SIZE = 64;
/** Number of groups in progress, so that the thread has the next one when it finishes one. */
const CONCURRENT_GROUPS = 2;
/** Largest file that is read in a group, in bytes. */
const MAX_SMALL_BYTES = 1024 * 1024;
/** Longest time for reading one piece of a large file, in ms. A remote disk may be slow. */
const MAX_PIECE_MS = 15 * 60_000;

interface Waiting {
  readonly order: ReadOrder;
  readonly isWanted: () => boolean;
  readonly resolve: (found?: Fingerprint) => void;
}

/**
 * Reads files at rest: small files in groups in a worker thread, large ones a few at a time, piece
 * by piece.
 */
export class HashQueue {
  /** Watches the reading of large files. Groups are watched by the worker thread. */
  readonly health = new HealthCheck('reading', 'files that wait are not read', {
    limitMs: MAX_PIECE_MS,
  });
  readonly #large: PQueue;
  readonly #groups = new PQueue({ concurrency: CONCURRENT_GROUPS });
  readonly #small: Waiting[] = [];

  constructor(
    private readonly readGroup: ReadGroup,
    /** Number of large files read at a time. */
    readers: number,
    /** Number of waiting files from which on `room` waits. */
    private readonly backpressureAt: number,
  ) {
    this.#large = new PQueue({ concurrency: readers });
  }

  /** Whether so many files wait that scans should pause. */
  get isCrowded(): boolean {
    return (
      this.#large.size >= this.backpressureAt ||
      this.#groups.size >= this.backpressureAt / MAX_GROUP_SIZE
    );
  }

  /** Resolves when more files may be added. */
  async room(): Promise<void> {
    await this.#large.onSizeLessThan(this.backpressureAt);
    await this.#groups.onSizeLessThan(this.backpressureAt / MAX_GROUP_SIZE);
  }

  /**
   * Resolves to the fingerprint of the file, or to undefined if it is no longer wanted when its
   * turn comes.
   */
  async read(order: ReadOrder, isWanted: () => boolean): Promise<Fingerprint | undefined> {
    if (order.stat.size > MAX_SMALL_BYTES) {
      const read = () => this.health.during(() => fingerprint(order, () => this.health.progress()));
      return await this.#large.add(async () => (isWanted() ? await read() : undefined));
    }
    return await new Promise((resolve) => {
      const isFirst = this.#small.push({ order, isWanted, resolve }) % MAX_GROUP_SIZE === 1;
      if (isFirst) void this.#groups.add(() => this.#readSmall());
    });
  }

  async #readSmall(): Promise<void> {
    // Files that arrive together form one group.
    await Promise.resolve();
    const group: Waiting[] = [];
    for (const waiting of this.#small.splice(0, MAX_GROUP_SIZE))
      if (waiting.isWanted()) group.push(waiting);
      else waiting.resolve();
    const orders = group.map(({ order }) => order);
    // If the thread fails, it reports that itself, and the files are read here; this only blocks
    // the event loop for a moment. A stop of the daemon ends the thread, too.
    const readWithoutThread = () =>
      group.map(({ order, isWanted }) => (isWanted() ? fingerprintNow(order) : undefined));
    const found = orders.length === 0 ? [] : await this.readGroup(orders).catch(readWithoutThread);
    for (const [i, { resolve }] of group.entries()) resolve(found[i]);
  }
}
