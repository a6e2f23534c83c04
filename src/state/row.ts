import { ENCODINGS } from '../lib/encodings.js';
import type { Change, Json } from './data.js';
import {
  type Entry,
  type Evidence,
  type FileStat,
  type HistoryEntry,
  hasContent,
  isItem,
  type Sent,
  type Trouble,
  type Version,
} from './entry.js';

/**
 * How records look on disk: positional arrays, with what repeats inside a record left out, which makes them half as
 * long and half as slow as plain JSON. JSON keeps every finite number exactly. The times of a record, which are whole
 * milliseconds, count from its `since`; those of its file stay as they are.
 *
 * A row is an entry (its first element a status), a removal (`-`), or a named value (`m`; without a value: removed).
 */
export type Row = readonly [kind: string, ...rest: readonly unknown[]];

export const REMOVED = '-';
export const META = 'm';

export const CODE_OF = {
  pending: 'p',
  accepted: 'a',
  confirmed: 'c',
  quarantined: 'q',
  gone: 'g',
  passed: 'o',
} as const satisfies Record<Entry['status'], string>;

/** Stands for a value that is not there, or that is the same as the one the record has already. */
export const NONE = 0;

export type VersionRow = readonly [
  size: number,
  mtimeMs: number,
  /** Null when the same as mtimeMs. */
  ctimeMs: number | null,
  ino: number,
  sha256?: string,
  encoding?: number,
];
export type SentRow = readonly [
  sha256: string | 0,
  size: number,
  digest: string | 0,
  url: string | 0,
  collection: string | 0,
  at: number,
  /** Null where there is none, and something follows. */
  peerAt?: number | null,
  /** Null as before. */
  lastModified?: number | null,
  words?: number,
];
export type TroubleRow = readonly [code: string, message: string, hint: string];
/** Three elements for each change of status: its code, when, and the note or NONE. */
export type HistoryRow = readonly (string | number)[];

/** The elements after `trouble` are those of items; the last depend on the status. */
export type EntryRow = readonly [
  code: string,
  folder: string,
  path: string,
  since: number,
  history: HistoryRow,
  version: VersionRow,
  sent: SentRow | 0,
  trouble: TroubleRow | 0,
  url: string,
  collection: string,
  attempts: number,
  ...pendingOrConfirmed:
    | readonly [notBefore: number, doubt: SentRow | 0]
    | readonly [kind: Evidence['kind'], at: number, shown: string],
];

export function metaRow(name: string, value: Json | undefined): Row {
  return value === undefined ? [META, name] : [META, name, value];
}

export function changeRow(change: Change): Row {
  return 'status' in change ? entryRow(change) : [REMOVED, change.folder, change.path];
}

export function entryRow(entry: Entry): Row {
  const row: [string, ...unknown[]] = [
    CODE_OF[entry.status],
    entry.folder,
    entry.path,
    entry.since,
    historyRow(entry.history, entry.since),
    versionRow(entry.version),
    entry.sent === undefined ? NONE : sentRow(entry.sent, entry),
    entry.trouble === undefined ? NONE : troubleRow(entry.trouble),
  ];
  if (!isItem(entry)) return row;
  row.push(entry.url, entry.collection, entry.attempts);
  if (entry.status === 'pending') {
    row.push(entry.notBefore - entry.since, entry.doubt === undefined ? NONE : sentRow(entry.doubt, entry));
  } else if (entry.status === 'confirmed') {
    row.push(entry.evidence.kind, entry.evidence.at - entry.since, entry.evidence.shown);
  }
  return row;
}

function versionRow(version: Version | FileStat): VersionRow {
  const { size, mtimeMs, ino } = version;
  const ctimeMs = version.ctimeMs === mtimeMs ? null : version.ctimeMs;
  if (!hasContent(version)) return [size, mtimeMs, ctimeMs, ino];
  return [size, mtimeMs, ctimeMs, ino, version.sha256, ENCODINGS.indexOf(version.encoding)];
}

function sentRow(sent: Sent, entry: Entry): SentRow {
  const item = isItem(entry) ? entry : undefined;
  const sha256 = item !== undefined && hasContent(item.version) ? item.version.sha256 : undefined;
  const { size, peerAt, lastModified, words } = sent;
  const at = sent.at - entry.since;
  const hash = sent.sha256 === sha256 ? NONE : sent.sha256;
  const digest = sent.digest === sent.sha256 ? NONE : sent.digest;
  const url = sent.url === item?.url ? NONE : sent.url;
  const collection = sent.collection === item?.collection ? NONE : sent.collection;
  const row = [hash, size, digest, url, collection, at] as const;
  const byPeer = peerAt === undefined ? undefined : peerAt - entry.since;
  if (words !== undefined) return [...row, byPeer ?? null, lastModified ?? null, words];
  if (lastModified !== undefined) return [...row, byPeer ?? null, lastModified];
  return byPeer === undefined ? row : [...row, byPeer];
}

function troubleRow(trouble: Trouble): TroubleRow {
  return [trouble.code, trouble.message, trouble.hint];
}

function historyRow(history: readonly HistoryEntry[], since: number): HistoryRow {
  const row: (string | number)[] = [];
  for (const { status, at, note } of history) row.push(CODE_OF[status], at - since, note ?? NONE);
  return row;
}
