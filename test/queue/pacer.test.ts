import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Pacer } from '../../src/queue/pacer.js';

/** The start times of a lane that always has work, asked when the pacer says, or up to that much later. */
function starts(rate: number, forMs: number, lateMs: (i: number) => number): number[] {
  const pacer = new Pacer(rate);
  const times: number[] = [];
  for (let now = 0; now < forMs; ) {
    if (now >= pacer.freeAt()) {
      pacer.take(now);
      times.push(now);
    } else {
      now = pacer.freeAt() + lateMs(times.length);
    }
  }
  return times;
}

/** The most starts in any window of a second. */
function busiestSecond(times: readonly number[]): number {
  let most = 0;
  let first = 0;
  times.forEach((time, i) => {
    while (time - (times[first] ?? 0) >= 1000 - 1e-6) first += 1;
    most = Math.max(most, i - first + 1);
  });
  return most;
}

describe('the pacer', () => {
  test('never lets more than the rate start in any second, however late the timers are', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 3000 }),
        fc.array(fc.double({ min: 0, max: 40, noNaN: true }), { minLength: 1, maxLength: 20 }),
        (rate, late) => {
          const times = starts(rate, 3000, (i) => late[i % late.length] ?? 0);
          expect(busiestSecond(times)).toBeLessThanOrEqual(rate);
        },
      ),
      { numRuns: 60 },
    );
  });

  test('one that takes the place of another leaves no loophole at the change', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 500 }),
        fc.integer({ min: 1, max: 500 }),
        fc.integer({ min: 0, max: 3000 }),
        (before, after, changeAt) => {
          let pacer = new Pacer(before);
          let isChanged = false;
          const times: number[] = [];
          for (let now = 0; now < 6000; ) {
            if (!isChanged && now >= changeAt) {
              isChanged = true;
              pacer = new Pacer(after, pacer);
            }
            const freeAt = pacer.freeAt();
            if (now >= freeAt) {
              pacer.take(now);
              times.push(now);
            } else now = isChanged ? freeAt : Math.min(freeAt, Math.max(now + 0.001, changeAt));
          }
          expect(busiestSecond(times)).toBeLessThanOrEqual(Math.max(before, after));
          const late = times.filter((time) => time >= changeAt + 2000 && time < 6000);
          expect(late.length).toBeGreaterThanOrEqual(
            Math.floor((after * (4000 - changeAt) * 0.95) / 1000) - 1,
          );
        },
      ),
      { numRuns: 100 },
    );
  });

  test.each([1, 3, 20, 99, 100, 149, 200, 1000, 12_345, 100_000])(
    'reaches %i a second, but for 3 in 100, when timers are punctual',
    (rate) => {
      const times = starts(rate, 10_000, () => 0);
      expect(times.length).toBeGreaterThanOrEqual(rate * 10 * 0.97);
    },
  );

  test('loses next to nothing to timers that are a little late', () => {
    for (const rate of [20, 200, 5000]) {
      const times = starts(rate, 10_000, () => 2);
      expect(times.length).toBeGreaterThanOrEqual(rate * 10 * 0.97);
    }
  });

  test('does not make up for a time in which nothing was to be started', () => {
    const pacer = new Pacer(50);
    for (const at of [0, 20, 40]) pacer.take(at);
    pacer.take(5000);
    expect(pacer.freeAt()).toBe(5020);
  });

  test('spreads starts over the second', () => {
    expect(starts(20, 300, () => 0)).toEqual([0, 50, 100, 150, 200, 250]);
    const gaps = starts(200, 1000, () => 0).map(
      (time, i, all) => time - (all[i - 4] ?? Number.NEGATIVE_INFINITY),
    );
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(20);
  });

  test('takes less than one a second', () => {
    expect(starts(0.1, 25_000, () => 0)).toEqual([0, 10_000, 20_000]);
  });
});
