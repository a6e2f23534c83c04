import { type Encoding, type FileStat, fileStat, sameStat } from '../lib/file.js';
import { escapeInvisible } from '../lib/text.js';

/** The content of a file when it was read. */
export interface Version extends FileStat {
  /** Hash of the bytes on disk, lower-case hex. */
  readonly sha256: string;
  readonly encoding: Encoding;
}

/** The key of a record: its folder and path. Every Entry has one. */
export interface ItemKey {
  readonly folder: string;
  /** Relative to the folder, `/` between names, exactly as on disk. */
  readonly path: string;
}

/** Returns `FOLDER/path`, as logs and commands write it. Invisible characters are escaped. */
export function itemName({ folder, path }: ItemKey): string {
  return escapeInvisible(`${folder}/${path}`);
}

/** The URL and collection of a file's document, set by the rules of the folder. */
export interface Destination extends ItemKey {
  readonly url: string;
  readonly collection: string;
}

/** The last version that the peer accepted or may have accepted. */
export interface Sent {
  /** The sha256 of the version on disk. */
  readonly sha256: string;
  /** Size of the document's text as it was sent, in bytes of UTF-8. */
  readonly size: number;
  /**
   * sha256 of the document's text as it was sent. Equals `sha256` unless the file was converted.
   */
  readonly digest: string;
  readonly url: string;
  readonly collection: string;
  /** When the request began, by our clock, in ms since the epoch. */
  readonly at: number;
  /**
   * When the push began, by the peer's clock (whole seconds). Set only if the peer's answers carry
   * a date.
   */
  readonly peerAt?: number;
  /**
   * The last modification that the push named, in whole seconds (as ms since the epoch). Set only
   * if the peer keeps it.
   */
  readonly lastModified?: number;
  /**
   * Number of words of the document; counting stops at 100. Set only if there are at least 10 and
   * the peer shows how many words it indexed.
   */
  readonly words?: number;
  /** The reader that extracted the text of a document, and the number of words it found. */
  readonly extracted?: { readonly reader: string; readonly words: number };
  /**
   * A later push or removal was never answered, or its effect was not shown. The peer may have this
   * version, an earlier one, or none.
   */
  readonly isUncertain?: true;
}

/** The proof that the peer has this version. The kinds are listed strongest first. */
export interface Evidence {
  readonly kind: 'digest' | 'lastModified' | 'loadDate' | 'size' | 'present';
  /** When it was seen, in ms since the epoch. */
  readonly at: number;
  /** The value that the peer showed. */
  readonly shown: string;
}

/**
 * Why an item failed or a file is kept out: one sentence saying what happened, one saying what to
 * do, and a stable code.
 */
export interface Failure {
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
 * The record of one file of a folder, and its life cycle.
 *
 * An *item* is a file and the one document it becomes in the peer. Its status:
 *
 * - `pending`: this version has to be pushed. `inFlight` is set just before a push is sent, so that
 *   after a crash the document is looked up before it is pushed again.
 * - `accepted`: the peer answered a push of this version without an error for it. That does not
 *   prove that it is searchable.
 * - `confirmed`: the peer showed this version. The evidence is kept.
 * - `quarantined`: it cannot succeed without a change. The failure says why.
 * - `gone`: the file was removed and no removal of the document is planned. The folder keeps
 *   documents, the peer never had this one, or the decision is still open.
 * - `removing`: the document has to be removed from the peer, because its file was removed or is
 *   `keptOut`. `requestedAt` is set just before the request is sent, so that after a crash the
 *   document is looked up first.
 * - `removed`: the peer showed that it no longer has the document.
 *
 * A file that its size or its content keeps from the peer (empty, too large, not text) is
 * `skipped`, and so is one that a path rule excludes after the peer was sent it. It is no item, but
 * its record saves reading it again until it changes. If the peer was sent an older version,
 * that version stays searchable until it is removed: the file becomes `removing`, then skipped
 * again.
 *
 * Every change of status is a function below, named after the event. Records are immutable.
 */
interface Core extends ItemKey {
  /** When the current status began, in ms since the epoch. */
  readonly since: number;
  /** The latest changes of status, oldest first. The last one is the current status. */
  readonly history: readonly HistoryEntry[];
}

interface ItemCore extends Core, Destination {
  readonly sent?: Sent;
  /** Number of failed pushes and unconfirmed acceptances of this version. */
  readonly attempts: number;
  readonly failure?: Failure;
}

export interface PendingItem extends ItemCore {
  readonly status: 'pending';
  readonly version: Version;
  /** Earliest time of the next push, in ms since the epoch. */
  readonly notBefore: number;
  /** A push of this version was sent (at `at`) and no answer to it has been recorded. */
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
  /** Has no `sha256` if the file could not be read. */
  readonly version: Version | FileStat;
  readonly failure: Failure;
}
export interface GoneItem extends ItemCore {
  readonly status: 'gone';
  readonly version: Version | FileStat;
}
export interface RemovingItem extends ItemCore {
  readonly status: 'removing';
  readonly version: Version | FileStat;
  /** Earliest time of the next removal request, in ms since the epoch. */
  readonly notBefore: number;
  /** When the removal was requested, in ms since the epoch. Unset once the attempt has failed. */
  readonly requestedAt?: number;
  /**
   * The reason why an existing file is kept out; `version` is then that file. Undefined if the file
   * was removed.
   */
  readonly keptOut?: Failure;
}
export interface RemovedItem extends ItemCore {
  readonly status: 'removed';
  readonly version: Version | FileStat;
}
/** An item whose file was removed or is kept out. */
export type AwayItem = GoneItem | RemovingItem | RemovedItem;
export interface SkippedFile extends Core {
  readonly status: 'skipped';
  readonly version: FileStat;
  readonly failure: Failure;
  /** The older version that the peer still has. */
  readonly sent?: Sent;
}

export type Item = PendingItem | AcceptedItem | ConfirmedItem | QuarantinedItem | AwayItem;
export type Entry = Item | SkippedFile;
export type Status = Item['status'];

export function isItem(entry: Entry): entry is Item {
  return entry.status !== 'skipped';
}

const AWAY: ReadonlySet<Entry['status']> = new Set(['gone', 'removing', 'removed']);

/** Whether this status is one of `AwayItem`. */
export function isAwayStatus(status: Entry['status']): boolean {
  return AWAY.has(status);
}

export function isAway(entry: Entry): entry is AwayItem {
  return AWAY.has(entry.status);
}

export function hasContent(version: Version | FileStat): version is Version {
  return 'sha256' in version;
}

/** Code of the failure of a file that a path rule excludes. */
export const EXCLUDED = 'EXCLUDED';

/** Whether a path rule excludes the file although the peer was sent a document for it. */
export function isExcluded(entry: Entry): boolean {
  return entry.failure?.code === EXCLUDED;
}

/** Returns the reason why an existing file is kept from the peer. */
export function keptOutFor(entry: Entry | undefined): Failure | undefined {
  if (entry?.status === 'skipped') return entry.failure;
  return entry?.status === 'removing' ? entry.keptOut : undefined;
}

/**
 * Whether the file was already skipped for this reason, even if it changed and was read again
 * since. The user has then been told.
 */
export function wasSkippedFor(before: Entry | undefined, why: Failure): boolean {
  if (before === undefined || isMissing(before)) return false;
  if (keptOutFor(before)?.code === why.code) return true;
  const last = before.history.findLast(({ status }) => status !== 'pending');
  return last?.status === 'skipped' && last.note === why.message;
}

/** Whether the file of this record was removed. */
export function isMissing(entry: Entry): boolean {
  return isAway(entry) && keptOutFor(entry) === undefined;
}

/**
 * Returns the hash of the file's content or, if that is unknown, of the content sent to the peer.
 */
export function contentOf({ version, sent }: Entry): string | undefined {
  return hasContent(version) ? version.sha256 : sent?.sha256;
}

/** Whether the peer has, or may have, a document of this file at `url`. */
export function claims(entry: Entry, url: string): boolean {
  return entry.sent?.url === url || (entry.status === 'pending' && entry.inFlight?.url === url);
}

/**
 * Whether an existing file has, or may have had, its document at `url`. The document there must not
 * be removed.
 */
export function isLiveAt(entry: Entry, url: string): boolean {
  return !isAway(entry) && ((isItem(entry) && entry.url === url) || claims(entry, url));
}

/**
 * Minimum time between two pushes of one document, in ms. Peers date documents in whole seconds and
 * clocks differ a little, so an older version of the same size could pass for the newer one.
 */
const MIN_PUSH_GAP_MS = 3_000;
/** Number of status changes that a record keeps. */
const HISTORY_LENGTH = 8;
const MAX_NOTE_LENGTH = 300;

/**
 * Notes that mark the beginning of the work on a version. The entries that follow, up to the next
 * beginning, belong to the same work.
 *
 * For `newFile`, `fileChanged`, `fileBack` and `sentBefore` the time is when the file came to rest,
 * which may be before it was found.
 *
 * Entries may be added, but never changed or reordered: the state on disk stores positions in this
 * list.
 */
export const BEGINNINGS = {
  newFile: 'new file',
  fileChanged: 'the file changed',
  fileBack: 'the file is back',
  sentBefore: 'the peer was sent this before',
  /**
   * Written until November 2026 for a file that was moved here with its directory, or that a rule
   * used to exclude.
   */
  broughtIn: 'new file, older than its place here',
  takenAnew: 'taken anew, though the file is the same',
  takenAnewSentBefore: 'taken anew, and the peer was sent this before',
  retry: 'retry asked for',
  replaced: 'another file was pushed to its address',
} as const;
/**
 * Prefix of the note of an item that the peer lost after it was confirmed; the reason follows. It
 * is stored in the state on disk and must not change.
 */
const LOST_NOTE = 'confirmed before and missed now: ';
/**
 * Prefixes of the notes of renamed files: the new file names the old one, and the removed file
 * names the new one.
 */
const RENAMED_FROM = 'renamed from ';
const RENAMED_TO = 'renamed to ';
const BEGINNING_NOTES: ReadonlySet<string> = new Set(Object.values(BEGINNINGS));

/** Returns the index at which the current work begins; -1 if the history no longer has it. */
export function beginningOf(history: History): number {
  return history.findLastIndex(({ note }) => note !== undefined && isBeginning(note));
}

function isBeginning(note: string): boolean {
  return BEGINNING_NOTES.has(note) || note.startsWith(LOST_NOTE) || note.startsWith(RENAMED_FROM);
}

/**
 * Whether an item is `accepted` without a new push, because the peer was sent this version before.
 */
export function isAcceptedWithoutPush({ history }: AcceptedItem): boolean {
  const note = history.at(-1)?.note;
  return note === BEGINNINGS.sentBefore || note === BEGINNINGS.takenAnewSentBefore;
}

type History = readonly HistoryEntry[];

/** Returns the history of `before` with one more change of status. */
function historyWith(
  before: Entry | undefined,
  status: Entry['status'],
  at: number,
  note?: string,
): History {
  const entry: HistoryEntry =
    note === undefined ? { status, at } : { status, at, note: note.slice(0, MAX_NOTE_LENGTH) };
  if (before === undefined) return [entry];
  const { history } = before;
  if (history.length < HISTORY_LENGTH) return [...history, entry];
  // The beginning of the current work is kept, however many attempts follow.
  const beginning = history[beginningOf(history)];
  const kept = history.slice(1 - HISTORY_LENGTH);
  if (beginning === undefined || kept.includes(beginning) || beginningOf([entry]) === 0)
    return [...kept, entry];
  return [beginning, ...kept.slice(1), entry];
}

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
 * Called when the push certainly did not reach the peer, or the peer certainly refused it. The item
 * is no longer in flight.
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
 * Called when an attempt failed: a push was refused, or a confirmation did not come. The item is
 * pushed again from `notBefore` on.
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

/** A record whose document may be in the peer. */
export type WithDocument = Item | (SkippedFile & { readonly sent: Sent });

export function mayHaveDocument(entry: Entry): entry is WithDocument {
  return isItem(entry) || entry.sent !== undefined;
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

/** A skipped file of which the peer was sent an older version. */
export type SkippedWithDocument = SkippedFile & { readonly sent: Sent };

/** Notes in the history of a removed file that it now has the name `to`. */
export function renamedTo(item: AwayItem, to: ItemKey): AwayItem {
  const at = item.history.findLastIndex(({ status }) => status === 'gone');
  return withNote(item, at, `${RENAMED_TO}${itemName(to)}`);
}

/** Whether the removed file now has another name. */
export function isRenamed(item: AwayItem): boolean {
  return renameOf(item) !== undefined;
}

/**
 * Returns `renamed to FOLDER/path` for a removed file that now has another name, or `renamed from
 * FOLDER/path` for a file that had another name before.
 */
export function renameOf(entry: Entry): string | undefined {
  const { history } = entry;
  const change = isMissing(entry)
    ? history.findLast(({ status }) => status === 'gone')
    : history[beginningOf(history)];
  const note = change?.note ?? '';
  return note.startsWith(isMissing(entry) ? RENAMED_TO : RENAMED_FROM) ? note : undefined;
}

/** Notes in the history of a new file that it had the name `from` before. */
export function renamedFrom(entry: Entry, from: ItemKey): Entry {
  const isNew = (note?: string) => note === BEGINNINGS.newFile || note === BEGINNINGS.fileBack;
  const at = entry.history.findLastIndex(({ note }) => isNew(note));
  return withNote(entry, at, `${RENAMED_FROM}${itemName(from)}`);
}

/** Replaces the note at one index of the history; -1 changes nothing. */
function withNote<E extends Entry>(entry: E, at: number, note: string): E {
  const cut = note.slice(0, MAX_NOTE_LENGTH);
  return {
    ...entry,
    history: entry.history.map((change, i) => (i === at ? { ...change, note: cut } : change)),
  };
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
