import { parse as parseCsv } from 'csv-parse/sync';
import fc from 'fast-check';
import { Parser } from 'htmlparser2';
import { describe, expect, it } from 'vitest';
import {
  EDITABLE_FORMATS,
  type EditableFormat,
  type TableFormat,
} from '../../src/config/mirror-schema.js';
import {
  namesColumnsWithoutRows,
  readTable,
  writeTable,
} from '../../src/mirror/formats/formats.js';
import type { TableRow } from '../../src/peer/table.js';
import { row } from '../support/fake-peer.js';
import {
  anyName,
  anyTable,
  groups,
  plain,
  type SomeTable,
  textOf,
  wellFormed,
} from './any-table.js';

const LARGE = 'a "b", <c> & d\r\n🎉'.repeat(2 ** 16);

function written(format: TableFormat, table: SomeTable, options: object = {}, name = 'T') {
  return textOf(
    writeTable(format, { name, columns: table.columns, ...options }, groups(table.rows)),
  );
}

async function readBack(format: EditableFormat, text: string): Promise<SomeTable> {
  const result = await readTable(format, Buffer.from(text));
  if ('fault' in result) throw new Error(`${JSON.stringify(result.fault)} in ${text}`);
  return result.table;
}

const named = anyTable.filter(({ columns }) => !columns.includes(''));

describe.each(EDITABLE_FORMATS)('a table written as %s', (format) => {
  it('is read back as it was, with any names and cells', async () => {
    await fc.assert(
      fc.asyncProperty(named, async (table) => {
        // An empty NDJSON file is refused.
        fc.pre(format !== 'ndjson' || table.rows.length > 0);
        const back = await readBack(format, await written(format, table));
        expect(plain({ columns: table.columns, rows: back.rows })).toEqual(plain(table));
        if (namesColumnsWithoutRows(format) || table.rows.length > 0)
          expect(back.columns).toEqual(table.columns);
      }),
      { numRuns: 300 },
    );
  });

  it('is read back with a cell of 1 MB', async () => {
    const table = { columns: ['a'], rows: [row('k', { a: LARGE })] };
    const [[, a] = []] = plain(await readBack(format, await written(format, table)));
    // A difference of 1 MB would take minutes to be shown.
    expect(a === LARGE).toBe(true);
  });

  it('is read with the line of each row', async () => {
    const table = {
      columns: ['a'],
      rows: [row('1', { a: 'x\ny\nz' }), row('2', { a: '' }), row('3', {})],
    };
    const result = await readTable(format, Buffer.from(await written(format, table)));
    const lines = 'table' in result ? result.table.rows.map(({ line }) => line) : [];
    expect(lines).toEqual({ csv: [2, 5, 6], json: [2, 3, 4], ndjson: [1, 2, 3] }[format]);
  });
});

describe('CSV', () => {
  it('is read by others as it was written', async () => {
    await fc.assert(
      fc.asyncProperty(anyTable, async (table) => {
        // That reader takes what ends a line from its options.
        const text = await written('csv', table, { newline: 'crlf' });
        const [header = [], ...records] = parseCsv(text, { record_delimiter: '\r\n' });
        expect(records).toEqual(plain(table));
        expect(header.map((name) => name.replace(/^(pk_*)_$/, '$1'))).toEqual([
          'pk',
          ...table.columns,
        ]);
      }),
      { numRuns: 300 },
    );
  });

  it('is read as another reader reads it, or refused', async () => {
    const token = fc.constantFrom('"', '""', ',', '\n', '\r\n', 'a', 'é', ' ', '"x\r\ny"', '"x"');
    await fc.assert(
      fc.asyncProperty(fc.array(token, { maxLength: 12 }), async (tokens) => {
        const text = `pk,a\n${tokens.join('')}`;
        const result = await readTable('csv', Buffer.from(text));
        if ('fault' in result) return;
        const { columns, rows } = result.table;
        const others = parseCsv(text, {
          record_delimiter: ['\r\n', '\n'],
          skip_empty_lines: true,
          relax_column_count: true,
        });
        expect([['pk', 'a'], ...plain({ columns, rows })]).toEqual(others);
      }),
      { numRuns: 500 },
    );
  });

  it('has a header, LF or CRLF line ends, and quotes only if needed', async () => {
    const rows = [row('1', { a: 'x', b: 'y, z' }), row('2', { a: ' q"', b: '\r' }), row('3', {})];
    const table = { columns: ['a', 'b'], rows };
    expect(await written('csv', table)).toBe('pk,a,b\n1,x,"y, z"\n2," q""","\r"\n3,,\n');
    expect(await written('csv', table, { newline: 'crlf' })).toMatch(
      /^pk,a,b\r\n1,.*\r\n3,,\r\n$/s,
    );
    expect(await written('csv', { columns: [], rows: [] })).toBe('pk\n');
  });

  it('keeps cells that look like formulas unless they are neutralised', async () => {
    const cells = ['=1+1', '+1', '-1', '@x', '\tx', '\rx', "'=1", 'a=1', '', "it's"];
    const safe = ["'=1+1", "'+1", "'-1", "'@x", "'\tx", "'\rx", "''=1", 'a=1', '', "it's"];
    const table = { columns: ['a'], rows: cells.map((a, i) => row(`${i}`, { a })) };
    const inCsv = async (neutralise: boolean): Promise<(string | undefined)[]> => {
      const text = await written('csv', table, { neutralise });
      return parseCsv(text, { from: 2, record_delimiter: '\n' }).map(([, a]) => a);
    };
    expect([await inCsv(false), await inCsv(true)]).toEqual([cells, safe]);
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
        const names = table.columns.map((column) =>
          /^pk_*$/.test(column) ? `${column}_` : column,
        );
        expect(values.map((value) => ['pk', ...names].map((name) => value[name]))).toEqual(
          plain(table),
        );
        const lines = (await written('ndjson', table)).split('\n').slice(0, -1);
        expect(lines.map((line) => JSON.parse(line))).toEqual(values);
      }),
    );
  });
});

describe('XML', () => {
  it('is well-formed XML 1.0 and read by others as it was written, with any names and cells', async () => {
    await fc.assert(
      fc.asyncProperty(anyTable, anyName, async (table, name) => {
        const text = await written('xml', table, {}, name);
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
          cell = {
            column: attribute(attributes, 'col'),
            encoded: 'encoding' in attributes,
            text: '',
          };
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
  parser.end(
    text.replace(/\r\n?/g, '\n').replace(/<[^>]*>/g, (tag) => tag.replace(/[\t\n]/g, ' ')),
  );
  return { name, rows };
}

async function faultOf(format: EditableFormat, content: string | Buffer): Promise<string> {
  const result = await readTable(format, Buffer.from(content));
  return 'fault' in result
    ? `${result.fault.line}:${result.fault.column} ${result.fault.what}`
    : 'none';
}

async function tableOf(format: EditableFormat, content: string) {
  const result = await readTable(format, Buffer.from(content));
  if ('fault' in result) throw new Error(result.fault.what);
  const { columns, rows } = result.table;
  return {
    columns,
    rows: rows.map(({ pk, cells, line }) => [line, pk, Object.fromEntries(cells)]),
  };
}

describe('the first fault of an edited file is reported with its position', () => {
  it.each([
    ['csv', 'a,b\n1,2\n', '1:1 a header without the key column "pk"'],
    ['csv', 'pk;a\n1;2\n', '1:1 a header without the key column "pk": fields are separated by ";"'],
    ['csv', 'pk,a,a\n', '1:6 the column "a" for the second time'],
    ['csv', 'pk,a,\n', '1:6 a column without a name'],
    ['csv', 'pk,a\n1,x,y\n', '2:5 3 fields where the header has 2'],
    ['csv', 'pk,a\n1,x\n1,y\n', '3:1 the key "1" for the second time: it is in line 2 already'],
    [
      'csv',
      'a,pk\n\nx,k\n"y\n",k\n',
      '5:3 the key "k" for the second time: it is in line 3 already',
    ],
    ['csv', 'pk,a\n1,"x\n2,y\n', '2:3 a quote that is never closed'],
    ['csv', 'pk,a\n1,x"y"\n', '2:4 a quote in a field without quotes around it'],
    ['csv', 'pk,a\n1,"x" \n', '2:6 something after the closing quote'],
    ['csv', 'pk,a\r1,x\r', '1:5 a line that ends with CR alone'],
    ['csv', Buffer.from('pk,a\n1,x\n2,\xe4\n', 'latin1'), '3:3 no UTF-8'],
    ['csv', Buffer.concat([Buffer.from('pk\n🎉,'), Buffer.from([0xe4, 10])]), '2:3 no UTF-8'],
    ['csv', Buffer.from('\ufeffpk,a\r\n', 'utf16le'), '1:1 UTF-16'],
    ['json', '[\n{"pk":"1","a":["x"]}]', '2:15 a list or an object'],
    ['json', '{"pk":"1"}', '1:1 no list'],
    ['json', '[\n{"pk":"1"},\n"x"]', '3:1 no row'],
    ['json', '[\n{"pk":"1","a":{}}]', '2:15 a list or an object'],
    ['json', '[\n{"pk":"1","a":"x","a":"y"}]', '2:19 the key "a" for the second time'],
    ['json', '[{"pk":"1"}]\n[]', '2:1 something after the end'],
    ['json', '[{"":"1"}]', '1:3 a column without a name'],
    ['ndjson', '{"pk":"1"}\n\n{"pk":"2"} {"pk":"3"}\n', '3:12 something after the end'],
    ['ndjson', '{"pk":"1"}\n{"pk":\n"2"}\n', '2:7 the end of the file'],
    ['ndjson', '{"pk":"1"}\n{"pk":"2","a":tru}\n', '2:15 no value'],
  ] as const)('%s %j', async (format, content, start) => {
    expect((await faultOf(format, content)).slice(0, start.length)).toBe(start);
  });
});

describe('an edited file', () => {
  it('may begin with a byte order mark, end its lines with LF, and have empty lines', async () => {
    const text = '\ufeffpk,a\n\n1,x\r\n\n2,"y ""z"""';
    expect(await tableOf('csv', text)).toEqual({
      columns: ['a'],
      rows: [
        [3, '1', { a: 'x' }],
        [5, '2', { a: 'y "z"' }],
      ],
    });
    expect((await tableOf('json', '\ufeff[]')).rows).toEqual([]);
    expect((await tableOf('ndjson', '\ufeff{"pk":"1"}\r\n  \r\n{"pk":"2"}')).rows).toHaveLength(2);
  });

  it('may have rows without a key: they are new', async () => {
    const rows = [
      [2, '', { a: 'x' }],
      [3, '', { a: 'x' }],
    ];
    expect((await tableOf('csv', 'pk,a\n,x\n,x\n')).rows).toEqual(rows);
    expect((await tableOf('json', '[\n{"a":"x"},\n{"pk":null,"a":"x"}\n]')).rows).toEqual(rows);
  });

  it('may have its columns in another order', async () => {
    const table = { columns: ['b', 'a'], rows: [[2, '1', { b: 'y', a: 'x' }]] };
    expect(await tableOf('csv', 'b,pk,a\ny,1,x\n')).toEqual(table);
    expect(await tableOf('json', '[\n{"b":"y","pk":"1","a":"x"}]')).toEqual(table);
  });

  it('keeps numbers as they are written, and takes true, false and null', async () => {
    const { rows } = await tableOf(
      'json',
      '[{"pk":7,"a":1.50,"b":12345678901234567890,"c":true,"d":null}]',
    );
    expect(rows).toEqual([[1, '7', { a: '1.50', b: '12345678901234567890', c: 'true', d: '' }]]);
  });

  it('has no cell for a column that a JSON row leaves out', async () => {
    const { columns, rows } = await tableOf('ndjson', '{"pk":"1","a":"x"}\n{"pk":"2","b":""}\n');
    expect(columns).toEqual(['a', 'b']);
    expect(rows).toEqual([
      [1, '1', { a: 'x' }],
      [2, '2', { b: '' }],
    ]);
  });

  it('with 200,000 rows does not block the event loop', async () => {
    const text = `pk,a,b\n${Array.from({ length: 200_000 }, (_, i) => `key${i},"a ${i}",b`).join('\n')}`;
    let turns = 0;
    let reading = true;
    const count = () => {
      turns += 1;
      if (reading) setImmediate(count);
    };
    setImmediate(count);
    const { rows } = await tableOf('csv', text);
    reading = false;
    expect(rows).toHaveLength(200_000);
    expect(turns).toBeGreaterThan(10);
  });
});
