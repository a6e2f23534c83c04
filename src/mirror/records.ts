import type { Json } from '../state/load.js';
import type { State, StateView } from '../state/state.js';
import type { MirrorRecord } from './record.js';

const PREFIX = 'mirror/';

/** The record of one mirror, where it has run before. */
export function recordOf(state: Pick<StateView, 'meta'>, name: string): MirrorRecord | undefined {
  const kept = state.meta(PREFIX + name);
  return isRecord(kept) ? kept : undefined;
}

/** The names of all mirrors that have a record. */
export function recordedNames(state: Pick<StateView, 'metaNames'>): readonly string[] {
  return state.metaNames(PREFIX).map((name) => name.slice(PREFIX.length));
}

/** Keeps a record, or forgets it. In memory: commit it after the file is in place. */
export function keepRecord(
  state: Pick<State, 'setMeta'>,
  name: string,
  record: MirrorRecord | undefined,
): void {
  // A record is made of JSON values only, which an interface cannot say.
  state.setMeta(PREFIX + name, record as unknown as Json | undefined);
}

function isRecord(kept: unknown): kept is MirrorRecord {
  return typeof kept === 'object' && kept !== null && 'kind' in kept && 'path' in kept;
}
