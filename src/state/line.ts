import { ENCODINGS, type Encoding, type FileStat } from '../lib/file.js';
import { encodePath } from '../lib/text.js';
import { type Entry, type HistoryEntry, hasContent, type Sent } from './entry.js';
import {
  EVIDENCE_KINDS,
  EVIDENCE_NOTE,
  type EvidenceRow,
  evidenceNote,
  expectedShown,
  extractedOf,
  extractionRow,
  failureOf,
  failureRow,
  type HistoryRow,
  LACKS,
  NO_NOTE,
  NOTES,
  packHash,
  type RemovalRow,
  type Row,
  type SentRow,
  STATUS_LETTERS,
  STATUSES,
  unpackHash,
  type WaitRow,
  wholeSeconds,
  withoutTrailingUndefined,
} from './line-layout.js';

/**
 * The destination that many documents share: the part of their URLs before the path of the file,
 * and the collection.
 */
export interface UrlBase {
  /** Undefined if the URL does not end with the path. */
  readonly url: string | undefined;
  readonly collection: string;
}

/** The few bases that all items share, by number. A number never changes its meaning. */
export type UrlBases = (UrlBase | undefined)[];

/** Returns the number of a base; adds the base if it is new. */
function baseNumber(bases: UrlBases, url: string | undefined, collection: string): number {
  const known = bases.findIndex((base) => base?.collection === collection && base.url === url);
  if (known !== -1) return known;
  return bases.push({ url: url === undefined ? url : detachedCopy(url), collection }) - 1;
}

/** Copies a text. V8 keeps the whole text in memory as long as a part of it is referenced. */
export function detachedCopy(text: string): string {
  return JSON.parse(JSON.stringify(text)) as string;
}

export function statusOf(line: string): Entry['status'] {
  const status = STATUSES[STATUS_LETTERS.indexOf(line.charAt(codeAt(line)))];
  if (status === undefined) throw new Error(`a record has an unknown status: ${line}`);
  return status;
}

/** Returns the number of an item's base; NaN for a skipped file. */
export function baseOf(line: string): number {
  return Number.parseInt(line.slice(codeAt(line) + 1), 10);
}

/** Returns when the status began, in ms since the epoch. */
export function sinceOf(line: string): number {
  return Number.parseInt(line.slice(line.indexOf(',', codeAt(line)) + 1), 10);
}

/** Whether the line is of a skipped file that the peer was never sent. */
export function isSkippedUnsent(line: string): boolean {
  return statusOf(line) === 'skipped' && line.includes(UNSENT_BEFORE_FAILURE);
}

/**
 * Text between the history and the failure of a skipped file that was never sent. It cannot occur
 * within a string, where the quote is escaped.
 */
const UNSENT_BEFORE_FAILURE = ',null,null,null,null,null,null,["';

/** Whether something was missing when the document of this line was read. May err towards true. */
export function mayLack(line: string): boolean {
  return line.includes(`"${LACKS}`);
}

/**
 * Returns the base of an item whose file has this stat, and the encoding of that file, without
 * parsing the line, which takes 0.3 µs where parsing takes 3. Undefined unless the item is pending,
 * accepted or confirmed, and the stat is the same.
 */
export function unchangedItem(
  line: string,
  stat: FileStat,
): { readonly base: number; readonly encoding: Encoding | undefined } | undefined {
  const key = statKey(stat);
  if (!line.startsWith(key)) return undefined;
  AFTER_STAT.lastIndex = key.length;
  const found = AFTER_STAT.exec(line);
  if (found === null) return undefined;
  return { base: Number(found[1]), encoding: ENCODINGS[Number(found[2])] };
}

/** Returns the beginning of the line of a file with this stat. */
function statKey({ size, mtimeMs, ctimeMs, ino }: FileStat): string {
  return `[${size},${mtimeMs},${ctimeMs === mtimeMs ? '""' : ctimeMs},${ino},`;
}

/**
 * The rest of a line up to the encoding: the status and the number of the base, `since`, the
 * history, in which a text may hold brackets, and the hash.
 */
const AFTER_STAT = /"[pac](\d+)",[^,]+,\[(?:[^"\]]|"(?:[^"\\]|\\.)*")*\],"[^"]+",(\d+)/y;

function codeAt(line: string): number {
  let comma = -1;
  for (let i = 0; i < 4; i += 1) comma = line.indexOf(',', comma + 1);
  return comma + 2;
}

export function encode(entry: Entry, bases: UrlBases): string {
  const { version, since, status, sent, failure } = entry;
  const { size, mtimeMs, ctimeMs, ino } = version;
  const content = hasContent(version) ? version : undefined;
  let code = STATUS_LETTERS.charAt(STATUSES.indexOf(status));
  let [url, attempts]: [string?, number?] = [];
  if (entry.status !== 'skipped') {
    const path = encodePath(entry.path);
    const before = entry.url.endsWith(path)
      ? entry.url.slice(0, entry.url.length - path.length)
      : undefined;
    code += baseNumber(bases, before, entry.collection);
    if (before === undefined) url = entry.url;
    if (entry.attempts > 0) attempts = entry.attempts;
  }
  return JSON.stringify(
    withoutTrailingUndefined([
      size,
      mtimeMs,
      ctimeMs === mtimeMs ? '' : ctimeMs,
      ino,
      code,
      since,
      historyRow(entry),
      content && packHash(content.sha256),
      content && ENCODINGS.indexOf(content.encoding),
      sent && sentRow(sent, entry),
      detailRow(entry),
      url,
      attempts,
      failure && failureRow(failure),
    ]),
  );
}

function historyRow(entry: Entry): HistoryRow {
  const { history, status, since } = entry;
  const evidence = entry.status === 'confirmed' ? evidenceNote(entry.evidence) : undefined;
  const row: (number | string)[] = [];
  for (const change of history) {
    const { note } = change;
    let kept: number | string = NO_NOTE;
    if (note !== undefined) kept = note === evidence ? EVIDENCE_NOTE : NOTES.indexOf(note);
    if (note !== undefined && kept === -1) kept = note;
    const isPresent = change === history.at(-1) && change.status === status && change.at === since;
    if (!isPresent) row.push(STATUSES.indexOf(change.status), change.at - since);
    row.push(kept);
  }
  return row;
}

function sentRow(sent: Sent, { version, since, ...rest }: Entry) {
  const {
    at,
    peerAt,
    size,
    lastModified,
    words,
    digest,
    sha256,
    url,
    collection,
    extracted,
    lacks,
  } = sent;
  const isOfVersion = hasContent(version) && sha256 === version.sha256;
  return withoutTrailingUndefined([
    at - since,
    peerAt === undefined ? undefined : peerAt - since,
    size === version.size ? undefined : size,
    lastModified === wholeSeconds(version) || lastModified,
    words,
    digest === sha256 ? undefined : packHash(digest),
    isOfVersion ? undefined : packHash(sha256),
    'url' in rest && url === rest.url ? undefined : url,
    'collection' in rest && collection === rest.collection ? undefined : collection,
    extracted?.reader,
    extracted?.words,
    sent.isUncertain && 1,
    extracted && extractionRow(extracted),
    lacks && LACKS + lacks.join(),
  ]);
}

function detailRow(entry: Entry): readonly unknown[] | undefined {
  const { since } = entry;
  if (entry.status === 'confirmed') {
    const { kind, at, shown } = entry.evidence;
    const kept = shown === expectedShown(kind, entry.sent) ? undefined : packDate(shown, since);
    return withoutTrailingUndefined([EVIDENCE_KINDS.indexOf(kind), at - since, kept]);
  }
  if (entry.status === 'removing') {
    const { keptOut, notBefore, requestedAt } = entry;
    return withoutTrailingUndefined([
      notBefore === since ? undefined : notBefore,
      requestedAt === undefined ? undefined : requestedAt - since,
      keptOut && failureRow(keptOut),
    ]);
  }
  if (entry.status !== 'pending') return undefined;
  const { notBefore, inFlight } = entry;
  return withoutTrailingUndefined([
    notBefore === since ? undefined : notBefore,
    inFlight && sentRow(inFlight, entry),
  ]);
}

/**
 * Returns a date in the format of `toISOString` as a number relative to `since`, and any other text
 * unchanged.
 */
function packDate(shown: string, since: number): string | number {
  const date = Date.parse(shown);
  return !Number.isNaN(date) && new Date(date).toISOString() === shown ? date - since : shown;
}

/** A record under construction. */
type Unfinished = {
  -readonly [Field in keyof Entry]: Entry[Field];
} & {
  [Field in
    | 'url'
    | 'collection'
    | 'attempts'
    | 'notBefore'
    | 'inFlight'
    | 'requestedAt'
    | 'keptOut'
    | 'evidence']?: unknown;
};

/** Parses a line that `encode` made. Returns a new object each time. */
export function decode(line: string, folder: string, path: string, bases: UrlBases): Entry {
  const row = JSON.parse(line) as Row;
  const [size, mtimeMs, ctime, ino, code, since, changes, hash, encoding, sent, ...rest] = row;
  const [detail, url, attempts, failure] = rest;
  const status = statusOf(line);
  const ctimeMs = ctime === '' ? mtimeMs : ctime;
  const sha256 = typeof hash === 'string' ? unpackHash(hash) : '';
  const content = {
    size,
    mtimeMs,
    ctimeMs,
    ino,
    sha256,
    encoding: ENCODINGS[encoding ?? 0] ?? 'binary',
  };
  const version = typeof hash === 'string' ? content : { size, mtimeMs, ctimeMs, ino };
  const entry: Unfinished = { folder, path, version, status, since, history: [] };
  if (status !== 'skipped') {
    const base = bases[Number(code.slice(1))];
    if (base === undefined) throw new Error(`the URL base of ${folder}/${path} is not known`);
    entry.url = url ?? `${base.url ?? ''}${encodePath(path)}`;
    entry.collection = base.collection;
    entry.attempts = attempts ?? 0;
  }
  if (sent) entry.sent = sentOf(sent, entry);
  if (failure) entry.failure = failureOf(failure);
  let note: string | undefined;
  if (status === 'pending') {
    const [notBefore, inFlight] = (detail ?? []) as WaitRow;
    entry.notBefore = notBefore ?? since;
    if (inFlight) entry.inFlight = sentOf(inFlight, entry);
  } else if (status === 'removing') {
    const [notBefore, requestedAt, keptOut] = (detail ?? []) as RemovalRow;
    entry.notBefore = notBefore ?? since;
    if (typeof requestedAt === 'number') entry.requestedAt = since + requestedAt;
    if (keptOut) entry.keptOut = failureOf(keptOut);
  } else if (status === 'confirmed' && entry.sent) {
    const [number, at, kept] = detail as EvidenceRow;
    const kind = EVIDENCE_KINDS[number] ?? 'present';
    const keptText = typeof kept === 'number' ? new Date(since + kept).toISOString() : kept;
    const evidence = { kind, at: since + at, shown: keptText ?? expectedShown(kind, entry.sent) };
    entry.evidence = evidence;
    note = evidenceNote(evidence);
  }
  entry.history = historyOf(changes, entry, note);
  return entry as Entry;
}

/** The work on one item. */
export interface Work {
  readonly status: Exclude<Entry['status'], 'skipped'>;
  readonly since: number;
  readonly collection: string;
  /** Without the note of the evidence. */
  readonly history: readonly HistoryEntry[];
}

/**
 * Returns the work on an item, which takes 0.8 µs where `decode` takes 4.8. Undefined for a skipped
 * file.
 */
export function workOf(line: string, bases: UrlBases): Work | undefined {
  const status = statusOf(line);
  const found = WORK.exec(line);
  const base = bases[Number(found?.[1])];
  if (found === null || base === undefined || status === 'skipped') return undefined;
  const since = Number(found[2]);
  const history = historyOf(JSON.parse(found[3] ?? '') as HistoryRow, { status, since });
  return { status, since, collection: base.collection, history };
}

/** A history, in which a text may hold brackets. */
const HISTORY = /\[(?:[^"\]]|"(?:[^"\\]|\\.)*")*\]/.source;
/** The beginning of the line of an item: the number of the base, `since`, and the history. */
const WORK = new RegExp(`^(?:[^,]+,){4}"[a-z](\\d+)",([^,]+),(${HISTORY})`);

/** The fields of an item in a list, if it has no failure, no attempts and no URL of its own. */
export interface PlainItem {
  readonly status: Entry['status'];
  readonly since: number;
  readonly size: number;
  readonly sha256: string;
  readonly url: string;
}

/**
 * Returns the fields of an item in a list, which takes 1.1 µs where `decode` takes 4.8. Undefined
 * if the item is not pending, accepted or confirmed, or if its line may have more to show:
 * attempts, a failure, a URL of its own, or a text in what was sent or shown.
 */
export function plainItem(line: string, path: string, bases: UrlBases): PlainItem | undefined {
  const found = PLAIN.exec(line);
  const base = bases[Number(found?.[2])];
  if (found === null || base === undefined) return undefined;
  return {
    status: statusOf(line),
    since: Number(found[3]),
    size: Number(found[1]),
    sha256: unpackHash(found[4] ?? ''),
    url: `${base.url ?? ''}${encodePath(path)}`,
  };
}

/** A whole line up to `detail`, in which the rows after the encoding hold only numbers. */
const PLAIN = new RegExp(
  `^\\[([^,]+),[^,]+,[^,]+,[^,]+,"[pac](\\d+)",([^,]+),${HISTORY},"([^"]+)",\\d+(?:,(?:null|\\[[^"[\\]]*\\])){0,2}\\]$`,
);

function sentOf(row: SentRow, entry: Unfinished): Sent {
  const { version, since } = entry;
  const [
    at,
    peerAt,
    size,
    lastModified,
    words,
    digest,
    hash,
    url,
    collection,
    reader,
    found,
    isUncertain,
    extraction,
    lacks,
  ] = row;
  const sha256 = hash ? unpackHash(hash) : hasContent(version) ? version.sha256 : '';
  const sent: { -readonly [Field in keyof Sent]: Sent[Field] } = {
    sha256,
    size: size ?? version.size,
    digest: digest ? unpackHash(digest) : sha256,
    url: url ?? String(entry.url ?? ''),
    collection: collection ?? String(entry.collection ?? ''),
    at: since + at,
  };
  if (typeof peerAt === 'number') sent.peerAt = since + peerAt;
  if (lastModified === true) sent.lastModified = wholeSeconds(version);
  else if (typeof lastModified === 'number') sent.lastModified = lastModified;
  if (typeof words === 'number') sent.words = words;
  if (typeof reader === 'string')
    sent.extracted = extractedOf(reader, found ?? 0, extraction ?? []);
  if (isUncertain) sent.isUncertain = true;
  if (typeof lacks === 'string') sent.lacks = lacks.slice(LACKS.length).split(',');
  return sent;
}

/** @param evidence the note that the evidence gives */
function historyOf(
  row: HistoryRow,
  entry: Pick<Unfinished, 'status' | 'since'>,
  evidence?: string,
): readonly HistoryEntry[] {
  const history: HistoryEntry[] = [];
  for (let i = 0; i < row.length; i += 3) {
    const isPresent = i === row.length - 1;
    const status = isPresent ? entry.status : (STATUSES[row[i] as number] ?? 'pending');
    const at = isPresent ? entry.since : entry.since + (row[i + 1] as number);
    const kept = isPresent ? row[i] : row[i + 2];
    let note = typeof kept === 'string' ? kept : NOTES[kept as number];
    if (kept === EVIDENCE_NOTE) note = evidence;
    history.push(note === undefined ? { status, at } : { status, at, note });
  }
  return history;
}
