import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { StreamedAnswer } from '../../src/peer/answer.js';
import { readTable, type TableRow } from '../../src/peer/table.js';
import { ANY_CHARACTER, realAnswer, refusalOf } from './support.js';

type Plain = readonly [string, Readonly<Record<string, string>>];

function streamed(chunks: AsyncIterable<Buffer>): StreamedAnswer {
  return {
    url: 'http://peer.example.org/api/table_p.html',
    status: 200,
    headers: {},
    at: 1_000,
    peerAt: undefined,
    tookMs: 1,
    delivered: 'yes',
    chunks,
  };
}

async function* cut(body: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < body.length; at += size) yield body.subarray(at, at + size);
}

/** Some bytes, then others without end. */
async function* endless(begin: string, more: Buffer): AsyncGenerator<Buffer> {
  yield Buffer.from(begin);
  for (;;) yield more;
}

const plain = ({ pk, cells }: TableRow): Plain => [pk, Object.fromEntries(cells)];

interface Reading {
  /** Bytes of a chunk. */
  readonly size?: number;
  readonly asked?: string;
  readonly keyBytes?: number;
}

async function read(body: string | Buffer, { size = 65_536, asked = 'T', keyBytes }: Reading = {}) {
  const table = await readTable(streamed(cut(Buffer.from(body as string), size)), asked, keyBytes);
  if (table === undefined) return undefined;
  const rows: TableRow[] = [];
  for await (const group of table.rows) rows.push(...group);
  return { name: table.name, columns: table.columns, rows: rows.map(plain) };
}

const keysIn = async (...asked: Parameters<typeof read>) =>
  (await read(...asked))?.rows.map(([pk]) => pk);

/** Writes a table as the embedded peer does. */
function jsonOf(rows: readonly TableRow[], columns: readonly string[]): string {
  const lines = rows.map(({ pk, cells }) => {
    const pairs = [...cells].map(
      ([column, cell]) => `${JSON.stringify(column)}:${JSON.stringify(cell)}`,
    );
    return `{"pk":${JSON.stringify(pk)},"cells":{${pairs.join(',')}}}`;
  });
  return `{"table":"T","columns":${JSON.stringify(columns)},"rows":[\n${lines.join(',\n')}\n]}\n`;
}

const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (c) => `&${{ '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot' }[c]};`);

/** Writes a table as YaCy does, with the keys unchanged. */
function xmlOf(rows: readonly TableRow[], keyOf: (pk: string) => string): string {
  const lines = rows.map(({ pk, cells }, n) => {
    const inside = [...cells].map(
      ([column, cell]) => `<cell col="${escaped(column)}">${escaped(cell)}</cell>\n`,
    );
    return `<row count="${n}" pk="${keyOf(pk)}">\n${inside.join('')}</row>\n`;
  });
  return `<tables>\n\n<table name="T">\n${lines.join('')}</table>\n\n</tables>`;
}

const padded = (pk: string): string => pk + '\0'.repeat(12 - Buffer.byteLength(pk));
const ODD = [
  '',
  '"',
  '\\',
  '\\"',
  '{[',
  ']}',
  '</cell>',
  '<b>&amp;',
  '\0',
  '\r\n',
  '🙂 שלום',
  ',\n{"pk":',
];
const NAME = fc
  .oneof(
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }),
    fc.constantFrom('__proto__', '7'),
  )
  .filter((name) => name.trim() !== '' && !name.endsWith('\0'));
const CELL = fc.oneof(fc.string({ unit: ANY_CHARACTER, maxLength: 30 }), fc.constantFrom(...ODD));

/** Columns, and rows that have a cell in each. */
const TABLE = fc.uniqueArray(NAME, { maxLength: 4 }).chain((columns) => {
  const texts = fc.tuple(...columns.map(() => CELL));
  const cells = texts.map((each) => new Map(columns.map((column, at) => [column, each[at] ?? ''])));
  return fc.record({
    columns: fc.constant(columns),
    rows: fc.array(fc.record({ pk: NAME, cells }), { maxLength: 6 }),
  });
});

/** Many rows, and how many of their bytes were asked for. */
function manyRows(chunk: number) {
  const rows = Array.from({ length: 20_000 }, (_, n) => ({
    pk: `k${n}`,
    cells: new Map([['a', 'x']]),
  }));
  const body = Buffer.from(jsonOf(rows, ['a']).replaceAll(',\n', ','));
  const state = { given: 0 };
  async function* counted(): AsyncGenerator<Buffer> {
    for await (const piece of cut(body, chunk)) {
      state.given += piece.length;
      yield piece;
    }
  }
  return { body, state, answer: streamed(counted()) };
}

describe('a table that is streamed', () => {
  it('is read from each form, wherever the answer is cut into chunks', async () => {
    await fc.assert(
      fc.asyncProperty(TABLE, fc.integer({ min: 1, max: 90 }), async ({ columns, rows }, size) => {
        const expected = { name: 'T', rows: rows.map(plain) };
        expect(await read(jsonOf(rows, columns), { size })).toEqual({ ...expected, columns });
        expect(await read(xmlOf(rows, escaped), { size })).toEqual({
          ...expected,
          columns: undefined,
        });
      }),
      { numRuns: 120 },
    );
  });

  it('throws for each form, wherever it is cut short', async () => {
    const cells = new Map(Object.entries({ a: 'x é', b: '🙂' }));
    const rows = ['k1', 'k2'].map((pk) => ({ pk, cells }));
    for (const whole of [jsonOf(rows, ['a', 'b']).trim(), xmlOf(rows, escaped)]) {
      const bytes = Buffer.from(whole);
      for (let end = 0; end < bytes.length; end += 1)
        expect(await refusalOf(() => read(bytes.subarray(0, end), { size: 7 }))).toMatch(
          /^PEER_ANSWER /,
        );
    }
  });

  it('arrives in groups with a bounded number of rows, even if all rows are on one line', async () => {
    const { state, answer } = manyRows(65_536);
    const table = await readTable(answer, 'T');
    expect(state.given).toBe(65_536);
    const sizes: number[] = [];
    for await (const group of table?.rows ?? []) {
      if (sizes.length === 0) expect(state.given).toBeLessThan(200_000);
      sizes.push(group.length);
    }
    expect(Math.max(...sizes)).toBeLessThanOrEqual(500);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(20_000);
  });

  it('leaves turns of the event loop to others, however much arrives at once', async () => {
    const { body } = manyRows(1);
    let turns = 0;
    let turn = setImmediate(function next() {
      turns += 1;
      turn = setImmediate(next);
    });
    expect((await read(body, { size: body.length }))?.rows.length).toBe(20_000);
    clearImmediate(turn);
    expect(turns).toBeGreaterThan(body.length / 32_768);
  });

  it.each([
    ['JSON', '{"table":"T","rows":[\n{"pk":"k","cells":{"a":"', 'x'],
    ['XML', '<tables><table name="T"><row pk="', 'x'],
  ])('is refused, in bounded memory, if a row does not end: %s', async (_, begin, more) => {
    const answer = streamed(endless(begin, Buffer.alloc(1_048_576, more)));
    const reading = async () => {
      for await (const group of (await readTable(answer, 'T'))?.rows ?? [])
        expect(group).toEqual([]);
    };
    await expect(reading()).rejects.toMatchObject({
      code: expect.stringMatching(/^PEER_ANSWER(_TOO_LARGE)?$/),
      firstBytes: expect.stringContaining(begin.trim().slice(0, 8)),
    });
  });
});

const row = (pk: string, cells: Readonly<Record<string, string>> = {}): Plain => [pk, cells];

it.each<[string, string, readonly Plain[], string?]>([
  [
    'in another layout',
    '\ufeff {"note":{"rows":[1]},\n"rows":[{"pk":"k"}\n],"more":["]"]}',
    [row('k')],
  ],
  ['a list', '[{"pk":"k1"},{"cells":{"a":"y"},"pk":"k2"}]', [row('k1'), row('k2', { a: 'y' })]],
  [
    'with other members that look like rows',
    String.raw`{"x\"rows":[1],"y":"rows","z":["rows",[1]],"rows":[{"pk":"a,]}\\"}],"table":"U"}`,
    [row('a,]}\\')],
    'U',
  ],
  [
    'in many lines',
    JSON.stringify({ rows: [{ pk: 'k', cells: { a: 'x' } }] }, null, 2),
    [row('k', { a: 'x' })],
  ],
  [
    'with halves of characters',
    String.raw`[{"pk":"a\ud800","cells":{"b":"\uD83D"}}]`,
    [row('a\ufffd', { b: '\ufffd' })],
  ],
])('JSON %s is read', async (_, body, rows, asked = 'T') => {
  for (const size of [1, 7, 65_536])
    expect(await read(body, { size, asked })).toMatchObject({ name: asked, rows });
});

const one = (inside: string) => `<tables><table name="T">${inside}</table></tables>`;
const NO_TABLE = 'no table in JSON or XML';
const BOMB = `<?xml version="1.0"?><!DOCTYPE t [<!ENTITY a "aa">]>${one('<row pk="k"><cell col="c">&a;</cell></row>')}`;

it.each<[string | Buffer, string]>([
  ['{"rows":{"k":{}}}', 'without rows'],
  ['[1,2]', 'a row without its key'],
  ['[{"pk":12}]', 'a row in JSON that is none'],
  ['[{"pk":"a","cells":{"b":1}}]', 'no text'],
  ['{"table":"T","rows":[\n{"pk":"a"}\n]}\n{"pk":"b"}\n', 'cannot be read'],
  ['[{"pk":"a"},]', 'cannot be read'],
  ['[{"pk":"a"}}', 'cannot be read'],
  ['{"rows":[{"pk":"a"}],"rows":[{"pk":"b"}]}', 'without rows'],
  [String.raw`[{"pk":"\u0000\u0000"}]`, 'a row without its key'],
  ['[{"pk":"a"}] x', 'cannot be read'],
  ['{"table":"U","rows":[]}', 'another table'],
  ['{"rows":[{"pk":"a"}],"table":"U"}', 'another table'],
  [`[{"pk":"k","a":${'['.repeat(100_000)}`, 'PEER_ANSWER'],
  [`[{"pk":"k","a":${'['.repeat(65)}${']'.repeat(65)}}]`, 'cannot be read'],
  ['', 'an empty answer'],
  ['<tables><table name="U"></table></tables>', 'another table'],
  [one('<row pk="\0\0"></row>'), 'key'],
  [one('<row pk="a"><cell>x</cell></row>'), 'key'],
  [one('<row pk="a"><cell col="x"><b>x</b></cell></row>'), 'cells'],
  [one('<a>'.repeat(100_000)), 'PEER_ANSWER'],
  [BOMB, 'PEER_ANSWER'],
  [realAnswer('error-500.html'), NO_TABLE],
])('an answer that is no table is refused: %#', async (body, words) => {
  const refusal = await refusalOf(() => read(body));
  expect(refusal).toMatch(/^PEER_ANSWER /);
  expect(refusal).toContain(words);
});

describe('a table of a real peer', () => {
  it('is read although it is not well-formed and has NULs in its keys', async () => {
    const table = await read(realAnswer('table.xml'), { asked: 'wiretest', size: 11 });
    const special = `<b>&amp; "q" 'a' é日本😀\nline2\r\nline3\ttab ]]> % + =;,`;
    expect(table?.rows.map(([pk]) => pk)).toEqual([
      '000000000001',
      'row1',
      'row2',
      'row4',
      'row5',
      'sp',
    ]);
    expect(table?.rows.at(-1)?.[1]).toEqual({
      note: '',
      name: special,
      other: '',
      'é<x>&"k': special,
    });
    expect(await read(realAnswer('table-unknown.xml'))).toBeUndefined();
  });

  it('is read with unescaped and escaped keys, wherever the answer is cut', async () => {
    const quotes = ['one', 'a"b', '<a><b>', '&amp;&lt;', 'x">', `"<&>"'"<&>"'`];
    const keys = [...quotes, '\x01\x1f\n\t', 'é"日本', '<row '];
    const cells = new Map([['a', '<row count="1']]);
    const rows = keys.map((pk) => ({ pk, cells }));
    const whole = xmlOf(rows, padded);
    for (const size of [1, 2, 7, 31, 1_000])
      expect(await keysIn(whole, { size, keyBytes: 12 })).toEqual(keys);
    const row = { pk: '', cells: new Map<string, string>() };
    const escapedKey = xmlOf([row], () => 'a&quot;&lt;');
    expect(await keysIn(escapedKey, { keyBytes: 12 })).toEqual(['a"<']);
  });
});

it('a table shows whether its bytes were UTF-8, wherever they are cut', async () => {
  const text = Buffer.from('{"rows":[{"pk":"k1","cells":{"name":"Müller"}}]}');
  const latin1 = Buffer.from(text.toString(), 'latin1');
  for (const [body, expected] of [[text, true] as const, [latin1, false] as const]) {
    for (const size of [1, 65_536]) {
      const table = await readTable(streamed(cut(body, size)), 'T');
      for await (const group of table?.rows ?? []) expect(group).toHaveLength(1);
      expect(table?.isUtf8()).toBe(expected);
    }
  }
});
