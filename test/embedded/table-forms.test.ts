import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPeerInstance, type PeerInstance } from '../../src/embedded/peer-instance.js';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { temporaryDirectory } from '../support/temp.js';
import { basic } from './support.js';

interface TableAsRead {
  readonly name: string;
  readonly rows: ReadonlyMap<string, ReadonlyMap<string, string>>;
}

let peer: PeerInstance;
beforeAll(async () => {
  const options = { port: 0, commitEveryMs: 20, maxBody: 67_108_864 };
  const dir = temporaryDirectory('file');
  peer = await openPeerInstance({ ...options, dir, requireAuthEverywhere: false }, systemClock, silentLogger);
});
afterAll(() => peer.close());

async function ask(path: string, parameters: readonly (readonly [string, string])[]): Promise<string> {
  const body = new URLSearchParams(parameters.map(([name, value]): [string, string] => [name, value]));
  const response = await fetch(peer.url + path, {
    method: 'POST',
    headers: { authorization: basic(peer) },
    body,
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
  return text;
}

async function listed(): Promise<string[]> {
  return (JSON.parse(await ask('/Tables_p.json', [])) as { tables: string[] }).tables;
}

function readJson(text: string): TableAsRead {
  const read = JSON.parse(text) as {
    table: string;
    rows: { pk: string; cells: Record<string, string> }[];
  };
  const rows = read.rows.map(({ pk, cells }): [string, Map<string, string>] => [
    pk,
    new Map(Object.entries(cells)),
  ]);
  return { name: read.table, rows: new Map(rows) };
}

/** Texts that formats trip over, and any other. */
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc
    .array(
      fc.constantFrom(
        ...['"', "'", '<', '&', '>', ']]>', '&amp;', '\0', '\n', '\r', '\r\n', '\t', ' ', '\u0085', '\u2028'],
        ...[
          '\ufffe',
          '\ufffd',
          '😀',
          'é',
          'שלום',
          'مرحبا',
          '__proto__',
          'constructor',
          '=1+1',
          '\\',
          '\u007f',
        ],
      ),
      { maxLength: 6 },
    )
    .map((parts) => parts.join('')),
);
const name = text.filter((value) => value !== '');
const key = name.filter((value) => !value.endsWith('\0'));

describe('any names, keys and cells', () => {
  it('go in and come out the same', { timeout: 120_000 }, async () => {
    const cellsOfRow = fc.uniqueArray(fc.tuple(name, text), { selector: ([column]) => column, maxLength: 4 });
    const rows = fc.uniqueArray(fc.tuple(key, cellsOfRow), {
      selector: ([pk]) => pk,
      minLength: 1,
      maxLength: 4,
    });
    await fc.assert(
      fc.asyncProperty(name, rows, async (table, given) => {
        for (const left of await listed())
          await ask('/Tables_p.json', [
            ['table', left],
            ['deletetable', '1'],
          ]);
        const expected = new Map<string, Map<string, string>>();
        for (const [pk, cells] of given) {
          const columns = cells.map(([column, value]): [string, string] => [`col_${column}`, value]);
          await ask('/api/table_p.json', [['table', table], ['pk', pk], ['commitrow', '1'], ...columns]);
          expected.set(pk, new Map(cells.filter(([, value]) => value !== '')));
        }
        const query = [['table', table]] as const;
        expect(readJson(await ask('/api/table_p.json', query))).toEqual({ name: table, rows: expected });
        expect(await ask('/api/table_p.html', query)).toMatch(/<\/html>\n$/);
        expect(await listed()).toEqual([table]);
        const items = given.map(([pk], n): [string, string] => [`item_${n}`, `pk_${pk}`]);
        await ask('/Tables_p.json', [...query, ['deleterows', '1'], ...items]);
        expect(readJson(await ask('/api/table_p.json', query)).rows.size).toBe(0);
      }),
      { numRuns: 25 },
    );
  });
});

describe('a text area of a browser', () => {
  it('changes the ends of lines of no cell that its reader left alone', async () => {
    const base = [
      ['table', 'lines'],
      ['pk', 'k'],
      ['commitrow', '1'],
    ] as const;
    await ask('/api/table_p.json', [...base, ['col_unix', 'a\nb'], ['col_dos', 'a\r\nb'], ['col_new', 'a']]);
    await ask('/Tables_p.html', [
      ...base,
      ['page', 'true'],
      ['col_unix', 'a\r\nb'],
      ['col_dos', 'a\r\nb'],
      ['col_new', 'a\r\nc'],
    ]);
    const { rows } = readJson(await ask('/api/table_p.json', [['table', 'lines']]));
    expect(rows.get('k')).toEqual(
      new Map([
        ['unix', 'a\nb'],
        ['dos', 'a\r\nb'],
        ['new', 'a\nc'],
      ]),
    );
    const form = await ask('/Tables_p.html', [
      ['table', 'lines'],
      ['edittable', 'Edit Table'],
      ['pk', 'k'],
    ]);
    expect(form).toContain('<textarea name="col_dos" dir="auto" rows="2">\na&#13;\nb</textarea>');
    await ask('/Tables_p.json', [
      ['table', 'lines'],
      ['deletetable', '1'],
    ]);
  });
});
