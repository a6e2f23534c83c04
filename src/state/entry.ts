import type { Encoding, FileStat } from '../lib/file.js';

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

/** Where a file's document goes: decided by the folder's rules. */
export interface Destination extends Place {
  readonly url: string;
  readonly collection: string;
}

/** The last version that the peer accepted, as far as is known. */
export interface Sent {
  /** The sha256 of the version on disk. */
  readonly sha256: string;
  /** Bytes of the document's text as it travelled (UTF-8). */
  readonly size: number;
  /** sha256 of the document's text as it travelled; the same as `sha256` unless the file was converted. */
  readonly digest: string;
  readonly url: string;
  readonly collection: string;
  /** When the request began, by our clock, in ms since the epoch. */
  readonly at: number;
  /** When the push began, by the peer's clock (whole seconds), where its answers carry a date. */
  readonly peerAt?: number;
  /** The file's last modification as it was told to the peer, in whole seconds (as ms since the epoch); only where the peer keeps it. */
  readonly lastModified?: number;
  /** How many words it has, counted from 10 up to 100; only where the peer shows how many of them it indexed. */
  readonly words?: number;
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
 * - `pending`: this version is to be pushed; `doubt` is set just before a push leaves, so that after a crash the
 *   item is looked up before it is pushed again.
 * - `accepted`: the peer answered a push of this version without an error for it. Proves nothing about search.
 * - `confirmed`: the peer showed this version; the evidence is kept.
 * - `quarantined`: cannot succeed without a change; the trouble says why.
 * - `gone`: its file was removed (the peer keeps the document: its API has no way to remove one).
 *
 * A file that a rule keeps from the peer (empty, too large, not text) is `passed` over: no item, but remembered, so that
 * it is not read again until it changes.
 *
 * Every change of status is a function of transitions.ts; records are never changed in place.
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
  readonly doubt?: Sent;
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
export interface PassedOver extends Core {
  readonly status: 'passed';
  readonly version: FileStat;
  readonly trouble: Trouble;
  /** What the peer still has of an earlier version. */
  readonly sent?: Sent;
}

export type Item = PendingItem | AcceptedItem | ConfirmedItem | QuarantinedItem | GoneItem;
export type Entry = Item | PassedOver;
export type Status = Item['status'];

export function isItem(entry: Entry): entry is Item {
  return entry.status !== 'passed';
}

export function hasContent(version: Version | FileStat): version is Version {
  return 'sha256' in version;
}

/** Whether the peer has, or may have, what was sent to this address for the file. */
export function claims(entry: Entry, url: string): boolean {
  return entry.sent?.url === url || (entry.status === 'pending' && entry.doubt?.url === url);
}
