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

/** What changed since it was last written: only where, for it is written as it is by then. */
export class Changes {
  readonly records = new Map<string, Place>();
  /** Names. */
  readonly meta = new Set<string>();

  get size(): number {
    return this.records.size + this.meta.size;
  }

  add(place: Place): void {
    this.records.set(`${place.folder}\0${place.path}`, place);
  }

  /** Hands over all of them and is empty then. */
  take(): Changes {
    const taken = new Changes();
    taken.giveBack(this);
    this.records.clear();
    this.meta.clear();
    return taken;
  }

  /** Takes back what did not reach the disk. */
  giveBack(taken: Changes): void {
    for (const [key, place] of taken.records) this.records.set(key, place);
    for (const name of taken.meta) this.meta.add(name);
  }
}
