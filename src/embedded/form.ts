import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { Busboy, type BusboyConfig, type BusboyInstance } from '@fastify/busboy';
import { messageOf, systemCode } from '../lib/errors.js';

/** Thrown when a request is refused. The message is one sentence for the client. */
export class Refusal extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, why: string, headers: Readonly<Record<string, string>> = {}) {
    super(why);
    this.status = status;
    this.headers = headers;
  }
}

export interface FormLimits {
  /** The largest request body, in bytes. */
  readonly body: number;
  readonly fields: number;
  /** The longest name of a parameter, in characters. @default 200 */
  readonly name?: number;
}

/** The limits of requests that only read. A form read with this very object has a deadline. */
export const SMALL: FormLimits = { body: 65_536, fields: 20 };
const MAX_NAME_CHARS = 200;

/**
 * The parameters of a request, as bytes: a pushed document is stored as received, and its digest is
 * computed from these bytes. A repeated parameter is refused, because it is ambiguous.
 */
export class Form {
  readonly #fields = new Map<string, Buffer>();
  readonly #limits: FormLimits;

  constructor(limits: FormLimits) {
    this.#limits = limits;
  }

  /** @throws Refusal 400 */
  set(name: string, value: Buffer): void {
    const { fields, name: longest = MAX_NAME_CHARS } = this.#limits;
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

  /**
   * Returns a parameter as text; undefined if it is missing or empty.
   *
   * @throws Refusal 400 if it is not UTF-8
   */
  text(name: string): string | undefined {
    const value = this.#fields.get(name);
    if (value === undefined || value.length === 0) return undefined;
    if (!isUtf8(value)) throw new Refusal(400, `The parameter ${name} is not UTF-8.`);
    return value.toString();
  }

  /**
   * Whether a parameter is `true`.
   *
   * @throws Refusal 400 for a value other than `true` and `false`
   */
  isTrue(name: string): boolean {
    const value = this.text(name) ?? 'false';
    if (value !== 'true' && value !== 'false')
      throw new Refusal(400, `The parameter ${name} can only be true.`);
    return value === 'true';
  }

  /**
   * Returns a parameter as a whole number from 0 to `most`.
   *
   * @throws Refusal 400 for another value
   */
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

/** The size of a large body, in bytes. Only one large body is in memory at a time. */
const LARGE_BODY_BYTES = 1_048_576;

/**
 * Reads the parameters of requests. A large body is read when the previous request with a large
 * body has been answered. TCP holds the client back until then.
 */
export class FormReader {
  #last: Promise<unknown> = Promise.resolve();

  /** @throws Refusal 400, 413, 415 */
  async read(
    request: IncomingMessage,
    response: ServerResponse,
    limits: FormLimits,
  ): Promise<Form> {
    const form = new Form(limits);
    const query = (request.url ?? '').split('?').slice(1).join('?');
    if (query !== '') await parseInto(form, limits, {}, [Buffer.from(query)]);
    const { headers } = request;
    const declared = Number(
      headers['content-length'] ?? (headers['transfer-encoding'] === undefined ? 0 : limits.body),
    );
    if (declared === 0) return form;
    if (declared > limits.body) throw tooLarge(limits.body);
    if (declared > LARGE_BODY_BYTES) await this.#turn(response);
    await parseInto(form, limits, headers, limitBody(request, limits.body));
    return form;
  }

  #turn(response: ServerResponse): Promise<unknown> {
    const before = this.#last;
    this.#last = new Promise<void>((resolve) => {
      if (response.closed) resolve();
      else response.once('close', resolve);
    }).then(() => before);
    return before;
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

/**
 * Yields the body as it arrives. The request stays open after a refusal, so that the client can
 * read the answer.
 *
 * @throws Refusal 413
 */
export async function* limitBody(request: IncomingMessage, limit: number): AsyncGenerator<Buffer> {
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += (chunk as Buffer).length;
    if (size > limit) throw tooLarge(limit);
    yield chunk as Buffer;
  }
}

function tooLarge(limit: number): Refusal {
  return new Refusal(
    413,
    `The request body is larger than ${limit} bytes, the most that this peer takes.`,
  );
}

/**
 * Returns a parser for the body of a form, with limits on the headers of its parts.
 *
 * @throws Refusal 400
 */
export function formParser(
  type: string,
  { limits, ...options }: Omit<BusboyConfig, 'headers'>,
): BusboyInstance {
  try {
    const headers = { 'content-type': type };
    return new Busboy({
      headers,
      ...options,
      limits: { ...limits, headerPairs: 32, headerSize: 8_192 },
    });
  } catch (error) {
    throw unreadable(error);
  }
}

/**
 * Returns the error for a body that could not be read: a refusal or a system error unchanged, and a
 * refusal for any other.
 */
export function unreadable(error: unknown): unknown {
  if (error instanceof Refusal || systemCode(error) !== undefined) return error;
  return new Refusal(400, `The body cannot be read: ${messageOf(error)}.`);
}

const URLENCODED = 'application/x-www-form-urlencoded';

/**
 * Reads the parameters of a body as bytes.
 *
 * @throws Refusal 400, 415
 */
export async function parseInto(
  form: Form,
  { body: fieldSize, fields, name = MAX_NAME_CHARS }: FormLimits,
  headers: IncomingHttpHeaders,
  body: Iterable<Buffer> | AsyncIterable<Buffer>,
): Promise<void> {
  refuseCompressed(headers);
  const type = headers['content-type'] || URLENCODED;
  if (/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type))
    return await parseUrlencoded(form, body);
  if (!isMultipartForm(type))
    throw new Refusal(
      415,
      `The body has to be ${URLENCODED} or multipart/form-data with a boundary.`,
    );
  const parser = formParser(type, {
    defCharset: 'latin1',
    isPartAFile: () => true,
    limits: { fieldNameSize: 4 * name + 1, fieldSize, parts: fields + 1 },
  });
  const found: { readonly name: string; readonly chunks: Buffer[] }[] = [];
  parser.on('file', (name, stream) => {
    const chunks: Buffer[] = [];
    found.push({ name: name ?? '', chunks });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', () => undefined);
  });
  await pipeline(body, parser).catch((error: unknown) => {
    throw unreadable(error);
  });
  for (const { name, chunks } of found) form.set(name, Buffer.concat(chunks));
}

const AMPERSAND = 38;

/**
 * Parses a URL-encoded body. Busboy takes three times as long, and every look-up and every pushed
 * text is such a body.
 */
async function parseUrlencoded(
  form: Form,
  body: Iterable<Buffer> | AsyncIterable<Buffer>,
): Promise<void> {
  let begun: Buffer[] = [];
  const end = (last: Buffer): void => {
    const field = Buffer.concat([...begun, last]);
    begun = [];
    if (field.length === 0) return;
    const equals = field.indexOf('=');
    const at = equals === -1 ? field.length : equals;
    form.set(decoded(field.subarray(0, at)).toString(), decoded(field.subarray(at + 1)));
  };
  for await (const chunk of body) {
    let start = 0;
    for (let at = 0; at < chunk.length; at += 1) {
      if (chunk[at] !== AMPERSAND) continue;
      if (at > start || begun.length > 0) end(chunk.subarray(start, at));
      start = at + 1;
    }
    begun.push(chunk.subarray(start));
  }
  end(Buffer.alloc(0));
}

const [PERCENT, PLUS, BLANK] = [37, 43, 32];
/** The value of a hexadecimal digit, by byte; 16 for another byte. */
const DIGITS = Uint8Array.from({ length: 256 }, (_, byte) => {
  const digit = Number.parseInt(String.fromCharCode(byte), 16);
  return Number.isNaN(digit) ? 16 : digit;
});

/** Decodes in place. A percent sign without two digits stays. */
function decoded(bytes: Buffer): Buffer {
  const digit = (at: number) => DIGITS[bytes[at] ?? 0] ?? 16;
  let length = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    let byte = bytes[at] ?? 0;
    if (byte === PLUS) byte = BLANK;
    else if (byte === PERCENT && digit(at + 1) < 16 && digit(at + 2) < 16) {
      byte = 16 * digit(at + 1) + digit(at + 2);
      at += 2;
    }
    bytes[length] = byte;
    length += 1;
  }
  return bytes.subarray(0, length);
}
