import { expect, test } from 'vitest';
import { ago, ahead, amount, calm, duration, grouped, sentences } from '../../src/page/browser/words.js';
import { event } from '../browser/reports.js';

const MIN = 60_000;

test('durations have at most two units, and fractions only where they mean something', () => {
  expect([0, 840, 1_000, 2_349, 9_960, 12_400, 125_000, 3 * 3_600_000].map(duration)).toEqual([
    '0ms',
    '840ms',
    '1s',
    '2.3s',
    '10s',
    '12s',
    '2m 5s',
    '3h',
  ]);
  expect([calm(12_000), calm(3 * MIN + 40_000), calm(125 * MIN)]).toEqual(['12s', '3m', '2h']);
});

test('what was and what will be is told from now', () => {
  const now = 1_700_000_000_000;
  expect([1_000, 42_000, 9 * MIN, 50 * 3_600_000].map((ms) => ago(now - ms, now))).toEqual([
    'just now',
    '42s ago',
    '9m ago',
    '2d ago',
  ]);
  expect([ahead(now + 12_000, now), ahead(now + 100, now), ahead(now - MIN, now)]).toEqual([
    'in 12s',
    'now',
    'now',
  ]);
});

test('rates have as many digits as mean something', () => {
  expect([0, 0.25, 1, 38.24, 812.6, 1_204.4].map(amount)).toEqual(['0', '0.25', '1', '38.2', '813', '1,204']);
});

test('what is said is in sentences', () => {
  expect(sentences('It failed', undefined, false, '', 'Try again.')).toBe('It failed. Try again.');
});

test('events that follow each other and are alike stand once', () => {
  const confirmed = (id: number) => ({
    ...event(id, id, 'info', `confirmed notes/${id}.md`),
    event: 'confirmed',
  });
  const away = (id: number) => event(id, id, 'error', 'The peer does not answer');
  const all = [
    confirmed(7),
    confirmed(6),
    away(5),
    away(4),
    confirmed(3),
    event(2, 2, 'info', 'a'),
    event(1, 1, 'info', 'b'),
  ];
  expect(grouped(all).map(({ id, more }) => [id, more])).toEqual([
    [7, 1],
    [5, 1],
    [3, 0],
    [2, 0],
    [1, 0],
  ]);
  expect(grouped([confirmed(2), { ...confirmed(1), level: 'warn' }])).toHaveLength(2);
});
