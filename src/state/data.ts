import { Entries, type Place } from './entries.js';
import type { Entry } from './entry.js';

/** A small value that survives a restart beside the records. */
export type Json =
  | string
  | number
  | boolean
  | null
  | readonly Json[]
  | { readonly [name: string]: Json | undefined };

/** Everything that survives a restart: what lowdb holds in `data`. */
export interface StateData {
  readonly entries: Entries;
  /** Small values by name: folder identities, what was learned of the peer. */
  readonly meta: Map<string, Json>;
  /** What is not on disk yet. */
  readonly changes: Changes;
}

export function emptyData(): StateData {
  return { entries: new Entries(), meta: new Map(), changes: new Changes() };
}

/** What became of one file: its new record, or only its place when the record was removed. */
export type Change = Entry | Place;

/** What changed since it was last written, each thing once, in its latest form. */
export class Changes {
  /** By folder and path. */
  #records = new Map<string, Map<string, Change>>();
  /** By name; undefined when the value was removed. */
  #meta = new Map<string, Json | undefined>();

  get size(): number {
    let size = this.#meta.size;
    for (const records of this.#records.values()) size += records.size;
    return size;
  }

  record(change: Change): void {
    let records = this.#records.get(change.folder);
    if (records === undefined) {
      records = new Map();
      this.#records.set(change.folder, records);
    }
    records.set(change.path, change);
  }

  meta(name: string, value: Json | undefined): void {
    this.#meta.set(name, value);
  }

  *records(): Iterable<Change> {
    for (const records of this.#records.values()) yield* records.values();
  }

  values(): Iterable<readonly [name: string, value: Json | undefined]> {
    return this.#meta;
  }

  /** Hands over all of them and starts empty. */
  take(): Changes {
    const taken = new Changes();
    taken.#records = this.#records;
    taken.#meta = this.#meta;
    this.#records = new Map();
    this.#meta = new Map();
    return taken;
  }

  /** Takes back what did not reach the disk, except what has changed again since. */
  giveBack(taken: Changes): void {
    const later = this.take();
    for (const changes of [taken, later]) {
      for (const change of changes.records()) this.record(change);
      for (const [name, value] of changes.values()) this.meta(name, value);
    }
  }
}
