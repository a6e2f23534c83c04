import { lstat, stat } from 'node:fs/promises';
import { systemCode } from '../lib/errors.js';
import { sameStat } from '../lib/file.js';
import type { HealthCheck } from '../lib/health.js';
import type { ItemKey } from '../state/entries.js';
import {
  claims,
  contentOf,
  type Entry,
  type Failure,
  itemName,
  type RemovingItem,
} from '../state/entry.js';
import { isRenamed } from '../state/history.js';
import type { State } from '../state/state.js';
import { removed } from '../state/transitions.js';
import { holdMs, itemKeyText, type UplinkDeps } from './deps.js';
import { type Again, type Answer, type Judge, LookUp, type Verdict } from './look-up.js';
import { LookUpLoop } from './look-up-loop.js';
import { MAX_IN_MEMORY } from './ready-queue.js';

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

/** A removal that the peer was asked for. */
interface Requested<Removal> {
  readonly removal: Removal;
  /** Whether the peer accepted this run's request. */
  readonly isAccepted: boolean;
}

interface RemovalLookUpsOptions<Removal> {
  /** Starts a pass over the entries that are being removed. */
  readonly entries: () => AsyncGenerator<Iterable<Entry>>;
  /** Called for each entry of a pass. */
  readonly onFound: (entry: Entry) => void;
  /** Called when the document has to be removed by another request. */
  readonly onStillShown: (removal: Removal, failure: Failure) => void;
}

/**
 * Looks up the documents of requested removals until the peer does not show them any more.
 *
 * The first look-up is due when the hold after the request is over (see LookUp). A look-up has one
 * of these results:
 *
 * - the document is not shown: the item is `removed`;
 * - it is still shown, and the peer accepted the request: it is looked up again, and requested
 *   again if it is shown for longer than `confirm.timeout`, while the peer answered;
 * - it is still shown, and no answer to the request was recorded: it is requested again at once;
 * - the look-up failed: it is looked up again, because that proves nothing.
 */
export class RemovalLookUps<Removal extends ItemKey>
  implements Judge<Requested<Removal>, RemovingItem>
{
  readonly #deps: UplinkDeps;
  readonly #options: RemovalLookUpsOptions<Removal>;
  readonly #lookUps: LookUpLoop<Requested<Removal>, RemovingItem>;

  constructor(deps: UplinkDeps, options: RemovalLookUpsOptions<Removal>) {
    this.#deps = deps;
    this.#options = options;
    this.#lookUps = new LookUpLoop<Requested<Removal>, RemovingItem>(deps, this, {
      name: 'removal-look-up',
      what: 'removed documents are not looked up',
      maxInMemory: deps.maxInMemory ?? MAX_IN_MEMORY,
      maxWaitForPushMs: 0,
      entries: options.entries,
      onFound: options.onFound,
    });
  }

  get health(): HealthCheck {
    return this.#lookUps.health;
  }

  get isIdle(): boolean {
    return this.#lookUps.isIdle;
  }

  /** Whether the document waits for a look-up or is being looked up. */
  has(key: string): boolean {
    return this.#lookUps.get(key) !== undefined;
  }

  delete(key: string): void {
    this.#lookUps.delete(key);
  }

  foldersChanged(): void {
    this.#lookUps.deleteAll(
      ({ removal }) => this.#deps.folders.stateOf(removal.folder) === 'missing',
    );
    this.#lookUps.startOver();
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#lookUps.run(signal);
  }

  /** Schedules the look-up after a request that the peer accepted, or did not answer. */
  begin(removal: Removal, item: RemovingItem, answer: 'accepted' | 'unanswered'): void {
    const due = this.#deps.clock.now() + holdMs(this.#deps);
    const subject = { removal, isAccepted: answer === 'accepted' };
    this.#add(subject, item, due, 'new');
  }

  /**
   * Schedules the look-up of a removal that an earlier run requested, or that was dropped from
   * memory.
   */
  resume(removal: Removal, item: RemovingItem, requestedAt: number): void {
    // A time in the future comes from an earlier run whose clock was wrong.
    const due = Math.min(this.#deps.clock.now(), requestedAt) + holdMs(this.#deps);
    const mode = this.#lookUps.hasOverflowed ? 'unexpected' : 'new';
    this.#add({ removal, isAccepted: false }, item, due, mode);
  }

  #add(
    subject: Requested<Removal>,
    { url }: RemovingItem,
    due: number,
    mode: 'new' | 'unexpected',
  ): void {
    const key = itemKeyText(subject.removal);
    this.#lookUps.add(new LookUp(subject, { key, url, due, mode, isEvictable: true }));
  }

  judge({ subject }: LookUp<Requested<Removal>>, answer: Answer): Verdict<RemovingItem> {
    const item = this.#requestedItem(subject.removal);
    if (item === undefined) return { kind: 'void' };
    if (answer.kind !== 'document') return { kind: 'unusable', why: answer.failure.message };
    const { current: dialect } = this.#deps.dialect;
    if (dialect === undefined) return { kind: 'unusable', why: 'the kind of peer is not known' };
    return dialect.isRemoved(answer.doc)
      ? { kind: 'expected', found: item }
      : { kind: 'unexpected', why: 'the peer still shows the document' };
  }

  #requestedItem({ folder, path }: ItemKey): RemovingItem | undefined {
    const entry = this.#deps.state.get(folder, path);
    return entry?.status === 'removing' && entry.requestedAt !== undefined ? entry : undefined;
  }

  async settled(_: LookUp<Requested<Removal>>, item: RemovingItem): Promise<void> {
    const { clock, log, state } = this.#deps;
    const { folder, path, url } = item;
    state.put(removed(item, clock.now(), 'the peer does not show it any more'));
    await state.commit();
    // A rename has its own log line.
    const level = isRenamed(item) ? 'debug' : 'info';
    log[level]({ event: 'removed', folder, path, url }, `removed ${itemName(item)} from the peer`);
  }

  async whenAgain(
    { subject: { isAccepted, removal } }: LookUp<Requested<Removal>>,
    answer: Answer,
  ): Promise<Again> {
    const { requestedAt } = this.#requestedItem(removal) ?? {};
    if (requestedAt === undefined) return 'never';
    if (answer.kind !== 'document') return 'later';
    return isAccepted && !this.#isOver(requestedAt) ? 'later' : 'never';
  }

  async unsettled(
    { subject: { isAccepted, removal } }: LookUp<Requested<Removal>>,
    _: Answer,
    again: Again,
  ): Promise<void> {
    if (again !== 'never') return;
    this.#options.onStillShown(removal, isAccepted ? NOT_REMOVED : UNANSWERED);
    await this.#deps.state.commit();
  }

  /** Whether the peer answered for long enough since the request to show that it took effect. */
  #isOver(requestedAt: number): boolean {
    const { clock, queue, settings } = this.#deps;
    const timeoutMs = Math.max(settings.confirm.timeout, 2 * holdMs(this.#deps));
    return Math.min(clock.now() - requestedAt, queue.answeringForMs) >= timeoutMs;
  }
}

/** Longest time that a file that came back may take to be stable and read, in ms. */
const LONGEST_RETURN_MS = 5 * 60_000;

/** One document that is being removed. */
export interface Removal extends ItemKey {
  /** Whether it is sent in a request of its own, because a request with others failed. */
  inOwnRequest: boolean;
  /** The time since which its file has been there again, in ms since the epoch. */
  backSince?: number;
}

/**
 * Whether documents of the folder may be removed: not while it is missing, but also when it is not
 * in the configuration any more.
 */
export function mayRemoveFrom({ folders }: UplinkDeps, folder: string): boolean {
  return folders.stateOf(folder) !== 'missing';
}

export function removingItem(
  { state }: UplinkDeps,
  { folder, path }: ItemKey,
): RemovingItem | undefined {
  const entry = state.get(folder, path);
  return entry?.status === 'removing' ? entry : undefined;
}

/**
 * Decides whether a removal may be requested. It is *blocked*
 *
 * - while a file with the same content is being pushed or confirmed;
 * - while another file that is there has its URL and was not pushed;
 * - while its own file is there again, or, for a file that a rule keeps out, has another version
 *   than the skipped one.
 */
export class RemovalBlocks {
  readonly #deps: UplinkDeps;
  readonly #contentsInTransit: ContentsInTransit;

  constructor(deps: UplinkDeps) {
    this.#deps = deps;
    this.#contentsInTransit = new ContentsInTransit(deps.state);
  }

  /** Called when the record of an item changed. */
  note(entry: Entry): void {
    this.#contentsInTransit.note(entry);
  }

  /** Searches the state for files with the contents of these removals, for `isRenamed`. */
  async search(removals: readonly Removal[]): Promise<void> {
    await this.#contentsInTransit.search(removals.map((each) => this.#contentOf(each) ?? ''));
  }

  /** Whether a file with the same content is being pushed or confirmed. */
  isRenamed(place: ItemKey): boolean {
    return this.#contentsInTransit.has(this.#contentOf(place));
  }

  /**
   * Returns the item if its removal is not blocked. If the document belongs to another file now,
   * the removal is completed without a request.
   */
  async unblockedItem(removal: Removal): Promise<RemovingItem | undefined> {
    const { clock, folders, state } = this.#deps;
    const isBack = await this.#isBack(removal);
    const item = removingItem(this.#deps, removal);
    if (item === undefined || this.isRenamed(removal) || !mayRemoveFrom(this.#deps, item.folder))
      return undefined;
    const now = clock.now();
    if (isBack) {
      removal.backSince ??= now;
      folders.recheck(item);
      if (now - removal.backSince < LONGEST_RETURN_MS) return undefined;
    }
    const owner = state.entries.ownerOf(item.url, item);
    if (owner === undefined) return item;
    // The other file will replace the document when it is pushed.
    if (!isInTransit(owner) || claims(owner, item.url))
      state.put(removed(item, now, 'another file has its address now'));
    return undefined;
  }

  async #isBack(place: ItemKey): Promise<boolean> {
    const item = removingItem(this.#deps, place);
    const file = item && this.#deps.folders.pathOf(item);
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

  #contentOf(place: ItemKey): string | undefined {
    const item = removingItem(this.#deps, place);
    return item && contentOf(item);
  }
}

/**
 * Finds renamed files: which of the removed contents are being pushed or confirmed as another file.
 *
 * `search` goes through the state. From then on `note` must be called with every change of an item,
 * until the next search.
 */
class ContentsInTransit {
  readonly #state: Pick<State, 'counts' | 'entries'>;
  readonly #searched = new Set<string>();
  readonly #found = new Set<string>();

  constructor(state: Pick<State, 'counts' | 'entries'>) {
    this.#state = state;
  }

  /** Searches for these contents, and forgets those of the last search. */
  async search(contents: Iterable<string>): Promise<void> {
    this.#searched.clear();
    this.#found.clear();
    for (const content of contents) this.#searched.add(content);
    const { accepted, pending } = this.#state.counts();
    if (accepted + pending === 0) return;
    for await (const slice of this.#state.entries.slices({ status: ['pending', 'accepted'] }))
      for (const entry of slice) this.note(entry);
  }

  /** Called when an item changed. */
  note(entry: Entry): void {
    const content = contentOf(entry);
    if (content !== undefined && this.#searched.has(content) && isInTransit(entry))
      this.#found.add(content);
  }

  has(content: string | undefined): boolean {
    return content !== undefined && this.#found.has(content);
  }
}

/** Whether an item is being pushed or confirmed. */
function isInTransit({ status }: Entry): boolean {
  return status === 'pending' || status === 'accepted';
}
