import { type Fingerprint, fingerprint, fingerprintNow, type ReadOrder } from '../content/reader.js';
import type { FileStat } from '../lib/file-stat.js';
import { HealthCheck } from '../lib/health.js';

/** A file at rest that is to be read. */
export interface Arrival {
  readonly folder: string;
  /** Relative to the folder. */
  readonly path: string;
  /** Where to read it; a followed link is resolved. */
  readonly file: string;
  readonly stat: FileStat;
  /** Called once with what was read; never called when the file was forgotten meanwhile. */
  readonly read: (fingerprint: Fingerprint) => void;
}

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

/**
 * Reads files at rest: small ones in groups in a thread, large ones a few at once, piece by piece.
 *
 * A file *waits* until there is room and is then *in reading*. A second arrival of the same file replaces one that waits,
 * and is dropped beside one in reading (if the file changed since, the reading finds out).
 */
export class HashQueue {
  readonly health = new HealthCheck('reading', 'files that wait are not read', {
    limitMs: LONGEST_PIECE_MS,
    busy: () => !this.#stopped && (this.#reading > 0 || this.#mayBegin()),
  });
  readonly #readers: number;
  readonly #crowd: number;
  readonly #readGroup: ReadGroup;
  readonly #onQuiet: () => void;
  readonly #onError: (error: unknown, arrival: Arrival) => void;
  readonly #small = new Map<string, Arrival>();
  readonly #large = new Map<string, Arrival>();
  readonly #inReading = new Map<string, Arrival>();
  #groups = 0;
  #reading = 0;
  #forRoom: (() => void)[] = [];
  #stopped = false;

  constructor(options: {
    /** How many large files are read at once. */
    readonly readers: number;
    /** From so many waiting files on `room` makes scans wait. */
    readonly crowd: number;
    readonly readGroup: ReadGroup;
    readonly onQuiet: () => void;
    /** What was read could not be used: a mistake in the program. */
    readonly onError: (error: unknown, arrival: Arrival) => void;
  }) {
    this.#readers = options.readers;
    this.#crowd = options.crowd;
    this.#readGroup = options.readGroup;
    this.#onQuiet = options.onQuiet;
    this.#onError = options.onError;
  }

  get size(): number {
    return this.#waiting + this.#inReading.size;
  }

  /** Whether so many files wait that scans wait, too. */
  get isCrowded(): boolean {
    return this.#waiting >= this.#crowd;
  }

  add(arrival: Arrival): void {
    const key = keyOf(arrival);
    if (this.#stopped || this.#inReading.has(key)) return;
    const isSmall = arrival.stat.size <= SMALL_BYTES;
    (isSmall ? this.#large : this.#small).delete(key);
    (isSmall ? this.#small : this.#large).set(key, arrival);
    this.#next();
  }

  /** Resolves when more files may be added. */
  room(): Promise<void> {
    if (!this.isCrowded || this.#stopped) return Promise.resolve();
    return new Promise((resolve) => this.#forRoom.push(resolve));
  }

  /** Forgets the files of a folder, or all. Whoever waits for room may go on. */
  forget(folder?: string): void {
    for (const arrivals of [this.#small, this.#large, this.#inReading])
      for (const [key, arrival] of arrivals)
        if (folder === undefined || arrival.folder === folder) arrivals.delete(key);
    this.#makeRoom();
    if (this.size === 0) this.#onQuiet();
  }

  stop(): void {
    this.#stopped = true;
    this.forget();
  }

  get #waiting(): number {
    return this.#small.size + this.#large.size;
  }

  #mayBegin(): boolean {
    return (
      (this.#small.size > 0 && this.#groups < GROUPS_AT_ONCE) ||
      (this.#large.size > 0 && this.#reading < this.#readers)
    );
  }

  #next(): void {
    // Files that arrive in one go are one group.
    if (this.#small.size > 0 && this.#groups < GROUPS_AT_ONCE) void this.#readSmall();
    while (this.#large.size > 0 && this.#reading < this.#readers)
      for (const arrival of this.#take(this.#large, 1)) void this.#readLarge(arrival);
  }

  #take(waiting: Map<string, Arrival>, most: number): Arrival[] {
    const taken: Arrival[] = [];
    for (const [key, arrival] of waiting) {
      if (taken.length === most) break;
      waiting.delete(key);
      this.#inReading.set(key, arrival);
      taken.push(arrival);
    }
    return taken;
  }

  async #readSmall(): Promise<void> {
    this.#groups += 1;
    await Promise.resolve();
    const group = this.#take(this.#small, GROUP_MOST);
    let found: readonly Fingerprint[] = [];
    try {
      if (group.length > 0) found = await this.#readGroup(group.map(({ file, stat }) => ({ file, stat })));
    } catch {
      // The thread broke down, which it says itself; nothing is lost but a moment of the event loop.
      found = group.map((arrival) =>
        this.#isInReading(arrival) ? fingerprintNow(arrival) : { kind: 'busy' },
      );
    }
    for (const [i, arrival] of group.entries()) this.#wasRead(arrival, found[i] ?? { kind: 'busy' });
    this.#groups -= 1;
    this.#goOn();
  }

  async #readLarge(arrival: Arrival): Promise<void> {
    this.#reading += 1;
    const found = await fingerprint(arrival, () => this.health.progress());
    this.#wasRead(arrival, found);
    this.#reading -= 1;
    this.#goOn();
  }

  #wasRead(arrival: Arrival, found: Fingerprint): void {
    if (!this.#isInReading(arrival)) return;
    this.#inReading.delete(keyOf(arrival));
    try {
      arrival.read(found);
    } catch (error) {
      this.#onError(error, arrival);
    }
  }

  #isInReading(arrival: Arrival): boolean {
    return this.#inReading.get(keyOf(arrival)) === arrival;
  }

  #goOn(): void {
    this.health.progress();
    if (!this.isCrowded) this.#makeRoom();
    this.#next();
    if (this.size === 0) this.#onQuiet();
  }

  #makeRoom(): void {
    const waiting = this.#forRoom;
    this.#forRoom = [];
    for (const resolve of waiting) resolve();
  }
}

function keyOf({ folder, path }: Arrival): string {
  return `${folder}\0${path}`;
}
