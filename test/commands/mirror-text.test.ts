import { describe, expect, it } from 'vitest';
import { mirrorLines, runLines, stepOf } from '../../src/commands/mirror.js';
import { progressLine } from '../../src/commands/terminal.js';
import type { MirrorReport } from '../../src/mirror/record.js';

const ROOT = '/srv/mirror';
const NOW = 1_000_000_000;

const prices: MirrorReport = { name: 'prices', kind: 'table', table: 'prices', path: 'tables/prices.csv' };
const conflicts = [
  { pk: 'oak', column: 'price', file: 'tables/prices.csv.conflict-1', at: NOW },
  { pk: 'elm', file: 'tables/prices.csv.conflict-1', at: NOW },
];

describe('the run of a mirror', () => {
  it('is told with what the file holds now', () => {
    expect(runLines({ ...prices, changed: true, rows: 1, bytes: 27 }, ROOT)).toEqual([
      'prices: tables/prices.csv written (1 row, 27 B)',
    ]);
    const citations: MirrorReport = { name: 'inbox', kind: 'citations', path: 'c/{path}.json', rows: 2 };
    expect(runLines(citations, ROOT)).toEqual(['inbox: c/{path}.json unchanged (2 documents)']);
  });

  it('says of a pattern what it follows, for it has no file of its own', () => {
    const pattern: MirrorReport = { name: 'stock-*', kind: 'table', path: 'tables/{table}.csv' };
    expect(runLines({ ...pattern, notes: ['Follows 2 tables of the peer.'] }, ROOT)).toEqual([
      'stock-*: Follows 2 tables of the peer.',
    ]);
  });

  it('does not call a file written that was removed', () => {
    const absent = { ...prices, absentSince: NOW };
    expect(runLines({ ...absent, changed: true }, ROOT)).toEqual([
      'prices: tables/prices.csv removed, until the peer has it again',
    ]);
    expect(runLines({ ...absent, changed: false }, ROOT)).toEqual([
      'prices: tables/prices.csv is not there, until the peer has it again',
    ]);
    // Of those that a pattern brought nothing is left.
    const over = { ...prices, isOver: true };
    expect(runLines({ ...over, changed: true }, ROOT)).toEqual([
      'prices: tables/prices.csv removed, until the peer has it again',
    ]);
    expect(runLines({ ...over, changed: false }, ROOT)).toEqual([
      'prices: tables/prices.csv is not there, until the peer has it again',
    ]);
  });

  it('names the copy of a conflict so that it can be opened from anywhere', () => {
    expect(runLines({ ...prices, changed: false, conflicts }, ROOT)[1]).toBe(
      "  changed on both sides: oak price, elm; the peer's value was kept, yours is in /srv/mirror/tables/prices.csv.conflict-1 (remove it when you are done)",
    );
  });

  it('shows control characters of the peer as escapes', () => {
    const alarm = { code: 'TABLE_GONE', message: 'gone\u001b[2J', hint: 'Look.', since: NOW };
    expect(runLines({ ...prices, name: 'a\u0007', alarm }, ROOT)).toEqual([
      'a\\x07: ALARM: gone\\x1b[2J. Look.',
    ]);
  });
});

describe('the mirrors of status', () => {
  it('stand under each other, the file last, with what a person has to do below each', () => {
    const failure = {
      code: 'MIRROR_NOTHING',
      message: 'There is none.',
      hint: 'Put it there.',
      since: NOW - 60_000,
    };
    const lines = mirrorLines(
      [
        { ...prices, succeededAt: NOW - 5_000, rows: 3, bytes: 52, nextAt: NOW + 60_000, conflicts },
        { name: 'a.txt', kind: 'share', path: 'shares/a.txt', absentSince: NOW - 60_000, running: true },
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
    expect(mirrorLines([], ROOT, NOW)).toEqual([]);
    const nameless = [{ pk: '', file: 'tables/prices.csv.conflict-2', at: NOW }];
    expect(mirrorLines([{ ...prices, conflicts: nameless }], ROOT, NOW).at(-1)).toBe(
      "  changed on both sides; the peer's value was kept, yours is in /srv/mirror/tables/prices.csv.conflict-2 (remove it when you are done)",
    );
  });
});

describe('how far a run of mirrors has come', () => {
  it('is told by those that ended, the time, and those that are awaited', () => {
    const line = (waiting: string[], done: number) => progressLine(stepOf(waiting, done, 12_000), 3);
    expect(line(['prices'], 0)).toBe('  0% 0 mirrors done, 12s, waiting for prices');
    expect(line(['a', 'b', 'c', 'd\x1b'], 4)).toBe(' 50% 4 mirrors done, 12s, waiting for a, b, c, …');
    // What a pattern brought is not known ahead.
    expect(line([], 3)).toBe(' 75% 3 mirrors done, 12s');
  });
});
