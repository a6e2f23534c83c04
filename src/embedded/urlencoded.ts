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
const LONGEST_NAME = 4_096;

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
  /** How much came of an escape that is not complete: 1 is `%`, 2 is `%` and the digit. */
  #escaped: 0 | 1 | 2 = 0;
  #digit = 0;

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
    for (const byte of chunk) {
      if (this.#escaped > 0) {
        const value = hexValue(byte);
        if (value >= 0 && this.#escaped === 1) {
          this.#digit = byte;
          this.#escaped = 2;
          continue;
        }
        if (value >= 0) {
          out[to] = hexValue(this.#digit) * 16 + value;
          to += 1;
          this.#escaped = 0;
          continue;
        }
        to += this.#unescaped().copy(out, to);
      }
      if (byte === PERCENT) {
        this.#escaped = 1;
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
    if (this.#escaped > 0) this.#put(this.#unescaped());
    this.#endField();
  }

  /** What looked like the beginning of an escape and is none. */
  #unescaped(): Buffer {
    const literal = Buffer.from(this.#escaped === 1 ? [PERCENT] : [PERCENT, this.#digit]);
    this.#escaped = 0;
    return literal;
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
