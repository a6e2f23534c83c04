import { describe, expect, it } from 'vitest';
import { Wake } from '../../src/uplink/wake.js';
import { FakeClock } from '../support/fake-clock.js';

describe('a sleeping loop', () => {
  it('gets up now and then where a time is waited for: the wall clock may have been set ahead', async () => {
    const clock = new FakeClock();
    let up = 0;
    void new Wake(clock).wait(3_600_000, new AbortController().signal).then(() => {
      up += 1;
    });
    await clock.advance(20_000);
    expect(up).toBe(0);
    await clock.advance(20_000);
    expect(up).toBe(1);
  });

  it('sleeps for ever where only somebody can wake it', async () => {
    const clock = new FakeClock();
    const wake = new Wake(clock);
    let up = 0;
    void wake.wait(undefined, new AbortController().signal).then(() => {
      up += 1;
    });
    await clock.advance(3_600_000);
    expect(up).toBe(0);
    wake.ring();
    await clock.advance(0);
    expect(up).toBe(1);
  });
});
