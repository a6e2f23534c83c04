import { randomBytes } from 'node:crypto';
import { messageOf } from '../lib/errors.js';
import { PeerError } from './errors.js';

/**
 * The text of a document to send: bytes in UTF-8, bytes that are encoded already, or a source to
 * read them from. If the dialect takes files of any kind, the bytes need not be text.
 */
export type Text = Uint8Array | EncodedText | TextSource;

/**
 * The encoding of text in a request: `application/x-www-form-urlencoded`, or base64 with padding.
 */
export type TextEncoding = 'form' | 'base64';

/** Text that another thread has encoded with `encode`. */
export interface EncodedText {
  /** Bytes of the text in UTF-8. */
  readonly size: number;
  /** The encoding. It must be the one that the dialect sends. */
  readonly encoding: TextEncoding;
  readonly encoded: Uint8Array;
}

/** Text that is read while it is sent, so that memory does not grow with it. */
export interface TextSource {
  /** Bytes of the text in UTF-8. */
  readonly size: number;
  /**
   * Reads the text from its beginning, in UTF-8. Called once to measure it, and once each time it
   * is sent.
   */
  chunks(): AsyncIterable<Uint8Array>;
}

/** One parameter of a request. Parameters are sent in order. */
export interface FormField {
  readonly name: string;
  readonly value: string | Text;
  /** The number of its item, for errors. */
  readonly item?: number;
}

/** Returns the parameters that have a value, in order. */
export function fieldsOf(
  parameters: Readonly<Record<string, string | number | boolean | undefined>>,
): { readonly name: string; readonly value: string }[] {
  return Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : [{ name, value: String(value) }],
  );
}

/** The body of a request. Its length is known, and it can be read again each time it is sent. */
export interface Body {
  /** Content-Type. */
  readonly type: string;
  /** Bytes. */
  readonly length: number;
  /** The whole body if it is small enough for memory. */
  readonly bytes?: Buffer;
  /**
   * Reads the whole body piece by piece.
   *
   * @throws PeerError PEER_SOURCE if a text cannot be read, or changed since it was measured;
   *   always before `length` bytes were returned
   */
  chunks(): AsyncIterable<Uint8Array>;
}

/**
 * Encodes fields as `application/x-www-form-urlencoded`, which URLSearchParams decodes.
 *
 * Text in memory is encoded at once. A TextSource is read once here, to learn its encoded length,
 * and once more each time the body is sent. Memory does not grow with it.
 *
 * @param url the URL of the request, for errors
 * @throws PeerError PEER_SOURCE if a text cannot be read, or has another size than declared
 */
export async function formBody(fields: readonly FormField[], url: string): Promise<Body> {
  const parts = new Parts(url);
  for (const [n, { name, value, item }] of fields.entries()) {
    const named = /^[\w.*-]+$/.test(name)
      ? name
      : encode(Buffer.from(name), 'form').toString('latin1');
    parts.add(Buffer.from(`${n === 0 ? '' : '&'}${named}=`));
    // Only a source is waited for.
    const isRead = parts.addText(
      typeof value === 'string' ? Buffer.from(value) : value,
      'form',
      item,
    );
    if (isRead !== undefined) await isRead;
  }
  return parts.body('application/x-www-form-urlencoded');
}

/**
 * Encodes fields as `multipart/form-data` (RFC 7578), none of them as a file. Strings are sent
 * unchanged, and a Text in base64. A TextSource is read only when the body is sent. The boundary
 * has 96 random bits, so no field contains it.
 *
 * @param url the URL of the request, for errors
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
 * The longest text in memory that is encoded at once, in bytes. Longer texts are encoded piece by
 * piece while they are sent.
 */
const MAX_IN_MEMORY_BYTES = 1024 * 1024;
const PIECE_BYTES = 64 * 1024;

/** A text in a body that is read and encoded while it is sent. */
interface StreamedText {
  readonly source: TextSource;
  readonly encoding: TextEncoding;
  /** Bytes of the encoded text. */
  readonly length: number;
  /** Returns the error for a text that cannot be read, or changed. */
  readonly error: (what: string, cause?: unknown) => PeerError;
}

/** Collects the parts of a body: encoded bytes, and texts that are read while they are sent. */
class Parts {
  readonly #parts: (Buffer | StreamedText)[] = [];
  #held: Uint8Array[] = [];

  constructor(private readonly url: string) {}

  add(bytes: Uint8Array): void {
    this.#held.push(bytes);
  }

  /** @returns a promise if a source has to be read first */
  addText(text: Text, encoding: TextEncoding, item: number | undefined): Promise<void> | undefined {
    if ('encoded' in text) {
      if (text.encoding !== encoding)
        throw new TypeError(`${encoding} is sent, and not ${text.encoding}`);
      this.add(text.encoded);
      return undefined;
    }
    if (text instanceof Uint8Array && text.length <= MAX_IN_MEMORY_BYTES) {
      this.add(encode(text, encoding));
      return undefined;
    }
    return this.#addSource(text instanceof Uint8Array ? sourceOf(text) : text, encoding, item);
  }

  async #addSource(
    source: TextSource,
    encoding: TextEncoding,
    item: number | undefined,
  ): Promise<void> {
    const error = (what: string, cause?: unknown) => sourceError(what, this.url, item, cause);
    const length =
      encoding === 'form' ? await formLength(source, error) : Math.ceil(source.size / 3) * 4;
    this.#parts.push(Buffer.concat(this.#held), { source, encoding, length, error });
    this.#held = [];
  }

  body(type: string): Body {
    const parts = [...this.#parts, Buffer.concat(this.#held)];
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    const [only] = parts;
    return {
      type,
      length,
      ...(parts.length === 1 && Buffer.isBuffer(only) && length <= MAX_IN_MEMORY_BYTES
        ? { bytes: only }
        : {}),
      async *chunks() {
        for (const part of parts)
          yield* Buffer.isBuffer(part) ? piecesOf(part) : encodedChunks(part);
      },
    };
  }
}

/**
 * Encodes a text while it is sent. Each piece is kept back until the next one arrives or the source
 * ends. A text that grew therefore never completes a request.
 */
async function* encodedChunks({
  source,
  encoding,
  length,
  error,
}: StreamedText): AsyncGenerator<Buffer> {
  let pending = EMPTY;
  let read = 0;
  let given = 0;
  const encodeNext = (bytes: number): Buffer => {
    const encoded = encode(pending.subarray(0, bytes), encoding);
    given += encoded.length;
    return encoded;
  };
  const changed = () =>
    error(`changed while it was sent: ${read} bytes came instead of ${source.size}`);
  for await (const piece of readPieces(source, error)) {
    if (piece.length === 0) continue;
    read += piece.length;
    // Three bytes of text become four characters of base64.
    const whole = pending.length - (encoding === 'base64' ? pending.length % 3 : 0);
    const encoded = encodeNext(whole);
    if (read > source.size || given >= length) throw changed();
    if (encoded.length > 0) yield encoded;
    // Copied, because the source may reuse the memory of the piece.
    pending = Buffer.concat([pending.subarray(whole), piece]);
  }
  const last = encodeNext(pending.length);
  if (read !== source.size || given !== length) throw changed();
  if (last.length > 0) yield last;
}

const EMPTY = Buffer.alloc(0);

async function* readPieces(
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
  for await (const chunk of readPieces(source, error)) {
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

function sourceOf(bytes: Uint8Array): TextSource {
  return {
    size: bytes.length,
    chunks: async function* () {
      yield* piecesOf(bytes);
    },
  };
}

function* piecesOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

/**
 * The encoded byte if one is enough: letters, digits and `*-._` stay, and a space becomes `+`. 0
 * stands for `%XX`.
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

/** Returns the length of a text encoded for a form. */
function formSize(bytes: Uint8Array): number {
  let size = bytes.length * 3;
  for (let i = 0; i < bytes.length; i += 1) if (SINGLE[bytes[i] as number] !== 0) size -= 2;
  return size;
}

/** Encodes a text. Base64 is one line, with padding. */
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
