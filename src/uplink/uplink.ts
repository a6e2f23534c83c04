import { fileStat } from '../lib/file.js';
import { HealthCheck } from '../lib/health.js';
import type { ContentRules } from '../peer/dialect.js';
import type { Place } from '../state/entries.js';
import {
  type AcceptedItem,
  accepted,
  claims,
  type Entry,
  leaving,
  overtaken,
  type PendingItem,
  placeName,
  replaced,
  returned,
  type Sent,
  skipped,
  type Trouble,
  wasSkippedFor,
} from '../state/entry.js';
import { Backlog, laneOf, type PushLane } from './backlog.js';
import { type PreparedDocument, type PushResult, sendBatch } from './batch-sender.js';
import { ConfirmLoop, type NextLook } from './confirm-loop.js';
import { Background, keyOf, stillPending, type UplinkDeps } from './deps.js';
import type { DocumentsTrouble } from './document-processes.js';
import { type Packed, packAll, withoutWords } from './documents.js';
import { FailureAttribution, Isolation } from './failure-attribution.js';
import { Removals } from './removals.js';

/**
 * One batch is read and encoded in seconds; but the thread that does it reads large files for
 * others, too. On a busy machine one document may take ten minutes, and as much again in a new
 * process. In ms.
 */
const LONGEST_PACKING_MS = 30 * 60_000;
/**
 * How long an item is left alone that waits for a scan of its folder, in ms; less where that
 * changes it.
 */
const SCAN_PAUSE_MS = 10_000;
/** How long a file that changed under our hands is left alone, in ms. */
const STALE_PAUSE_MS = 2_000;
/** How soon to look again for suspects that are not due yet, or whose folder is missing, in ms. */
const POLL_MS = 5_000;
const LANES: readonly PushLane[] = ['text', 'document'];
/** A text with fewer words is not told from one whose text the peer dropped. */
const FEWEST_WORDS = 10;
/** Two clocks are hardly ever further apart, in ms. */
const CLOCKS_APART_MS = 60_000;

/** A document that was read and waits for its push. */
interface ReadAhead {
  readonly item: PendingItem;
  readonly content: PreparedDocument['content'];
  /** The rules by which it was read. */
  readonly rules: ContentRules;
}

export interface UplinkStatus {
  /** Items in requests that are under way. */
  readonly inFlight: number;
  /** Items that wait to be shown. */
  readonly confirming: number;
  /**
   * The learned time from a push to its first showing, in ms; undefined as long as the peer has
   * shown nothing.
   */
  readonly timeToVisibleMs: number | undefined;
  /** Removals that failed again and again: how many, and what keeps one of them. */
  readonly removalsFailing?: Removals['failing'];
  /** Why no document can be read at present. */
  readonly documentsTrouble?: DocumentsTrouble | undefined;
}

/**
 * What goes to the peer: pushes what the state says is pending, in batches, has the
 * confirm loop look up what it says is accepted, and has removed what it says is removing.
 *
 * Life: made from its parts; `start` waits until the peer's dialect is known, takes up what an
 * earlier run left (accepted items are looked up, items in flight are looked up before they are
 * pushed again) and follows every change of the state from then on; `stop` ends the loops once what
 * is under way has settled, which stopping the queue brings about.
 *
 * One producer takes items of one lane from the backlog when the queue has room, until a batch is
 * full (in number or bytes) or has waited for `push.linger`. The lanes, text and documents, take
 * turns; while documents are read, text goes on. The batch is read, its items are marked as in
 * flight on disk, it is sent, and the results are brought to the state and to the disk. Then what
 * the peer accepted is looked up by the confirm loop, and so is what is still in flight; what is
 * pending is due again.
 *
 * Suspects (see Isolation) are pushed in rounds, while no other push is under way. A suspect
 * document is read before its round. A batch of documents that is being read when a round begins
 * leaves when the round is over.
 */
export class Uplink {
  readonly #deps: UplinkDeps;
  readonly #backlog: Backlog;
  readonly #confirm: ConfirmLoop;
  readonly #removals: Removals;
  readonly #attribution: FailureAttribution;
  readonly #isolation: Isolation;
  readonly #work: Background;
  readonly #pushing = new HealthCheck('push', 'items that are due are not pushed', {
    busy: () => this.#mayPush(),
  });
  readonly #packing = new HealthCheck('packing', 'a batch is not read from the disk', {
    limitMs: LONGEST_PACKING_MS,
    waits: () => this.#documentsTrouble !== undefined,
  });
  readonly #stopping = new AbortController();
  #loops: Promise<unknown> = Promise.resolve();
  #unsubscribe: () => void = () => {};
  #isRunning = false;
  /** How many batches of documents are being read, or wait for the end of a round. */
  #reading = 0;
  /** The lane of the last batch that was taken from the backlog. */
  #lastLane: PushLane = 'document';
  /** Resolves at the end of the round in which suspects are pushed, and nothing else. */
  #round: Promise<void> | undefined;
  /** A suspect document that was read for its round. One at a time: its text is in memory. */
  #ahead: ReadAhead | undefined;
  #isReadingAhead = false;

  constructor(deps: UplinkDeps) {
    this.#deps = deps;
    this.#backlog = new Backlog(deps, () => this.#work.notify());
    this.#isolation = new Isolation(deps, (item) => !isDocument(item) || this.#isAhead(item));
    this.#attribution = new FailureAttribution(deps, this.#isolation);
    this.#confirm = new ConfirmLoop(deps, this.#attribution);
    this.#removals = new Removals(deps, this.#backlog);
    this.#work = new Background(deps.clock);
  }

  /**
   * Starts the loops. `onFailure` is called with an error that ended one of them, which is a bug or
   * a disk that fails.
   */
  start(onFailure: (error: unknown) => void): void {
    this.#loops = this.#run(this.#stopping.signal, onFailure).catch(onFailure);
  }

  async #run(signal: AbortSignal, onFailure: (error: unknown) => void): Promise<void> {
    const { dialect, state } = this.#deps;
    // What is to travel, and when it is looked up, depends on it.
    if (!(await dialect.known(signal))) return;
    // What is out is decided about when it is given back.
    this.#unsubscribe = state.onChange((after, _before, place) => {
      this.#removals.changed(place, after);
      if (!this.#backlog.changed(place, after)) this.#takeUp(place, after);
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

  /** Of the loops, while they run. */
  get health(): readonly HealthCheck[] {
    return this.#isRunning
      ? [this.#pushing, this.#packing, this.#confirm.health, this.#removals.health]
      : [];
  }

  status(): UplinkStatus {
    return {
      inFlight: this.#backlog.out,
      confirming: this.#deps.state.counts().accepted,
      timeToVisibleMs: this.#confirm.timeToVisibleMs,
      removalsFailing: this.#removals.failing,
      documentsTrouble: this.#documentsTrouble,
    };
  }

  get #documentsTrouble(): DocumentsTrouble | undefined {
    return this.#deps.documentsTrouble?.();
  }

  /** To be called whenever the root of a folder stands otherwise than before. */
  foldersChanged(): void {
    this.#backlog.foldersChanged();
    this.#removals.foldersChanged();
    this.#work.notify();
  }

  /**
   * Whether nothing is left to do until the state changes or a folder is back; false before it has
   * taken up what there is.
   */
  get isIdle(): boolean {
    const isApart = this.#round !== undefined;
    const isPushing =
      this.#work.size > 0 || isApart || !this.#backlog.isIdle || !this.#isolation.isIdle;
    return this.#isRunning && !isPushing && this.#confirm.isIdle && this.#removals.isIdle;
  }

  /** Whether the item is on its way to the peer at this moment. */
  isInFlight(place: Place): boolean {
    return this.#backlog.isOut(place);
  }

  /** When the item is looked up next. */
  nextLook(place: Place): NextLook | undefined {
    return this.#confirm.next(place);
  }

  /** A file that is not out has this record now, or none. */
  #takeUp(place: Place, entry: Entry | undefined): void {
    if (entry?.status === 'pending') {
      if (entry.inFlight !== undefined) this.#confirm.resume(entry, entry.inFlight);
      else if (!this.#isolation.take(entry)) this.#backlog.add(entry);
      this.#work.notify();
      return;
    }
    this.#attribution.forget(place);
    this.#backlog.delete(keyOf(place));
    this.#isolation.forget(place);
    if (entry?.status === 'accepted') this.#confirm.resume(entry, entry.sent);
  }

  async #step(signal: AbortSignal): Promise<void> {
    const { queue } = this.#deps;
    if (this.#backlog.wantsMore) await this.#takeUpMore();
    this.#readAhead();
    const lane = this.#nextLane();
    if (this.#isolation.isDue(this.#hasDue)) {
      this.#round = this.#pushApart(signal).finally(() => {
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

  async #takeUpMore(): Promise<void> {
    for (const entry of await this.#backlog.more())
      if (!this.#backlog.holds(entry)) this.#takeUp(entry, entry);
  }

  get #hasDue(): boolean {
    return LANES.some((lane) => this.#backlog.hasDue(lane));
  }

  /** The lane whose turn it is, if a batch can be taken from one. */
  #nextLane(): PushLane | undefined {
    const open = LANES.filter((lane) => this.#backlog.hasDue(lane) && !this.#isFull(lane));
    return open.find((lane) => lane !== this.#lastLane) ?? open[0];
  }

  /**
   * One extra batch is prepared ahead, so sending never waits for the disk. Documents that are
   * being read do not count: one batch of them is read at a time.
   */
  #isFull(lane: PushLane): boolean {
    if (lane === 'document' && this.#reading > 0) return true;
    return this.#work.size - this.#reading > this.#deps.settings.push.concurrency;
  }

  /** Whether something is due, and nothing keeps it from being pushed. */
  #mayPush(): boolean {
    if (this.#round !== undefined || this.#nextLane() === undefined) return false;
    return !this.#isolation.isDue(true) && this.#deps.queue.hasRoom('push');
  }

  /** Takes due items until the batch is full or has waited for `push.linger`. */
  async #gather(lane: PushLane, signal: AbortSignal): Promise<PendingItem[]> {
    const { clock, settings } = this.#deps;
    const { maxItems, maxBytes, linger } = settings.push;
    const batch: PendingItem[] = [];
    const end = clock.now() + linger;
    let bytes = 0;
    let isFull = false;
    const accepts = (item: PendingItem) => {
      const isAlone = this.#attribution.isSuspect(item);
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
      if (this.#backlog.wantsMore) await this.#takeUpMore();
      else await this.#work.wait(Math.min(left, this.#backlog.nextPassInMs));
    }
  }

  /** Reads the next suspect document, unless one is being read or waits for its round. */
  #readAhead(): void {
    const { dialect, pathOf } = this.#deps;
    const rules = dialect.current?.content;
    if (this.#isReadingAhead || rules === undefined) return;
    let next: PendingItem | undefined;
    for (const item of this.#isolation.ready()) {
      if (this.#isAhead(item)) return;
      if (isDocument(item) && pathOf(item) !== undefined) next ??= item;
    }
    this.#ahead = undefined;
    if (next === undefined || !this.#backlog.takeOut(next)) return;
    this.#isolation.forget(next);
    this.#isReadingAhead = true;
    this.#work.start(this.#readSuspect(next, rules));
  }

  async #readSuspect(item: PendingItem, rules: ContentRules): Promise<void> {
    this.#reading += 1;
    try {
      const [content] = await this.#packing.during(() => this.#pack([item], rules));
      if (content?.kind === 'content') this.#ahead = { item, content, rules };
      else this.#settle([item], [content], rules);
    } finally {
      this.#reading -= 1;
      this.#isReadingAhead = false;
    }
    await this.#deps.state.commit();
    this.#release(item);
  }

  /** Whether this version was read for its round. */
  #isAhead(item: PendingItem): boolean {
    const { item: read, rules } = this.#ahead ?? {};
    const isSame = read !== undefined && keyOf(read) === keyOf(item);
    return (
      isSame &&
      stillPending(item, read) !== undefined &&
      rules === this.#deps.dialect.current?.content
    );
  }

  /**
   * Pushes suspects while no other push is under way, so that they are in an update of the index of
   * their own.
   */
  async #pushApart(signal: AbortSignal): Promise<void> {
    const { clock, queue } = this.#deps;
    while (this.#work.size > this.#reading) await this.#work.wait(POLL_MS);
    await this.#isolation.round(async (item) => {
      this.#backlog.takeOut(item);
      await queue.ready('push', signal);
      // A synchronous push of a URL that its network does not take is an error to a YaCy.
      await this.#deliver([item], 'text', this.#attribution.hasShownLike(item.url));
      return this.#confirm.commitIndex(clock.now());
    }, signal);
  }

  /** @param synchronous whether the peer is to answer only when it has indexed the batch */
  async #deliver(
    batch: readonly PendingItem[],
    lane: PushLane,
    synchronous = this.#deps.settings.push.synchronous,
  ): Promise<void> {
    const { dialect, state } = this.#deps;
    const spoken = dialect.current;
    if (spoken === undefined) throw new Error('a batch was gathered before the dialect was known');
    this.#pushing.progress();
    const documents = await this.#packing.during(() => this.#read(batch, lane, spoken.content));
    await state.commit();
    const before = this.#attribution.successes;
    const results = await sendBatch(this.#deps, documents, spoken, synchronous);
    const taken = documents.flatMap((document, i) => this.#accept(document, results[i]) ?? []);
    if (taken.length > 0) this.#attribution.succeeded(taken);
    for (const [i, { item }] of documents.entries()) {
      const result = results[i];
      if (result !== undefined && result.kind !== 'accepted')
        await this.#fail(item, result, before);
    }
    this.#isolation.pushed();
    await state.commit();
    this.#confirm.watch(taken);
    for (const item of batch) this.#release(item);
  }

  /**
   * Prepares a batch of a lane. A batch of documents is counted as being read meanwhile, and leaves
   * in no round.
   */
  async #read(
    batch: readonly PendingItem[],
    lane: PushLane,
    rules: ContentRules,
  ): Promise<PreparedDocument[]> {
    if (lane === 'text') return await this.#prepare(batch, rules);
    this.#reading += 1;
    try {
      const documents = await this.#prepare(batch, rules);
      while (this.#round !== undefined) await this.#round.catch(() => {});
      return documents;
    } finally {
      this.#reading -= 1;
      this.#work.notify();
    }
  }

  /** An item that is out as it stands now, if it is still to be pushed. */
  #current(item: PendingItem): PendingItem | undefined {
    return stillPending(this.#backlog.current(item), item);
  }

  /** Brings a positive result to the state. @returns the item if it is to be looked up */
  #accept(document: PreparedDocument, result: PushResult | undefined): AcceptedItem | undefined {
    if (result?.kind !== 'accepted') return undefined;
    const { clock, state } = this.#deps;
    const sent = dated(document, result.at, result.peerAt);
    const now = this.#backlog.current(document.item);
    const current = stillPending(now, document.item);
    const after = current && accepted(current, sent, clock.now());
    if (after !== undefined) state.put(after);
    // The file changed or went while this version travelled: what the peer took is remembered with
    // what is there now.
    else if (now !== undefined && now.status !== 'accepted' && now.status !== 'confirmed')
      state.put(overtaken(now, sent, clock.now()));
    return after;
  }

  /**
   * Brings a negative result to the state. @param before how many pushes had gone through when this
   * one began
   */
  async #fail(item: PendingItem, result: PushResult, before: number): Promise<void> {
    const { clock, state } = this.#deps;
    const current = this.#current(item);
    if (result.kind === 'failed') await this.#attribution.failedAlone(item, result.trouble, before);
    else if (result.kind === 'unanswered') this.#attribution.unanswered(item);
    else if (current === undefined) return;
    else if (result.kind === 'refused') this.#attribution.refused(current, result.words);
    else if (result.kind === 'stale') this.#putOff(current);
    else if (result.kind === 'returned') state.put(returned(current, clock.now(), result.trouble));
  }

  /** Leaves a file alone that changed under our hands, and has it looked at. */
  #putOff(item: PendingItem): void {
    const { clock, look, state } = this.#deps;
    state.put(returned(item, clock.now() + STALE_PAUSE_MS));
    look(item);
  }

  #release(taken: PendingItem): void {
    const { pathOf } = this.#deps;
    const entry = this.#backlog.giveBack(taken);
    if (entry !== taken) this.#takeUp(taken, entry);
    // It was left as it was, and waits for a scan of its folder.
    else if (!this.#isolation.take(entry))
      this.#backlog.add(entry, pathOf(entry) === undefined ? SCAN_PAUSE_MS : 0);
  }

  async #prepare(batch: readonly PendingItem[], rules: ContentRules): Promise<PreparedDocument[]> {
    return this.#settle(batch, await this.#pack(batch, rules), rules);
  }

  /** Reads a batch, unless it is a suspect document that was read before. */
  async #pack(
    batch: readonly PendingItem[],
    rules: ContentRules,
  ): Promise<readonly (Packed | undefined)[]> {
    const { extracts, linksWithin, pathOf, settings } = this.#deps;
    const [first] = batch;
    if (this.#ahead !== undefined && first !== undefined && this.#isAhead(first)) {
      const { content } = this.#ahead;
      this.#ahead = undefined;
      return [content];
    }
    const files = batch.map((item) => ({
      file: pathOf(item) ?? '',
      linksWithin: linksWithin(item.folder),
      version: item.version,
      isExtracted: extracts(item.folder),
    }));
    const onProgress = () => this.#packing.progress();
    const { maxBytes } = settings.push;
    return await packAll(this.#deps, { rules, files, maxBytes }, onProgress);
  }

  /**
   * Marks what is to travel as leaving, and what it replaces in the peer as replaced, in memory: to
   * be committed before it does. A file that is not the expected version any more, or cannot be
   * read, is settled here. An item that the configuration has at another URL now, or at none, is
   * left as it is, and so is one that cannot be told while its folder is held.
   *
   * @param contents what was read of each item of the batch
   */
  #settle(
    batch: readonly PendingItem[],
    contents: readonly (Packed | undefined)[],
    rules: ContentRules,
  ): PreparedDocument[] {
    const { pathOf, standing } = this.#deps;
    const documents: PreparedDocument[] = [];
    for (const [i, taken] of batch.entries()) {
      const item = this.#current(taken);
      const content = contents[i];
      // At its old URL it could replace what another folder has there now: a scan gives it the new
      // one, or lets it go.
      if (content === undefined || item === undefined || pathOf(item) === undefined) continue;
      const isHere = standing(item.folder) === 'there';
      // Without its hash, so that the next look that can read it takes it up again.
      const stat = fileStat(item.version);
      if (content.kind === 'content') documents.push(this.#leave(item, content, rules));
      else if (content.kind === 'wordless') this.#skip(item, withoutWords(content.reader));
      else if (content.kind === 'refused') this.#attribution.quarantine(item, content.trouble);
      else if (content.kind === 'tooLarge')
        this.#attribution.quarantine(item, tooLarge(stat.size, rules.maxBytes));
      else if (content.kind === 'unreadable' && isHere)
        this.#attribution.quarantine(item, unreadable(content.code), stat);
      else if (content.kind === 'stale' && isHere) this.#putOff(item);
    }
    return documents;
  }

  /** Skips a file in which there is no word. */
  #skip(item: PendingItem, why: Trouble): void {
    const { clock, log, state } = this.#deps;
    const { folder, path } = item;
    state.put(skipped(item, item, fileStat(item.version), why, clock.now()));
    if (wasSkippedFor(item, why)) return;
    const words = `skipped ${placeName(item)}: ${why.message} ${why.hint}`;
    log.info({ event: 'skipped', folder, path, code: why.code }, words);
  }

  #leave(
    item: PendingItem,
    content: PreparedDocument['content'],
    rules: ContentRules,
  ): PreparedDocument {
    const { clock, state } = this.#deps;
    const { url, collection, version } = item;
    const { size, digest, words = 0, extracted } = content;
    const now = clock.now();
    const shownWords = rules.showsWords && words >= FEWEST_WORDS ? { words } : {};
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
   * Other files of which the peer was sent a document at the URL of this one: those of folders that
   * had another name, URL or place in an earlier configuration. The last push to a URL is what the
   * peer has there, so what was sent for them counts no more.
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
 * What was sent, with when that was by both clocks, and with the last modification in whole seconds
 * where the peer will keep it: YaCy puts its own clock's time in the place of one that is later,
 * and 1970 in the place of an earlier one.
 */
function dated({ item, content, sent }: PreparedDocument, at: number, peerAt?: number): Sent {
  const lastModified = Math.floor(item.version.mtimeMs / 1000) * 1000;
  const isKept =
    content.type !== '' && lastModified > 0 && lastModified <= (peerAt ?? at - CLOCKS_APART_MS);
  return {
    ...sent,
    at,
    ...(peerAt === undefined ? {} : { peerAt }),
    ...(isKept ? { lastModified } : {}),
  };
}

function tooLarge(bytes: number, most = 0): Trouble {
  return {
    code: 'TOO_LARGE_FOR_PEER',
    message: `The file has ${bytes} bytes, and this kind of peer bears ${most} in one document.`,
    hint: 'Split it, or keep such files from being taken up with maxFileSize of the folder.',
  };
}

function unreadable(code: string): Trouble {
  return {
    code: 'UNREADABLE',
    message: `The file could not be read: ${code}.`,
    hint: 'Let the user that peersync runs as read it; it is noticed at the next scan, or at once by `peersync retry PATH`.',
  };
}
