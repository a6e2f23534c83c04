import { fileStat } from '../lib/file.js';
import { HealthCheck } from '../lib/health.js';
import type { ContentRules } from '../peer/dialects/dialect.js';
import { claims, type Entry, type Failure, itemName, type PendingItem } from '../state/entry.js';
import { wasSkippedFor } from '../state/history.js';
import { leaving, replaced, returned, skipped } from '../state/transitions.js';
import type { Backlog } from './backlog.js';
import { dated, type PreparedDocument } from './batch-sender.js';
import { stillPending, type UplinkDeps } from './deps.js';
import { type Packed, packAll, withoutWords } from './documents.js';
import type { FailureAttribution } from './failure-attribution.js';

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
    for (const entry of this.#deps.state.entries.mayBeAt(url))
      if ((entry.folder !== folder || entry.path !== path) && claims(entry, url)) yield entry;
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
