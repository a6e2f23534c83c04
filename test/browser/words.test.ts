import { expect, test } from 'vitest';
import {
  ago,
  ahead,
  amount,
  calm,
  counted,
  duration,
  rough,
  sentence,
  sentences,
  size,
  together,
} from '../../src/page/browser/words.js';

const MIN = 60_000;

test('durations have at most two units, and fractions only where they mean something', () => {
  expect(
    [0, 840, 999.6, 1_000, 2_349, 9_960, 12_400, 125_000, 3 * 3_600_000, 93_600_000].map(duration),
  ).toEqual(['0 ms', '840 ms', '1 s', '1 s', '2.3 s', '10 s', '12 s', '2 min 5 s', '3 h', '1 d 2 h']);
  expect(rough(20)).toBe('a moment');
  expect([calm(12_000), calm(3 * MIN + 40_000), calm(125 * MIN)]).toEqual(['12 s', '3 min', '2 h 5 min']);
});

test('what was and what will be is told from now', () => {
  const now = 1_700_000_000_000;
  expect([1_000, 42_000, 9 * MIN, 50 * 3_600_000].map((ms) => ago(now - ms, now))).toEqual([
    'just now',
    '42 s ago',
    '9 min ago',
    '2 d ago',
  ]);
  expect([ahead(now + 12_000, now), ahead(now + 100, now), ahead(now - MIN, now)]).toEqual([
    'in 12 s',
    'now',
    'now',
  ]);
});

test('numbers are told as people write them', () => {
  expect([counted(1, 'file'), counted(1_204_311, 'file'), counted(2, 'entry', 'entries')]).toEqual([
    '1 file',
    '1,204,311 files',
    '2 entries',
  ]);
  expect([0, 0.001, 0.25, 1, 38.24, 812.6].map(amount)).toEqual([
    '0',
    'under 0.01',
    '0.25',
    '1',
    '38.2',
    '813',
  ]);
  expect([0, 999, 1_000, 88_412, 999_960, 2_410_233].map(size)).toEqual([
    '0 B',
    '999 B',
    '1 KB',
    '88.4 KB',
    '1 MB',
    '2.4 MB',
  ]);
});

test('what is said is a sentence, but a path stays as it is', () => {
  expect(sentence('confirmed notes/a.md (2s after its push)')).toBe(
    'Confirmed notes/a.md (2s after its push).',
  );
  expect(sentence('papers/a.pdf was passed over')).toBe('papers/a.pdf was passed over.');
  expect(sentence('https://peer.example.org refused it!')).toBe('https://peer.example.org refused it!');
  expect(sentences('It failed', undefined, 'try again.')).toBe('It failed. Try again.');
});

test('a figure keeps its unit on its line', () => {
  expect(together('for 3 min; 12 files wait, p95 is 11.8 s')).toBe(
    'for 3\u00a0min; 12 files wait, p95 is 11.8\u00a0s',
  );
});

test('a size that rounds up does not become a thousand of the smaller unit', () => {
  expect([999_499, 999_960, 999_999_999].map(size)).toEqual(['999.5 KB', '1 MB', '1 GB']);
});
