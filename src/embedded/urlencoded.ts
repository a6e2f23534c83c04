/** Where decoded parameters go: `begin` gives the list that takes the pieces of the value. */
export interface FieldSink {
  begin(name: string): Buffer[];
}

const AMPERSAND = 0x26;
const EQUALS = 0x3d;
const PLUS = 0x2b;
const PERCENT = 0x25;
const SPACE = 0x20;
/** A name that grows past this is given to the sink as it is, to be refused. */
const LONGEST_NAME = 1_024;

function hexValue(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/**
 * Decodes application/x-www-form-urlencoded bytes as they come, in chunks cut anywhere, into bytes.
 * A percent sign that begins no escape stands for itself, as in the URL standard.
 */
export class UrlencodedReader {
  readonly #sink: FieldSink;
  #name: Buffer[] = [];
  #value: Buffer[] | undefined;
  /** What came of an escape that is not complete: `%` and perhaps one digit. */
  #escape: number[] = [];

  constructor(sink: FieldSink) {
    this.#sink = sink;
  }

  write(chunk: Buffer): void {
    const out = Buffer.allocUnsafe(chunk.length + 2);
    let from = 0;
    let to = 0;
    const flush = (): void => {
      if (to > from) this.#put(out.subarray(from, to));
      from = to;
    };
    const literal = (): void => {
      for (const byte of this.#escape) {
        out[to] = byte;
        to += 1;
      }
      this.#escape = [];
    };
    for (const byte of chunk) {
      if (this.#escape.length > 0) {
        const digit = hexValue(byte);
        if (digit >= 0 && this.#escape.length === 1) {
          this.#escape.push(byte);
          continue;
        }
        if (digit >= 0) {
          out[to] = hexValue(this.#escape[1] ?? 0) * 16 + digit;
          to += 1;
          this.#escape = [];
          continue;
        }
        literal();
      }
      if (byte === PERCENT) {
        this.#escape.push(byte);
      } else if (byte === AMPERSAND) {
        flush();
        this.#endField();
      } else if (byte === EQUALS && !this.#value) {
        flush();
        this.#endName();
      } else {
        out[to] = byte === PLUS ? SPACE : byte;
        to += 1;
      }
    }
    flush();
  }

  end(): void {
    if (this.#escape.length > 0) this.#put(Buffer.from(this.#escape));
    this.#escape = [];
    this.#endField();
  }

  #put(piece: Buffer): void {
    if (this.#value) {
      this.#value.push(piece);
      return;
    }
    this.#name.push(piece);
    if (this.#name.reduce((sum, part) => sum + part.length, 0) > LONGEST_NAME) this.#endName();
  }

  #endName(): void {
    this.#value = this.#sink.begin(Buffer.concat(this.#name).toString());
    this.#name = [];
  }

  #endField(): void {
    if (!this.#value && this.#name.length > 0) this.#endName();
    this.#value = undefined;
    this.#name = [];
  }
}
