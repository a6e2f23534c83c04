import type { PeersyncError } from '../lib/errors.js';
import { Changes, CommittedEntries } from './committed.js';
import { Entries } from './entries.js';

/** A small value that survives a restart beside the records. */
export type Json =
  | string
  | number
  | boolean
  | null
  | readonly Json[]
  | { readonly [name: string]: Json | undefined };

/** Everything that survives a restart. lowdb holds it in `data`. */
export class StateData {
  readonly entries = new Entries();
  /** Small values by name: folder identities, what was learned of the peer. */
  readonly meta = new Map<string, Json>();
  /** Changes that are not on disk yet. */
  readonly changes = new Changes();
  /** The records as they are on disk. */
  readonly committed = new CommittedEntries(this.entries, this.changes);
  /** The error of the last write; undefined if it succeeded. */
  failure?: PeersyncError | undefined;
}

/**
 * Name of the small value that records when opening the state last found that data had been lost
 * from disk, in ms since the epoch.
 */
export const REPAIRED_META = 'repairedAt';
