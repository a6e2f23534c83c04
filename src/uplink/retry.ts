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
 * Makes quarantined items pending again, ends the delay of pending ones, and pushes accepted items
 * again that may never be shown. Confirmed items are not pushed.
 *
 * Files that were skipped, or could not be read, are read again, because state knows no content of
 * theirs. A file that the peer was never sent loses its record. Any other record keeps what was
 * sent, and gets a time that no file has, so that the file counts as changed.
 *
 * @param scopes the files to retry; undefined for all
 * @returns the number of items that are pending again, with all their attempts, and the files that
 *   the watcher has to read
 */
export async function retryItems(
  state: Pick<State, 'entries' | 'put' | 'remove'>,
  scopes: readonly Scope[] | undefined,
  clock: Clock,
): Promise<{ readonly retried: number; readonly toRead: readonly ItemKey[] }> {
  const toRead: ItemKey[] = [];
  let again = 0;
  for await (const slice of chosenOf(state, scopes)) {
    for (const entry of slice) {
      const { folder, path, status } = entry;
      if (status === 'skipped' || (status === 'quarantined' && !hasContent(entry.version))) {
        if (entry.sent === undefined) state.remove(folder, path);
        else
          state.put({ ...entry, version: { ...entry.version, mtimeMs: Number.MIN_SAFE_INTEGER } });
        toRead.push({ folder, path });
      } else if (isToRetry(entry)) {
        state.put(retried(entry, clock.now()));
        again += 1;
      }
    }
  }
  return { retried: again, toRead };
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
