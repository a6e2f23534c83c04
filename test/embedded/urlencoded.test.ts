import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Form, parseInto } from '../../src/embedded/form.js';

const LIMITS = { body: 32_000_000, fields: 100 };

/** What is read where the text comes in pieces of so many bytes. */
async function read(text: string, piece = 65_536): Promise<[string, string][]> {
  const form = new Form(LIMITS);
  const bytes = Buffer.from(text);
  const pieces = Array.from({ length: Math.ceil(bytes.length / piece) }, (_, n) =>
    bytes.subarray(n * piece, (n + 1) * piece),
  );
  await parseInto(form, LIMITS, {}, pieces);
  return [...form.names()].map((name) => [name, form.bytes(name)?.toString() ?? '']);
}

/** As URLSearchParams reads it; undefined where a name comes twice, which is refused. */
function expected(text: string): [string, string][] | undefined {
  const pairs = [...new URLSearchParams(text)];
  fc.pre(pairs.every(([name]) => name !== ''));
  return new Set(pairs.map(([name]) => name)).size === pairs.length ? pairs : undefined;
}

async function isReadAs(text: string, piece: number): Promise<void> {
  const pairs = expected(text);
  if (pairs === undefined) await expect(read(text, piece)).rejects.toMatchObject({ status: 400 });
  else expect(await read(text, piece)).toEqual(pairs);
}

const piece = fc.integer({ min: 1, max: 30 });

describe('an urlencoded body', () => {
  it('is read as URLSearchParams reads it, however it is cut', async () => {
    const pair = fc.tuple(fc.string({ unit: 'grapheme', maxLength: 12 }), fc.string({ unit: 'grapheme' }));
    await fc.assert(
      fc.asyncProperty(fc.array(pair, { maxLength: 6 }), piece, async (pairs, piece) =>
        isReadAs(new URLSearchParams(pairs).toString(), piece),
      ),
    );
  });

  it('keeps a percent sign that begins no escape, as URLSearchParams does', async () => {
    const nonsense = fc.string({
      unit: fc.constantFrom('%', '4', 'f', 'g', '&', '=', '+', 'a'),
      maxLength: 20,
    });
    await fc.assert(
      fc.asyncProperty(nonsense, piece, async (text, piece) => isReadAs(text, piece)),
      { numRuns: 1_000 },
    );
  });

  it('of nothing but separators holds nobody up', async () => {
    const began = Date.now();
    expect(await read('&'.repeat(16_000_000))).toEqual([]);
    expect(Date.now() - began).toBeLessThan(400);
  });
});
