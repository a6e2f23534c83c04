import type { FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import type { OpenFile } from './directory.js';

/**
 * Frames one line of a journal or a snapshot: the CRC-32 of the text in eight hex digits, a space,
 * the text, a newline. The texts are
 *
 * - a header, the first line of every file: `{"peersync":"journal",…}`;
 * - a footer, which ends the lines that the file was created with (in a snapshot, all lines):
 *   `{"records":…,"sum":…}`;
 * - `"folder","path",[record]` for a record, and `["-","folder","path"]` for one that was removed;
 * - `["m","name",value]` for a small value, without `value` if it was removed;
 * - `["u",number,"collection","url"]` for a URL base. In a snapshot it may follow the records that
 *   use it.
 */
export function lineOf(text: string, checksum = crc32(text)): string {
  return `${checksum.toString(16).padStart(8, '0')} ${text}\n`;
}

/**
 * Running totals of the lines of a file: their number, and a sum of their checksums. The sum
 * detects intact lines that are missing or in the wrong order.
 */
class LineTotals {
  #lines = 0;
  #sum = 0;

  add(checksum: number): void {
    this.#lines += 1;
    this.#sum = (Math.imul(this.#sum, 31) + checksum) | 0;
  }

  footer(): string {
    return JSON.stringify({ records: this.#lines - 1, sum: this.#sum });
  }
}

/** Yields the header, the texts and a footer as framed lines. */
export function* framedLines(header: string, texts: Iterable<string>): Iterable<string> {
  const totals = new LineTotals();
  totals.add(crc32(header));
  yield lineOf(header);
  for (const text of texts) {
    const checksum = crc32(text);
    totals.add(checksum);
    yield lineOf(text, checksum);
  }
  yield lineOf(totals.footer());
}

const NEWLINE = 0x0a;

/** Length of the checksum and the space after it. */
const PREFIX = 9;

/** Bytes read and applied in one go. They take about 2 ms of the event loop. */
const READ_BYTES = 128 * 1024;

/**
 * Bytes written between two syncs. It keeps the sync of a commit from waiting for a whole snapshot.
 */
const SYNC_EVERY_BYTES = 8 * 1024 * 1024;

/** The lines of a file. Sizes are in bytes. */
export interface LinesFound {
  /** The size of the file. */
  readonly bytes: number;
  /** The end of the last intact line. The rest is torn. */
  readonly intactBytes: number;
  /** The number of damaged lines before that end. */
  readonly damaged: number;
  /** Whether the file ends with a footer that matches its lines. */
  readonly isWhole: boolean;
}

/**
 * Reads a file of framed lines in one pass, chunk by chunk.
 *
 * @param onText called with the text of each intact line except footers
 */
export async function readLines(
  path: string,
  open: OpenFile,
  onText: (text: string) => void,
): Promise<LinesFound> {
  const file = await open(path, 'r');
  const totals = new LineTotals();
  let bytes = 0;
  let intactBytes = 0;
  let damaged = 0;
  /** Damaged lines since the last intact one. They are a torn end if no intact line follows. */
  let possiblyTorn = 0;
  let isWhole = false;
  let rest = Buffer.alloc(0);
  for await (const chunk of file.createReadStream({ highWaterMark: READ_BYTES })) {
    const part = Buffer.concat([rest, chunk]);
    let start = 0;
    let end = part.indexOf(NEWLINE, rest.length);
    while (end !== -1) {
      const line = part.toString('utf8', start, end);
      const text = line.slice(PREFIX);
      const checksum = crc32(part.subarray(start + PREFIX, end));
      if (Number(`0x${line.slice(0, PREFIX - 1)}`) === checksum) {
        damaged += possiblyTorn;
        possiblyTorn = 0;
        intactBytes = bytes + end + 1;
        isWhole = text.startsWith('{') && text === totals.footer();
        totals.add(checksum);
        if (!isWhole) onText(text);
      } else possiblyTorn += 1;
      start = end + 1;
      end = part.indexOf(NEWLINE, start);
    }
    bytes += start;
    rest = part.subarray(start);
  }
  bytes += rest.length;
  return { bytes, intactBytes, damaged, isWhole };
}

/** A file that lines are appended to. */
export class LinesFile {
  /**
   * Set when a sync or a truncation failed. The kernel may have dropped the data and report success
   * for the next sync, so nothing more is appended. The next journal repeats the changes that are
   * not known to be on disk.
   */
  isSpoiled = false;

  /** @param end bytes known to be on disk */
  constructor(
    readonly file: FileHandle,
    readonly writeBytes: number,
    public end = 0,
  ) {}

  /**
   * Appends lines, which may be generated while it writes. When it resolves, all of them are on
   * disk. When it rejects, none of them counts.
   */
  async append(lines: Iterable<string>): Promise<void> {
    let end = this.end;
    let synced = this.end;
    let chunk = '';
    try {
      for (const line of lines) {
        chunk += line;
        if (chunk.length < this.writeBytes) continue;
        end = await this.#write(chunk, end);
        chunk = '';
        if (end - synced < SYNC_EVERY_BYTES) continue;
        await this.#sync();
        synced = end;
      }
      end = await this.#write(chunk, end);
      await this.#sync();
      this.end = end;
    } catch (error) {
      await this.file.truncate(this.end).catch(() => {
        this.isSpoiled = true;
      });
      throw error;
    }
  }

  /** @returns the position in the file at which the text ends */
  async #write(text: string, position: number): Promise<number> {
    const bytes = Buffer.from(text);
    let done = 0;
    while (done < bytes.length) {
      const left = bytes.length - done;
      done += (await this.file.write(bytes, done, left, position + done)).bytesWritten;
    }
    return position + done;
  }

  async #sync(): Promise<void> {
    this.isSpoiled = true;
    await this.file.datasync();
    this.isSpoiled = false;
  }
}
