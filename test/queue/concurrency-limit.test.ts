import { beforeEach, describe, expect, test } from 'vitest';
import { ConcurrencyLimit } from '../../src/queue/concurrency-limit.js';

let now = 0;
beforeEach(() => {
  now = 0;
});

function limitTo(max: number): ConcurrencyLimit {
  const limit = new ConcurrencyLimit();
  limit.riseTo(max);
  return limit;
}

function answers(limit: ConcurrencyLimit, count: number, latencyMs: number, full = true): void {
  for (let i = 0; i < count; i += 1) {
    const startedAt = now;
    now += latencyMs;
    limit.answered(startedAt, now, full);
  }
}

/** A peer that works on `bears` tasks at a time: more than that share its speed. */
function latencyAt(limit: number, bears: number): number {
  return 200 * Math.max(1, limit / bears);
}

describe('limit', () => {
  test('rises by one with each answer, up to the most', () => {
    const limit = limitTo(4);
    const limits = [limit.limit];
    for (let i = 0; i < 5; i += 1) {
      answers(limit, 1, 50);
      limits.push(limit.limit);
    }
    expect(limits).toEqual([1, 2, 3, 4, 4, 4]);
  });

  test('does not rise while slots are left over', () => {
    const limit = limitTo(8);
    answers(limit, 50, 50, false);
    expect(limit.limit).toBe(1);
  });

  test('halves at a refusal, once for all tasks that were on their way', () => {
    const limit = limitTo(16);
    answers(limit, 20, 50);
    const startedAt = now;
    now += 50;
    for (let i = 0; i < 16; i += 1) limit.refused(startedAt, now);
    expect(limit.limit).toBe(8);
    limit.refused(now, now + 50);
    expect(limit.limit).toBe(4);
  });

  test('never falls below one', () => {
    const limit = limitTo(4);
    for (let i = 0; i < 20; i += 1) {
      now += 50;
      limit.refused(now, now);
    }
    expect(limit.limit).toBe(1);
  });

  test('after a cut rises slowly: one more each time that all slots were answered', () => {
    const limit = limitTo(16);
    answers(limit, 20, 50);
    limit.refused(now, now);
    answers(limit, 6, 50);
    expect(limit.limit).toBe(8);
    answers(limit, 4, 50);
    expect(limit.limit).toBe(9);
  });

  test('stays near what the peer bears when more only makes it slower', () => {
    const limit = limitTo(64);
    const seen: number[] = [];
    for (let i = 0; i < 2000; i += 1) {
      answers(limit, 1, latencyAt(limit.limit, 4));
      if (i > 500) seen.push(limit.limit);
    }
    expect(Math.max(...seen)).toBeLessThan(40);
    expect(Math.min(...seen)).toBeGreaterThanOrEqual(4);
  });

  test('takes noise of a near peer for noise', () => {
    const limit = limitTo(8);
    for (let i = 0; i < 200; i += 1) answers(limit, 1, i % 5 === 0 ? 60 : 1);
    expect(limit.limit).toBe(8);
  });

  test('leaves two slots to a peer that is slow, and not to one that refuses', () => {
    const limit = limitTo(16);
    answers(limit, 20, 20);
    const limits: number[] = [];
    for (let i = 0; i < 30; i += 1) {
      answers(limit, 1, 20 * 2 ** i);
      limits.push(limit.limit);
    }
    expect(Math.min(...limits)).toBe(2);
    for (let i = 0; i < 3; i += 1) {
      now += 1;
      limit.refused(now, now);
    }
    expect(limit.limit).toBe(1);
    answers(limit, 1, 1e13);
    expect(limit.limit).toBe(1);
  });

  test('gets used to answers that take longer for good', () => {
    const limit = limitTo(8);
    answers(limit, 100, 20);
    answers(limit, 5, 2000);
    expect(limit.limit).toBeLessThan(8);
    answers(limit, 200, 2000);
    expect(limit.limit).toBe(8);
  });

  test('starts from one again after an outage', () => {
    const limit = limitTo(8);
    answers(limit, 20, 50);
    limit.refused(now, now);
    limit.restart();
    expect(limit.limit).toBe(1);
    answers(limit, 3, 50);
    expect(limit.limit).toBe(4);
  });
});
