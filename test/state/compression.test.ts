import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { blockOf, decompressed } from '../../src/state/compression.js';

/** Returns what a file with these bytes contains when it is read in chunks of this size. */
async function textOf(bytes: Buffer, chunkBytes = 64 * 1024): Promise<string> {
  async function* chunks(): AsyncGenerator<Buffer> {
    for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
  }
  const found: Buffer[] = [];
  for await (const lines of decompressed(chunks())) found.push(lines);
  return Buffer.concat(found).toString();
}

const block = (text: string) => blockOf(Buffer.from(text));

describe('a compressed file', () => {
  it('is read in chunks of any size, plain text before it included', async () => {
    const texts = fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 5 });
    const plain = fc.constantFrom('', 'a', 'a plain line\n', `${'plain '.repeat(20)}\n`);
    await fc.assert(
      fc.asyncProperty(
        plain,
        texts,
        fc.integer({ min: 1, max: 40 }),
        async (plain, texts, size) => {
          const bytes = Buffer.concat([Buffer.from(plain), ...texts.map(block)]);
          expect(await textOf(bytes, size)).toBe(plain + texts.join(''));
        },
      ),
    );
  });

  it('has lines that are longer than a chunk, and cannot be compressed', async () => {
    const long = randomBytes(3_000_000).toString('base64');
    const text = await textOf(Buffer.concat(['first\n', `${long}\n`, 'last\n'].map(block)));
    expect(text === `first\n${long}\nlast\n`).toBe(true);
  });

  it('yields the blocks around a damaged one, wherever the damage is', async () => {
    const [first, second, third] = ['first\n', 'second '.repeat(50), '\nthird'].map(block);
    if (first === undefined || second === undefined || third === undefined) throw new Error();
    for (let at = 0; at < second.length; at += 1) {
      const damaged = Buffer.from(second);
      damaged.writeUInt8(damaged.readUInt8(at) ^ 0xff, at);
      const text = await textOf(Buffer.concat([first, damaged, third]));
      expect(text.startsWith('first\n')).toBe(true);
      expect(text.endsWith('\nthird')).toBe(true);
    }
  });

  it('is read to its end if a block is followed by much that is none', async () => {
    const noise = Buffer.alloc(5_000_000, 'x');
    const text = await textOf(Buffer.concat([block('first'), noise, block('last\n')]));
    expect(text.endsWith('xlast\n')).toBe(true);
  });
});
