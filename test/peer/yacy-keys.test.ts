import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Table } from '../../src/peer/table.js';
import { clientOf, HttpServer } from './servers.js';

/** As YaCy writes it: keys of 12 bytes as they are, all else escaped. */
function tableWith(keys: readonly string[]): string {
  const rows = keys.map((key, n) => {
    const padded = key + '\0'.repeat(12 - Buffer.byteLength(key));
    return `<row count="${n}" pk="${padded}">\n<cell col="a">&lt;row count=&quot;${n}</cell>\n</row>\n`;
  });
  return `<tables>\n\n<table name="t">\n${rows.join('')}</table>\n\n</tables>`;
}

async function read(answer: string, cut = answer.length): Promise<Table | undefined> {
  const bytes = Buffer.from(answer);
  const server = await HttpServer.start((_, response) => {
    response.setHeader('content-type', 'text/xml');
    response.write(bytes.subarray(0, cut), () => setImmediate(() => response.end(bytes.subarray(cut))));
  });
  return await clientOf(server.url, { dialect: 'yacy' }).tables.read({ table: 't' });
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
    const keys = ['"', 'a"<&>b', 'plain'];
    const answer = tableWith(keys);
    await fc.assert(
      fc.asyncProperty(fc.nat(answer.length), async (cut) => {
        expect((await read(answer, cut))?.rows.map(({ pk }) => pk)).toEqual(keys);
      }),
      { numRuns: 40 },
    );
  });

  it('is read as well where keys are escaped', async () => {
    const answer = tableWith(['k']).replace('pk="k', 'pk="a&quot;&lt;');
    expect((await read(answer))?.rows.map(({ pk }) => pk)).toEqual(['a"<']);
    const unpadded = tableWith(['k']).replace(/pk="[^"]*"/, 'pk="a&amp;b"');
    expect((await read(unpadded))?.rows.map(({ pk }) => pk)).toEqual(['a&b']);
  });
});
