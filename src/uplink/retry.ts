import type { Clock } from '../lib/clock.js';
import type { Place } from '../state/entries.js';
import { type Entry, hasContent } from '../state/entry.js';
import { retried } from '../state/transitions.js';
import type { UplinkState } from './parts.js';

/** Everything at or below a path of one folder; `path` is '' for the folder itself. */
export interface Scope {
  readonly folder: string;
  readonly path: string;
}

export interface RetryReport {
  /** Items that are pending again, with all their attempts. */
  readonly retried: number;
  /** Files that are read again first, for their content was not known. */
  readonly lookedAt: readonly Place[];
}

/**
 * Gives quarantined items another try, ends the wait of pending ones, and forgets why files were passed over, so that the
 * next look decides anew. Nothing is pushed that is confirmed already.
 *
 * @param scopes what to try again; undefined for everything
 */
export function retryItems(
  state: Pick<UplinkState, 'entries' | 'get' | 'put' | 'counts'> & {
    remove(folder: string, path: string): void;
  },
  scopes: readonly Scope[] | undefined,
  clock: Clock,
): RetryReport {
  const chosen = scopes === undefined ? inAll(state) : scopes.flatMap((s) => inScope(state, s));
  const lookedAt: Place[] = [];
  let again = 0;
  for (const entry of chosen) {
    if (entry.status === 'passed' || (entry.status === 'quarantined' && !hasContent(entry.version))) {
      state.remove(entry.folder, entry.path);
      lookedAt.push({ folder: entry.folder, path: entry.path });
    } else if (entry.status === 'quarantined' || (entry.status === 'pending' && entry.doubt === undefined)) {
      state.put(retried(entry, clock.now()));
      again += 1;
    }
  }
  return { retried: again, lookedAt };
}

/** Only the quarantined where nothing else is to be tried again: among 1,000,000 confirmed ones they are soon found. */
function inAll(state: Pick<UplinkState, 'entries' | 'counts'>): Entry[] {
  const { pending, passed } = state.counts();
  return [...(pending + passed === 0 ? state.entries.quarantined() : state.entries.all())];
}

function inScope(state: Pick<UplinkState, 'entries' | 'get'>, scope: Scope): Entry[] {
  const entry = scope.path === '' ? undefined : state.get(scope.folder, scope.path);
  return entry ? [entry] : [...state.entries.underDirectory(scope.folder, scope.path)];
}
