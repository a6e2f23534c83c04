import { HealthCheck } from '../lib/health.js';
import type { Dialect } from '../peer/dialects/dialect.js';
import type { ItemKey } from '../state/entries.js';
import { type Entry, itemName, type PendingItem } from '../state/entry.js';
import { lostLater, pushAgainUnseen, removing, toBeRequested } from '../state/transitions.js';
import { AWAITS_SCAN_DELAY_MS, Backlog } from './backlog.js';
import { BatchDelivery, BatchReader } from './batch.js';
import { Blame } from './blame.js';
import { ConfirmLoop, type NextLookUp } from './confirm-loop.js';
import { Background, itemKeyText, type UplinkDeps } from './deps.js';
import type { ReadersFailure } from './document-processes.js';
import {
  Extraction,
  type ExtractionStatus,
  isDocument,
  type ReadingProgress,
} from './extraction.js';
import { FailureAttribution } from './failure-attribution.js';
import { Isolation } from './isolation.js';
import type { PackedBatch } from './packed-batch.js';
import { Reaches } from './reach.js';
import { Removals } from './removals.js';
import { isSamePush, type UnansweredPush, UnansweredPushes } from './unanswered-pushes.js';
import { Unsendables } from './unsendable.js';

/**
 * Delay before a document is extracted again whose page was damaged when it was to be sent, in ms:
 * on a broken disk that could go on without end.
 */
const EXTRACTED_AGAIN_DELAY_MS = 1_000;
/**
 * Interval between checks for lost items that are not due yet, or whose folder is missing, in ms.
 */
const POLL_MS = 5_000;

export interface UplinkStatus {
  /** Items that wait in a batch, or are in a push request. */
  readonly inFlight: number;
  /** Accepted items that are not confirmed yet. */
  readonly confirming: number;
  /**
   * The learned time from a push until the peer first shows the document, in ms; undefined until
   * the peer has shown one.
   */
  readonly timeToVisibleMs: number | undefined;
  /** The number of removals that failed repeatedly, and the reason of one of them. */
  readonly removalsFailing?: Removals['failing'];
  /** The documents whose text is to be extracted before they are pushed. */
  readonly documents: ExtractionStatus;
  /** The reason why no document can be read at present. */
  readonly readersFailure?: ReadersFailure | undefined;
}

/**
 * Keeps the peer up to date with the state: pushes pending items in batches, has accepted items
 * looked up (ConfirmLoop) and has documents of removed files removed (Removals).
 *
 * Life: `start` waits until the dialect of the peer is known. Then it schedules the work that an
 * earlier run left: accepted items are looked up, items whose push left without a recorded answer
 * are looked up before another push. From then on it follows every change of the state. `stop` ends
 * the loops when the requests under way have ended; stopping the queue ends those.
 *
 * A document is extracted before it is pushed (Extraction), and no push waits for that.
 *
 * One producer takes items that can be pushed from the backlog when the queue has room. A batch is
 * complete when it is full (by number or bytes) or has waited for `push.linger`. It is read and its
 * items are marked as in flight (BatchReader). When that is on disk, it is sent, and the results
 * are stored in the state and on disk (BatchDelivery). Accepted and unanswered items go to the
 * confirm loop. Items that are still pending go back to the backlog.
 *
 * Lost items (see Isolation) are pushed in rounds, while no other push is under way. A lost
 * document also waits in the backlog until it is extracted.
 */
export class Uplink {
  readonly #deps: UplinkDeps;
  readonly #backlog: Backlog;
  readonly #confirm: ConfirmLoop;
  readonly #removals: Removals;
  readonly #blame: Blame;
  readonly #isolation: Isolation;
  readonly #reaches: Reaches;
  readonly #unansweredPushes: UnansweredPushes;
  readonly #attribution: FailureAttribution;
  readonly #reader: BatchReader;
  readonly #extraction: Extraction;
  readonly #delivery: BatchDelivery;
  readonly #work: Background;
  readonly #pushHealth = new HealthCheck('push', 'items that are due are not pushed', {
    busy: () => this.#mayPush(),
  });
  readonly #stopping = new AbortController();
  #loops: Promise<unknown> = Promise.resolve();
  #unsubscribe: () => void = () => {};
  #isRunning = false;
  /** The number of batches that are being read or sent. */
  #batchesUnderWay = 0;
  /** The current isolation round; resolves at its end. No other push begins before that. */
  #round: Promise<void> | undefined;

  constructor(deps: UplinkDeps) {
    this.#deps = deps;
    const isReady = (item: PendingItem) => this.#extraction.isReady(item);
    this.#backlog = new Backlog(deps, () => this.#notify(), isReady);
    this.#isolation = new Isolation(deps, isReady);
    this.#blame = new Blame(deps);
    this.#reaches = new Reaches(deps);
    this.#unansweredPushes = new UnansweredPushes(deps);
    this.#attribution = new FailureAttribution(deps, {
      blame: this.#blame,
      isolation: this.#isolation,
      reaches: this.#reaches,
      unansweredPushes: this.#unansweredPushes,
    });
    const unsendable = new Unsendables(deps, this.#attribution);
    const backlog = this.#backlog;
    this.#extraction = new Extraction(deps, { backlog, unsendable }, (item) => this.#wasRead(item));
    this.#reader = new BatchReader(deps, { backlog, extraction: this.#extraction, unsendable });
    this.#delivery = new BatchDelivery(deps, {
      attribution: this.#attribution,
      backlog,
      blame: this.#blame,
      isolation: this.#isolation,
      unsendable,
    });
    this.#confirm = new ConfirmLoop(deps, this.#attribution);
    this.#removals = new Removals(deps, this.#backlog);
    this.#work = new Background(deps.clock);
  }

  /**
   * Starts the loops. `onFailure` is called with an error that ended one of them: a bug or a
   * failing disk.
   */
  start(onFailure: (error: unknown) => void): void {
    this.#loops = this.#run(this.#stopping.signal, onFailure).catch(onFailure);
  }

  async #run(signal: AbortSignal, onFailure: (error: unknown) => void): Promise<void> {
    const { dialect, state } = this.#deps;
    // The dialect decides which content is sent, and when it is looked up.
    if (!(await dialect.known(signal))) return;
    // Items in flight are re-evaluated when they are checked in.
    this.#unsubscribe = state.onChange((after, _before, place) => {
      this.#removals.changed(place, after);
      if (!this.#backlog.changed(place, after)) this.#schedule(place, after);
    });
    this.#isRunning = true;
    const pushing = this.#work.loop(() => this.#step(signal), signal);
    const others = [
      this.#extraction.run(signal),
      this.#confirm.run(signal),
      this.#removals.run(signal),
      this.#unansweredPushes.run(signal),
    ];
    await Promise.all([pushing, ...others].map((loop) => loop.catch(onFailure)));
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#stopping.abort();
    await this.#loops;
    this.#unsubscribe();
  }

  /** The health checks of the loops; empty while they do not run. */
  get health(): readonly HealthCheck[] {
    if (!this.#isRunning) return [];
    const loops = [this.#reader, this.#extraction, this.#confirm].map(({ health }) => health);
    return [this.#pushHealth, ...loops, ...this.#removals.health];
  }

  status(): UplinkStatus {
    return {
      inFlight: this.#backlog.inFlight,
      confirming: this.#deps.state.counts().accepted,
      timeToVisibleMs: this.#confirm.timeToVisibleMs,
      removalsFailing: this.#removals.failing,
      documents: this.#extraction.status(),
      readersFailure: this.#extraction.failure,
    };
  }

  /** Must be called after a change of the state of a folder's root. */
  foldersChanged(): void {
    this.#backlog.foldersChanged();
    this.#removals.foldersChanged();
    this.#extraction.foldersChanged();
    this.#work.notify();
  }

  /** Must be called after a reload. */
  configured(): void {
    this.#extraction.notify();
  }

  /**
   * Whether nothing is left to do until the state changes or a missing folder comes back; false
   * until the first pass over the state has ended.
   */
  get isIdle(): boolean {
    const isInRound = this.#round !== undefined;
    const isPushing =
      this.#work.size > 0 || isInRound || !this.#backlog.isIdle || !this.#isolation.isIdle;
    const isBusy = isPushing || !this.#extraction.isIdle;
    return this.#isRunning && !isBusy && this.#confirm.isIdle && this.#removals.isIdle;
  }

  /**
   * Must be called when another machine has completed, or may have completed, a push that counted
   * as lost. If its version is not the present one, the document may have become old again: it is
   * pushed again, or removed again.
   */
  async repairLate(pushes: readonly UnansweredPush[]): Promise<void> {
    const { clock, log, state } = this.#deps;
    const why = 'an older version may have reached the peer after it';
    for (const push of pushes) {
      const { folder, path, version } = push;
      this.#unansweredPushes.add(push);
      const entry = state.get(folder, path);
      if (entry?.status === 'removed') state.put(removing(entry, clock.now(), why));
      // A request or a look-up that is under way may have come before the push.
      if (entry?.status === 'removing' && entry.requestedAt !== undefined)
        state.put(toBeRequested(entry));
      if (entry?.status !== 'accepted' && entry?.status !== 'confirmed') continue;
      if (isSamePush(entry.sent, version)) continue;
      if (entry.status === 'confirmed') state.put(lostLater(entry, why, clock.now()));
      else state.put(pushAgainUnseen(entry, why, clock.now()));
      log.info({ event: 'late-push', folder, path }, `pushed again ${itemName(entry)}: ${why}`);
    }
    await state.commit();
  }

  /** Whether the item is in a batch that is being read or sent. */
  isInFlight(place: ItemKey): boolean {
    return this.#backlog.isInFlight(place);
  }

  /**
   * Tells whether a pending item has to be read before it is pushed: undefined if not, `waits`, or
   * how far it is read.
   */
  extractionOf(item: PendingItem): 'waits' | ReadingProgress | undefined {
    if (this.#extraction.isReady(item)) return undefined;
    return this.#extraction.progressOf(item) ?? 'waits';
  }

  /** The numbers of documents and pages that were read since the start. */
  get readTotals(): Extraction['totals'] {
    return this.#extraction.totals;
  }

  /** Returns the time of the item's next look-up. */
  nextLookUp(place: ItemKey): NextLookUp | undefined {
    return this.#confirm.next(place);
  }

  /**
   * Routes an item that is not in flight by its present record: to the backlog, to isolation or to
   * the confirm loop; otherwise removes it from all of them.
   */
  #schedule(place: ItemKey, entry: Entry | undefined): void {
    if (entry !== undefined) this.#unansweredPushes.addFrom(entry);
    if (entry?.status === 'pending') {
      if (entry.inFlight === undefined) this.#enqueue(entry);
      else this.#confirm.resume(entry, entry.inFlight);
      this.#work.notify();
      return;
    }
    this.#blame.clear(place);
    this.#backlog.delete(itemKeyText(place));
    this.#isolation.forget(place);
    this.#extraction.forget(place);
    if (entry?.status === 'accepted') this.#confirm.resume(entry, entry.sent);
  }

  /**
   * Has an item pushed: in a batch, or in isolation if it is lost. A document is extracted first.
   * @param waitMs minimum delay
   */
  #enqueue(item: PendingItem, waitMs = 0): void {
    const isReady = this.#extraction.isReady(item);
    if (this.#isolation.addIfLost(item) && isReady) this.#backlog.delete(itemKeyText(item));
    else if (isReady) this.#backlog.add(item, waitMs);
    else if (!this.#extraction.isReading(item)) {
      this.#backlog.add(item, waitMs);
      this.#extraction.notify();
    }
  }

  /** Routes a document that was read, or has to be read again. */
  #wasRead({ folder, path }: PendingItem): void {
    const entry = this.#deps.state.get(folder, path);
    if (entry?.status === 'pending' && !this.#backlog.isInFlight(entry))
      this.#schedule(entry, entry);
  }

  #notify(): void {
    this.#work.notify();
    this.#extraction.notify();
  }

  async #step(signal: AbortSignal): Promise<void> {
    const { queue } = this.#deps;
    if (this.#backlog.wantsMore) await this.#scheduleMore();
    this.#extractLost();
    if (this.#isolation.isDue(this.#backlog.hasDue('text'))) {
      this.#round = this.#pushIsolated(signal).finally(() => {
        this.#round = undefined;
      });
      await this.#round;
    } else if (this.#hasBatch) {
      await queue.ready('push', signal);
      const batch = await this.#gather(signal);
      for (const part of this.#partsOf(batch)) this.#work.start(this.#deliver(part));
    } else if (!this.#backlog.wantsMore) {
      const waitMs = this.#backlog.nextPassInMs;
      await this.#work.wait(this.#isolation.isIdle ? waitMs : Math.min(waitMs, POLL_MS));
    }
  }

  async #scheduleMore(): Promise<void> {
    for (const entry of await this.#backlog.more())
      if (!this.#backlog.has(entry)) this.#schedule(entry, entry);
  }

  /**
   * Whether items are due, and a batch may be started: one batch more than the queue sends at a
   * time is prepared, so that sending never waits for the disk. Other machines prepare further
   * ones.
   */
  get #hasBatch(): boolean {
    const { settings, sharing } = this.#deps;
    const most = settings.push.concurrency + (sharing?.slots ?? 0);
    return this.#backlog.hasDue('text') && this.#batchesUnderWay <= most;
  }

  /** Splits off the documents of a batch, so that another machine can push the rest. */
  #partsOf(batch: readonly PendingItem[]): readonly (readonly PendingItem[])[] {
    const parts =
      (this.#deps.sharing?.slots ?? 0) === 0
        ? [batch]
        : [batch.filter((item) => !isDocument(item)), batch.filter(isDocument)];
    return parts.filter(({ length }) => length > 0);
  }

  /** Whether items are due and nothing keeps them from being pushed. */
  #mayPush(): boolean {
    if (this.#round !== undefined || !this.#hasBatch) return false;
    return !this.#isolation.isDue(true) && this.#deps.queue.hasRoom('push');
  }

  /** Takes due items until the batch is full or `push.linger` is over. */
  async #gather(signal: AbortSignal): Promise<PendingItem[]> {
    const { clock, settings } = this.#deps;
    const { maxItems, maxBytes, linger } = settings.push;
    const batch: PendingItem[] = [];
    const end = clock.now() + linger;
    let bytes = 0;
    let isFull = false;
    const accepts = (item: PendingItem) => {
      const isBlamed = this.#blame.isBlamed(item);
      const size = this.#extraction.sizeOf(item);
      isFull ||= batch.length > 0 && (isBlamed || bytes + size > maxBytes);
      if (isFull) return false;
      batch.push(item);
      bytes += size;
      isFull = isBlamed || batch.length >= maxItems || bytes >= maxBytes;
      return true;
    };
    for (;;) {
      this.#backlog.take(accepts);
      const left = end - clock.now();
      if (isFull || left <= 0 || signal.aborted) return batch;
      if (this.#backlog.wantsMore) await this.#scheduleMore();
      else await this.#work.wait(Math.min(left, this.#backlog.nextPassInMs));
    }
  }

  /** Has lost documents extracted again whose text is not ready any more. */
  #extractLost(): void {
    for (const item of this.#isolation.pushable())
      if (!this.#extraction.isReady(item) && !this.#backlog.has(item)) this.#enqueue(item);
  }

  /** Pushes lost items while no other push is under way, so that each has its own index update. */
  async #pushIsolated(signal: AbortSignal): Promise<void> {
    const { clock, queue } = this.#deps;
    while (this.#work.size > 0) await this.#work.wait(POLL_MS);
    await this.#isolation.round(async (item) => {
      this.#backlog.claim(item);
      await queue.ready('push', signal);
      // A peer answers a synchronous push with an error if it drops documents of this reach.
      await this.#deliver([item], this.#reaches.modeOf(item.url) === 'open');
      return this.#confirm.commitIndex(clock.now());
    }, signal);
  }

  /**
   * Reads and sends a batch, and applies the results.
   * @param synchronous whether the peer is to answer only when it has indexed the batch
   */
  async #deliver(
    batch: readonly PendingItem[],
    synchronous = this.#deps.settings.push.synchronous,
  ): Promise<void> {
    const active = this.#deps.dialect.current;
    if (active === undefined) throw new Error('a batch was gathered before the dialect was known');
    this.#pushHealth.progress();
    const answered = await this.#send(batch, active, synchronous);
    this.#confirm.watch(await this.#delivery.record(answered));
    for (const item of batch) this.#checkIn(item);
  }

  /** Reads and sends a batch. @returns the results, which are not stored yet */
  async #send(batch: readonly PendingItem[], dialect: Dialect, synchronous: boolean) {
    this.#batchesUnderWay += 1;
    let packed: PackedBatch | undefined;
    try {
      // An isolated push is the only one at its time, and a blamed item is judged by this machine.
      const isShareable =
        !synchronous &&
        this.#round === undefined &&
        !batch.some((item) => isDocument(item) || this.#blame.isBlamed(item));
      const { health } = this.#reader;
      packed = await health.during(() => this.#reader.read(batch, dialect, isShareable));
      const documents = this.#reader.prepare(batch, packed, dialect.content);
      return await this.#delivery.send(documents, packed, dialect, synchronous);
    } finally {
      packed?.release();
      this.#batchesUnderWay -= 1;
      // Another batch may be prepared while the results of this one are written to disk.
      this.#work.notify();
    }
  }

  #checkIn(taken: PendingItem): void {
    const entry = this.#backlog.checkIn(taken);
    if (entry !== taken) this.#schedule(taken, entry);
    // The record did not change. An item without a path waits for a scan of its folder.
    else if (this.#deps.folders.pathOf(entry) === undefined)
      this.#enqueue(entry, AWAITS_SCAN_DELAY_MS);
    else this.#enqueue(entry, this.#extraction.isReady(entry) ? 0 : EXTRACTED_AGAIN_DELAY_MS);
  }
}
