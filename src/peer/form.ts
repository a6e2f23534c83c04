import { randomBytes } from 'node:crypto';
import { messageOf } from '../lib/errors.js';
import { PeerError } from './errors.js';

/**
 * The text of a document on its way to the peer: its bytes (UTF-8), the same encoded already, or
 * where to get them. A dialect that takes files which are no text takes any bytes.
 */
export type Text = Uint8Array | EncodedText | TextSource;

/**
 * How text is encoded on its way: for a form (`application/x-www-form-urlencoded`), or in base64
 * with padding.
 */
export type TextEncoding = 'form' | 'base64';

/** Text that another thread encoded for its way, by `encode`. */
export interface EncodedText {
  /** Bytes of the text in UTF-8. */
  readonly size: number;
  /** Which must be the one that the dialect sends. */
  readonly encoding: TextEncoding;
  readonly encoded: Uint8Array;
}

/** Text that is read while it is sent, so that memory does not grow with it. */
export interface TextSource {
  /** Bytes of the text in UTF-8. */
  readonly size: number;
  /**
   * The text from its beginning, in UTF-8; called once to measure it and once for each time it is
   * sent.
   */
  chunks(): AsyncIterable<Uint8Array>;
}

/** One parameter of a request, in the order in which it is to be sent. */
export interface FormField {
  readonly name: string;
  readonly value: string | Text;
  /** The number of the item that it belongs to, named in errors. */
  readonly item?: number;
}

/** The parameters that have a value, in their order. */
export function fieldsOf(
  parameters: Readonly<Record<string, string | number | boolean | undefined>>,
): { readonly name: string; readonly value: string }[] {
  return Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : [{ name, value: String(value) }],
  );
}

/**
 * The body of a request: of known length, and given again from its beginning for each time it is
 * sent.
 */
export interface Body {
  /** Content-Type. */
  readonly type: string;
  /** Bytes. */
  readonly length: number;
  /** The whole body, where it is small enough to be held. */
  readonly bytes?: Buffer;
  /**
   * The whole body, piece by piece.
   *
   * @throws PeerError PEER_SOURCE when a text cannot be read, or is not what it was when it was
   *   measured; then never as many bytes as `length` were given
   */
  chunks(): AsyncIterable<Uint8Array>;
}

/**
 * Encodes fields as `application/x-www-form-urlencoded` (the encoding that URLSearchParams
 * decodes).
 *
 * What is in memory is encoded at once. A TextSource is read once here, to know its length, and
 * once more whenever the body is sent; memory does not grow with it.
 *
 * @param url of the request, for errors
 * @throws PeerError PEER_SOURCE when a text cannot be read or has another size than it says
 */
export async function formBody(fields: readonly FormField[], url: string): Promise<Body> {
  const parts = new Parts(url);
  for (const [n, { name, value, item }] of fields.entries()) {
    const named = /^[\w.*-]+$/.test(name)
      ? name
      : encode(Buffer.from(name), 'form').toString('latin1');
    parts.add(Buffer.from(`${n === 0 ? '' : '&'}${named}=`));
    await parts.addText(typeof value === 'string' ? Buffer.from(value) : value, 'form', item);
  }
  return parts.body('application/x-www-form-urlencoded');
}

/**
 * Encodes fields as `multipart/form-data` (RFC 7578), none of them as a file: strings as they are,
 * a Text in base64. A TextSource is read only when the body is sent. The boundary is 96 random
 * bits, so that it occurs in no field.
 *
 * @param url of the request, for errors
 */
export async function multipartBody(fields: readonly FormField[], url: string): Promise<Body> {
  const parts = new Parts(url);
  const boundary = `peersync-${randomBytes(12).toString('hex')}`;
  for (const { name, value, item } of fields) {
    const quotable = name.replace(
      /["\r\n]/g,
      (c) => `%${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
    );
    parts.add(
      Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${quotable}"\r\n\r\n`),
    );
    if (typeof value === 'string') parts.add(Buffer.from(value));
    else await parts.addText(value, 'base64', item);
    parts.add(Buffer.from('\r\n'));
  }
  parts.add(Buffer.from(`--${boundary}--\r\n`));
  return parts.body(`multipart/form-data; boundary=${boundary}`);
}

/**
 * Longer texts in memory are encoded piece by piece while they are sent, as those of a source are.
 */
const HELD_BYTES = 1024 * 1024;
const PIECE_BYTES = 64 * 1024;

/** A text in a body that is read and encoded while it is sent. */
interface StreamedText {
  readonly source: TextSource;
  readonly encoding: TextEncoding;
  /** Bytes once encoded. */
  readonly length: number;
  /** The error for a text that cannot be read or is not what it was. */
  readonly error: (what: string, cause?: unknown) => PeerError;
}

/**
 * What a body consists of: parts that are ready, and texts between them that are read while they
 * are sent.
 */
class Parts {
  readonly #parts: (Buffer | StreamedText)[] = [];
  #held: Uint8Array[] = [];

  constructor(private readonly url: string) {}

  add(bytes: Uint8Array): void {
    this.#held.push(bytes);
  }

  async addText(text: Text, encoding: TextEncoding, item: number | undefined): Promise<void> {
    if ('encoded' in text) {
      if (text.encoding !== encoding)
        throw new TypeError(`${encoding} is sent, and not ${text.encoding}`);
      this.add(text.encoded);
    } else if (text instanceof Uint8Array && text.length <= HELD_BYTES) {
      this.add(encode(text, encoding));
    } else {
      const source =
        text instanceof Uint8Array
          ? {
              size: text.length,
              chunks: async function* () {
                yield* slices(text);
              },
            }
          : text;
      const error = (what: string, cause?: unknown) => sourceError(what, this.url, item, cause);
      const length =
        encoding === 'form' ? await formLength(source, error) : Math.ceil(source.size / 3) * 4;
      this.#parts.push(Buffer.concat(this.#held), { source, encoding, length, error });
      this.#held = [];
    }
  }

  body(type: string): Body {
    const parts = [...this.#parts, Buffer.concat(this.#held)];
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    const [only] = parts;
    return {
      type,
      length,
      ...(parts.length === 1 && Buffer.isBuffer(only) && length <= HELD_BYTES
        ? { bytes: only }
        : {}),
      async *chunks() {
        for (const part of parts) yield* Buffer.isBuffer(part) ? slices(part) : encodedChunks(part);
      },
    };
  }
}

/**
 * Each piece is held back until another one came or the source has ended, so that one that grew
 * never completes a request.
 */
async function* encodedChunks({
  source,
  encoding,
  length,
  error,
}: StreamedText): AsyncGenerator<Buffer> {
  let waiting = NOTHING;
  let read = 0;
  let given = 0;
  const encodedNext = (bytes: number): Buffer => {
    const encoded = encode(waiting.subarray(0, bytes), encoding);
    given += encoded.length;
    return encoded;
  };
  const changed = () =>
    error(`changed while it was sent: ${read} bytes came instead of ${source.size}`);
  for await (const piece of readable(source, error)) {
    if (piece.length === 0) continue;
    read += piece.length;
    // Three bytes of a text make four of base64.
    const whole = waiting.length - (encoding === 'base64' ? waiting.length % 3 : 0);
    const encoded = encodedNext(whole);
    if (read > source.size || given >= length) throw changed();
    if (encoded.length > 0) yield encoded;
    // A copy: whoever gave the piece may use its memory again.
    waiting = Buffer.concat([waiting.subarray(whole), piece]);
  }
  const last = encodedNext(waiting.length);
  if (read !== source.size || given !== length) throw changed();
  if (last.length > 0) yield last;
}

const NOTHING = Buffer.alloc(0);

async function* readable(
  source: TextSource,
  error: StreamedText['error'],
): AsyncGenerator<Uint8Array> {
  try {
    yield* source.chunks();
  } catch (cause) {
    throw error(`could not be read: ${messageOf(cause)}`, cause);
  }
}

async function formLength(source: TextSource, error: StreamedText['error']): Promise<number> {
  let size = 0;
  let length = 0;
  for await (const chunk of readable(source, error)) {
    size += chunk.length;
    length += formSize(chunk);
  }
  if (size !== source.size)
    throw error(`changed while it was sent: ${size} bytes came instead of ${source.size}`);
  return length;
}

function sourceError(
  what: string,
  url: string,
  item: number | undefined,
  cause: unknown,
): PeerError {
  const which = item === undefined ? 'a text of the request' : `the text of item ${item}`;
  const parts = {
    url,
    what: `was not sent: ${which} ${what}`,
    delivered: 'no',
    item,
    cause,
  } as const;
  return new PeerError('PEER_SOURCE', parts);
}

function* slices(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

/**
 * What one byte becomes where one is enough: letters, digits, `*-._` as they are, a blank as `+`;
 * else 0, and it becomes `%XX`.
 */
const SINGLE = new Uint8Array(256);
const HIGH = new Uint8Array(256);
const LOW = new Uint8Array(256);
for (let byte = 0; byte < 256; byte += 1) {
  if (/[A-Za-z0-9*\-._]/.test(String.fromCharCode(byte))) SINGLE[byte] = byte;
  const hex = byte.toString(16).toUpperCase().padStart(2, '0');
  HIGH[byte] = hex.charCodeAt(0);
  LOW[byte] = hex.charCodeAt(1);
}
SINGLE[0x20] = 0x2b;

/** How long a text becomes in a form. */
function formSize(bytes: Uint8Array): number {
  let size = bytes.length * 3;
  for (let i = 0; i < bytes.length; i += 1) if (SINGLE[bytes[i] as number] !== 0) size -= 2;
  return size;
}

const PERCENT = 0x25;
/** The bytes that each encoding writes. */
const WRITTEN = { form: bytesLike(/[A-Za-z0-9*\-._+%]/), base64: bytesLike(/[A-Za-z0-9+/=]/) };

function bytesLike(characters: RegExp): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) =>
    Number(characters.test(String.fromCharCode(byte))),
  );
}

/**
 * Whether a text of so many bytes may be encoded so: no other byte is in it than `encode` writes,
 * and it is as long.
 */
export function isEncoded(encoded: Uint8Array, encoding: TextEncoding, size: number): boolean {
  const written = WRITTEN[encoding];
  let escapes = 0;
  for (let i = 0; i < encoded.length; i += 1) {
    const byte = encoded[i] as number;
    if (written[byte] === 0) return false;
    if (byte === PERCENT) escapes += 1;
  }
  return encoded.length === (encoding === 'base64' ? Math.ceil(size / 3) * 4 : size + 2 * escapes);
}

/** A text as it travels; base64 in one line, with padding. */
export function encode(bytes: Uint8Array, encoding: TextEncoding): Buffer {
  if (encoding === 'base64') {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
    return Buffer.from(text, 'latin1');
  }
  const target = Buffer.allocUnsafe(formSize(bytes));
  let at = 0;
  for (let i = 0; i < bytes.length; i += 1) {
    const byte = bytes[i] as number;
    const single = SINGLE[byte] as number;
    if (single !== 0) {
      target[at] = single;
      at += 1;
    } else {
      target[at] = 0x25;
      target[at + 1] = HIGH[byte] as number;
      target[at + 2] = LOW[byte] as number;
      at += 3;
    }
  }
  return target;
}
