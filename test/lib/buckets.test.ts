import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Buckets } from '../../src/lib/buckets.js';

describe('buckets', () => {
  it('count what is at most each bound, and everything', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 20, noNaN: true })), (values) => {
        const bounds = [0.5, 1, 10];
        const buckets = new Buckets(bounds);
        for (const value of values) buckets.add(value);
        const { atMost, count, sum } = buckets.read();
        expect(atMost).toEqual(bounds.map((bound) => values.filter((value) => value <= bound).length));
        expect(count).toBe(values.length);
        expect(sum).toBeCloseTo(values.reduce((a, b) => a + b, 0));
      }),
    );
  });

  it('count a value that is a bound as at most that', () => {
    const buckets = new Buckets([1, 2]);
    buckets.add(1);
    expect(buckets.read()).toMatchObject({ atMost: [1, 1] });
  });
});
