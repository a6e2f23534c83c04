import { escapeInvisible, numberText, quoted, shellWord } from '../lib/text.js';
import type { State, StateView } from '../state/state.js';

/**
 * A mass deletion: so many files were removed within a minute that the removal of their documents
 * awaits the approval of a person. A type and not an interface, to be JSON.
 */
export type MassDeletion = {
  /** Number of removed files. Renamed ones do not count. */
  readonly files: number;
  /** Number of files that the folder had with them. */
  readonly of: number;
  /** The paths of some, relative to the folder. */
  readonly examples: readonly string[];
  /** When the files began to await approval, in ms since the epoch. */
  readonly since: number;
  /** An approval covers the files that were removed before this, in ms since the epoch. */
  readonly before: number;
};

/**
 * The limit of a mass deletion: this many files, or this share of the folder if that is more. Above
 * it, the files that went within one minute await approval.
 */
const MIN_FILES = 20;
const SHARE = 0.1;
const WINDOW_SECONDS = 60;
const MAX_EXAMPLES = 3;

const massDeletionKey = (folder: string) => `watch.held-deletes.${folder}`;
const approvalKey = (folder: string) => `watch.approved-deletes.${folder}`;

/** Returns the mass deletion of a folder, unless a person has approved it. */
export function unapprovedMassDeletion(
  state: Pick<StateView, 'meta'>,
  folder: string,
): MassDeletion | undefined {
  const found = massDeletion(state, folder);
  return found?.before === state.meta(approvalKey(folder)) ? undefined : found;
}

/** Returns the mass deletion that the last scan of a folder found. */
export function massDeletion(
  state: Pick<StateView, 'meta'>,
  folder: string,
): MassDeletion | undefined {
  return state.meta(massDeletionKey(folder)) as MassDeletion | undefined;
}

export function setMassDeletion(
  state: State,
  folder: string,
  found: MassDeletion | undefined,
): void {
  state.setMeta(massDeletionKey(folder), found);
}

/**
 * Approves the mass deletion of a folder. The next full scan has the documents removed. The
 * approval is in memory; see `State.commit`.
 */
export function approveDeletes(state: State, folder: string): void {
  state.setMeta(approvalKey(folder), massDeletion(state, folder)?.before);
}

/**
 * Returns until when an approval covers removed files, in ms since the epoch; undefined if there is
 * none.
 */
export function approvedBefore(state: StateView, folder: string): number | undefined {
  return state.meta(approvalKey(folder)) as number | undefined;
}

export function endApproval(state: State, folder: string): void {
  state.setMeta(approvalKey(folder), undefined);
}

/** Returns how many of `files` files may be removed within a minute without approval. */
export function limitOf(files: number): number {
  return Math.max(MIN_FILES, SHARE * files);
}

/** One removed file that nobody has approved, and the second in which it went. */
interface Removed {
  readonly path: string;
  readonly second: number;
}

/** The removed files of one folder that nobody has approved, by content. */
export class UnapprovedFiles {
  readonly #byContent = new Map<string, Removed[]>();

  add(content: string, file: Removed): void {
    const same = this.#byContent.get(content);
    if (same === undefined) this.#byContent.set(content, [file]);
    else same.push(file);
  }

  /** Takes out one file whose content is there under another name. */
  discount(content: string): void {
    this.#byContent.get(content)?.pop();
  }

  /** Returns the seconds that belong to a minute in which more than `limit` files went. */
  crowdedSeconds(limit: number): ReadonlySet<number> {
    const counts = this.#countBySecond();
    const crowded = new Set<number>();
    const window: number[] = [];
    let files = 0;
    for (const second of [...counts.keys()].sort((a, b) => a - b)) {
      window.push(second);
      files += counts.get(second) ?? 0;
      while (window[0] !== undefined && window[0] <= second - WINDOW_SECONDS) {
        files -= counts.get(window[0]) ?? 0;
        window.shift();
      }
      if (files > limit) for (const one of window) crowded.add(one);
    }
    return crowded;
  }

  /** Returns how many files went in some seconds, and the paths of the first ones. */
  summaryOf(seconds: ReadonlySet<number>): Pick<MassDeletion, 'files' | 'examples'> {
    let files = 0;
    const examples: string[] = [];
    for (const same of this.#byContent.values()) {
      for (const { path, second } of same) {
        if (!seconds.has(second)) continue;
        files += 1;
        if (examples.length < MAX_EXAMPLES) examples.push(path);
      }
    }
    return { files, examples };
  }

  #countBySecond(): ReadonlyMap<number, number> {
    const counts = new Map<number, number>();
    for (const same of this.#byContent.values())
      for (const { second } of same) counts.set(second, (counts.get(second) ?? 0) + 1);
    return counts;
  }
}

/** The condition of a folder with a mass deletion. */
export function massDeletionCondition(folder: string, { examples, files, of }: MassDeletion) {
  return {
    code: 'DELETES_AWAIT_APPROVAL',
    message: `${numberText(files)} of ${numberText(of)} files of the folder ${quoted(folder)} were removed or emptied at once, such as ${examples.map(escapeInvisible).join(', ')}; the peer keeps their documents until you approve that.`,
    hint: `\`peersync approve-deletes ${shellWord(folder)}\` removes the documents; files that come back end this.`,
  };
}
