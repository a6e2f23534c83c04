import { beforeEach, expect, test } from 'vitest';
import { ConcurrencyLimit } from '../../src/queue/lanes.js';

let now = 0;
let limit: ConcurrencyLimit;
beforeEach(() => {
  now = 0;
  limit = new ConcurrencyLimit();
});

/** Returns the limit after each of a number of answers. */
function answers(
  count: number,
  latencyMs: number | ((i: number) => number),
  isFull = true,
): number[] {
  return Array.from({ length: count }, (_, i) => {
    const startedAt = now;
    now += typeof latencyMs === 'number' ? latencyMs : latencyMs(i);
    limit.answered(startedAt, now, isFull);
    return limit.limit;
  });
}

function refuses(times = 1): number {
  for (let i = 0; i < times; i += 1) {
    now += 50;
    limit.refused(now, now);
  }
  return limit.limit;
}

test('the limit rises by one with each answer, up to the maximum, and only while all slots are in use', () => {
  limit.setMax(4);
  expect(answers(50, 50, false).at(-1)).toBe(1);
  expect(answers(5, 50)).toEqual([2, 3, 4, 4, 4]);
});

test('a refusal halves the limit, once for all requests that were running, and never below one', () => {
  limit.setMax(16);
  answers(20, 50);
  const startedAt = now;
  now += 50;
  for (let i = 0; i < 16; i += 1) limit.refused(startedAt, now);
  expect(limit.limit).toBe(8);
  expect(refuses()).toBe(4);
  expect(refuses(20)).toBe(1);
});

test('after a cut it rises slowly: by one each time that all slots were answered; after an outage it starts from one', () => {
  limit.setMax(16);
  answers(20, 50);
  refuses();
  expect(answers(6, 50).at(-1)).toBe(8);
  expect(answers(4, 50).at(-1)).toBe(9);
  limit.restart();
  expect(answers(3, 50)).toEqual([2, 3, 4]);
});

test('the limit stays near the capacity of a peer that more requests only make slower', () => {
  limit.setMax(64);
  const bears = 4;
  const seen = answers(2000, () => 200 * Math.max(1, limit.limit / bears)).slice(500);
  expect(Math.max(...seen)).toBeLessThan(40);
  expect(Math.min(...seen)).toBeGreaterThanOrEqual(bears);
});

test('the noise of a nearby peer does not count as slow, and a lasting rise of latency becomes normal', () => {
  limit.setMax(8);
  expect(answers(200, (i) => (i % 5 === 0 ? 60 : 1)).at(-1)).toBe(8);
  expect(answers(5, 2000).at(-1)).toBeLessThan(8);
  expect(answers(200, 2000).at(-1)).toBe(8);
});

test('the limit of a slow peer stays at two or more, and that of a peer that refuses does not', () => {
  limit.setMax(16);
  answers(20, 20);
  expect(Math.min(...answers(30, (i) => 20 * 2 ** i))).toBe(2);
  expect(refuses(3)).toBe(1);
  expect(answers(1, 1e13)).toEqual([1]);
});
