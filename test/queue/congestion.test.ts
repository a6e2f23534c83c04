import { beforeEach, describe, expect, test } from 'vitest';
import { Congestion } from '../../src/queue/congestion.js';
import { DEFAULT_POLICY } from '../../src/queue/policy.js';

let now = 0;
beforeEach(() => {
  now = 0;
});

function answers(congestion: Congestion, count: number, latencyMs: number, full = true): void {
  for (let i = 0; i < count; i += 1) {
    const startedAt = now;
    now += latencyMs;
    congestion.answered('push', startedAt, now, full);
  }
}

/** A peer that works on `bears` tasks at a time: more than that share its speed. */
function latencyAt(limit: number, bears: number): number {
  return 200 * Math.max(1, limit / bears);
}

describe('congestion', () => {
  test('rises by one with each answer, up to the most', () => {
    const congestion = new Congestion(4, DEFAULT_POLICY);
    const limits = [congestion.limit];
    for (let i = 0; i < 5; i += 1) {
      answers(congestion, 1, 50);
      limits.push(congestion.limit);
    }
    expect(limits).toEqual([1, 2, 3, 4, 4, 4]);
  });

  test('does not rise while slots are left over', () => {
    const congestion = new Congestion(8, DEFAULT_POLICY);
    answers(congestion, 50, 50, false);
    expect(congestion.limit).toBe(1);
  });

  test('halves at a refusal, once for all tasks that were on their way', () => {
    const congestion = new Congestion(16, DEFAULT_POLICY);
    answers(congestion, 20, 50);
    const startedAt = now;
    now += 50;
    for (let i = 0; i < 16; i += 1) congestion.refused(startedAt, now);
    expect(congestion.limit).toBe(8);
    congestion.refused(now, now + 50);
    expect(congestion.limit).toBe(4);
  });

  test('never falls below one', () => {
    const congestion = new Congestion(4, DEFAULT_POLICY);
    for (let i = 0; i < 20; i += 1) {
      now += 50;
      congestion.refused(now, now);
    }
    expect(congestion.limit).toBe(1);
  });

  test('after a cut rises slowly: one more each time that all slots were answered', () => {
    const congestion = new Congestion(16, DEFAULT_POLICY);
    answers(congestion, 20, 50);
    congestion.refused(now, now);
    answers(congestion, 6, 50);
    expect(congestion.limit).toBe(8);
    answers(congestion, 4, 50);
    expect(congestion.limit).toBe(9);
  });

  test('stays near what the peer bears when more only makes it slower', () => {
    const congestion = new Congestion(64, DEFAULT_POLICY);
    const seen: number[] = [];
    for (let i = 0; i < 2000; i += 1) {
      answers(congestion, 1, latencyAt(congestion.limit, 4));
      if (i > 500) seen.push(congestion.limit);
    }
    expect(Math.max(...seen)).toBeLessThan(40);
    expect(Math.min(...seen)).toBeGreaterThanOrEqual(4);
  });

  test('takes noise of a near peer for noise', () => {
    const congestion = new Congestion(8, DEFAULT_POLICY);
    for (let i = 0; i < 200; i += 1) answers(congestion, 1, i % 5 === 0 ? 60 : 1);
    expect(congestion.limit).toBe(8);
  });

  test('leaves three slots to a peer that is slow, and not to one that refuses', () => {
    const congestion = new Congestion(16, DEFAULT_POLICY);
    answers(congestion, 20, 20);
    const limits: number[] = [];
    for (let i = 0; i < 30; i += 1) {
      answers(congestion, 1, 20 * 2 ** i);
      limits.push(congestion.limit);
    }
    expect(Math.min(...limits)).toBe(3);
    for (let i = 0; i < 3; i += 1) {
      now += 1;
      congestion.refused(now, now);
    }
    expect(congestion.limit).toBe(1);
    answers(congestion, 1, 1e13);
    expect(congestion.limit).toBeLessThan(3);
  });

  test('gets used to answers that take longer for good', () => {
    const congestion = new Congestion(8, DEFAULT_POLICY);
    answers(congestion, 100, 20);
    answers(congestion, 5, 2000);
    expect(congestion.limit).toBeLessThan(8);
    answers(congestion, 200, 2000);
    expect(congestion.limit).toBe(8);
  });

  test('keeps the lanes apart: a push may take longer than a lookup', () => {
    const congestion = new Congestion(8, DEFAULT_POLICY);
    for (let i = 0; i < 100; i += 1) {
      congestion.answered('confirm', now, now + 5, true);
      congestion.answered('push', now, now + 900, true);
      now += 900;
    }
    expect(congestion.limit).toBe(8);
  });

  test('starts from one again after an outage', () => {
    const congestion = new Congestion(8, DEFAULT_POLICY);
    answers(congestion, 20, 50);
    congestion.refused(now, now);
    congestion.restart();
    expect(congestion.limit).toBe(1);
    answers(congestion, 3, 50);
    expect(congestion.limit).toBe(4);
  });
});
