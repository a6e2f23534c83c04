import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Busboy, type BusboyConfig, type BusboyInstance } from '@fastify/busboy';
import type { Clock } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';

/** A request that is refused: why, in one sentence, for whoever sent it. */
export class Refusal extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, why: string, headers: Readonly<Record<string, string>> = {}) {
    super(why);
    this.status = status;
    this.headers = headers;
  }
}

/** Work between two turns of the loop, in milliseconds. */
const SLICE_MS = 8;

/** Cuts long work into slices: everybody else has a turn at a `pause` that comes after SLICE_MS of work. */
export class Slices {
  readonly #clock: Clock;
  #began: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#began = clock.now();
  }

  get isOver(): boolean {
    return this.#clock.now() - this.#began >= SLICE_MS;
  }

  async pause(): Promise<void> {
    if (!this.isOver) return;
    await nextTurn();
    this.#began = this.#clock.now();
  }
}

export interface FormLimits {
  /** Bytes of the request body. */
  readonly body: number;
  readonly fields: number;
  /** Characters of a parameter's name. @default 200 */
  readonly name?: number;
}

/** For requests that only ask for something. */
export const SMALL: FormLimits = { body: 65_536, fields: 20 };
const LONGEST_NAME = 200;

/**
 * The parameters of a request, as bytes: what was pushed is kept as it came, and its digest is of these bytes.
 * A parameter that comes twice is refused, because neither of the two can be said to be meant.
 */
export class Form {
  readonly #fields = new Map<string, Buffer>();
  readonly #limits: FormLimits;

  constructor(limits: FormLimits) {
    this.#limits = limits;
  }

  /** @throws Refusal 400 */
  set(name: string, value: Buffer): void {
    const { fields, name: longest = LONGEST_NAME } = this.#limits;
    if (name.length > longest)
      throw new Refusal(400, `A parameter's name is longer than ${longest} characters.`);
    if (this.#fields.size >= fields)
      throw new Refusal(400, `The request has more than ${fields} parameters.`);
    if (this.#fields.has(name)) throw new Refusal(400, `The parameter ${name} comes twice.`);
    this.#fields.set(name, value);
  }

  names(): Iterable<string> {
    return this.#fields.keys();
  }

  bytes(name: string): Buffer | undefined {
    return this.#fields.get(name);
  }

  /** Undefined where it is missing or empty. @throws Refusal 400 where it is not UTF-8 */
  text(name: string): string | undefined {
    const value = this.#fields.get(name);
    if (value === undefined || value.length === 0) return undefined;
    if (!isUtf8(value)) throw new Refusal(400, `The parameter ${name} is not UTF-8.`);
    return value.toString();
  }

  /** Whether a choice whose only option is `true` was made. @throws Refusal 400 for another value */
  isTrue(name: string): boolean {
    const value = this.text(name) ?? 'false';
    if (value !== 'true' && value !== 'false')
      throw new Refusal(400, `The parameter ${name} can only be true.`);
    return value === 'true';
  }

  /** A whole number from 0 to `most`. @throws Refusal 400 for anything else */
  number(name: string, otherwise: number, most: number): number {
    const text = this.text(name) ?? String(otherwise);
    if (!/^\d{1,15}$/.test(text) || Number(text) > most)
      throw new Refusal(
        400,
        `The parameter ${name} has to be a number from 0 to ${most}, not "${text.slice(0, 40)}".`,
      );
    return Number(text);
  }
}

/**
 * Reads the parameters of requests, and bounds the bodies that are in memory at one time. A large body takes its share before it is
 * read, and waits, in order, while there is none: its client is held back by TCP meanwhile.
 */
export class FormReader {
  readonly #clock: Clock;
  #free: number;
  readonly #waiting: { readonly bytes: number; readonly start: () => void }[] = [];
  #receiving = 0;

  /** @param budget bytes of all large bodies together; no body may be larger */
  constructor(budget: number, clock: Clock) {
    this.#free = budget;
    this.#clock = clock;
  }

  /** Whether request bodies are on their way in. */
  get isReceiving(): boolean {
    return this.#receiving > 0;
  }

  /** @throws Refusal 400, 413, 415 */
  async read(request: IncomingMessage, response: ServerResponse, limits: FormLimits): Promise<Form> {
    const form = new Form(limits);
    const slices = new Slices(this.#clock);
    const query = (request.url ?? '').split('?').slice(1).join('?');
    await readUrlencoded(Buffer.from(query, 'latin1'), form, slices);
    const { headers } = request;
    const declared = Number(
      headers['content-length'] ?? (headers['transfer-encoding'] === undefined ? 0 : limits.body),
    );
    if (declared === 0) return form;
    if (declared > limits.body) throw tooLarge(limits.body);
    refuseCompressed(headers);
    const type = headers['content-type'] ?? '';
    const isMultipart = isMultipartForm(type);
    if (!isMultipart && type !== '' && !/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type))
      throw new Refusal(
        415,
        'The body has to be application/x-www-form-urlencoded or multipart/form-data with a boundary.',
      );
    if (limits.body > SMALL.body) await this.#takeShare(declared, response);
    const body = await this.#receive(request, declared, limits.body);
    if (isMultipart) await readMultipart(headers, body, form, limits);
    else await readUrlencoded(body, form, slices);
    return form;
  }

  async #receive(request: IncomingMessage, size: number, limit: number): Promise<Buffer> {
    const body = Buffer.allocUnsafe(size);
    let length = 0;
    this.#receiving += 1;
    try {
      for await (const chunk of limitBody(request, limit)) length += chunk.copy(body, length);
    } finally {
      this.#receiving -= 1;
    }
    return body.subarray(0, length);
  }

  /** Resolves when so many bytes are free; they are given back when the request is over. */
  async #takeShare(bytes: number, response: ServerResponse): Promise<void> {
    if (this.#waiting.length > 0 || bytes > this.#free)
      await new Promise<void>((start) => this.#waiting.push({ bytes, start }));
    else this.#free -= bytes;
    const giveBack = () => {
      this.#free += bytes;
      for (let next = this.#waiting[0]; next && next.bytes <= this.#free; next = this.#waiting[0]) {
        this.#waiting.shift();
        this.#free -= next.bytes;
        next.start();
      }
    };
    if (response.closed) giveBack();
    else response.once('close', giveBack);
  }
}

export function isMultipartForm(type = ''): boolean {
  return /^multipart\/form-data\s*;/i.test(type);
}

/** @throws Refusal 415 */
export function refuseCompressed(headers: IncomingHttpHeaders): void {
  if (headers['content-encoding'] !== undefined)
    throw new Refusal(415, 'The body has to come without Content-Encoding.');
}

/** The body as it comes; the request stays open after a refusal, so that the answer can be read. @throws Refusal 413 */
export async function* limitBody(request: IncomingMessage, limit: number): AsyncGenerator<Buffer> {
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += (chunk as Buffer).length;
    if (size > limit) throw tooLarge(limit);
    yield chunk as Buffer;
  }
}

function tooLarge(limit: number): Refusal {
  return new Refusal(413, `The request body is larger than ${limit} bytes, the most that this peer takes.`);
}

/** A parser for a multipart body; what is said of a part is bounded. @throws Refusal 400 */
export function multipartParser(
  headers: IncomingHttpHeaders,
  { limits, ...options }: Omit<BusboyConfig, 'headers'>,
): BusboyInstance {
  try {
    return new Busboy({
      headers: { ...headers, 'content-type': headers['content-type'] ?? '' },
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

async function readMultipart(
  headers: IncomingHttpHeaders,
  body: Buffer,
  form: Form,
  limits: FormLimits,
): Promise<void> {
  const fieldNameSize = 4 * (limits.name ?? LONGEST_NAME) + 1;
  const parser = multipartParser(headers, {
    isPartAFile: () => true,
    limits: { fieldNameSize, parts: limits.fields + 1 },
  });
  const parts: { readonly name: string; readonly chunks: Buffer[] }[] = [];
  parser.on('file', (name, stream) => {
    const chunks: Buffer[] = [];
    parts.push({ name: name ?? '', chunks });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', () => undefined);
  });
  await pipeline(Readable.from(body, { objectMode: false }), parser).catch((error: unknown) => {
    throw unreadableMultipart(error);
  });
  for (const { name, chunks } of parts) form.set(name, Buffer.concat(chunks));
}

const [AMPERSAND, EQUALS, PLUS, PERCENT, SPACE] = [0x26, 0x3d, 0x2b, 0x25, 0x20];
/** The value of each byte as a hexadecimal digit; NO_DIGIT for one that is none. */
const NO_DIGIT = 16;
const DIGITS = Uint8Array.from({ length: 256 }, (_, byte) => {
  const value = Number.parseInt(String.fromCharCode(byte), 16);
  return Number.isNaN(value) ? NO_DIGIT : value;
});

/**
 * Reads application/x-www-form-urlencoded bytes as bytes. They are decoded where they stand, so that a body is in memory once.
 * A percent sign that begins no escape stands for itself, as in the URL standard.
 */
export async function readUrlencoded(body: Buffer, form: Pick<Form, 'set'>, slices: Slices): Promise<void> {
  for (let from = 0; from < body.length; ) {
    const ampersand = body.indexOf(AMPERSAND, from);
    const pair = body.subarray(from, ampersand === -1 ? body.length : ampersand);
    from += pair.length + 1;
    while (body[from] === AMPERSAND) from += 1;
    if (pair.length === 0) continue;
    const equals = pair.indexOf(EQUALS);
    const name = decoded(equals === -1 ? pair : pair.subarray(0, equals)).toString();
    form.set(name, equals === -1 ? Buffer.alloc(0) : decoded(pair.subarray(equals + 1)));
    await slices.pause();
  }
}

function decoded(bytes: Buffer): Buffer {
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
    bytes[length] = byte;
    length += 1;
  }
  return bytes.subarray(0, length);
}
