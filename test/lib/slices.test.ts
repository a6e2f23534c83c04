import { describe, expect, it } from 'vitest';
import { inSlices, Pace, withPauses, Yielder } from '../../src/lib/slices.js';

/** Counts the turns of the event loop during `work`. */
async function turnsDuring(work: () => Promise<void>): Promise<number> {
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    if (isOver) return;
    turns += 1;
    setImmediate(count);
  };
  setImmediate(count);
  await work();
  isOver = true;
  return turns;
}

describe('long work in slices', () => {
  it('has all items in order, and the event loop runs after each full slice', async () => {
    const slices: (readonly number[])[] = [];
    const turns = await turnsDuring(async () => {
      for await (const slice of inSlices([1, 2, 3, 4, 5], 2)) slices.push(slice);
    });
    expect(slices).toEqual([[1, 2], [3, 4], [5]]);
    expect(turns).toBe(2);
  });

  it('has all items one by one', async () => {
    const items: number[] = [];
    const turns = await turnsDuring(async () => {
      for await (const item of withPauses(new Set([1, 2, 3]), 1)) items.push(item);
    });
    expect(items).toEqual([1, 2, 3]);
    expect(turns).toBe(3);
  });

  it('counts steps over several loops', () => {
    const pace = new Pace(3);
    const ends = Array.from({ length: 7 }, (_, step) => (pace.step() ? step : -1));
    expect(ends.filter((step) => step !== -1)).toEqual([2, 5]);
  });

  it('yields after 8 ms of work, and measures the next slice from then on', async () => {
    let now = 0;
    const yielder = new Yielder({ now: () => now });
    now = 7;
    expect(await turnsDuring(() => yielder.turn())).toBe(0);
    now = 8;
    expect(yielder.isDue).toBe(true);
    expect(await turnsDuring(() => yielder.turn())).toBe(1);
    expect(yielder.isDue).toBe(false);
  });
});
