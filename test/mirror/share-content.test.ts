import { describe, expect, it } from 'vitest';
import { checkContent, type Expected, HEAD_BYTES, withHead } from '../../src/mirror/share.js';

const NOTHING_KNOWN: Expected = { data: 'prices.bin', before: undefined, accepted: [] };
const PAGE = '<!DOCTYPE html><html><body>Please log in</body></html>';

function impression(content: string, said: string | undefined, expected: Partial<Expected> = {}) {
  return checkContent(Buffer.from(content), said, { ...NOTHING_KNOWN, ...expected });
}

const was = (type: string, bytes = 4) => ({ before: { type, bytes } });

describe('what an object seems to be', () => {
  it('is its media type where it is what it was, and the more exact one where the peer says none', () => {
    expect(impression('a,b', 'text/csv', was('text/csv'))).toEqual({ type: 'text/csv' });
    expect(impression('{"a":1}', undefined, { data: 'prices.json' })).toEqual({ type: 'application/json' });
    expect(impression('{"a":1}', 'text/plain')).toEqual({ type: 'application/json' });
  });

  it.each([
    ['nothing at all', '', 'text/plain', was('text/plain'), { alarm: 'SHARE_EMPTY' }],
    ['nothing at all, at the first time', '', 'text/plain', {}, { alarm: 'SHARE_EMPTY' }],
    [
      'a page, whatever type it is said to have',
      PAGE,
      'text/plain',
      was('text/plain'),
      { alarm: 'SHARE_HTML' },
    ],
    ['a page, at the first time', PAGE, undefined, {}, { alarm: 'SHARE_HTML' }],
    [
      'a short text about an error, at the first time',
      'Internal error: no table',
      'text/plain',
      {},
      { alarm: 'SHARE_TYPE', detail: 'nothing before, text/plain now' },
    ],
    [
      'JSON about an error under the name of a table, at the first time',
      '{"error":"no such object"}',
      'application/json',
      { data: 'prices.csv' },
      { alarm: 'SHARE_TYPE', detail: 'nothing before, application/json now' },
    ],
    [
      'a text where there was something else',
      'Internal error: no table',
      'text/plain',
      was('image/png'),
      { alarm: 'SHARE_TYPE', detail: 'image/png before, text/plain now' },
    ],
    [
      'JSON where there was something else',
      '{"a":1}',
      'application/json',
      was('text/csv'),
      { alarm: 'SHARE_TYPE', detail: 'text/csv before, application/json now' },
    ],
    [
      'XML where there was something else',
      '<?xml version="1.0"?><a/>',
      undefined,
      was('image/png'),
      { alarm: 'SHARE_TYPE', detail: 'image/png before, application/xml now' },
    ],
  ])('is bad: %s, until a person accepts it', (_, content, said, expected, alarm) => {
    expect(impression(content, said, expected)).toMatchObject(alarm);
    expect(impression(content, said, { ...expected, accepted: [alarm.alarm] })).toHaveProperty('type');
  });

  it.each([
    ['nothing, where nothing was', '', 'text/plain', was('text/plain', 0)],
    ['a page where a page was', PAGE, 'text/html', was('text/html')],
    ['a page under the name of one', PAGE, 'text/html', { data: 'index.html' }],
    ['a text about errors where texts are', 'error: none', 'text/plain', was('text/plain')],
    ['something of a kind that cannot be told', '\x89PNG error', 'image/png', was('text/plain')],
    ['a text about errors under the name of one', 'error: none', 'text/plain', { data: 'boot.log' }],
    ['JSON, at the first time', '{"a":1}', 'application/json', {}],
    ['JSON where nothing was', '{"a":1}', 'application/json', was('text/plain', 0)],
  ])('is good: %s', (_, content, said, expected) => {
    expect(impression(content, said, expected)).toHaveProperty('type');
  });

  it('of nothing leaves what the object was', () => {
    const expected = { ...was('text/csv'), accepted: ['SHARE_EMPTY'] };
    expect(impression('', 'text/html', { ...expected, accepted: ['SHARE_EMPTY', 'SHARE_HTML'] })).toEqual({
      type: 'text/csv',
    });
    expect(impression('', undefined, expected)).toEqual({ type: 'text/csv' });
  });
});

describe('the head of a stream', () => {
  async function* chunksOf(...sizes: number[]): AsyncGenerator<Uint8Array> {
    let next = 0;
    for (const size of sizes) {
      yield Buffer.alloc(size, next);
      next += 1;
    }
  }

  async function wholeOf(all: AsyncIterable<Uint8Array>): Promise<Buffer> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of all) chunks.push(chunk);
    return Buffer.concat(chunks);
  }

  it.each([
    { sizes: [] },
    { sizes: [1, 2] },
    { sizes: [HEAD_BYTES] },
    { sizes: [1, HEAD_BYTES - 1, 1] },
    { sizes: [3, 2 * HEAD_BYTES, 5, 7] },
  ])('is its first bytes, and the stream still comes whole ($sizes)', async ({ sizes }) => {
    const { head, all } = await withHead(chunksOf(...sizes));
    const whole = await wholeOf(chunksOf(...sizes));
    expect(Buffer.from(head).equals(whole.subarray(0, HEAD_BYTES))).toBe(true);
    expect((await wholeOf(all)).equals(whole)).toBe(true);
  });

  it('reads no further than it has to, and ends the stream where somebody stops reading', async () => {
    let given = 0;
    let isEnded = false;
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) {
          given += 1;
          yield Buffer.alloc(HEAD_BYTES);
        }
      } finally {
        isEnded = true;
      }
    }
    const { all } = await withHead(endless());
    expect(given).toBe(1);
    for await (const _ of all) if (given === 3) break;
    expect([given, isEnded]).toEqual([3, true]);
  });
});
