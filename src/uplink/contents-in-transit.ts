import { contentOf, type Entry } from '../state/entry.js';
import type { State } from '../state/state.js';

/**
 * Finds renamed files: which of the removed contents are being pushed or confirmed as another file.
 *
 * `search` goes through the state. From then on `note` must be called with every change of an item,
 * until the next search.
 */
export class ContentsInTransit {
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
export function isInTransit({ status }: Entry): boolean {
  return status === 'pending' || status === 'accepted';
}
