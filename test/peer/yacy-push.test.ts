import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { yacy } from '../../src/peer/dialects.js';
import { type Body, encode, type TextSource } from '../../src/peer/form.js';
import type { PushItem, PushOptions } from '../../src/peer/push.js';
import { answerOf } from './answers.js';
import { Pieces } from './servers.js';

const URL_OF_PUSH = 'http://peer.example.org/api/push_p.json';

async function bytesOf(body: Body): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body.chunks()) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** The fields as another program reads them. */
async function fieldsOf(body: Body): Promise<[string, string][]> {
  const response = new Response(new Uint8Array(await bytesOf(body)), {
    headers: { 'content-type': body.type },
  });
  return [...(await response.formData())].map(([name, value]) => {
    if (typeof value !== 'string') throw new Error(`${name} is a file`);
    return [name, value];
  });
}

function pushBody(items: readonly PushItem[], options: PushOptions = {}): Promise<Body> {
  return yacy.pushBody(items, options, URL_OF_PUSH);
}

function item(data: PushItem['data'], more: Partial<PushItem> = {}): PushItem {
  return { url: 'http://files.example.org/a.txt', collection: 'c', data, ...more };
}

function sourceOf(bytes: Uint8Array, cuts: readonly number[]): TextSource {
  return {
    size: bytes.length,
    async *chunks() {
      // One memory for all pieces, as a reader of files has it.
      const scratch = Buffer.alloc(bytes.length);
      let at = 0;
      for (const end of [...cuts, bytes.length].sort((a, b) => a - b)) {
        scratch.fill(0);
        const piece = scratch.subarray(0, end - at);
        piece.set(bytes.subarray(at, end));
        at = end;
        yield piece;
      }
    },
  };
}

describe('a push to YaCy', () => {
  it('is text fields alone, with the header that must be there, and the content in base64', async () => {
    const body = await pushBody(
      [
        item(Buffer.from('Grüße')),
        item(Buffer.from([0xff, 0, 0x25]), {
          url: 'HTTP://Files.example.org/ü "1".pdf',
          contentType: 'application/pdf',
          lastModified: Date.parse('1994-11-15T12:45:26.789Z'),
        }),
      ],
      { synchronous: true, commit: true },
    );
    expect(await fieldsOf(body)).toEqual([
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

  it('carries every byte, from memory, from a source cut anywhere, and encoded elsewhere, with its length known', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.uint8Array({ maxLength: 200 }), fc.array(fc.nat(200)), fc.nat(2)), {
          maxLength: 4,
        }),
        async (contents) => {
          const items = contents.map(([bytes, cuts, way]) => {
            if (way === 0) return item(bytes);
            if (way === 1)
              return item(
                sourceOf(
                  bytes,
                  cuts.map((cut) => Math.min(cut, bytes.length)),
                ),
              );
            return item({ encoding: 'base64', size: bytes.length, encoded: encode(bytes, 'base64') });
          });
          const body = await pushBody(items);
          const fields = new Map(await fieldsOf(body));
          expect(items.map((_, n) => fields.get(`data-${n}$file`))).toEqual(
            contents.map(([bytes]) => Buffer.from(bytes).toString('base64')),
          );
          expect((await bytesOf(body)).length).toBe(body.length);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('is the same whenever it is sent', async () => {
    const body = await pushBody([item(new Pieces('Gulls ', 'sleep')), item(Buffer.alloc(3_000_000, 'x'))]);
    expect(Buffer.compare(await bytesOf(body), await bytesOf(body))).toBe(0);
  });

  it('does not hold a large content: it is encoded piece by piece', async () => {
    const size = 30_000_000;
    const endless: TextSource = {
      size,
      async *chunks() {
        for (let at = 0; at < size; at += 50_000) yield Buffer.alloc(50_000, 'x');
      },
    };
    const body = await pushBody([item(endless)]);
    let largest = 0;
    let length = 0;
    for await (const chunk of body.chunks()) {
      largest = Math.max(largest, chunk.length);
      length += chunk.length;
    }
    expect(length).toBe(body.length);
    expect(largest).toBeLessThan(100_000);
  });

  it.each([
    ['shorter by a byte', ['Gulls sleep on one l']],
    ['longer by a byte', ['Gulls sleep on one leg']],
    ['longer by a byte that comes late', ['Gulls sleep on one le', 'g']],
    ['much longer', ['Gulls sleep on one leg.'.repeat(9)]],
    ['empty', []],
  ])('never becomes whole where a content is %s than it was', async (_, now) => {
    const changed: TextSource = {
      size: 'Gulls sleep on one le'.length,
      async *chunks() {
        for (const piece of now) yield Buffer.from(piece);
      },
    };
    const body = await pushBody([item(Buffer.from('first')), item(changed)]);
    let given = 0;
    const reading = (async () => {
      for await (const chunk of body.chunks()) given += chunk.length;
    })();
    await expect(reading).rejects.toMatchObject({ code: 'PEER_SOURCE', item: 1, delivered: 'no' });
    expect(given).toBeLessThan(body.length);
  });

  it('refuses content that was encoded for a form', async () => {
    const data = { encoding: 'form' as const, size: 1, encoded: Buffer.from('a') };
    await expect(pushBody([item(data)])).rejects.toThrow(TypeError);
  });
});

describe('the answer to a push', () => {
  interface Said {
    readonly url?: string;
    readonly success?: boolean;
    readonly message?: string;
  }

  /** As YaCy's template writes it: nothing is escaped. */
  function answer(
    said: readonly Said[],
    more: { count?: number; all?: boolean; success?: number; fail?: number } = {},
  ) {
    const failed = said.filter(({ success }) => success === false).length;
    const { count = said.length, all = failed === 0, success = said.length - failed, fail = failed } = more;
    const shown = said.map(
      ({ url = 'http://files.example.org/a.txt', success: ok = true, message = 'http://x/solr' }, n) =>
        `  "item-${n}":{\n    "item":"${n}",\n    "url":"${url}",\n    "success": "${ok}",\n    "message": "${message}"\n  },\n`,
    );
    return answerOf(
      `{\n  "count":"${count}",\n  "successall": "${all}",\n${shown.join('')}  "countsuccess":${success},\n  "countfail":${fail}\n}`,
    );
  }

  const two = [item(Buffer.from('a')), item(Buffer.from('b'))];
  const read = (...args: Parameters<typeof answer>) => yacy.pushResults(answer(...args), two);

  it('is read item by item, though nothing is escaped in URLs and messages', () => {
    for (const odd of ['a"b', "'http://'", 'a\t\nb', '"success"', 'say "no", and go', '\\x']) {
      const url = `http://x/${odd}`;
      const pushed = [item(Buffer.from('a'), { url }), item(Buffer.from('b'))];
      const said = answer([{ url }, { success: false, message: `no ${odd} again` }]);
      expect(yacy.pushResults(said, pushed)).toEqual([
        { ok: true },
        { ok: false, message: expect.stringContaining('no ') },
      ]);
    }
  });

  it('is no success where the numbers do not fit what was sent or what is said', () => {
    expect(read([{}, {}])).toEqual([{ ok: true }, { ok: true }]);
    const unfit = [
      () => read([{}]),
      () => read([{}, {}, {}]),
      () => read([{}, {}], { count: 1 }),
      () => read([{}, {}], { success: 1 }),
      () => read([{}, {}], { fail: 1 }),
      () => read([{}, {}], { all: false }),
      () => read([{}, { success: false }], { all: true }),
      () => read([{}, { success: false }], { success: 2, fail: 0 }),
    ];
    for (const each of unfit) expect(each).toThrowError(expect.objectContaining({ code: 'PEER_ANSWER' }));
  });

  it.each(['', '{}', '{}\n', '[]', '{"count":"2"', 'ok', '<html><body>ok</body></html>'])(
    'is no success: %j',
    (body) => {
      expect(() => yacy.pushResults(answerOf(body), two)).toThrowError(
        expect.objectContaining({ code: 'PEER_ANSWER' }),
      );
    },
  );

  it('that broke off is no success, wherever it did', () => {
    const whole = answer([{}, {}]).body;
    for (let end = 0; end < whole.length - 1; end += 1) {
      expect(() => yacy.pushResults(answerOf(whole.subarray(0, end)), two)).toThrowError();
    }
  });

  it('to a push of nothing is a success of nothing', () => {
    expect(yacy.pushResults(answer([]), [])).toEqual([]);
  });
});
