import { isDeepStrictEqual } from 'node:util';
import type { Watch } from './at-rest.js';

/** A folder as the configuration has it, with all that says which files belong to it. */
export interface WatchedFolder {
  readonly name: string;
  /** In ms. */
  readonly settle: number;
}

interface Term extends Watch {
  /** From when on it was so, in ms since the epoch. */
  readonly from: number;
}

/** By folder: `from`, `beganAt` and `settleMs` of each term. */
export type KeptWatches = Readonly<Record<string, readonly (readonly [number, number, number])[]>>;

/** So many terms of a folder outlive a restart. */
const KEPT = 20;

/**
 * How each folder was watched, and when: a *term* begins with the daemon, with a folder that joins the configuration,
 * and with another `settle`. Where anything else of a folder is another (its path, what it ignores), the files that are in
 * it now may have been at rest for long elsewhere, and it counts as one that joins. What was once said of a time stays so;
 * terms are only added.
 */
export class Watches {
  /** By folder, oldest first. */
  readonly #terms = new Map<string, Term[]>();
  #present = new Map<string, WatchedFolder>();

  /** What an earlier run knew. */
  restore(kept: KeptWatches): void {
    for (const [folder, terms] of Object.entries(kept)) {
      const earlier = terms.slice(-KEPT).map(([from, beganAt, settleMs]) => ({ from, beganAt, settleMs }));
      this.#terms.set(folder, [...earlier, ...(this.#terms.get(folder) ?? [])]);
    }
  }

  /** The folders that are watched from now on. */
  are(folders: readonly WatchedFolder[], now: number): void {
    const present = new Map<string, WatchedFolder>();
    for (const folder of folders) {
      const { name, settle } = folder;
      present.set(name, folder);
      const before = this.#present.get(name);
      if (isDeepStrictEqual(before, folder)) continue;
      const terms = this.#terms.get(name) ?? [];
      const isOther = before === undefined || !isDeepStrictEqual({ ...before, settle }, folder);
      const beganAt = isOther ? now : (terms.at(-1)?.beganAt ?? now);
      terms.push({ from: now, beganAt, settleMs: settle });
      this.#terms.set(name, terms);
    }
    this.#present = present;
  }

  has(folder: string): boolean {
    return this.#present.has(folder);
  }

  at(folder: string, time: number): Watch | undefined {
    return this.#terms.get(folder)?.findLast(({ from }) => from <= time);
  }

  /** Of the folders that are watched now. */
  kept(): KeptWatches {
    const kept: Record<string, readonly (readonly [number, number, number])[]> = {};
    for (const [folder, terms] of this.#terms)
      if (this.#present.has(folder))
        kept[folder] = terms
          .slice(-KEPT)
          .map(({ from, beganAt, settleMs }) => [from, beganAt, settleMs] as const);
    return kept;
  }
}
