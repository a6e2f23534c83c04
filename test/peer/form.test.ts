import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Body, encode, formBody, type Text, type TextSource } from '../../src/peer/form.js';
import { Pieces } from './servers.js';

const URL_SHOWN = 'http://peer.example.org/api/push_p.html';

async function bytesOf(body: Body): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body.chunks()) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function textOf(body: Body): Promise<string> {
  return (await bytesOf(body)).toString('latin1');
}

function sourceOf(text: Uint8Array, cuts: readonly number[] = []): TextSource {
  return {
    size: text.length,
    async *chunks() {
      let from = 0;
      for (const cut of [...cuts].sort((a, b) => a - b)) {
        yield text.subarray(from, Math.min(cut, text.length));
        from = Math.min(cut, text.length);
      }
      yield text.subarray(from);
    },
  };
}

/** Gives its first text when it is read first, the second when it is read again. */
function changing(size: number, first: string, second: string): TextSource {
  let reads = 0;
  return {
    size,
    async *chunks() {
      reads += 1;
      yield Buffer.from(reads === 1 ? first : second);
    },
  };
}

describe('a form', () => {
  it('keeps letters, digits and *-._ as they are, writes a blank as +, and escapes all else in upper case', async () => {
    const body = await formBody([{ name: 'x', value: "aZ09*-._ ~ä!'()/&=+%\n\0" }], URL_SHOWN);
    expect(await textOf(body)).toBe('x=aZ09*-._+%7E%C3%A4%21%27%28%29%2F%26%3D%2B%25%0A%00');
    expect(body.type).toBe('application/x-www-form-urlencoded');
  });

  it('is what URLSearchParams writes, for any names and values', async () => {
    const pairs = fc.array(fc.tuple(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' })), {
      minLength: 1,
    });
    await fc.assert(
      fc.asyncProperty(pairs, async (fields) => {
        const body = await formBody(
          fields.map(([name, value]) => ({ name, value })),
          URL_SHOWN,
        );
        const text = await textOf(body);
        expect(text).toBe(new URLSearchParams(fields).toString());
        expect(body.length).toBe(text.length);
        expect(body.bytes?.toString('latin1')).toBe(text);
      }),
    );
  });

  it('decodes to the same text whether it came from memory or in pieces cut anywhere, also inside a character', async () => {
    const cuts = fc.array(fc.nat(60), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme', maxLength: 40 }), cuts, async (text, at) => {
        const bytes = Buffer.from(text);
        const held = await formBody(
          [
            { name: 'data-0', value: bytes },
            { name: 'url-0', value: 'u' },
          ],
          URL_SHOWN,
        );
        const streamed = await formBody(
          [
            { name: 'data-0', value: sourceOf(bytes, at) },
            { name: 'url-0', value: 'u' },
          ],
          URL_SHOWN,
        );
        expect(await textOf(streamed)).toBe(await textOf(held));
        expect(streamed.length).toBe(held.length);
        expect(new URLSearchParams(await textOf(streamed)).get('data-0')).toBe(bytes.toString());
      }),
    );
  });

  it('says its length before it is sent, and gives its bytes again for each time it is sent', async () => {
    const source = new Pieces('one & ', 'two ', 'drei: ä');
    const body = await formBody(
      [
        { name: 'a', value: source },
        { name: 'b', value: '2' },
      ],
      URL_SHOWN,
    );
    expect(source.reads).toBe(1);
    const first = await textOf(body);
    expect(first).toBe('a=one+%26+two+drei%3A+%C3%A4&b=2');
    expect(body.length).toBe(first.length);
    expect(await textOf(body)).toBe(first);
    expect(source.reads).toBe(3);
  });

  it('does not hold a large text in memory twice: it is encoded piece by piece', async () => {
    const large = Buffer.alloc(3 * 1024 * 1024, 'ä \n');
    const body = await formBody(
      [
        { name: 'data-0', value: large },
        { name: 'url-0', value: 'u' },
      ],
      URL_SHOWN,
    );
    expect(body.bytes).toBeUndefined();
    let longest = 0;
    for await (const chunk of body.chunks()) longest = Math.max(longest, chunk.length);
    expect(longest).toBeLessThan(256 * 1024);
    expect(new URLSearchParams(await textOf(body)).get('data-0')).toBe(large.toString());
  });

  it('takes texts that were encoded elsewhere as they are', async () => {
    const texts = ['one & two', 'ä'.repeat(50_000), ''].map((text) => Buffer.from(text));
    const fieldsOf = (values: readonly Text[]) => values.map((value, n) => ({ name: `data-${n}`, value }));
    const encoded = texts.map((text) => ({
      size: text.length,
      encoding: 'form' as const,
      encoded: encode(text, 'form'),
    }));
    const here = await formBody(fieldsOf(texts), URL_SHOWN);
    expect(await textOf(await formBody(fieldsOf(encoded), URL_SHOWN))).toBe(await textOf(here));
  });

  it('takes an empty source', async () => {
    const body = await formBody([{ name: 'a', value: sourceOf(Buffer.alloc(0)) }], URL_SHOWN);
    expect(await textOf(body)).toBe('a=');
    expect(body.length).toBe(2);
  });
});

describe('a text that is not what it was', () => {
  it.each([
    ['longer', 'abc', 'abcd'],
    ['longer by a whole chunk', 'abc', 'abcabc'],
    ['shorter', 'abc', 'ab'],
    ['longer once encoded', 'abc', 'ab/'],
  ])('never completes a body: %s', async (_, first, second) => {
    const body = await formBody([{ name: 'a', value: changing(3, first, second), item: 7 }], URL_SHOWN);
    let given = 0;
    const sending = (async () => {
      for await (const chunk of body.chunks()) given += chunk.length;
    })();
    await expect(sending).rejects.toMatchObject({ code: 'PEER_SOURCE', item: 7, delivered: 'no' });
    expect(given).toBeLessThan(body.length);
  });

  it('never completes a body by growing in a chunk of its own, even as its last part', async () => {
    let reads = 0;
    const growing: TextSource = {
      size: 3,
      async *chunks() {
        reads += 1;
        yield Buffer.from('abc');
        if (reads > 1) yield Buffer.from('d');
      },
    };
    const body = await formBody([{ name: 'a', value: growing }], URL_SHOWN);
    let given = 0;
    const sending = (async () => {
      for await (const chunk of body.chunks()) given += chunk.length;
    })();
    await expect(sending).rejects.toMatchObject({ code: 'PEER_SOURCE' });
    expect(given).toBeLessThan(body.length);
  });

  it('is refused before anything is sent where its size is not the one it says', async () => {
    const fields = [{ name: 'data-1', value: changing(4, 'abc', 'abc'), item: 1 }];
    await expect(formBody(fields, URL_SHOWN)).rejects.toMatchObject({
      code: 'PEER_SOURCE',
      item: 1,
      message: expect.stringContaining('3 bytes came instead of 4'),
    });
  });

  it('is told with its cause where it cannot be read', async () => {
    const cause = Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT' });
    const gone: TextSource = {
      size: 3,
      // biome-ignore lint/correctness/useYield: it fails before its first chunk
      async *chunks() {
        throw cause;
      },
    };
    await expect(formBody([{ name: 'data-2', value: gone, item: 2 }], URL_SHOWN)).rejects.toMatchObject({
      code: 'PEER_SOURCE',
      item: 2,
      cause,
      message: expect.stringContaining('ENOENT: no such file'),
    });
  });

  it('is closed when the sending stops half-way', async () => {
    let closed = 0;
    const source: TextSource = {
      size: 6,
      async *chunks() {
        try {
          yield Buffer.from('abc');
          yield Buffer.from('def');
        } finally {
          closed += 1;
        }
      },
    };
    const body = await formBody([{ name: 'a', value: source }], URL_SHOWN);
    for await (const chunk of body.chunks()) if (Buffer.from(chunk).includes('abc')) break;
    expect(closed).toBe(2);
  });
});
