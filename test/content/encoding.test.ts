import { TextDecoder } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decoderOf, EncodingDetector } from '../../src/content/encoding.js';
import type { Encoding } from '../../src/lib/file.js';
import { encoded, FRENCH, GERMAN, LEGACY_TEXTS } from './legacy-texts.js';

function encodingOf(...pieces: readonly (Uint8Array | string)[]): string {
  const detector = new EncodingDetector();
  for (const piece of pieces) detector.write(Buffer.from(piece as Uint8Array));
  return detector.end();
}

function isValidUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le');
const latin1 = (text: string) => Buffer.from(text, 'latin1');
const words = 'words '.repeat(10_000);
const german = latin1('Gr\xfc\xdfe aus dem Archiv. ');
const archive = Buffer.concat(Array.from({ length: 100 }, () => german));

describe('the encoding of a file', () => {
  it('is the same however the file is cut into pieces', () => {
    const text = fc.string({ unit: 'binary', maxLength: 60 });
    const nearlyRight = fc.constantFrom(...Buffer.from('e282acf09f9880c3bc41eda0', 'hex'));
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 60 }),
      text.map((t) => Buffer.from(t)),
      text.map(utf16),
      fc.array(nearlyRight, { maxLength: 20 }).map((a) => Buffer.from(a)),
    );
    fc.assert(
      fc.property(bytes, fc.nat(60), fc.nat(60), (content, a, b) => {
        const whole = Buffer.from(content);
        const [first, second] = [Math.min(a, b), Math.max(a, b)];
        const pieces = [
          whole.subarray(0, first),
          whole.subarray(first, second),
          whole.subarray(second),
        ];
        expect(encodingOf(...pieces)).toBe(encodingOf(whole));
        expect(encodingOf(...[...whole].map((byte) => Buffer.of(byte)))).toBe(encodingOf(whole));
      }),
      { numRuns: 500 },
    );
  });

  it('is UTF-8 for bytes with few control characters exactly if a strict decoder accepts them', () => {
    const bytes = fc
      .uint8Array({ maxLength: 12 })
      .filter((some) => some.every((byte) => byte >= 0x20));
    fc.assert(
      fc.property(bytes, (some) => {
        const isMarked = /^(fffe|feff|ffd8ff)/.test(Buffer.from(some).toString('hex'));
        expect(encodingOf(some) === 'utf-8').toBe(!isMarked && isValidUtf8(some));
      }),
      { numRuns: 5_000 },
    );
  });

  it('is detected with and without a byte order mark, even if the text has a few NULs and control characters', () => {
    const text = fc.string({ unit: 'grapheme', minLength: 40, maxLength: 80 });
    const controls = fc.string({
      unit: fc.constantFrom('\0', '\x01', '\x07', '\x1b', '\x1f'),
      maxLength: 4,
    });
    fc.assert(
      fc.property(text, controls, text, (before, control, after) => {
        const content = `note ${before}${control}${after}`;
        expect(encodingOf(content)).toBe('utf-8');
        expect(encodingOf(`\ufeff${content}`)).toBe('utf-8');
        expect(encodingOf(utf16(content))).toBe('utf-16le');
      }),
    );
  });

  it.each<[string, readonly (Uint8Array | string)[], string]>([
    ['nothing at all', [], 'utf-8'],
    ['UTF-16 with its mark, little end first', [utf16('A\n')], 'utf-16le'],
    ['UTF-16 with its mark, big end first', [utf16('A€').swap16()], 'utf-16be'],
    ['UTF-16 without an end', [Buffer.of(0xff, 0xfe, 0x41)], 'binary'],
    ['UTF-32, which begins as UTF-16 does', [utf16('\0A\0')], 'binary'],
    ['German of an old editor', [latin1('M\xfcller')], 'windows-1252'],
    ['bytes with a control character at their beginning', [latin1('A\xff\x02')], 'binary'],
    ['more control characters than text has', ['A\x034\x02\n'], 'binary'],
    ['a terminal log', [latin1('\x1b[1m\xe4')], 'windows-1252'],
    ['a chat log with colours', ['<anna> \x034red\x03 and then plain words again'], 'utf-8'],
    ['a log of a machine that crashed', [`first boot\n${'\0'.repeat(20)}${words}`], 'utf-8'],
    ['many control characters before text', [`${'\0'.repeat(900)}${words}`], 'binary'],
    ['a control character far behind in eight bits', [archive, '\0', archive], 'windows-1252'],
    ['one near the beginning in eight bits', [archive.subarray(0, 1_444), '\0', archive], 'binary'],
    ['many far behind in eight bits', [archive, '\0'.repeat(100), archive], 'binary'],
  ])('is found for %s', (_what, pieces, expected) => {
    expect(encodingOf(...pieces)).toBe(expected);
  });

  it.each(['%PDF-1.4\n', '{\\rtf1 ', '%!PS-Adobe-3.0\n', 'GIF89a'])(
    'is binary with the signature %j, even if all bytes are ASCII',
    (begin) => {
      expect(encodingOf(`${begin}${words}`)).toBe('binary');
      expect(encodingOf(...`${begin}words`)).toBe('binary');
      expect(encodingOf(`It begins with ${begin}`)).toBe('utf-8');
    },
  );

  it.each(LEGACY_TEXTS)('is recognised and decoded: %s, %s', (encoding, text) => {
    const bytes = encoded(text, encoding);
    const program = 'const answer = 42; // it is known\n'.repeat(200);
    expect(encodingOf(bytes)).toBe(encoding);
    expect(encodingOf(program, bytes, program)).toBe(encoding);
    expect(encodingOf(...[...bytes].map((byte) => Buffer.of(byte)))).toBe(encoding);
    const decoder = decoderOf(encoding as Encoding);
    const pieces = [...bytes].map((byte) => decoder.decode(Buffer.of(byte), { stream: true }));
    expect(pieces.join('') + decoder.decode()).toBe(text);
  });

  it.each([GERMAN, FRENCH])('is windows-1252 for each part of a text with accents: %s', (text) => {
    const bytes = encoded(text, 'windows-1252');
    for (let at = 0; at < bytes.length; at += 1)
      for (const size of [20, 60, 120]) {
        const part = bytes.subarray(at, at + size);
        expect(encodingOf(part)).toBe(isValidUtf8(part) ? 'utf-8' : 'windows-1252');
      }
  });

  it('is unknown for words in an encoding that is not recognised', () => {
    const russian = LEGACY_TEXTS[0]?.[1] ?? '';
    expect(encodingOf(encoded(russian, 'ibm866'))).toBe('unknown-8bit');
    const few = [words, encoded(russian, 'ibm866'), words];
    expect(encodingOf(...few)).toBe('windows-1252');
  });

  it('is windows-1252 for a table that a program of DOS drew', () => {
    expect(encodingOf(latin1(`Preis \xb3 10\n${'\xc4'.repeat(30)}\n`))).toBe('windows-1252');
  });
});
