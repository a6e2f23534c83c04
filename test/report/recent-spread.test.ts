import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RecentSpread } from '../../src/report/recent-spread.js';
import { bucketOf, durationOf, RELATIVE_ERROR } from '../../src/report/spread.js';

const NOW = Date.UTC(2026, 0, 1, 12, 0, 7);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const duration = fc.oneof(
  fc.integer({ min: 0, max: 5_000 }),
  fc.integer({ min: 0, max: 40 * 24 * HOUR }),
  fc.constantFrom(0, 1, 2, 1_000, 60_000),
);

function exact(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(1, Math.ceil(part * sorted.length)) - 1] ?? Number.NaN;
}

function near(told: number | undefined, value: number): void {
  const error = Math.abs((told ?? Number.NaN) - value);
  // A millisecond for the rounding.
  expect(error, `${told} for ${value}`).toBeLessThanOrEqual(value * RELATIVE_ERROR + 1);
}

const hour = () => new RecentSpread(MINUTE, 60);

describe('percentiles', () => {
  it('are as those of the list of all durations, within 4 %', () => {
    expect(RELATIVE_ERROR).toBeLessThan(0.04);
    fc.assert(
      fc.property(fc.array(duration, { minLength: 1, maxLength: 300 }), (durations) => {
        const spread = hour();
        for (const ms of durations) spread.add(ms, NOW);
        const told = spread.percentiles(NOW);
        expect(told.count).toBe(durations.length);
        near(told.p50Ms, exact(durations, 0.5));
        near(told.p95Ms, exact(durations, 0.95));
        near(told.p99Ms, exact(durations, 0.99));
      }),
    );
  });

  it('are unknown of nothing', () => {
    expect(hour().percentiles(NOW)).toEqual({ count: 0 });
  });

  it('take any number for a duration', () => {
    fc.assert(
      fc.property(fc.double(), (ms) => {
        const bucket = bucketOf(ms);
        expect(Number.isInteger(bucket)).toBe(true);
        expect(durationOf(bucket)).toBeGreaterThan(0);
      }),
    );
  });

  it('tell how many took longer than a limit', () => {
    const spread = hour();
    for (const ms of [100, 900, 1_200, 50_000, 50_000]) spread.add(ms, NOW);
    expect(spread.longerThan(1_000, NOW)).toBe(3);
    expect(spread.longerThan(60_000, NOW)).toBe(0);
  });
});

describe('the last hour', () => {
  it('is what was added in it, at any time, within a minute', () => {
    const event = fc.record({ after: fc.integer({ min: 0, max: 10 * MINUTE }), ms: duration });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        const spread = hour();
        const added: { at: number; ms: number }[] = [];
        let now = NOW;
        for (const { after, ms } of events) {
          now += after;
          spread.add(ms, now);
          added.push({ at: now, ms });
          const { count } = spread.percentiles(now);
          expect(count).toBeLessThanOrEqual(added.filter(({ at }) => at > now - HOUR).length);
          expect(count).toBeGreaterThanOrEqual(added.filter(({ at }) => at > now - HOUR + MINUTE).length);
        }
        expect(spread.percentiles(now + HOUR)).toEqual({ count: 0 });
      }),
    );
  });

  it('is over in time though the clock was set back in it', () => {
    const spread = hour();
    for (let i = 0; i < 5; i += 1) spread.add(1_000, NOW + i * MINUTE);
    const back = NOW - 365 * 24 * HOUR;
    expect(spread.count(back)).toBe(5);
    spread.add(1_000, back + MINUTE);
    expect(spread.count(back + 55 * MINUTE)).toBe(6);
    expect(spread.count(back + 61 * MINUTE)).toBe(0);
  });

  it('is over at once where the clock is set forward, and goes on', () => {
    const spread = hour();
    spread.add(1_000, NOW);
    const later = NOW + 365 * 24 * HOUR;
    spread.add(2_000, later);
    expect(spread.count(later)).toBe(1);
  });

  it('is the same after it was kept and taken up again', () => {
    const event = fc.record({ after: fc.integer({ min: 0, max: 10 * MINUTE }), ms: duration });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 40 }), (events) => {
        const spread = hour();
        let now = NOW;
        for (const { after, ms } of events) {
          now += after;
          spread.add(ms, now);
        }
        const again = hour();
        again.restore(JSON.parse(JSON.stringify(spread.kept(now))), now);
        for (const later of [0, 5 * MINUTE, 30 * MINUTE, HOUR])
          expect(again.percentiles(now + later)).toEqual(spread.percentiles(now + later));
      }),
    );
  });
});
