import { parse as parseCsv } from 'csv-parse/sync';
import fc from 'fast-check';
import { Parser } from 'htmlparser2';
import { describe, expect, it } from 'vitest';
import { readTable } from '../../src/mirror/formats/read.js';
import { type TableFormat, writeTable } from '../../src/mirror/formats/write.js';
import type { TableRow } from '../../src/peer/table.js';
import { anyName, anyTable, groups, plain, type SomeTable, textOf, wellFormed } from './tables.js';

const LARGE = 'a "b", <c> & d\r\n🎉'.repeat(2 ** 18);

function written(format: TableFormat, table: SomeTable, options = { neutralise: false }, name = 'T') {
  return textOf(writeTable(format, { name, columns: table.columns, ...options }, groups(table.rows)));
}

async function readBack(format: 'csv' | 'json' | 'ndjson', text: string): Promise<SomeTable> {
  const result = await readTable(format, Buffer.from(text));
  if ('fault' in result) throw new Error(`${JSON.stringify(result.fault)} in ${text}`);
  return result.table;
}

function row(pk: string, cells: Record<string, string>): TableRow {
  return { pk, cells: new Map(Object.entries(cells)) };
}

const named = anyTable.filter(({ columns }) => !columns.includes(''));

describe.each(['csv', 'json', 'ndjson'] as const)('a table written as %s', (format) => {
  it('is read back as it was, whatever stands in its names and cells', async () => {
    await fc.assert(
      fc.asyncProperty(named, async (table) => {
        const back = await readBack(format, await written(format, table));
        expect(plain({ columns: table.columns, rows: back.rows })).toEqual(plain(table));
        if (format === 'csv' || table.rows.length > 0) expect(back.columns).toEqual(table.columns);
      }),
      { numRuns: 300 },
    );
  });

  it('is read back with a cell of 5 MB', async () => {
    const table = { columns: ['a'], rows: [row('k', { a: LARGE })] };
    expect(Buffer.byteLength(LARGE)).toBeGreaterThan(5_000_000);
    const [[pk, a] = []] = plain(await readBack(format, await written(format, table)));
    // A difference of 5 MB would take minutes to be shown.
    expect([pk, a === LARGE]).toEqual(['k', true]);
  });

  it('tells of each row in which line it begins', async () => {
    const table = { columns: ['a'], rows: [row('1', { a: 'x\ny\nz' }), row('2', { a: '' }), row('3', {})] };
    const result = await readTable(format, Buffer.from(await written(format, table)));
    const lines = 'table' in result ? result.table.rows.map(({ line }) => line) : [];
    expect(lines).toEqual({ csv: [2, 5, 6], json: [2, 3, 4], ndjson: [1, 2, 3] }[format]);
  });

  it('says the same whatever the groups in which its rows come', async () => {
    const rows = Array.from({ length: 5000 }, (_, i) => row(`k${i}`, { a: `${i}` }));
    const inGroups = (size: number) =>
      textOf(writeTable(format, { name: 'T', columns: ['a'] }, groups(rows, size)));
    expect(await inGroups(1)).toBe(await inGroups(5000));
  });
});

describe('CSV', () => {
  it('is read by others as it was written', async () => {
    await fc.assert(
      fc.asyncProperty(anyTable, async (table) => {
        const text = await written('csv', table);
        const [header = [], ...records] = parseCsv(text, { record_delimiter: '\r\n' });
        expect(records).toEqual(plain(table));
        expect(header.map((name) => name.replace(/^(pk_*)_$/, '$1'))).toEqual(['pk', ...table.columns]);
      }),
      { numRuns: 300 },
    );
  });

  it('has a header, ends every line with CRLF and puts quotes only where they are needed', async () => {
    const rows = [row('1', { a: 'x', b: 'y, z' }), row('2', { a: ' q"', b: '\r' }), row('3', {})];
    expect(await written('csv', { columns: ['a', 'b'], rows })).toBe(
      'pk,a,b\r\n1,x,"y, z"\r\n2," q""","\r"\r\n3,,\r\n',
    );
    expect(await written('csv', { columns: [], rows: [] })).toBe('pk\r\n');
  });

  it('leaves what looks like a formula alone, unless it is to be neutralised', async () => {
    const cells = ['=1+1', '+1', '-1', '@x', '\tx', '\rx', "'=1", 'a=1', '', "it's"];
    const table = { columns: ['a'], rows: cells.map((a, i) => row(`${i}`, { a })) };
    const inCsv = (text: string): (string | undefined)[] =>
      parseCsv(text, { from: 2, record_delimiter: '\r\n' }).map(([, a]) => a);
    expect(inCsv(await written('csv', table))).toEqual(cells);
    expect(inCsv(await written('csv', table, { neutralise: true }))).toEqual([
      "'=1+1",
      "'+1",
      "'-1",
      "'@x",
      "'\tx",
      "'\rx",
      "''=1",
      'a=1',
      '',
      "it's",
    ]);
  });
});

describe('JSON', () => {
  it('is read by others as it was written: a list, one row a line, names in the order of the columns', async () => {
    const rows = [row('k1', { b: 'x', '7': 'y' }), row('k2', { b: '"\n' })];
    expect(await written('json', { columns: ['b', '7', 'pk', '__proto__'], rows })).toBe(
      '[\n{"pk":"k1","b":"x","7":"y","pk_":"","__proto__":""},\n{"pk":"k2","b":"\\"\\n","7":"","pk_":"","__proto__":""}\n]\n',
    );
    expect(await written('json', { columns: ['a'], rows: [] })).toBe('[]\n');
    await fc.assert(
      fc.asyncProperty(anyTable, async (table) => {
        const values = JSON.parse(await written('json', table)) as Record<string, string>[];
        const names = table.columns.map((column) => (/^pk_*$/.test(column) ? `${column}_` : column));
        expect(values.map((value) => ['pk', ...names].map((name) => value[name]))).toEqual(plain(table));
        const lines = (await written('ndjson', table)).split('\n').slice(0, -1);
        expect(lines.map((line) => JSON.parse(line))).toEqual(values);
      }),
    );
  });
});

describe('XML', () => {
  it('is well-formed XML 1.0 and read by others as it was written, whatever stands in names and cells', async () => {
    await fc.assert(
      fc.asyncProperty(anyTable, anyName, async (table, name) => {
        const text = await written('xml', table, { neutralise: false }, name);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: what XML cannot hold must not be there.
        expect(text).not.toMatch(/[\u0000-\u0008\u000b-\u001f\ufffe\uffff]/);
        const read = readXml(text);
        expect(read.name).toBe(wellFormed(name));
        expect(plain({ columns: table.columns, rows: read.rows })).toEqual(plain(table));
        for (const { cells } of read.rows) expect([...cells.keys()]).toEqual(table.columns);
      }),
      { numRuns: 300 },
    );
  });

  it('reads well', async () => {
    const rows = [row('k<1>', { 'a"b': 'x & y\r\n', c: '\0' })];
    expect(await written('xml', { columns: ['a"b', 'c'], rows }, { neutralise: false }, 'T')).toBe(
      '<?xml version="1.0" encoding="UTF-8"?>\n<table name="T">\n<row pk="k&lt;1&gt;">\n' +
        '  <cell col="a&quot;b">x &amp; y&#13;\n</cell>\n  <cell col="c" encoding="base64">AA==</cell>\n</row>\n</table>\n',
    );
  });

  it('is read back with a cell of 5 MB', async () => {
    const table = { columns: ['a'], rows: [row('k', { a: LARGE })] };
    const [[pk, a] = []] = plain({ ...table, rows: readXml(await written('xml', table)).rows });
    expect([pk, a === LARGE]).toEqual(['k', true]);
  });
});

/** Reads as an XML reader does, line ends and all, and takes the base64 apart. */
function readXml(text: string): { name: string; rows: TableRow[] } {
  let name = '';
  const rows: { pk: string; cells: Map<string, string> }[] = [];
  let cell: { column: string; encoded: boolean; text: string } | undefined;
  const attribute = (attributes: Record<string, string>, called: string) =>
    attributes[called] ?? Buffer.from(attributes[`${called}-base64`] ?? '', 'base64').toString();
  const parser = new Parser(
    {
      onopentag(tag, attributes) {
        if (tag === 'table') name = attribute(attributes, 'name');
        if (tag === 'row') rows.push({ pk: attribute(attributes, 'pk'), cells: new Map() });
        if (tag === 'cell') {
          cell = { column: attribute(attributes, 'col'), encoded: 'encoding' in attributes, text: '' };
        }
      },
      ontext(part) {
        if (cell) cell.text += part;
      },
      onclosetag(tag) {
        if (tag !== 'cell' || cell === undefined) return;
        const { column, encoded, text } = cell;
        rows.at(-1)?.cells.set(column, encoded ? Buffer.from(text, 'base64').toString() : text);
        cell = undefined;
      },
    },
    { xmlMode: true },
  );
  // The reader used here leaves to us what XML asks of line ends and of blanks in attributes.
  parser.end(text.replace(/\r\n?/g, '\n').replace(/<[^>]*>/g, (tag) => tag.replace(/[\t\n]/g, ' ')));
  return { name, rows };
}
