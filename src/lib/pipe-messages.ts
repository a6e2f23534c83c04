/**
 * Frames messages between two processes over a pipe. A message is one line of JSON, and then as
 * many bytes as its field `bytes` says.
 */

/** The longest line of JSON, in bytes. */
const MAX_HEADER_BYTES = 64 * 1024;
const LINE_FEED = 0x0a;
const EMPTY = Buffer.alloc(0);

/** One message. */
export interface Frame {
  /** The parsed line of JSON. Its content is not checked. */
  readonly header: unknown;
  readonly body: Buffer;
}

/** Returns the bytes of a message, in pieces. */
export function frame(header: object, body: Uint8Array = EMPTY): readonly Uint8Array[] {
  return [Buffer.from(`${JSON.stringify({ ...header, bytes: body.byteLength })}\n`), body];
}

/**
 * Reads messages from the bytes of a pipe. Memory is bounded, whatever the other process writes.
 */
export class FrameReader {
  #line: Buffer = EMPTY;
  #open: { readonly header: unknown; readonly body: Buffer; filled: number } | undefined;

  /** @param mostBytes the longest body, in bytes */
  constructor(private readonly mostBytes: number) {}

  /**
   * Reads the next bytes of the pipe.
   *
   * @returns the messages that they complete
   * @throws Error if the other process breaks the format or its limits
   */
  take(bytes: Buffer): readonly Frame[] {
    const frames: Frame[] = [];
    let rest = bytes;
    while (rest.length > 0 || this.#isFull()) {
      if (this.#open === undefined) {
        rest = this.#takeHeader(rest);
      } else if (this.#isFull()) {
        frames.push({ header: this.#open.header, body: this.#open.body });
        this.#open = undefined;
      } else {
        const count = rest.copy(this.#open.body, this.#open.filled);
        this.#open.filled += count;
        rest = rest.subarray(count);
      }
    }
    return frames;
  }

  #isFull(): boolean {
    return this.#open !== undefined && this.#open.filled === this.#open.body.length;
  }

  /** Reads up to the end of the line. @returns the bytes behind it */
  #takeHeader(bytes: Buffer): Buffer {
    const end = bytes.indexOf(LINE_FEED);
    const begin = end === -1 ? bytes : bytes.subarray(0, end);
    this.#line = Buffer.concat([this.#line, begin]);
    if (this.#line.length > MAX_HEADER_BYTES)
      throw new Error('a message has a line that is too long');
    if (end === -1) return EMPTY;
    const header: unknown = JSON.parse(this.#line.toString());
    this.#line = EMPTY;
    const size = sizeOf(header);
    if (size === undefined || size > this.mostBytes)
      throw new Error('a message has no right length');
    this.#open = { header, body: Buffer.allocUnsafeSlow(size), filled: 0 };
    return bytes.subarray(end + 1);
  }
}

/**
 * Returns the length of the body from the header; undefined if it is missing or no whole number.
 */
function sizeOf(header: unknown): number | undefined {
  if (typeof header !== 'object' || header === null || !('bytes' in header)) return undefined;
  const { bytes } = header;
  return typeof bytes === 'number' && Number.isSafeInteger(bytes) && bytes >= 0 ? bytes : undefined;
}
