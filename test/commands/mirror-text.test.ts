import { expect, it } from 'vitest';
import { progressLine } from '../../src/cli/progress.js';
import { mirrorLines, stepOf as mirrorStep, runLines } from '../../src/commands/mirror.js';
import { stepOf } from '../../src/commands/once.js';
import type { MirrorReport } from '../../src/mirror/record.js';
import { NO_ITEMS } from './report.js';

const ROOT = '/srv/mirror';
const NOW = 1_000_000_000;

const prices: MirrorReport = {
  name: 'prices',
  kind: 'table',
  table: 'prices',
  path: 'tables/prices.csv',
};
const conflicts = [
  { pk: 'oak', column: 'price', file: 'tables/prices.csv.conflict-1', at: NOW },
  { pk: 'elm', file: 'tables/prices.csv.conflict-1', at: NOW },
];

it.each<[Partial<MirrorReport>, string]>([
  [{ changed: true, rows: 1, bytes: 27 }, 'prices: tables/prices.csv written (1 row, 27 B)'],
  [{ kind: 'citations', rows: 2 }, 'prices: tables/prices.csv unchanged (2 documents)'],
  // A pattern has no file of its own.
  [
    { table: undefined, notes: ['Follows 2 tables of the peer.'] },
    'prices: Follows 2 tables of the peer.',
  ],
  [
    { absentSince: NOW, changed: true },
    'prices: tables/prices.csv removed, until the peer has it again',
  ],
  [{ absentSince: NOW }, 'prices: tables/prices.csv is not there, until the peer has it again'],
  [
    { isOver: true, changed: true },
    'prices: tables/prices.csv removed, until the peer has it again',
  ],
  // Control characters from the peer do not reach the terminal.
  [
    {
      name: 'a\u0007',
      condition: { code: 'TABLE_GONE', message: 'gone\u001b[2J', hint: 'Look.', since: NOW },
    },
    'a\\x07: NEEDS YOU: gone\\x1b[2J. Look.',
  ],
])('the run of a mirror that is %j is told as %s', (parts, line) => {
  expect(runLines({ ...prices, ...parts } as MirrorReport, ROOT)).toEqual([line]);
});

it('the mirrors of status stand under each other, the file last, with what a person has to do below each', () => {
  const failure = {
    code: 'MIRROR_NOTHING',
    message: 'There is none.',
    hint: 'Put it there.',
    since: NOW - 60_000,
  };
  const lines = mirrorLines(
    [
      { ...prices, succeededAt: NOW - 5_000, rows: 3, bytes: 52, nextAt: NOW + 60_000, conflicts },
      {
        name: 'a.txt',
        kind: 'share',
        path: 'shares/a.txt',
        absentSince: NOW - 60_000,
        running: true,
      },
      { name: 'b.txt', kind: 'share', path: 'shares/b.txt', failure },
      { name: 'c.txt', kind: 'share', path: 'shares/c.txt', nextAt: NOW - 10 },
    ],
    ROOT,
    NOW,
  );
  expect(lines).toEqual([
    'mirror  last success  last change  rows  size  next run  file, below /srv/mirror',
    'prices  5s ago        never           3  52 B  in 1m     tables/prices.csv',
    "  changed on both sides: oak price, elm; the peer's value was kept, yours is in /srv/mirror/tables/prices.csv.conflict-1 (remove it when you are done)",
    'a.txt   never         never                    now       shares/a.txt',
    '  The peer does not have it, as was accepted 1m ago; the file comes back when the peer has it again.',
    'b.txt   never         never                              shares/b.txt',
    '  fails for 1m: There is none. Put it there.',
    'c.txt   never         never                    now       shares/c.txt',
  ]);
});

it.each([
  [['prices'], 0, '  0% 0 mirrors done, 12s, waiting for prices'],
  [['a', 'b', 'c', 'd\x1b'], 4, ' 50% 4 mirrors done, 12s, waiting for a, b, c, …'],
  // The number of mirrors of a pattern is not known ahead.
  [[], 3, ' 75% 3 mirrors done, 12s'],
])('a run of mirrors that waits for %j shows %i of them done', (waiting, done, line) => {
  expect(progressLine(mirrorStep(waiting, done, 12_000), 3)).toBe(line);
});

const counts = { ...NO_ITEMS, confirmed: 12 };

it.each([
  [{ pending: 5, accepted: 3 }, true, 0, [], '60% 12/20 confirmed, 5 to push, 3 to confirm'],
  [
    { quarantined: 2 },
    false,
    0,
    [],
    '100% 12/12 confirmed, 0 to push, 0 to confirm, 2 quarantined, scanning',
  ],
  [
    { pending: 4 },
    true,
    4,
    ['a'],
    '75% 12/16 confirmed, 4 to push, 0 to confirm, 1 mirror to fetch',
  ],
  // Nothing else is to be done; a name does not act on the terminal.
  [
    {},
    true,
    5,
    ['a\x1b', 'b', 'c', 'd'],
    '76% waiting for 4 mirrors (a\\x1b, b, c, …), 12/12 confirmed',
  ],
])(
  'once with %j, scanned %s, of %i mirrors %j to wait for, shows %s',
  (parts, isScanned, total, waiting, line) => {
    const step = stepOf({ ...counts, ...parts }, isScanned, { total, waiting });
    expect(progressLine(step, undefined).trim()).toBe(line);
    // Mirrors do not count in the rate.
    expect(step.done).toBe(12);
  },
);
