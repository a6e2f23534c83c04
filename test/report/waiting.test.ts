import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WaitingItems } from '../../src/report/waiting.js';

const since = fc.integer({ min: 0, max: 200_000 });
const NOW = 1_000_000;

describe('what waits', () => {
  it('is counted, and the oldest is known within 5 s, whatever comes and goes', () => {
    const step = fc.record({ since, leaves: fc.nat({ max: 9 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const waiting = new WaitingItems();
        const list: number[] = [];
        for (const item of steps) {
          list.push(item.since);
          waiting.add(item.since);
          const [left] = item.leaves < 5 ? list.splice(item.leaves % list.length, 1) : [];
          if (left !== undefined) waiting.remove(left);
          expect(waiting.count).toBe(list.length);
          const oldest = waiting.oldestSince(NOW, 0);
          if (list.length === 0) expect(oldest).toBeUndefined();
          else {
            expect(oldest).toBeGreaterThan(Math.min(...list));
            expect(oldest).toBeLessThanOrEqual(Math.min(...list) + 5_000);
          }
        }
      }),
    );
  });
});
