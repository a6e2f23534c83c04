import type { StateData } from './data.js';
import type { Place } from './entries.js';
import {
  type Encoding,
  type Entry,
  type Evidence,
  type FileStat,
  type HistoryEntry,
  hasContent,
  type Item,
  isItem,
  type Sent,
  type Trouble,
  type Version,
} from './entry.js';

/**
 * How records look on disk: positional arrays, with what repeats inside a record left out, which makes them half as
 * long and as slow as plain JSON. JSON keeps every finite number exactly.
 *
 * A row is an entry (its first element a status), a removal (`-`), or a named value (`m`; without a value: removed).
 */
export type Row = readonly [kind: string, ...rest: readonly unknown[]];

const REMOVED = '-';
const META = 'm';

const CODE_OF = {
  pending: 'p',
  accepted: 'a',
  confirmed: 'c',
  quarantined: 'q',
  gone: 'g',
  passed: 'o',
} as const satisfies Record<Entry['status'], string>;
const STATUS_OF = new Map(Object.entries(CODE_OF).map(([status, code]) => [code, status as Entry['status']]));

/** Never reordered: records on disk hold positions in this list. */
const ENCODINGS: readonly Encoding[] = ['utf-8', 'utf-16le', 'utf-16be', 'windows-1252', 'binary'];

/** Stands for a value that is not there, or that is the same as the one the record has already. */
const NONE = 0;

export function metaRow(data: StateData, name: string): Row {
  const value = data.meta.get(name);
  return value === undefined ? [META, name] : [META, name, value];
}

export function recordRow(data: StateData, place: Place): Row {
  const entry = data.entries.get(place.folder, place.path);
  return entry === undefined ? [REMOVED, place.folder, place.path] : entryRow(entry);
}

export function entryRow(entry: Entry): Row {
  const { folder, path, since, version } = entry;
  const core = [
    folder,
    path,
    since,
    historyRow(entry.history),
    versionRow(version),
    entry.sent === undefined ? NONE : sentRow(entry.sent, entry),
    entry.trouble === undefined ? NONE : troubleRow(entry.trouble),
  ] as const;
  if (!isItem(entry)) return [CODE_OF.passed, ...core];
  return [CODE_OF[entry.status], ...core, entry.url, entry.collection, entry.attempts, ...statusRow(entry)];
}

function statusRow(item: Item): readonly unknown[] {
  if (item.status === 'confirmed') return [item.evidence.kind, item.evidence.at, item.evidence.shown];
  if (item.status === 'pending') {
    return item.doubt === undefined ? [item.notBefore] : [item.notBefore, sentRow(item.doubt, item)];
  }
  return [];
}

function versionRow(version: Version | FileStat): readonly unknown[] {
  const { size, mtimeMs, ctimeMs, ino } = version;
  if (!hasContent(version)) return [size, mtimeMs, ctimeMs, ino];
  return [size, mtimeMs, ctimeMs, ino, version.sha256, ENCODINGS.indexOf(version.encoding)];
}

function sentRow(sent: Sent, entry: Entry): readonly unknown[] {
  const own = contextOf(entry);
  const row = [
    sent.sha256 === own.sha256 ? NONE : sent.sha256,
    sent.size,
    sent.digest === sent.sha256 ? NONE : sent.digest,
    sent.url === own.url ? NONE : sent.url,
    sent.collection === own.collection ? NONE : sent.collection,
    sent.at,
  ];
  if (sent.peerAt !== undefined) row.push(sent.peerAt);
  return row;
}

interface Context {
  readonly sha256?: string;
  readonly url?: string;
  readonly collection?: string;
}

/** What of a record its `sent` need not repeat. */
function contextOf(entry: Entry): Context {
  if (!isItem(entry)) return {};
  const { url, collection, version } = entry;
  return hasContent(version) ? { url, collection, sha256: version.sha256 } : { url, collection };
}

function troubleRow(trouble: Trouble): readonly unknown[] {
  return [trouble.code, trouble.message, trouble.hint];
}

function historyRow(history: readonly HistoryEntry[]): readonly unknown[] {
  const row: unknown[] = [];
  for (const { status, at, note } of history) row.push(CODE_OF[status], at, note ?? NONE);
  return row;
}

type SentRow = [
  sha256: string | 0,
  size: number,
  digest: string | 0,
  url: string | 0,
  collection: string | 0,
  at: number,
  peerAt?: number,
];
type VersionRow = [
  size: number,
  mtimeMs: number,
  ctimeMs: number,
  ino: number,
  sha256?: string,
  encoding?: number,
];
type TroubleRow = [code: string, message: string, hint: string];
type EntryRow = [
  code: string,
  folder: string,
  path: string,
  since: number,
  history: readonly (string | number)[],
  version: VersionRow,
  sent: SentRow | 0,
  trouble: TroubleRow | 0,
  url: string,
  collection: string,
  attempts: number,
  ...status: readonly unknown[],
];

/** A record while its fields are put together. */
type Unfinished = {
  -readonly [K in keyof Core]: Core[K];
} & { [K in Optional]?: unknown };
type Core = Pick<Entry, 'folder' | 'path' | 'version' | 'status' | 'since' | 'history'>;
type Optional = 'url' | 'collection' | 'attempts' | 'sent' | 'trouble' | 'evidence' | 'notBefore' | 'doubt';

/** Applies rows to data, in the order they were written. Keeps one copy of the strings that most records share. */
export class RowReader {
  readonly #data: StateData;
  readonly #shared = new Map<string, string>();

  constructor(data: StateData) {
    this.#data = data;
  }

  /** The rows come from lines with a sound checksum, so their form is what the functions above wrote. */
  apply(row: Row): void {
    const [kind, first, second] = row as readonly [string, string, never];
    if (kind === REMOVED) this.#data.entries.delete(first, second);
    else if (kind !== META) this.#data.entries.set(this.entry(row));
    else if (row.length > 2) this.#data.meta.set(first, second);
    else this.#data.meta.delete(first);
  }

  entry(row: Row): Entry {
    const [code, folder, path, since, history, version, sent, trouble, url, collection, attempts, ...extra] =
      row as unknown as EntryRow;
    const entry: Unfinished = {
      folder: this.#one(folder),
      path,
      version: versionOf(version),
      status: statusOf(code),
      since,
      history: historyOf(history),
    };
    if (entry.status !== 'passed') {
      entry.url = url;
      entry.collection = this.#one(collection);
      entry.attempts = attempts;
    }
    const own = contextOf(entry as Entry);
    if (sent !== NONE) entry.sent = this.#sent(sent, own);
    if (trouble !== NONE) entry.trouble = { code: trouble[0], message: trouble[1], hint: trouble[2] };
    if (entry.status === 'confirmed') {
      const [kind, at, shown] = extra as [Evidence['kind'], number, string];
      entry.evidence = { kind, at, shown };
    } else if (entry.status === 'pending') {
      const [notBefore, doubt] = extra as [number, SentRow?];
      entry.notBefore = notBefore;
      if (doubt !== undefined) entry.doubt = this.#sent(doubt, own);
    }
    return entry as Entry;
  }

  #sent(row: SentRow, own: Context): Sent {
    const sha256 = row[0] === NONE ? (own.sha256 ?? '') : row[0];
    const sent: Sent = {
      sha256,
      size: row[1],
      digest: row[2] === NONE ? sha256 : row[2],
      url: row[3] === NONE ? (own.url ?? '') : row[3],
      collection: row[4] === NONE ? (own.collection ?? '') : this.#one(row[4]),
      at: row[5],
    };
    return row[6] === undefined ? sent : { ...sent, peerAt: row[6] };
  }

  #one(text: string): string {
    const known = this.#shared.get(text);
    if (known !== undefined) return known;
    this.#shared.set(text, text);
    return text;
  }
}

function statusOf(code: unknown): Entry['status'] {
  const status = STATUS_OF.get(code as (typeof CODE_OF)[Entry['status']]);
  if (status === undefined) throw new Error(`a record has the unknown status ${JSON.stringify(code)}`);
  return status;
}

function versionOf(row: VersionRow): Version | FileStat {
  const [size, mtimeMs, ctimeMs, ino, sha256, encoding] = row;
  if (sha256 === undefined || encoding === undefined) return { size, mtimeMs, ctimeMs, ino };
  return { size, mtimeMs, ctimeMs, ino, sha256, encoding: ENCODINGS[encoding] ?? 'binary' };
}

function historyOf(row: readonly (string | number)[]): readonly HistoryEntry[] {
  const history: HistoryEntry[] = [];
  for (let i = 0; i < row.length; i += 3) {
    const status = statusOf(row[i]);
    const at = Number(row[i + 1]);
    const note = row[i + 2];
    history.push(typeof note === 'string' ? { status, at, note } : { status, at });
  }
  return history;
}
