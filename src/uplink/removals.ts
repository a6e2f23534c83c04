import { lstat, stat } from 'node:fs/promises';
import { PeersyncError, systemCode } from '../lib/errors.js';
import { sameStat } from '../lib/file.js';
import { HealthCheck } from '../lib/health.js';
import { counted } from '../lib/text.js';
import type { ItemKey } from '../state/entries.js';
import {
  claims,
  contentOf,
  type Entry,
  type Failure,
  isRenamed,
  itemName,
  type RemovingItem,
  removalFailed,
  removalLeft,
  removed,
} from '../state/entry.js';
import { type Backlog, MAX_IN_MEMORY, ReadyQueue } from './backlog.js';
import { failureOf, pushFailure, WRONG_DIALECT_CODES } from './batch-sender.js';
import { Background, backoffMs, holdMs, indexingMs, itemKeyText, type UplinkDeps } from './deps.js';

/** Maximum number of removals in one search for renamed files. */
const MAX_SEARCHED = 1_000;
/** Delay before a blocked removal is tried again, in ms. */
const BLOCKED_RETRY_MS = 1_000;
/** Maximum share of the time that the search for renamed files may take. */
const SEARCH_SHARE = 1 / 20;
/** Longest time that a file that came back may take to be stable and read, in ms. */
const LONGEST_RETURN_MS = 5 * 60_000;
/** Longest time that a push without an answer may still be processed by the peer, in ms. */
const UNANSWERED_MS = 2_000;
const SHORTEST_INTERVAL_MS = 200;
/** Number of failed attempts from which a removal is reported as failing. */
const MIN_REPORTED_ATTEMPTS = 5;

const NOT_REMOVED: Failure = {
  code: 'NOT_REMOVED',
  message: 'The peer took the removal of the document, and still shows it.',
  hint: 'It is asked again by itself; if that does not help, see the log of the peer.',
};
const UNANSWERED: Failure = {
  code: 'REMOVAL_UNANSWERED',
  message: 'The removal of the document was not answered, and the peer still shows it.',
  hint: 'It is asked again by itself.',
};

/** One document that is being removed. */
interface Removal extends ItemKey {
  /** Interval until the next look-up, in ms. */
  interval: number;
  /** Whether the peer accepted this run's request. */
  isAccepted: boolean;
  /** Whether it is sent in a request of its own, because a request with others failed. */
  isAlone: boolean;
  /** The time since which its file has been there again, in ms since the epoch. */
  backSince?: number;
}

/**
 * Removes the documents of items with the status `removing` from the peer, and looks each up until
 * the peer does not show it any more.
 *
 * A removal is *due* when its backoff is over and no earlier push of the document can still reach
 * the peer's index. It is *blocked*
 *
 * - while a file with the same content is being pushed or confirmed: that is the same file under
 *   another name, which is to be searchable first;
 * - while another file that is there has its URL and was not pushed;
 * - while its own file is there again, or, for a file that a rule keeps out, has another version
 *   than the skipped one.
 *
 * A removal that is not blocked is marked as *requested* on disk, and sent to the peer. Then it is
 * looked up; on a peer that shows removed documents for a while, after the hold. If the document is
 * not shown, the item is `removed`. If it is shown for longer than `confirm.timeout`, the removal
 * is sent again. A look-up without an answer proves nothing. A removal that an earlier run
 * requested, or whose request was not answered, is looked up first.
 *
 * The URL is reserved from before the request until its answer, so a file that comes back meanwhile
 * is pushed afterwards.
 */
export class Removals {
  readonly health = new HealthCheck(
    'removal',
    'removals that are due are not asked for or looked up',
    {
      busy: () => {
        const { queue } = this.#deps;
        return (
          this.#waiting.hasDue &&
          this.#work.size === 0 &&
          queue.hasRoom('removal') &&
          queue.hasRoom('confirm')
        );
      },
    },
  );
  readonly #deps: UplinkDeps;
  readonly #backlog: Backlog;
  readonly #work: Background;
  readonly #waiting: ReadyQueue<Removal>;
  /** The keys of removals that are unblocked, in a request, or being looked up. */
  readonly #underWay = new Set<string>();
  /** Due removals for which no other file has the content. */
  #unblocked: Removal[] = [];
  /**
   * The content of the due removals, and the part of it that another file is bringing to the peer.
   */
  readonly #searchedContents = new Set<string>();
  readonly #contentsInTransit = new Set<string>();
  /** Removals that failed repeatedly, the last time in this run. */
  readonly #failing = new Map<string, ItemKey>();
  #openRequests = 0;

  constructor(deps: UplinkDeps, backlog: Backlog) {
    this.#deps = deps;
    this.#backlog = backlog;
    this.#work = new Background(deps.clock);
    this.#waiting = new ReadyQueue(
      deps.clock,
      deps.maxInMemory ?? MAX_IN_MEMORY,
      () => this.#removing(),
      () => this.#work.notify(),
    );
  }

  get isIdle(): boolean {
    return this.#work.size === 0 && this.#underWay.size === 0 && this.#waiting.isIdle;
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

  run(signal: AbortSignal): Promise<void> {
    return this.#work.loop(() => this.#step(signal), signal);
  }

  /** Called when the record of an item changed. */
  changed(place: ItemKey, entry: Entry | undefined): void {
    if (entry !== undefined) this.#noteContent(entry);
    const key = itemKeyText(place);
    if (entry?.status !== 'removing') {
      this.#failing.delete(key);
      this.#waiting.delete(key);
    } else if (!this.#underWay.has(key)) this.#schedule(entry);
    else return;
    this.#work.notify();
  }

  /**
   * Notes the content of a file that is being pushed or confirmed, if a due removal has the same.
   */
  #noteContent(entry: Entry): void {
    const content = contentOf(entry);
    if (content !== undefined && this.#searchedContents.has(content) && isInTransit(entry))
      this.#contentsInTransit.add(content);
  }

  foldersChanged(): void {
    this.#waiting.startOver();
    this.#work.notify();
  }

  async *#removing(): AsyncGenerator<Iterable<Entry>> {
    const { entries } = this.#deps.state;
    for (const folder of [...entries.folders()])
      if (this.#mayRemoveFrom(folder) && entries.counts(folder).removing > 0)
        yield* entries.slices({ folder, status: ['removing'] });
  }

  /**
   * Whether documents of the folder may be removed: not while it is missing, but also when it is
   * not in the configuration any more.
   */
  #mayRemoveFrom(folder: string): boolean {
    return this.#deps.folderState(folder) !== 'missing';
  }

  #schedule({ folder, path, ...item }: RemovingItem): void {
    const known = this.#waiting.get(itemKeyText({ folder, path }));
    const fresh = {
      folder,
      path,
      interval: SHORTEST_INTERVAL_MS,
      isAccepted: false,
      isAlone: false,
    };
    this.#scheduleAt(known ?? fresh, this.#dueAt({ folder, path, ...item }));
  }

  /** Schedules a removal, if the item is still being removed: its file may be back by now. */
  #scheduleAt(removal: Removal, at: number): void {
    this.#underWay.delete(itemKeyText(removal));
    if (this.#itemOf(removal) !== undefined && this.#mayRemoveFrom(removal.folder))
      this.#waiting.put(itemKeyText(removal), removal, at);
  }

  #dueAt({ notBefore, requestedAt, sent }: RemovingItem): number {
    const { clock, settings } = this.#deps;
    const now = clock.now();
    const hold = holdMs(this.#deps);
    // A time in the future comes from an earlier run whose clock was wrong.
    if (requestedAt !== undefined) return Math.min(now, requestedAt) + hold;
    const latestAt = now + Math.max(BLOCKED_RETRY_MS, settings.push.backoff.max);
    const pushMs =
      hold === 0
        ? sent?.isUncertain
          ? UNANSWERED_MS
          : 0
        : hold + indexingMs(this.#deps, sent?.size ?? 0);
    return Math.max(
      Math.min(notBefore, latestAt),
      Math.min(now, sent?.at ?? Number.NEGATIVE_INFINITY) + pushMs,
    );
  }

  async #step(signal: AbortSignal): Promise<void> {
    const { queue, settings } = this.#deps;
    this.health.progress();
    if (this.#waiting.wantsMore)
      for (const entry of await this.#waiting.more())
        if (entry.status === 'removing' && !this.#isTracked(entry)) this.#schedule(entry);
    const first = this.#takeFirstDue(true);
    if (first !== undefined) {
      await queue.ready('confirm', signal);
      this.#work.start(this.#lookUp(first, signal));
    } else if (this.#unblocked.length > 0 && this.#openRequests < settings.push.concurrency) {
      await queue.ready('removal', signal);
      this.#openRequests += 1;
      this.#work.start(this.#request(this.#nextBatch(), signal));
    } else if (this.#unblocked.length === 0 && this.#waiting.hasDue) await this.#findUnblocked();
    else if (!this.#waiting.wantsMore) await this.#work.wait(this.#waiting.nextPassInMs);
  }

  #isTracked(place: ItemKey): boolean {
    return (
      this.#underWay.has(itemKeyText(place)) || this.#waiting.get(itemKeyText(place)) !== undefined
    );
  }

  /**
   * Takes the removal that has been due for longest, if it waits for a look-up (`isRequested`), or
   * for its request (not `isRequested`).
   */
  #takeFirstDue(isRequested: boolean): Removal | undefined {
    for (;;) {
      const { first } = this.#waiting;
      if (first === undefined) return undefined;
      const item = this.#itemOf(first);
      if (item !== undefined && (item.requestedAt !== undefined) !== isRequested) return undefined;
      this.#waiting.delete(itemKeyText(first));
      if (item === undefined || !this.#mayRemoveFrom(first.folder)) continue;
      this.#underWay.add(itemKeyText(first));
      return first;
    }
  }

  #itemOf({ folder, path }: ItemKey): RemovingItem | undefined {
    const entry = this.#deps.state.get(folder, path);
    return entry?.status === 'removing' ? entry : undefined;
  }

  /**
   * Unblocks the due removals, except those whose content is being pushed or confirmed under
   * another name: the renamed file is to be searchable first.
   */
  async #findUnblocked(): Promise<void> {
    const { clock, state } = this.#deps;
    const due: Removal[] = [];
    for (let next = this.#takeFirstDue(false); next !== undefined; ) {
      due.push(next);
      next = due.length < MAX_SEARCHED ? this.#takeFirstDue(false) : undefined;
    }
    this.#searchedContents.clear();
    this.#contentsInTransit.clear();
    for (const removal of due) this.#searchedContents.add(this.#contentOf(removal) ?? '');
    const began = clock.now();
    const { accepted, pending } = state.counts();
    if (accepted + pending > 0)
      for await (const slice of state.entries.slices({ status: ['pending', 'accepted'] }))
        for (const entry of slice) this.#noteContent(entry);
    const now = clock.now();
    const waitMs = Math.max(BLOCKED_RETRY_MS, (now - began) / SEARCH_SHARE);
    for (const removal of due)
      if (this.#isInTransit(removal)) this.#scheduleAt(removal, now + waitMs);
      else this.#unblocked.push(removal);
  }

  #contentOf(place: ItemKey): string | undefined {
    const item = this.#itemOf(place);
    return item && contentOf(item);
  }

  #isInTransit(place: ItemKey): boolean {
    return this.#contentsInTransit.has(this.#contentOf(place) ?? '');
  }

  /** Takes the removals of one request. */
  #nextBatch(): readonly Removal[] {
    const most = this.#deps.dialect.current?.maxRemovalsPerRequest ?? 1;
    const alone = this.#unblocked.findIndex(({ isAlone }) => isAlone);
    return this.#unblocked.splice(0, alone === -1 ? most : Math.min(most, Math.max(1, alone)));
  }

  async #request(batch: readonly Removal[], signal: AbortSignal): Promise<void> {
    const { clock, state } = this.#deps;
    const urls = new Set<string>();
    try {
      const going: Removal[] = [];
      for (const removal of batch) {
        const item = await this.#unblockedItem(removal);
        if (item === undefined || !this.#backlog.reserveUrl(item.url)) {
          this.#scheduleAt(removal, clock.now() + BLOCKED_RETRY_MS);
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

  /**
   * Returns the item if its removal is not blocked. If the document belongs to another file now,
   * the removal is completed without a request.
   */
  async #unblockedItem(removal: Removal): Promise<RemovingItem | undefined> {
    const { clock, recheck: look, state } = this.#deps;
    const isBack = await this.#isBack(removal);
    const item = this.#itemOf(removal);
    if (item === undefined || this.#isInTransit(removal) || !this.#mayRemoveFrom(item.folder))
      return undefined;
    const now = clock.now();
    if (isBack) {
      removal.backSince ??= now;
      look(item);
      if (now - removal.backSince < LONGEST_RETURN_MS) return undefined;
    }
    const owner = this.#deps.state.entries.ownerOf(item.url, item);
    if (owner === undefined) return item;
    // The other file will replace the document when it is pushed.
    if (!isInTransit(owner) || claims(owner, item.url))
      state.put(removed(item, now, 'another file has its address now'));
    return undefined;
  }

  async #isBack({ folder, path }: ItemKey): Promise<boolean> {
    const item = this.#itemOf({ folder, path });
    const file = item && this.#deps.pathOf(item);
    if (item === undefined || file === undefined) return false;
    try {
      // A file that a rule keeps out stays on disk: it is back only in another version. Links count
      // as their target.
      if (item.keptOut !== undefined) return !sameStat(await stat(file), item.version);
      return !(await lstat(file)).isDirectory();
    } catch (error) {
      return !['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '');
    }
  }

  async #send(batch: readonly Removal[], signal: AbortSignal): Promise<void> {
    const { clock, dialect, log, peer, queue } = this.#deps;
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
        if (!result?.ok) this.#failed(removal, refused(words));
        else {
          removal.isAccepted = true;
          removal.interval = SHORTEST_INTERVAL_MS;
          this.#scheduleAt(removal, clock.now() + holdMs(this.#deps));
        }
      }
      for (const removal of batch) if (!asked.includes(removal)) this.#failed(removal, undefined);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof PeersyncError)) throw error;
      const kind = pushFailure(error, began);
      const isMisfit = WRONG_DIALECT_CODES.has(error.code) && (await dialect.redetect());
      for (const removal of batch) {
        if (isMisfit) this.#failed(removal, undefined);
        else if (kind === 'unanswered') this.#scheduleAt(removal, clock.now() + holdMs(this.#deps));
        else {
          removal.isAlone ||= kind === 'failed' && batch.length > 1;
          this.#failed(removal, failureOf(error));
        }
      }
    }
    await this.#deps.state.commit();
  }

  /** Schedules another request: after the backoff if there was a failure, else at once. */
  #failed(removal: Removal, failure: Failure | undefined): void {
    const { clock, settings, state } = this.#deps;
    removal.isAccepted = false;
    const item = this.#itemOf(removal);
    if (item === undefined) this.#underWay.delete(itemKeyText(removal));
    else {
      const waitMs = failure === undefined ? 0 : backoffMs(settings, item);
      const { requestedAt: _, ...unasked } = item;
      const now = clock.now();
      const after = failure === undefined ? unasked : removalFailed(item, failure, now + waitMs);
      if (after.attempts >= MIN_REPORTED_ATTEMPTS) this.#failing.set(itemKeyText(removal), removal);
      state.put(after);
      this.#scheduleAt(removal, this.#dueAt(after));
    }
  }

  async #lookUp(removal: Removal, signal: AbortSignal): Promise<void> {
    const { clock, dialect, log, peer, queue, settings, state } = this.#deps;
    const url = this.#itemOf(removal)?.url ?? '';
    const began = clock.now();
    let isThere: boolean | undefined;
    try {
      const doc = await queue.run('confirm', (s) => peer.peerdoc({ url }, { signal: s }));
      isThere = dialect.current?.isRemoved(doc) === false;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof PeersyncError)) throw error;
    }
    const now = clock.now();
    const item = this.#itemOf(removal);
    const hold = holdMs(this.#deps);
    const timeoutMs = Math.max(settings.confirm.timeout, 2 * hold);
    const isOver = (askedAt: number) => Math.min(now - askedAt, queue.answeringForMs) >= timeoutMs;
    // The file came back during the look-up, or the removal began again.
    if (item?.requestedAt === undefined || item.url !== url) this.#scheduleAt(removal, now);
    else if (isThere === false && began >= item.requestedAt + hold) {
      const note = 'the peer does not show it any more';
      state.put(removed(item, now, note));
      await state.commit();
      this.#underWay.delete(itemKeyText(removal));
      const { folder, path } = item;
      // A rename has its own log line.
      const level = isRenamed(item) ? 'debug' : 'info';
      log[level](
        { event: 'removed', folder, path, url },
        `removed ${itemName(item)} from the peer`,
      );
    } else if (isThere === true && (!removal.isAccepted || isOver(item.requestedAt))) {
      this.#failed(removal, removal.isAccepted ? NOT_REMOVED : UNANSWERED);
      await state.commit();
    } else {
      this.#scheduleAt(removal, now + removal.interval);
      removal.interval = Math.min(removal.interval * 2, settings.confirm.maxInterval);
    }
  }
}

function refused(words: string): Failure {
  return {
    code: 'REMOVAL_REFUSED',
    message: `The peer did not remove the document: ${words}`,
    hint: 'It is asked again by itself; if that does not help, see what the peer says, and its log.',
  };
}

function isInTransit(entry: Entry): boolean {
  return entry.status === 'pending' || entry.status === 'accepted';
}
