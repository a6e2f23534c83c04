import type { FileStat } from '../state/entry.js';
import { type Fingerprint, FingerprintReader } from './fingerprint.js';
import type { GroupReader } from './thread-reader.js';

/** A file at rest that is to be read. */
export interface Arrival {
  readonly folder: string;
  /** Relative to the folder. */
  readonly path: string;
  /** Where to read it; a followed link is resolved. */
  readonly file: string;
  readonly stat: FileStat;
  /** Called once with what was read; never called when the intake was stopped meanwhile. */
  readonly read: (fingerprint: Fingerprint) => void;
}

/** From so many files that wait on, small ones are read in groups. */
const GROUP_FROM = 64;
/** So many in one group: their answers are told without a pause. */
const GROUP_MOST = 64;
/** Files up to this many bytes are read in groups. */
const SMALL_BYTES = 1024 * 1024;

/**
 * Reads files at rest, a few at once; where many wait, the small ones of them in groups. An arrival *waits* until a reader is
 * free and is then *in reading*; a second arrival of the same file replaces one that waits, and is dropped beside one in
 * reading (if the file changed since, the reading finds out). What was *forgotten* meanwhile is read to nobody.
 */
export class Intake {
  readonly #idleReaders: FingerprintReader[];
  readonly #crowd: number;
  readonly #onQuiet: () => void;
  readonly #onError: (error: unknown, arrival: Arrival) => void;
  /** By what `isSmall` says of their size. */
  readonly #waiting = { small: new Map<string, Arrival>(), large: new Map<string, Arrival>() };
  readonly #inReading = new Map<string, Arrival>();
  /** Undefined where there is none, or it broke down. */
  #groups: GroupReader | undefined;
  #groupUnderWay = false;
  #forRoom: (() => void)[] = [];
  readonly #readers: number;
  #moves = 0;
  #stopped = false;

  constructor(parts: {
    readonly readers: number;
    /** Without it every file is read by itself. */
    readonly groups?: GroupReader | undefined;
    /** From so many waiting files on `room` makes scans wait. */
    readonly crowd: number;
    readonly onQuiet: () => void;
    /** Something that no disk does: a mistake in the program. */
    readonly onError: (error: unknown, arrival: Arrival) => void;
  }) {
    const onPiece = () => {
      this.#moves += 1;
    };
    this.#readers = parts.readers;
    this.#idleReaders = Array.from({ length: parts.readers }, () => new FingerprintReader(onPiece));
    this.#groups = parts.groups;
    this.#crowd = parts.crowd;
    this.#onQuiet = parts.onQuiet;
    this.#onError = parts.onError;
  }

  get size(): number {
    return this.#waitingCount + this.#inReading.size;
  }

  /** Another value whenever a piece of a file was read, or the reading of one ended. */
  get moves(): number {
    return this.#moves;
  }

  /** How many files wait though somebody is free to read them. */
  get readable(): number {
    if (this.#idleReaders.length === 0) return 0;
    return this.#groupUnderWay ? this.#waiting.large.size : this.#waitingCount;
  }

  /** How many files are being read one by one. What is read in groups is read by another. */
  get reading(): number {
    return this.#stopped ? 0 : this.#readers - this.#idleReaders.length;
  }

  /** Whether so many files wait that scans wait, too. */
  get isCrowded(): boolean {
    return this.#waitingCount >= this.#crowd;
  }

  add(arrival: Arrival): void {
    const key = keyOf(arrival);
    if (this.#stopped || this.#inReading.has(key)) return;
    const { small, large } = this.#waiting;
    const [own, other] = isSmall(arrival) ? [small, large] : [large, small];
    other.delete(key);
    own.set(key, arrival);
    this.#next();
  }

  /** Resolves when more files may be added. */
  room(): Promise<void> {
    if (!this.isCrowded || this.#stopped) return Promise.resolve();
    return new Promise((resolve) => this.#forRoom.push(resolve));
  }

  /** Forgets what of a folder waits; what of it is being read ends without a word. Whoever waits for room may go on. */
  forget(folder: string): void {
    const { small, large } = this.#waiting;
    for (const arrivals of [small, large, this.#inReading]) {
      for (const [key, arrival] of arrivals) if (arrival.folder === folder) arrivals.delete(key);
    }
    this.#makeRoom();
    if (this.size === 0) this.#onQuiet();
  }

  /** Forgets what waits; what is being read ends without a word. */
  stop(): void {
    this.#stopped = true;
    this.#waiting.small.clear();
    this.#waiting.large.clear();
    this.#makeRoom();
  }

  get #waitingCount(): number {
    return this.#waiting.small.size + this.#waiting.large.size;
  }

  #next(): void {
    const { small, large } = this.#waiting;
    if (this.#groups !== undefined && !this.#groupUnderWay && small.size >= GROUP_FROM)
      void this.#readGroup(this.#take(small, GROUP_MOST), this.#groups);
    for (const waiting of this.#groupUnderWay ? [large] : [large, small]) {
      while (waiting.size > 0) {
        const reader = this.#idleReaders.pop();
        if (reader === undefined) return;
        for (const arrival of this.#take(waiting, 1)) void this.#read(arrival, reader);
      }
    }
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

  async #readGroup(group: readonly Arrival[], groups: GroupReader): Promise<void> {
    this.#groupUnderWay = true;
    try {
      const fingerprints = await groups.read(group.map(({ file, stat }) => ({ file, stat })));
      for (const [i, arrival] of group.entries()) this.#wasRead(arrival, fingerprints[i] ?? { kind: 'busy' });
    } catch {
      // Each by itself then: nothing is lost but speed.
      this.#groups = undefined;
      const known = group.filter((arrival) => this.#wasInReading(arrival));
      if (!this.#stopped) for (const arrival of known) this.#waiting.small.set(keyOf(arrival), arrival);
    }
    this.#groupUnderWay = false;
    this.#goOn();
  }

  async #read(arrival: Arrival, reader: FingerprintReader): Promise<void> {
    try {
      this.#wasRead(arrival, await reader.read(arrival.file, arrival.stat));
    } catch (error) {
      if (this.#wasInReading(arrival)) this.#onError(error, arrival);
    }
    this.#idleReaders.push(reader);
    this.#goOn();
  }

  #wasRead(arrival: Arrival, fingerprint: Fingerprint): void {
    if (!this.#wasInReading(arrival) || this.#stopped) return;
    try {
      arrival.read(fingerprint);
    } catch (error) {
      this.#onError(error, arrival);
    }
  }

  /** Ends the reading of an arrival. @returns whether it was not forgotten meanwhile */
  #wasInReading(arrival: Arrival): boolean {
    const key = keyOf(arrival);
    return this.#inReading.get(key) === arrival && this.#inReading.delete(key);
  }

  #goOn(): void {
    this.#moves += 1;
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

function isSmall({ stat }: Arrival): boolean {
  return stat.size <= SMALL_BYTES;
}

function keyOf({ folder, path }: Arrival): string {
  return `${folder}\0${path}`;
}
