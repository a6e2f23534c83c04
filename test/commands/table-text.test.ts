import { describe, expect, it } from 'vitest';
import { displayWidth, fitted, tableText } from '../../src/cli/text.js';
import type { TableRow } from '../../src/peer/table.js';

function row(pk: string, cells: Record<string, string> = {}): TableRow {
  return { pk, cells: new Map(Object.entries(cells)) };
}

async function* groupsOf(...groups: TableRow[][]): AsyncGenerator<TableRow[]> {
  yield* groups;
}

async function shown(
  columns: readonly string[],
  groups: TableRow[][],
  width?: number,
): Promise<string[]> {
  let text = '';
  for await (const piece of tableText(columns, groupsOf(...groups), width)) text += piece;
  return text.trimEnd().split('\n');
}

describe('a table on a terminal', () => {
  it('has its columns under each other, the key first, numbers to the right', async () => {
    const rows = [row('a', { name: 'oak', price: '12.50' }), row('long key', { price: '9' })];
    expect(await shown(['name', 'price'], [rows])).toEqual([
      'pk        name  price',
      '────────  ────  ─────',
      'a         oak   12.50',
      'long key            9',
      '2 rows',
    ]);
  });

  it('says when it is empty', async () => {
    expect(await shown(['name'], [])).toEqual(['pk  name', '──  ────', 'no rows']);
  });

  it('never shows what a terminal would act on, nor a line break within a row', async () => {
    const nasty = 'red\x1b[31m\r\nnext\tline\u202eback\0';
    const text = (await shown([nasty], [[row(nasty, { [nasty]: nasty })]])).join('\n');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    expect(text).not.toMatch(/[\0-\x09\x0b-\x1f\x7f-\x9f\u202e]/);
    expect(text.split('\n')).toHaveLength(4);
    expect(text).toContain('red\\x1b[31m\\nnext\\tline\\u202eback\\x00');
  });

  it('fits the terminal: long cells are cut, the longest columns first', async () => {
    const rows = [row('k', { short: 'abc', long: 'x'.repeat(500), wide: '日本語'.repeat(30) })];
    const lines = await shown(['short', 'long', 'wide'], [rows], 60);
    for (const line of lines.slice(0, 3)) expect(displayWidth(line)).toBeLessThanOrEqual(60);
    expect(lines[2]).toMatch(/^k +abc +x+… +[日本語]+…$/);
  });

  it('names the columns that have no room', async () => {
    const names = Array.from({ length: 12 }, (_, i) => `column ${i}`);
    const cells = Object.fromEntries(names.map((name) => [name, 'a longer text']));
    const lines = await shown(names, [[row('k', cells)]], 40);
    for (const line of lines.slice(0, 3)) expect(displayWidth(line)).toBeLessThanOrEqual(40);
    expect(lines.at(-1)).toMatch(
      /^1 row; no room for \d+ columns: .*column 11 \(`--format json` has all\)$/,
    );
  });

  it('keeps its columns however many rows follow, and a key is never cut', async () => {
    const first = Array.from({ length: 300 }, () => row('k', { n: 'abc' }));
    const lines = await shown(['n'], [first, [row('later', { n: 'much longer than before' })]]);
    expect(lines.at(-2)).toBe('later  mu…');
    expect(lines.at(-1)).toBe('301 rows');
  });

  it('shows a cell called like the key apart from the key', async () => {
    expect((await shown(['pk'], [[row('key', { pk: 'cell' })]]))[2]).toBe('key  cell');
  });
});

it('a text is filled up or cut to a width, and no character is cut in two', () => {
  for (const text of [
    'plain text',
    '日本語の注釈',
    '👩‍👩‍👧‍👦👩‍👩‍👧‍👦 family',
    'e\u0301e\u0301e\u0301e\u0301',
  ])
    for (let width = 1; width <= 14; width += 1) {
      const shown = fitted(text, width);
      expect(displayWidth(shown)).toBe(width);
      const begin = shown.replace(/…? *$/, '');
      expect(text.startsWith(begin)).toBe(true);
      expect(begin).not.toMatch(/\u200d$|[\ud800-\udbff]$/);
    }
  expect(fitted('12', 5, 'right')).toBe('   12');
});
