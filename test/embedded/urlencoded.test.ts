import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readUrlencoded, Slices } from '../../src/embedded/form.js';
import { systemClock } from '../../src/lib/clock.js';

async function read(text: string): Promise<[string, string][]> {
  const fields: [string, string][] = [];
  const form = { set: (name: string, value: Buffer) => void fields.push([name, value.toString()]) };
  await readUrlencoded(Buffer.from(text), form, new Slices(systemClock));
  return fields;
}

describe('an urlencoded body', () => {
  it('is read as URLSearchParams reads it', async () => {
    const pair = fc.tuple(fc.string({ unit: 'grapheme', maxLength: 12 }), fc.string({ unit: 'grapheme' }));
    await fc.assert(
      fc.asyncProperty(fc.array(pair, { maxLength: 6 }), async (pairs) => {
        const text = new URLSearchParams(pairs).toString();
        expect(await read(text)).toEqual([...new URLSearchParams(text)]);
      }),
    );
  });

  it('keeps a percent sign that begins no escape, and any nonsense, as URLSearchParams does', async () => {
    const nonsense = fc.string({
      unit: fc.constantFrom('%', '4', 'f', 'g', '&', '=', '+', 'a'),
      maxLength: 20,
    });
    await fc.assert(
      fc.asyncProperty(nonsense, async (text) => {
        expect(await read(text)).toEqual([...new URLSearchParams(text)]);
      }),
      { numRuns: 1_000 },
    );
  });

  it('of nothing but separators holds nobody up', async () => {
    const began = Date.now();
    expect(await read('&'.repeat(16_000_000))).toEqual([]);
    expect(Date.now() - began).toBeLessThan(400);
  });
});
