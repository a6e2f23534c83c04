import { expect, it } from 'vitest';
import { searchText } from '../../src/commands/search.js';

const item = {
  url: 'https://h/a b',
  title: 'T\x1b]8;;evil',
  snippet: 'one two',
  size: 2_048,
  author: 'A\x07',
  collections: ['notes'],
};
const found = {
  query: 'green tea',
  total: 3,
  totalIsExact: true,
  items: [item],
};

it('what was found is told line by line, with links in a terminal that can, and nothing that acts there', () => {
  const safe = 'T\\x1b]8;;evil';
  const facts = '  A\\x07 · notes · 2 KiB';
  expect(searchText(found, {}, {})).toEqual([
    safe,
    '  one two',
    '  https://h/a b',
    facts,
    '',
    '1 of 3 results.',
  ]);
  const link = (text: string) => `\x1b]8;;https://h/a%20b\x1b\\${text}\x1b]8;;\x1b\\`;
  const lines = searchText(found, { isTTY: true, columns: 40 }, {});
  expect([lines[0], lines[2]]).toEqual([
    link(`\x1b[1m${safe}\x1b[0m`),
    `  ${link('https://h/a b')}`,
  ]);
  expect(searchText(found, { isTTY: true }, { NO_COLOR: '1' })[0]).toBe(link(safe));
  expect(searchText(found, { isTTY: true }, { TERM: 'dumb' })[0]).toBe(safe);
});

it.each([
  [{ ...found, totalIsExact: false }, '1 of more than 3 results.'],
  [{ ...found, corrected: 'gulls' }, '1 of 3 results for gulls, which is similar.'],
  [{ ...found, misread: ['date:x', 'size:y'] }, '1 of 3 results, with date:x and size:y as words.'],
  [{ ...found, without: ['gulls', 'terns'] }, '1 of 3 results, without gulls and without terns.'],
  [{ ...found, otherForms: 2 }, '1 of 3 results, 2 of them with other forms of the words.'],
  [
    { ...found, signsIgnored: true as const },
    '1 of 3 results, where the signs of words such as C++ are ignored until the index is migrated.',
  ],
  [{ ...found, items: [], total: 0 }, 'Nothing found for green tea.'],
])('how many there are is told at the end (%#)', (answer, last) => {
  expect(searchText(answer, {}, {}).at(-1)).toBe(last);
});

it('files that are not searchable follow, with the command that explains them', () => {
  const notIndexed = [
    {
      path: '/home/a b/scan\x1b.pdf',
      status: 'skipped',
      reason: 'It is a scan.',
      hint: 'Install it.',
    },
    { path: '/home/x.pdf', status: 'quarantined' },
  ];
  const lines = [
    '',
    'not searchable: /home/a b/scan\\x1b.pdf – skipped: It is a scan.',
    '  Install it.',
    "  `peersync why '/home/a b/scan\\x1b.pdf'` explains it.",
    'not searchable: /home/x.pdf – quarantined',
    '  `peersync why /home/x.pdf` explains it.',
    '3 more files with these words.',
  ];
  const answer = { ...found, notIndexed, notIndexedTotal: 5 };
  expect(searchText(answer, {}, {}).slice(-lines.length)).toEqual(lines);
  const none = { ...answer, items: [], total: 0 };
  expect(searchText(none, {}, {})).toEqual(['Nothing found for green tea.', ...lines]);
});

it.each(['javascript:alert(1)', 'vscode://file/etc/passwd', 'mailto:a@example.org'])(
  'an address of a scheme that may start programs is text and no link: %s',
  (url) => {
    const answer = { ...found, items: [{ ...item, url }] };
    expect(searchText(answer, { isTTY: true }, { NO_COLOR: '1' }).join()).not.toContain('\x1b]8;;');
  },
);
