import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Waiting } from '../../src/report/waiting.js';

const since = fc.integer({ min: 0, max: 200_000 });

describe('what waits', () => {
  it.each([true, false])(
    'is counted, and the oldest is known within 5 s, whatever comes and goes (%s)',
    (isOfLatest) => {
      const time = { of: (moment: number) => moment, isOfLatest: () => isOfLatest };
      const step = fc.record({ collection: fc.constantFrom('a', 'b'), since, leaves: fc.nat({ max: 9 }) });
      fc.assert(
        fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
          const waiting = new Waiting();
          const list: { collection: string; since: number }[] = [];
          for (const { leaves, ...item } of steps) {
            list.push(item);
            waiting.enters(item.collection, item.since);
            const [left] = leaves < 5 ? list.splice(leaves % list.length, 1) : [];
            if (left !== undefined) waiting.leaves(left.collection, left.since);
            for (const collection of ['a', 'b']) {
              const own = list.filter((one) => one.collection === collection).map((one) => one.since);
              expect(waiting.count(collection)).toBe(own.length);
              const oldest = waiting.oldestSince(collection, time);
              if (own.length === 0) expect(oldest).toBeUndefined();
              else {
                expect(oldest).toBeGreaterThan(Math.min(...own));
                expect(oldest).toBeLessThanOrEqual(Math.min(...own) + 5_000);
              }
            }
          }
        }),
      );
    },
  );
});
