import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { Busboy, type BusboyConfig, type BusboyInstance } from '@fastify/busboy';
import { messageOf } from '../lib/errors.js';
import { Refusal } from './answer.js';

export interface FormLimits {
  /** Bytes of the request body. */
  readonly body: number;
  readonly fields: number;
  /** Characters of a parameter's name. @default 200 */
  readonly name?: number;
}

const LONGEST_NAME = 200;

function longestName(limits: FormLimits): number {
  return limits.name ?? LONGEST_NAME;
}

/**
 * The parameters of a request, as bytes: what was pushed is kept as it came, and its digest is of these bytes.
 * A parameter that comes twice is refused, because neither of the two can be said to be meant.
 */
export class RequestForm {
  readonly #fields = new Map<string, Buffer[]>();
  readonly #limits: FormLimits;

  constructor(limits: FormLimits) {
    this.#limits = limits;
  }

  /** @throws Refusal 400 */
  begin(name: string): Buffer[] {
    const longest = longestName(this.#limits);
    if (name.length > longest)
      throw new Refusal(400, `A parameter's name is longer than ${longest} characters.`);
    if (this.#fields.size >= this.#limits.fields)
      throw new Refusal(400, `The request has more than ${this.#limits.fields} parameters.`);
    if (this.#fields.has(name)) throw new Refusal(400, `The parameter ${name} comes twice.`);
    const value: Buffer[] = [];
    this.#fields.set(name, value);
    return value;
  }

  names(): Iterable<string> {
    return this.#fields.keys();
  }

  bytes(name: string): Buffer | undefined {
    const value = this.#fields.get(name);
    if (!value) return undefined;
    const whole = value.length === 1 && value[0] ? value[0] : Buffer.concat(value);
    this.#fields.set(name, [whole]);
    return whole;
  }

  /** @throws Refusal 400 where it is not UTF-8 */
  text(name: string): string | undefined {
    const value = this.bytes(name);
    if (value && !isUtf8(value)) throw new Refusal(400, `The parameter ${name} is not UTF-8.`);
    return value?.toString();
  }

  /** Whether a choice whose only option is `true` was made. @throws Refusal 400 for another value */
  isTrue(name: string): boolean {
    const value = this.text(name);
    if (value === undefined || value === '') return false;
    if (value !== 'true') throw new Refusal(400, `The parameter ${name} can only be true.`);
    return true;
  }
}

/** The parameters after the question mark. */
export function readQuery(query: string, form: RequestForm): void {
  if (query === '') return;
  const reader = new UrlencodedReader(form);
  reader.write(Buffer.from(query, 'latin1'));
  reader.end();
}

/** The parameters of the body, urlencoded or multipart, read as they come. @throws Refusal 400, 413, 415 */
export async function readBody(
  request: IncomingMessage,
  form: RequestForm,
  limits: FormLimits,
): Promise<void> {
  const type = (request.headers['content-type'] ?? '').toLowerCase();
  if (request.headers['content-encoding'] !== undefined)
    throw new Refusal(415, 'The body has to come without Content-Encoding.');
  const limited = limitBody(request, limits.body);
  if (/^multipart\/form-data\s*;/.test(type)) return readMultipart(request, limited, form, limits);
  if (type !== '' && !/^application\/x-www-form-urlencoded\s*(;|$)/.test(type))
    throw new Refusal(
      415,
      'The body has to be application/x-www-form-urlencoded or multipart/form-data with a boundary.',
    );
  const reader = new UrlencodedReader(form);
  for await (const chunk of limited) reader.write(chunk);
  reader.end();
}

export async function* limitBody(request: IncomingMessage, limit: number): AsyncGenerator<Buffer> {
  let size = 0;
  // The request has to stay open after a refusal, so that the answer can be read.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += (chunk as Buffer).length;
    if (size > limit) throw tooLarge(limit);
    yield chunk as Buffer;
  }
}

export function tooLarge(limit: number): Refusal {
  return new Refusal(413, `The request body is larger than ${limit} bytes, the most that this peer takes.`);
}

async function readMultipart(
  request: IncomingMessage,
  body: AsyncIterable<Buffer>,
  form: RequestForm,
  limits: FormLimits,
): Promise<void> {
  const parser = multipartParser(request, {
    isPartAFile: () => true,
    limits: { fieldNameSize: 4 * longestName(limits) + 1, parts: limits.fields + 1 },
  });
  let refusal: unknown;
  parser.on('file', (name, stream) => {
    try {
      const value = form.begin(name ?? '');
      stream.on('data', (chunk: Buffer) => value.push(chunk));
    } catch (error) {
      refusal ??= error;
      stream.resume();
    }
    stream.on('error', () => undefined);
  });
  try {
    await pipeline(body, parser);
  } catch (error) {
    if (error instanceof Refusal || (request.destroyed && !request.complete)) throw error;
    throw unreadableMultipart(error);
  }
  if (refusal) throw refusal;
}

/** A parser for the multipart body of a request; what is said of a part is bounded. @throws Refusal 400 */
export function multipartParser(
  request: IncomingMessage,
  { limits, ...options }: Omit<BusboyConfig, 'headers'>,
): BusboyInstance {
  try {
    return new Busboy({
      headers: { ...request.headers, 'content-type': request.headers['content-type'] ?? '' },
      ...options,
      limits: { ...limits, headerPairs: 32, headerSize: 8_192 },
    });
  } catch (error) {
    throw unreadableMultipart(error);
  }
}

export function unreadableMultipart(error: unknown): Refusal {
  return new Refusal(400, `The multipart body cannot be read: ${messageOf(error)}.`);
}

/** Where decoded parameters go: `begin` gives the list that takes the pieces of the value. */
export interface FieldSink {
  begin(name: string): Buffer[];
}

const [AMPERSAND, EQUALS, PLUS, PERCENT, SPACE] = [0x26, 0x3d, 0x2b, 0x25, 0x20];
/** The value of each byte as a hexadecimal digit; NO_DIGIT for one that is none. */
const NO_DIGIT = 16;
const DIGITS = Uint8Array.from({ length: 256 }, (_, byte) => {
  const value = Number.parseInt(String.fromCharCode(byte), 16);
  return Number.isNaN(value) ? NO_DIGIT : value;
});
/** A name that grows past this is given to the sink as it is, to be refused. */
const LONGEST_DECODED_NAME = 4_096;

/**
 * Decodes application/x-www-form-urlencoded bytes as they come, in chunks cut anywhere, into bytes.
 * A percent sign that begins no escape stands for itself, as in the URL standard.
 */
export class UrlencodedReader {
  readonly #sink: FieldSink;
  #name = Buffer.alloc(0);
  #value: Buffer[] | undefined;
  /** The beginning of an escape whose end is yet to come. */
  #cut = Buffer.alloc(0);

  constructor(sink: FieldSink) {
    this.#sink = sink;
  }

  write(chunk: Buffer): void {
    const bytes = this.#cut.length > 0 ? Buffer.concat([this.#cut, chunk]) : chunk;
    const cut = [1, 2].find((length) => bytes[bytes.length - length] === PERCENT) ?? 0;
    this.#cut = Buffer.from(bytes.subarray(bytes.length - cut));
    this.#take(bytes.subarray(0, bytes.length - cut));
  }

  end(): void {
    this.#take(this.#cut);
    this.#endField();
  }

  #take(bytes: Buffer): void {
    for (let from = 0; from <= bytes.length; ) {
      const ampersand = bytes.indexOf(AMPERSAND, from);
      let piece = bytes.subarray(from, ampersand === -1 ? bytes.length : ampersand);
      from += piece.length + 1;
      if (this.#value === undefined) {
        const equals = piece.indexOf(EQUALS);
        this.#name = Buffer.concat([this.#name, decoded(equals === -1 ? piece : piece.subarray(0, equals))]);
        piece = equals === -1 ? Buffer.alloc(0) : piece.subarray(equals + 1);
        if (equals !== -1 || this.#name.length > LONGEST_DECODED_NAME) this.#endName();
      }
      if (piece.length > 0) this.#value?.push(decoded(piece));
      if (ampersand !== -1) this.#endField();
    }
  }

  #endName(): void {
    this.#value = this.#sink.begin(this.#name.toString());
    this.#name = Buffer.alloc(0);
  }

  #endField(): void {
    if (this.#name.length > 0) this.#endName();
    this.#value = undefined;
  }
}

function decoded(bytes: Buffer): Buffer {
  const out = Buffer.allocUnsafe(bytes.length);
  let length = 0;
  for (let i = 0; i < bytes.length; i += 1) {
    let byte = bytes[i] ?? 0;
    if (byte === PLUS) byte = SPACE;
    else if (byte === PERCENT) {
      const high = DIGITS[bytes[i + 1] ?? 0] ?? NO_DIGIT;
      const low = DIGITS[bytes[i + 2] ?? 0] ?? NO_DIGIT;
      if (high < NO_DIGIT && low < NO_DIGIT) {
        byte = high * 16 + low;
        i += 2;
      }
    }
    out[length] = byte;
    length += 1;
  }
  return out.subarray(0, length);
}
