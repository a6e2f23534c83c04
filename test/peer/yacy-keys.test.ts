import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DialectName } from '../../src/peer/dialect.js';
import { readTable, type Table } from '../../src/peer/table.js';
import { clientOf, HttpServer } from './servers.js';

/** As YaCy writes it: keys of 12 bytes as they are, all else escaped. */
function tableWith(keys: readonly string[]): string {
  const rows = keys.map((key, n) => {
    const padded = key + '\0'.repeat(12 - Buffer.byteLength(key));
    return `<row count="${n}" pk="${padded}">\n<cell col="a">&lt;row count=&quot;${n}</cell>\n</row>\n`;
  });
  return `<tables>\n\n<table name="t">\n${rows.join('')}</table>\n\n</tables>`;
}

async function read(answer: string, dialect: DialectName = 'yacy'): Promise<Table | undefined> {
  const server = await HttpServer.start((_, response) => {
    response.setHeader('content-type', 'text/xml');
    response.end(answer);
  });
  return await clientOf(server.url, { dialect }).tables.read({ table: 't' });
}

/** The keys of a table of YaCy that comes cut at these places. */
async function keysOf(text: string, cuts: readonly number[]): Promise<string[]> {
  const bytes = Buffer.from(text);
  async function* chunks(): AsyncGenerator<Buffer> {
    const ends = [...cuts, bytes.length].sort((a, b) => a - b);
    for (const [n, end] of ends.entries()) yield bytes.subarray(ends[n - 1] ?? 0, end);
  }
  const head = { url: 'http://peer.example.org/Tables_p.xml', status: 200, headers: {}, at: 0 };
  const answer = { ...head, peerAt: undefined, tookMs: 1, delivered: 'yes', chunks: chunks() } as const;
  const keys: string[] = [];
  for await (const group of (await readTable(answer, 't', 12))?.rows ?? [])
    keys.push(...group.map(({ pk }) => pk));
  return keys;
}

describe('a table whose keys are written as they are', () => {
  it.each([
    ['quotes', 'a"b'],
    ['angle brackets', '<a><b>'],
    ['what looks like a reference', '&amp;&lt;'],
    ['what looks like the end of a row', 'x">'],
    ['12 bytes of them', `"<&>"'"<&>"'`],
    ['control characters', '\x01\x1f\n\t'],
    ['letters outside ASCII', 'é"日本'],
  ])('is read: %s', async (_, key) => {
    expect((await read(tableWith(['one', key, 'two'])))?.rows.map(({ pk }) => pk)).toEqual([
      'one',
      key,
      'two',
    ]);
  });

  it('is read wherever the answer is cut', async () => {
    const keys = ['"', 'a"<&>b', 'plain', '<row '];
    const whole = tableWith(keys);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(whole.length)), async (cuts) => {
        expect(await keysOf(whole, cuts)).toEqual(keys);
      }),
    );
  });

  it('is read as well where keys are escaped', async () => {
    const answer = tableWith(['k']).replace('pk="k', 'pk="a&quot;&lt;');
    expect((await read(answer))?.rows.map(({ pk }) => pk)).toEqual(['a"<']);
    const elsewhere = tableWith(['k']).replace(/pk="[^"]*"/, 'pk="abcdefg&amp;"');
    expect((await read(elsewhere, 'standard'))?.rows.map(({ pk }) => pk)).toEqual(['abcdefg&']);
  });
});
