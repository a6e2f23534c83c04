import { type Fingerprint, fingerprint, fingerprintNow, type ReadOrder } from '../content/reader.js';
import { HealthCheck } from '../lib/health.js';

/** Reads many small files at once, away from the event loop. Rejects when the reading itself broke down. */
export type ReadGroup = (orders: readonly ReadOrder[]) => Promise<readonly Fingerprint[]>;

/** Without a thread: small files are read where they are asked for. */
export const readGroupNow: ReadGroup = async (orders) => orders.map(fingerprintNow);

/** So many small files in one group: their answers are handed on without a pause. */
const GROUP_MOST = 64;
/** So many groups are under way, so that the thread has the next one when it ends one. */
const GROUPS_AT_ONCE = 2;
/** Files up to this many bytes are read in groups. */
const SMALL_BYTES = 1024 * 1024;

/** One piece of a file: a disk that is far away may take long for it. In ms. */
const LONGEST_PIECE_MS = 15 * 60_000;

export interface HashQueueOptions {
  /** How many large files are read at once. */
  readonly readers: number;
  /** From so many waiting files on `room` makes scans wait. */
  readonly crowd: number;
  readonly readGroup: ReadGroup;
}

interface Waiting {
  readonly order: ReadOrder;
  /** Aborts when nobody waits for the file any more. */
  readonly signal: AbortSignal;
  readonly resolve: (found: Fingerprint | undefined) => void;
}

/** Reads files at rest: small ones in groups in a thread, large ones a few at once, piece by piece. */
export class HashQueue {
  /** Of large files; what is read in groups is the thread's. */
  readonly health = new HealthCheck('reading', 'files that wait are not read', {
    limitMs: LONGEST_PIECE_MS,
    busy: () => this.#reading > 0,
  });
  readonly #options: HashQueueOptions;
  #small: Waiting[] = [];
  #large: Waiting[] = [];
  #groups = 0;
  #reading = 0;
  #forRoom: (() => void)[] = [];

  constructor(options: HashQueueOptions) {
    this.#options = options;
  }

  /** Resolves to what the file is, and to undefined when it was forgotten before it was read. */
  read(order: ReadOrder, signal: AbortSignal): Promise<Fingerprint | undefined> {
    return new Promise((resolve) => {
      const isSmall = order.stat.size <= SMALL_BYTES;
      (isSmall ? this.#small : this.#large).push({ order, signal, resolve });
      this.#next();
    });
  }

  /** Resolves when more files may be added. */
  async room(): Promise<void> {
    if (this.isCrowded) await new Promise<void>((resolve) => this.#forRoom.push(resolve));
  }

  /** Forgets the files whose signal aborted. */
  forget(): void {
    for (const { signal, resolve } of [...this.#small, ...this.#large])
      if (signal.aborted) resolve(undefined);
    this.#small = this.#small.filter(({ signal }) => !signal.aborted);
    this.#large = this.#large.filter(({ signal }) => !signal.aborted);
    this.#makeRoom();
  }

  /** Whether so many files wait that scans wait, too. */
  get isCrowded(): boolean {
    return this.#small.length + this.#large.length >= this.#options.crowd;
  }

  #next(): void {
    if (this.#small.length > 0 && this.#groups < GROUPS_AT_ONCE) void this.#readSmall();
    while (this.#reading < this.#options.readers) {
      const next = this.#large.shift();
      if (next === undefined) break;
      void this.#readLarge(next);
    }
  }

  async #readSmall(): Promise<void> {
    this.#groups += 1;
    // Files that arrive in one go are one group.
    await Promise.resolve();
    const group = this.#small.splice(0, GROUP_MOST);
    const orders = group.map(({ order }) => order);
    // The thread may break down, which it says itself; nothing is lost but a moment of the event loop.
    const found =
      group.length === 0 ? [] : await this.#options.readGroup(orders).catch(() => orders.map(fingerprintNow));
    for (const [i, { resolve }] of group.entries()) resolve(found[i]);
    this.#groups -= 1;
    this.#goOn();
  }

  async #readLarge({ order, resolve }: Waiting): Promise<void> {
    this.#reading += 1;
    resolve(await fingerprint(order, () => this.health.progress()));
    this.#reading -= 1;
    this.#goOn();
  }

  #goOn(): void {
    if (!this.isCrowded) this.#makeRoom();
    this.#next();
  }

  #makeRoom(): void {
    const waiting = this.#forRoom;
    this.#forRoom = [];
    for (const resolve of waiting) resolve();
  }
}
