import { expect, test } from 'vitest';
import { silentLogger } from '../../src/lib/logger.js';
import { Breaker } from '../../src/queue/breaker.js';
import { DEFAULT_POLICY } from '../../src/queue/options.js';

function pauseOf(random = 1) {
  const deps = { policy: DEFAULT_POLICY, log: silentLogger, peerName: 'peer', random: () => random };
  const breaker = new Breaker(deps, 0);
  const ticket = (startedAt: number) => ({ lane: 'push' as const, startedAt, epoch: 0 });
  return {
    busy: (startedAt: number, now: number, retryAfterMs?: number) =>
      breaker.ended({
        ticket: ticket(startedAt),
        outcome: { kind: 'busy', ...(retryAfterMs === undefined ? {} : { retryAfterMs }) },
        now,
      }),
    answered: (startedAt: number) =>
      breaker.ended({ ticket: ticket(startedAt), outcome: { kind: 'answered' }, now: startedAt }),
    get until() {
      return breaker.pausedUntil;
    },
  };
}

test('a pause lasts as long as the peer asks', () => {
  const pause = pauseOf();
  pause.busy(0, 1000, 30_000);
  expect(pause.until).toBe(31_000);
});

test('the longest of several waits counts', () => {
  const pause = pauseOf();
  pause.busy(0, 1000, 30_000);
  pause.busy(0, 2000, 5000);
  expect(pause.until).toBe(31_000);
});

test('no peer is believed that asks for more than an hour', () => {
  const pause = pauseOf();
  pause.busy(0, 0, 86_400_000);
  expect(pause.until).toBe(3_600_000);
});

test.each([undefined, 0, -5, Number.NaN])(
  'without a usable wait (%s) it doubles from a second to a minute',
  (asked) => {
    const pause = pauseOf();
    const waits: number[] = [];
    for (let now = 0, i = 0; i < 8; i += 1) {
      pause.busy(now, now, asked);
      waits.push(pause.until - now);
      now = pause.until;
    }
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
  },
);

test('tasks that were under way together double it once', () => {
  const pause = pauseOf();
  for (let i = 0; i < 4; i += 1) pause.busy(0, 100, undefined);
  expect(pause.until).toBe(1100);
});

test('an answer makes it short again, unless it was under way when the peer asked', () => {
  const pause = pauseOf();
  for (let now = 0; now < 20_000; now = pause.until) pause.busy(now, now, undefined);
  const now = pause.until;
  pause.answered(now - 30_000);
  pause.busy(now, now, undefined);
  expect(pause.until - now).toBeGreaterThan(20_000);
  pause.answered(pause.until);
  const later = pause.until;
  pause.busy(later, later, undefined);
  expect(pause.until - later).toBe(1000);
});

test('the wait is shortened at random by up to half', () => {
  const pause = pauseOf(0);
  pause.busy(0, 0, undefined);
  expect(pause.until).toBe(500);
});
