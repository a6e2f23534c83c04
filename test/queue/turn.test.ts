import { describe, expect, test } from 'vitest';
import { LaneQueue, QueuedRequest, turnsOf } from '../../src/queue/lane-queue.js';
import type { Lane } from '../../src/queue/options.js';
import { FakeClock } from '../support/fake-clock.js';
import { UNLIMITED } from './queue-setup.js';

const SHARED: readonly Lane[] = ['confirm', 'push', 'mirror', 'audit'];

interface Given {
  readonly waiting: Partial<Record<Lane, number>>;
  readonly running?: Partial<Record<Lane, number>>;
  readonly limit: number;
  readonly last?: Lane;
  /** Since when tasks of a lane wait unserved; 0 where not given. */
  readonly since?: Partial<Record<Lane, number>>;
  readonly now?: number;
  readonly admits?: (lane: LaneQueue) => boolean;
}

function turn({
  waiting,
  running = {},
  limit,
  last,
  since = {},
  now = 0,
  admits = () => true,
}: Given): Lane | undefined {
  const requestOf = () => new QueuedRequest(async () => {}, new FakeClock(), 0);
  const lanes = SHARED.map((name) => {
    const lane = new LaneQueue(
      name,
      UNLIMITED,
      async () => {},
      () => {},
    );
    for (let i = 0; i < (running[name] ?? 0); i += 1) lane.running.add(requestOf());
    for (let i = 0; i < (waiting[name] ?? 0); i += 1) lane.add(requestOf(), false, since[name] ?? 0);
    return lane;
  });
  const sum = lanes.reduce((n, lane) => n + lane.running.size, 0);
  const ready = lanes.filter((lane) => lane.hasNext && admits(lane));
  return turnsOf(ready, { limit, running: sum, last, patienceMs: 10_000, now })[0]?.name;
}

describe('whose turn it is', () => {
  test('goes by priority', () => {
    expect(turn({ waiting: { confirm: 1, push: 1, mirror: 1, audit: 1 }, limit: 4 })).toBe('confirm');
    expect(turn({ waiting: { push: 1, mirror: 1, audit: 1 }, limit: 4 })).toBe('push');
    expect(turn({ waiting: { mirror: 1, audit: 1 }, limit: 4 })).toBe('mirror');
    expect(turn({ waiting: { audit: 1 }, limit: 4 })).toBe('audit');
  });

  test('is nobody’s while all slots are taken, nothing waits or nothing is let through', () => {
    expect(turn({ waiting: { confirm: 1 }, running: { push: 4 }, limit: 4 })).toBeUndefined();
    expect(turn({ waiting: {}, limit: 4 })).toBeUndefined();
    expect(turn({ waiting: { confirm: 1 }, limit: 4, admits: () => false })).toBeUndefined();
  });

  test('leaves the last free slots to push until two of it run, or one where there are two slots', () => {
    const waiting = { confirm: 9, push: 1 };
    expect(turn({ waiting, running: { confirm: 1 }, limit: 4 })).toBe('confirm');
    expect(turn({ waiting, running: { confirm: 2 }, limit: 4 })).toBe('push');
    expect(turn({ waiting, running: { confirm: 2, push: 1 }, limit: 4 })).toBe('push');
    expect(turn({ waiting, running: { confirm: 1, push: 2 }, limit: 4 })).toBe('confirm');
    expect(turn({ waiting, running: { push: 1 }, limit: 2 })).toBe('confirm');
    expect(turn({ waiting, running: { confirm: 1 }, limit: 2, last: 'push' })).toBe('push');
  });

  test('alternates between push and the others where there is one slot', () => {
    const waiting = { confirm: 9, push: 9 };
    expect(turn({ waiting, limit: 1, last: 'confirm' })).toBe('push');
    expect(turn({ waiting, limit: 1, last: 'push' })).toBe('confirm');
  });

  test('goes to the lane that waits longest once it waits too long', () => {
    const waiting = { confirm: 9, mirror: 1, audit: 1 };
    const since = { confirm: 9000, mirror: 5 };
    expect(turn({ waiting, since, limit: 4, now: 10_000 })).toBe('confirm');
    expect(turn({ waiting, since, limit: 4, now: 10_006 })).toBe('audit');
  });

  test('passes over a lane whose own slots are taken', () => {
    expect(turn({ waiting: { confirm: 1, mirror: 1 }, running: { confirm: 100 }, limit: 200 })).toBe(
      'mirror',
    );
  });
});
