import type { State } from '../state/state.js';

/** What watching needs of the state. */
export type WatchState = Pick<State, 'get' | 'put' | 'remove' | 'commit' | 'meta' | 'setMeta' | 'entries'>;
