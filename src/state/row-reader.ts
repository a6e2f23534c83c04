import { ENCODINGS } from '../lib/encodings.js';
import type { StateData } from './data.js';
import type { Entry, Evidence, FileStat, HistoryEntry, Sent, Trouble, Version } from './entry.js';
import {
  CODE_OF,
  type EntryRow,
  type HistoryRow,
  META,
  NONE,
  REMOVED,
  type Row,
  type SentRow,
  type VersionRow,
} from './row.js';

const STATUS_OF = new Map<unknown, Entry['status']>(
  Object.entries(CODE_OF).map(([status, code]) => [code, status as Entry['status']]),
);

/** A record whose optional fields are still being added. */
interface Unfinished {
  readonly folder: string;
  readonly path: string;
  readonly version: Version | FileStat;
  readonly status: Entry['status'];
  readonly since: number;
  readonly history: readonly HistoryEntry[];
  readonly url?: string;
  readonly collection?: string;
  readonly attempts?: number;
  sent?: Sent;
  trouble?: Trouble;
  notBefore?: number;
  doubt?: Sent;
  evidence?: Evidence;
}

/**
 * Applies rows to data, in the order they were written. They come from lines with a sound checksum, so their form is what
 * row.ts made. Strings that most records share are kept once.
 */
export class RowReader {
  readonly #data: StateData;
  readonly #shared = new Map<string, string>();

  constructor(data: StateData) {
    this.#data = data;
  }

  apply(row: Row): void {
    const [kind, first, second] = row as readonly [string, string, never];
    if (kind === REMOVED) this.#data.entries.delete(first, second);
    else if (kind !== META) this.#data.entries.set(this.entry(row));
    else if (row.length > 2) this.#data.meta.set(first, second);
    else this.#data.meta.delete(first);
  }

  entry(from: Row): Entry {
    const row = from as unknown as EntryRow;
    const status = statusOf(row[0]);
    const entry: Unfinished =
      status === 'passed'
        ? {
            folder: this.#one(row[1]),
            path: row[2],
            version: versionOf(row[5]),
            status,
            since: row[3],
            history: historyOf(row[4], row[3]),
          }
        : {
            folder: this.#one(row[1]),
            path: row[2],
            url: row[8],
            collection: this.#one(row[9]),
            version: versionOf(row[5]),
            status,
            attempts: row[10],
            since: row[3],
            history: historyOf(row[4], row[3]),
          };
    if (row[6] !== NONE) entry.sent = this.#sent(row[6], entry);
    if (row[7] !== NONE) entry.trouble = { code: row[7][0], message: row[7][1], hint: row[7][2] };
    if (status === 'pending') {
      const [notBefore, doubt] = row.slice(11) as [number, SentRow | 0];
      entry.notBefore = row[3] + notBefore;
      if (doubt !== NONE) entry.doubt = this.#sent(doubt, entry);
    } else if (status === 'confirmed') {
      const [kind, at, shown] = row.slice(11) as [Evidence['kind'], number, string];
      entry.evidence = { kind, at: row[3] + at, shown };
    }
    return entry as Entry;
  }

  #sent(row: SentRow, entry: Unfinished): Sent {
    const own = 'sha256' in entry.version ? entry.version.sha256 : '';
    const sha256 = row[0] === NONE ? own : row[0];
    const digest = row[2] === NONE ? sha256 : row[2];
    const url = row[3] === NONE ? (entry.url ?? '') : row[3];
    const collection = row[4] === NONE ? (entry.collection ?? '') : this.#one(row[4]);
    const size = row[1];
    const at = entry.since + row[5];
    const peerAt = row[6] ?? undefined;
    const sent: { -readonly [K in keyof Sent]: Sent[K] } = { sha256, size, digest, url, collection, at };
    if (peerAt !== undefined) sent.peerAt = entry.since + peerAt;
    if (typeof row[7] === 'number') sent.lastModified = row[7];
    if (row[8] !== undefined) sent.words = row[8];
    return sent;
  }

  #one(text: string): string {
    const known = this.#shared.get(text);
    if (known !== undefined) return known;
    this.#shared.set(text, text);
    return text;
  }
}

function statusOf(code: unknown): Entry['status'] {
  const status = STATUS_OF.get(code);
  if (status === undefined) throw new Error(`a record has the unknown status ${JSON.stringify(code)}`);
  return status;
}

function versionOf(row: VersionRow): Version | FileStat {
  const [size, mtimeMs, ctime, ino, sha256, encoding] = row;
  const ctimeMs = ctime ?? mtimeMs;
  if (sha256 === undefined || encoding === undefined) return { size, mtimeMs, ctimeMs, ino };
  return { size, mtimeMs, ctimeMs, ino, sha256, encoding: ENCODINGS[encoding] ?? 'binary' };
}

/** Mapped and not pushed together, because a list that grows keeps room for more. */
function historyOf(row: HistoryRow, since: number): readonly HistoryEntry[] {
  return Array.from({ length: row.length / 3 }, (_, i) => {
    const [status, at, note] = [statusOf(row[3 * i]), since + Number(row[3 * i + 1]), row[3 * i + 2]];
    return typeof note === 'string' ? { status, at, note } : { status, at };
  });
}
