import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/lib/logger.js';
import { Attempts } from '../../src/page/guard.js';
import { FakeClock } from '../support/fake-clock.js';

function guess(attempts: Attempts, address: string, times: number): void {
  for (let i = 0; i < times; i += 1) attempts.wrong(address);
}

describe('wrong tokens', () => {
  it('make an address wait twice as long each time, up to half a minute', () => {
    const attempts = new Attempts(new FakeClock(), silentLogger);
    const waits = Array.from({ length: 12 }, () => {
      attempts.wrong('10.0.0.1');
      return attempts.waitMs('10.0.0.1');
    });
    expect(waits).toEqual([0, 0, 0, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
  });

  it('make nobody else wait, but who has the same IPv6 network', () => {
    const attempts = new Attempts(new FakeClock(), silentLogger);
    guess(attempts, '10.0.0.1', 10);
    guess(attempts, '2001:db8:1:2::1', 10);
    guess(attempts, '::ffff:10.0.0.9', 10);
    expect(attempts.waitMs('10.0.0.2')).toBe(0);
    expect(attempts.waitMs('::ffff:10.0.0.8')).toBe(0);
    expect(attempts.waitMs('2001:db8:1:3::1')).toBe(0);
    expect(attempts.waitMs('2001:db8:1:2:ffff::7')).toBeGreaterThan(0);
    expect(attempts.waitMs('2001:db8:1:2:0:1:2:3')).toBeGreaterThan(0);
  });

  it('are forgiven by the right one, and after a while', async () => {
    const clock = new FakeClock();
    const attempts = new Attempts(clock, silentLogger);
    guess(attempts, 'a', 10);
    attempts.right('a');
    expect(attempts.waitMs('a')).toBe(0);
    guess(attempts, 'b', 10);
    await clock.advance(16 * 60_000);
    guess(attempts, 'b', 1);
    expect(attempts.waitMs('b')).toBe(0);
  });

  it('are remembered of a bounded number of addresses: who goes on is not forgotten', () => {
    const attempts = new Attempts(new FakeClock(), silentLogger);
    guess(attempts, 'early', 10);
    for (let i = 0; i < 600; i += 1) attempts.wrong(`x${i}`);
    guess(attempts, 'early', 1);
    for (let i = 0; i < 900; i += 1) attempts.wrong(`y${i}`);
    expect(attempts.waitMs('early')).toBeGreaterThan(0);
    for (let i = 0; i < 1_000; i += 1) attempts.wrong(`z${i}`);
    expect(attempts.waitMs('early')).toBe(0);
  });

  it('are told once an address, and once a minute', async () => {
    const clock = new FakeClock();
    const said: string[] = [];
    const attempts = new Attempts(clock, { ...silentLogger, warn: (_, message) => void said.push(message) });
    for (let i = 0; i < 100; i += 1) guess(attempts, `10.0.0.${i}`, 2);
    expect(said).toHaveLength(1);
    await clock.advance(60_000);
    guess(attempts, '10.0.0.1', 5);
    expect(said).toHaveLength(1);
    guess(attempts, '10.1.0.1', 5);
    expect(said).toHaveLength(2);
  });
});
