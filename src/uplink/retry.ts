import type { Clock } from '../lib/clock.js';
import type { ItemKey } from '../state/entries.js';
import type { AcceptedItem, Entry, PendingItem, QuarantinedItem } from '../state/entry.js';
import { hasContent } from '../state/entry.js';
import type { State } from '../state/state.js';
import { retried } from '../state/transitions.js';

/** Everything at or below a path of one folder; `path` is '' for the folder itself. */
export interface Scope {
  readonly folder: string;
  readonly path: string;
}

/**
 * Makes quarantined items pending again, ends the delay of pending ones, and forgets why files were
 * skipped, so that the next scan decides again. Accepted items that may never be shown are pushed
 * again. Confirmed items are not pushed.
 *
 * @param scopes the files to retry; undefined for all
 * @returns the number of items that are pending again, with all their attempts, and the files to be
 *   read again first, because their content is not known
 */
export async function retryItems(
  state: Pick<State, 'entries' | 'put' | 'remove'>,
  scopes: readonly Scope[] | undefined,
  clock: Clock,
): Promise<{ readonly retried: number; readonly lookedAt: readonly ItemKey[] }> {
  const lookedAt: ItemKey[] = [];
  let again = 0;
  for await (const slice of chosenOf(state, scopes)) {
    for (const entry of slice) {
      const { folder, path, status } = entry;
      if (status === 'skipped' || (status === 'quarantined' && !hasContent(entry.version))) {
        // The record of what the peer has is kept. No file has this modification time, so the next
        // scan reads the file.
        if (entry.sent === undefined) state.remove(folder, path);
        else
          state.put({ ...entry, version: { ...entry.version, mtimeMs: Number.MIN_SAFE_INTEGER } });
        lookedAt.push({ folder, path });
      } else if (isToRetry(entry)) {
        state.put(retried(entry, clock.now()));
        again += 1;
      }
    }
  }
  return { retried: again, lookedAt };
}

function isToRetry(entry: Entry): entry is PendingItem | AcceptedItem | QuarantinedItem {
  if (entry.status === 'pending') return entry.inFlight === undefined;
  return (
    entry.status === 'quarantined' || (entry.status === 'accepted' && entry.failure !== undefined)
  );
}

async function* chosenOf(
  { entries }: Pick<State, 'entries'>,
  scopes: readonly Scope[] | undefined,
): AsyncGenerator<Iterable<Entry>> {
  const status = ['pending', 'accepted', 'skipped', 'quarantined'] as const;
  if (scopes === undefined) yield* entries.slices({ status });
  for (const { folder, path } of scopes ?? []) {
    const entry = entries.get(folder, path);
    yield* entry === undefined ? entries.slices({ folder, directory: path, status }) : [[entry]];
  }
}
