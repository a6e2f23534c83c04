import { PeersyncError } from '../lib/errors.js';
import type { ItemKey } from '../state/entries.js';
import { type AcceptedItem, type Entry, itemName, type Sent } from '../state/entry.js';
import { removing } from '../state/transitions.js';
import { Background, type Deps, itemKeyText } from './deps.js';
import { isVerifiable, type Verifiable, verify, whyBack } from './verify.js';

/**
 * Times after a push that was not answered at which its document is looked up, in ms. A kernel
 * gives up a request that it cannot deliver about 2 minutes after the program has ended, and about
 * 16 minutes after the first attempt if the program goes on.
 */
const LOOK_UP_AFTER_MS = [30_000, 180_000, 1_020_000] as const;
/** Delay before documents are looked up again when the peer did not answer, in ms. */
const AGAIN_MS = 30_000;
/** The most items whose unanswered pushes are remembered. The audit looks up the others. */
const MAX_ITEMS = 10_000;
/** How often an accepted item is pushed again, at most, before the usual time to show it is over. */
const MAX_EARLY_PUSHES = 3;

/** The document that a push brings to the peer: the record of the push, or what is known of it. */
type PushedVersion = Sent | Pick<Sent, 'sha256' | 'url'>;

/** A push of one item that may still arrive at the peer. */
export interface UnansweredPush extends ItemKey {
  readonly version: PushedVersion;
}

interface UnansweredItem {
  readonly place: ItemKey;
  readonly versions: PushedVersion[];
  /** The number of look-ups since the latest push, and the time of the next one. */
  lookUps: number;
  since: number;
  due: number;
  earlyPushes: number;
}

/**
 * The pushes that were never answered, and may still arrive at the peer: from the buffers of a
 * kernel, from a proxy, or from a thread of the peer that takes long. Such a push would put an
 * older version in the place of a newer one, or bring a removed document back.
 *
 * An item that was confirmed or removed since is looked up some times, until no such push can be
 * under way any more, and pushed or removed again if it deviates (see `verify`). An accepted item
 * is pushed again as soon as the peer should have shown it (`mayBeReplaced`). Nothing is done for
 * an item whose version is that of the unanswered push. If the peer shows nothing by which versions
 * differ, such an item is pushed again each time.
 *
 * They are remembered in memory. After a restart, those are known that the state shows: the last
 * push of an item was not answered.
 */
export class UnansweredPushes {
  readonly #deps: Deps;
  readonly #work: Background;
  readonly #items = new Map<string, UnansweredItem>();

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#work = new Background(deps.clock);
  }

  /** Remembers a push. */
  add({ folder, path, version }: UnansweredPush): void {
    const now = this.#deps.clock.now();
    const place = { folder, path };
    const key = itemKeyText(place);
    const known = this.#items.get(key);
    const versions = known?.versions ?? [];
    if (!versions.some((other) => isSame(other, version))) versions.push(version);
    const due = now + LOOK_UP_AFTER_MS[0];
    const earlyPushes = known?.earlyPushes ?? 0;
    // The oldest come first, and leave first.
    this.#items.delete(key);
    this.#items.set(key, { place, versions, lookUps: 0, since: now, due, earlyPushes });
    const [oldest] = this.#items.keys();
    if (this.#items.size > MAX_ITEMS && oldest !== undefined) this.#items.delete(oldest);
    this.#work.notify();
  }

  /** Remembers the push of a record that shows one, unless it is known. */
  addFrom(entry: Entry): void {
    const inFlight = entry.status === 'pending' ? entry.inFlight : undefined;
    const push = inFlight ?? (entry.sent?.isUncertain ? entry.sent : undefined);
    if (push === undefined) return;
    const known = this.#items.get(itemKeyText(entry));
    if (known?.versions.some((version) => isSame(version, push))) return;
    this.add({ folder: entry.folder, path: entry.path, version: push });
  }

  /**
   * Whether another version may have taken the place of an accepted item, so that it is pushed
   * again when the peer should have shown it, and not only when the usual time is over. That is so
   * for a few pushes only: the peer may also be slow.
   */
  mayBeReplaced(item: AcceptedItem): boolean {
    const unanswered = this.#items.get(itemKeyText(item));
    return (
      unanswered !== undefined &&
      unanswered.earlyPushes < MAX_EARLY_PUSHES &&
      unanswered.versions.some((version) => !isSame(version, item.sent))
    );
  }

  /** Called when an accepted item is pushed again because of `mayBeReplaced`. */
  pushedEarly(item: AcceptedItem): void {
    const unanswered = this.#items.get(itemKeyText(item));
    if (unanswered !== undefined) unanswered.earlyPushes += 1;
  }

  /** Looks documents up until the stop. */
  run(signal: AbortSignal): Promise<void> {
    return this.#work.loop(() => this.#step(signal), signal);
  }

  async #step(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const due = [...this.#items.values()].filter((item) => item.due <= clock.now());
    if (due.length > 0) await this.#lookUp(due, signal);
    const next = [...this.#items.values()].reduce(
      (earliest, item) => Math.min(earliest, item.due),
      Number.POSITIVE_INFINITY,
    );
    await this.#work.wait(next - clock.now());
  }

  async #lookUp(items: readonly UnansweredItem[], signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const documents = items.flatMap((item) => this.#replaceable(item) ?? []);
    try {
      for await (const _ of verify(documents, this.#deps, {
        lane: 'audit',
        repair: true,
        evidence: 'versionSpecific',
        signal,
      }));
      for (const item of items) await this.#removeIfSkipped(item, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof PeersyncError)) throw error;
      for (const item of items) item.due = clock.now() + AGAIN_MS;
      return;
    }
    for (const item of items) {
      item.lookUps += 1;
      const after = LOOK_UP_AFTER_MS[item.lookUps];
      if (after !== undefined) item.due = item.since + after;
      // It may have been pushed without an answer again meanwhile.
      else if (this.#items.get(itemKeyText(item.place)) === item)
        this.#items.delete(itemKeyText(item.place));
    }
  }

  /**
   * Has the document of a file removed again that a rule keeps out and that the peer shows. `verify`
   * looks up no skipped files: nothing of theirs is in the peer.
   */
  async #removeIfSkipped({ place, versions }: UnansweredItem, signal: AbortSignal): Promise<void> {
    const { clock, log, peer, queue, state } = this.#deps;
    for (const sent of versions) {
      const isSkipped = state.entries.statusOf(place.folder, place.path) === 'skipped';
      if (!isSkipped || !('at' in sent)) continue;
      const { url } = sent;
      const doc = await queue.run('audit', (s) => peer.peerdoc({ url }, { signal: s }), { signal });
      const entry = state.get(place.folder, place.path);
      const why = whyBack(this.#deps, { ...place, url, collection: sent.collection }, doc);
      if (entry?.status !== 'skipped' || entry.sent !== undefined || why === undefined) continue;
      state.put(removing({ ...entry, sent }, clock.now(), why));
      await state.commit();
      log.warn({ event: 'back', ...place, url }, `removed again: ${itemName(entry)}: ${why}`);
    }
  }

  /** Returns the present record of an item if another version can take its place in the peer. */
  #replaceable({ place: { folder, path }, versions }: UnansweredItem): Verifiable | undefined {
    const entry = this.#deps.state.get(folder, path);
    if (entry === undefined || !isVerifiable(entry)) return undefined;
    if (entry.status === 'removed') return entry;
    return versions.some((version) => !isSame(version, entry.sent)) ? entry : undefined;
  }
}

function isSame(a: Pick<Sent, 'sha256' | 'url'>, b: Pick<Sent, 'sha256' | 'url'>): boolean {
  return a.sha256 === b.sha256 && a.url === b.url;
}
