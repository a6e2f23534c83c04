import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LineStore } from '../../src/state/entries.js';

/** Lines of few lengths, so that they follow each other in a place. */
const alike = fc
  .tuple(fc.nat(), fc.constantFrom(20, 100, 150))
  .map(([number, length]) => String(number).padEnd(length, '.'));
/** Those, others of any length and script, empty ones, and now and then one larger than a slab. */
const line = fc.oneof(
  { weight: 40, arbitrary: alike },
  { weight: 20, arbitrary: fc.string({ unit: 'binary', maxLength: 400 }) },
  {
    weight: 5,
    arbitrary: fc.constantFrom('', 'x'.repeat(152), 'x'.repeat(153), 'ü'.repeat(76), 'ü'.repeat(77)),
  },
  { weight: 1, arbitrary: fc.constantFrom('large'.repeat(250_000), '…'.repeat(349_523)) },
);
const step = fc.record({
  what: fc.constantFrom('add', 'add', 'set', 'remove'),
  which: fc.nat(),
  line,
  room: fc.constantFrom(0, 48),
});

describe('lines outside of the heap', () => {
  it('are what was put there last, whatever happens to others', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 30, maxLength: 100, size: 'max' }), (steps) => {
        const store = new LineStore();
        const lines = new Map<number, string>();
        for (const { what, which, line, room } of steps) {
          const at = [...lines.keys()][which % Math.max(1, lines.size)];
          if (what === 'add' || at === undefined) {
            const added = store.put(line, room);
            expect(lines.has(added)).toBe(false);
            lines.set(added, line);
          } else if (what === 'set') {
            lines.delete(at);
            lines.set(store.put(line, room, at), line);
          } else {
            store.remove(at);
            lines.delete(at);
          }
        }
        for (const [at, line] of lines) expect(store.get(at)).toBe(line);
      }),
      { numRuns: 100 },
    );
  });

  it('take the places of those that went', () => {
    const store = new LineStore();
    const taken = () => process.memoryUsage().arrayBuffers;
    const before = taken();
    for (let i = 0; i < 500_000; i += 1) {
      const at = store.put('confirmed'.repeat(16), 0, store.put('pending'.repeat(15), 48));
      store.remove(store.put('quarantined'.repeat(20 + (i % 20)), 0, at));
    }
    expect(taken() - before).toBeLessThan(8 * 1024 * 1024);
  });
});
