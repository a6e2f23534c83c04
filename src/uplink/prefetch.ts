import type { ContentRules } from '../peer/dialects/dialect.js';
import type { PendingItem } from '../state/entry.js';
import { isDocument } from './backlog.js';
import type { BatchReader } from './batch-reader.js';
import type { PreparedDocument } from './batch-sender.js';
import { itemKeyText, stillPending, type UplinkDeps } from './deps.js';

type Mode =
  | { readonly name: 'empty' }
  | { readonly name: 'reading' }
  | {
      readonly name: 'ready';
      readonly item: PendingItem;
      readonly content: PreparedDocument['content'];
      /** The content rules of the dialect at the time of reading. */
      readonly rules: ContentRules;
    };

const EMPTY: Mode = { name: 'empty' };

/**
 * Reads a lost document before its isolation round: no other push is under way in a round, and a
 * document may take minutes to read. Its text is in memory, so it holds only one.
 *
 * - *empty*: holds nothing. `read` leads to *reading*.
 * - *reading*: reads a document. Ends as *ready*, or as *empty* if there is nothing to send.
 * - *ready*: holds a document that waits for its round. `take` leads to *empty*, and so does `next`
 *   if that document is not to be pushed any more.
 */
export class Prefetch {
  readonly #deps: UplinkDeps;
  readonly #reader: BatchReader;
  #mode: Mode = EMPTY;

  constructor(deps: UplinkDeps, reader: BatchReader) {
    this.#deps = deps;
    this.#reader = reader;
  }

  get isReading(): boolean {
    return this.#mode.name === 'reading';
  }

  /** Whether this version was read for its round, by the rules of the present dialect. */
  has(item: PendingItem): boolean {
    if (this.#mode.name !== 'ready') return false;
    const { item: read, rules } = this.#mode;
    return (
      itemKeyText(read) === itemKeyText(item) &&
      stillPending(item, read) !== undefined &&
      rules === this.#deps.dialect.current?.content
    );
  }

  /** Returns the lost document to read next; undefined while one is being read or waits. */
  next(lost: Iterable<PendingItem>): PendingItem | undefined {
    if (this.isReading) return undefined;
    let next: PendingItem | undefined;
    for (const item of lost) {
      if (this.has(item)) return undefined;
      if (isDocument(item) && this.#deps.folders.pathOf(item) !== undefined) next ??= item;
    }
    this.#mode = EMPTY;
    return next;
  }

  /** Reads a document. Stores in the state why there is nothing to send, if so. */
  async read(item: PendingItem, rules: ContentRules): Promise<void> {
    if (this.#mode.name !== 'empty') throw new Error(`cannot read: ${this.#mode.name}`);
    this.#mode = { name: 'reading' };
    let after = EMPTY;
    try {
      const { health } = this.#reader;
      const [content] = await health.during(() => this.#reader.read([item], rules));
      if (content?.kind === 'content') after = { name: 'ready', item, content, rules };
      else this.#reader.prepare([item], [content], rules);
    } finally {
      this.#mode = after;
    }
  }

  /** Returns the content of a document that was read, and forgets it. */
  take(item: PendingItem | undefined): PreparedDocument['content'] | undefined {
    if (item === undefined || this.#mode.name !== 'ready' || !this.has(item)) return undefined;
    const { content } = this.#mode;
    this.#mode = EMPTY;
    return content;
  }
}
