import { lstat, stat } from 'node:fs/promises';
import { PeersyncError, systemCode } from '../lib/errors.js';
import { sameStat } from '../lib/file.js';
import { HealthCheck } from '../lib/health.js';
import { counted } from '../lib/text.js';
import type { Place } from '../state/entries.js';
import {
  claims,
  contentOf,
  type Entry,
  isRenamed,
  placeName,
  type RemovingItem,
  removalFailed,
  removalLeft,
  removed,
  type Trouble,
} from '../state/entry.js';
import { type Backlog, HELD, ReadyQueue } from './backlog.js';
import { MISFITS, pushFailure, troubleOf } from './batch-sender.js';
import { Background, backoffMs, holdMs, indexingMs, keyOf, type UplinkDeps } from './deps.js';

/** So many removals are looked at together for files that were renamed. */
const ROUND = 1_000;
/** How long a removal waits for what keeps it back, in ms. */
const KEPT_BACK_MS = 1_000;
/** Looking for renamed files takes at most such a share of the time. */
const SEARCH_SHARE = 1 / 20;
/** How long a file that is there again may take to be at rest and read, in ms. */
const LONGEST_RETURN_MS = 5 * 60_000;
/** How long a push that was never answered may still be under way in the peer, in ms. */
const UNANSWERED_MS = 2_000;
const SHORTEST_INTERVAL_MS = 200;
/** From so many failed attempts on a person is told. */
const MANY_ATTEMPTS = 5;

const NOT_REMOVED: Trouble = {
  code: 'NOT_REMOVED',
  message: 'The peer took the removal of the document, and still shows it.',
  hint: 'It is asked again by itself; if that does not help, see the log of the peer.',
};
const UNANSWERED: Trouble = {
  code: 'REMOVAL_UNANSWERED',
  message: 'The removal of the document was not answered, and the peer still shows it.',
  hint: 'It is asked again by itself.',
};

/** One document that is being removed. */
interface Removal extends Place {
  /** Between two look-ups, in ms. */
  interval: number;
  /** Whether this run asked the peer, and the peer took it. */
  isAnswered: boolean;
  /** Whether it goes in a request of its own: one with others failed. */
  isAlone: boolean;
  /** Since when its file has been there again, in ms since the epoch. */
  backSince?: number;
}

/**
 * Brings to the peer what the state says is `removing`: asks the peer to remove the document, and
 * looks it up until the peer does not show it any more.
 *
 * A removal is *due* when its backoff is over and nothing that was pushed before can come after it.
 * It is *kept back* while a file of the same content is on its way to the peer (the same file under
 * another name, which is to be found first), while another file that is there has its URL and was
 * not pushed, and while its own file is there again, or is another version than the one that is
 * kept out, and waits to be read. Then it is marked on disk, and asked for.
 *
 * What was asked for is looked up, on a peer that shows documents for a while after their removal
 * when that is over: not there, it is `removed`; there for longer than `confirm.timeout`, it is
 * asked for again. No answer proves nothing. What an earlier run asked for, or was not answered, is
 * looked up first.
 *
 * The URL is reserved from before the request to its answer: a file that comes back meanwhile is
 * pushed after that.
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
  /** What is being asked for, looked up or found to be free for that. */
  readonly #underWay = new Set<string>();
  /** What may be asked for, as no other file has its content. */
  #free: Removal[] = [];
  /** The content of those, and what of it is on its way to the peer. */
  readonly #contents = new Set<string>();
  readonly #moving = new Set<string>();
  /** Those that failed again and again, the last time in this run. */
  readonly #failing = new Map<string, Place>();
  #requests = 0;

  constructor(deps: UplinkDeps, backlog: Backlog) {
    this.#deps = deps;
    this.#backlog = backlog;
    this.#work = new Background(deps.clock);
    this.#waiting = new ReadyQueue(
      deps.clock,
      deps.held ?? HELD,
      () => this.#removing(),
      () => this.#work.notify(),
    );
  }

  get isIdle(): boolean {
    return this.#work.size === 0 && this.#underWay.size === 0 && this.#waiting.isIdle;
  }

  /**
   * How many removals failed again and again, the last time in this run, with what keeps one of
   * them; not where the folder is missing.
   */
  get failing(): (Pick<Trouble, 'message' | 'hint'> & { readonly documents: number }) | undefined {
    const failing = [...this.#failing].filter(([, { folder }]) => this.#mayTouch(folder));
    let documents = failing.length;
    for (const [key, place] of failing) {
      const trouble = this.#itemOf(place)?.trouble;
      const what = `The peer still has ${counted(documents, 'document')} of removed files, such as that of ${placeName(place)}`;
      if (trouble !== undefined)
        return { documents, message: `${what}: ${trouble.message}`, hint: trouble.hint };
      this.#failing.delete(key);
      documents -= 1;
    }
    return undefined;
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#work.loop(() => this.#step(signal), signal);
  }

  /** The record of a file changed. */
  changed(place: Place, entry: Entry | undefined): void {
    if (entry !== undefined) this.#seen(entry);
    const key = keyOf(place);
    if (entry?.status !== 'removing') {
      this.#failing.delete(key);
      this.#waiting.delete(key);
    } else if (!this.#underWay.has(key)) this.#take(entry);
    else return;
    this.#work.notify();
  }

  /** Notes the content of a file that is on its way to the peer, where that matters. */
  #seen(entry: Entry): void {
    const content = contentOf(entry);
    if (content !== undefined && this.#contents.has(content) && isOnItsWay(entry))
      this.#moving.add(content);
  }

  foldersChanged(): void {
    this.#waiting.startOver();
    this.#work.notify();
  }

  async *#removing(): AsyncGenerator<Iterable<Entry>> {
    const { entries } = this.#deps.state;
    for (const folder of [...entries.folders()])
      if (this.#mayTouch(folder) && entries.counts(folder).removing > 0)
        yield* entries.slices({ folder, status: ['removing'] });
  }

  /** Also one that left the configuration; but nothing is removed for a folder that is missing. */
  #mayTouch(folder: string): boolean {
    return this.#deps.standing(folder) !== 'missing';
  }

  #take({ folder, path, ...item }: RemovingItem): void {
    const known = this.#waiting.get(keyOf({ folder, path }));
    const fresh = {
      folder,
      path,
      interval: SHORTEST_INTERVAL_MS,
      isAnswered: false,
      isAlone: false,
    };
    this.#plan(known ?? fresh, this.#dueAt({ folder, path, ...item }));
  }

  /** Gives it its turn, if it is still a removal: its file may be back by now. */
  #plan(removal: Removal, at: number): void {
    this.#underWay.delete(keyOf(removal));
    if (this.#itemOf(removal) !== undefined && this.#mayTouch(removal.folder))
      this.#waiting.put(keyOf(removal), removal, at);
  }

  #dueAt({ notBefore, requestedAt, sent }: RemovingItem): number {
    const { clock, settings } = this.#deps;
    const now = clock.now();
    const hold = holdMs(this.#deps);
    // A time ahead is of an earlier run whose clock was wrong.
    if (requestedAt !== undefined) return Math.min(now, requestedAt) + hold;
    const latestAt = now + Math.max(KEPT_BACK_MS, settings.push.backoff.max);
    const pushMs =
      hold === 0 ? (sent?.isUncertain ? UNANSWERED_MS : 0) : hold + indexingMs(sent?.size ?? 0);
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
        if (entry.status === 'removing' && !this.#isHeld(entry)) this.#take(entry);
    const first = this.#takeFirst(true);
    if (first !== undefined) {
      await queue.ready('confirm', signal);
      this.#work.start(this.#lookUp(first, signal));
    } else if (this.#free.length > 0 && this.#requests < settings.push.concurrency) {
      await queue.ready('removal', signal);
      this.#requests += 1;
      this.#work.start(this.#ask(this.#nextBatch(), signal));
    } else if (this.#free.length === 0 && this.#waiting.hasDue) await this.#findFree();
    else if (!this.#waiting.wantsMore) await this.#work.wait(this.#waiting.nextPassInMs);
  }

  #isHeld(place: Place): boolean {
    return this.#underWay.has(keyOf(place)) || this.#waiting.get(keyOf(place)) !== undefined;
  }

  /** Takes the removal that fell due first, if it is to be looked up, or if it is not. */
  #takeFirst(isAsked: boolean): Removal | undefined {
    for (;;) {
      const { first } = this.#waiting;
      if (first === undefined) return undefined;
      const item = this.#itemOf(first);
      if (item !== undefined && (item.requestedAt !== undefined) !== isAsked) return undefined;
      this.#waiting.delete(keyOf(first));
      if (item === undefined || !this.#mayTouch(first.folder)) continue;
      this.#underWay.add(keyOf(first));
      return first;
    }
  }

  #itemOf({ folder, path }: Place): RemovingItem | undefined {
    const entry = this.#deps.state.get(folder, path);
    return entry?.status === 'removing' ? entry : undefined;
  }

  /**
   * Frees those that are due, but for what is on its way to the peer under another name: such a
   * file is to be found first.
   */
  async #findFree(): Promise<void> {
    const { clock, state } = this.#deps;
    const due: Removal[] = [];
    for (let next = this.#takeFirst(false); next !== undefined; ) {
      due.push(next);
      next = due.length < ROUND ? this.#takeFirst(false) : undefined;
    }
    this.#contents.clear();
    this.#moving.clear();
    for (const removal of due) this.#contents.add(this.#contentOf(removal) ?? '');
    const began = clock.now();
    const { accepted, pending } = state.counts();
    if (accepted + pending > 0)
      for await (const slice of state.entries.slices({ status: ['pending', 'accepted'] }))
        for (const entry of slice) this.#seen(entry);
    const now = clock.now();
    const waitMs = Math.max(KEPT_BACK_MS, (now - began) / SEARCH_SHARE);
    for (const removal of due)
      if (this.#isMoving(removal)) this.#plan(removal, now + waitMs);
      else this.#free.push(removal);
  }

  #contentOf(place: Place): string | undefined {
    const item = this.#itemOf(place);
    return item && contentOf(item);
  }

  #isMoving(place: Place): boolean {
    return this.#moving.has(this.#contentOf(place) ?? '');
  }

  /** What goes in one request. */
  #nextBatch(): readonly Removal[] {
    const most = this.#deps.dialect.current?.removedAtOnce ?? 1;
    const alone = this.#free.findIndex(({ isAlone }) => isAlone);
    return this.#free.splice(0, alone === -1 ? most : Math.min(most, Math.max(1, alone)));
  }

  async #ask(batch: readonly Removal[], signal: AbortSignal): Promise<void> {
    const { clock, state } = this.#deps;
    const urls = new Set<string>();
    try {
      const going: Removal[] = [];
      for (const removal of batch) {
        const item = await this.#mayGo(removal);
        if (item === undefined || !this.#backlog.reserve(item.url)) {
          this.#plan(removal, clock.now() + KEPT_BACK_MS);
          continue;
        }
        urls.add(item.url);
        going.push(removal);
        state.put(removalLeft(item, clock.now()));
      }
      await state.commit();
      if (going.length > 0) await this.#send(going, signal);
    } finally {
      for (const url of urls) this.#backlog.release(url);
      this.#requests -= 1;
    }
  }

  /**
   * The item, if nothing keeps its removal back. One whose document is another file's now is
   * settled here.
   */
  async #mayGo(removal: Removal): Promise<RemovingItem | undefined> {
    const { clock, look, state } = this.#deps;
    const isBack = await this.#isBack(removal);
    const item = this.#itemOf(removal);
    if (item === undefined || this.#isMoving(removal) || !this.#mayTouch(item.folder))
      return undefined;
    const now = clock.now();
    if (isBack) {
      removal.backSince ??= now;
      look(item);
      if (now - removal.backSince < LONGEST_RETURN_MS) return undefined;
    }
    const owner = this.#deps.state.entries.ownerOf(item.url, item);
    if (owner === undefined) return item;
    // One that is on its way is going to replace the document.
    if (!isOnItsWay(owner) || claims(owner, item.url))
      state.put(removed(item, now, 'another file has its address now'));
    return undefined;
  }

  async #isBack({ folder, path }: Place): Promise<boolean> {
    const item = this.#itemOf({ folder, path });
    const file = item && this.#deps.pathOf(item);
    if (item === undefined || file === undefined) return false;
    try {
      // One that is kept out is there, and back only as another version; a link counts as what it
      // leads to.
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
        // It may have waited long: the file, or a folder, is there again, or is not.
        asked = batch.filter(
          (one) => this.#mayTouch(one.folder) && this.#itemOf(one) !== undefined,
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
          removal.isAnswered = true;
          removal.interval = SHORTEST_INTERVAL_MS;
          this.#plan(removal, clock.now() + holdMs(this.#deps));
        }
      }
      for (const removal of batch) if (!asked.includes(removal)) this.#failed(removal, undefined);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof PeersyncError)) throw error;
      const kind = pushFailure(error, began);
      const isMisfit = MISFITS.has(error.code) && (await dialect.misfits());
      for (const removal of batch) {
        if (isMisfit) this.#failed(removal, undefined);
        else if (kind === 'unanswered') this.#plan(removal, clock.now() + holdMs(this.#deps));
        else {
          removal.isAlone ||= kind === 'failed' && batch.length > 1;
          this.#failed(removal, troubleOf(error));
        }
      }
    }
    await this.#deps.state.commit();
  }

  /** It is asked for again: later where there is a trouble. */
  #failed(removal: Removal, trouble: Trouble | undefined): void {
    const { clock, settings, state } = this.#deps;
    removal.isAnswered = false;
    const item = this.#itemOf(removal);
    if (item === undefined) this.#underWay.delete(keyOf(removal));
    else {
      const waitMs = trouble === undefined ? 0 : backoffMs(settings, item);
      const { requestedAt: _, ...unasked } = item;
      const now = clock.now();
      const after = trouble === undefined ? unasked : removalFailed(item, trouble, now + waitMs);
      if (after.attempts >= MANY_ATTEMPTS) this.#failing.set(keyOf(removal), removal);
      state.put(after);
      this.#plan(removal, this.#dueAt(after));
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
    const patienceMs = Math.max(settings.confirm.timeout, 2 * hold);
    const isOver = (askedAt: number) => Math.min(now - askedAt, queue.answeringForMs) >= patienceMs;
    // Since then the file came back, or the removal began anew.
    if (item?.requestedAt === undefined || item.url !== url) this.#plan(removal, now);
    else if (isThere === false && began >= item.requestedAt + hold) {
      const note = 'the peer does not show it any more';
      state.put(removed(item, now, note));
      await state.commit();
      this.#underWay.delete(keyOf(removal));
      const { folder, path } = item;
      // A rename was told as one.
      const level = isRenamed(item) ? 'debug' : 'info';
      log[level](
        { event: 'removed', folder, path, url },
        `removed ${placeName(item)} from the peer`,
      );
    } else if (isThere === true && (!removal.isAnswered || isOver(item.requestedAt))) {
      this.#failed(removal, removal.isAnswered ? NOT_REMOVED : UNANSWERED);
      await state.commit();
    } else {
      this.#plan(removal, now + removal.interval);
      removal.interval = Math.min(removal.interval * 2, settings.confirm.maxInterval);
    }
  }
}

function refused(words: string): Trouble {
  return {
    code: 'REMOVAL_REFUSED',
    message: `The peer did not remove the document: ${words}`,
    hint: 'It is asked again by itself; if that does not help, see what the peer says, and its log.',
  };
}

function isOnItsWay(entry: Entry): boolean {
  return entry.status === 'pending' || entry.status === 'accepted';
}
