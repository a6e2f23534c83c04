import { ENCODINGS } from '../lib/encodings.js';
import { encodePath } from '../lib/text.js';
import {
  type Entry,
  type Evidence,
  type FileStat,
  type HistoryEntry,
  hasContent,
  type Sent,
} from './entry.js';
import { BEGINNINGS } from './transitions.js';

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
/** A number stands for the date that was shown. */
type EvidenceRow = readonly [kind: number, at: number, shown?: string | number | null];
type WaitRow = readonly [notBefore: number | null, inDoubt?: SentRow | null];
/** Status, moment and note of each change; of the last one, where it is the present status, only the note. */
type HistoryRow = readonly (number | string)[];

// None of these lists is ever reordered, and no text in them changed: the state on disk holds positions in them.
const STATUSES = ['pending', 'accepted', 'confirmed', 'quarantined', 'gone', 'passed'] as const;
const CODES = 'pacqgo';
const KINDS = ['digest', 'lastModified', 'loadDate', 'size', 'present'] as const;
const NOTES: readonly (string | undefined)[] = [
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
  numberOf({ url, collection }: UrlBase): number {
    const known = this.#numbers.get(JSON.stringify([url, collection]));
    if (known !== undefined) return known;
    this.set(this.size, { url: url === undefined ? url : ownCopy(url), collection });
    return this.size - 1;
  }
}

/** The text by itself: a part that is cut out of another text keeps the whole of it in memory. */
export function ownCopy(text: string): string {
  return JSON.parse(JSON.stringify(text)) as string;
}

/**
 * What a record's line begins with: a file whose key is that of its record has the recorded version. Compare it with
 * `line.startsWith(key)`; a worker that lists a directory can send keys instead of stats.
 */
export function statKey({ size, mtimeMs, ctimeMs, ino }: FileStat): string {
  return `[${size},${mtimeMs},${ctimeMs === mtimeMs ? '""' : ctimeMs},${ino},`;
}

export function statusOf(line: string): Entry['status'] {
  return statusOfCode(line.charAt(codeAt(line)));
}

/** @throws Error when no status has this letter */
function statusOfCode(letter: unknown): Entry['status'] {
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
  const { version, since, trouble, sent, status } = entry;
  const { size, mtimeMs, ctimeMs, ino } = version;
  const content = hasContent(version) ? version : undefined;
  let [url, base, attempts]: [string | null, number | '', number | null] = [null, '', null];
  if (entry.status !== 'passed') {
    const path = encodePath(entry.path);
    const isUsual = entry.url.endsWith(path);
    const before = isUsual ? entry.url.slice(0, entry.url.length - path.length) : undefined;
    base = bases.numberOf({ url: before, collection: entry.collection });
    url = isUsual ? null : entry.url;
    attempts = entry.attempts || null;
  }
  return JSON.stringify(
    trimmed<Row>([
      size,
      mtimeMs,
      ctimeMs === mtimeMs ? '' : ctimeMs,
      ino,
      `${CODES.charAt(STATUSES.indexOf(status))}${base}`,
      since,
      historyRow(entry),
      content === undefined ? null : packHash(content.sha256),
      content === undefined ? null : ENCODINGS.indexOf(content.encoding),
      sent === undefined ? null : sentRow(sent, entry),
      detailRow(entry),
      url,
      attempts,
      trouble === undefined ? null : [trouble.code, trouble.message, trouble.hint],
    ]),
  );
}

function historyRow(entry: Entry): HistoryRow {
  const { history, status, since } = entry;
  return history.flatMap((change, i) => {
    const isPresent = i === history.length - 1 && change.status === status && change.at === since;
    const note = noteCode(change.note, entry);
    return isPresent ? [note] : [STATUSES.indexOf(change.status), change.at - since, note];
  });
}

function noteCode(note: string | undefined, entry: Entry): number | string {
  if (note === undefined) return NO_NOTE;
  if (entry.status === 'confirmed' && note === evidenceNote(entry.evidence)) return EVIDENCE_NOTE;
  const known = NOTES.indexOf(note);
  return known === -1 ? note : known;
}

/** What the history notes of a confirmation; see `confirmed`. */
function evidenceNote({ kind, shown }: Evidence): string {
  return `${kind} ${shown}`.slice(0, 300);
}

function sentRow(sent: Sent, { version, since, ...rest }: Entry): SentRow {
  const { size, peerAt, lastModified, words } = sent;
  const sha256 = hasContent(version) ? version.sha256 : undefined;
  return trimmed<SentRow>([
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
  const { since } = entry;
  if (entry.status === 'confirmed') {
    const { kind, at, shown } = entry.evidence;
    const moment = Date.parse(shown);
    const isDate = !Number.isNaN(moment) && new Date(moment).toISOString() === shown;
    let short: string | number | null = isDate ? moment - since : shown;
    if (shown === usuallyShown(kind, entry.sent)) short = null;
    return trimmed<EvidenceRow>([KINDS.indexOf(kind), at - since, short]);
  }
  if (entry.status !== 'pending') return null;
  const { notBefore, doubt } = entry;
  if (notBefore === since && doubt === undefined) return null;
  return trimmed<WaitRow>([
    notBefore === since ? null : notBefore,
    doubt === undefined ? null : sentRow(doubt, entry),
  ]);
}

/** What a peer that has the version shows of it; a date of its own for the other kinds. */
function usuallyShown(kind: Evidence['kind'], sent: Sent): string {
  if (kind === 'size') return `${sent.size} bytes`;
  return kind === 'present' ? sent.url : `sha256 ${sent.digest}`;
}

function trimmed<T extends readonly unknown[]>(row: T): T {
  return row.slice(0, 1 + row.findLastIndex((value) => value !== null)) as unknown as T;
}

/** 43 characters instead of 64; anything but a hash stays readable. */
function packHash(hash: string): string {
  return /^[0-9a-f]{64}$/.test(hash) ? Buffer.from(hash, 'hex').toString('base64url') : `#${hash}`;
}

function unpackHash(packed: string): string {
  return packed.startsWith('#') ? packed.slice(1) : Buffer.from(packed, 'base64url').toString('hex');
}

/** The record of which the line was made. A fresh object each time. */
export function decode(line: string, folder: string, path: string, bases: UrlBases): Entry {
  const row = JSON.parse(line) as Row;
  const [size, mtimeMs, ctime, ino, , since, changes, hash, encoding, sent, detail, url, attempts, trouble] =
    row;
  const stat = { size, mtimeMs, ctimeMs: ctime === '' ? mtimeMs : ctime, ino };
  const content = { sha256: unpackHash(hash ?? ''), encoding: ENCODINGS[encoding ?? 0] ?? 'binary' };
  const version = typeof hash === 'string' ? { ...stat, ...content } : stat;
  const status = statusOf(line);
  const entry: Unfinished = { folder, path, version, status, since, history: [] };
  if (status !== 'passed') {
    const base = bases.get(baseOf(line) ?? -1);
    if (base === undefined) throw new Error(`the URL base of ${folder}/${path} is not known`);
    entry.url = url ?? `${base.url ?? ''}${encodePath(path)}`;
    entry.collection = base.collection;
    entry.attempts = attempts ?? 0;
  }
  if (sent) entry.sent = sentOf(sent, entry);
  if (trouble) entry.trouble = { code: trouble[0], message: trouble[1], hint: trouble[2] };
  if (status === 'pending') {
    const [notBefore, doubt] = (detail ?? []) as WaitRow | [];
    entry.notBefore = notBefore ?? since;
    if (doubt) entry.doubt = sentOf(doubt, entry);
  } else if (status === 'confirmed' && entry.sent) {
    const [code, after, kept] = detail as EvidenceRow;
    const kind = KINDS[code] ?? 'present';
    const date = typeof kept === 'number' ? new Date(since + kept).toISOString() : kept;
    const shown = date ?? usuallyShown(kind, entry.sent);
    entry.evidence = { kind, at: since + after, shown };
  }
  entry.history = historyOf(changes, entry);
  return entry as unknown as Entry;
}

/** A record whose fields are still being added. */
type Unfinished = Pick<Entry, 'version' | 'status' | 'since'> & {
  sent?: Sent;
  evidence?: Evidence;
} & Record<string, unknown>;

function sentOf(row: SentRow, { version, since, ...rest }: Unfinished): Sent {
  const [at, peerAt, size, lastModified, words, digest, hash, url, collection] = row;
  const sha256 = hash ? unpackHash(hash) : hasContent(version) ? version.sha256 : '';
  return {
    sha256,
    size: size ?? version.size,
    digest: digest ? unpackHash(digest) : sha256,
    url: url ?? String(rest.url ?? ''),
    collection: collection ?? String(rest.collection ?? ''),
    at: since + at,
    ...(typeof peerAt === 'number' ? { peerAt: since + peerAt } : {}),
    ...(lastModified == null
      ? {}
      : { lastModified: lastModified === true ? wholeSeconds(version) : lastModified }),
    ...(typeof words === 'number' ? { words } : {}),
  };
}

function historyOf(
  row: HistoryRow,
  { status: present, since, evidence }: Unfinished,
): readonly HistoryEntry[] {
  const history: HistoryEntry[] = [];
  for (let i = 0; i < row.length; i += 3) {
    const isPresent = i === row.length - 1;
    const status = isPresent ? present : (STATUSES[row[i] as number] ?? 'pending');
    const at = isPresent ? since : since + (row[i + 1] as number);
    const kept = isPresent ? row[i] : row[i + 2];
    let note = typeof kept === 'string' ? kept : NOTES[kept as number];
    if (kept === EVIDENCE_NOTE && evidence) note = evidenceNote(evidence);
    history.push(note === undefined ? { status, at } : { status, at, note });
  }
  return history;
}

/** What is not there, or the same as the record has already, is 0. */
type SentRow1 = readonly [
  ...(readonly [
    sha256: string | 0,
    size: number,
    digest: string | 0,
    url: string | 0,
    collection: string | 0,
  ]),
  ...(readonly [at: number, peerAt?: number | null, lastModified?: number | null, words?: number]),
];
type Row1 = readonly [
  ...(readonly [code: string, folder: string, path: string, since: number]),
  history: readonly (string | number)[],
  version: readonly [size: number, mtimeMs: number, ctimeMs: number | null, ino: number, string?, number?],
  sent: SentRow1 | 0,
  trouble: Row[13] | 0,
  ...(readonly [url?: string, collection?: string, attempts?: number]),
  /** The kind of the evidence, its moment and what was shown; or how long a pending item waits, and the doubt. */
  ...(readonly [first?: string | number, second?: number | SentRow1, third?: string]),
];

/** The record of a row of schema 1, as peersync wrote it until November 2026: it says the same as a line, in another order. */
export function entryOfSchema1(row: readonly unknown[]): Entry {
  const [
    code,
    folder,
    path,
    since,
    history,
    version,
    sent,
    trouble,
    url,
    collection,
    attempts,
    first,
    second,
    third,
  ] = row as Row1;
  const status = statusOfCode(code);
  const [size, mtimeMs, ctimeMs, ino, sha256, encoding] = version;
  const changes = history.map((value, i) => {
    if (i % 3 === 0) return STATUSES.indexOf(statusOfCode(value));
    return i % 3 === 2 && value === 0 ? NO_NOTE : value;
  });
  let detail: Row[10] = null;
  if (status === 'pending')
    detail = [since + Number(first), Array.isArray(second) ? sentRowOf1(second as SentRow1) : null];
  else if (status === 'confirmed')
    detail = [KINDS.indexOf(first as Evidence['kind']), Number(second), third ?? null];
  const bases = new UrlBases();
  const base = status === 'passed' ? '' : bases.numberOf({ url: undefined, collection: collection ?? '' });
  const line: Row = [
    ...([size, mtimeMs, ctimeMs ?? '', ino, `${code}${base}`, since, changes] as const),
    ...([
      sha256 === undefined ? null : `#${sha256}`,
      encoding ?? null,
      sent === 0 ? null : sentRowOf1(sent),
      detail,
    ] as const),
    ...([url ?? null, attempts ?? null, trouble || null] as const),
  ];
  return decode(JSON.stringify(line), folder, path, bases);
}

function sentRowOf1([
  sha256,
  size,
  digest,
  url,
  collection,
  at,
  peerAt,
  lastModified,
  words,
]: SentRow1): SentRow {
  const hash = (text: string | 0) => (text === 0 ? null : `#${text}`);
  return [
    ...([at, peerAt ?? null, size, lastModified ?? null, words ?? null] as const),
    ...([hash(digest), hash(sha256), url || null, collection || null] as const),
  ];
}
