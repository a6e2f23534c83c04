import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RecentDurations, WaitingItems } from '../../src/report/statistics.js';
import { DAY, HOUR, MINUTE } from './world.js';

const NOW = Date.UTC(2026, 0, 1, 12, 0, 7);
const duration = fc.oneof(
  fc.integer({ min: 0, max: 5_000 }),
  fc.integer({ min: 0, max: 40 * DAY }),
  fc.constantFrom(0, 1, 2, 1_000, 60_000),
);
const event = fc.record({ after: fc.integer({ min: 0, max: 10 * MINUTE }), ms: duration });

function exact(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(1, Math.ceil(part * sorted.length)) - 1] ?? Number.NaN;
}

function near(said: number | undefined, value: number): void {
  // What took no time is counted as the least that can be told.
  const error = Math.abs((said ?? Number.NaN) - Math.max(1, value));
  expect(error, `${said} for ${value}`).toBeLessThanOrEqual(value * 0.01);
}

describe('how long things took lately', () => {
  const lasts = fc.constantFrom(HOUR, DAY);

  it('is told in percentiles as of the list of all durations, within 1 %', () => {
    fc.assert(
      fc.property(fc.array(duration, { minLength: 1, maxLength: 300 }), lasts, (durations, lastsMs) => {
        const recent = new RecentDurations(lastsMs);
        for (const ms of durations) recent.add(ms, NOW);
        const { count, p50Ms, p95Ms, p99Ms } = recent.at(NOW);
        expect(count).toBe(durations.length);
        near(p50Ms, exact(durations, 0.5));
        near(p95Ms, exact(durations, 0.95));
        near(p99Ms, exact(durations, 0.99));
      }),
    );
    expect(new RecentDurations(HOUR).at(NOW)).toEqual({ count: 0 });
  });

  it('is of the last hour or day, within a twelfth, at any time and in any order', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), lasts, fc.nat({ max: 3 }), (events, lastsMs, later) => {
        const recent = new RecentDurations(lastsMs);
        const added: number[] = [];
        const addedAfter = (moment: number) => added.filter((at) => at > moment).length;
        let now = NOW;
        for (const { after, ms } of events) {
          now += (after * lastsMs) / HOUR;
          const endedAt = now - later * (after % lastsMs);
          recent.add(ms, endedAt);
          added.push(endedAt);
          const { count } = recent.at(now);
          expect(count).toBeLessThanOrEqual(addedAfter(now - lastsMs));
          expect(count).toBeGreaterThanOrEqual(addedAfter(now - lastsMs + lastsMs / 12));
        }
        expect(recent.at(now + lastsMs)).toEqual({ count: 0 });
      }),
    );
  });

  it('takes the memory of twelve slots, however many are added and though nobody asks', () => {
    const recent = new RecentDurations(HOUR);
    setFlagsFromString('--expose-gc');
    const inUse = () => {
      // What one collection found free is given back before the next.
      runInNewContext('gc(); gc()');
      return process.memoryUsage().arrayBuffers;
    };
    const before = inUse();
    for (let i = 0; i < 10_000; i += 1) recent.add(1, NOW + 5 * i * MINUTE);
    for (let i = 0; i < 10_000; i += 1) recent.add(1, NOW - 5 * i * MINUTE);
    expect(inUse() - before).toBeLessThan(1_000_000);
    expect(recent.at(NOW + 49_995 * MINUTE).count).toBe(12);
  });
});

it('what waits is counted, and the oldest is known within 5 s, whatever comes and goes', () => {
  const since = fc.integer({ min: 0, max: 200_000 });
  const step = fc.record({ since, leaves: fc.nat({ max: 9 }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const items = new WaitingItems();
      const list: number[] = [];
      for (const item of steps) {
        list.push(item.since);
        items.add(item.since, 1);
        const [left] = item.leaves < 5 ? list.splice(item.leaves % list.length, 1) : [];
        if (left !== undefined) items.add(left, -1);
        const { oldestSince, waiting } = items.read();
        expect(waiting).toBe(list.length);
        if (list.length === 0) expect(oldestSince).toBeUndefined();
        else {
          expect(oldestSince).toBeGreaterThan(Math.min(...list));
          expect(oldestSince).toBeLessThanOrEqual(Math.min(...list) + 5_000);
        }
      }
    }),
  );
});
