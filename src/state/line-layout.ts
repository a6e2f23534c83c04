import type { ExtractedBy, FileStat } from '../lib/file.js';
import type { Evidence, Failure, Sent } from './entry.js';
import { BEGINNINGS } from './history.js';

/**
 * A record as one line of text, the same in memory and on disk: a JSON array of positions. It
 * leaves out the folder and the path, and every value that follows from another one.
 *
 * The status is near the beginning, so that it can be read without parsing. Times are relative to
 * `since`. `null` stands for a value that is absent or follows from another; trailing ones are
 * dropped.
 */
export type Row = readonly [
  size: number,
  mtimeMs: number,
  /** `''` if it equals mtimeMs. */
  ctimeMs: number | '',
  ino: number,
  /** A letter of STATUS_LETTERS. For an item, the number of its URL base follows. */
  status: string,
  since: number,
  history: HistoryRow,
  sha256?: string | null,
  encoding?: number | null,
  sent?: SentRow | null,
  /** The evidence of a confirmed item, or the schedule of a pending item or of a removal. */
  detail?: EvidenceRow | WaitRow | RemovalRow | null,
  /** Present only if the URL is not the base followed by the path. */
  url?: string | null,
  attempts?: number | null,
  failure?: FailureRow | null,
];
export type SentRow = readonly [
  at: number,
  peerAt?: number | null,
  size?: number | null,
  /** True if it is the mtime of the file, in whole seconds. */
  lastModified?: number | true | null,
  words?: number | null,
  digest?: string | null,
  sha256?: string | null,
  url?: string | null,
  collection?: string | null,
  reader?: string | null,
  found?: number | null,
  isUncertain?: 1 | null,
  extraction?: ExtractionRow | null,
  /** What was missing when the document was read, after `LACKS`. */
  lacks?: string | null,
];
/** How a text was extracted, besides the reader and the number of words. */
export type ExtractionRow = readonly [
  ms?: number | null,
  pages?: number | null,
  ocrPages?: number | null,
  confidence?: number | null,
  unreadPages?: string | null,
  leftOut?: string | null,
];
/** A number in `shown` is a date, relative to `since`. */
export type EvidenceRow = readonly [kind: number, at: number, shown?: string | number | null];
export type WaitRow = readonly [notBefore?: number | null, inFlight?: SentRow | null];
export type RemovalRow = readonly [
  notBefore?: number | null,
  requestedAt?: number | null,
  keptOut?: FailureRow | null,
];
export type FailureRow = readonly [code: string, message: string, hint: string];
/**
 * Status, time and note of each change. If the last change is the current status, only its note.
 */
export type HistoryRow = readonly (number | string)[];

// Entries of these lists keep their order: the state on disk stores positions in them.
export const STATUSES = [
  'pending',
  'accepted',
  'confirmed',
  'quarantined',
  'gone',
  'skipped',
  'removing',
  'removed',
] as const;
export const STATUS_LETTERS = 'pacqgord';
export const EVIDENCE_KINDS = ['digest', 'lastModified', 'loadDate', 'size', 'present'] as const;
export const NOTES: readonly (string | undefined)[] = Object.values(BEGINNINGS);
/** Stands for the note that follows from the evidence. */
export const EVIDENCE_NOTE = -2;
export const NO_NOTE = -1;
/**
 * The beginning of a text that shows, without parsing the line, that something was missing when a
 * document was read.
 */
export const LACKS = 'lacks:';

/** Returns the note that `confirmed` writes into the history, cut to its length. */
export function evidenceNote({ kind, shown }: Evidence): string {
  return `${kind} ${shown}`.slice(0, 300);
}

/** Returns the time of the last modification in whole seconds, in ms since the epoch. */
export function wholeSeconds({ mtimeMs }: FileStat): number {
  return Math.floor(mtimeMs / 1000) * 1000 + 0;
}

export function failureRow({ code, message, hint }: Failure): FailureRow {
  return [code, message, hint];
}

export function failureOf([code, message, hint]: FailureRow): Failure {
  return { code, message, hint };
}

export function extractionRow(extracted: ExtractedBy): readonly unknown[] | undefined {
  const { ms, pages, ocrPages, confidence, unreadPages, leftOut } = extracted;
  return withoutTrailingUndefined([ms, pages, ocrPages, confidence, unreadPages, leftOut]);
}

/** Reverses `extractionRow`. */
export function extractedOf(reader: string, words: number, row: ExtractionRow): ExtractedBy {
  const [ms, pages, ocrPages, confidence, unreadPages, leftOut] = row;
  const extracted: { -readonly [Field in keyof ExtractedBy]: ExtractedBy[Field] } = {
    reader,
    words,
  };
  if (typeof ms === 'number') extracted.ms = ms;
  if (typeof pages === 'number') extracted.pages = pages;
  if (typeof ocrPages === 'number') extracted.ocrPages = ocrPages;
  if (typeof confidence === 'number') extracted.confidence = confidence;
  if (typeof unreadPages === 'string') extracted.unreadPages = unreadPages;
  if (typeof leftOut === 'string') extracted.leftOut = leftOut;
  return extracted;
}

/** Drops trailing undefined values. JSON turns the others into null. */
export function withoutTrailingUndefined(row: readonly unknown[]): readonly unknown[] | undefined {
  const length = 1 + row.findLastIndex((value) => value !== undefined);
  return length === 0 ? undefined : row.slice(0, length);
}

/**
 * Returns the value that a peer with this version usually shows, for the kinds whose value is no
 * date.
 */
export function expectedShown(kind: Evidence['kind'], sent: Sent): string {
  if (kind === 'size') return `${sent.size} bytes`;
  return kind === 'present' ? sent.url : `sha256 ${sent.digest}`;
}

/** Shortens a hash from 64 to 43 characters. Any other text is kept, after a `#`. */
export function packHash(hash: string): string {
  const bytes = Buffer.from(hash, 'hex');
  return hash.length === 64 && bytes.length === 32 ? bytes.toString('base64url') : `#${hash}`;
}

export function unpackHash(packed: string): string {
  return packed.startsWith('#')
    ? packed.slice(1)
    : Buffer.from(packed, 'base64url').toString('hex');
}
