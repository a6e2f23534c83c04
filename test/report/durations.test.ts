import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RecentDurations } from '../../src/report/statistics.js';
import { DAY, expectNear, HOUR, MINUTE } from './world.js';

const NOW = Date.UTC(2026, 0, 1, 12, 0, 7);
const event = fc.record({ after: fc.nat({ max: 10 * MINUTE }), ms: fc.nat({ max: 40 * DAY }) });

describe('how long things took lately', () => {
  it('is told in percentiles, within 1 %', () => {
    const recent = new RecentDurations(HOUR);
    for (let i = 200; i > 0; i -= 1) recent.add(i * DAY, NOW);
    const { p50Ms, p95Ms, p99Ms } = recent.at(NOW);
    expectNear(p50Ms, 100 * DAY, 0.01);
    expectNear(p95Ms, 190 * DAY, 0.01);
    expectNear(p99Ms, 198 * DAY, 0.01);
  });

  it('is of the last hour or day, within a twelfth, at any time and in any order', () => {
    fc.assert(
      fc.property(
        fc.array(event, { maxLength: 60 }),
        fc.constantFrom(HOUR, DAY),
        fc.nat({ max: 3 }),
        (events, lastsMs, later) => {
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
        },
      ),
    );
  });

  it('takes the memory of twelve slots, however many are added and though nobody asks', () => {
    const recent = new RecentDurations(HOUR);
    setFlagsFromString('--expose-gc');
    const inUse = () => {
      // Memory that one collection frees is returned before the next.
      runInNewContext('gc(); gc()');
      return process.memoryUsage().arrayBuffers;
    };
    const before = inUse();
    for (let i = 0; i < 1_000; i += 1) recent.add(1, NOW + 5 * i * MINUTE);
    for (let i = 0; i < 1_000; i += 1) recent.add(1, NOW - 5 * i * MINUTE);
    expect(inUse() - before).toBeLessThan(1_000_000);
    expect(recent.at(NOW + 4_995 * MINUTE).count).toBe(12);
  });
});
