import type { Encoding, ExtractedBy, FileStat } from '../lib/file.js';
import { escapeInvisible } from '../lib/text.js';

/** The content of a file when it was read. */
export interface Version extends FileStat {
  /** Hash of the bytes on disk, lower-case hex. */
  readonly sha256: string;
  readonly encoding: Encoding;
}

/** The key of a record: its folder and path. */
export interface ItemKey {
  readonly folder: string;
  /** Relative to the folder, `/` between names, exactly as on disk. */
  readonly path: string;
}

/** Returns the key of a record as one text, for maps. */
export function recordKey(folder: string, path: string): string {
  return `${folder}\0${path}`;
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
  /** Set if the text of a document was sent. */
  readonly extracted?: ExtractedBy;
  /**
   * The things that were missing when the document was read: with one of them, more would be found.
   * `content` decides what the texts mean.
   */
  readonly lacks?: readonly string[];
  /**
   * A later push or removal was never answered, or its effect was not shown. The peer may have this
   * version, an earlier one, or none.
   */
  readonly isUncertain?: true;
}

/** The proof that the peer has this version. The kinds are listed strongest first. */
export interface Evidence {
  readonly kind: 'digest' | 'lastModified' | 'loadDate' | 'size' | 'present';
  /** When it was seen, in ms since the epoch. `verify` and the audit do not renew it. */
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
 * Every change of status is a function in transitions.ts, named after the event. Records are
 * immutable.
 */
interface Core extends ItemKey {
  /**
   * When the current status began, in ms since the epoch: of a confirmed item, when it was
   * confirmed. A pending item keeps the time when the work on its version began.
   */
  readonly since: number;
  /** The latest changes of status, oldest first. The last one is the current status. */
  readonly history: readonly HistoryEntry[];
}

interface ItemCore extends Core, Destination {
  readonly sent?: Sent;
  /**
   * Number of spent attempts of this version: pushes that failed through its fault, and acceptances
   * that were not confirmed. A push that is only postponed spends none (see FailureAttribution).
   */
  readonly attempts: number;
  readonly failure?: Failure;
}

export interface PendingItem extends ItemCore {
  readonly status: 'pending';
  readonly version: Version;
  /**
   * Earliest time of the next push, in ms since the epoch. It is a backoff: a time further away
   * than any failure causes counts as over (see `delayLeftMs`).
   */
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
  /** Earliest time of the next removal request, in ms since the epoch: a backoff, as above. */
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

/** A skipped file of which the peer was sent an older version. */
export type SkippedWithDocument = SkippedFile & { readonly sent: Sent };
/** A record whose document may be in the peer. */
export type WithDocument = Item | SkippedWithDocument;

export function mayHaveDocument(entry: Entry): entry is WithDocument {
  return isItem(entry) || entry.sent !== undefined;
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
