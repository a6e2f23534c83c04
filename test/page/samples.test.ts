import { describe, expect, it } from 'vitest';
import { withSamples } from '../../src/page/browser/words.js';
import type { Sample } from '../../src/report/statistics.js';

const SLOT = 10_000;
const HOUR = 3_600_000;

function sample(at: number): Sample {
  return { at, confirmed: 0, waiting: 0 };
}

/** As many as there are in so long, up to `end`. */
function upTo(end: number, count: number): Sample[] {
  return Array.from({ length: count }, (_, i) => sample(end - (count - 1 - i) * SLOT));
}

describe('the samples that the page draws', () => {
  it('are those of the last hour, oldest first', () => {
    const known = withSamples([], upTo(HOUR, 360));
    const now = withSamples(known, [sample(HOUR + SLOT)]);
    expect(now).toEqual(upTo(HOUR + SLOT, 360));
    expect(withSamples(now, [])).toBe(now);
  });

  it('do not lie in the future, and are in order, where the clock of the daemon was set back', () => {
    const known = upTo(2 * HOUR, 180);
    expect(withSamples(known, [sample(HOUR)])).toEqual([sample(HOUR)]);
    const at = 2 * HOUR - 20 * SLOT + 1;
    const now = withSamples(known, [sample(at)]);
    expect(now.at(-1)).toEqual(sample(at));
    expect(now).toHaveLength(161);
    expect(now.every((one, i) => one.at > (now[i - 1]?.at ?? 0))).toBe(true);
  });
});
