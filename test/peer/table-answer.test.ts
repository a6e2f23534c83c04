import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { StreamedAnswer } from '../../src/peer/answer.js';
import type { TableRow } from '../../src/peer/table.js';
import { readTable } from '../../src/peer/table.js';
import { realAnswer } from './answers.js';

interface Read {
  readonly name: string;
  readonly columns: readonly string[] | undefined;
  readonly rows: readonly (readonly [string, Readonly<Record<string, string>>])[];
}

function streamed(chunks: AsyncIterable<Buffer>, type: string): StreamedAnswer {
  const headers = type === '' ? {} : { 'content-type': type };
  return {
    ...{ url: 'http://peer.example.org/api/table_p.html', status: 200, headers, at: 1_000 },
    ...{ peerAt: undefined, tookMs: 1, delivered: 'yes', chunks },
  };
}

async function* cut(body: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < body.length; at += size) yield body.subarray(at, at + size);
}

function plain({ pk, cells }: TableRow): readonly [string, Record<string, string>] {
  return [pk, Object.fromEntries(cells)];
}

async function read(
  body: string | Buffer,
  { size = 65_536, asked = 'T', type = '' } = {},
): Promise<Read | undefined> {
  const table = await readTable(streamed(cut(Buffer.from(body as string), size), type), asked);
  if (table === undefined) return undefined;
  const rows: TableRow[] = [];
  for await (const group of table.rows) rows.push(...group);
  return { name: table.name, columns: table.columns, rows: rows.map(plain) };
}

async function refusalOf(body: string | Buffer, options?: Parameters<typeof read>[1]): Promise<string> {
  try {
    return `no error: ${JSON.stringify(await read(body, options))}`;
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return `${code} ${message}`;
  }
}

/** As the embedded peer writes a table. */
function jsonOf(rows: readonly TableRow[], columns: readonly string[]): string {
  const lines = rows.map(({ pk, cells }) => {
    const pairs = [...cells].map(([column, cell]) => `${JSON.stringify(column)}:${JSON.stringify(cell)}`);
    return `{"pk":${JSON.stringify(pk)},"cells":{${pairs.join(',')}}}`;
  });
  return `{"table":"T","columns":${JSON.stringify(columns)},"rows":[\n${lines.join(',\n')}\n]}\n`;
}

const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (c) => `&${{ '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot' }[c]};`);

function xmlOf(rows: readonly TableRow[]): string {
  const lines = rows.map(({ pk, cells }, n) => {
    const inside = [...cells].map(
      ([column, cell]) => `<cell col="${escaped(column)}">${escaped(cell)}</cell>\n`,
    );
    return `<row count="${n}" pk="${escaped(pk)}">\n${inside.join('')}</row>\n`;
  });
  return `<tables>\n\n<table name="T">\n${lines.join('')}</table>\n\n</tables>`;
}

const NAME = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
  .filter((name) => name.trim() !== '');
const KEY = NAME.filter((key) => !key.endsWith('\0'));
const CELL = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.constantFrom(
    '',
    '"',
    '\\',
    '\\"',
    '{[',
    ']}',
    '</cell>',
    '<b>&amp;',
    'a\0b',
    '\r\n',
    '🙂 שלום',
    "'",
    ',\n{"pk":',
  ),
);

/** Columns, and rows that have a cell in each. */
const TABLE = fc.uniqueArray(NAME, { maxLength: 4 }).chain((columns) =>
  fc.record({
    columns: fc.constant(columns),
    rows: fc.array(
      fc.record({
        pk: KEY,
        cells: fc
          .tuple(...columns.map(() => CELL))
          .map((cells) => new Map(columns.map((column, at) => [column, cells[at] ?? '']))),
      }),
      { maxLength: 6 },
    ),
  }),
);

describe('a table as it comes in', () => {
  it('is read from each form, wherever the answer is cut into chunks', async () => {
    await fc.assert(
      fc.asyncProperty(TABLE, fc.integer({ min: 1, max: 90 }), async ({ columns, rows }, size) => {
        const expected = { name: 'T', rows: rows.map(plain) };
        expect(await read(jsonOf(rows, columns), { size })).toEqual({ ...expected, columns });
        expect(await read(xmlOf(rows), { size })).toEqual({ ...expected, columns: undefined });
      }),
      { numRuns: 120 },
    );
  });

  it('throws for each form, wherever it is cut short', async () => {
    const rows = [
      {
        pk: 'k1',
        cells: new Map([
          ['a', 'x é'],
          ['b', 'y'],
        ]),
      },
      {
        pk: 'k2',
        cells: new Map([
          ['a', ''],
          ['b', '🙂'],
        ]),
      },
    ];
    for (const whole of [jsonOf(rows, ['a', 'b']).trim(), xmlOf(rows)]) {
      const bytes = Buffer.from(whole);
      for (let end = 0; end < bytes.length; end += 1) {
        expect(await refusalOf(bytes.subarray(0, end), { size: 7 })).toMatch(/^PEER_ANSWER /);
      }
    }
  });

  it('is given in groups of a bounded number of rows, as it comes in', async () => {
    const rows = Array.from({ length: 20_000 }, (_, n) => ({ pk: `k${n}`, cells: new Map([['a', 'x']]) }));
    const body = Buffer.from(jsonOf(rows, ['a']));
    let given = 0;
    async function* counted(): AsyncGenerator<Buffer> {
      for await (const chunk of cut(body, 4_096)) {
        given += chunk.length;
        yield chunk;
      }
    }
    const table = await readTable(streamed(counted(), 'application/json'), 'T');
    expect(given).toBe(4_096);
    const sizes: number[] = [];
    for await (const group of table?.rows ?? []) {
      if (sizes.length === 0) expect(given).toBeLessThan(100_000);
      sizes.push(group.length);
    }
    expect(Math.max(...sizes)).toBeLessThanOrEqual(500);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(20_000);
  });

  it('lets others have their turns, however much comes at once', async () => {
    const rows = Array.from({ length: 20_000 }, (_, n) => ({ pk: `k${n}`, cells: new Map([['a', 'x']]) }));
    const body = Buffer.from(jsonOf(rows, ['a']));
    let turns = 0;
    let turn = setImmediate(function next() {
      turns += 1;
      turn = setImmediate(next);
    });
    expect((await read(body, { size: body.length }))?.rows.length).toBe(20_000);
    clearImmediate(turn);
    expect(turns).toBeGreaterThan(body.length / 32_768);
  });

  it('stops reading the peer when its reader stops', async () => {
    let isStopped = false;
    async function* endless(): AsyncGenerator<Buffer> {
      try {
        yield Buffer.from('{"table":"T","rows":[\n');
        for (;;) yield Buffer.from('{"pk":"k"},\n'.repeat(1_000));
      } finally {
        isStopped = true;
      }
    }
    const table = await readTable(streamed(endless(), ''), 'T');
    for await (const group of table?.rows ?? []) {
      expect(group.length).toBeGreaterThan(0);
      break;
    }
    expect(isStopped).toBe(true);
  });

  it.each([
    ['JSON', '{"table":"T","rows":[\n{"pk":"k","cells":{"a":"', 'x'],
    ['JSON in another layout', '{"note":"', 'x'],
    ['an attribute of XML', '<tables><table name="T"><row pk="', 'x'],
    ['blanks', ' ', ' '],
  ])('is refused where one row has no end, in bounded memory: %s', async (_, begin, more) => {
    async function* endless(): AsyncGenerator<Buffer> {
      yield Buffer.from(begin);
      for (;;) yield Buffer.alloc(1_048_576, more);
    }
    const reading = (async () => {
      const table = await readTable(streamed(endless(), ''), 'T');
      for await (const group of table?.rows ?? []) expect(group).toEqual([]);
    })();
    await expect(reading).rejects.toMatchObject({
      code: expect.stringMatching(/^PEER_ANSWER(_TOO_LARGE)?$/),
      firstBytes: expect.stringContaining(begin.trim().slice(0, 8)),
    });
  });

  it.each([
    ['[', '[{"pk":"k","a":'],
    ['{', '{"a":'],
    ['<a>', '<tables><table name="T">'],
  ])('is refused where it is nested without end: %s in %s', async (more, begin) => {
    expect(await refusalOf(begin + more.repeat(100_000))).toMatch(/^PEER_ANSWER /);
  });

  it('is refused where it declares entities of its own', async () => {
    const bomb = `<?xml version="1.0"?><!DOCTYPE t [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><tables><table name="T"><row pk="k"><cell col="c">&b;</cell></row></table></tables>`;
    expect(await refusalOf(bomb)).toMatch(/^PEER_ANSWER /);
  });
});

describe('a table in JSON', () => {
  it('may have another layout and other members', async () => {
    const body = '\ufeff {"note":{"rows":[1]},\n"count":2,"rows":[{"pk":"k"}\n],"more":["]"]}';
    expect(await read(body, { size: 1 })).toEqual({ name: 'T', columns: undefined, rows: [['k', {}]] });
    expect((await read('[{"pk":"k1"},{"cells":{"a":"y"},"pk":"k2"}]'))?.rows).toEqual([
      ['k1', {}],
      ['k2', { a: 'y' }],
    ]);
    const named = String.raw`{"x\"rows":[1],"y":"rows","z":["rows",[1]],"rows":[{"pk":"a,]}\\"}],"table":"U"}`;
    expect((await read(named, { size: 1, asked: 'U' }))?.rows).toEqual([['a,]}\\', {}]]);
    expect(await refusalOf(named)).toContain('another table');
  });

  it('is read as it comes in where all of it is one line', async () => {
    let given = 0;
    async function* oneLine(): AsyncGenerator<Buffer> {
      yield Buffer.from('{"table":"T","rows":[{"pk":"first"}');
      for (; given < 200; given += 1)
        yield Buffer.from(`,{"pk":"k${given}","cells":{"a":"x"}}`.repeat(1_000));
      yield Buffer.from(']}');
    }
    const table = await readTable(streamed(oneLine(), ''), 'T');
    let rows = 0;
    for await (const group of table?.rows ?? []) {
      rows += group.length;
      expect(given * 1_000 - rows).toBeLessThan(2_000);
    }
    expect(rows).toBe(200_001);
  });

  it.each([
    '{"table":"T","columns":["a"],"rows":[{"pk":"k","cells":{"a":"x"}},{"pk":"l","cells":{}}]}',
    '{"table":"T","columns":["a"],"rows":[\n{"pk":"k","cells":{"a":"x"}},{"pk":"l","cells":{}}]}',
    '{"table":"T","columns":["a"],"rows":[\n{"pk":"k",\n"cells":{"a":"x"}},\n{"pk":"l","cells":{}}\n]}\n',
    JSON.stringify(
      { table: 'T', columns: ['a'], rows: [{ pk: 'k', cells: { a: 'x' } }, { pk: 'l' }] },
      null,
      2,
    ),
  ])('is read whatever its line breaks: %#', async (body) => {
    const rows = [
      ['k', { a: 'x' }],
      ['l', {}],
    ];
    for (const size of [1, 7, 65_536])
      expect(await read(body, { size })).toMatchObject({ columns: ['a'], rows });
  });

  it('has well-formed texts whatever it escapes', async () => {
    const row = '{"pk":"a\\ud800","cells":{"\\udc00b":"\\ud83d\\ude42 \\uD83D"}}';
    expect((await read(`{"table":"T","rows":[\n${row}\n]}`))?.rows).toEqual([
      ['a\ufffd', { '\ufffdb': '🙂 \ufffd' }],
    ]);
  });

  it('has columns of any name', async () => {
    const rows = (await read('[{"pk":"k","cells":{"__proto__":"x","7":"y","constructor":"z"}}]'))?.rows ?? [];
    expect(Object.entries(rows[0]?.[1] ?? {})).toEqual([
      ['7', 'y'],
      ['__proto__', 'x'],
      ['constructor', 'z'],
    ]);
  });

  it.each([
    ['{"error":"no such table"}', 'without rows'],
    ['{"rows":{"k":{}}}', 'without rows'],
    ['[1,2]', 'a row without its key'],
    ['[{"pk":12}]', 'a row in JSON that is none'],
    ['[{"pk":"a","cells":{"b":1}}]', 'no text'],
    ['{"table":"T","rows":[\n{"pk":"a"}\n]}\n{"pk":"b"}\n', 'cannot be read'],
    ['[{"pk":"a"} {"pk":"b"}]', 'cannot be read'],
    ['[{"pk":"a"},]', 'cannot be read'],
    ['[,]', 'cannot be read'],
    ['[{"pk":"a"},,{"pk":"b"}]', 'cannot be read'],
    ['[{"pk":"a"}}', 'cannot be read'],
    ['{"rows":[{"pk":"a"}],"rows":[{"pk":"b"}]}', 'without rows'],
    ['[{"a":"x"}]', 'a row without its key'],
    ['[{"pk":""}]', 'a row without its key'],
    [String.raw`[{"pk":"\u0000\u0000"}]`, 'a row without its key'],
    ['[{"pk":"a\nb"}]', 'cannot be read'],
    ['[{"pk":"a"}] [', 'cannot be read'],
    ['[{"pk":"a"}] x', 'cannot be read'],
    ['{"table":"U","rows":[]}', 'another table'],
    ['', 'an empty answer'],
    ['ok', 'no table'],
  ])('%s is refused', async (body, words) => {
    expect(await refusalOf(body)).toMatch(/^PEER_ANSWER /);
    expect(await refusalOf(body)).toContain(words);
  });
});

describe('a table in XML', () => {
  it('is read as a real peer writes it, ill-formed with NUL in its keys', async () => {
    const table = await read(realAnswer('table.xml'), { asked: 'wiretest', size: 11 });
    const special = `<b>&amp; "q" 'a' é日本😀\nline2\r\nline3\ttab ]]> % + =;,`;
    expect(table?.rows.map(([pk]) => pk)).toEqual(['000000000001', 'row1', 'row2', 'row4', 'row5', 'sp']);
    expect(table?.rows.at(-1)?.[1]).toEqual({ note: '', name: special, other: '', 'é<x>&"k': special });
  });

  it('is undefined where a real peer has none', async () => {
    expect(await read(realAnswer('table-unknown.xml'))).toBeUndefined();
  });

  it.each([
    ['<tables><table name="U"></table></tables>', 'another table'],
    ['<tables><table name="T"><row></row></table></tables>', 'key'],
    ['<tables><table name="T"><row pk="\0\0"></row></table></tables>', 'key'],
    ['<tables><table name="T"><row pk="a"><cell>x</cell></row></table></tables>', 'key'],
    ['<tables><table name="T"><row pk="a"><cell col="x"><b>x</b></cell></row></table></tables>', 'cells'],
    ['<tables><table name="T"><row pk="a">words</row></table></tables>', 'key'],
    ['<?xml version="1.0"?><error>no</error>', 'no table'],
  ])('%s is refused', async (body, words) => {
    expect(await refusalOf(body)).toMatch(/^PEER_ANSWER /);
    expect(await refusalOf(body)).toContain(words);
  });
});

describe('a page for people', () => {
  it.each([
    realAnswer('table.html').toString(),
    realAnswer('error-500.html').toString(),
    '<html><body><h1>Welcome</h1></body></html>',
  ])('is no table: %#', async (body) => {
    expect(await refusalOf(body, { type: 'text/html' })).toMatch(/^PEER_ANSWER .*no table in JSON or XML/);
  });
});
