import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/config/config.js';
import { checkConfig } from '../../src/config/load.js';
import { isWildcard, wildcard } from '../../src/lib/text.js';
import { temporaryDirectory } from '../support/temp.js';

const folders = [
  { path: 'inbox', collection: 'inbox' },
  { path: 'archive', collection: 'archive' },
];

function load(mirror: unknown) {
  return checkConfig({ folders, mirror }, join(temporaryDirectory(), 'peersync.json'));
}

/** The lines of problems of a configuration with these mirrors. */
async function problems(mirror: unknown): Promise<string[]> {
  const error: unknown = await load(mirror).catch((thrown: unknown) => thrown);
  if (!(error instanceof ConfigError)) throw new Error(`no ConfigError but ${String(error)}`);
  return error.message
    .split('\n')
    .slice(1)
    .map((line) => line.trim());
}

describe('mirrors', () => {
  it('need no more than what they follow: names and paths come by themselves', async () => {
    const { mirror } = await load({
      shares: [{ data: 'list.txt', c: 'lists' }, { data: 'list.txt' }, { data: '*.gz', c: 'dump' }],
      tables: [{ table: 'prices' }, { table: 'stock-*', format: 'ndjson' }],
      citations: [{ folder: 'inbox' }, { folder: 'archive' }],
    });
    const all = [...mirror.shares, ...mirror.tables, ...mirror.citations];
    expect(all.map(({ name, path }) => [name, path])).toEqual([
      ['lists/list.txt', 'shares/lists/list.txt'],
      ['list.txt', 'shares/list.txt'],
      ['dump/*.gz', 'shares/dump/{data}'],
      ['prices', 'tables/{table}.csv'],
      ['stock-*', 'tables/{table}.ndjson'],
      ['citations/inbox', 'citations/{folder}/{path}.json'],
      ['citations/archive', 'citations/{folder}/{path}.json'],
    ]);
  });

  it('over a pattern of shared objects need a path that tells their files apart', async () => {
    expect(await problems({ shares: [{ data: 'dump/*', path: 'dumps' }] })).toEqual([
      expect.stringMatching(/^mirror\.shares\[0\]\.path: received "dumps"; expected .*"\{data\}"/),
    ]);
  });

  it('may be edited where columns, order, a pattern and deletes are given', async () => {
    const edit = { edit: true, deletes: true, columns: ['a', 'b'], sortBy: ['a'], format: 'json' };
    const { mirror } = await load({ tables: [{ table: 'prices-*', ...edit }] });
    expect(mirror.tables[0]).toMatchObject(edit);
  });

  it.each([
    [
      'a table and a share',
      { shares: [{ data: 'a' }], tables: [{ table: 'a' }] },
      'mirror.tables[0].name',
      'shares[0]',
    ],
    [
      'a table and a folder’s citations',
      { tables: [{ table: 't', name: 'citations/inbox' }], citations: [{ folder: 'inbox' }] },
      'mirror.citations[0].name',
      'tables[0]',
    ],
  ])('must not share a name: %s', async (_, mirror, key, other) => {
    expect(await problems(mirror)).toEqual([
      expect.stringMatching(
        new RegExp(
          `^${escaped(key)}: received ".*"; expected a name that mirror\\.${escaped(other)} does not have`,
        ),
      ),
    ]);
  });

  it.each([
    ['the same path', { data: 'a', path: 'x/list.csv' }, { table: 't', path: 'x/list.csv' }],
    ['one but for case', { data: 'a', path: 'X/List.csv' }, { table: 't', path: 'x/list.csv' }],
    [
      'one but for how letters are composed',
      { data: 'a', path: 'é.csv' },
      { table: 't', path: 'e\u0301.csv' },
    ],
    ['the file of a named table', { data: 'a', path: 'tables/t.csv' }, { table: 't' }],
    ['a file that a pattern takes', { data: 'a', path: 'tables/prices-2026.csv' }, { table: 'prices-*' }],
  ])('must not write the same file: %s', async (_, share, table) => {
    expect(await problems({ shares: [share], tables: [table] })).toEqual([
      expect.stringMatching(
        /^mirror\.tables\[0\]\.path: received ".*"; expected a path apart from that of mirror\.shares\[0\], ".*": both would write the same file$/,
      ),
    ]);
  });

  it.each([
    [
      'two tables, one by a pattern',
      { tables: [{ table: 'prices-1' }, { table: 'prices-?' }] },
      'mirror.tables[1].path',
    ],
    [
      'two folders without {folder}',
      {
        citations: [
          { folder: 'inbox', path: 'c/{path}.json' },
          { folder: 'archive', path: 'c/{path}.json' },
        ],
      },
      'mirror.citations[1].path',
    ],
    [
      'a share among the citations',
      { shares: [{ data: 'a', path: 'citations/inbox/a.md.json' }], citations: [{ folder: 'inbox' }] },
      'mirror.citations[0].path',
    ],
  ])('must not write the same file: %s', async (_, mirror, key) => {
    expect(await problems(mirror)).toEqual([
      expect.stringMatching(new RegExp(`^${escaped(key)}: .*the same file$`)),
    ]);
  });

  it('must not need a file where another needs a directory', async () => {
    expect(await problems({ shares: [{ data: 'a/b' }, { data: 'a' }] })).toEqual([
      expect.stringMatching(/^mirror\.shares\[1\]\.path: .*a file cannot be a directory$/),
    ]);
  });

  it('are not taken for one because one name begins like the other', async () => {
    const tables = [
      { table: 'prices' },
      { table: 'prices2' },
      { table: 'stock-*' },
      { table: 'stoc', path: 'stock' },
    ];
    expect((await load({ tables })).mirror.tables).toHaveLength(4);
  });

  it.each<[unknown, string]>([
    [
      { tables: [{ table: 'a-*', path: 'a.csv' }] },
      'mirror.tables[0].path: received "a.csv"; expected a path with "{table}" in it',
    ],
    [
      { tables: [{ table: 'a', path: 'x/{name}.csv' }] },
      'mirror.tables[0].path: received "x/{name}.csv"; expected a path with no variable but "{table}"',
    ],
    [
      { citations: [{ folder: 'inbox', path: 'c/{folder}.json' }] },
      'mirror.citations[0].path: received "c/{folder}.json"; expected a path with "{path}" in it',
    ],
    [
      { citations: [{ folder: 'inbox', path: 'c/{path}/{url}' }] },
      'mirror.citations[0].path: received "c/{path}/{url}"; expected a path with no variables but "{folder}" and "{path}"',
    ],
    [
      { citations: [{ folder: 'inbx' }] },
      'mirror.citations[0].folder: received "inbx"; expected "inbox": did you mean that?',
    ],
    [
      { citations: [{ folder: 'elsewhere' }] },
      'mirror.citations[0].folder: received "elsewhere"; expected the name of a watched folder: "inbox", "archive"',
    ],
    [
      { tables: [{ table: 'a', edit: true, neutralise: true }] },
      'mirror.tables[0].neutralise: received true; expected false beside "edit"',
    ],
    [
      { tables: [{ table: 'a', edit: true, search: 'x' }] },
      'mirror.tables[0].search: received "x"; expected nothing beside "edit"',
    ],
    [
      { tables: [{ table: 'a', edit: true, count: 5 }] },
      'mirror.tables[0].count: received 5; expected nothing beside "edit"',
    ],
    [
      { tables: [{ table: 'a', edit: true, format: 'xml' }] },
      'mirror.tables[0].format: received "xml"; expected "csv", "json" or "ndjson"',
    ],
    [
      { tables: [{ table: 'a', deletes: true }] },
      'mirror.tables[0].deletes: received true; expected false, or "edit": true beside it',
    ],
    [
      { tables: [{ table: 'a', neutralise: true, format: 'json' }] },
      'mirror.tables[0].neutralise: received true; expected false, or "format": "csv"',
    ],
    [
      { tables: [{ table: 'a', columns: ['pk', 'b'] }] },
      'mirror.tables[0].columns: received a list; expected columns without "pk"',
    ],
    [
      { tables: [{ table: 'a', columns: ['b', 'c', 'b'] }] },
      'mirror.tables[0].columns: received a list; expected each column once',
    ],
    ...['/a', '../a', 'a/../b', 'a/./b', 'a//b', 'a/', 'a\n/../b', 'a\0', '..', ''].map(
      (path): [unknown, string] => [
        { shares: [{ data: 'a', path }] },
        `mirror.shares[0].path: received ${JSON.stringify(path)}; expected a relative path below mirror.root`,
      ],
    ),
  ])('%j is answered by %j', async (mirror, start) => {
    expect((await problems(mirror)).map((line) => line.slice(0, start.length))).toEqual([start]);
  });

  it('stand outside of the watched folders and the state', async () => {
    for (const root of ['inbox/mirror', '.', 'data/state'])
      expect((await problems({ root }))[0]).toMatch(/neither may lie within the other/);
  });
});

describe('a pattern of tables', () => {
  it.each([
    ['*', '', true],
    ['prices-*', 'prices-', true],
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

function escaped(text: string): string {
  return text.replace(/[[\].]/g, '\\$&');
}
