import { TextDecoder } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EncodingDetector } from '../../src/content/encoding.js';

function encodingOf(...pieces: readonly Uint8Array[]): string {
  const detector = new EncodingDetector();
  for (const piece of pieces) detector.write(Buffer.from(piece));
  return detector.end();
}

/** Cuts bytes into pieces at the given places. */
function cut(bytes: Buffer, places: readonly number[]): readonly Buffer[] {
  const at = [...new Set(places.map((p) => (bytes.length === 0 ? 0 : p % bytes.length)))].sort(
    (a, b) => a - b,
  );
  return [0, ...at].map((start, i, starts) => bytes.subarray(start, starts[i + 1] ?? bytes.length));
}

function isValidUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

const places = fc.array(fc.nat(), { maxLength: 8 });
const text = fc.string({ unit: 'binary', maxLength: 60 });

describe('the encoding of a file', () => {
  it('is the same however the file is cut into pieces', () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 60 }),
      text.map((t) => Buffer.from(t)),
      text.map((t) => Buffer.from(`\ufeff${t}`, 'utf16le')),
      // Mostly continuation and lead bytes: sequences that are nearly right.
      fc
        .array(fc.constantFrom(0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80, 0xc3, 0xbc, 0x41, 0xed, 0xa0), {
          maxLength: 20,
        })
        .map((a) => Buffer.from(a)),
    );
    fc.assert(
      fc.property(bytes, places, (content, at) => {
        const whole = Buffer.from(content);
        expect(encodingOf(...cut(whole, at))).toBe(encodingOf(whole));
        expect(encodingOf(...[...whole].map((byte) => Buffer.of(byte)))).toBe(encodingOf(whole));
      }),
      { numRuns: 2_000 },
    );
  });

  it('is UTF-8 for bytes with few control characters just where a strict decoder takes them', () => {
    const bytes = fc.uint8Array({ maxLength: 12 }).filter((some) => some.every((byte) => byte >= 0x20));
    fc.assert(
      fc.property(bytes, (some) => {
        const isMarked = (some[0] === 0xff && some[1] === 0xfe) || (some[0] === 0xfe && some[1] === 0xff);
        const isSigned = some[0] === 0xff && some[1] === 0xd8 && some[2] === 0xff;
        expect(encodingOf(some) === 'utf-8').toBe(!isMarked && !isSigned && isValidUtf8(some));
      }),
      { numRuns: 5_000 },
    );
  });

  it('is that of the text, with a byte order mark and without, though it has a few NULs and control characters', () => {
    const words = fc.string({ unit: 'grapheme', minLength: 40, maxLength: 80 });
    const controls = fc.string({ unit: fc.constantFrom('\0', '\x01', '\x07', '\x1b', '\x1f'), maxLength: 4 });
    fc.assert(
      fc.property(words, controls, words, (before, control, after) => {
        const content = `note ${before}${control}${after}`;
        expect(encodingOf(Buffer.from(content))).toBe('utf-8');
        expect(encodingOf(Buffer.from(`\ufeff${content}`))).toBe('utf-8');
        expect(encodingOf(Buffer.from(`\ufeff${content}`, 'utf16le'))).toBe('utf-16le');
      }),
    );
  });

  it.each([
    ['nothing at all', [], 'utf-8'],
    ['UTF-16 with its mark, little end first', [0xff, 0xfe, 0x41, 0x00, 0x0a, 0x00], 'utf-16le'],
    ['UTF-16 with its mark, big end first', [0xfe, 0xff, 0x00, 0x41, 0x20, 0xac], 'utf-16be'],
    ['UTF-16 without an end', [0xff, 0xfe, 0x41], 'binary'],
    ['UTF-32, which begins as UTF-16 does', [0xff, 0xfe, 0x00, 0x00, 0x41, 0x00, 0x00, 0x00], 'binary'],
    ['German of an old editor', [0x4d, 0xfc, 0x6c, 0x6c, 0x65, 0x72], 'windows-1252'],
    ['a sequence that is cut off by the end', [0x41, 0xe2, 0x82], 'windows-1252'],
    ['a picture', [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00], 'binary'],
    ['bytes with a control character at their beginning', [0x41, 0xff, 0x02], 'binary'],
    ['more control characters than text has', [0x41, 0x03, 0x34, 0x02, 0x0a], 'binary'],
    ['a terminal log', [0x1b, 0x5b, 0x31, 0x6d, 0xe4], 'windows-1252'],
  ])('is found for %s', (_what, bytes, expected) => {
    expect(encodingOf(Buffer.from(bytes))).toBe(expected);
  });

  it('of a chat log with colours, or of a log with a NUL where the machine crashed, is UTF-8', () => {
    expect(encodingOf(Buffer.from('<anna> \x034red\x03 and then plain words again'))).toBe('utf-8');
    expect(encodingOf(Buffer.from(`first boot\n${'\0'.repeat(20)}${'second boot\n'.repeat(100)}`))).toBe(
      'utf-8',
    );
  });

  it('is binary where the beginning has many control characters, whatever follows', () => {
    expect(encodingOf(Buffer.from(`${'\0'.repeat(900)}${'words '.repeat(100_000)}`))).toBe('binary');
  });

  it('in eight bits bears a control character only behind the beginning, and few of them', () => {
    const german = Buffer.from('Gr\xfc\xdfe aus dem Archiv. ', 'latin1');
    const long = Buffer.concat(Array.from({ length: 100 }, () => german));
    expect(encodingOf(long, Buffer.of(0), long)).toBe('windows-1252');
    expect(encodingOf(german, Buffer.of(0), long)).toBe('binary');
    expect(encodingOf(long, Buffer.alloc(100), long)).toBe('binary');
  });

  it.each(['%PDF-1.4\n', '{\\rtf1 ', '%!PS-Adobe-3.0\n', 'GIF89a'])(
    'is binary by the signature %j, though all of it is ASCII',
    (begin) => {
      expect(encodingOf(Buffer.from(`${begin}${'only ascii text '.repeat(1_000)}`))).toBe('binary');
      expect(encodingOf(...[...`${begin}words`].map((letter) => Buffer.from(letter)))).toBe('binary');
      expect(encodingOf(Buffer.from(`It begins with ${begin}`))).toBe('utf-8');
    },
  );
});
