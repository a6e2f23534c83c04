import type { StoredExtract } from '../content/extracts.js';
import { isThereNow } from '../content/helpers/programs.js';
import { AWAITS_PROGRAM } from '../content/helpers/readable.js';
import type { PageProgress } from '../content/readers/document-reader.js';
import { HealthCheck } from '../lib/health.js';
import { Rate } from '../lib/rate.js';
import type { ContentRules } from '../peer/dialects/dialect.js';
import type { ItemKey } from '../state/entries.js';
import { itemName, type PendingItem } from '../state/entry.js';
import { AWAITS_SCAN_DELAY_MS, type Backlog } from './backlog.js';
import { Background, itemKeyText, LONGEST_WAIT_MS, stillPending, type UplinkDeps } from './deps.js';
import { type ReadersFailure, usualConcurrency } from './document-processes.js';
import { STALE } from './documents.js';
import { Extractor, type Found } from './extractor.js';
import type { Unsendables } from './unsendable.js';

/**
 * Longest time without a document that was read while some are being read, in ms. On a busy machine
 * one may take ten minutes, and the second try in a new process ten more.
 */
const LONGEST_READING_MS = 30 * 60_000;
/** The most documents that are extracted and not pushed yet. Each takes about 500 bytes. */
const MAX_READY = 10_000;
/**
 * The most that the pages of these documents take, as a share of `documents.cacheSize`. Otherwise
 * they could push each other out of the cache before they are pushed.
 */
const READY_SHARE = 0.5;
/** The period over which the speed of reading is measured, in ms. A document may take minutes. */
const SPEED_WINDOW_MS = 5 * 60_000;
const SECONDS_A_MINUTE = 60;

/** A document that is extracted and waits to be pushed. */
interface Ready {
  readonly place: ItemKey;
  readonly sha256: string;
  /** The rules and the choice of the folder by which it was read. */
  readonly rules: ContentRules;
  readonly asksForText: boolean;
  /** Its key in the cache; undefined if it is not there. */
  readonly key?: string | undefined;
  readonly extract: StoredExtract;
}

/** How far a document is read. The page is known if it has pages, after the first one. */
export interface ReadingProgress extends Partial<PageProgress> {
  /** In ms since the epoch. */
  readonly since: number;
}

/** A document that is being read. */
interface Reading {
  readonly item: PendingItem;
  progress: ReadingProgress;
}

/** The numbers of documents and pages that are read in a minute. */
export interface ReadingSpeed {
  readonly documents: number;
  readonly pages: number;
}

export interface ExtractionStatus {
  /** Documents that wait to be read, as far as they are in memory: up to 20,000. */
  readonly waiting: number;
  /** Documents that are being read. */
  readonly reading: number;
  /** The document that is read for longest: `FOLDER/path`, and how far it is read. */
  readonly longest?: ReadingProgress & { readonly file: string };
  /** The average of the last minutes; undefined while none is read, or too little is known. */
  readonly perMinute?: ReadingSpeed;
}

/**
 * Extracts documents before they are pushed, up to `documents.concurrency` at a time. Pushes wait
 * for none of them.
 *
 * A document is
 *
 * - *waiting*: in the lane `document` of the backlog, until a reading is free. While the same
 *   content is being read under another name, it takes no reading: the cache answers afterwards;
 * - *being read*: found in the cache, or else read by a process, which may take minutes. The item
 *   may change, be removed, or be replaced by another one meanwhile;
 * - *ready*: its text is in the cache, and the backlog has it in the lane `text`. Only memory knows
 *   that: after a restart the document is waiting again, and the cache answers at once.
 *
 * It is waiting again (`isReady` is false) when its version changes, the peer turns out to want
 * another form of it, or its page in the cache is damaged (`discard`). A document that cannot be
 * read ends here (Unsendables).
 */
export class Extraction {
  readonly #deps: UplinkDeps;
  readonly #backlog: Backlog;
  readonly #unsendable: Unsendables;
  readonly #extractor: Extractor;
  readonly #work: Background;
  readonly #reading = new Map<string, Reading>();
  readonly #ready = new Map<string, Ready>();
  /** The documents that wait for a reading of the same content, by its hash and by their keys. */
  readonly #copies = new Map<string, Map<string, ItemKey>>();
  readonly #usualConcurrency = usualConcurrency();
  /** Bytes of the pages that are ready. */
  #readyBytes = 0;
  readonly #documentRate = new Rate(SPEED_WINDOW_MS);
  readonly #pageRate = new Rate(SPEED_WINDOW_MS);
  readonly health = new HealthCheck('documents', 'documents that wait are not read', {
    busy: () => this.#work.size > 0 || this.#mayRead(),
    waits: () => this.failure !== undefined,
    limitMs: LONGEST_READING_MS,
  });

  /** @param onRead called when a document is ready, or has to wait again */
  constructor(
    deps: UplinkDeps,
    { backlog, unsendable }: { readonly backlog: Backlog; readonly unsendable: Unsendables },
    private readonly onRead: (item: PendingItem) => void,
  ) {
    this.#deps = deps;
    this.#backlog = backlog;
    this.#unsendable = unsendable;
    this.#extractor = new Extractor(deps);
    this.#work = new Background(deps.clock);
  }

  /** Reads documents until the stop, and then waits for those that are being read. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#work.loop(() => this.#step(signal), signal);
  }

  /** Must be called after documents were added to the backlog, and after a reload. */
  notify(): void {
    this.#work.notify();
  }

  get isIdle(): boolean {
    return this.#work.size === 0;
  }

  /** The reason why no document can be read at present. */
  get failure(): ReadersFailure | undefined {
    return this.#deps.readers.failure ?? this.#extractor.failure;
  }

  /** The numbers of documents and pages that were read since the start. */
  get totals(): Extractor['totals'] {
    return this.#extractor.totals;
  }

  status(): ExtractionStatus {
    const [longest] = this.#reading.values();
    const waiting = this.#backlog.sizeOf('document');
    const reading = this.#reading.size;
    const perMinute = waiting + reading > 0 ? this.#speed() : undefined;
    return {
      waiting,
      reading,
      ...(longest && { longest: { file: itemName(longest.item), ...longest.progress } }),
      ...(perMinute && { perMinute }),
    };
  }

  /** Returns how far an item is read; undefined if it is not being read. */
  progressOf(place: ItemKey): ReadingProgress | undefined {
    return this.#reading.get(itemKeyText(place))?.progress;
  }

  /** Whether this version is being read. */
  isReading(item: PendingItem): boolean {
    const reading = this.#reading.get(itemKeyText(item));
    return reading?.item.version.sha256 === item.version.sha256;
  }

  /** Whether nothing has to be read before the item is pushed. */
  isReady(item: PendingItem): boolean {
    const rules = this.#deps.dialect.current?.content;
    return !isDocument(item) || (rules !== undefined && this.extractOf(item, rules) !== undefined);
  }

  /**
   * Returns what was extracted from a document that is ready by these rules. Forgets it if it was
   * read in another version or by other rules.
   */
  extractOf(item: PendingItem, rules: ContentRules): StoredExtract | undefined {
    const ready = isDocument(item) ? this.#ready.get(itemKeyText(item)) : undefined;
    if (ready === undefined) return undefined;
    const isStill =
      ready.sha256 === item.version.sha256 &&
      ready.rules === rules &&
      ready.asksForText === this.#deps.folders.extracts(item.folder) &&
      !isThereNow(this.#deps.programs.current, ready.extract.lacks);
    if (isStill) return ready.extract;
    this.forget(item);
    return undefined;
  }

  /** Returns the number of bytes that are sent for an item. */
  sizeOf(item: PendingItem): number {
    const page = isDocument(item) && this.#ready.get(itemKeyText(item))?.extract.page;
    return page ? page.stat.size : item.version.size;
  }

  /** Forgets an item that is not pending any more, or whose push has left. */
  forget(place: ItemKey): void {
    const ready = this.#ready.size > 0 ? this.#ready.get(itemKeyText(place)) : undefined;
    if (ready === undefined) return;
    this.#ready.delete(itemKeyText(place));
    this.#readyBytes -= ready.extract.page?.stat.size ?? 0;
    this.notify();
  }

  /** Forgets a document whose page is damaged or gone. */
  discard(item: PendingItem): void {
    const key = this.#ready.get(itemKeyText(item))?.key;
    if (key !== undefined) this.#extractor.drop(key);
    this.forget(item);
  }

  /** Must be called after a change of the state of a folder's root. */
  foldersChanged(): void {
    // Documents of a missing folder would take the room of others.
    for (const { place } of [...this.#ready.values()])
      if (this.#deps.folders.stateOf(place.folder) !== 'there') this.forget(place);
    this.notify();
  }

  async #step(signal: AbortSignal): Promise<void> {
    const rules = this.#deps.dialect.current?.content;
    const item = this.#mayRead() ? this.#backlog.takeDocument() : undefined;
    if (item === undefined || rules === undefined) {
      await this.#work.wait(LONGEST_WAIT_MS);
      return;
    }
    const file = this.#deps.folders.pathOf(item);
    const copies = this.#copies.get(item.version.sha256);
    // An item without a path waits for a scan of its folder.
    if (file === undefined) this.#backlog.add(item, AWAITS_SCAN_DELAY_MS);
    else if (copies !== undefined) {
      copies.set(itemKeyText(item), { folder: item.folder, path: item.path });
      this.#backlog.add(item, LONGEST_READING_MS);
    } else this.#work.start(this.#readOnce(item, file, rules, signal));
  }

  /** Reads a document while its copies wait. */
  async #readOnce(
    item: PendingItem,
    file: string,
    rules: ContentRules,
    signal: AbortSignal,
  ): Promise<void> {
    const { sha256 } = item.version;
    const copies = new Map<string, ItemKey>();
    this.#copies.set(sha256, copies);
    try {
      await this.#read(item, file, rules, signal);
    } finally {
      this.#copies.delete(sha256);
      for (const { folder, path } of copies.values()) {
        const copy = this.#deps.state.get(folder, path);
        const isWaiting = copy?.status === 'pending' && !this.#backlog.isInFlight(copy);
        if (isWaiting && this.#backlog.has(copy)) this.#backlog.add(copy);
      }
      this.notify();
    }
  }

  /** Whether a document is due, and another one may be read now. */
  #mayRead(): boolean {
    const { dialect, readers, settings } = this.#deps;
    const { cacheSize, concurrency = this.#usualConcurrency } = settings.documents;
    const hasRoom =
      this.#ready.size + this.#work.size < MAX_READY && this.#readyBytes < READY_SHARE * cacheSize;
    const slots = concurrency + (readers.elsewhere ?? 0);
    const isFree = dialect.current !== undefined && this.#work.size < slots;
    return isFree && hasRoom && this.#backlog.hasDue('document');
  }

  /** Reads a document. Stores in the state why there is nothing to send, if so. */
  async #read(
    item: PendingItem,
    file: string,
    rules: ContentRules,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, folders, programs, state } = this.#deps;
    const { folder, path, version } = item;
    const asksForText = folders.extracts(folder);
    const since = clock.now();
    const reading: Reading = { item, progress: { since } };
    const name = itemKeyText(item);
    this.#reading.set(name, reading);
    const onProgress = ({ page, pages }: PageProgress) => {
      reading.progress = { since, page, pages };
      this.#noteSpeed();
      this.health.progress();
    };
    const programsBefore = programs.current;
    let found: Found;
    try {
      const linksWithin = folders.linksWithin(folder);
      const order = { file, item: { folder, path }, linksWithin, version, rules, asksForText };
      found = await this.#extractor.extract(order, signal, onProgress);
    } finally {
      // A newer version may be read meanwhile.
      if (this.#reading.get(name) === reading) this.#reading.delete(name);
      this.#noteSpeed();
      this.health.progress();
    }
    // The program may have been found meanwhile, and no scan would look at the file again.
    if (awaitsProgram(found) && programs.current !== programsBefore) found = STALE;
    const now = state.get(folder, path);
    if (now?.status !== 'pending' || now.version.sha256 !== version.sha256) return;
    if (found.kind === 'ready') {
      const { extract, key } = found;
      this.forget(item);
      this.#ready.set(name, {
        place: { folder, path },
        sha256: version.sha256,
        rules,
        asksForText,
        key,
        extract,
      });
      this.#readyBytes += extract.page?.stat.size ?? 0;
    } else if (now.inFlight === undefined && stillPending(now, item) && folders.pathOf(now)) {
      this.#unsendable.reject(now, found, rules);
      await state.commit();
    }
    this.onRead(item);
  }

  #speed(): ReadingSpeed | undefined {
    const now = this.#deps.clock.now();
    const { documents, pages } = this.totals;
    const documentsPerSecond = this.#documentRate.perSecond(now, documents);
    const pagesPerSecond = this.#pageRate.perSecond(now, pages);
    if (documentsPerSecond === undefined && pagesPerSecond === undefined) return undefined;
    // Rounded, so that a status changes only when something else does.
    const perMinute = (perSecond = 0) => Number((perSecond * SECONDS_A_MINUTE).toPrecision(2));
    return { documents: perMinute(documentsPerSecond), pages: perMinute(pagesPerSecond) };
  }

  #noteSpeed(): void {
    const now = this.#deps.clock.now();
    this.#documentRate.note(now, this.totals.documents);
    this.#pageRate.note(now, this.totals.pages);
  }
}

/** Whether a document was refused because no program is there that reads it. */
function awaitsProgram(found: Found): boolean {
  return found.kind === 'refused' && AWAITS_PROGRAM.has(found.failure.code);
}

/** Whether a text has to be extracted from the item, or its words counted. */
export function isDocument({ version }: PendingItem): boolean {
  return version.encoding === 'document';
}
