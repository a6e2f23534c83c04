import { HealthCheck } from '../lib/health.js';
import type { ContentRules, Dialect } from '../peer/dialects/dialect.js';
import type { ItemKey } from '../state/entries.js';
import type { Entry, PendingItem } from '../state/entry.js';
import { Backlog, isDocument, type PushLane } from './backlog.js';
import { BatchDelivery, BatchReader, Prefetch } from './batch.js';
import type { PreparedDocument } from './batch-sender.js';
import { Blame } from './blame.js';
import { ConfirmLoop, type NextLookUp } from './confirm-loop.js';
import { Background, itemKeyText, type UplinkDeps } from './deps.js';
import type { ReadersFailure } from './document-processes.js';
import { FailureAttribution } from './failure-attribution.js';
import { Isolation } from './isolation.js';
import { Reaches } from './reach.js';
import { Removals } from './removals.js';

/**
 * Delay before an item that waits for a scan of its folder is tried again, in ms. The scan usually
 * changes the item before that.
 */
const AWAITS_SCAN_DELAY_MS = 10_000;
/**
 * Interval between checks for lost items that are not due yet, or whose folder is missing, in ms.
 */
const POLL_MS = 5_000;
const LANES: readonly PushLane[] = ['text', 'document'];

export interface UplinkStatus {
  /** Items that are being read, wait in a batch, or are in a push request. */
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
 * One producer takes items of one lane from the backlog when the queue has room. A batch is
 * complete when it is full (by number or bytes) or has waited for `push.linger`. The lanes, text
 * and documents, take turns; text is pushed while documents are read. A batch is read and its items
 * are marked as in flight (BatchReader). When that is on disk, it is sent, and the results are
 * stored in the state and on disk (BatchDelivery). Accepted and unanswered items go to the confirm
 * loop. Items that are still pending go back to the backlog.
 *
 * Lost items (see Isolation) are pushed in rounds, while no other push is under way. A lost
 * document is read before its round (Prefetch). A batch of documents that is being read when a
 * round begins is sent after the round.
 */
export class Uplink {
  readonly #deps: UplinkDeps;
  readonly #backlog: Backlog;
  readonly #confirm: ConfirmLoop;
  readonly #removals: Removals;
  readonly #blame: Blame;
  readonly #isolation: Isolation;
  readonly #reaches: Reaches;
  readonly #attribution: FailureAttribution;
  readonly #reader: BatchReader;
  readonly #prefetch: Prefetch;
  readonly #delivery: BatchDelivery;
  readonly #work: Background;
  readonly #pushHealth = new HealthCheck('push', 'items that are due are not pushed', {
    busy: () => this.#mayPush(),
  });
  readonly #stopping = new AbortController();
  #loops: Promise<unknown> = Promise.resolve();
  #unsubscribe: () => void = () => {};
  #isRunning = false;
  /** The number of document batches that are being read or wait for the end of a round. */
  #documentBatches = 0;
  /** The lane of the last batch that was taken from the backlog. */
  #lastLane: PushLane = 'document';
  /** The number of batches that are being read or sent. */
  #unanswered = 0;
  /** The current isolation round; resolves at its end. No other push begins before that. */
  #round: Promise<void> | undefined;

  constructor(deps: UplinkDeps) {
    this.#deps = deps;
    this.#backlog = new Backlog(deps, () => this.#work.notify());
    this.#isolation = new Isolation(deps, (item) => !isDocument(item) || this.#prefetch.has(item));
    this.#blame = new Blame(deps);
    this.#reaches = new Reaches(deps);
    this.#attribution = new FailureAttribution(deps, {
      blame: this.#blame,
      isolation: this.#isolation,
      reaches: this.#reaches,
    });
    this.#reader = new BatchReader(deps, this.#backlog, this.#attribution);
    this.#prefetch = new Prefetch(deps, this.#reader);
    this.#delivery = new BatchDelivery(deps, {
      attribution: this.#attribution,
      backlog: this.#backlog,
      blame: this.#blame,
      isolation: this.#isolation,
      reader: this.#reader,
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
    const others = [this.#confirm.run(signal), this.#removals.run(signal)];
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
    return this.#isRunning
      ? [this.#pushHealth, this.#reader.health, this.#confirm.health, ...this.#removals.health]
      : [];
  }

  status(): UplinkStatus {
    return {
      inFlight: this.#backlog.inFlight,
      confirming: this.#deps.state.counts().accepted,
      timeToVisibleMs: this.#confirm.timeToVisibleMs,
      removalsFailing: this.#removals.failing,
      readersFailure: this.#deps.readers.failure,
    };
  }

  /** Must be called after a change of the state of a folder's root. */
  foldersChanged(): void {
    this.#backlog.foldersChanged();
    this.#removals.foldersChanged();
    this.#work.notify();
  }

  /**
   * Whether nothing is left to do until the state changes or a missing folder comes back; false
   * until the first pass over the state has ended.
   */
  get isIdle(): boolean {
    const isInRound = this.#round !== undefined;
    const isPushing =
      this.#work.size > 0 || isInRound || !this.#backlog.isIdle || !this.#isolation.isIdle;
    return this.#isRunning && !isPushing && this.#confirm.isIdle && this.#removals.isIdle;
  }

  /** Whether the item is in a batch that is being read or sent. */
  isInFlight(place: ItemKey): boolean {
    return this.#backlog.isInFlight(place);
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
    if (entry?.status === 'pending') {
      if (entry.inFlight !== undefined) this.#confirm.resume(entry, entry.inFlight);
      else if (!this.#isolation.addIfLost(entry)) this.#backlog.add(entry);
      this.#work.notify();
      return;
    }
    this.#blame.clear(place);
    this.#backlog.delete(itemKeyText(place));
    this.#isolation.forget(place);
    if (entry?.status === 'accepted') this.#confirm.resume(entry, entry.sent);
  }

  async #step(signal: AbortSignal): Promise<void> {
    const { queue } = this.#deps;
    if (this.#backlog.wantsMore) await this.#scheduleMore();
    this.#prefetchNext();
    const lane = this.#nextLane();
    if (this.#isolation.isDue(this.#hasDueItems)) {
      this.#round = this.#pushIsolated(signal).finally(() => {
        this.#round = undefined;
      });
      await this.#round;
    } else if (lane !== undefined) {
      await queue.ready('push', signal);
      const batch = await this.#gather(lane, signal);
      this.#lastLane = lane;
      if (batch.length > 0) this.#work.start(this.#deliver(batch, lane));
    } else if (!this.#backlog.wantsMore) {
      const waitMs = this.#backlog.nextPassInMs;
      await this.#work.wait(this.#isolation.isIdle ? waitMs : Math.min(waitMs, POLL_MS));
    }
  }

  async #scheduleMore(): Promise<void> {
    for (const entry of await this.#backlog.more())
      if (!this.#backlog.has(entry)) this.#schedule(entry, entry);
  }

  get #hasDueItems(): boolean {
    return LANES.some((lane) => this.#backlog.hasDue(lane));
  }

  /** Returns the lane that goes next, if one has due items and room for a batch. */
  #nextLane(): PushLane | undefined {
    const open = LANES.filter((lane) => this.#backlog.hasDue(lane) && !this.#isFull(lane));
    return open.find((lane) => lane !== this.#lastLane) ?? open[0];
  }

  /**
   * Whether the lane may start no batch. One batch more than the queue sends at a time is prepared,
   * so that sending never waits for the disk. Batches of documents that are being read do not
   * count, but only one of those is read at a time.
   */
  #isFull(lane: PushLane): boolean {
    if (lane === 'document' && this.#documentsReading > 0) return true;
    return this.#unanswered - this.#documentBatches > this.#deps.settings.push.concurrency;
  }

  /** The number of tasks that read documents. */
  get #documentsReading(): number {
    return this.#documentBatches + (this.#prefetch.isReading ? 1 : 0);
  }

  /** Whether items are due and nothing keeps them from being pushed. */
  #mayPush(): boolean {
    if (this.#round !== undefined || this.#nextLane() === undefined) return false;
    return !this.#isolation.isDue(true) && this.#deps.queue.hasRoom('push');
  }

  /** Takes due items until the batch is full or `push.linger` is over. */
  async #gather(lane: PushLane, signal: AbortSignal): Promise<PendingItem[]> {
    const { clock, settings } = this.#deps;
    const { maxItems, maxBytes, linger } = settings.push;
    const batch: PendingItem[] = [];
    const end = clock.now() + linger;
    let bytes = 0;
    let isFull = false;
    const accepts = (item: PendingItem) => {
      const isBlamed = this.#blame.isBlamed(item);
      isFull ||= batch.length > 0 && (isBlamed || bytes + item.version.size > maxBytes);
      if (isFull) return false;
      batch.push(item);
      bytes += item.version.size;
      isFull = isBlamed || batch.length >= maxItems || bytes >= maxBytes;
      return true;
    };
    for (;;) {
      this.#backlog.take(accepts, lane);
      const left = end - clock.now();
      if (isFull || left <= 0 || signal.aborted) return batch;
      if (this.#backlog.wantsMore) await this.#scheduleMore();
      else await this.#work.wait(Math.min(left, this.#backlog.nextPassInMs));
    }
  }

  /** Begins to read the next lost document, unless one is being read or waits for its round. */
  #prefetchNext(): void {
    const rules = this.#deps.dialect.current?.content;
    if (rules === undefined) return;
    const item = this.#prefetch.next(this.#isolation.pushable());
    if (item === undefined || !this.#backlog.claim(item)) return;
    this.#isolation.forget(item);
    this.#work.start(this.#prefetchLost(item, rules));
  }

  async #prefetchLost(item: PendingItem, rules: ContentRules): Promise<void> {
    await this.#prefetch.read(item, rules);
    await this.#deps.state.commit();
    this.#checkIn(item);
  }

  /** Pushes lost items while no other push is under way, so that each has its own index update. */
  async #pushIsolated(signal: AbortSignal): Promise<void> {
    const { clock, queue } = this.#deps;
    while (this.#work.size > this.#documentsReading) await this.#work.wait(POLL_MS);
    await this.#isolation.round(async (item) => {
      this.#backlog.claim(item);
      await queue.ready('push', signal);
      // A peer answers a synchronous push with an error if it drops documents of this reach. The
      // lane is text also for a document: it was read before, and the lane of documents would wait
      // for the end of this round.
      await this.#deliver([item], 'text', this.#reaches.modeOf(item.url) === 'open');
      return this.#confirm.commitIndex(clock.now());
    }, signal);
  }

  /**
   * Reads and sends a batch, and applies the results.
   * @param synchronous whether the peer is to answer only when it has indexed the batch
   */
  async #deliver(
    batch: readonly PendingItem[],
    lane: PushLane,
    synchronous = this.#deps.settings.push.synchronous,
  ): Promise<void> {
    const active = this.#deps.dialect.current;
    if (active === undefined) throw new Error('a batch was gathered before the dialect was known');
    this.#pushHealth.progress();
    const answered = await this.#send(batch, lane, active, synchronous);
    this.#confirm.watch(await this.#delivery.record(answered));
    for (const item of batch) this.#checkIn(item);
  }

  /** Reads and sends a batch. @returns the results, which are not stored yet */
  async #send(
    batch: readonly PendingItem[],
    lane: PushLane,
    dialect: Dialect,
    synchronous: boolean,
  ) {
    this.#unanswered += 1;
    try {
      const documents = await this.#reader.health.during(() =>
        this.#readBatch(batch, lane, dialect.content),
      );
      return await this.#delivery.send(documents, dialect, synchronous);
    } finally {
      this.#unanswered -= 1;
      // Another batch may be prepared while the results of this one are written to disk.
      this.#work.notify();
    }
  }

  /**
   * Prepares a batch of a lane. A batch of documents is counted while it is read, and waits for the
   * end of a round.
   */
  async #readBatch(
    batch: readonly PendingItem[],
    lane: PushLane,
    rules: ContentRules,
  ): Promise<PreparedDocument[]> {
    if (lane === 'text') return await this.#prepare(batch, rules);
    this.#documentBatches += 1;
    try {
      const documents = await this.#prepare(batch, rules);
      while (this.#round !== undefined) await this.#round.catch(() => {});
      return documents;
    } finally {
      this.#documentBatches -= 1;
      this.#work.notify();
    }
  }

  async #prepare(batch: readonly PendingItem[], rules: ContentRules): Promise<PreparedDocument[]> {
    const prefetched = this.#prefetch.take(batch[0]);
    const contents = prefetched ? [prefetched] : await this.#reader.read(batch, rules);
    return this.#reader.prepare(batch, contents, rules);
  }

  #checkIn(taken: PendingItem): void {
    const { folders } = this.#deps;
    const entry = this.#backlog.checkIn(taken);
    if (entry !== taken) this.#schedule(taken, entry);
    // The record did not change. An item without a path waits for a scan of its folder.
    else if (!this.#isolation.addIfLost(entry))
      this.#backlog.add(entry, folders.pathOf(entry) === undefined ? AWAITS_SCAN_DELAY_MS : 0);
  }
}
