import { isUtf8 } from 'node:buffer';
import { Readable } from 'node:stream';
import { constants, createGunzip } from 'node:zlib';
import { fromLatin1 } from '../encoding.js';
import { type Member, MemberError } from './members.js';

/**
 * Reads the members of a tar file, one after the other: the formats of POSIX (ustar, pax) and GNU.
 * Links and devices give only their names, and no name is used as a path.
 */

const BLOCK_BYTES = 512;
/** Largest header of a long name or of pax records, in bytes. */
const MAX_HEADER_BYTES = 1_048_576;
/** Types of members without content: links, devices, directories, pipes. */
const WITHOUT_CONTENT = new Set(['1', '2', '3', '4', '5', '6']);
const DIRECTORY = '5';
/** Types of headers that stand before that of a member: of GNU, and of pax. */
const HEADERS: Readonly<Record<string, 'name' | 'records' | 'skipped'>> = {
  L: 'name',
  K: 'skipped',
  x: 'records',
  g: 'skipped',
};

/**
 * Yields the members, without directories. The content of a member can be read until the next one
 * is requested.
 *
 * @throws MemberError if the file is damaged or cut off
 */
export async function* tarMembers(pieces: Pieces): AsyncGenerator<Member> {
  const source = new Source(pieces);
  try {
    yield* membersOf(source);
  } finally {
    await source.close();
  }
}

async function* membersOf(source: Source): AsyncGenerator<Member> {
  let longName: string | undefined;
  let records: ReadonlyMap<string, string> = new Map();
  for (;;) {
    const block = await source.take(BLOCK_BYTES);
    // Two empty blocks end an archive, and some programs leave them out.
    if (block.length === 0 || block.every((byte) => byte === 0)) return;
    const header = headerOf(block);
    if (header.type in HEADERS) {
      if (header.size > MAX_HEADER_BYTES) throw new MemberError('a header is too large');
      const content = await source.whole(header.size);
      await source.skip(paddingOf(header.size));
      const meaning = HEADERS[header.type];
      if (meaning === 'name') longName = decoded(untilZero(content));
      if (meaning === 'records') records = paxRecords(content);
      continue;
    }
    const name = records.get('path') ?? longName ?? header.name;
    const size = WITHOUT_CONTENT.has(header.type) ? 0 : (sizeIn(records) ?? header.size);
    let unread = size;
    if (header.type !== DIRECTORY && !name.endsWith('/'))
      yield {
        name,
        size,
        isEncrypted: false,
        read: async () => {
          unread = 0;
          return await source.whole(size);
        },
      };
    await source.skip(unread + paddingOf(size));
    longName = undefined;
    records = new Map();
  }
}

/** Returns the number of bytes after a content, up to the next block. */
function paddingOf(size: number): number {
  return (BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES;
}

/** Returns the size that pax records give a member. */
function sizeIn(records: ReadonlyMap<string, string>): number | undefined {
  const size = Number(records.get('size') ?? Number.NaN);
  return Number.isSafeInteger(size) && size >= 0 ? size : undefined;
}

/**
 * Unpacks a gzip file in pieces. One that is cut off ends early.
 *
 * @param onPiece called with the number of bytes of each piece; may throw
 */
export async function* gunzipped(
  bytes: Uint8Array,
  onPiece: (size: number) => void,
): AsyncGenerator<Uint8Array> {
  const options = { chunkSize: 65_536, finishFlush: constants.Z_SYNC_FLUSH };
  const unzipping = Readable.from([bytes], { objectMode: false }).pipe(createGunzip(options));
  for await (const piece of unzipping) {
    onPiece(piece.length);
    yield piece;
  }
}

type Pieces = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** Reads a stream of bytes in portions of any size. */
class Source {
  readonly #pieces: AsyncIterator<Uint8Array> | Iterator<Uint8Array>;
  #piece: Uint8Array = new Uint8Array();

  constructor(pieces: Pieces) {
    this.#pieces =
      Symbol.asyncIterator in pieces ? pieces[Symbol.asyncIterator]() : pieces[Symbol.iterator]();
  }

  /** Returns the next bytes; fewer at the end. */
  async take(size: number): Promise<Uint8Array> {
    const portions: Uint8Array[] = [];
    for (let left = size; left > 0; left -= portions.at(-1)?.length ?? 0) {
      if (!(await this.#fill())) break;
      portions.push(this.#piece.subarray(0, left));
      this.#piece = this.#piece.subarray(left);
    }
    const [first] = portions;
    return portions.length === 1 && first !== undefined ? first : Buffer.concat(portions);
  }

  /** @throws MemberError if there are fewer bytes */
  async whole(size: number): Promise<Uint8Array> {
    const bytes = await this.take(size);
    if (bytes.length < size) throw new MemberError('cut off');
    return bytes;
  }

  /** @throws MemberError if there are fewer bytes */
  async skip(size: number): Promise<void> {
    for (let left = size; left > 0; ) {
      if (!(await this.#fill())) throw new MemberError('cut off');
      const skipped = Math.min(left, this.#piece.length);
      this.#piece = this.#piece.subarray(skipped);
      left -= skipped;
    }
  }

  /** Ends the stream. */
  async close(): Promise<void> {
    await this.#pieces.return?.();
  }

  /** Returns whether there is a byte. */
  async #fill(): Promise<boolean> {
    while (this.#piece.length === 0) {
      const { done, value } = await this.#pieces.next();
      if (done === true) return false;
      this.#piece = value;
    }
    return true;
  }
}

interface Header {
  readonly name: string;
  readonly size: number;
  readonly type: string;
}

/** @throws MemberError if its checksum is wrong */
function headerOf(block: Uint8Array): Header {
  if (block.length < BLOCK_BYTES) throw new MemberError('cut off');
  const bytes = Buffer.from(block.buffer, block.byteOffset, block.byteLength);
  // The checksum counts itself as blanks.
  let sum = 8 * 0x20;
  for (let i = 0; i < BLOCK_BYTES; i += 1) if (i < 148 || i >= 156) sum += bytes[i] ?? 0;
  if (numberOf(bytes.subarray(148, 156)) !== sum) throw new MemberError('a header is damaged');
  const size = numberOf(bytes.subarray(124, 136));
  if (!Number.isSafeInteger(size) || size < 0) throw new MemberError('a header is damaged');
  const name = decoded(untilZero(bytes.subarray(0, 100)));
  // GNU has other fields there.
  const isPosix = bytes.toString('latin1', 257, 263) === 'ustar\0';
  const prefix = isPosix ? decoded(untilZero(bytes.subarray(345, 500))) : '';
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    size,
    type: String.fromCharCode(bytes[156] ?? 0),
  };
}

/** Returns a number in octal digits, or in binary if its first bit is set; NaN for another text. */
function numberOf(field: Buffer): number {
  const first = field[0] ?? 0;
  if (first < 0x80) {
    const digits = field.toString('latin1').replace(/[\0 ]+/g, '');
    return /^[0-7]*$/.test(digits) ? Number.parseInt(`0${digits}`, 8) : Number.NaN;
  }
  return field.subarray(1).reduce((number, byte) => number * 256 + byte, first & 0x7f);
}

/** Returns the records of a pax header: lines of `LENGTH KEY=VALUE`. */
function paxRecords(content: Uint8Array): ReadonlyMap<string, string> {
  const records = new Map<string, string>();
  const bytes = Buffer.from(content);
  for (let at = 0; at < bytes.length; ) {
    const blank = bytes.indexOf(0x20, at);
    const length = Number(bytes.toString('latin1', at, Math.max(at, blank)));
    if (blank < 0 || !Number.isSafeInteger(length) || length <= blank - at + 1) break;
    const [, key = '', value = ''] =
      /^([^=]*)=([\s\S]*)\n$/.exec(bytes.toString('utf8', blank + 1, at + length)) ?? [];
    records.set(key, value);
    at += length;
  }
  return records;
}

function untilZero(bytes: Uint8Array): Uint8Array {
  const zero = bytes.indexOf(0);
  return zero < 0 ? bytes : bytes.subarray(0, zero);
}

function decoded(bytes: Uint8Array): string {
  const name = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return isUtf8(name) ? name.toString() : fromLatin1(name.toString('latin1'));
}
