import { forgetRefusals } from '../content/refusals.js';
import type { Clock } from '../lib/clock.js';
import type { ItemKey } from '../state/entries.js';
import {
  type AcceptedItem,
  type ConfirmedItem,
  type Entry,
  hasContent,
  type PendingItem,
  type QuarantinedItem,
} from '../state/entry.js';
import type { State } from '../state/state.js';
import { retried } from '../state/transitions.js';
import type { UplinkSettings } from './deps.js';

/** Everything at or below a path of one folder; `path` is '' for the folder itself. */
export interface Scope {
  readonly folder: string;
  readonly path: string;
}

interface RetryDeps {
  readonly clock: Clock;
  /** The directory of the texts of documents; it need not exist. */
  readonly extracts: string;
  readonly state: Pick<State, 'entries' | 'put' | 'remove'>;
}

/**
 * Makes quarantined items pending again, ends the delay of pending ones, and pushes accepted items
 * again that may never be shown. A confirmed item is pushed only if a part of it was not read for
 * lack of time.
 *
 * Files that were skipped, or could not be read, are read again, because state knows no content of
 * theirs. A file that the peer was never sent loses its record. Any other record keeps what was
 * sent, and gets a time that no file has, so that the file counts as changed.
 *
 * No document is refused because of an earlier reading: each one is read again.
 *
 * @param scopes the files to retry; undefined for all
 * @returns the number of items that are pending again, with all their attempts, and the files that
 *   the watcher has to read
 */
export async function retryItems(
  { clock, extracts, state }: RetryDeps,
  scopes: readonly Scope[] | undefined,
): Promise<{ readonly retried: number; readonly toRead: readonly ItemKey[] }> {
  await forgetRefusals(extracts);
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

function isToRetry(
  entry: Entry,
): entry is PendingItem | AcceptedItem | ConfirmedItem | QuarantinedItem {
  if (entry.status === 'pending') return entry.inFlight === undefined;
  if (entry.status === 'confirmed') return entry.sent.lacks?.includes('time') === true;
  return (
    entry.status === 'quarantined' || (entry.status === 'accepted' && entry.failure !== undefined)
  );
}

async function* chosenOf(
  { entries }: Pick<State, 'entries'>,
  scopes: readonly Scope[] | undefined,
): AsyncGenerator<Iterable<Entry>> {
  const status = ['pending', 'accepted', 'confirmed', 'skipped', 'quarantined'] as const;
  if (scopes === undefined) yield* entries.slices({ status });
  for (const { folder, path } of scopes ?? []) {
    const entry = entries.get(folder, path);
    yield* entry === undefined ? entries.slices({ folder, directory: path, status }) : [[entry]];
  }
}

/**
 * Longest delay of an item that has not failed, in ms: such as one whose file changed while it was
 * read.
 */
const MAX_DELAY_WITHOUT_FAILURE_MS = 10_000;

/** Returns the delay after a failure, in ms: `min`, doubled with each attempt, up to `max`. */
export function backoffMs(
  { push }: UplinkSettings,
  { attempts }: { readonly attempts: number },
): number {
  const { min, max } = push.backoff;
  return Math.min(max, min * 2 ** Math.min(30, attempts));
}

/**
 * Returns how long an item has still to wait until its `notBefore`, in ms; 0 if it is due. It is
 * for backoff only: a longer delay than any failure causes comes from a wrong clock and counts as
 * over. A wait that a rule demands belongs in `watch`, before the item is pending or removing, or
 * in `Isolation` for items that the index lost, or in `Housekeeping` for folders that left the
 * configuration.
 */
export function delayLeftMs(
  { push }: UplinkSettings,
  { notBefore }: { readonly notBefore: number },
  now: number,
): number {
  const leftMs = Math.max(0, notBefore - now);
  const longestMs = Math.max(MAX_DELAY_WITHOUT_FAILURE_MS, push.backoff.max);
  return leftMs > longestMs ? 0 : leftMs;
}
