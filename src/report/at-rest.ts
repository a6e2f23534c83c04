import { isDeepStrictEqual } from 'node:util';
import type { AcceptedItem, ConfirmedItem, HistoryEntry, PendingItem } from '../state/entry.js';
import { BEGINNINGS, beginningOf } from '../state/transitions.js';

/** How a folder was watched when a file was found. */
export interface Watch {
  /** Since when, in steady time: what lay there before counts from then. */
  readonly beganAt: number;
  /** How long a file had to be unchanged, in ms. */
  readonly settleMs: number;
  /** How far the wall clock, which the times of files are of, was ahead of steady time. */
  readonly wallAheadMs: number;
}

/** Where the file itself says when it last changed. */
const DATED_BY_FILE: ReadonlySet<string | undefined> = new Set<string>([
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
  if (!DATED_BY_FILE.has(begun.note)) return begun.at;
  const watch = watchAt(folder, begun.at);
  if (watch === undefined) return begun.at;
  const { beganAt, settleMs, wallAheadMs } = watch;
  const before = history[index - 1];
  const goneAt = before?.status === 'gone' ? before.at : Number.NEGATIVE_INFINITY;
  const restedAt = Math.round(version.ctimeMs) - wallAheadMs + settleMs;
  return Math.min(begun.at, Math.max(restedAt, beganAt, goneAt));
}

/** A folder as the configuration has it, with all that says which files belong to it. */
export interface WatchedFolder {
  readonly name: string;
  /** In ms. */
  readonly settle: number;
}

/** `from`, `beganAt`, `settleMs` and `wallAheadMs` of a time in which a folder was watched in one way. */
export type WatchTerm = readonly [from: number, beganAt: number, settleMs: number, wallAheadMs: number];

/** So many terms of a folder outlive a restart. */
const KEPT = 20;

/**
 * How each folder was watched, and when: a *term* begins with the daemon, with a folder that joins the configuration,
 * with another `settle` and with a wall clock that was set. Where anything else of a folder changes (its path, what it ignores),
 * the files that are in it now may have been at rest for long elsewhere, and it counts as one that joins. Terms are only added.
 */
export class Watches {
  /** By folder, oldest first. */
  readonly #terms = new Map<string, WatchTerm[]>();
  #present = new Map<string, WatchedFolder>();

  /** What an earlier run knew. */
  restore(kept: Readonly<Record<string, readonly WatchTerm[]>>): void {
    for (const [folder, terms] of Object.entries(kept))
      this.#terms.set(folder, [...terms.slice(-KEPT), ...(this.#terms.get(folder) ?? [])]);
  }

  /** The folders that are watched from now on. */
  set(folders: readonly WatchedFolder[], now: number, wallAheadMs: number): void {
    const before = this.#present;
    this.#present = new Map(folders.map((folder) => [folder.name, folder]));
    for (const folder of folders) {
      const { name, settle } = folder;
      const terms = this.#terms.get(name) ?? [];
      const [, beganAt = now, , lastAheadMs] = terms.at(-1) ?? [];
      const known = before.get(name);
      if (isDeepStrictEqual(known, folder) && lastAheadMs === wallAheadMs) continue;
      const joins = known === undefined || !isDeepStrictEqual({ ...known, settle }, folder);
      terms.push([now, joins ? now : beganAt, settle, wallAheadMs]);
      this.#terms.set(name, terms);
    }
  }

  at(folder: string, time: number): Watch | undefined {
    const term = this.#terms.get(folder)?.findLast(([from]) => from <= time);
    if (term === undefined) return undefined;
    const [, beganAt, settleMs, wallAheadMs] = term;
    return { beganAt, settleMs, wallAheadMs };
  }

  /** Of the folders that are watched now. */
  kept(): Record<string, readonly WatchTerm[]> {
    const kept: Record<string, readonly WatchTerm[]> = {};
    for (const [folder, terms] of this.#terms)
      if (this.#present.has(folder)) kept[folder] = terms.slice(-KEPT);
    return kept;
  }
}
