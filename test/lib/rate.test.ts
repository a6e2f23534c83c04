import { describe, expect, it } from 'vitest';
import { Rate } from '../../src/lib/rate.js';

const SECOND = 1_000;

/** A rate, and a count that a test lets grow; it is noted all the time, or only when it grows. */
function growing(isNotedAlways: boolean) {
  const rate = new Rate();
  let [now, count] = [0, 0];
  rate.note(now, count);
  const grow = (seconds: number, perTick: number) => {
    for (const end = now + seconds * SECOND; now < end; ) {
      now += 100;
      count += perTick;
      if (isNotedAlways || perTick > 0) rate.note(now, count);
    }
  };
  /** A burst of that size, as from a peer that commits its index now and then. */
  const burst = (size: number) => {
    count += size;
    rate.note(now, count);
  };
  return { grow, burst, perSecond: () => rate.perSecond(now, count) };
}

describe.each([
  ['noted all the time', true],
  ['noted when it grows', false],
])('the rate of a count that is %s', (_, isNotedAlways) => {
  it('is that of the last half minute, not of the whole run', () => {
    const { grow, perSecond } = growing(isNotedAlways);
    grow(60, 10);
    expect(perSecond()).toBeCloseTo(100, 0);
    grow(40, 1);
    expect(perSecond()).toBeCloseTo(10, 0);
  });

  it('is not made slower by the time before anything grew', () => {
    const { grow, perSecond } = growing(isNotedAlways);
    for (let again = 0; again < 2; again += 1) {
      grow(120, 0);
      grow(6, 10);
      expect(perSecond()).toBeGreaterThan(95);
      expect(perSecond()).toBeLessThan(105);
    }
  });

  it('is not known at once, and not where nothing grew for half a minute', () => {
    const { grow, perSecond } = growing(isNotedAlways);
    expect(perSecond()).toBeUndefined();
    grow(4, 10);
    expect(perSecond()).toBeUndefined();
    grow(8, 10);
    expect(perSecond()).toBeDefined();
    grow(29, 0);
    expect(perSecond()).toBeDefined();
    grow(2, 0);
    expect(perSecond()).toBeUndefined();
  });

  it('is calm where things come in bursts, and counts the first one as the beginning', () => {
    const { burst, grow, perSecond } = growing(isNotedAlways);
    grow(1, 0);
    burst(200);
    grow(10, 0);
    expect(perSecond()).toBeUndefined();
    for (let again = 0; again < 20; again += 1) {
      burst(200);
      expect(perSecond()).toBeGreaterThanOrEqual(10);
      expect(perSecond()).toBeLessThanOrEqual(30);
      grow(10, 0);
    }
  });
});

it('a rate over a longer period is kept for as long', () => {
  const rate = new Rate(300 * SECOND);
  rate.note(0, 0);
  // A document a minute.
  for (let minute = 1; minute <= 10; minute += 1) rate.note(minute * 60 * SECOND, minute);
  const perMinute = (at: number) => (rate.perSecond(at * SECOND, 10) ?? 0) * 60;
  expect(perMinute(600)).toBeCloseTo(1, 1);
  expect(perMinute(700)).toBeGreaterThan(0.5);
  expect(rate.perSecond(901 * SECOND, 10)).toBeUndefined();
});

it('a count that falls has no rate', () => {
  const rate = new Rate();
  rate.note(0, 50);
  rate.note(10 * SECOND, 3);
  expect(rate.perSecond(10 * SECOND, 3)).toBeUndefined();
});
