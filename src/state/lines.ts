import type { FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import type { Row } from './row.js';

/**
 * A line of a journal or a snapshot: the CRC-32 of its JSON in eight hex digits, a space, the JSON, a newline. Arrays
 * are rows; objects are *frames* (headers and footers).
 */
const PREFIX_BYTES = 9;
const NEWLINE = 0x0a;
const SPACE = 0x20;
const COMMA = 0x2c;
const BRACE = 0x7b;
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

/** Turns rows into lines in one buffer that is used again and again. */
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

  add(value: unknown): void {
    const json = JSON.stringify(value);
    this.#reserve(PREFIX_BYTES + 3 * json.length + 1);
    const start = this.#length + PREFIX_BYTES;
    const end = start + this.#buffer.write(json, start, 'utf8');
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

export interface LineListener {
  rows(rows: readonly Row[]): void;
  frame(frame: unknown): void;
}

/** What reading a file of lines found. */
export interface LinesFound {
  /** Sound lines that hold rows. */
  readonly rows: number;
  /** Of the checksums of all sound lines but the last. */
  readonly sumBeforeLast: number;
  /** Lines with a wrong checksum that have sound lines after them. */
  readonly damaged: number;
  /** Where the last sound line ends; what follows is torn. */
  readonly soundBytes: number;
  readonly bytes: number;
}

/**
 * Reads lines in one pass, a buffer at a time, each of which costs one JSON.parse: checksums and newlines are
 * overwritten in place so that the lines of a buffer become the elements of one array.
 */
export class LineReader {
  readonly #listener: LineListener;
  #rows = 0;
  #sum = 0;
  #sumBeforeLast = 0;
  #damaged = 0;
  /** Damaged lines since the last sound one: torn if nothing sound follows. */
  #doubtful = 0;
  #soundBytes = 0;

  constructor(listener: LineListener) {
    this.#listener = listener;
  }

  /** @param bufferBytes how much is read, and parsed without a pause, at once */
  async read(file: FileHandle, bufferBytes: number): Promise<LinesFound> {
    let buffer = Buffer.allocUnsafe(bufferBytes);
    let held = 0;
    let position = 0;
    for (;;) {
      const { bytesRead } = await file.read(buffer, held, buffer.length - held, position);
      if (bytesRead === 0) break;
      position += bytesRead;
      const end = held + bytesRead;
      const whole = buffer.subarray(0, end).lastIndexOf(NEWLINE) + 1;
      this.#parse(buffer, whole, position - end);
      buffer.copy(buffer, 0, whole, end);
      held = end - whole;
      if (held > LONGEST_LINE_BYTES) {
        this.#doubtful += 1;
        held = 0;
      }
      if (held === buffer.length) buffer = Buffer.concat([buffer], 2 * buffer.length);
    }
    return {
      rows: this.#rows,
      sumBeforeLast: this.#sumBeforeLast,
      damaged: this.#damaged,
      soundBytes: this.#soundBytes,
      bytes: position,
    };
  }

  /** @param offset where in the file the buffer begins */
  #parse(buffer: Buffer, end: number, offset: number): void {
    let rows = 0;
    let lastRowEnd = 0;
    const frames: unknown[] = [];
    for (let start = 0; start < end; ) {
      const newline = buffer.indexOf(NEWLINE, start);
      const checksum = soundChecksum(buffer, start, newline);
      if (checksum === undefined) {
        this.#doubtful += 1;
        buffer.fill(SPACE, start, newline + 1);
      } else {
        this.#sound(checksum, offset + newline + 1);
        if (buffer[start + PREFIX_BYTES] === BRACE) {
          frames.push(JSON.parse(buffer.toString('utf8', start + PREFIX_BYTES, newline)));
          buffer.fill(SPACE, start, newline + 1);
        } else {
          buffer.fill(SPACE, start, start + PREFIX_BYTES);
          buffer[newline] = COMMA;
          lastRowEnd = newline;
          rows += 1;
        }
      }
      start = newline + 1;
    }
    for (const frame of frames) this.#listener.frame(frame);
    this.#rows += rows;
    if (rows > 0) this.#listener.rows(JSON.parse(`[${buffer.toString('utf8', 0, lastRowEnd)}]`));
  }

  #sound(checksum: number, end: number): void {
    this.#damaged += this.#doubtful;
    this.#doubtful = 0;
    this.#soundBytes = end;
    this.#sumBeforeLast = this.#sum;
    this.#sum = addToSum(this.#sum, checksum);
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
