import { ENCODINGS } from '../lib/encodings.js';
import { encodePath } from '../lib/url-path.js';
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
import { BEGINNINGS } from './history.js';

/**
 * A record as one line of text, the same in memory and on disk: a JSON array of positions, from which the record's place
 * (folder and path) is left out, and everything that follows from something else.
 *
 * It begins with the stat key, so that a file is compared with its record as text; the status follows at once. Moments count
 * from `since`. `null` stands for what is not there, or follows; at the end it is left away.
 */
type Row = readonly [
  size: number,
  mtimeMs: number,
  /** `''` when the same as mtimeMs. */
  ctimeMs: number | '',
  ino: number,
  /** A letter of CODES; for an item the number of its URL base follows. */
  status: string,
  since: number,
  history: HistoryRow,
  sha256?: string | null,
  encoding?: number | null,
  sent?: SentRow | null,
  /** Of a confirmed item its evidence; of a pending one what it waits for. */
  detail?: EvidenceRow | WaitRow | null,
  /** Only where it is not its base and its path. */
  url?: string | null,
  attempts?: number | null,
  trouble?: readonly [code: string, message: string, hint: string] | null,
];
type SentRow = readonly [
  at: number,
  peerAt?: number | null,
  size?: number | null,
  /** True for the file's own, in whole seconds. */
  lastModified?: number | true | null,
  words?: number | null,
  digest?: string | null,
  sha256?: string | null,
  url?: string | null,
  collection?: string | null,
];
/** A date that was shown is kept as its moment. */
type EvidenceRow = readonly [kind: number, at: number, shown?: string | number | null];
type WaitRow = readonly [notBefore: number | null, inDoubt?: SentRow | null];
/** Status, moment and note of each change; of the last one, where it is the present status, only the note. */
type HistoryRow = readonly (number | string)[];

// None of these lists is ever reordered, and no text in them changed: the state on disk holds positions in them.
const STATUSES = ['pending', 'accepted', 'confirmed', 'quarantined', 'gone', 'passed'] as const;
const CODES = 'pacqgo';
const KINDS = ['digest', 'lastModified', 'loadDate', 'size', 'present'] as const;
const NOTES: readonly string[] = [
  BEGINNINGS.newFile,
  BEGINNINGS.fileChanged,
  BEGINNINGS.fileBack,
  BEGINNINGS.sentBefore,
  BEGINNINGS.broughtIn,
  BEGINNINGS.takenAnew,
  BEGINNINGS.takenAnewSentBefore,
  BEGINNINGS.retry,
  BEGINNINGS.replaced,
];
/** The note that the evidence gives. */
const EVIDENCE_NOTE = -2;
const NO_NOTE = -1;

/** Where documents go: the part of their URLs before the paths of their files, and their collection. */
export interface UrlBase {
  /** Undefined for URLs that do not end with the path. */
  readonly url: string | undefined;
  readonly collection: string;
}

/** The few bases that all items share, by number. A number never changes its meaning. */
export class UrlBases {
  readonly #bases: (UrlBase | undefined)[] = [];
  readonly #numbers = new Map<string, number>();

  get size(): number {
    return this.#bases.length;
  }

  get(number: number): UrlBase | undefined {
    return this.#bases[number];
  }

  set(number: number, { url, collection }: UrlBase): void {
    this.#bases[number] = { url, collection };
    this.#numbers.set(JSON.stringify([url, collection]), number);
  }

  /** The number of the base, a new one where it is not known yet. */
  numberOf(base: UrlBase): number {
    const key = JSON.stringify([base.url, base.collection]);
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    // Read back, so that it does not keep alive the whole URL that it is a part of.
    const [url, collection] = JSON.parse(key) as [string | null, string];
    this.set(this.#bases.length, { url: url ?? undefined, collection });
    return this.#bases.length - 1;
  }
}

export function statusOf(line: string): Entry['status'] {
  return statusOfCode(line.charAt(codeAt(line)));
}

/** @throws Error when no status has this letter */
export function statusOfCode(letter: unknown): Entry['status'] {
  const status = typeof letter === 'string' && letter.length === 1 && STATUSES[CODES.indexOf(letter)];
  if (status) return status;
  throw new Error(`a record has the unknown status ${JSON.stringify(letter)}`);
}

/** The number of an item's base. */
export function baseOf(line: string): number | undefined {
  const number = Number.parseInt(line.slice(codeAt(line) + 1), 10);
  return Number.isNaN(number) ? undefined : number;
}

function codeAt(line: string): number {
  let comma = -1;
  for (let i = 0; i < 4; i += 1) comma = line.indexOf(',', comma + 1);
  return comma + 2;
}

export function encode(entry: Entry, bases: UrlBases): string {
  const { version, since, trouble } = entry;
  const { size, mtimeMs, ctimeMs, ino } = version;
  const content = hasContent(version) ? version : undefined;
  let code = CODES.charAt(STATUSES.indexOf(entry.status));
  let url: string | undefined;
  if (isItem(entry)) {
    const path = encodePath(entry.path);
    const before = entry.url.endsWith(path) ? entry.url.slice(0, entry.url.length - path.length) : undefined;
    if (before === undefined) url = entry.url;
    code += bases.numberOf({ url: before, collection: entry.collection });
  }
  const row: Row = [
    ...([size, mtimeMs, ctimeMs === mtimeMs ? '' : ctimeMs, ino, code, since] as const),
    historyRow(entry),
    content === undefined ? null : packHash(content.sha256),
    content === undefined ? null : ENCODINGS.indexOf(content.encoding),
    entry.sent === undefined ? null : sentRow(entry.sent, entry),
    detailRow(entry),
    url ?? null,
    (isItem(entry) && entry.attempts) || null,
    trouble === undefined ? null : [trouble.code, trouble.message, trouble.hint],
  ];
  return JSON.stringify(trimmed(row));
}

function historyRow(entry: Entry): HistoryRow {
  const row: (number | string)[] = [];
  entry.history.forEach(({ status, at, note }, i) => {
    const isPresent = i === entry.history.length - 1 && status === entry.status && at === entry.since;
    if (!isPresent) row.push(STATUSES.indexOf(status), at - entry.since);
    row.push(noteCode(note, entry));
  });
  return row;
}

function noteCode(note: string | undefined, entry: Entry): number | string {
  if (note === undefined) return NO_NOTE;
  if (note === noteOf(entry)) return EVIDENCE_NOTE;
  const known = NOTES.indexOf(note);
  return known === -1 ? note : known;
}

/** What the history notes of a confirmation; see `confirmed`. */
function noteOf(entry: Entry): string | undefined {
  return 'evidence' in entry ? `${entry.evidence.kind} ${entry.evidence.shown}`.slice(0, 300) : undefined;
}

function sentRow(sent: Sent, { version, since, ...rest }: Entry): SentRow {
  const { size, peerAt, lastModified, words } = sent;
  const sha256 = hasContent(version) ? version.sha256 : undefined;
  return trimmed([
    sent.at - since,
    peerAt === undefined ? null : peerAt - since,
    size === version.size ? null : size,
    lastModified === undefined ? null : lastModified === wholeSeconds(version) || lastModified,
    words ?? null,
    sent.digest === sent.sha256 ? null : packHash(sent.digest),
    sent.sha256 === sha256 ? null : packHash(sent.sha256),
    'url' in rest && sent.url === rest.url ? null : sent.url,
    'collection' in rest && sent.collection === rest.collection ? null : sent.collection,
  ]);
}

function wholeSeconds({ mtimeMs }: FileStat): number {
  return Math.floor(mtimeMs / 1000) * 1000 + 0;
}

function detailRow(entry: Entry): EvidenceRow | WaitRow | null {
  if (entry.status === 'confirmed') {
    const { kind, at, shown } = entry.evidence;
    const moment = Date.parse(shown) - entry.since;
    const isDate = shown !== '' && dateShown(entry.since + moment) === shown;
    const short = shown === `sha256 ${entry.sent.digest}` ? null : isDate ? moment : shown;
    return trimmed<EvidenceRow>([KINDS.indexOf(kind), at - entry.since, short]);
  }
  if (entry.status !== 'pending') return null;
  const { notBefore, since, doubt } = entry;
  if (notBefore === since && doubt === undefined) return null;
  return trimmed<WaitRow>([
    notBefore === since ? null : notBefore,
    doubt === undefined ? null : sentRow(doubt, entry),
  ]);
}

function dateShown(ms: number): string {
  return Number.isNaN(new Date(ms).getTime()) ? '' : new Date(ms).toISOString().replace('.000Z', 'Z');
}

function trimmed<T extends readonly unknown[]>(row: T): T {
  let { length } = row;
  while (row[length - 1] === null) length -= 1;
  return row.slice(0, length) as unknown as T;
}

/** 43 characters instead of 64; anything but a hash stays readable. */
function packHash(hash: string): string {
  return /^[0-9a-f]{64}$/.test(hash) ? Buffer.from(hash, 'hex').toString('base64url') : `#${hash}`;
}

function unpackHash(packed: string): string {
  return packed.startsWith('#') ? packed.slice(1) : Buffer.from(packed, 'base64url').toString('hex');
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** A record whose optional fields are still being added. */
interface Unfinished {
  readonly folder: string;
  readonly path: string;
  readonly url?: string;
  readonly collection?: string;
  readonly version: Version | FileStat;
  readonly status: Entry['status'];
  readonly attempts?: number;
  readonly since: number;
  history: readonly HistoryEntry[];
  sent?: Sent;
  trouble?: Trouble;
  notBefore?: number;
  doubt?: Sent;
  evidence?: Evidence;
}

/** The record of which the line was made. A fresh object each time. */
export function decode(line: string, folder: string, path: string, bases: UrlBases): Entry {
  const row = JSON.parse(line) as Row;
  const [since, sent, detail, trouble] = [row[5], row[9], row[10], row[13]];
  const entry = unfinished(row, line, folder, path, bases);
  if (sent) entry.sent = sentOf(sent, entry);
  if (trouble) entry.trouble = { code: trouble[0], message: trouble[1], hint: trouble[2] };
  if (entry.status === 'pending') {
    const [notBefore, doubt] = (detail ?? []) as WaitRow | [];
    entry.notBefore = notBefore ?? since;
    if (doubt) entry.doubt = sentOf(doubt, entry);
  } else if (entry.status === 'confirmed') {
    const [kind, after, shown] = detail as EvidenceRow;
    const text = typeof shown === 'number' ? dateShown(since + shown) : shown;
    const at = since + after;
    entry.evidence = { kind: KINDS[kind] ?? 'present', at, shown: text ?? `sha256 ${entry.sent?.digest}` };
  }
  entry.history = historyOf(row[6], entry as Entry);
  return entry as Entry;
}

function unfinished(row: Row, line: string, folder: string, path: string, bases: UrlBases): Unfinished {
  const status = statusOf(line);
  const [version, since, history] = [versionOf(row), row[5], [] as const];
  if (status === 'passed') return { folder, path, version, status, since, history };
  const base = bases.get(baseOf(line) ?? -1);
  if (base === undefined) throw new Error(`the URL base of ${folder}/${path} is not known`);
  const url = row[11] ?? `${base.url ?? ''}${encodePath(path)}`;
  const { collection } = base;
  return { folder, path, url, collection, version, status, attempts: row[12] ?? 0, since, history };
}

function versionOf(row: Row): Version | FileStat {
  const [size, mtimeMs, ctime, ino, sha256] = [row[0], row[1], row[2], row[3], row[7]];
  const ctimeMs = ctime === '' ? mtimeMs : ctime;
  if (typeof sha256 !== 'string') return { size, mtimeMs, ctimeMs, ino };
  const encoding = ENCODINGS[row[8] ?? 0] ?? 'binary';
  return { size, mtimeMs, ctimeMs, ino, sha256: unpackHash(sha256), encoding };
}

function sentOf(row: SentRow, entry: Unfinished): Sent {
  const { version, since } = entry;
  const [at, peerAt, size, lastModified, words, digest, hash, url, collection] = row;
  const sha256 = hash ? unpackHash(hash) : hasContent(version) ? version.sha256 : '';
  const sent: Mutable<Sent> = {
    sha256,
    size: size ?? version.size,
    digest: digest ? unpackHash(digest) : sha256,
    url: url ?? entry.url ?? '',
    collection: collection ?? entry.collection ?? '',
    at: since + at,
  };
  if (typeof peerAt === 'number') sent.peerAt = since + peerAt;
  if (lastModified === true) sent.lastModified = wholeSeconds(version);
  else if (typeof lastModified === 'number') sent.lastModified = lastModified;
  if (typeof words === 'number') sent.words = words;
  return sent;
}

function historyOf(row: HistoryRow, entry: Entry): readonly HistoryEntry[] {
  const history: HistoryEntry[] = [];
  for (let i = 0; i < row.length; i += 3) {
    const isPresent = i === row.length - 1;
    const status = isPresent ? entry.status : (STATUSES[row[i] as number] ?? 'pending');
    const at = isPresent ? entry.since : entry.since + (row[i + 1] as number);
    const kept = isPresent ? row[i] : row[i + 2];
    const known = kept === EVIDENCE_NOTE ? noteOf(entry) : NOTES[kept as number];
    const note = typeof kept === 'string' ? kept : known;
    history.push(note === undefined ? { status, at } : { status, at, note });
  }
  return history;
}
