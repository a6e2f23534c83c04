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
/** The most versions of one item that are remembered. */
const MAX_VERSIONS = 8;
/** The most times that an accepted item is pushed again before the usual time is over. */
const MAX_EARLY_PUSHES = 3;

/** The document that a push brings to the peer: the record of the push, or what is known of it. */
type PushedVersion = Sent | Pick<Sent, 'sha256' | 'url'>;

/** A push of one item that may still arrive at the peer. */
export interface UnansweredPush extends ItemKey {
  readonly version: PushedVersion;
}

/** A version of an item whose push was not answered. All times are in ms since the epoch. */
interface UnansweredVersion {
  readonly place: ItemKey;
  readonly version: PushedVersion;
  readonly since: number;
  /** The number of look-ups, and the time of the next one. */
  lookUps: number;
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
  /** The versions of each item. The item that had a push last is at the end. */
  readonly #items = new Map<string, readonly UnansweredVersion[]>();

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#work = new Background(deps.clock);
  }

  /** Remembers a push. */
  add({ folder, path, version }: UnansweredPush): void {
    const since = this.#deps.clock.now();
    const place = { folder, path };
    const known = this.#find(place, version);
    const added = {
      place,
      version: isRecord(version) ? version : (known?.version ?? version),
      since,
      lookUps: 0,
      due: since + LOOK_UP_AFTER_MS[0],
      earlyPushes: known?.earlyPushes ?? 0,
    };
    const others = this.#versionsOf(place).filter((other) => !isSamePush(other.version, version));
    const key = itemKeyText(place);
    this.#items.delete(key);
    this.#items.set(key, [...others, added].slice(-MAX_VERSIONS));
    const [oldest] = this.#items.keys();
    if (this.#items.size > MAX_ITEMS && oldest !== undefined) this.#items.delete(oldest);
    this.#work.notify();
  }

  /** Remembers the push of a record that shows one, unless it is known. */
  addFrom(entry: Entry): void {
    const { folder, path } = entry;
    const inFlight = entry.status === 'pending' ? entry.inFlight : undefined;
    // Other pushes than the one in flight may have been answered, and lost by the peer later.
    const version = inFlight ?? (entry.sent?.isUncertain ? entry.sent : undefined);
    if (version === undefined) return;
    const known = this.#find(entry, version)?.version;
    const isKnown = inFlight === undefined ? known !== undefined : atOf(known) === inFlight.at;
    if (!isKnown) this.add({ folder, path, version });
  }

  /**
   * Whether another version may have taken the place of an accepted item, so that it is pushed
   * again when the peer should have shown it, and not only when the usual time is over. That is so
   * for a few pushes only: the peer may also be slow.
   */
  mayBeReplaced(item: AcceptedItem): boolean {
    return this.#versionsOf(item).some(
      ({ earlyPushes, version }) =>
        earlyPushes < MAX_EARLY_PUSHES && !isSamePush(version, item.sent),
    );
  }

  /** Called when an accepted item is pushed again because of `mayBeReplaced`. */
  pushedEarly(item: AcceptedItem): void {
    for (const each of this.#versionsOf(item)) each.earlyPushes += 1;
  }

  #versionsOf(place: ItemKey): readonly UnansweredVersion[] {
    return this.#items.get(itemKeyText(place)) ?? [];
  }

  #find(place: ItemKey, version: PushedVersion): UnansweredVersion | undefined {
    return this.#versionsOf(place).find((each) => isSamePush(each.version, version));
  }

  /** Looks documents up until the stop. */
  run(signal: AbortSignal): Promise<void> {
    return this.#work.loop(() => this.#step(signal), signal);
  }

  async #step(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const due = [...this.#items.values()].flat().filter((each) => each.due <= clock.now());
    if (due.length > 0) await this.#lookUp(due, signal);
    const next = [...this.#items.values()]
      .flat()
      .reduce((earliest, each) => Math.min(earliest, each.due), Number.POSITIVE_INFINITY);
    await this.#work.wait(next - clock.now());
  }

  async #lookUp(due: readonly UnansweredVersion[], signal: AbortSignal): Promise<void> {
    const documents = new Map(
      due.flatMap((each) => {
        const entry = this.#replaceable(each);
        return entry === undefined ? [] : [[itemKeyText(entry), entry] as const];
      }),
    );
    try {
      for await (const _ of verify(documents.values(), this.#deps, {
        lane: 'audit',
        repair: true,
        evidence: 'versionSpecific',
        signal,
      }));
    } catch (error) {
      this.#postpone(due, error, signal);
      return;
    }
    for (const each of due) {
      try {
        await this.#removeIfSkipped(each, signal);
        this.#lookedUp(each);
      } catch (error) {
        this.#postpone([each], error, signal);
      }
    }
  }

  /** Has versions looked after again a little later, after an error of the peer. */
  #postpone(due: readonly UnansweredVersion[], error: unknown, signal: AbortSignal): void {
    if (!(error instanceof PeersyncError) && !signal.aborted) throw error;
    for (const each of due) each.due = this.#deps.clock.now() + AGAIN_MS;
  }

  #lookedUp(each: UnansweredVersion): void {
    each.lookUps += 1;
    const after = LOOK_UP_AFTER_MS[each.lookUps];
    if (after !== undefined) each.due = each.since + after;
    else this.#forget(each);
  }

  #forget({ place, since, version }: UnansweredVersion): void {
    const key = itemKeyText(place);
    // The same version may have been pushed without an answer again meanwhile.
    const others = this.#versionsOf(place).filter(
      (other) => other.since !== since || !isSamePush(other.version, version),
    );
    if (others.length > 0) this.#items.set(key, others);
    else this.#items.delete(key);
  }

  /**
   * Has the document of a file removed again that a rule keeps out and that the peer shows.
   * `verify` looks up no skipped files: nothing of theirs is in the peer.
   */
  async #removeIfSkipped(
    { place, version: sent }: UnansweredVersion,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, log, peer, queue, state } = this.#deps;
    const isSkipped = state.entries.statusOf(place.folder, place.path) === 'skipped';
    if (!isSkipped || !isRecord(sent)) return;
    const { url } = sent;
    const doc = await queue.run('audit', (s) => peer.peerdoc({ url }, { signal: s }), { signal });
    const entry = state.get(place.folder, place.path);
    const why = whyBack(this.#deps, { ...place, url, collection: sent.collection }, doc);
    if (entry?.status !== 'skipped' || entry.sent !== undefined || why === undefined) return;
    state.put(removing({ ...entry, sent }, clock.now(), why));
    await state.commit();
    log.warn({ event: 'back', ...place, url }, `removed again: ${itemName(entry)}: ${why}`);
  }

  /** Returns the present record of an item if the version can take its place in the peer. */
  #replaceable({ place: { folder, path }, version }: UnansweredVersion): Verifiable | undefined {
    const entry = this.#deps.state.get(folder, path);
    if (entry === undefined || !isVerifiable(entry)) return undefined;
    return entry.status === 'removed' || !isSamePush(version, entry.sent) ? entry : undefined;
  }
}

function isRecord(version: PushedVersion): version is Sent {
  return 'at' in version;
}

function atOf(version: PushedVersion | undefined): number | undefined {
  return version !== undefined && isRecord(version) ? version.at : undefined;
}

/** Whether two pushes bring the same content to the same URL. */
export function isSamePush(
  a: Pick<Sent, 'sha256' | 'url'>,
  b: Pick<Sent, 'sha256' | 'url'>,
): boolean {
  return a.sha256 === b.sha256 && a.url === b.url;
}
