import { PeersyncError } from '../lib/errors.js';
import { type EvidenceKind, evidenceOf, type Peerdoc } from '../peer/peerdoc.js';
import type { ConfirmedItem, Entry, RemovedItem } from '../state/entry.js';
import { itemName, lostLater, removing } from '../state/entry.js';
import type { State } from '../state/state.js';
import { classify } from './batch-sender.js';
import { holdMs, type UplinkDeps } from './deps.js';

/** An item whose document can be verified. */
export type Verifiable = ConfirmedItem | RemovedItem;

export const VERIFIABLE = ['confirmed', 'removed'] as const;

export function isVerifiable(entry: Entry): entry is Verifiable {
  return entry.status === 'confirmed' || entry.status === 'removed';
}

/** Returns all items that can be verified, or a random sample of `most`, with their number. */
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

/** An item whose document in the peer is not as the state says. */
export interface Deviation {
  /**
   * `lost`: confirmed, but the peer does not show that version any more; `back`: removed, but the
   * peer shows it again.
   */
  readonly kind: 'lost' | 'back';
  readonly file: string;
  readonly url: string;
  readonly why: string;
  /** Whether it will be pushed or removed again. */
  readonly repaired: boolean;
}

/** The progress, reported from time to time. */
export interface Verifying {
  readonly kind: 'verifying';
  readonly checked: number;
  /** The number of items to verify, if it is known. */
  readonly of?: number;
  /** Numbers of deviations: those reported, and those that wait for a second look-up. */
  readonly lost: number;
  readonly back: number;
}

export interface Verified {
  readonly kind: 'verified';
  /** The number of items that were looked up. */
  readonly checked: number;
  /** The number of removed items among them; the others are confirmed. */
  readonly removed: number;
  readonly lost: number;
  readonly back: number;
  /** The number of items whose answer cannot be used; the log names them. */
  readonly failed: number;
}

export type VerifyDeps = Pick<
  UplinkDeps,
  'state' | 'queue' | 'peer' | 'dialect' | 'settings' | 'clock' | 'log'
>;

export interface VerifyOptions {
  /**
   * The queue lane of the look-ups. In `audit` there is one look-up at a time, in `interactive`
   * there are two.
   */
  readonly lane: 'interactive' | 'audit';
  /** Whether lost documents are pushed again, and documents that are back are removed again. */
  readonly repair: boolean;
  readonly signal?: AbortSignal;
  /** The number of items to verify, for the progress reports. */
  readonly of?: number;
  /**
   * Whether the state may have lost changes, so that a later version may have been pushed. Evidence
   * then counts only if no other version can give it, or if it is the same that confirmed the item.
   */
  readonly mayBeOutdated?: boolean;
}

/** Minimum time between the first and the second look-up of a deviating document, in ms. */
const SHORTEST_PATIENCE_MS = 1_000;
/** Interval of the progress reports, in ms. */
const REPORT_EVERY_MS = 250;
/** Evidence that no other version of a document gives. */
const VERSION_SPECIFIC: ReadonlySet<EvidenceKind> = new Set(['digest', 'lastModified']);
const SINGLE_ITEM_OUTCOMES = new Set(['answered', 'failing']);
/** Number of deviating items at which they are looked up again before other items. */
const MAX_DEVIATING = 1_000;

/**
 * Looks items up, one or two at a time. An item deviates if it is confirmed and the peer shows no
 * document or another version, or if it is removed and the peer shows it. A deviating item is
 * looked up again after a pause. If it still deviates, it is reported, and with `repair` pushed or
 * removed again. An unusable answer affects only its item. Progress reports come in between, a
 * summary comes last. No look-up begins after the consumer has ended the iteration.
 *
 * @throws PeersyncError the error of a look-up that concerns the whole peer: it is away, busy, or
 *   refuses the credentials
 */
export async function* verify(
  items: Iterable<Verifiable> | AsyncIterable<Verifiable>,
  deps: VerifyDeps,
  { lane, of, repair, signal, mayBeOutdated = false }: VerifyOptions,
): AsyncGenerator<Deviation | Verifying | Verified> {
  const { clock, log, peer, queue, state } = deps;
  const stopping = signal === undefined ? {} : { signal };
  const counts = { checked: 0, removed: 0, lost: 0, back: 0, failed: 0 };
  /** The items that deviate after one look-up, with the reason. */
  const deviating = new Map<Verifiable, string>();
  const look = async (item: Verifiable) => {
    deviating.delete(item);
    if (!isCurrent(state, item)) return;
    try {
      const { url } = item.sent ?? item;
      const doc = await queue.run(lane, (s) => peer.peerdoc({ url }, { signal: s }), stopping);
      const why =
        item.status === 'removed' ? whyBack(deps, item, doc) : whyLost(item, doc, mayBeOutdated);
      if (why !== undefined) deviating.set(item, why);
    } catch (error) {
      // An error that concerns the whole peer ends the verification.
      if (!(error instanceof PeersyncError) || !SINGLE_ITEM_OUTCOMES.has(classify(error).kind))
        throw error;
      counts.failed += 1;
      const { folder, path, url } = item;
      log.warn(
        { event: 'verify-failed', folder, path, url, code: error.code },
        `could not be looked up: ${itemName(item)}: ${error.message}`,
      );
    }
  };
  const lookUpAll = async function* (all: typeof items) {
    for await (const group of groupsOf(all, lane === 'audit' ? 1 : 2)) {
      if (signal?.aborted) return;
      await Promise.all(group.map(look));
      yield group;
    }
  };
  const progress = (): Verifying => {
    const { checked, lost, back } = counts;
    const isBack = [...deviating.keys()].filter(({ status }) => status === 'removed').length;
    const sums = { lost: lost + deviating.size - isBack, back: back + isBack };
    return { kind: 'verifying', checked, ...sums, ...(of !== undefined && { of }) };
  };
  /** Looks the deviating items up again, and reports those that still deviate. */
  async function* recheck(): AsyncGenerator<Deviation | Verifying> {
    if (deviating.size === 0) return;
    yield progress();
    await clock.sleep(Math.max(SHORTEST_PATIENCE_MS, holdMs(deps)), signal);
    for await (const _ of lookUpAll([...deviating.keys()]));
    if (signal?.aborted) return;
    for (const [item, why] of deviating) {
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
      log.warn({ event: kind, folder, path, url }, `${what}${then}: ${itemName(item)}: ${why}`);
      yield { kind, file: `${folder}/${path}`, url, why, repaired: repair };
    }
    deviating.clear();
    if (repair) await state.commit();
  }
  let reportedAt = clock.now();
  for await (const looked of lookUpAll(items)) {
    counts.checked += looked.length;
    counts.removed += looked.filter(({ status }) => status === 'removed').length;
    if (clock.now() - reportedAt >= REPORT_EVERY_MS) {
      reportedAt = clock.now();
      yield progress();
    }
    if (deviating.size >= MAX_DEVIATING) yield* recheck();
  }
  yield* recheck();
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

function whyLost(
  { evidence, sent }: ConfirmedItem,
  doc: Peerdoc | undefined,
  mayBeOutdated: boolean,
): string | undefined {
  const shown = evidenceOf(doc, sent);
  if (!shown.shown) return shown.why;
  if (!mayBeOutdated || VERSION_SPECIFIC.has(shown.kind)) return undefined;
  const isAsConfirmed = shown.kind === 'loadDate' && shown.text === evidence.shown;
  return isAsConfirmed
    ? undefined
    : 'the peer may have been sent a later version, which the state lost';
}

/**
 * Returns why a removed document counts as back; undefined if it is not shown, or belongs to
 * another file or another source.
 */
function whyBack(
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
