import { PeersyncError } from '../lib/errors.js';
import { type EvidenceKind, evidenceOf, type Peerdoc } from '../peer/peerdoc.js';
import type { ConfirmedItem, Entry, RemovedItem } from '../state/entry.js';
import { lostLater, placeName, removing } from '../state/entry.js';
import type { State } from '../state/state.js';
import { classify } from './batch-sender.js';
import { holdMs, type UplinkDeps } from './deps.js';

/** What can be looked up once more. */
export type Verifiable = ConfirmedItem | RemovedItem;

export const VERIFIABLE = ['confirmed', 'removed'] as const;

export function isVerifiable(entry: Entry): entry is Verifiable {
  return entry.status === 'confirmed' || entry.status === 'removed';
}

/**
 * All items that can be looked up once more, or so many of them by chance; and how many that are.
 */
export async function itemsToVerify(
  { entries }: Pick<State, 'entries'>,
  most = Number.POSITIVE_INFINITY,
): Promise<{
  readonly items: Iterable<Verifiable> | AsyncIterable<Verifiable>;
  readonly of: number;
}> {
  const { confirmed, removed } = entries.counts();
  const of = Math.min(most, confirmed + removed);
  if (most === Number.POSITIVE_INFINITY) return { items: verifiable(entries), of };
  const sample: Verifiable[] = [];
  let seen = 0;
  for await (const item of verifiable(entries)) {
    seen += 1;
    const place = seen <= most ? seen - 1 : Math.floor(Math.random() * seen);
    if (place < most) sample[place] = item;
  }
  return { items: sample, of };
}

async function* verifiable(entries: State['entries']): AsyncGenerator<Verifiable> {
  for await (const slice of entries.slices({ status: VERIFIABLE }))
    for (const item of slice) if (isVerifiable(item)) yield item;
}

/** An item that is not in the peer as it was left. */
export interface Deviation {
  /**
   * `lost`: confirmed, and the peer does not show that version any more; `back`: removed, and the
   * peer shows it again.
   */
  readonly kind: 'lost' | 'back';
  readonly file: string;
  readonly url: string;
  readonly why: string;
  /** Whether it is pushed, or removed, again. */
  readonly repaired: boolean;
}

/** How far it has come, now and then while look-ups are under way. */
export interface Verifying {
  readonly kind: 'verifying';
  readonly checked: number;
  /** How many items there are, where that was counted. */
  readonly of?: number;
  /** The deviations that were reported, and those that will be looked up once more. */
  readonly lost: number;
  readonly back: number;
}

export interface Verified {
  readonly kind: 'verified';
  /** All that were looked up. */
  readonly checked: number;
  /** How many of those were removed items; the others were confirmed. */
  readonly removed: number;
  readonly lost: number;
  readonly back: number;
  /** Those whose look-up had an answer that cannot be used; the log names them. */
  readonly failed: number;
}

export type VerifyDeps = Pick<
  UplinkDeps,
  'state' | 'queue' | 'peer' | 'dialect' | 'settings' | 'clock' | 'log'
>;

export interface VerifyOptions {
  /** Where the look-ups queue: one at a time for the audit, two for a person. */
  readonly lane: 'interactive' | 'audit';
  /** Whether what is lost is pushed again, and what is back removed again. */
  readonly repair: boolean;
  readonly signal?: AbortSignal;
  /** How many items there are. */
  readonly of?: number;
  /**
   * The state lost changes, and a later version may have been pushed: only what the peer shows of
   * this version alone, or showed just so when it was confirmed, counts.
   */
  readonly isDoubtful?: boolean;
}

/** A document must stay missing at least so long, in ms. */
const SHORTEST_PATIENCE_MS = 1_000;
/** Between two reports of how far it has come, in ms. */
const REPORT_EVERY_MS = 250;
/** The evidence that no other version of a document gives. */
const OF_ONE_VERSION: ReadonlySet<EvidenceKind> = new Set(['digest', 'lastModified']);
const OF_ONE_ANSWER = new Set(['answered', 'failing']);
/** When so many deviate, they are looked up once more before it goes on. */
const MOST_SUSPECTS = 1_000;

/**
 * Looks items up once more, a few at a time. A confirmed item that is missing or another version,
 * and a removed one that is there, is looked up again after a pause. If it still is so, it is
 * reported and, where `repair` asks for it, pushed or removed again. An answer that cannot be used
 * costs its item only. The last line sums it up, lines in between tell how far it has come. It ends
 * with its consumer: no look-up begins after that.
 *
 * @throws PeersyncError what a look-up threw that says something of the whole peer: it is away,
 *   busy, or refuses credentials
 */
export async function* verify(
  items: Iterable<Verifiable> | AsyncIterable<Verifiable>,
  deps: VerifyDeps,
  { lane, of, repair, signal, isDoubtful = false }: VerifyOptions,
): AsyncGenerator<Deviation | Verifying | Verified> {
  const { clock, log, peer, queue, state } = deps;
  const stopping = signal === undefined ? {} : { signal };
  const counts = { checked: 0, removed: 0, lost: 0, back: 0, failed: 0 };
  /** The items that deviate as far as one look-up tells, and how. */
  const suspects = new Map<Verifiable, string>();
  const look = async (item: Verifiable) => {
    suspects.delete(item);
    if (!isCurrent(state, item)) return;
    try {
      const { url } = item.sent ?? item;
      const doc = await queue.run(lane, (s) => peer.peerdoc({ url }, { signal: s }), stopping);
      const why =
        item.status === 'removed'
          ? backBecause(deps, item, doc)
          : lostBecause(item, doc, isDoubtful);
      if (why !== undefined) suspects.set(item, why);
    } catch (error) {
      // What says something of the peer as a whole ends it.
      if (!(error instanceof PeersyncError) || !OF_ONE_ANSWER.has(classify(error).kind))
        throw error;
      counts.failed += 1;
      const { folder, path, url } = item;
      log.warn(
        { event: 'verify-failed', folder, path, url, code: error.code },
        `could not be looked up: ${placeName(item)}: ${error.message}`,
      );
    }
  };
  const lookAtAll = async function* (all: typeof items) {
    for await (const group of groupsOf(all, lane === 'audit' ? 1 : 2)) {
      if (signal?.aborted) return;
      await Promise.all(group.map(look));
      yield group;
    }
  };
  const progress = (): Verifying => {
    const { checked, lost, back } = counts;
    const isBack = [...suspects.keys()].filter(({ status }) => status === 'removed').length;
    const sums = { lost: lost + suspects.size - isBack, back: back + isBack };
    return { kind: 'verifying', checked, ...sums, ...(of !== undefined && { of }) };
  };
  /** Looks the suspects up again, and reports those that still deviate. */
  async function* lookAgain(): AsyncGenerator<Deviation | Verifying> {
    if (suspects.size === 0) return;
    yield progress();
    await clock.sleep(Math.max(SHORTEST_PATIENCE_MS, holdMs(deps)), signal);
    for await (const _ of lookAtAll([...suspects.keys()]));
    if (signal?.aborted) return;
    for (const [item, why] of suspects) {
      if (!isCurrent(state, item)) continue;
      const { folder, path, url } = item;
      const isBack = item.status === 'removed';
      const kind = isBack ? 'back' : 'lost';
      counts[kind] += 1;
      if (repair)
        state.put(isBack ? removing(item, clock.now(), why) : lostLater(item, why, clock.now()));
      const what = isBack
        ? 'removed before and shown by the peer'
        : 'confirmed before and now lost by the peer';
      const then = repair ? `, ${isBack ? 'removed' : 'pushed'} again` : '';
      log.warn({ event: kind, folder, path, url }, `${what}${then}: ${placeName(item)}: ${why}`);
      yield { kind, file: `${folder}/${path}`, url, why, repaired: repair };
    }
    suspects.clear();
    if (repair) await state.commit();
  }
  let reportedAt = clock.now();
  for await (const looked of lookAtAll(items)) {
    counts.checked += looked.length;
    counts.removed += looked.filter(({ status }) => status === 'removed').length;
    if (clock.now() - reportedAt >= REPORT_EVERY_MS) {
      reportedAt = clock.now();
      yield progress();
    }
    if (suspects.size >= MOST_SUSPECTS) yield* lookAgain();
  }
  yield* lookAgain();
  if (!signal?.aborted) yield { kind: 'verified', ...counts };
}

async function* groupsOf<T>(
  items: Iterable<T> | AsyncIterable<T>,
  size: number,
): AsyncGenerator<T[]> {
  let group: T[] = [];
  for await (const item of items) {
    if (group.push(item) < size) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}

function lostBecause(
  { evidence, sent }: ConfirmedItem,
  doc: Peerdoc | undefined,
  isDoubtful: boolean,
): string | undefined {
  const shown = evidenceOf(doc, sent);
  if (!shown.shown) return shown.why;
  if (!isDoubtful || OF_ONE_VERSION.has(shown.kind)) return undefined;
  const isAsConfirmed = shown.kind === 'loadDate' && shown.text === evidence.shown;
  return isAsConfirmed
    ? undefined
    : 'the peer may have been sent a later version, which the state lost';
}

/** Why a removed document counts as having come back: not where it belongs to somebody else. */
function backBecause(
  deps: VerifyDeps,
  item: RemovedItem,
  doc: Peerdoc | undefined,
): string | undefined {
  if (
    deps.dialect.current?.isRemoved(doc) !== false ||
    deps.state.entries.ownerOf(item.url, item) !== undefined
  )
    return undefined;
  const collections = item.collection.split(',').map((name) => name.trim());
  const isOurs =
    doc?.collections === undefined || collections.some((name) => doc.collections?.includes(name));
  return isOurs ? 'the peer shows the document again' : undefined;
}

function isCurrent(state: Pick<State, 'get'>, item: Verifiable): boolean {
  const now = state.get(item.folder, item.path);
  if (item.status === 'removed') return now?.status === 'removed' && now.since === item.since;
  return (
    now?.status === 'confirmed' &&
    now.sent.at === item.sent.at &&
    now.sent.sha256 === item.sent.sha256
  );
}
