import { describe, expect, it } from 'vitest';
import { Moment } from '../../src/lib/moment.js';
import { FakeClock } from '../support/fake-clock.js';

const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;

describe('a moment that is over', () => {
  it.each([YEAR_MS, HOUR_MS, -HOUR_MS, -YEAR_MS])(
    'is as long ago as time passed, though the clock is set by %d ms',
    async (byMs) => {
      const clock = new FakeClock();
      const moment = new Moment(clock, 5_000);
      await clock.advance(HOUR_MS);
      clock.set(byMs);
      expect(clock.now() - moment.at).toBe(HOUR_MS + 5_000);
      clock.set(byMs);
      await clock.advance(HOUR_MS);
      expect(clock.now() - moment.at).toBe(2 * HOUR_MS + 5_000);
    },
  );

  it('has the date it had, though the machine sleeps, or the clock is put right by a little', async () => {
    const clock = new FakeClock();
    const moment = new Moment(clock);
    const began = clock.now();
    clock.suspend(8 * HOUR_MS);
    expect(moment.at).toBe(began);
    clock.set(1_500);
    expect(moment.at).toBe(began);
    clock.set(1_500);
    expect(moment.at).toBe(began + 3_000);
  });
});
