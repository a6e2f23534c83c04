import { describe, expect, it } from 'vitest';
import { Schedule } from '../../src/mirror/schedule.js';
import { FakeClock } from '../support/fake-clock.js';

const MINUTE = 60_000;

/** How far away the next turn is, with chance at this point from 0 to 1. */
function ahead(plan: (schedule: Schedule) => void, chance: number): number {
  const schedule = new Schedule(new FakeClock(), () => chance);
  plan(schedule);
  return schedule.untilNext();
}

describe('the schedule of mirrors', () => {
  it('lets all run soon after the start, spread over ten seconds, or over less where they run more often', () => {
    const first = (every: number) => (schedule: Schedule) => schedule.first('m', every);
    expect([0, 0.5, 1].map((chance) => ahead(first(MINUTE), chance))).toEqual([0, 5_000, 10_000]);
    expect(ahead(first(2_000), 1)).toBe(2_000);
  });

  it('lets each run every so often, a tenth more or less', () => {
    const next = (schedule: Schedule) => schedule.next('m', MINUTE);
    expect([0, 0.5, 1].map((chance) => Math.round(ahead(next, chance)))).toEqual([54_000, 60_000, 66_000]);
  });

  it('tries again after 30 seconds, then after twice as long each time, but never later than usual', () => {
    const tries = [1, 2, 3, 4, 100].map((failures) =>
      ahead((schedule) => schedule.retry('m', 3 * MINUTE, failures), 0.5),
    );
    expect(tries).toEqual([30_000, 60_000, 120_000, 180_000, 180_000]);
  });

  it('says what is due, the one that waits longest first, each until it is planned anew', async () => {
    const clock = new FakeClock();
    const schedule = new Schedule(clock, () => 0.5);
    schedule.in('b', 200);
    schedule.in('a', 100);
    schedule.in('c', 300);
    expect(schedule.due()).toEqual([]);
    expect(schedule.untilNext()).toBe(100);
    await clock.advance(200);
    expect(schedule.due()).toEqual(['a', 'b']);
    schedule.forget('a');
    schedule.in('b', 1_000);
    expect(schedule.due()).toEqual([]);
    expect(schedule.nextAt('b')).toBe(clock.now() + 1_000);
  });

  it.each([365 * 24 * 60 * MINUTE, -365 * 24 * 60 * MINUTE])(
    'tells when the next run is by the clock as it stands, also where that is set by %d ms',
    async (byMs) => {
      const clock = new FakeClock();
      const schedule = new Schedule(clock, () => 0.5);
      schedule.next('m', 2 * MINUTE);
      await clock.advance(MINUTE);
      const told = schedule.nextAt('m');
      expect(told).toBe(clock.now() + MINUTE);
      clock.set(byMs);
      expect(schedule.nextAt('m')).toBe(clock.now() + MINUTE);
      clock.set(1_000 - byMs);
      expect(schedule.nextAt('m')).toBe(told);
    },
  );
});
