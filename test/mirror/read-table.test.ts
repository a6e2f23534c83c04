import { describe, expect, it } from 'vitest';
import { type EditableFormat, readTable } from '../../src/mirror/formats/read.js';

async function faultOf(format: EditableFormat, content: string | Buffer): Promise<string> {
  const result = await readTable(format, Buffer.from(content));
  return 'fault' in result ? `${result.fault.line}:${result.fault.column} ${result.fault.what}` : 'none';
}

async function tableOf(format: EditableFormat, content: string) {
  const result = await readTable(format, Buffer.from(content));
  if ('fault' in result) throw new Error(result.fault.what);
  const { columns, rows } = result.table;
  return { columns, rows: rows.map(({ pk, cells, line }) => [line, pk, Object.fromEntries(cells)]) };
}

describe('an edited file with a fault is told where and what', () => {
  it.each([
    ['csv', '', '1:1 nothing: the file is empty'],
    ['csv', '\r\n\n', '1:1 nothing: the file is empty'],
    ['csv', 'a,b\n1,2\n', '1:1 a header without the key column "pk"'],
    ['csv', 'pk;a\n1;2\n', '1:1 a header without the key column "pk": fields are separated by ";"'],
    ['csv', 'pk,a,a\n', '1:6 the column "a" for the second time'],
    ['csv', 'pk,pk\n', '1:4 the column "pk" for the second time'],
    ['csv', 'pk,a,\n', '1:6 a column without a name'],
    ['csv', 'pk,a\n1,x,y\n', '2:5 3 fields where the header has 2'],
    ['csv', 'pk,a\n1,"x\ny",z\n', '3:4 3 fields where the header has 2'],
    ['csv', 'pk,a,b\n1,x\n', '2:4 2 fields where the header has 3'],
    ['csv', 'pk,a\n1,x\n1,y\n', '3:1 the key "1" for the second time: it stands in line 2 already'],
    ['csv', 'a,pk\nx,k\n\n"y\n",k\n', '5:3 the key "k" for the second time: it stands in line 2 already'],
    ['csv', 'pk,a\n1,"x\n2,y\n', '2:3 a quote that is never closed'],
    ['csv', 'pk,a\n1,x"y"\n', '2:4 a quote in a field without quotes around it'],
    ['csv', 'pk,a\n1,"x" \n', '2:6 something after the closing quote'],
    ['csv', 'pk,a\r1,x\r', '1:5 a line that ends with CR alone'],
    ['csv', Buffer.from('pk,a\n1,x\n2,\xe4\n', 'latin1'), '3:3 no UTF-8'],
    ['csv', Buffer.concat([Buffer.from('pk\n🎉,'), Buffer.from([0xe4, 10])]), '2:3 no UTF-8'],
    ['csv', Buffer.from('\ufeffpk,a\r\n', 'utf16le'), '1:1 UTF-16'],
    ['json', '', '1:1 nothing: the file is empty'],
    ['json', '{"pk":"1"}', '1:1 no list'],
    ['json', '[\n{"pk":"1"},\n"x"]', '3:1 no row'],
    ['json', '[\n{"pk":"1","a":{}}]', '2:15 a list or an object'],
    ['json', '[\n{"pk":"1","a":["x"]}]', '2:15 a list or an object'],
    ['json', '[\n{"pk":"1","a":"x","a":"y"}]', '2:19 the key "a" for the second time'],
    [
      'json',
      '[\n{"pk":"1"},\n{"a":"x","pk":"1"}]',
      '3:15 the key "1" for the second time: it stands in line 2',
    ],
    ['json', '[\n{"pk":"1"}\n{"pk":"2"}]', '3:1 neither "," nor "]"'],
    ['json', '[{"pk":"1"},]', '1:12 a comma before "]"'],
    ['json', '[{"pk":"1"}]\n[]', '2:1 something after the end'],
    ['json', '[{"pk":"1"', '1:11 the end of the file within the object'],
    ['json', '[{"":"1"}]', '1:3 a column without a name'],
    ['ndjson', '{"pk":"1"}\n\n{"pk":"2"} {"pk":"3"}\n', '3:12 something after the end'],
    ['ndjson', '{"pk":"1"}\n{"pk":\n"2"}\n', '2:7 the end of the file'],
    ['ndjson', '{"pk":"1"}\n[]\n', '2:1 no row'],
    ['ndjson', '{"pk":"1"}\n{"pk":"2","a":tru}\n', '2:15 no value'],
    ['ndjson', '{"pk":"1"}\n{"pk":1}\n', '2:7 the key "1" for the second time'],
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
    const { rows } = await tableOf('json', '[{"pk":7,"a":1.50,"b":12345678901234567890,"c":true,"d":null}]');
    expect(rows).toEqual([[1, '7', { a: '1.50', b: '12345678901234567890', c: 'true', d: '' }]]);
  });

  it('does not name a column in a row where JSON leaves it out', async () => {
    const { columns, rows } = await tableOf('ndjson', '{"pk":"1","a":"x"}\n{"pk":"2","b":""}\n');
    expect(columns).toEqual(['a', 'b']);
    expect(rows).toEqual([
      [1, '1', { a: 'x' }],
      [2, '2', { b: '' }],
    ]);
  });

  it('of 200,000 rows does not hold up the event loop', async () => {
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
