import type { FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';

/**
 * How journals and snapshots are framed: each line is the CRC-32 of its text in eight hex digits, a space, the text (JSON, or
 * values of JSON with commas between them), a newline.
 */
const PREFIX_BYTES = 9;
const NEWLINE = 0x0a;
const SPACE = 0x20;
const HEX = Buffer.from('0123456789abcdef');

/** What no record reaches: file paths end at 4 KiB, and URLs of them at 12. Longer lines are damage. */
const LONGEST_LINE_BYTES = 4 * 1024 * 1024;

/** The sum of a file's line checksums in order; catches lines that are sound but not where they belong. */
function addToSum(sum: number, checksum: number): number {
  return (Math.imul(sum, 31) + checksum) | 0;
}

export function lineOf(value: unknown): string {
  const json = JSON.stringify(value);
  return `${crc32(json).toString(16).padStart(8, '0')} ${json}\n`;
}

/** Gathers lines in one buffer that is used again and again. */
export class LineBuffer {
  #buffer = Buffer.allocUnsafe(64 * 1024);
  #length = 0;
  /** Lines added in all. */
  lines = 0;
  sum = 0;

  /** Bytes waiting. */
  get length(): number {
    return this.#length;
  }

  /** @param text without a newline */
  add(text: string): void {
    this.#reserve(PREFIX_BYTES + 3 * text.length + 1);
    const start = this.#length + PREFIX_BYTES;
    const end = start + this.#buffer.write(text, start, 'utf8');
    const checksum = crc32(this.#buffer.subarray(start, end));
    for (let i = 0; i < 8; i += 1)
      this.#buffer[this.#length + i] = HEX[(checksum >>> (28 - 4 * i)) & 15] ?? 0;
    this.#buffer[start - 1] = SPACE;
    this.#buffer[end] = NEWLINE;
    this.#length = end + 1;
    this.lines += 1;
    this.sum = addToSum(this.sum, checksum);
  }

  /** The lines added since the last call; good until the next `add`. */
  take(): Uint8Array {
    const taken = this.#buffer.subarray(0, this.#length);
    this.#length = 0;
    return taken;
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#length + bytes, 2 * this.#buffer.length));
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }
}

/** Writes `bytes` at `position`, whatever number of calls that takes. */
export async function writeFully(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}

/** What reading a file of lines found. */
export interface LinesFound {
  /** Sound lines. */
  lines: number;
  /** Of the checksums of all sound lines but the last. */
  sumBeforeLast: number;
  /** Lines with a wrong checksum that have sound lines after them. */
  damaged: number;
  /** Where the last sound line ends; what follows is torn. */
  soundBytes: number;
  bytes: number;
}

/**
 * Reads a file of lines in one pass.
 *
 * @param bufferBytes how much is read at once, and handed on without a pause
 * @param onLine is called for each sound line with where its text stands; the buffer is used again afterwards
 */
export async function readLines(
  file: FileHandle,
  bufferBytes: number,
  onLine: (buffer: Buffer, start: number, end: number) => void,
): Promise<LinesFound> {
  const found: LinesFound = { lines: 0, sumBeforeLast: 0, damaged: 0, soundBytes: 0, bytes: 0 };
  let buffer = Buffer.allocUnsafe(bufferBytes);
  let held = 0;
  let sum = 0;
  // Damaged lines since the last sound one: torn if nothing sound follows.
  let doubtful = 0;
  for (;;) {
    const { bytesRead } = await file.read(buffer, held, buffer.length - held, found.bytes);
    if (bytesRead === 0) return found;
    found.bytes += bytesRead;
    const end = held + bytesRead;
    let start = 0;
    for (let newline = buffer.indexOf(NEWLINE, held); newline !== -1 && newline < end; ) {
      const checksum = soundChecksum(buffer, start, newline);
      if (checksum === undefined) doubtful += 1;
      else {
        found.lines += 1;
        found.damaged += doubtful;
        doubtful = 0;
        found.soundBytes = found.bytes - end + newline + 1;
        found.sumBeforeLast = sum;
        sum = addToSum(sum, checksum);
        onLine(buffer, start + PREFIX_BYTES, newline);
      }
      start = newline + 1;
      newline = buffer.indexOf(NEWLINE, start);
    }
    buffer.copy(buffer, 0, start, end);
    held = end - start;
    if (held > LONGEST_LINE_BYTES) {
      doubtful += 1;
      held = 0;
    }
    if (held === buffer.length) buffer = Buffer.concat([buffer], 2 * buffer.length);
  }
}

/** The checksum of the line, or undefined if it is not the one the line claims. */
function soundChecksum(buffer: Buffer, start: number, newline: number): number | undefined {
  if (newline - start <= PREFIX_BYTES || buffer[start + PREFIX_BYTES - 1] !== SPACE) return undefined;
  const checksum = crc32(buffer.subarray(start + PREFIX_BYTES, newline));
  for (let i = 0; i < 8; i += 1) {
    if (buffer[start + i] !== HEX[(checksum >>> (28 - 4 * i)) & 15]) return undefined;
  }
  return checksum;
}
