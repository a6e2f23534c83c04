/**
 * Messages between two processes over a pipe. A message is one line of JSON, which tells the length
 * of what follows it in its field `bytes`, and then so many bytes.
 */

/** Bytes of the line of JSON. */
const LONGEST_HEADER = 64 * 1024;
const LINE_FEED = 0x0a;
const EMPTY = Buffer.alloc(0);

/** One message. */
export interface Frame {
  /** The line of JSON, as it came from the other process: not checked. */
  readonly header: unknown;
  readonly body: Buffer;
}

/** The bytes of a message, in pieces. */
export function frame(header: object, body: Uint8Array = EMPTY): readonly Uint8Array[] {
  return [Buffer.from(`${JSON.stringify({ ...header, bytes: body.byteLength })}\n`), body];
}

/**
 * Makes messages of the bytes of a pipe. Its memory is bounded, whatever the other process writes.
 */
export class FrameReader {
  #line: Buffer = EMPTY;
  #open: { readonly header: unknown; readonly body: Buffer; filled: number } | undefined;

  /** @param mostBytes the most bytes that a body may have */
  constructor(private readonly mostBytes: number) {}

  /**
   * Takes the next bytes of the pipe.
   *
   * @returns the messages that are complete with them
   * @throws Error where the other process does not keep to the form or its limits
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

  /** Takes bytes up to the end of the line. @returns those that follow it */
  #takeHeader(bytes: Buffer): Buffer {
    const end = bytes.indexOf(LINE_FEED);
    const begin = end === -1 ? bytes : bytes.subarray(0, end);
    this.#line = Buffer.concat([this.#line, begin]);
    if (this.#line.length > LONGEST_HEADER)
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

/** Reads from the header how many bytes the body has. */
function sizeOf(header: unknown): number | undefined {
  if (typeof header !== 'object' || header === null || !('bytes' in header)) return undefined;
  const { bytes } = header;
  return typeof bytes === 'number' && Number.isSafeInteger(bytes) && bytes >= 0 ? bytes : undefined;
}
