import { describe, expect, it } from 'vitest';
import { isWildcard, wildcard } from '../../src/lib/text.js';
import * as setup from './setup.js';

const folders = [
  { path: 'inbox', collection: 'inbox' },
  { path: 'archive', collection: 'archive' },
];
const load = async (mirror: object) => (await setup.load({ folders, mirror })).mirror;
const problems = (mirror: object) => setup.problems({ folders, mirror });

describe('mirrors', () => {
  it('need only what they follow: names and paths have defaults', async () => {
    const { shares, tables, citations } = await load({
      shares: [{ data: 'list.txt', c: 'lists' }, { data: 'list.txt' }, { data: '*.gz', c: 'dump' }],
      tables: [{ table: 'prices' }, { table: 'stock-*', format: 'ndjson' }],
      citations: [{ folder: 'inbox' }, { folder: 'archive' }],
    });
    expect([...shares, ...tables, ...citations].map(({ name, path }) => [name, path])).toEqual([
      ['lists/list.txt', 'shares/lists/list.txt'],
      ['list.txt', 'shares/list.txt'],
      ['dump/*.gz', 'shares/dump/{data}'],
      ['prices', 'tables/{table}.csv'],
      ['stock-*', 'tables/{table}.ndjson'],
      ['citations/inbox', 'citations/{folder}/{path}.json'],
      ['citations/archive', 'citations/{folder}/{path}.json'],
    ]);
  });

  it('may be two-way together with columns, an order, a pattern and deletes', async () => {
    const edit = { edit: true, deletes: true, columns: ['a', 'b'], sortBy: ['a'], format: 'json' };
    expect((await load({ tables: [{ table: 'prices-*', ...edit }] })).tables[0]).toMatchObject(
      edit,
    );
  });

  const citations = [{ folder: 'inbox' }];
  const cited = { table: 't', name: 'citations/inbox' };
  it.each([
    [
      'a table and a share',
      { shares: [{ data: 'a' }], tables: [{ table: 'a' }] },
      'tables',
      'shares',
    ],
    ['a table and citations', { tables: [cited], citations }, 'citations', 'tables'],
  ])('must not share a name: %s', async (_, mirror, key, other) => {
    const [line, second] = await problems(mirror);
    expect(line).toMatch(`mirror.${key}[0].name: received "`);
    expect(line).toMatch(`"; expected another name than that of mirror.${other}[0]`);
    expect(second).toBeUndefined();
  });

  const both = (data: string, path: string, table: object) => ({
    shares: [{ data, path }],
    tables: [table],
  });
  const inEach = ['inbox', 'archive'].map((folder) => ({ folder, path: 'c/{path}.json' }));
  it.each([
    ['the same path', both('a', 'x/list.csv', { table: 't', path: 'x/list.csv' }), 'tables[0]'],
    ['one but for case', both('a', 'X/List.csv', { table: 't', path: 'x/list.csv' }), 'tables[0]'],
    ['one but for composing', both('a', 'é.csv', { table: 't', path: 'e\u0301.csv' }), 'tables[0]'],
    ['the file of a named table', both('a', 'tables/t.csv', { table: 't' }), 'tables[0]'],
    [
      'one that a pattern takes',
      both('a', 'tables/prices-2026.csv', { table: 'prices-*' }),
      'tables[0]',
    ],
    ['two tables', { tables: [{ table: 'prices-1' }, { table: 'prices-?' }] }, 'tables[1]'],
    ['two folders without {folder}', { citations: inEach }, 'citations[1]'],
    [
      'among citations',
      { shares: [{ data: 'a', path: 'citations/inbox/a.json' }], citations },
      'citations[0]',
    ],
  ])('must not write the same file: %s', async (_, mirror, key) => {
    const [line, second] = await problems(mirror);
    expect(line?.slice(0, key.length + 13)).toBe(`mirror.${key}.path:`);
    expect(line).toMatch(
      /received ".*"; expected another path than that of mirror\..*the same file$/,
    );
    expect(second).toBeUndefined();
  });

  it.each(['/a', '../a', 'a/../b', 'a/./b', 'a//b', 'a/', 'a\n/../b', 'a\0', '..', ''])(
    'must not leave the root: %j',
    async (path) => {
      const expected = `received ${JSON.stringify(path)}; expected a relative path below mirror.root`;
      expect(await problems({ shares: [{ data: 'a', path }] })).toEqual([
        expect.stringContaining(`mirror.shares[0].path: ${expected}`),
      ]);
    },
  );

  it('of a pattern of shared objects need a path that differs for each file', async () => {
    expect(await problems({ shares: [{ data: 'dump/*', path: 'dumps' }] })).toEqual([
      expect.stringMatching(/^mirror\.shares\[0\]\.path: received "dumps"; expected .*"\{data\}"/),
    ]);
  });

  it.each([
    [
      { table: 'a-*', path: 'a.csv' },
      'path: received "a.csv"; expected a path with "{table}" in it',
    ],
    [
      { path: 'x/{name}.csv' },
      'path: received "x/{name}.csv"; expected a path with no variable but "{table}"',
    ],
    [{ edit: true, neutralise: true }, 'neutralise: received true; expected false beside "edit"'],
    [{ edit: true, search: 'x' }, 'search: received "x"; expected no "search" beside "edit"'],
    [{ edit: true, count: 5 }, 'count: received 5; expected no "count" beside "edit"'],
    [{ edit: true, format: 'xml' }, 'format: received "xml"; expected "csv", "json" or "ndjson"'],
    [{ deletes: true }, 'deletes: received true; expected false, or "edit": true beside it'],
    [
      { newline: 'crlf', format: 'json' },
      'newline: received "crlf"; expected "lf", or "format": "csv"',
    ],
    [
      { neutralise: true, format: 'json' },
      'neutralise: received true; expected false, or "format": "csv"',
    ],
    [{ columns: ['pk', 'b'] }, 'columns: received a list; expected columns without "pk"'],
    [{ columns: ['b', 'c', 'b'] }, 'columns: received a list; expected each column once'],
  ])('of the table %j are refused: %j', async (table, rest) => {
    const reported = await problems({ tables: [{ table: 'a', ...table }] });
    expect(reported).toEqual([expect.stringContaining(`mirror.tables[0].${rest}`)]);
  });

  it.each([
    ['path', 'c/{folder}.json', 'a path with "{path}" in it'],
    ['path', 'c/{path}/{url}', 'a path with no variables but "{folder}" and "{path}"'],
    ['folder', 'inbx', 'a watched folder, perhaps "inbox"'],
    ['folder', 'elsewhere', 'the name of a watched folder: "inbox", "archive"'],
  ])('of citations whose %s is %s are refused: %j', async (key, value, expected) => {
    const reported = `mirror.citations[0].${key}: received "${value}"; expected ${expected}`;
    expect(await problems({ citations: [{ folder: 'inbox', [key]: value }] })).toEqual([
      expect.stringContaining(reported),
    ]);
  });

  it('must not need a file at a path that another needs as a directory', async () => {
    expect(await problems({ shares: [{ data: 'a/b' }, { data: 'a' }] })).toEqual([
      expect.stringMatching(
        /^mirror\.shares\[1\]\.path: .*a directory where the other writes a file$/,
      ),
    ]);
  });
});

describe('a pattern of tables', () => {
  it.each([
    ['*', '', true],
    ['prices-*', 'prices-a\nb', true],
    ['prices-*', 'my prices-1', false],
    ['a?c', 'a😀c', true],
    ['a?c', 'ac', false],
    ['a.c*', 'abc', false],
    ['(a|b)[c]$^+{1}\\/-*', '(a|b)[c]$^+{1}\\/-x', true],
  ])('%j and the table %j: %s', (pattern, table, expected) => {
    expect(isWildcard(pattern)).toBe(true);
    expect(wildcard(pattern).test(table)).toBe(expected);
  });
});
