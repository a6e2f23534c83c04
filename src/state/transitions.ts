import { type FileStat, fileStat, sameStat } from '../lib/file.js';
import {
  type AcceptedItem,
  type AwayItem,
  type ConfirmedItem,
  type Destination,
  type Entry,
  type Evidence,
  type Failure,
  type GoneItem,
  hasContent,
  type Item,
  type ItemKey,
  isAway,
  isItem,
  type PendingItem,
  type QuarantinedItem,
  type RemovedItem,
  type RemovingItem,
  type Sent,
  type SkippedFile,
  type SkippedWithDocument,
  type Version,
  type WithDocument,
} from './entry.js';
import { BEGINNINGS, historyWith, LOST_NOTE } from './history.js';

/**
 * Minimum time between two pushes of one document, in ms. Peers date documents in whole seconds and
 * clocks differ a little, so an older version of the same size could pass for the newer one.
 */
const MIN_PUSH_GAP_MS = 3_000;

/** Returns the record in a new status from `at` on. `rest` adds and overrides fields. */
function withStatus<S extends Item['status'], V, R>(
  before: Entry | undefined,
  { folder, path, url, collection, version }: Destination & { readonly version: V },
  status: S,
  at: number,
  note: string | undefined,
  rest: R,
) {
  const history = historyWith(before, status, at, note);
  return {
    folder,
    path,
    url,
    collection,
    version,
    status,
    attempts: 0,
    since: at,
    history,
    ...rest,
  };
}

/**
 * Called when a file at rest was read. Unchanged content keeps its status. Content that the peer
 * accepted before becomes `accepted` and is looked up. Anything else becomes `pending`.
 *
 * @param restedAt when the file came to rest. The work on it counts from then, unless the file
 *   itself is unchanged
 */
export function read(
  before: Entry | undefined,
  to: Destination,
  version: Version,
  now: number,
  restedAt = now,
): Item {
  if (before !== undefined && isItem(before) && !isAway(before) && isUnchanged(before, to, version))
    return { ...before, version } as Item;
  const sent = certainlySent(before);
  const document = { ...to, version };
  const isSameFile = before !== undefined && !isAway(before) && sameStat(before.version, version);
  const workBeganAt = isSameFile ? now : restedAt;
  // The peer probably accepted this very content for this very document.
  if (sent !== undefined && sent.sha256 === version.sha256 && isSameDestination(sent, to)) {
    const note = isSameFile ? BEGINNINGS.takenAnewSentBefore : BEGINNINGS.sentBefore;
    return withStatus(before, document, 'accepted', workBeganAt, note, { since: now, sent });
  }
  let note: string = isSameFile ? BEGINNINGS.takenAnew : BEGINNINGS.fileChanged;
  if (before === undefined) note = BEGINNINGS.newFile;
  else if (isAway(before)) note = BEGINNINGS.fileBack;
  const notBefore = Math.max(now, olderVersionArrivedAt(before) + MIN_PUSH_GAP_MS);
  return withStatus(before, document, 'pending', workBeganAt, note, {
    since: now,
    notBefore,
    ...sentOf(before),
  });
}

function isSameDestination(
  there: Pick<Destination, 'url' | 'collection'>,
  { url, collection }: Destination,
): boolean {
  return there.url === url && there.collection === collection;
}

function isUnchanged(item: Item, to: Destination, { sha256, encoding }: Version): boolean {
  const { version } = item;
  return (
    isSameDestination(item, to) &&
    hasContent(version) &&
    version.sha256 === sha256 &&
    version.encoding === encoding
  );
}

/**
 * Returns when an older version reached the peer; -Infinity if that does not matter, because the
 * peer tells versions apart by digest.
 */
function olderVersionArrivedAt(before: Entry | undefined): number {
  if (before?.status === 'accepted') return before.since;
  if (before?.status === 'confirmed' && before.evidence.kind === 'digest')
    return Number.NEGATIVE_INFINITY;
  const inFlight = before?.status === 'pending' ? before.inFlight : undefined;
  return Math.max(
    before?.sent?.at ?? Number.NEGATIVE_INFINITY,
    inFlight?.at ?? Number.NEGATIVE_INFINITY,
  );
}

/** Called before a push of this version is sent. The record must be on disk first. */
export function leaving(item: PendingItem, sent: Sent): PendingItem {
  return { ...item, inFlight: sent };
}

/**
 * Called when a push failed and spends no attempt, and the peer certainly did not take the item.
 * The item is no longer in flight.
 */
export function returned(item: PendingItem, notBefore: number, failure?: Failure): PendingItem {
  const { inFlight: _, failure: _before, ...rest } = item;
  return { ...rest, notBefore, ...(failure ? { failure } : {}) };
}

/** Called when the peer accepted this version, or showed that a push in flight had reached it. */
export function accepted(item: PendingItem, sent: Sent, now: number, note?: string): AcceptedItem {
  return withStatus(item, item, 'accepted', now, note, { attempts: item.attempts, sent });
}

/**
 * Called when the peer accepted an older version of a file that has since changed, been removed or
 * been skipped. The version is recorded, so that going back to it costs no push.
 */
export function olderVersionAccepted(
  entry: Exclude<Entry, AcceptedItem | ConfirmedItem>,
  sent: Sent,
  now: number,
): Entry {
  if (entry.status !== 'pending') return { ...entry, sent };
  return { ...entry, sent, notBefore: Math.max(entry.notBefore, now + MIN_PUSH_GAP_MS) };
}

/**
 * Called before another file is pushed to this URL, because a folder with another name, URL or path
 * took it over. The version that the peer was sent there for this file no longer counts. The record
 * must be on disk before that push is sent.
 */
export function replaced(entry: Entry, url: string, now: number): Entry {
  if (entry.status === 'accepted' || entry.status === 'confirmed')
    return withoutSent(
      backToPending(entry, BEGINNINGS.replaced, now, { notBefore: now + MIN_PUSH_GAP_MS }),
    );
  const { sent } = entry;
  const rest = withoutSent(entry);
  const kept = (sent?.url === url ? rest : entry) as typeof entry;
  if (kept.status !== 'pending' || kept.inFlight?.url !== url) return kept;
  const { inFlight: _, ...known } = kept;
  return { ...known, notBefore: Math.max(known.notBefore, now + MIN_PUSH_GAP_MS) };
}

/** Called when the peer showed this version. */
export function confirmed(item: AcceptedItem, evidence: Evidence, now: number): ConfirmedItem {
  const note = `${evidence.kind} ${evidence.shown}`;
  return withStatus(item, item, 'confirmed', now, note, { sent: item.sent, evidence });
}

/** Called when the peer no longer shows a confirmed version. It is pushed again. */
export function lostLater(item: ConfirmedItem, why: string, now: number): PendingItem {
  return backToPending(item, `${LOST_NOTE}${why}`, now);
}

/**
 * Called when the peer does not show a version that it was sent before and that was not pushed
 * again since. It is pushed now.
 */
export function pushAgainUnseen(item: AcceptedItem, why: string, now: number): PendingItem {
  return backToPending(item, `sent before, and not shown now: ${why}`, now);
}

/**
 * Called when an attempt is spent: a push failed through the item's fault, or a confirmation did
 * not come. The item is pushed again from `notBefore` on.
 */
export function failed(
  item: PendingItem | AcceptedItem,
  failure: Failure,
  notBefore: number,
  now: number,
): PendingItem {
  const sameWork = item.status === 'pending' ? { since: item.since, history: item.history } : {};
  return backToPending(item, failure.message, now, {
    attempts: item.attempts + 1,
    notBefore,
    failure,
    ...sameWork,
  });
}

/**
 * Called when the peer accepted this version and lost it. It is pushed again without spending an
 * attempt, because the item may not be at fault.
 */
export function lost(item: AcceptedItem, failure: Failure, now: number): PendingItem {
  return backToPending(item, failure.message, now, { attempts: item.attempts, failure });
}

/**
 * Called when a person asked for a retry. A pending item no longer waits; its age does not change.
 *
 * @throws if the file was never read; the caller has it read again instead
 */
export function retried(item: Exclude<Item, AwayItem>, now: number): PendingItem {
  if (!hasContent(item.version))
    throw new Error(`retried: ${item.folder}/${item.path} was never read`);
  const known = { ...item, version: item.version };
  // A pending item gets no new beginning: the same work goes on, only sooner.
  return item.status === 'pending'
    ? backToPending(known, 'retry asked for while it waited', now, { since: item.since })
    : backToPending(known, BEGINNINGS.retry, now);
}

/** Called when a program was found that was missing when this version was read. */
export function readAgain(item: AcceptedItem | ConfirmedItem, now: number): PendingItem {
  const notBefore = Math.max(now, olderVersionArrivedAt(item) + MIN_PUSH_GAP_MS);
  return backToPending(item, BEGINNINGS.programFound, now, { notBefore });
}

function withoutSent<E extends Entry>({ sent: _, ...rest }: E): E {
  return rest as E;
}

/** Returns the item as `pending` from `now` on, with fresh attempts. `rest` overrides fields. */
function backToPending(
  item: Item & { readonly version: Version },
  note: string,
  now: number,
  rest: Partial<PendingItem> = {},
): PendingItem {
  return withStatus(item, item, 'pending', now, note, {
    notBefore: now,
    ...markedUncertain(sentOf(item)),
    ...rest,
  });
}

/** Called when only a change helps: of the file, of the configuration, or a person's `retry`. */
export function quarantined(
  before: Entry | undefined,
  to: Destination,
  version: Version | FileStat,
  failure: Failure,
  now: number,
): QuarantinedItem {
  const attempts = before !== undefined && isItem(before) ? before.attempts : 0;
  const rest = { failure, attempts, ...sentOf(before) };
  return withStatus(before, { ...to, version }, 'quarantined', now, failure.message, rest);
}

/** Called when the file was removed, or its folder left the configuration. */
export function gone(
  entry: Exclude<WithDocument, GoneItem | RemovedItem>,
  now: number,
  note = 'the file was removed',
): GoneItem {
  const { url, collection } = isItem(entry) ? entry : entry.sent;
  return withStatus(entry, { ...entry, url, collection }, 'gone', now, note, sentOf(entry));
}

/**
 * Called when the document has to be removed from the peer, or removed again because it reappeared.
 * A skipped file still exists; it is skipped again afterwards.
 */
export function removing(
  item: GoneItem | RemovedItem | SkippedWithDocument,
  now: number,
  note?: string,
): RemovingItem {
  const { url, collection } = isItem(item) ? (item.sent ?? item) : item.sent;
  const rest = { notBefore: now, ...sentOf(item) };
  const document = { ...item, url, collection };
  if (item.status !== 'skipped') return withStatus(item, document, 'removing', now, note, rest);
  return withStatus(item, document, 'removing', now, note, { ...rest, keptOut: item.failure });
}

/** Called when the file changed while its document is being removed, and is still kept out. */
export function stillKeptOut(
  item: RemovingItem,
  version: FileStat,
  keptOut: Failure,
): RemovingItem {
  return { ...item, version, keptOut };
}

/** Called before a removal request is sent. The record must be on disk first. */
export function removalLeft(item: RemovingItem, now: number): RemovingItem {
  return { ...item, requestedAt: now };
}

/** Called when the removal is to be requested again although it did not fail. */
export function toBeRequested({ requestedAt: _, ...item }: RemovingItem): RemovingItem {
  return item;
}

/**
 * Called when the removal did not show, or was not answered. It is requested again from `notBefore`
 * on.
 */
export function removalFailed(
  item: RemovingItem,
  failure: Failure,
  notBefore: number,
): RemovingItem {
  const { requestedAt: _, ...rest } = item;
  return { ...rest, attempts: item.attempts + 1, failure, notBefore };
}

/**
 * Called when the peer showed that it no longer has the document. The record of the sent version is
 * dropped.
 */
export function removed(item: RemovingItem, now: number, note?: string): RemovedItem | SkippedFile {
  const { folder, path, keptOut, version } = item;
  if (keptOut === undefined) return withStatus(item, item, 'removed', now, note, {});
  const history = historyWith(item, 'skipped', now, note);
  const stat = fileStat(version);
  return { folder, path, version: stat, status: 'skipped', failure: keptOut, since: now, history };
}

/** Called when a rule keeps the present version of the file from the peer. */
export function skipped(
  before: Entry | undefined,
  { folder, path }: ItemKey,
  version: FileStat,
  failure: Failure,
  now: number,
): SkippedFile {
  const history = historyWith(before, 'skipped', now, failure.message);
  return {
    folder,
    path,
    version,
    status: 'skipped',
    failure,
    since: now,
    ...sentOf(before),
    history,
  };
}

function certainlySent(entry: Entry | undefined): Sent | undefined {
  const { sent } = sentOf(entry);
  return sent?.isUncertain ? undefined : sent;
}

/**
 * Returns the last version sent, marked as uncertain if a later push or removal was never answered:
 * that one may have reached the peer.
 */
function sentOf(entry: Entry | undefined): { readonly sent?: Sent } {
  if (entry?.status === 'pending' && entry.inFlight !== undefined)
    return markedUncertain({ sent: entry.inFlight });
  if (entry?.sent === undefined) return {};
  return entry.status === 'removing' ? markedUncertain(entry) : { sent: entry.sent };
}

function markedUncertain({ sent }: { readonly sent?: Sent }): { readonly sent?: Sent } {
  return sent === undefined ? {} : { sent: { ...sent, isUncertain: true } };
}
