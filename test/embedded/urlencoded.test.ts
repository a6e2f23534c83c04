import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { UrlencodedReader } from '../../src/embedded/form.js';

function read(chunks: readonly Buffer[]): [string, string][] {
  const fields: [string, Buffer[]][] = [];
  const reader = new UrlencodedReader({
    begin(name) {
      const value: Buffer[] = [];
      fields.push([name, value]);
      return value;
    },
  });
  for (const chunk of chunks) reader.write(chunk);
  reader.end();
  return fields.map(([name, value]) => [name, Buffer.concat(value).toString()]);
}

function cut(text: string, size: number): Buffer[] {
  const whole = Buffer.from(text);
  const chunks: Buffer[] = [];
  for (let i = 0; i < whole.length; i += size) chunks.push(whole.subarray(i, i + size));
  return chunks;
}

describe('an urlencoded body', () => {
  it('is read as URLSearchParams reads it, wherever its chunks are cut', () => {
    const pair = fc.tuple(fc.string({ unit: 'grapheme', maxLength: 12 }), fc.string({ unit: 'grapheme' }));
    fc.assert(
      fc.property(fc.array(pair, { maxLength: 6 }), fc.integer({ min: 1, max: 9 }), (pairs, size) => {
        const text = new URLSearchParams(pairs.filter(([name]) => name !== '')).toString();
        expect(read(cut(text, size))).toEqual([...new URLSearchParams(text)]);
      }),
    );
  });

  it('keeps a percent sign that begins no escape, and any nonsense, as URLSearchParams does', () => {
    const nonsense = fc.string({
      unit: fc.constantFrom('%', '4', 'f', 'g', '&', '=', '+', 'a'),
      maxLength: 20,
    });
    fc.assert(
      fc.property(nonsense, fc.integer({ min: 1, max: 5 }), (text, size) => {
        expect(read(cut(text, size))).toEqual([...new URLSearchParams(text)]);
      }),
      { numRuns: 1_000 },
    );
  });
});
