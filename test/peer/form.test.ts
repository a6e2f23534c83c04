import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Dialect } from '../../src/peer/dialects/dialect.js';
import { standard } from '../../src/peer/dialects/standard.js';
import { yacy } from '../../src/peer/dialects/yacy.js';
import { type Body, encode, formBody, type Text, type TextSource } from '../../src/peer/form.js';
import type { PushItem, PushOptions } from '../../src/peer/push.js';
import { ANY_CHARACTER } from './support.js';

const SHOWN = 'http://peer.example.org/api/push_p.html';

async function bytesOf(body: Body): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body.chunks()) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

const textOf = async (body: Body): Promise<string> => (await bytesOf(body)).toString('latin1');

/** Returns how many bytes a body gave before it failed, and the error. */
async function brokenOff(body: Body): Promise<{ given: number; error?: unknown }> {
  let given = 0;
  try {
    for await (const chunk of body.chunks()) given += chunk.length;
    return { given };
  } catch (error) {
    return { given, error };
  }
}

/** Cuts bytes anywhere, and reuses one memory for all pieces, as a reader of files does. */
function sourceOf(bytes: Uint8Array, cuts: readonly number[] = []): TextSource {
  return {
    size: bytes.length,
    async *chunks() {
      const scratch = Buffer.alloc(bytes.length);
      let at = 0;
      for (const cut of [...cuts, bytes.length].sort((a, b) => a - b)) {
        const end = Math.min(cut, bytes.length);
        const piece = scratch.fill(0).subarray(0, end - at);
        piece.set(bytes.subarray(at, end));
        at = end;
        yield piece;
      }
    },
  };
}

/**
 * A source that gives the first pieces when it is read first, and the second when it is read again.
 */
function changing(size: number, first: readonly string[], second: readonly string[]): TextSource {
  let reads = 0;
  return {
    size,
    async *chunks() {
      reads += 1;
      for (const piece of reads === 1 ? first : second) yield Buffer.from(piece);
    },
  };
}

/** The content of one document in a form, and a field behind it. */
const formOf = (value: string | Text, item?: number): Promise<Body> =>
  formBody(
    [
      { name: 'data-0', value, ...(item === undefined ? {} : { item }) },
      { name: 'url-0', value: 'u' },
    ],
    SHOWN,
  );

const item = (data: Text, more: Partial<PushItem> = {}): PushItem => ({
  url: 'http://files.example.org/a.txt',
  collection: 'c',
  data,
  ...more,
});

/** Returns the body of a push in this dialect. */
async function pushBody(
  dialect: Dialect,
  items: readonly PushItem[],
  options: PushOptions = {},
): Promise<Body> {
  const { body } = await dialect.pushRequest(items, options, () => SHOWN);
  if (body === undefined) throw new Error('the push has no body');
  return body;
}

const yacyPush = (items: readonly PushItem[], options: PushOptions = {}) =>
  pushBody(yacy, items, options);

/** Returns the fields of a multipart body as another parser reads them. */
async function fieldsOf(body: Body) {
  const headers = { 'content-type': body.type };
  return [...(await new Response(new Uint8Array(await bytesOf(body)), { headers }).formData())];
}

it('a form is what URLSearchParams writes, for any names and values', async () => {
  const any = fc.string({ unit: ANY_CHARACTER });
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(any, any), { minLength: 1 }), async (fields) => {
      const named = fields.map(([name, value]) => ({ name, value }));
      const { bytes, ...body } = await formBody(named, SHOWN);
      const text = new URLSearchParams(fields).toString();
      expect([await textOf(body), bytes?.toString('latin1')]).toEqual([text, text]);
      expect(body).toMatchObject({
        length: text.length,
        type: 'application/x-www-form-urlencoded',
      });
    }),
  );
});

describe('a push to YaCy', () => {
  it('has only text fields, with the required header, and the content in base64', async () => {
    const pdf = {
      url: 'HTTP://Files.example.org/ü "1".pdf',
      contentType: 'application/pdf',
      lastModified: Date.parse('1994-11-15T12:45:26.789Z'),
    };
    const items = [item(Buffer.from('Grüße')), item(Buffer.from([0xff, 0, 0x25]), pdf)];
    expect(await fieldsOf(await yacyPush(items, { synchronous: true, commit: true }))).toEqual([
      ['count', '2'],
      ['synchronous', 'true'],
      ['commit', 'true'],
      ['url-0', 'http://files.example.org/a.txt'],
      ['collection-0', 'c'],
      ['responseHeader-0', ''],
      ['contentType-0', 'text/plain; charset=UTF-8'],
      ['data-0$file', 'R3LDvMOfZQ=='],
      ['url-1', 'http://files.example.org/%C3%BC%20%221%22.pdf'],
      ['collection-1', 'c'],
      ['responseHeader-1', ''],
      ['contentType-1', 'application/pdf'],
      ['lastModified-1', 'Tue, 15 Nov 1994 12:45:26 GMT'],
      ['data-1$file', '/wAl'],
    ]);
  });

  it('refuses content that was encoded for a form', async () => {
    const data = { encoding: 'form' as const, size: 1, encoded: Buffer.from('a') };
    await expect(yacyPush([item(data)])).rejects.toThrow(TypeError);
  });
});

it('a push by the specification sends the last modification of a file, if that is given', async () => {
  const items = [
    item(Buffer.from('a'), { lastModified: Date.UTC(1994, 10, 15) }),
    item(Buffer.from('b')),
  ];
  const sent = new URLSearchParams(await textOf(await pushBody(standard, items)));
  const dates = [...sent].filter(([name]) => name.startsWith('lastModified'));
  expect(dates).toEqual([['lastModified-0', '1994-11-15T00:00:00.000Z']]);
});

it('a body is the same from memory, from a source cut anywhere, and from a text encoded elsewhere', async () => {
  const content = fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.string({ unit: 'grapheme' }));
  await fc.assert(
    fc.asyncProperty(content, fc.array(fc.nat(200), { maxLength: 6 }), async (any, cuts) => {
      const bytes = Buffer.from(any as string);
      const encoded = (encoding: 'form' | 'base64') =>
        ({ encoding, size: bytes.length, encoded: encode(bytes, encoding) }) as const;
      const source = sourceOf(bytes, cuts);
      const form = await textOf(await formOf(bytes));
      for (const data of [source, encoded('form')]) {
        const body = await formOf(data);
        expect(await textOf(body)).toBe(form);
        expect(body.length).toBe(form.length);
      }
      const body = await yacyPush([item(bytes), item(source), item(encoded('base64'))]);
      const fields = new Map(await fieldsOf(body));
      for (const n of [0, 1, 2])
        expect(fields.get(`data-${n}$file`)).toBe(bytes.toString('base64'));
      expect((await bytesOf(body)).length).toBe(body.length);
    }),
    { numRuns: 100 },
  );
});

it.each([
  ['form' as const, formOf],
  ['base64' as const, (data: Text) => yacyPush([item(data)])],
])('a large text is encoded piece by piece, and given again: %s', async (encoding, bodyOf) => {
  const source: TextSource = {
    size: 6_000_000,
    async *chunks() {
      for (let at = 0; at < 6_000_000; at += 50_000) yield Buffer.alloc(50_000, 'ä \n');
    },
  };
  for (const text of [source, Buffer.alloc(3 * 1024 * 1024, 'ä \n')]) {
    const body = await bodyOf(text);
    expect(body.bytes).toBeUndefined();
    let longest = 0;
    let length = 0;
    for await (const chunk of body.chunks()) {
      longest = Math.max(longest, chunk.length);
      length += chunk.length;
    }
    expect(length).toBe(body.length);
    if (Buffer.isBuffer(text))
      expect(await textOf(body)).toContain(encode(text, encoding).toString('latin1'));
    expect(longest).toBeLessThan(256 * 1024);
  }
});

describe('a text that changed', () => {
  it.each([
    ['longer', ['abcd']],
    ['longer by a chunk of its own', ['abc', 'd']],
    ['shorter', ['ab']],
    ['longer once encoded', ['ab/']],
  ])('never completes a form, nor a push to YaCy: %s', async (why, second) => {
    const form = await formBody(
      [{ name: 'a', value: changing(3, ['abc'], second), item: 0 }],
      SHOWN,
    );
    // The same length in base64 means the same text, as far as can be checked.
    const push =
      why === 'longer once encoded' ? [] : [await yacyPush([item(changing(3, second, second))])];
    for (const body of [form, ...push]) {
      const { given, error } = await brokenOff(body);
      expect(error).toMatchObject({ code: 'PEER_SOURCE', item: 0, delivered: 'no' });
      expect(given).toBeLessThan(body.length);
    }
  });

  it('is refused before anything is sent if its size is wrong, or if it cannot be read', async () => {
    const cause = new Error('ENOENT: no such file');
    const gone = {
      size: 3,
      async *chunks() {
        yield* await Promise.reject<Uint8Array[]>(cause);
      },
    };
    const expected = { code: 'PEER_SOURCE', item: 1 };
    const message = expect.stringContaining('3 bytes came instead of 4');
    await expect(formOf(changing(4, ['abc'], []), 1)).rejects.toMatchObject({
      ...expected,
      message,
    });
    await expect(formOf(gone, 1)).rejects.toMatchObject({
      ...expected,
      cause,
      message: expect.stringContaining('ENOENT'),
    });
  });
});

it.each([
  ['x', 10, 'application/x-www-form-urlencoded'],
  ['ü'.repeat(40_000), 1, 'multipart/form-data'],
  ['x', 1_000, 'multipart/form-data'],
])(
  'a change of a table of YaCy is a form while it is small, and multipart beyond: %#',
  async (value, columns, type) => {
    const fields = Array.from({ length: columns }, (_, n) => ({ name: `col_${n}`, value }));
    expect((await yacy.tables.changeBody(fields, SHOWN)).type.split(';', 1)[0]).toBe(type);
  },
);
