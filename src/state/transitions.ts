import {
  type AcceptedItem,
  type ConfirmedItem,
  type Destination,
  type Entry,
  type Evidence,
  type FileStat,
  type GoneItem,
  hasContent,
  type Item,
  isItem,
  isSent,
  type PassedOver,
  type PendingItem,
  type QuarantinedItem,
  type Sent,
  sameStat,
  type Trouble,
  type Version,
} from './entry.js';
import { BEGINNINGS, MISSED, next, RETRIED_WHILE_PENDING } from './history.js';

/**
 * Two pushes of one document are kept apart by this, in ms: peers date what they load in whole seconds, and clocks differ
 * a little, so that the older version, of the same size, could be taken for the newer.
 */
const APART_MS = 3_000;

/**
 * A file at rest was read. Unchanged content keeps its status; content that the peer accepted before is looked up
 * (`accepted`); anything else is `pending`.
 */
export function read(before: Entry | undefined, to: Destination, version: Version, now: number): Item {
  if (
    before !== undefined &&
    isItem(before) &&
    before.status !== 'gone' &&
    before.url === to.url &&
    before.collection === to.collection &&
    hasContent(before.version) &&
    before.version.sha256 === version.sha256 &&
    before.version.encoding === version.encoding
  ) {
    return { ...before, version } as Item;
  }
  const sent = certainlySent(before);
  const core = { ...destinationOf(to), version, attempts: 0, since: now };
  const isSame = before !== undefined && before.status !== 'gone' && sameStat(before.version, version);
  if (isSent(sent, version, to)) {
    const note = isSame ? BEGINNINGS.takenAnewSentBefore : BEGINNINGS.sentBefore;
    return { ...core, status: 'accepted', sent, history: next(before, 'accepted', now, note) };
  }
  const note = isSame ? BEGINNINGS.takenAnew : noteOf(before);
  return {
    ...core,
    status: 'pending',
    notBefore: Math.max(now, landedAt(before) + APART_MS),
    ...(sent ? { sent } : {}),
    history: next(before, 'pending', now, note),
  };
}

function noteOf(before: Entry | undefined): string {
  if (before === undefined) return BEGINNINGS.newFile;
  return before.status === 'gone' ? BEGINNINGS.fileBack : BEGINNINGS.fileChanged;
}

/** A file that has just been read, and that came to its place later than its own times say. */
export function broughtIn(item: Item): Item {
  const { history } = item;
  const last = history.at(-1);
  if (last === undefined) return item;
  const note = item.status === 'accepted' ? BEGINNINGS.takenAnewSentBefore : BEGINNINGS.broughtIn;
  return { ...item, history: [...history.slice(0, -1), { ...last, note }] };
}

/** When an older version came to the peer, as far as that matters: not where the peer tells versions apart by digest. */
function landedAt(before: Entry | undefined): number {
  if (before === undefined) return Number.NEGATIVE_INFINITY;
  if (before.status === 'confirmed' && before.evidence.kind === 'digest') return Number.NEGATIVE_INFINITY;
  if (before.status === 'accepted') return before.since;
  const doubt = before.status === 'pending' ? before.doubt : undefined;
  return Math.max(before.sent?.at ?? Number.NEGATIVE_INFINITY, doubt?.at ?? Number.NEGATIVE_INFINITY);
}

/** A push of this version is about to leave; to be on disk before it does. */
export function leaving(item: PendingItem, sent: Sent): PendingItem {
  return { ...item, doubt: sent };
}

/** The push certainly did not reach the peer, or the peer certainly refused it: no doubt is left. */
export function returned(item: PendingItem, notBefore: number, trouble?: Trouble): PendingItem {
  const { doubt: _, trouble: _before, ...rest } = item;
  return { ...rest, notBefore, ...(trouble ? { trouble } : {}) };
}

/** The peer accepted this version, or showed that a push in doubt had reached it. */
export function accepted(item: PendingItem, sent: Sent, now: number, note?: string): AcceptedItem {
  const history = next(item, 'accepted', now, note);
  return { ...documentOf(item), attempts: item.attempts, status: 'accepted', sent, since: now, history };
}

/**
 * The peer accepted an older version of what changed, was removed or is passed over meanwhile: remembered, so that going
 * back to it costs no push.
 */
export function overtaken(
  entry: Exclude<Entry, AcceptedItem | ConfirmedItem>,
  sent: Sent,
  now: number,
): Entry {
  if (entry.status !== 'pending') return { ...entry, sent };
  return { ...entry, sent, notBefore: Math.max(entry.notBefore, now + APART_MS) };
}

/**
 * Another file is about to be pushed to this address, as a folder with another name, URL or place took it over: whatever the
 * peer was sent there for this one counts no more. To be on disk before that push leaves.
 */
export function replaced(entry: Entry, url: string, now: number): Entry {
  const { sent, ...rest } = entry;
  if (entry.status === 'accepted' || entry.status === 'confirmed')
    return pendingAnew(entry, BEGINNINGS.replaced, now + APART_MS, now);
  const kept = (sent?.url === url ? rest : entry) as typeof entry;
  if (kept.status !== 'pending' || kept.doubt?.url !== url) return kept;
  const { doubt: _, ...known } = kept;
  return { ...known, notBefore: Math.max(known.notBefore, now + APART_MS) };
}

/** The peer showed this version. */
export function confirmed(item: AcceptedItem, evidence: Evidence, now: number): ConfirmedItem {
  const history = next(item, 'confirmed', now, `${evidence.kind} ${evidence.shown}`);
  const { sent } = item;
  return { ...documentOf(item), attempts: 0, status: 'confirmed', sent, evidence, since: now, history };
}

/** The peer does not show any more what it had shown: to be pushed again. */
export function missed(item: ConfirmedItem, why: string, now: number): PendingItem {
  return pendingAnew(item, `${MISSED}${why}`, now, now);
}

/** The peer does not show what it was sent before, and nothing was pushed since: to be pushed now. */
export function unremembered(item: AcceptedItem, why: string, now: number): PendingItem {
  return pendingAnew(item, `sent before, and not shown now: ${why}`, now, now);
}

/** What the peer has of an item counts no more: its version is to be pushed from `notBefore` on, as if it never had been. */
function pendingAnew(
  item: AcceptedItem | ConfirmedItem,
  note: string,
  notBefore: number,
  now: number,
): PendingItem {
  const history = next(item, 'pending', now, note);
  return { ...documentOf(item), status: 'pending', attempts: 0, notBefore, since: now, history };
}

/** One attempt failed (a refused push, or a confirmation that did not come): to be pushed again from `notBefore` on. */
export function failed(
  item: PendingItem | AcceptedItem,
  trouble: Trouble,
  notBefore: number,
  now: number,
): PendingItem {
  const { since, history } =
    item.status === 'pending' ? item : { since: now, history: next(item, 'pending', now, trouble.message) };
  const attempts = item.attempts + 1;
  return { ...documentOf(item), status: 'pending', attempts, notBefore, trouble, since, history };
}

/** The peer accepted this version and lost it, which need not be its fault: to be pushed again, with no attempt spent. */
export function lost(item: AcceptedItem, trouble: Trouble, now: number): PendingItem {
  const history = next(item, 'pending', now, trouble.message);
  const { attempts } = item;
  return { ...documentOf(item), status: 'pending', attempts, notBefore: now, trouble, since: now, history };
}

/** Nothing but a change helps: of the file, of the configuration, or a person's `retry`. */
export function quarantined(
  before: Entry | undefined,
  to: Destination,
  version: Version | FileStat,
  trouble: Trouble,
  now: number,
): QuarantinedItem {
  return {
    ...destinationOf(to),
    version,
    status: 'quarantined',
    trouble,
    attempts: before !== undefined && isItem(before) ? before.attempts : 0,
    since: now,
    ...sentOf(before),
    history: next(before, 'quarantined', now, trouble.message),
  };
}

/**
 * A person asked for another try. What was pending already waits no longer, and is as late as it was. Asserts that the content
 * is known; a file that was never read is read again instead.
 */
export function retried(item: Exclude<Item, GoneItem>, now: number): PendingItem {
  if (!hasContent(item.version)) throw new Error(`retried: ${item.folder}/${item.path} was never read`);
  const waited = item.status === 'pending';
  const since = waited ? item.since : now;
  const history = next(item, 'pending', now, waited ? RETRIED_WHILE_PENDING : BEGINNINGS.retry);
  const { version } = item;
  return { ...destinationOf(item), version, status: 'pending', attempts: 0, notBefore: now, since, history };
}

/** The file was removed, or nobody asks for it any more. */
export function gone(item: Exclude<Item, GoneItem>, now: number, note = 'the file was removed'): GoneItem {
  const history = next(item, 'gone', now, note);
  return { ...documentOf(item), status: 'gone', attempts: 0, since: now, ...sentOf(item), history };
}

/** A rule keeps the file, as it is now, from the peer. */
export function passedOver(
  before: Entry | undefined,
  at: { readonly folder: string; readonly path: string },
  version: FileStat,
  trouble: Trouble,
  now: number,
): PassedOver {
  return {
    folder: at.folder,
    path: at.path,
    version,
    status: 'passed',
    trouble,
    since: now,
    ...sentOf(before),
    history: next(before, 'passed', now, trouble.message),
  };
}

/** A push that left and was never answered may have reached the peer after the recorded one: then nothing is certain. */
function certainlySent(entry: Entry | undefined): Sent | undefined {
  if (entry?.status === 'pending' && entry.doubt !== undefined) return undefined;
  return entry?.sent;
}

function sentOf(entry: Entry | undefined): { readonly sent?: Sent } {
  const sent = certainlySent(entry);
  return sent === undefined ? {} : { sent };
}

function destinationOf(to: Destination): Destination {
  const { folder, path, url, collection } = to;
  return { folder, path, url, collection };
}

/** What stays the same of an item whatever becomes of it, as long as its file does not change. */
function documentOf<V>(item: Destination & { readonly version: V }): Destination & { readonly version: V } {
  return { ...destinationOf(item), version: item.version };
}
