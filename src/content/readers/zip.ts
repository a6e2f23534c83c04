import { isUtf8 } from 'node:buffer';
import { constants, inflateRawSync } from 'node:zlib';
import { type Member, MemberError } from './members.js';

/**
 * Reads the members of a ZIP file by its directory (APPNOTE.TXT, PKWARE). fflate, which reads the
 * office formats, shows neither which members are encrypted nor names that are not in UTF-8, and
 * has no limit for a member that is larger than it declares.
 */

/** The record at the end: its signature, its size without the comment, the largest comment. */
const END = Buffer.from('PK\x05\x06', 'latin1');
const END_BYTES = 22;
const MAX_COMMENT_BYTES = 65_535;
/** The locator of the ZIP64 record stands before that record. */
const LOCATOR = Buffer.from('PK\x06\x07', 'latin1');
const LOCATOR_BYTES = 20;
const [ENTRY, LOCAL] = [0x02014b50, 0x04034b50];
const [ENTRY_BYTES, LOCAL_BYTES] = [46, 30];
/** Values that refer to an extra field. */
const IN_EXTRA = 0xffff_ffff;
const [ZIP64_FIELD, UNICODE_NAME_FIELD] = [0x0001, 0x7075];
const [IS_ENCRYPTED, IS_UTF8] = [0x0001, 0x0800];
const [STORED, DEFLATED] = [0, 8];

/**
 * Yields the members in the order of the directory, without those that are directories.
 *
 * @param onUnpack called with the number of bytes that a member is to be unpacked to; may throw
 * @throws MemberError if its directory is missing or damaged
 */
export function* zipMembers(
  whole: Uint8Array,
  onUnpack: (size: number) => void,
): Generator<Member> {
  const zip = Buffer.from(whole.buffer, whole.byteOffset, whole.byteLength);
  const { end, size, start } = directoryOf(zip);
  /** Number of bytes before the archive, such as a program that unpacks it. */
  const shift = Math.max(0, end - size - start);
  /** Members cannot have more bytes than the file, unless they share them. */
  let unread = zip.length;
  let at = end - size;
  while (at < end) {
    if (at < 0 || at + ENTRY_BYTES > end || zip.readUInt32LE(at) !== ENTRY)
      throw new MemberError('its directory is damaged');
    const entry = entryAt(zip, at);
    at = entry.next;
    if (entry.name.endsWith('/')) continue;
    yield {
      name: entry.name,
      size: entry.size,
      isEncrypted: entry.isEncrypted,
      read: () => {
        unread -= entry.packedSize;
        if (unread < 0) throw new MemberError('it shares its bytes with other members');
        onUnpack(entry.size);
        return unpacked(zip, shift + entry.offset, entry);
      },
    };
  }
}

interface Directory {
  /** Offset after its last byte, in the file. */
  readonly end: number;
  readonly size: number;
  /** Offset of its first byte, in the archive. */
  readonly start: number;
}

/** @throws MemberError */
function directoryOf(zip: Buffer): Directory {
  const from = Math.max(0, zip.length - END_BYTES - MAX_COMMENT_BYTES);
  const at = zip.subarray(from).lastIndexOf(END) + from;
  if (at < from || at + END_BYTES > zip.length)
    throw new MemberError('the directory of its members, which is its end, is missing');
  const [size, start] = [zip.readUInt32LE(at + 12), zip.readUInt32LE(at + 16)];
  const locator = at - LOCATOR_BYTES;
  if (locator < 0 || !zip.subarray(locator).subarray(0, 4).equals(LOCATOR))
    return { end: at, size, start };
  const record = longAt(zip, locator + 8);
  if (record + 56 > locator) return { end: at, size, start };
  return { end: record, size: longAt(zip, record + 40), start: longAt(zip, record + 48) };
}

interface Entry {
  readonly name: string;
  readonly isEncrypted: boolean;
  readonly method: number;
  readonly packedSize: number;
  readonly size: number;
  /** Offset of its header, in the archive. */
  readonly offset: number;
  /** Offset of the next entry of the directory. */
  readonly next: number;
}

function entryAt(zip: Buffer, at: number): Entry {
  const flags = zip.readUInt16LE(at + 8);
  const extraAt = at + ENTRY_BYTES + zip.readUInt16LE(at + 28);
  const commentAt = extraAt + zip.readUInt16LE(at + 30);
  const extra = zip.subarray(extraAt, commentAt);
  // Those of the three numbers that do not fit are in the field, in this order.
  const long = fieldOf(extra, ZIP64_FIELD);
  let longOffset = 0;
  const number = (offset: number) => {
    const value = zip.readUInt32LE(at + offset);
    if (value !== IN_EXTRA || long === undefined || longOffset + 8 > long.length) return value;
    longOffset += 8;
    return longAt(long, longOffset - 8);
  };
  const size = number(24);
  const packedSize = number(20);
  return {
    name: nameOf(zip.subarray(at + ENTRY_BYTES, extraAt), extra, (flags & IS_UTF8) !== 0),
    isEncrypted: (flags & IS_ENCRYPTED) !== 0,
    method: zip.readUInt16LE(at + 10),
    packedSize,
    size,
    offset: number(42),
    next: commentAt + zip.readUInt16LE(at + 32),
  };
}

/**
 * Returns the content of a member, which is never larger than it declares.
 *
 * @param at offset of its header
 * @throws MemberError, or an error of zlib
 */
function unpacked(zip: Buffer, at: number, { method, packedSize, size }: Entry): Uint8Array {
  if (at + LOCAL_BYTES > zip.length || zip.readUInt32LE(at) !== LOCAL)
    throw new MemberError('damaged');
  const begin = at + LOCAL_BYTES + zip.readUInt16LE(at + 26) + zip.readUInt16LE(at + 28);
  const packed = zip.subarray(begin, begin + packedSize);
  if (packed.length < packedSize) throw new MemberError('damaged');
  if (method === STORED) return packed.subarray(0, size);
  if (method !== DEFLATED) throw new MemberError('packed in a way that is not read here');
  // A chunk with room for all of it saves a copy.
  const chunkSize = Math.max(constants.Z_MIN_CHUNK, size + 1);
  return inflateRawSync(packed, { chunkSize, maxOutputLength: Math.max(1, size) });
}

/** Returns the content of one extra field. */
function fieldOf(extra: Buffer, id: number): Buffer | undefined {
  for (let at = 0; at + 4 <= extra.length; ) {
    const end = at + 4 + extra.readUInt16LE(at + 2);
    if (extra.readUInt16LE(at) === id) return extra.subarray(at + 4, end);
    at = end;
  }
  return undefined;
}

function nameOf(bytes: Buffer, extra: Buffer, isMarked: boolean): string {
  // Version and checksum come before the name.
  const unicode = fieldOf(extra, UNICODE_NAME_FIELD)?.subarray(5);
  if (unicode !== undefined && unicode.length > 0) return unicode.toString();
  if (isMarked || isUtf8(bytes)) return bytes.toString();
  return bytes
    .toString('latin1')
    .replace(/[\x80-\xff]/g, (c) => CP437_HIGH.charAt(c.charCodeAt(0) - 0x80));
}

/** Characters of the bytes 0x80 to 0xFF in code page 437, the default of names in a ZIP. */
const CP437_HIGH =
  'ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐' +
  '└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0';

/** Returns a number of 8 bytes; its last digits are wrong where no file is so large. */
function longAt(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * 2 ** 32;
}
