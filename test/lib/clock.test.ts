import { beforeEach, describe, expect, it } from 'vitest';
import { steadyTime } from '../../src/lib/clock.js';

const HOUR_MS = 3_600_000;

let wall: number;
let monotonic: number;
let uptime: () => number;
let asked: number;
let now: () => number;
let startedAt: number;

/** How long the machine slept since the start. */
const slept = () => now() - startedAt - (monotonic - 5_000);

beforeEach(() => {
  [wall, monotonic, asked] = [1_800_000_000_000, 5_000, 0];
  uptime = () => monotonic + 70_000;
  startedAt = wall;
  now = steadyTime(
    () => wall,
    () => monotonic,
    () => {
      asked += 1;
      return uptime();
    },
  );
  expect(slept()).toBe(0);
});

function pass(ms: number): void {
  wall += ms;
  monotonic += ms;
}

function suspend(ms: number): void {
  wall += ms;
  const before = uptime;
  uptime = () => before() + ms;
}

describe('the sleep of the machine', () => {
  it('is what the kernel counts and the monotonic clock does not, sleep by sleep', () => {
    pass(HOUR_MS);
    suspend(8 * HOUR_MS);
    expect(slept()).toBe(8 * HOUR_MS);
    pass(HOUR_MS);
    suspend(HOUR_MS);
    pass(HOUR_MS);
    expect(slept()).toBe(9 * HOUR_MS);
  });

  it('is not less because the kernel tells whole seconds', () => {
    suspend(HOUR_MS + 400);
    expect(slept()).toBe(HOUR_MS + 400);
    const exact = uptime;
    uptime = () => Math.floor(exact() / 1_000) * 1_000;
    wall += 8 * HOUR_MS;
    expect(slept()).toBe(HOUR_MS + 400);
  });

  it('is not asked for while the clocks run beside each other', () => {
    for (let i = 0; i < 1_000; i += 1) {
      pass(1_000);
      wall += i % 2;
      slept();
    }
    expect(asked).toBe(1);
  });
});

it.each([8 * HOUR_MS, -8 * HOUR_MS])('a wall clock that is set by %d ms moves no steady time', (byMs) => {
  pass(HOUR_MS);
  wall += byMs;
  expect(now()).toBe(startedAt + HOUR_MS);
  pass(HOUR_MS);
  suspend(HOUR_MS);
  wall += byMs;
  expect(now()).toBe(startedAt + 3 * HOUR_MS);
});
