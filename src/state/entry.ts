import { type Encoding, type FileStat, fileStat, sameStat } from '../lib/file.js';
import { visible } from '../lib/text.js';

/** What the file contained when it was read. */
export interface Version extends FileStat {
  /** Of the bytes on disk, lower-case hex. */
  readonly sha256: string;
  readonly encoding: Encoding;
}

/** Names one record. Every Entry is a Place. */
export interface Place {
  readonly folder: string;
  /** Relative to the folder, `/` between names, exactly as on disk. */
  readonly path: string;
}

/**
 * A file as logs and commands spell it: `FOLDER/path`, with characters written out that would not
 * be seen.
 */
export function placeName({ folder, path }: Place): string {
  return visible(`${folder}/${path}`);
}

/** Where a file's document goes: decided by the folder's rules. */
export interface Destination extends Place {
  readonly url: string;
  readonly collection: string;
}

/** The last version that the peer accepted, or may have accepted, as far as is known. */
export interface Sent {
  /** The sha256 of the version on disk. */
  readonly sha256: string;
  /** Bytes of the document's text as it travelled (UTF-8). */
  readonly size: number;
  /**
   * sha256 of the document's text as it travelled; the same as `sha256` unless the file was
   * converted.
   */
  readonly digest: string;
  readonly url: string;
  readonly collection: string;
  /** When the request began, by our clock, in ms since the epoch. */
  readonly at: number;
  /** When the push began, by the peer's clock (whole seconds), where its answers carry a date. */
  readonly peerAt?: number;
  /**
   * The file's last modification as it was told to the peer, in whole seconds (as ms since the
   * epoch); only where the peer keeps it.
   */
  readonly lastModified?: number;
  /**
   * How many words it has, counted from 10 up to 100; only where the peer shows how many of them it
   * indexed.
   */
  readonly words?: number;
  /** What read the text of a document, and how many words it found. */
  readonly extracted?: { readonly reader: string; readonly words: number };
  /**
   * The peer has it, or an earlier one, or none: a push or a removal that left later was never
   * answered, or was not shown.
   */
  readonly isUncertain?: true;
}

/** What showed that the peer has this version, strongest first. */
export interface Evidence {
  readonly kind: 'digest' | 'lastModified' | 'loadDate' | 'size' | 'present';
  /** When it was seen, in ms since the epoch. */
  readonly at: number;
  /** What the peer showed, in its own words. */
  readonly shown: string;
}

/** Why something did not go on: one sentence what happened, one what to do, a stable code. */
export interface Trouble {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
}

export interface HistoryEntry {
  readonly status: Entry['status'];
  readonly at: number;
  readonly note?: string;
}

/**
 * What is known of one file of a folder, and the life of it.
 *
 * An *item* is a file and the one document it becomes in the peer. Its status:
 *
 * - `pending`: this version is to be pushed; `inFlight` is set just before a push leaves, so that
 *   after a crash the item is looked up before it is pushed again.
 * - `accepted`: the peer answered a push of this version without an error for it. Proves nothing
 *   about search.
 * - `confirmed`: the peer showed this version; the evidence is kept.
 * - `quarantined`: cannot succeed without a change; the trouble says why.
 * - `gone`: its file was removed, and nothing is to be done about the document: the folder keeps
 *   it, the peer never had it, or it is not decided yet.
 * - `removing`: its file was removed, or is there and `keptOut`, and the document is to be removed
 *   from the peer; `requestedAt` is set just before the request leaves, so that after a crash the
 *   document is looked up first.
 * - `removed`: the peer showed that it does not have the document any more.
 *
 * A file that a rule keeps from the peer (empty, too large, not text) is `skipped`: no item, but
 * remembered, so that it is not read again until it changes. Where the peer was sent an older
 * version, that stays searchable until it is removed: the file is `removing` then, and skipped
 * again afterwards.
 *
 * Every change of status is a function below, named after what happened; records are never changed
 * in place.
 */
interface Core extends Place {
  /** When the present status began, in ms since the epoch. */
  readonly since: number;
  /** The last changes of status, oldest first, the present one last. */
  readonly history: readonly HistoryEntry[];
}

interface ItemCore extends Core, Destination {
  readonly sent?: Sent;
  /** Failed pushes and unconfirmed acceptances of this version. */
  readonly attempts: number;
  readonly trouble?: Trouble;
}

export interface PendingItem extends ItemCore {
  readonly status: 'pending';
  readonly version: Version;
  /** Not to be pushed before this, in ms since the epoch. */
  readonly notBefore: number;
  /** A push of this version left (`at` says when) and no answer to it was recorded. */
  readonly inFlight?: Sent;
}
export interface AcceptedItem extends ItemCore {
  readonly status: 'accepted';
  readonly version: Version;
  readonly sent: Sent;
}
export interface ConfirmedItem extends ItemCore {
  readonly status: 'confirmed';
  readonly version: Version;
  readonly sent: Sent;
  readonly evidence: Evidence;
}
export interface QuarantinedItem extends ItemCore {
  readonly status: 'quarantined';
  /** Without `sha256` where the file could not be read. */
  readonly version: Version | FileStat;
  readonly trouble: Trouble;
}
export interface GoneItem extends ItemCore {
  readonly status: 'gone';
  readonly version: Version | FileStat;
}
export interface RemovingItem extends ItemCore {
  readonly status: 'removing';
  readonly version: Version | FileStat;
  /** The removal is not to be asked for before this, in ms since the epoch. */
  readonly notBefore: number;
  /** When a request left whose effect the peer did not show yet, in ms since the epoch. */
  readonly requestedAt?: number;
  /**
   * Why its file, which is there, is kept out; the version is that file. Undefined where the file
   * was removed.
   */
  readonly keptOut?: Trouble;
}
export interface RemovedItem extends ItemCore {
  readonly status: 'removed';
  readonly version: Version | FileStat;
}
/** An item whose file is not there. */
export type AwayItem = GoneItem | RemovingItem | RemovedItem;
export interface SkippedFile extends Core {
  readonly status: 'skipped';
  readonly version: FileStat;
  readonly trouble: Trouble;
  /** What the peer still has of an earlier version. */
  readonly sent?: Sent;
}

export type Item = PendingItem | AcceptedItem | ConfirmedItem | QuarantinedItem | AwayItem;
export type Entry = Item | SkippedFile;
export type Status = Item['status'];

export function isItem(entry: Entry): entry is Item {
  return entry.status !== 'skipped';
}

const AWAY: ReadonlySet<Entry['status']> = new Set(['gone', 'removing', 'removed']);

/** Whether a record in this status is of a file that is not there. */
export function isAwayStatus(status: Entry['status']): boolean {
  return AWAY.has(status);
}

export function isAway(entry: Entry): entry is AwayItem {
  return AWAY.has(entry.status);
}

export function hasContent(version: Version | FileStat): version is Version {
  return 'sha256' in version;
}

/** The code of the trouble of a file that a rule of paths keeps out. */
export const EXCLUDED = 'EXCLUDED';

/** Whether a rule of paths keeps the file out, of which the peer was sent a document. */
export function isExcluded(entry: Entry): boolean {
  return entry.trouble?.code === EXCLUDED;
}

/** Why a file that is there is kept from the peer. */
export function keptOutFor(entry: Entry | undefined): Trouble | undefined {
  if (entry?.status === 'skipped') return entry.trouble;
  return entry?.status === 'removing' ? entry.keptOut : undefined;
}

/**
 * Whether a file was skipped for this reason before, also where it was read anew in between because
 * it changed: then a person was told already.
 */
export function wasSkippedFor(before: Entry | undefined, why: Trouble): boolean {
  if (before === undefined || isMissing(before)) return false;
  if (keptOutFor(before)?.code === why.code) return true;
  const last = before.history.findLast(({ status }) => status !== 'pending');
  return last?.status === 'skipped' && last.note === why.message;
}

/** Whether the record is of a file that is not there. */
export function isMissing(entry: Entry): boolean {
  return isAway(entry) && keptOutFor(entry) === undefined;
}

/** The hash of what is in the file, or else of what the peer was sent of it. */
export function contentOf({ version, sent }: Entry): string | undefined {
  return hasContent(version) ? version.sha256 : sent?.sha256;
}

/** Whether the peer has, or may have, what was sent to this address for the file. */
export function claims(entry: Entry, url: string): boolean {
  return entry.sent?.url === url || (entry.status === 'pending' && entry.inFlight?.url === url);
}

/**
 * Whether a file that is there has this URL for its document, or may have had it: what the peer has
 * there is not to be removed.
 */
export function isLiveAt(entry: Entry, url: string): boolean {
  return !isAway(entry) && ((isItem(entry) && entry.url === url) || claims(entry, url));
}

/**
 * Two pushes of one document are kept apart by this, in ms: peers date what they load in whole
 * seconds, and clocks differ a little, so that the older version, of the same size, could be taken
 * for the newer.
 */
const APART_MS = 3_000;
/** How many changes of status a record remembers. */
const HISTORY_LENGTH = 8;
const LONGEST_NOTE = 300;

/**
 * What the history notes where the work on a version begins: everything after it, up to the next of
 * these, is about the same work. Of the first group the moment is when the file came to rest, which
 * may be before it was found. Never reordered and never changed, only added to: the state on disk
 * holds positions in this list.
 */
export const BEGINNINGS = {
  newFile: 'new file',
  fileChanged: 'the file changed',
  fileBack: 'the file is back',
  sentBefore: 'the peer was sent this before',
  /**
   * Written until November 2026 for what was moved here with its directory, or had been kept out by
   * a rule.
   */
  broughtIn: 'new file, older than its place here',
  takenAnew: 'taken anew, though the file is the same',
  takenAnewSentBefore: 'taken anew, and the peer was sent this before',
  retry: 'retry asked for',
  replaced: 'another file was pushed to its address',
} as const;
/**
 * Begins the note of an item that was lost after it was confirmed; the reason follows. It stands so
 * in the state on disk.
 */
const LOST_NOTE = 'confirmed before and missed now: ';
/**
 * Begins the note of a new file that had another name before, which follows; and of a removed one
 * that has another name now.
 */
const RENAMED_FROM = 'renamed from ';
const RENAMED_TO = 'renamed to ';
const ALL_BEGINNINGS: ReadonlySet<string> = new Set(Object.values(BEGINNINGS));

/** Where in a history the present work begins; -1 where that is forgotten. */
export function beginningOf(history: History): number {
  return history.findLastIndex(({ note }) => note !== undefined && isBeginning(note));
}

function isBeginning(note: string): boolean {
  return ALL_BEGINNINGS.has(note) || note.startsWith(LOST_NOTE) || note.startsWith(RENAMED_FROM);
}

/** Whether an accepted item was not pushed for that, for the peer was sent it before. */
export function isRemembered({ history }: AcceptedItem): boolean {
  const note = history.at(-1)?.note;
  return note === BEGINNINGS.sentBefore || note === BEGINNINGS.takenAnewSentBefore;
}

type History = readonly HistoryEntry[];

/** The history of a record that was `before`, with one more change of status. */
function next(
  before: Entry | undefined,
  status: Entry['status'],
  at: number,
  note?: string,
): History {
  const entry: HistoryEntry =
    note === undefined ? { status, at } : { status, at, note: note.slice(0, LONGEST_NOTE) };
  if (before === undefined) return [entry];
  const { history } = before;
  if (history.length < HISTORY_LENGTH) return [...history, entry];
  // Where the present work begins is kept, however many attempts it takes.
  const begun = history[beginningOf(history)];
  const kept = history.slice(1 - HISTORY_LENGTH);
  if (begun === undefined || kept.includes(begun) || beginningOf([entry]) === 0)
    return [...kept, entry];
  return [begun, ...kept.slice(1), entry];
}

/** The record of a document in another status from `at` on, with what `rest` says otherwise. */
function become<S extends Item['status'], V, R>(
  before: Entry | undefined,
  { folder, path, url, collection, version }: Destination & { readonly version: V },
  status: S,
  at: number,
  note: string | undefined,
  rest: R,
) {
  const history = next(before, status, at, note);
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
 * A file at rest was read. Unchanged content keeps its status; content that the peer accepted
 * before is looked up (`accepted`); anything else is `pending`.
 *
 * @param restedAt since when it has been at rest; the work on it counts from then, unless it is the
 *   same file as before
 */
export function read(
  before: Entry | undefined,
  to: Destination,
  version: Version,
  now: number,
  restedAt = now,
): Item {
  if (before !== undefined && isItem(before) && !isAway(before) && isSame(before, to, version))
    return { ...before, version } as Item;
  const sent = certainlySent(before);
  const document = { ...to, version };
  const isTakenAnew = before !== undefined && !isAway(before) && sameStat(before.version, version);
  const begunAt = isTakenAnew ? now : restedAt;
  // The peer, as far as is known, accepted just this content for just this document.
  if (sent !== undefined && sent.sha256 === version.sha256 && isAt(sent, to)) {
    const note = isTakenAnew ? BEGINNINGS.takenAnewSentBefore : BEGINNINGS.sentBefore;
    return become(before, document, 'accepted', begunAt, note, { since: now, sent });
  }
  let note: string = isTakenAnew ? BEGINNINGS.takenAnew : BEGINNINGS.fileChanged;
  if (before === undefined) note = BEGINNINGS.newFile;
  else if (isAway(before)) note = BEGINNINGS.fileBack;
  const notBefore = Math.max(now, landedAt(before) + APART_MS);
  return become(before, document, 'pending', begunAt, note, {
    since: now,
    notBefore,
    ...sentOf(before),
  });
}

function isAt(
  there: Pick<Destination, 'url' | 'collection'>,
  { url, collection }: Destination,
): boolean {
  return there.url === url && there.collection === collection;
}

function isSame(item: Item, to: Destination, { sha256, encoding }: Version): boolean {
  const { version } = item;
  return (
    isAt(item, to) &&
    hasContent(version) &&
    version.sha256 === sha256 &&
    version.encoding === encoding
  );
}

/**
 * When an older version came to the peer, as far as that matters: not where the peer tells versions
 * apart by digest.
 */
function landedAt(before: Entry | undefined): number {
  if (before?.status === 'accepted') return before.since;
  if (before?.status === 'confirmed' && before.evidence.kind === 'digest')
    return Number.NEGATIVE_INFINITY;
  const inFlight = before?.status === 'pending' ? before.inFlight : undefined;
  return Math.max(
    before?.sent?.at ?? Number.NEGATIVE_INFINITY,
    inFlight?.at ?? Number.NEGATIVE_INFINITY,
  );
}

/** A push of this version is about to leave; to be on disk before it does. */
export function leaving(item: PendingItem, sent: Sent): PendingItem {
  return { ...item, inFlight: sent };
}

/**
 * The push certainly did not reach the peer, or the peer certainly refused it: it is not in flight
 * any more.
 */
export function returned(item: PendingItem, notBefore: number, trouble?: Trouble): PendingItem {
  const { inFlight: _, trouble: _before, ...rest } = item;
  return { ...rest, notBefore, ...(trouble ? { trouble } : {}) };
}

/** The peer accepted this version, or showed that a push in flight had reached it. */
export function accepted(item: PendingItem, sent: Sent, now: number, note?: string): AcceptedItem {
  return become(item, item, 'accepted', now, note, { attempts: item.attempts, sent });
}

/**
 * The peer accepted an older version of what changed, was removed or is skipped meanwhile:
 * remembered, so that going back to it costs no push.
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
 * Another file is about to be pushed to this address, as a folder with another name, URL or place
 * took it over: whatever the peer was sent there for this one counts no more. To be on disk before
 * that push leaves.
 */
export function replaced(entry: Entry, url: string, now: number): Entry {
  if (entry.status === 'accepted' || entry.status === 'confirmed')
    return withoutSent(again(entry, BEGINNINGS.replaced, now, { notBefore: now + APART_MS }));
  const { sent } = entry;
  const rest = withoutSent(entry);
  const kept = (sent?.url === url ? rest : entry) as typeof entry;
  if (kept.status !== 'pending' || kept.inFlight?.url !== url) return kept;
  const { inFlight: _, ...known } = kept;
  return { ...known, notBefore: Math.max(known.notBefore, now + APART_MS) };
}

/** The peer showed this version. */
export function confirmed(item: AcceptedItem, evidence: Evidence, now: number): ConfirmedItem {
  const note = `${evidence.kind} ${evidence.shown}`;
  return become(item, item, 'confirmed', now, note, { sent: item.sent, evidence });
}

/** The peer does not show any more what it had shown: to be pushed again. */
export function lostLater(item: ConfirmedItem, why: string, now: number): PendingItem {
  return again(item, `${LOST_NOTE}${why}`, now);
}

/**
 * The peer does not show what it was sent before, and nothing was pushed since: to be pushed now.
 */
export function unremembered(item: AcceptedItem, why: string, now: number): PendingItem {
  return again(item, `sent before, and not shown now: ${why}`, now);
}

/**
 * One attempt failed (a refused push, or a confirmation that did not come): to be pushed again from
 * `notBefore` on.
 */
export function failed(
  item: PendingItem | AcceptedItem,
  trouble: Trouble,
  notBefore: number,
  now: number,
): PendingItem {
  const goesOn = item.status === 'pending' ? { since: item.since, history: item.history } : {};
  return again(item, trouble.message, now, {
    attempts: item.attempts + 1,
    notBefore,
    trouble,
    ...goesOn,
  });
}

/**
 * The peer accepted this version and lost it, which need not be its fault: to be pushed again, with
 * no attempt spent.
 */
export function lost(item: AcceptedItem, trouble: Trouble, now: number): PendingItem {
  return again(item, trouble.message, now, { attempts: item.attempts, trouble });
}

/**
 * A person asked for another try. What was pending already waits no longer, and is as late as it
 * was. Asserts that the content is known; a file that was never read is read again instead.
 */
export function retried(item: Exclude<Item, AwayItem>, now: number): PendingItem {
  if (!hasContent(item.version))
    throw new Error(`retried: ${item.folder}/${item.path} was never read`);
  const known = { ...item, version: item.version };
  // No beginning where it waited: the work goes on, only sooner.
  return item.status === 'pending'
    ? again(known, 'retry asked for while it waited', now, { since: item.since })
    : again(known, BEGINNINGS.retry, now);
}

function withoutSent<E extends Entry>({ sent: _, ...rest }: E): E {
  return rest as E;
}

/**
 * The version is to be pushed from now on, as if nothing of it had been sent, but for what `rest`
 * says.
 */
function again(
  item: Item & { readonly version: Version },
  note: string,
  now: number,
  rest: Partial<PendingItem> = {},
): PendingItem {
  return become(item, item, 'pending', now, note, {
    notBefore: now,
    ...uncertainly(sentOf(item)),
    ...rest,
  });
}

/** Nothing but a change helps: of the file, of the configuration, or a person's `retry`. */
export function quarantined(
  before: Entry | undefined,
  to: Destination,
  version: Version | FileStat,
  trouble: Trouble,
  now: number,
): QuarantinedItem {
  const attempts = before !== undefined && isItem(before) ? before.attempts : 0;
  const rest = { trouble, attempts, ...sentOf(before) };
  return become(before, { ...to, version }, 'quarantined', now, trouble.message, rest);
}

/** A record of which there may be a document in the peer. */
export type WithDocument = Item | (SkippedFile & { readonly sent: Sent });

export function mayHaveDocument(entry: Entry): entry is WithDocument {
  return isItem(entry) || entry.sent !== undefined;
}

/** The file was removed, or nobody asks for it any more. */
export function gone(
  entry: Exclude<WithDocument, GoneItem | RemovedItem>,
  now: number,
  note = 'the file was removed',
): GoneItem {
  const { url, collection } = isItem(entry) ? entry : entry.sent;
  return become(entry, { ...entry, url, collection }, 'gone', now, note, sentOf(entry));
}

/** A file that is kept out, of which the peer was sent an older version. */
export type SkippedWithDocument = SkippedFile & { readonly sent: Sent };

/** The removed file has another name now, and its history says so. */
export function renamedTo(item: AwayItem, to: Place): AwayItem {
  const at = item.history.findLastIndex(({ status }) => status === 'gone');
  return noted(item, at, `${RENAMED_TO}${placeName(to)}`);
}

/** Whether the file that was removed has another name now. */
export function isRenamed(item: AwayItem): boolean {
  return renameOf(item) !== undefined;
}

/**
 * `renamed to FOLDER/path` of a removed file that has another name now, `renamed from FOLDER/path`
 * of one that had another name.
 */
export function renameOf(entry: Entry): string | undefined {
  const { history } = entry;
  const change = isMissing(entry)
    ? history.findLast(({ status }) => status === 'gone')
    : history[beginningOf(history)];
  const note = change?.note ?? '';
  return note.startsWith(isMissing(entry) ? RENAMED_TO : RENAMED_FROM) ? note : undefined;
}

/** The new file had another name before, and its history says so. */
export function renamedFrom(entry: Entry, from: Place): Entry {
  const isNew = (note?: string) => note === BEGINNINGS.newFile || note === BEGINNINGS.fileBack;
  const at = entry.history.findLastIndex(({ note }) => isNew(note));
  return noted(entry, at, `${RENAMED_FROM}${placeName(from)}`);
}

/** The record with another note at one place of its history; -1 for none. */
function noted<E extends Entry>(entry: E, at: number, note: string): E {
  const cut = note.slice(0, LONGEST_NOTE);
  return {
    ...entry,
    history: entry.history.map((change, i) => (i === at ? { ...change, note: cut } : change)),
  };
}

/**
 * The document that the peer was sent is to be removed from there, or once more, as it came back.
 * The file of a skipped one is there, and is skipped again afterwards.
 */
export function removing(
  item: GoneItem | RemovedItem | SkippedWithDocument,
  now: number,
  note?: string,
): RemovingItem {
  const { url, collection } = isItem(item) ? (item.sent ?? item) : item.sent;
  const rest = { notBefore: now, ...sentOf(item) };
  const document = { ...item, url, collection };
  if (item.status !== 'skipped') return become(item, document, 'removing', now, note, rest);
  return become(item, document, 'removing', now, note, { ...rest, keptOut: item.trouble });
}

/** The file changed while its document is being removed, and is kept out as before. */
export function stillKeptOut(
  item: RemovingItem,
  version: FileStat,
  keptOut: Trouble,
): RemovingItem {
  return { ...item, version, keptOut };
}

/** A request to remove the document is about to leave; to be on disk before it does. */
export function removalLeft(item: RemovingItem, now: number): RemovingItem {
  return { ...item, requestedAt: now };
}

/** The removal was not shown, or not even answered: to be asked for again from `notBefore` on. */
export function removalFailed(
  item: RemovingItem,
  trouble: Trouble,
  notBefore: number,
): RemovingItem {
  const { requestedAt: _, ...rest } = item;
  return { ...rest, attempts: item.attempts + 1, trouble, notBefore };
}

/**
 * The peer showed that it does not have the document any more: nothing of what it was sent counts.
 */
export function removed(item: RemovingItem, now: number, note?: string): RemovedItem | SkippedFile {
  const { folder, path, keptOut, version } = item;
  if (keptOut === undefined) return become(item, item, 'removed', now, note, {});
  const history = next(item, 'skipped', now, note);
  const stat = fileStat(version);
  return { folder, path, version: stat, status: 'skipped', trouble: keptOut, since: now, history };
}

/** A rule keeps the file, as it is now, from the peer. */
export function skipped(
  before: Entry | undefined,
  { folder, path }: Place,
  version: FileStat,
  trouble: Trouble,
  now: number,
): SkippedFile {
  const history = next(before, 'skipped', now, trouble.message);
  return {
    folder,
    path,
    version,
    status: 'skipped',
    trouble,
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
 * A push or a removal that left and was never answered may have reached the peer after the recorded
 * push: then nothing is certain.
 */
function sentOf(entry: Entry | undefined): { readonly sent?: Sent } {
  if (entry?.status === 'pending' && entry.inFlight !== undefined)
    return uncertainly({ sent: entry.inFlight });
  if (entry?.sent === undefined) return {};
  return entry.status === 'removing' ? uncertainly(entry) : { sent: entry.sent };
}

function uncertainly({ sent }: { readonly sent?: Sent }): { readonly sent?: Sent } {
  return sent === undefined ? {} : { sent: { ...sent, isUncertain: true } };
}
