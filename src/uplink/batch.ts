import { HealthCheck } from '../lib/health.js';
import type { ContentRules, Dialect } from '../peer/dialects/dialect.js';
import { type AcceptedItem, claims, type Entry, type PendingItem } from '../state/entry.js';
import {
  accepted,
  leaving,
  olderVersionAccepted,
  replaced,
  returned,
} from '../state/transitions.js';
import type { Backlog } from './backlog.js';
import { dated, type ItemOutcome, type PreparedDocument, sendBatch } from './batch-sender.js';
import type { Blame } from './blame.js';
import { stillPending, type UplinkDeps } from './deps.js';
import type { PackOrder } from './documents.js';
import type { Extraction } from './extraction.js';
import type { FailureAttribution } from './failure-attribution.js';
import type { Isolation } from './isolation.js';
import { type PackedBatch, PackedHere } from './packed-batch.js';
import type { Unsendables } from './unsendable.js';

/**
 * Longest time without progress while a batch is read and encoded, in ms. A batch usually takes
 * seconds, but the thread also reads large files for others, and may wait for a remote disk.
 */
const LONGEST_PACKING_MS = 30 * 60_000;
/** Below this number of words, an indexed text cannot be told from a dropped one. */
const MIN_COMPARABLE_WORDS = 10;

interface ReaderParts {
  readonly backlog: Backlog;
  readonly extraction: Extraction;
  readonly unsendable: Unsendables;
}

/**
 * Has the files of a batch read, and marks the items that are to be sent as in flight.
 *
 * One batch at a time is read and pushed on this machine. More are given to other machines, if
 * there are any, and read here if none of these can.
 */
export class BatchReader {
  readonly #deps: UplinkDeps;
  readonly #parts: ReaderParts;
  /** The number of batches that this machine reads or pushes. */
  #here = 0;
  readonly health = new HealthCheck('packing', 'a batch is not read from the disk', {
    limitMs: LONGEST_PACKING_MS,
  });

  constructor(deps: UplinkDeps, parts: ReaderParts) {
    this.#deps = deps;
    this.#parts = parts;
  }

  /**
   * Reads and encodes the files of a batch. The state is not changed. The caller releases the
   * result.
   *
   * @param isShareable whether another machine may read and push the batch
   */
  async read(
    batch: readonly PendingItem[],
    dialect: Dialect,
    isShareable: boolean,
  ): Promise<PackedBatch> {
    const { embeddedPeer, folders, peer, readers, sharing } = this.#deps;
    const rules = dialect.content;
    const files = batch.map((item) => ({
      item,
      file: folders.pathOf(item) ?? '',
      linksWithin: folders.linksWithin(item.folder),
      version: item.version,
      extract: this.#parts.extraction.extractOf(item, rules),
    }));
    if (isShareable && this.#here > 0) {
      const shared = await sharing?.read({ dialect: dialect.name, files });
      if (shared !== undefined) return shared;
    }
    this.#here += 1;
    const release = () => {
      this.#here -= 1;
    };
    try {
      const pack = (order: PackOrder) => readers.pack(order);
      const onProgress = () => this.health.progress();
      const isEmbedded = embeddedPeer !== undefined;
      const order = { rules, files };
      return await PackedHere.read(order, pack, peer, isEmbedded, onProgress, release);
    } catch (error) {
      release();
      throw error;
    }
  }

  /**
   * Marks the items to be sent as in flight, and the items that they replace in the peer as
   * replaced. Both are in memory only: the caller commits them before it sends. Handles files that
   * changed or cannot be read. Leaves an item alone if the configuration gives it another URL now,
   * or none, or if its folder is missing.
   *
   * @param packed the batch that was read
   */
  prepare(
    batch: readonly PendingItem[],
    packed: PackedBatch,
    rules: ContentRules,
  ): PreparedDocument[] {
    const { backlog, extraction, unsendable } = this.#parts;
    const documents: PreparedDocument[] = [];
    for (const [n, taken] of batch.entries()) {
      const item = stillPending(backlog.current(taken), taken);
      const content = packed.files[n];
      // At its old URL it could replace a document of another folder. A scan gives the item its new
      // URL, or marks it as gone.
      if (content === undefined || item === undefined) continue;
      if (this.#deps.folders.pathOf(item) === undefined) continue;
      if (content.kind === 'content') documents.push(this.#markInFlight(item, n, content, rules));
      else if (content.kind === 'notExtracted') extraction.discard(item);
      else unsendable.reject(item, content, rules);
    }
    return documents;
  }

  #markInFlight(
    item: PendingItem,
    n: number,
    content: PreparedDocument['content'],
    rules: ContentRules,
  ): PreparedDocument {
    const { clock, state } = this.#deps;
    const { url, collection, version } = item;
    const { size, digest, words = 0, extracted, lacks } = content;
    const now = clock.now();
    const shownWords = rules.showsWords && words >= MIN_COMPARABLE_WORDS ? { words } : {};
    const sent = {
      sha256: version.sha256,
      size,
      digest,
      url,
      collection,
      at: now,
      ...shownWords,
      ...(extracted && { extracted }),
      ...(lacks && { lacks }),
    };
    const document = { item, n, content, sent };
    state.put(leaving(item, dated(document, now)));
    for (const other of this.#conflictsOf(item)) state.put(replaced(other, url, now));
    return document;
  }

  /**
   * Yields other files whose document was pushed to the URL of this item: files of folders that had
   * another name, URL or path in an earlier configuration. The peer has what was pushed last, so
   * the pushes of those files are void.
   */
  *#conflictsOf({ folder, path, url }: PendingItem): Iterable<Entry> {
    for (const entry of this.#deps.state.entries.mayBeAt(url, { folder, path }))
      if (claims(entry, url)) yield entry;
  }
}

interface DeliveryParts {
  readonly attribution: FailureAttribution;
  readonly backlog: Backlog;
  readonly blame: Blame;
  readonly isolation: Isolation;
  readonly unsendable: Unsendables;
}

/** A batch that was sent. */
interface AnsweredBatch {
  readonly documents: readonly PreparedDocument[];
  /** In the order of the documents. */
  readonly results: readonly ItemOutcome[];
  /** The number of successful pushes when this one began. */
  readonly successesBefore: number;
}

/**
 * Sends a batch that was read, and stores the result of each item in the state: on disk, before
 * anything follows from it.
 */
export class BatchDelivery {
  readonly #deps: UplinkDeps;
  readonly #parts: DeliveryParts;

  constructor(deps: UplinkDeps, parts: DeliveryParts) {
    this.#deps = deps;
    this.#parts = parts;
  }

  /**
   * Commits that the items are in flight, and sends them.
   *
   * @param packed the batch to which the documents belong
   * @param dialect the dialect for which the batch was prepared
   * @param synchronous whether the peer is to answer only when it has indexed the batch
   */
  async send(
    documents: readonly PreparedDocument[],
    packed: PackedBatch,
    dialect: Dialect,
    synchronous: boolean,
  ): Promise<AnsweredBatch> {
    await this.#deps.state.commit();
    const successesBefore = this.#parts.blame.successes;
    const results = await sendBatch(this.#deps, documents, packed, dialect, synchronous);
    return { documents, results, successesBefore };
  }

  /**
   * Commits the results of a batch.
   *
   * @returns the accepted items, which are to be looked up
   */
  async record({
    documents,
    results,
    successesBefore,
  }: AnsweredBatch): Promise<readonly AcceptedItem[]> {
    const { blame, isolation } = this.#parts;
    const taken = documents.flatMap((document, i) => this.#accept(document, results[i]) ?? []);
    if (taken.length > 0) blame.succeeded(taken);
    for (const [i, { item }] of documents.entries()) {
      const result = results[i];
      if (result !== undefined && result.kind !== 'accepted')
        await this.#fail(item, result, successesBefore);
    }
    isolation.pushed();
    await this.#deps.state.commit();
    return taken;
  }

  /**
   * Stores a positive result in the state.
   * @returns the accepted item, if it is to be looked up
   */
  #accept(document: PreparedDocument, result: ItemOutcome | undefined): AcceptedItem | undefined {
    if (result?.kind !== 'accepted') return undefined;
    const { clock, state } = this.#deps;
    const sent = dated(document, result.at, result.peerAt);
    const now = this.#parts.backlog.current(document.item);
    const current = stillPending(now, document.item);
    const after = current && accepted(current, sent, clock.now());
    if (after !== undefined) state.put(after);
    // The file changed or was removed during the push: its present record notes what the peer
    // accepted.
    else if (now !== undefined && now.status !== 'accepted' && now.status !== 'confirmed')
      state.put(olderVersionAccepted(now, sent, clock.now()));
    return after;
  }

  /**
   * Stores a negative result in the state.
   * @param before the number of successful pushes when this one began
   */
  async #fail(item: PendingItem, result: ItemOutcome, before: number): Promise<void> {
    const { clock, state } = this.#deps;
    const { attribution, backlog, blame, unsendable } = this.#parts;
    const current = stillPending(backlog.current(item), item);
    if (result.kind === 'failed') await attribution.failedAlone(item, result.failure, before);
    else if (result.kind === 'unanswered') blame.unanswered(item);
    else if (current === undefined) return;
    else if (result.kind === 'refused') attribution.refused(current, result.words);
    else if (result.kind === 'stale') unsendable.postpone(current);
    else if (result.kind === 'returned') state.put(returned(current, clock.now(), result.failure));
  }
}
