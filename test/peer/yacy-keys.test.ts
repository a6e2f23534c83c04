import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DialectName } from '../../src/peer/dialect.js';
import type { Table } from '../../src/peer/table.js';
import { KeyEscaper } from '../../src/peer/table-xml-keys.js';
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

function piecewise(text: string, cuts: readonly number[]): string {
  const escaper = new KeyEscaper();
  const ends = [...cuts, text.length].sort((a, b) => a - b);
  return ends.map((end, n) => escaper.take(text.slice(ends[n - 1] ?? 0, end))).join('') + escaper.end();
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

  it('is read wherever the answer is cut', () => {
    const whole = tableWith(['"', 'a"<&>b', 'plain', '<row ']);
    const escaped = piecewise(whole, []);
    expect(escaped).toContain('pk="a&#34;&#60;&#38;>b');
    fc.assert(
      fc.property(fc.array(fc.nat(whole.length)), (cuts) => {
        expect(piecewise(whole, cuts)).toBe(escaped);
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
