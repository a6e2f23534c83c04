import { isAscii } from 'node:buffer';
import { analyse, type EncodingName } from 'chardet';
import type { Encoding } from '../lib/file.js';

/**
 * Detects the encoding of text that is not Unicode, from a sample:
 *
 * - Scripts with Latin letters are `windows-1252`: their other letters stand alone among ASCII.
 * - Scripts without them fill whole words with bytes above 0x7F. `chardet` knows their encodings
 *   by the most frequent letters. Its answer counts if it is clear.
 * - Otherwise the text is `unknown-8bit` (RFC 1428), unless nearly all of it is ASCII anyway.
 *
 * The limits were measured on the translations of GNU programs in 23 languages, 200 texts of each
 * size, alone and between lines of source code. No text in a Western European language of 200 bytes
 * or more was taken for another encoding.
 */

/**
 * Size of the sample, in bytes. It takes up to 4 ms, and only if the text is neither UTF-8 nor
 * windows-1252.
 */
export const SAMPLE_BYTES = 4_096;
/** Length of a row of bytes above 0x7F that is rare among Latin letters, in bytes. */
const LONG_ROW = 3;
/**
 * Share of such bytes that are in long rows. It was up to 0.26 in Western European texts of 600
 * bytes, at least 0.47 in Shift_JIS, 0.64 in Big5, and 0.76 in the others.
 */
const MIN_ROWS = 0.3;
const MIN_ROWS_OF_SINGLE_BYTES = 0.6;
/** Share of bytes in long rows, of all letters, below which a text is searchable by its ASCII. */
const FEW_IN_ROWS = 0.1;
/** Difference from the second best answer, in the percent of `chardet`. */
const MIN_MARGIN = 10;

/** An encoding, and the confidence from which `chardet` is believed, in its percent. */
type Candidate = readonly [encoding: Encoding | undefined, minConfidence: number];

/** Encodings with two bytes a character. They are also checked by decoding. */
const DOUBLE_BYTE: Partial<Readonly<Record<EncodingName, Candidate>>> = {
  GB18030: ['gb18030', 50],
  Big5: ['big5', 50],
  'EUC-JP': ['euc-jp', 50],
  Shift_JIS: ['shift_jis', 50],
  'EUC-KR': ['euc-kr', 50],
};

/**
 * Encodings with one byte a character. Two without an encoding here only compete: `chardet` takes
 * other texts for them. KOI8-U and windows-1255 have the letters of the encoding that is detected
 * at the same places, and more.
 */
const SINGLE_BYTE: Partial<Readonly<Record<EncodingName, Candidate>>> = {
  'KOI8-R': ['koi8-u', 20],
  'windows-1251': ['windows-1251', 20],
  'ISO-8859-5': ['iso-8859-5', 20],
  'ISO-8859-7': ['iso-8859-7', 40],
  'windows-1253': ['windows-1253', 40],
  'ISO-8859-8': ['windows-1255', 40],
  'windows-1255': ['windows-1255', 40],
  'windows-1256': ['windows-1256', 40],
  'ISO-8859-6': [undefined, 0],
  'windows-874': [undefined, 0],
};

/** Returns the part of a piece that shows its encoding: from the first byte above 0x7F. */
export function withoutAsciiHead(piece: Buffer): Buffer {
  if (isAscii(piece)) return piece.subarray(piece.length);
  let at = 0;
  while ((piece[at] ?? 0x80) < 0x80) at += 1;
  return piece.subarray(at);
}

/** @param sample the text from its first byte above 0x7F, up to `SAMPLE_BYTES` */
export function legacyEncodingOf(sample: Buffer): Encoding {
  const { inRows, letters, others } = countLetters(sample);
  if (inRows < others * MIN_ROWS) return 'windows-1252';
  const found = candidates(sample, DOUBLE_BYTE).filter(
    ({ encoding, minConfidence, confidence }) =>
      confidence >= minConfidence && isValid(sample, encoding),
  );
  // ASCII letters would make other scripts look less likely.
  if (inRows >= others * MIN_ROWS_OF_SINGLE_BYTES)
    found.push(...candidates(withoutAscii(sample), SINGLE_BYTE));
  const [best, second] = found.sort((a, b) => b.confidence - a.confidence);
  const isClear =
    best !== undefined &&
    best.confidence >= best.minConfidence &&
    best.confidence - (second?.confidence ?? 0) >= MIN_MARGIN;
  if (isClear && best.encoding !== undefined) return best.encoding;
  return inRows < (letters + others) * FEW_IN_ROWS ? 'windows-1252' : 'unknown-8bit';
}

/**
 * Counts ASCII letters, other bytes above 0x7F, and those of them in long rows. A row of one byte,
 * as old tables are drawn with, is no word.
 */
function countLetters(sample: Buffer) {
  let [letters, others, inRows, row, last] = [0, 0, 0, 0, 0];
  for (const byte of sample) {
    if (byte >= 0x80) {
      others += 1;
      if (byte !== last) row += 1;
      if (row === LONG_ROW && byte !== last) inRows += LONG_ROW;
      else if (row > LONG_ROW && byte !== last) inRows += 1;
    } else {
      row = 0;
      if ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a) letters += 1;
    }
    last = byte;
  }
  return { letters, others, inRows };
}

function candidates(
  sample: Buffer,
  known: Partial<Readonly<Record<EncodingName, Candidate>>>,
): { encoding: Encoding | undefined; minConfidence: number; confidence: number }[] {
  return analyse(sample).flatMap(({ confidence, name }) => {
    const candidate = known[name];
    if (candidate === undefined) return [];
    const [encoding, minConfidence] = candidate;
    return [{ encoding, minConfidence, confidence }];
  });
}

function withoutAscii(sample: Buffer): Buffer {
  return Buffer.from(sample.map((byte) => (byte < 0x80 ? 0x20 : byte)));
}

/** Whether a sample can be decoded. Its last character may be cut. */
function isValid(sample: Buffer, encoding: Encoding | undefined): boolean {
  try {
    new TextDecoder(encoding, { fatal: true }).decode(sample, { stream: true });
    return true;
  } catch {
    return false;
  }
}
