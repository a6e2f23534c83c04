import type { FileStat } from '../state/entry.js';
import { type Fingerprint, FingerprintReader } from './fingerprint.js';

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

/**
 * Reads files at rest, a few at once. An arrival *waits* until a reader is free and is then *in reading*; a second
 * arrival of the same file replaces one that waits, and is dropped beside one in reading (if the file changed since,
 * the reading finds out).
 */
export class Intake {
  readonly #idleReaders: FingerprintReader[];
  readonly #crowd: number;
  readonly #onQuiet: () => void;
  readonly #onError: (error: unknown, arrival: Arrival) => void;
  readonly #waiting = new Map<string, Arrival>();
  readonly #inReading = new Set<string>();
  #forRoom: (() => void)[] = [];
  #stopped = false;

  constructor(parts: {
    readonly readers: number;
    /** From so many waiting files on `room` makes scans wait. */
    readonly crowd: number;
    readonly onQuiet: () => void;
    /** Something that no disk does: a mistake in the program. */
    readonly onError: (error: unknown, arrival: Arrival) => void;
  }) {
    this.#idleReaders = Array.from({ length: parts.readers }, () => new FingerprintReader());
    this.#crowd = parts.crowd;
    this.#onQuiet = parts.onQuiet;
    this.#onError = parts.onError;
  }

  get size(): number {
    return this.#waiting.size + this.#inReading.size;
  }

  add(arrival: Arrival): void {
    const key = `${arrival.folder}\0${arrival.path}`;
    if (this.#stopped || this.#inReading.has(key)) return;
    this.#waiting.set(key, arrival);
    this.#next();
  }

  /** Resolves when more files may be added. */
  room(): Promise<void> {
    if (this.#waiting.size < this.#crowd || this.#stopped) return Promise.resolve();
    return new Promise((resolve) => this.#forRoom.push(resolve));
  }

  /** Forgets what waits; what is being read ends without a word. */
  stop(): void {
    this.#stopped = true;
    this.#waiting.clear();
    this.#makeRoom();
  }

  #next(): void {
    for (const [key, arrival] of this.#waiting) {
      const reader = this.#idleReaders.pop();
      if (reader === undefined) return;
      this.#waiting.delete(key);
      this.#inReading.add(key);
      void this.#read(key, arrival, reader);
    }
  }

  async #read(key: string, arrival: Arrival, reader: FingerprintReader): Promise<void> {
    try {
      const fingerprint = await reader.read(arrival.file, arrival.stat);
      this.#inReading.delete(key);
      if (!this.#stopped) arrival.read(fingerprint);
    } catch (error) {
      this.#inReading.delete(key);
      this.#onError(error, arrival);
    }
    this.#idleReaders.push(reader);
    if (this.#waiting.size < this.#crowd) this.#makeRoom();
    this.#next();
    if (this.size === 0) this.#onQuiet();
  }

  #makeRoom(): void {
    const waiting = this.#forRoom;
    this.#forRoom = [];
    for (const resolve of waiting) resolve();
  }
}
