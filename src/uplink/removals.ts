import { PeersyncError } from '../lib/errors.js';
import { HealthCheck } from '../lib/health.js';
import { counted } from '../lib/text.js';
import type { ItemKey } from '../state/entries.js';
import { type Entry, type Failure, itemName, type RemovingItem } from '../state/entry.js';
import { removalFailed, removalLeft, toBeRequested } from '../state/transitions.js';
import type { Backlog } from './backlog.js';
import { failureOf, pushFailure, WRONG_DIALECT_CODES } from './batch-sender.js';
import { Background, holdMs, indexingMs, itemKeyText, type UplinkDeps } from './deps.js';
import { MAX_IN_MEMORY, ReadyQueue } from './ready-queue.js';
import {
  mayRemoveFrom,
  type Removal,
  RemovalBlocks,
  RemovalLookUps,
  removingItem,
} from './removal-look-ups.js';
import { backoffMs, delayLeftMs } from './retry.js';

/** Maximum number of removals in one search for renamed files. */
const MAX_SEARCHED = 1_000;
/** Delay before a blocked removal is tried again, in ms. */
const BLOCKED_RETRY_MS = 1_000;
/** Maximum share of the time that the search for renamed files may take. */
const SEARCH_SHARE = 1 / 20;
/** Longest time that a push without an answer may still be processed by the peer, in ms. */
const UNANSWERED_MS = 2_000;
/** Number of failed attempts from which a removal is reported as failing. */
const MIN_REPORTED_ATTEMPTS = 5;

/**
 * Removes the documents of items with the status `removing` from the peer, and looks each up until
 * the peer does not show it any more.
 *
 * A removal is in one of these places:
 *
 * - *waiting*, until its backoff is over and no earlier push of the document can still reach the
 *   peer's index. Then it is due;
 * - *unblocked*: it is due, and no other file with the same content is being pushed or confirmed.
 *   (Such a file is the same file under another name, which is to be searchable first.)
 * - *in a request*. First it is marked as requested on disk;
 * - *looked up* (see RemovalLookUps), after its request was accepted or not answered, or if an
 *   earlier run requested it. The document is not shown any more: the item is `removed`. It is
 *   still shown: the removal waits for another request.
 *
 * Right before its request, a removal goes back to wait if it is blocked (see RemovalBlocks).
 *
 * The URL is reserved from before the request until its answer, so a file that comes back meanwhile
 * is pushed afterwards.
 */
export class Removals {
  readonly #deps: UplinkDeps;
  readonly #backlog: Backlog;
  readonly #work: Background;
  readonly #waiting: ReadyQueue<Removal>;
  #unblocked: Removal[] = [];
  readonly #lookUps: RemovalLookUps<Removal>;
  /** The keys of removals that are unblocked or in a request. */
  readonly #underWay = new Set<string>();
  readonly #blocks: RemovalBlocks;
  /** Removals that failed repeatedly, the last time in this run. */
  readonly #failing = new Map<string, ItemKey>();
  #openRequests = 0;
  readonly #health = new HealthCheck('removal', 'removals that are due are not asked for', {
    busy: () =>
      this.#waiting.hasDue && this.#work.size === 0 && this.#deps.queue.hasRoom('removal'),
  });

  constructor(deps: UplinkDeps, backlog: Backlog) {
    this.#deps = deps;
    this.#backlog = backlog;
    this.#work = new Background(deps.clock);
    this.#blocks = new RemovalBlocks(deps);
    const entries = () => this.#removing();
    this.#waiting = new ReadyQueue(deps.clock, deps.maxInMemory ?? MAX_IN_MEMORY, entries, () =>
      this.#work.notify(),
    );
    this.#lookUps = new RemovalLookUps(deps, {
      entries,
      onFound: (entry) => this.#found(entry),
      onStillShown: (removal, failure) => this.#failed(removal, failure),
    });
  }

  get isIdle(): boolean {
    const isRequesting = this.#work.size > 0 || this.#underWay.size > 0;
    return !isRequesting && this.#waiting.isIdle && this.#lookUps.isIdle;
  }

  get health(): readonly HealthCheck[] {
    return [this.#health, this.#lookUps.health];
  }

  /**
   * The number of removals that failed repeatedly, the last time in this run, and the reason of one
   * of them; without those of missing folders.
   */
  get failing(): (Pick<Failure, 'message' | 'hint'> & { readonly documents: number }) | undefined {
    const failing = [...this.#failing].filter(([, { folder }]) => this.#mayRemoveFrom(folder));
    let documents = failing.length;
    for (const [key, place] of failing) {
      const failure = this.#itemOf(place)?.failure;
      const what = `The peer still has ${counted(documents, 'document')} of removed files, such as that of ${itemName(place)}`;
      if (failure !== undefined)
        return { documents, message: `${what}: ${failure.message}`, hint: failure.hint };
      this.#failing.delete(key);
      documents -= 1;
    }
    return undefined;
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.#work.loop(() => this.#step(signal), signal),
      this.#lookUps.run(signal),
    ]);
  }

  /** Called when the record of an item changed. */
  changed(place: ItemKey, entry: Entry | undefined): void {
    if (entry !== undefined) this.#blocks.note(entry);
    const key = itemKeyText(place);
    if (entry?.status !== 'removing') {
      this.#failing.delete(key);
      this.#waiting.delete(key);
      this.#lookUps.delete(key);
      return;
    }
    if (entry.requestedAt === undefined) this.#lookUps.delete(key);
    if (!this.#underWay.has(key) && !this.#lookUps.has(key)) {
      this.#schedule(this.#waiting.get(key) ?? newRemoval(entry), entry);
      this.#work.notify();
    }
  }

  foldersChanged(): void {
    this.#waiting.startOver();
    this.#lookUps.foldersChanged();
    this.#work.notify();
  }

  async *#removing(): AsyncGenerator<Iterable<Entry>> {
    const { entries } = this.#deps.state;
    for (const folder of [...entries.folders()])
      if (this.#mayRemoveFrom(folder) && entries.counts(folder).removing > 0)
        yield* entries.slices({ folder, status: ['removing'] });
  }

  /** Called for each entry of a pass over the state. */
  #found(entry: Entry): void {
    const key = itemKeyText(entry);
    const isTracked =
      this.#underWay.has(key) || this.#lookUps.has(key) || this.#waiting.get(key) !== undefined;
    if (entry.status === 'removing' && !isTracked) this.#schedule(newRemoval(entry), entry);
  }

  #mayRemoveFrom(folder: string): boolean {
    return mayRemoveFrom(this.#deps, folder);
  }

  #itemOf(place: ItemKey): RemovingItem | undefined {
    return removingItem(this.#deps, place);
  }

  /**
   * Schedules a removal by its record: its look-up if it was requested, else its request. Drops it
   * if the item is not being removed any more, as its file may be back.
   */
  #schedule(removal: Removal, item = this.#itemOf(removal)): void {
    const key = itemKeyText(removal);
    this.#underWay.delete(key);
    if (item === undefined || !this.#mayRemoveFrom(removal.folder)) return;
    if (item.requestedAt === undefined) this.#waiting.put(key, removal, this.#requestDueAt(item));
    else this.#lookUps.resume(removal, item, item.requestedAt);
  }

  /** Schedules a removal again whose request was put off. */
  #scheduleRequest(removal: Removal, at: number): void {
    const key = itemKeyText(removal);
    this.#underWay.delete(key);
    if (this.#itemOf(removal) !== undefined && this.#mayRemoveFrom(removal.folder))
      this.#waiting.put(key, removal, at);
  }

  #requestDueAt(item: RemovingItem): number {
    const { clock, settings, sharing } = this.#deps;
    const now = clock.now();
    const hold = holdMs(this.#deps);
    const { sent } = item;
    const pushMs =
      hold === 0
        ? sent?.isUncertain
          ? UNANSWERED_MS
          : 0
        : hold + indexingMs(this.#deps, sent?.size ?? 0);
    const sentAt = Math.min(now, sent?.at ?? Number.NEGATIVE_INFINITY);
    // A push of another machine goes on when this one has stopped.
    const arrivedAt = sent?.isUncertain ? (sharing?.latestArrival(sentAt) ?? sentAt) : sentAt;
    return Math.max(now + delayLeftMs(settings, item, now), arrivedAt + pushMs);
  }

  async #step(signal: AbortSignal): Promise<void> {
    const { queue, settings } = this.#deps;
    this.#health.progress();
    if (this.#waiting.wantsMore) for (const entry of await this.#waiting.more()) this.#found(entry);
    if (this.#unblocked.length > 0 && this.#openRequests < settings.push.concurrency) {
      await queue.ready('removal', signal);
      this.#openRequests += 1;
      this.#work.start(this.#request(this.#nextBatch(), signal));
    } else if (this.#unblocked.length === 0 && this.#waiting.hasDue) await this.#findUnblocked();
    else if (!this.#waiting.wantsMore) await this.#work.wait(this.#waiting.nextPassInMs);
  }

  /** Unblocks the due removals, except those whose content another file is bringing to the peer. */
  async #findUnblocked(): Promise<void> {
    const { clock } = this.#deps;
    const due = this.#takeDue();
    const began = clock.now();
    await this.#blocks.search(due);
    const now = clock.now();
    const waitMs = Math.max(BLOCKED_RETRY_MS, (now - began) / SEARCH_SHARE);
    for (const removal of due)
      if (this.#blocks.isRenamed(removal)) this.#scheduleRequest(removal, now + waitMs);
      else this.#unblocked.push(removal);
  }

  /** Takes the removals that have been due for longest. */
  #takeDue(): readonly Removal[] {
    const due: Removal[] = [];
    for (const [key, removal] of this.#waiting.allDue) {
      if (due.length >= MAX_SEARCHED) break;
      this.#waiting.delete(key);
      if (this.#itemOf(removal) === undefined || !this.#mayRemoveFrom(removal.folder)) continue;
      this.#underWay.add(key);
      due.push(removal);
    }
    return due;
  }

  /** Takes the removals of one request. */
  #nextBatch(): readonly Removal[] {
    const most = this.#deps.dialect.current?.maxRemovalsPerRequest ?? 1;
    const alone = this.#unblocked.findIndex(({ inOwnRequest: isAlone }) => isAlone);
    return this.#unblocked.splice(0, alone === -1 ? most : Math.min(most, Math.max(1, alone)));
  }

  async #request(batch: readonly Removal[], signal: AbortSignal): Promise<void> {
    const { clock, state } = this.#deps;
    const urls = new Set<string>();
    try {
      const going: Removal[] = [];
      for (const removal of batch) {
        const item = await this.#blocks.unblockedItem(removal);
        if (item === undefined || !this.#backlog.reserveUrl(item.url)) {
          this.#scheduleRequest(removal, clock.now() + BLOCKED_RETRY_MS);
          continue;
        }
        urls.add(item.url);
        going.push(removal);
        state.put(removalLeft(item, clock.now()));
      }
      await state.commit();
      if (going.length > 0) await this.#send(going, signal);
    } finally {
      for (const url of urls) this.#backlog.unreserveUrl(url);
      this.#openRequests -= 1;
    }
  }

  async #send(batch: readonly Removal[], signal: AbortSignal): Promise<void> {
    const { dialect, log, peer, queue } = this.#deps;
    let began = false;
    let asked: readonly Removal[] = [];
    try {
      const results = await queue.run('removal', async (s) => {
        began = true;
        // The request may have waited long: files may be back, and folders missing.
        asked = batch.filter(
          (one) => this.#mayRemoveFrom(one.folder) && this.#itemOf(one) !== undefined,
        );
        const urls = asked.map((one) => this.#itemOf(one)?.url ?? '');
        return urls.length === 0 ? [] : await peer.remove(urls, { signal: s });
      });
      log.debug(
        { event: 'removal', items: asked.length },
        `asked to remove ${asked.length} documents`,
      );
      for (const [i, removal] of asked.entries()) {
        const result = results[i];
        const words =
          result?.ok === false ? result.message : 'the peer did not answer for this document';
        if (result?.ok) this.#requested(removal, 'accepted');
        else this.#failed(removal, refused(words));
      }
      for (const removal of batch) if (!asked.includes(removal)) this.#failed(removal, undefined);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof PeersyncError)) throw error;
      const kind = pushFailure(error, began);
      const isMisfit = WRONG_DIALECT_CODES.has(error.code) && (await dialect.redetect());
      for (const removal of batch) {
        if (isMisfit) this.#failed(removal, undefined);
        else if (kind === 'unanswered') this.#requested(removal, 'unanswered');
        else {
          removal.inOwnRequest ||= kind === 'failed' && batch.length > 1;
          this.#failed(removal, failureOf(error));
        }
      }
    }
    await this.#deps.state.commit();
  }

  /** Has a removal looked up that the peer accepted, or may have accepted. */
  #requested(removal: Removal, answer: 'accepted' | 'unanswered'): void {
    const item = this.#itemOf(removal);
    // During the request, the file may have come back and may have been removed again.
    if (item?.requestedAt === undefined || !this.#mayRemoveFrom(removal.folder)) {
      this.#schedule(removal, item);
      return;
    }
    this.#underWay.delete(itemKeyText(removal));
    this.#lookUps.begin(removal, item, answer);
  }

  /** Schedules another request: after the backoff if there was a failure, else at once. */
  #failed(removal: Removal, failure: Failure | undefined): void {
    const { clock, settings, state } = this.#deps;
    const item = this.#itemOf(removal);
    if (item !== undefined) {
      const waitMs = failure === undefined ? 0 : backoffMs(settings, item);
      const after =
        failure === undefined
          ? toBeRequested(item)
          : removalFailed(item, failure, clock.now() + waitMs);
      if (after.attempts >= MIN_REPORTED_ATTEMPTS) this.#failing.set(itemKeyText(removal), removal);
      state.put(after);
    }
    this.#schedule(removal);
    this.#work.notify();
  }
}

function newRemoval({ folder, path }: ItemKey): Removal {
  return { folder, path, inOwnRequest: false };
}

function refused(words: string): Failure {
  return {
    code: 'REMOVAL_REFUSED',
    message: `The peer did not remove the document: ${words}`,
    hint: 'It is asked again by itself; if that does not help, see what the peer says, and its log.',
  };
}
