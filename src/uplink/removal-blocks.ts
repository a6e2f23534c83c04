import { lstat, stat } from 'node:fs/promises';
import { systemCode } from '../lib/errors.js';
import { sameStat } from '../lib/file.js';
import type { ItemKey } from '../state/entries.js';
import { claims, contentOf, type Entry, type RemovingItem } from '../state/entry.js';
import type { State } from '../state/state.js';
import { removed } from '../state/transitions.js';
import type { UplinkDeps } from './deps.js';

/** Longest time that a file that came back may take to be stable and read, in ms. */
const LONGEST_RETURN_MS = 5 * 60_000;

/** One document that is being removed. */
export interface Removal extends ItemKey {
  /** Whether it is sent in a request of its own, because a request with others failed. */
  inOwnRequest: boolean;
  /** The time since which its file has been there again, in ms since the epoch. */
  backSince?: number;
}

/**
 * Whether documents of the folder may be removed: not while it is missing, but also when it is not
 * in the configuration any more.
 */
export function mayRemoveFrom({ folders }: UplinkDeps, folder: string): boolean {
  return folders.stateOf(folder) !== 'missing';
}

export function removingItem(
  { state }: UplinkDeps,
  { folder, path }: ItemKey,
): RemovingItem | undefined {
  const entry = state.get(folder, path);
  return entry?.status === 'removing' ? entry : undefined;
}

/**
 * Decides whether a removal may be requested. It is *blocked*
 *
 * - while a file with the same content is being pushed or confirmed;
 * - while another file that is there has its URL and was not pushed;
 * - while its own file is there again, or, for a file that a rule keeps out, has another version
 *   than the skipped one.
 */
export class RemovalBlocks {
  readonly #deps: UplinkDeps;
  readonly #contentsInTransit: ContentsInTransit;

  constructor(deps: UplinkDeps) {
    this.#deps = deps;
    this.#contentsInTransit = new ContentsInTransit(deps.state);
  }

  /** Called when the record of an item changed. */
  note(entry: Entry): void {
    this.#contentsInTransit.note(entry);
  }

  /** Searches the state for files with the contents of these removals, for `isRenamed`. */
  async search(removals: readonly Removal[]): Promise<void> {
    await this.#contentsInTransit.search(removals.map((each) => this.#contentOf(each) ?? ''));
  }

  /** Whether a file with the same content is being pushed or confirmed. */
  isRenamed(place: ItemKey): boolean {
    return this.#contentsInTransit.has(this.#contentOf(place));
  }

  /**
   * Returns the item if its removal is not blocked. If the document belongs to another file now,
   * the removal is completed without a request.
   */
  async unblockedItem(removal: Removal): Promise<RemovingItem | undefined> {
    const { clock, folders, state } = this.#deps;
    const isBack = await this.#isBack(removal);
    const item = removingItem(this.#deps, removal);
    if (item === undefined || this.isRenamed(removal) || !mayRemoveFrom(this.#deps, item.folder))
      return undefined;
    const now = clock.now();
    if (isBack) {
      removal.backSince ??= now;
      folders.recheck(item);
      if (now - removal.backSince < LONGEST_RETURN_MS) return undefined;
    }
    const owner = state.entries.ownerOf(item.url, item);
    if (owner === undefined) return item;
    // The other file will replace the document when it is pushed.
    if (!isInTransit(owner) || claims(owner, item.url))
      state.put(removed(item, now, 'another file has its address now'));
    return undefined;
  }

  async #isBack(place: ItemKey): Promise<boolean> {
    const item = removingItem(this.#deps, place);
    const file = item && this.#deps.folders.pathOf(item);
    if (item === undefined || file === undefined) return false;
    try {
      // A file that a rule keeps out stays on disk: it is back only in another version. Links count
      // as their target.
      if (item.keptOut !== undefined) return !sameStat(await stat(file), item.version);
      return !(await lstat(file)).isDirectory();
    } catch (error) {
      return !['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '');
    }
  }

  #contentOf(place: ItemKey): string | undefined {
    const item = removingItem(this.#deps, place);
    return item && contentOf(item);
  }
}

/**
 * Finds renamed files: which of the removed contents are being pushed or confirmed as another file.
 *
 * `search` goes through the state. From then on `note` must be called with every change of an item,
 * until the next search.
 */
class ContentsInTransit {
  readonly #state: Pick<State, 'counts' | 'entries'>;
  readonly #searched = new Set<string>();
  readonly #found = new Set<string>();

  constructor(state: Pick<State, 'counts' | 'entries'>) {
    this.#state = state;
  }

  /** Searches for these contents, and forgets those of the last search. */
  async search(contents: Iterable<string>): Promise<void> {
    this.#searched.clear();
    this.#found.clear();
    for (const content of contents) this.#searched.add(content);
    const { accepted, pending } = this.#state.counts();
    if (accepted + pending === 0) return;
    for await (const slice of this.#state.entries.slices({ status: ['pending', 'accepted'] }))
      for (const entry of slice) this.note(entry);
  }

  /** Called when an item changed. */
  note(entry: Entry): void {
    const content = contentOf(entry);
    if (content !== undefined && this.#searched.has(content) && isInTransit(entry))
      this.#found.add(content);
  }

  has(content: string | undefined): boolean {
    return content !== undefined && this.#found.has(content);
  }
}

/** Whether an item is being pushed or confirmed. */
function isInTransit({ status }: Entry): boolean {
  return status === 'pending' || status === 'accepted';
}
