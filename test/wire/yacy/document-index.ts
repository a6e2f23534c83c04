import type { Timing } from './timing.js';

/** A document as the peer keeps it. */
export interface Document {
  readonly url: string;
  readonly hash: string;
  readonly title: string;
  readonly text: string;
  readonly words: number;
  /** Bytes of the decoded data. */
  readonly size: number;
  readonly collections: readonly string[];
  readonly contentType: string;
  readonly doctype: string;
  /** Whole seconds, in ms since the epoch. */
  readonly lastModified: number;
  readonly loadDate: number;
}

/** The change of one hash in an update. */
type Change = Document | 'deleted';

/**
 * The index of the peer, in which documents flicker.
 *
 * A document waits in the queue for a moment, then stands in the buffer and is readable; soon the
 * buffer is handed to the index, where nobody can read it (an older version of it can still be
 * read) until the next commit shows it, for good. What was handed over survives a crash, what was
 * not is lost. Everything that is due is done when somebody asks.
 *
 * Documents that are handed over together are one update. The index refuses the whole update for
 * one character that its XML cannot hold, without an error (section 10, row "U+FFFE or U+FFFF").
 *
 * A deletion goes the same way, but is not seen before the commit; it is no part of an update that
 * is refused.
 */
export class DocumentIndex {
  #queue: { readonly at: number; readonly document: Document }[] = [];
  #buffer = new Map<string, Change>();
  #bufferedSince = Number.POSITIVE_INFINITY;
  #handedOver = new Map<string, Change>();
  #handedOverSince = Number.POSITIVE_INFINITY;
  readonly #shown = new Map<string, Document>();
  #lastCommit = Number.NEGATIVE_INFINITY;
  readonly #timing: Timing;
  readonly #now: () => number;

  constructor(timing: Timing, now: () => number) {
    this.#timing = timing;
    this.#now = now;
  }

  /** Takes a document as an asynchronous push does. */
  enqueue(document: Document): void {
    this.#settle();
    this.#queue.push({ at: this.#now() + this.#timing.indexed, document });
  }

  /** Takes a document as a synchronous push does. */
  put(document: Document): void {
    this.#settle();
    this.#take(document.hash, document, this.#now());
  }

  /** Deletes a document as an administrator does: it is shown until the next commit. */
  delete(hash: string): void {
    this.#settle();
    this.#take(hash, 'deleted', this.#now());
  }

  /** Looks a document up by hash, as the peer shows it now. */
  find(hash: string): Document | undefined {
    this.#settle();
    const buffered = this.#buffer.get(hash);
    return typeof buffered === 'object' ? buffered : this.#shown.get(hash);
  }

  /** Returns the document that will be found in the end, if nothing else happens. */
  finally(hash: string): Document | undefined {
    this.#settle();
    const future = new DocumentIndex(this.#timing, () => Number.MAX_VALUE);
    const shown = this.#shown.get(hash);
    if (shown !== undefined) future.#shown.set(hash, shown);
    future.#queue = [...this.#queue];
    future.#buffer = new Map(this.#buffer);
    future.#bufferedSince = this.#bufferedSince;
    future.#handedOver = new Map(this.#handedOver);
    future.#handedOverSince = this.#handedOverSince;
    return future.find(hash);
  }

  /** All documents that searches go through. */
  searched(): readonly Document[] {
    this.#settle();
    this.#handOver(this.#now());
    return [...this.#shown.values()];
  }

  /** A commit that a push asks for. */
  commit(): void {
    this.#settle();
    this.#handOver(this.#now());
    if (this.#now() - this.#lastCommit >= this.#timing.commitPause) this.#show(this.#now());
  }

  /** The commit that every look-up of citations of an unknown hash causes. */
  commitAtOnce(): void {
    this.#settle();
    this.#handOver(this.#now());
    this.#show(this.#now());
  }

  /** Removes a document without a trace. */
  remove(hash: string): void {
    this.#settle();
    this.#queue = this.#queue.filter(({ document }) => document.hash !== hash);
    for (const stage of [this.#buffer, this.#handedOver, this.#shown]) stage.delete(hash);
  }

  /**
   * A copy of what searches go through; calling it brings that back in the place of all that is
   * there then.
   */
  backup(): () => void {
    this.commitAtOnce();
    const kept = [...this.#shown];
    return () => {
      this.commitAtOnce();
      this.#shown.clear();
      for (const [hash, document] of kept) this.#shown.set(hash, document);
    };
  }

  /**
   * The end of the process without a word: what was not handed over is gone, the rest is shown
   * after the start.
   */
  crash(): void {
    this.#settle();
    this.#queue = [];
    this.#buffer.clear();
    this.#bufferedSince = Number.POSITIVE_INFINITY;
    this.#show(this.#now());
  }

  /** The end of the process in order. */
  close(): void {
    for (const { document } of this.#queue.splice(0))
      this.#take(document.hash, document, this.#now());
    this.commitAtOnce();
  }

  #settle(): void {
    const now = this.#now();
    for (;;) {
      const indexedAt = this.#queue[0]?.at ?? Number.POSITIVE_INFINITY;
      const handedOverAt = this.#bufferedSince + this.#timing.buffered;
      const shownAt = this.#handedOverSince + this.#timing.commit;
      const next = Math.min(indexedAt, handedOverAt, shownAt);
      if (next > now) return;
      if (next === indexedAt) {
        const queued = this.#queue.shift();
        if (queued !== undefined) this.#take(queued.document.hash, queued.document, next);
      } else if (next === handedOverAt) this.#handOver(next);
      else this.#show(next);
    }
  }

  #take(hash: string, change: Change, at: number): void {
    if (this.#buffer.size === 0) this.#bufferedSince = at;
    this.#buffer.set(hash, change);
  }

  #handOver(at: number): void {
    const refused = [...this.#buffer.values()].some(isRefused);
    const taken = [...this.#buffer].filter(([, change]) => change === 'deleted' || !refused);
    if (taken.length > 0 && this.#handedOver.size === 0) this.#handedOverSince = at;
    for (const [hash, change] of taken) this.#handedOver.set(hash, change);
    this.#buffer.clear();
    this.#bufferedSince = Number.POSITIVE_INFINITY;
  }

  #show(at: number): void {
    for (const [hash, change] of this.#handedOver) {
      if (change === 'deleted') this.#shown.delete(hash);
      else this.#shown.set(hash, change);
    }
    this.#handedOver.clear();
    this.#handedOverSince = Number.POSITIVE_INFINITY;
    this.#lastCommit = at;
  }
}

/** Not U+1FFFE and the like, which are two other characters in UTF-16. */
function isRefused(change: Change): boolean {
  return change !== 'deleted' && /[\ufffe\uffff]/.test(change.title + change.text);
}
