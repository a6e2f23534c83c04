import { fileStat } from '../lib/file.js';
import { HealthCheck } from '../lib/health.js';
import type { ContentRules, Dialect } from '../peer/dialects/dialect.js';
import {
  type AcceptedItem,
  claims,
  type Entry,
  type Failure,
  itemName,
  type PendingItem,
} from '../state/entry.js';
import { wasSkippedFor } from '../state/history.js';
import {
  accepted,
  leaving,
  olderVersionAccepted,
  replaced,
  returned,
  skipped,
} from '../state/transitions.js';
import { type Backlog, isDocument } from './backlog.js';
import { dated, type ItemOutcome, type PreparedDocument, sendBatch } from './batch-sender.js';
import type { Blame } from './blame.js';
import { itemKeyText, stillPending, type UplinkDeps } from './deps.js';
import { type Packed, packAll, withoutWords } from './documents.js';
import type { FailureAttribution } from './failure-attribution.js';
import type { Isolation } from './isolation.js';

/**
 * Longest time without progress while a batch is read and encoded, in ms. A batch usually takes
 * seconds. On a busy machine one document may take ten minutes, and the second try in a new process
 * ten more; the thread also reads large files for others.
 */
const LONGEST_PACKING_MS = 30 * 60_000;
/** Delay before a file that changed while it was read is read again, in ms. */
const CHANGED_FILE_DELAY_MS = 2_000;
/** Below this number of words, an indexed text cannot be told from a dropped one. */
const MIN_COMPARABLE_WORDS = 10;

/** Reads the files of a batch, and marks the items that are to be sent as in flight. */
export class BatchReader {
  readonly #deps: UplinkDeps;
  readonly #backlog: Backlog;
  readonly #attribution: FailureAttribution;
  readonly health = new HealthCheck('packing', 'a batch is not read from the disk', {
    limitMs: LONGEST_PACKING_MS,
    waits: () => this.#deps.readers.failure !== undefined,
  });

  constructor(deps: UplinkDeps, backlog: Backlog, attribution: FailureAttribution) {
    this.#deps = deps;
    this.#backlog = backlog;
    this.#attribution = attribution;
  }

  /** Reads and encodes the files of a batch. The state is not changed. */
  async read(
    batch: readonly PendingItem[],
    rules: ContentRules,
  ): Promise<readonly (Packed | undefined)[]> {
    const { folders, settings } = this.#deps;
    const files = batch.map((item) => ({
      file: folders.pathOf(item) ?? '',
      linksWithin: folders.linksWithin(item.folder),
      version: item.version,
      isExtracted: folders.extracts(item.folder),
    }));
    const onProgress = () => this.health.progress();
    const { maxBytes } = settings.push;
    return await packAll(this.#deps, { rules, files, maxBytes }, onProgress);
  }

  /**
   * Marks the items to be sent as in flight, and the items that they replace in the peer as
   * replaced. Both are in memory only: the caller commits them before it sends. Handles files that
   * changed or cannot be read. Leaves an item alone if the configuration gives it another URL now,
   * or none, or if its folder is missing.
   *
   * @param contents the content that was read for each item of the batch
   */
  prepare(
    batch: readonly PendingItem[],
    contents: readonly (Packed | undefined)[],
    rules: ContentRules,
  ): PreparedDocument[] {
    const { folders } = this.#deps;
    const documents: PreparedDocument[] = [];
    for (const [i, taken] of batch.entries()) {
      const item = stillPending(this.#backlog.current(taken), taken);
      const content = contents[i];
      // At its old URL it could replace a document of another folder. A scan gives the item its new
      // URL, or marks it as gone.
      if (content === undefined || item === undefined || folders.pathOf(item) === undefined)
        continue;
      const isHere = folders.stateOf(item.folder) === 'there';
      // A version without a hash makes the next scan that can read the file take it up again.
      const stat = fileStat(item.version);
      if (content.kind === 'content') documents.push(this.#markInFlight(item, content, rules));
      else if (content.kind === 'wordless') this.#skip(item, withoutWords(content.reader));
      else if (content.kind === 'refused') this.#attribution.quarantine(item, content.failure);
      else if (content.kind === 'tooLarge')
        this.#attribution.quarantine(item, tooLarge(stat.size, rules.maxBytes));
      else if (content.kind === 'unreadable' && isHere)
        this.#attribution.quarantine(item, unreadable(content.code), stat);
      else if (content.kind === 'stale' && isHere) this.postpone(item);
    }
    return documents;
  }

  /** Postpones an item whose file changed while it was read, and has the file looked at again. */
  postpone(item: PendingItem): void {
    const { clock, folders, state } = this.#deps;
    state.put(returned(item, clock.now() + CHANGED_FILE_DELAY_MS));
    folders.recheck(item);
  }

  #skip(item: PendingItem, why: Failure): void {
    const { clock, log, state } = this.#deps;
    const { folder, path } = item;
    state.put(skipped(item, item, fileStat(item.version), why, clock.now()));
    if (wasSkippedFor(item, why)) return;
    const words = `skipped ${itemName(item)}: ${why.message} ${why.hint}`;
    log.info({ event: 'skipped', folder, path, code: why.code }, words);
  }

  #markInFlight(
    item: PendingItem,
    content: PreparedDocument['content'],
    rules: ContentRules,
  ): PreparedDocument {
    const { clock, state } = this.#deps;
    const { url, collection, version } = item;
    const { size, digest, words = 0, extracted } = content;
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
    };
    const document = { item, content, sent };
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

function tooLarge(bytes: number, most = 0): Failure {
  return {
    code: 'TOO_LARGE_FOR_PEER',
    message: `The file has ${bytes} bytes, and this kind of peer takes ${most} at most in one document.`,
    hint: 'Split it, or keep such files from being taken up with maxFileSize of the folder.',
  };
}

function unreadable(code: string): Failure {
  return {
    code: 'UNREADABLE',
    message: `The file could not be read: ${code}.`,
    hint: 'Let the user that peersync runs as read it; it is noticed at the next scan, or at once by `peersync retry PATH`.',
  };
}

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

interface DeliveryParts {
  readonly attribution: FailureAttribution;
  readonly backlog: Backlog;
  readonly blame: Blame;
  readonly isolation: Isolation;
  readonly reader: BatchReader;
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
   * @param dialect the dialect for which the batch was prepared
   * @param synchronous whether the peer is to answer only when it has indexed the batch
   */
  async send(
    documents: readonly PreparedDocument[],
    dialect: Dialect,
    synchronous: boolean,
  ): Promise<AnsweredBatch> {
    await this.#deps.state.commit();
    const successesBefore = this.#parts.blame.successes;
    const results = await sendBatch(this.#deps, documents, dialect, synchronous);
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
    const { attribution, backlog, blame, reader } = this.#parts;
    const current = stillPending(backlog.current(item), item);
    if (result.kind === 'failed') await attribution.failedAlone(item, result.failure, before);
    else if (result.kind === 'unanswered') blame.unanswered(item);
    else if (current === undefined) return;
    else if (result.kind === 'refused') attribution.refused(current, result.words);
    else if (result.kind === 'stale') reader.postpone(current);
    else if (result.kind === 'returned') state.put(returned(current, clock.now(), result.failure));
  }
}
