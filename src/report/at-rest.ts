import type { AcceptedItem, ConfirmedItem, HistoryEntry, PendingItem } from '../state/entry.js';
import { BEGINNINGS, beginningOf } from '../state/history.js';

/** How a folder was watched when a file was found. */
export interface Watch {
  /** Since when, in ms since the epoch: what lay there before counts from then. */
  readonly beganAt: number;
  /** How long a file had to be unchanged, in ms. */
  readonly settleMs: number;
}

/** Where the file itself tells when it last changed. */
const TOLD_BY_FILE: ReadonlySet<string | undefined> = new Set<string>([
  BEGINNINGS.newFile,
  BEGINNINGS.fileChanged,
  BEGINNINGS.fileBack,
  BEGINNINGS.sentBefore,
]);

/**
 * Since when a file has been *at rest* in the version that its item is about, in ms since the epoch.
 *
 * That is when it had not changed (by its ctime, which a rename sets too) for `settle`; but not before its folder was
 * watched, not while it was gone, and not after it was found. An item whose file did not change (its document was missed,
 * a person asked for another try, a rule changed) counts from that moment. It follows from the record alone, so that it
 * is the same after a restart.
 *
 * @param watchAt how the folder was watched at a time; undefined where that is not known any more
 */
export function atRestSince(
  item: PendingItem | AcceptedItem | ConfirmedItem,
  watchAt: (folder: string, at: number) => Watch | undefined,
): number {
  const { folder, history, since, version } = item;
  const index = beginningOf(history);
  const begun: HistoryEntry | undefined = history[Math.max(0, index)];
  if (begun === undefined) return since;
  if (!TOLD_BY_FILE.has(begun.note)) return begun.at;
  const watch = watchAt(folder, begun.at);
  if (watch === undefined) return begun.at;
  const before = history[index - 1];
  const goneAt = before?.status === 'gone' ? before.at : Number.NEGATIVE_INFINITY;
  return Math.min(begun.at, Math.max(Math.round(version.ctimeMs) + watch.settleMs, watch.beganAt, goneAt));
}
