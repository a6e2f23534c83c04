import PQueue from 'p-queue';
import { HealthCheck } from '../lib/health.js';
import type { ReadOrder } from './open.js';
import { type Fingerprint, fingerprint, fingerprintNow } from './reader.js';

/**
 * Reads many small files at once, away from the event loop. Rejects when the reading itself broke
 * down.
 */
export type ReadGroup = (orders: readonly ReadOrder[]) => Promise<readonly Fingerprint[]>;

/** So many small files in one group: their answers are handed on without a pause. */
const GROUP_MOST = 64;
/** So many groups are under way, so that the thread has the next one when it ends one. */
const GROUPS_AT_ONCE = 2;
/** Files up to this many bytes are read in groups. */
const SMALL_BYTES = 1024 * 1024;
/** One piece of a file: a disk that is far away may take long for it. In ms. */
const LONGEST_PIECE_MS = 15 * 60_000;

interface Waiting {
  readonly order: ReadOrder;
  readonly isWanted: () => boolean;
  readonly resolve: (found?: Fingerprint) => void;
}

/**
 * Reads files at rest: small ones in groups in a thread, large ones a few at once, piece by piece.
 */
export class HashQueue {
  /** Of large files; what is read in groups is the thread's. */
  readonly health = new HealthCheck('reading', 'files that wait are not read', {
    limitMs: LONGEST_PIECE_MS,
  });
  readonly #large: PQueue;
  readonly #groups = new PQueue({ concurrency: GROUPS_AT_ONCE });
  readonly #small: Waiting[] = [];

  constructor(
    private readonly readGroup: ReadGroup,
    /** How many large files are read at once. */
    readers: number,
    /** From so many files that wait on there is no room for more. */
    private readonly crowd: number,
  ) {
    this.#large = new PQueue({ concurrency: readers });
  }

  /** Whether so many files wait that scans wait, too. */
  get isCrowded(): boolean {
    return this.#large.size >= this.crowd || this.#groups.size >= this.crowd / GROUP_MOST;
  }

  /** Resolves when more files may be added. */
  async room(): Promise<void> {
    await this.#large.onSizeLessThan(this.crowd);
    await this.#groups.onSizeLessThan(this.crowd / GROUP_MOST);
  }

  /**
   * Resolves to what the file is, and to undefined when it was not wanted any more before it was
   * read.
   */
  async read(order: ReadOrder, isWanted: () => boolean): Promise<Fingerprint | undefined> {
    if (order.stat.size > SMALL_BYTES) {
      const read = () => this.health.during(() => fingerprint(order, () => this.health.progress()));
      return await this.#large.add(async () => (isWanted() ? await read() : undefined));
    }
    return await new Promise((resolve) => {
      const isFirst = this.#small.push({ order, isWanted, resolve }) % GROUP_MOST === 1;
      if (isFirst) void this.#groups.add(() => this.#readSmall());
    });
  }

  async #readSmall(): Promise<void> {
    // Files that arrive in one go are one group.
    await Promise.resolve();
    const group: Waiting[] = [];
    for (const waiting of this.#small.splice(0, GROUP_MOST))
      if (waiting.isWanted()) group.push(waiting);
      else waiting.resolve();
    const orders = group.map(({ order }) => order);
    // The thread may break down, which it says itself; nothing is lost but a moment of the event
    // loop. A stop ends it, too.
    const readHere = () =>
      group.map(({ order, isWanted }) => (isWanted() ? fingerprintNow(order) : undefined));
    const found = orders.length === 0 ? [] : await this.readGroup(orders).catch(readHere);
    for (const [i, { resolve }] of group.entries()) resolve(found[i]);
  }
}
