import { TextDecoder } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EncodingDetector } from '../../src/watch/encoding.js';

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

  it('is UTF-8 for just those bytes without NUL or another byte order mark that a strict decoder takes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 12 }), (bytes) => {
        const marked = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
        expect(encodingOf(bytes) === 'utf-8').toBe(!marked && !bytes.includes(0) && isValidUtf8(bytes));
      }),
      { numRuns: 5_000 },
    );
  });

  it('is UTF-8 for all text without NUL, with a byte order mark and without', () => {
    fc.assert(
      fc.property(text, (t) => {
        const clean = t.replaceAll('\0', '');
        expect(encodingOf(Buffer.from(clean))).toBe('utf-8');
        expect(encodingOf(Buffer.from(`\ufeff${clean}`))).toBe('utf-8');
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
    ['bytes with a control character that no text has', [0x41, 0xff, 0x02], 'binary'],
    ['a chat log with colours', [0x41, 0x03, 0x34, 0x02, 0x0a], 'utf-8'],
    ['a terminal log', [0x1b, 0x5b, 0x31, 0x6d, 0xe4], 'windows-1252'],
  ])('is found for %s', (_what, bytes, expected) => {
    expect(encodingOf(Buffer.from(bytes))).toBe(expected);
  });
});
