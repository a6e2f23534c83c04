import { Entries, type Place } from './entries.js';

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

/** Names what changed since it was last written, each thing once; the values are looked up when they are written. */
export class Changes {
  #records = new Map<string, Place>();
  #meta = new Set<string>();

  get size(): number {
    return this.#records.size + this.#meta.size;
  }

  record(place: Place): void {
    this.#records.set(`${place.folder}\0${place.path}`, place);
  }

  meta(name: string): void {
    this.#meta.add(name);
  }

  records(): Iterable<Place> {
    return this.#records.values();
  }

  metaNames(): Iterable<string> {
    return this.#meta;
  }

  /** Hands over all of them and starts empty. */
  take(): Changes {
    const taken = new Changes();
    taken.#records = this.#records;
    taken.#meta = this.#meta;
    this.#records = new Map();
    this.#meta = new Set();
    return taken;
  }

  /** Takes back what did not reach the disk. */
  giveBack(taken: Changes): void {
    for (const place of taken.#records.values()) this.record(place);
    for (const name of taken.#meta) this.meta(name);
  }
}
