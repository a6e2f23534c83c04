import { fileStat } from '../lib/file.js';
import { HealthCheck } from '../lib/health.js';
import type { ContentRules } from '../peer/dialects/dialect.js';
import type { ItemKey } from '../state/entries.js';
import {
  type AcceptedItem,
  claims,
  type Entry,
  type Failure,
  itemName,
  type PendingItem,
  type Sent,
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
import { Backlog, laneOf, type PushLane } from './backlog.js';
import { type PreparedDocument, type PushResult, sendBatch } from './batch-sender.js';
import { Blame } from './blame.js';
import { ConfirmLoop, type NextLookUp } from './confirm-loop.js';
import { Background, itemKeyText, stillPending, type UplinkDeps } from './deps.js';
import type { ReadersFailure } from './document-processes.js';
import { type Packed, packAll, withoutWords } from './documents.js';
import { FailureAttribution } from './failure-attribution.js';
import { Isolation } from './isolation.js';
import { Reaches } from './reach.js';
import { Removals } from './removals.js';

/**
 * Longest time without progress while a batch is read and encoded, in ms. A batch usually takes
 * seconds. On a busy machine one document may take ten minutes, and the second try in a new process
 * ten more; the thread also reads large files for others.
 */
const LONGEST_PACKING_MS = 30 * 60_000;
/**
 * Delay before an item that waits for a scan of its folder is tried again, in ms. The scan usually
 * changes the item before that.
 */
const AWAITS_SCAN_DELAY_MS = 10_000;
/** Delay before a file that changed while it was read is read again, in ms. */
const CHANGED_FILE_DELAY_MS = 2_000;
/**
 * Interval between checks for lost items that are not due yet, or whose folder is missing, in ms.
 */
const POLL_MS = 5_000;
const LANES: readonly PushLane[] = ['text', 'document'];
/** Below this number of words, an indexed text cannot be told from a dropped one. */
const MIN_COMPARABLE_WORDS = 10;
/** Assumed maximum difference between our clock and the peer's, in ms. */
const MAX_CLOCK_SKEW_MS = 60_000;

/** A lost document that was read before its isolation round. */
interface Prefetched {
  readonly item: PendingItem;
  readonly content: PreparedDocument['content'];
  /** The content rules of the dialect at the time of reading. */
  readonly rules: ContentRules;
}

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
 * and documents, take turns; text is pushed while documents are read. A batch is read, its items
 * are marked as in flight on disk, it is sent, and the results are stored in the state and on disk.
 * Accepted and unanswered items go to the confirm loop. Items that are still pending go back to the
 * backlog.
 *
 * Lost items (see Isolation) are pushed in rounds, while no other push is under way. A lost
 * document is read before its round. A batch of documents that is being read when a round begins is
 * sent after the round.
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
  readonly #work: Background;
  readonly #pushHealth = new HealthCheck('push', 'items that are due are not pushed', {
    busy: () => this.#mayPush(),
  });
  readonly #packHealth = new HealthCheck('packing', 'a batch is not read from the disk', {
    limitMs: LONGEST_PACKING_MS,
    waits: () => this.#readersFailure !== undefined,
  });
  readonly #stopping = new AbortController();
  #loops: Promise<unknown> = Promise.resolve();
  #unsubscribe: () => void = () => {};
  #isRunning = false;
  /** The number of document batches that are being read or wait for the end of a round. */
  #documentBatchesReading = 0;
  /** The lane of the last batch that was taken from the backlog. */
  #lastLane: PushLane = 'document';
  /** The current isolation round; resolves at its end. No other push begins before that. */
  #round: Promise<void> | undefined;
  /** The lost document that was read for its round; only one, because its text is in memory. */
  #prefetched: Prefetched | undefined;
  #isPrefetching = false;

  constructor(deps: UplinkDeps) {
    this.#deps = deps;
    this.#backlog = new Backlog(deps, () => this.#work.notify());
    this.#isolation = new Isolation(deps, (item) => !isDocument(item) || this.#isPrefetched(item));
    this.#blame = new Blame(deps);
    this.#reaches = new Reaches(deps);
    this.#attribution = new FailureAttribution(deps, {
      blame: this.#blame,
      isolation: this.#isolation,
      reaches: this.#reaches,
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
      ? [this.#pushHealth, this.#packHealth, this.#confirm.health, ...this.#removals.health]
      : [];
  }

  status(): UplinkStatus {
    return {
      inFlight: this.#backlog.inFlight,
      confirming: this.#deps.state.counts().accepted,
      timeToVisibleMs: this.#confirm.timeToVisibleMs,
      removalsFailing: this.#removals.failing,
      readersFailure: this.#readersFailure,
    };
  }

  get #readersFailure(): ReadersFailure | undefined {
    return this.#deps.readersFailure?.();
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
    this.#prefetch();
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
    if (lane === 'document' && this.#documentBatchesReading > 0) return true;
    return this.#work.size - this.#documentBatchesReading > this.#deps.settings.push.concurrency;
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
      const isAlone = this.#blame.isBlamed(item);
      isFull ||= batch.length > 0 && (isAlone || bytes + item.version.size > maxBytes);
      if (isFull) return false;
      batch.push(item);
      bytes += item.version.size;
      isFull = isAlone || batch.length >= maxItems || bytes >= maxBytes;
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

  /** Reads the next lost document, unless one is being read or waits for its round. */
  #prefetch(): void {
    const { dialect, pathOf } = this.#deps;
    const rules = dialect.current?.content;
    if (this.#isPrefetching || rules === undefined) return;
    let next: PendingItem | undefined;
    for (const item of this.#isolation.pushable()) {
      if (this.#isPrefetched(item)) return;
      if (isDocument(item) && pathOf(item) !== undefined) next ??= item;
    }
    this.#prefetched = undefined;
    if (next === undefined || !this.#backlog.claim(next)) return;
    this.#isolation.forget(next);
    this.#isPrefetching = true;
    this.#work.start(this.#prefetchLost(next, rules));
  }

  async #prefetchLost(item: PendingItem, rules: ContentRules): Promise<void> {
    this.#documentBatchesReading += 1;
    try {
      const [content] = await this.#packHealth.during(() => this.#pack([item], rules));
      if (content?.kind === 'content') this.#prefetched = { item, content, rules };
      else this.#settle([item], [content], rules);
    } finally {
      this.#documentBatchesReading -= 1;
      this.#isPrefetching = false;
    }
    await this.#deps.state.commit();
    this.#checkIn(item);
  }

  /** Whether this version was read for its round, by the rules of the present dialect. */
  #isPrefetched(item: PendingItem): boolean {
    const { item: read, rules } = this.#prefetched ?? {};
    const isSame = read !== undefined && itemKeyText(read) === itemKeyText(item);
    return (
      isSame &&
      stillPending(item, read) !== undefined &&
      rules === this.#deps.dialect.current?.content
    );
  }

  /** Pushes lost items while no other push is under way, so that each has its own index update. */
  async #pushIsolated(signal: AbortSignal): Promise<void> {
    const { clock, queue } = this.#deps;
    while (this.#work.size > this.#documentBatchesReading) await this.#work.wait(POLL_MS);
    await this.#isolation.round(async (item) => {
      this.#backlog.claim(item);
      await queue.ready('push', signal);
      // A peer answers a synchronous push with an error if it drops documents of this reach.
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
    const { dialect, state } = this.#deps;
    const active = dialect.current;
    if (active === undefined) throw new Error('a batch was gathered before the dialect was known');
    this.#pushHealth.progress();
    const documents = await this.#packHealth.during(() =>
      this.#readBatch(batch, lane, active.content),
    );
    await state.commit();
    const before = this.#blame.successes;
    const results = await sendBatch(this.#deps, documents, active, synchronous);
    const taken = documents.flatMap((document, i) => this.#accept(document, results[i]) ?? []);
    if (taken.length > 0) this.#blame.succeeded(taken);
    for (const [i, { item }] of documents.entries()) {
      const result = results[i];
      if (result !== undefined && result.kind !== 'accepted')
        await this.#fail(item, result, before);
    }
    this.#isolation.pushed();
    await state.commit();
    this.#confirm.watch(taken);
    for (const item of batch) this.#checkIn(item);
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
    this.#documentBatchesReading += 1;
    try {
      const documents = await this.#prepare(batch, rules);
      while (this.#round !== undefined) await this.#round.catch(() => {});
      return documents;
    } finally {
      this.#documentBatchesReading -= 1;
      this.#work.notify();
    }
  }

  /** Returns the present record of an item in flight, if that version is still to be pushed. */
  #current(item: PendingItem): PendingItem | undefined {
    return stillPending(this.#backlog.current(item), item);
  }

  /**
   * Stores a positive result in the state.
   * @returns the accepted item, if it is to be looked up
   */
  #accept(document: PreparedDocument, result: PushResult | undefined): AcceptedItem | undefined {
    if (result?.kind !== 'accepted') return undefined;
    const { clock, state } = this.#deps;
    const sent = dated(document, result.at, result.peerAt);
    const now = this.#backlog.current(document.item);
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
  async #fail(item: PendingItem, result: PushResult, before: number): Promise<void> {
    const { clock, state } = this.#deps;
    const current = this.#current(item);
    if (result.kind === 'failed') await this.#attribution.failedAlone(item, result.failure, before);
    else if (result.kind === 'unanswered') this.#blame.unanswered(item);
    else if (current === undefined) return;
    else if (result.kind === 'refused') this.#attribution.refused(current, result.words);
    else if (result.kind === 'stale') this.#postpone(current);
    else if (result.kind === 'returned') state.put(returned(current, clock.now(), result.failure));
  }

  /** Postpones an item whose file changed while it was read, and has the file looked at again. */
  #postpone(item: PendingItem): void {
    const { clock, recheck: look, state } = this.#deps;
    state.put(returned(item, clock.now() + CHANGED_FILE_DELAY_MS));
    look(item);
  }

  #checkIn(taken: PendingItem): void {
    const { pathOf } = this.#deps;
    const entry = this.#backlog.checkIn(taken);
    if (entry !== taken) this.#schedule(taken, entry);
    // The record did not change. An item without a path waits for a scan of its folder.
    else if (!this.#isolation.addIfLost(entry))
      this.#backlog.add(entry, pathOf(entry) === undefined ? AWAITS_SCAN_DELAY_MS : 0);
  }

  async #prepare(batch: readonly PendingItem[], rules: ContentRules): Promise<PreparedDocument[]> {
    return this.#settle(batch, await this.#pack(batch, rules), rules);
  }

  /**
   * Reads a batch. Returns the prefetched content instead if the batch is the prefetched document.
   */
  async #pack(
    batch: readonly PendingItem[],
    rules: ContentRules,
  ): Promise<readonly (Packed | undefined)[]> {
    const { extracts, linksWithin, pathOf, settings } = this.#deps;
    const [first] = batch;
    if (this.#prefetched !== undefined && first !== undefined && this.#isPrefetched(first)) {
      const { content } = this.#prefetched;
      this.#prefetched = undefined;
      return [content];
    }
    const files = batch.map((item) => ({
      file: pathOf(item) ?? '',
      linksWithin: linksWithin(item.folder),
      version: item.version,
      isExtracted: extracts(item.folder),
    }));
    const onProgress = () => this.#packHealth.progress();
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
  #settle(
    batch: readonly PendingItem[],
    contents: readonly (Packed | undefined)[],
    rules: ContentRules,
  ): PreparedDocument[] {
    const { pathOf, folderState: standing } = this.#deps;
    const documents: PreparedDocument[] = [];
    for (const [i, taken] of batch.entries()) {
      const item = this.#current(taken);
      const content = contents[i];
      // At its old URL it could replace a document of another folder. A scan gives the item its new
      // URL, or marks it as gone.
      if (content === undefined || item === undefined || pathOf(item) === undefined) continue;
      const isHere = standing(item.folder) === 'there';
      // A version without a hash makes the next scan that can read the file take it up again.
      const stat = fileStat(item.version);
      if (content.kind === 'content') documents.push(this.#markInFlight(item, content, rules));
      else if (content.kind === 'wordless') this.#skip(item, withoutWords(content.reader));
      else if (content.kind === 'refused') this.#attribution.quarantine(item, content.failure);
      else if (content.kind === 'tooLarge')
        this.#attribution.quarantine(item, tooLarge(stat.size, rules.maxBytes));
      else if (content.kind === 'unreadable' && isHere)
        this.#attribution.quarantine(item, unreadable(content.code), stat);
      else if (content.kind === 'stale' && isHere) this.#postpone(item);
    }
    return documents;
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

function isDocument(item: PendingItem): boolean {
  return laneOf(item) === 'document';
}

/**
 * Completes the record of a push with its time by both clocks. Adds the last modification, in whole
 * seconds, if the peer will keep it: peers replace a date in the future by their own time, and a
 * date before 1970 by 1970 (measured with YaCy 1.92).
 */
function dated({ item, content, sent }: PreparedDocument, at: number, peerAt?: number): Sent {
  const lastModified = Math.floor(item.version.mtimeMs / 1000) * 1000;
  const isKept =
    content.type !== '' && lastModified > 0 && lastModified <= (peerAt ?? at - MAX_CLOCK_SKEW_MS);
  return {
    ...sent,
    at,
    ...(peerAt === undefined ? {} : { peerAt }),
    ...(isKept ? { lastModified } : {}),
  };
}

function tooLarge(bytes: number, most = 0): Failure {
  return {
    code: 'TOO_LARGE_FOR_PEER',
    message: `The file has ${bytes} bytes, and this kind of peer bears ${most} in one document.`,
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
