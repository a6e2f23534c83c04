import { describe, expect, test } from 'vitest';
import { LaneState } from '../../src/queue/lane.js';
import { eachLane, type Lane } from '../../src/queue/lanes.js';
import type { LaneLimits } from '../../src/queue/limits.js';
import { Slots } from '../../src/queue/slots.js';
import { FakeClock } from '../support/fake-clock.js';
import { Gate, lanesOf, settle, UNLIMITED } from './at-the-door.js';

/** Slots, two of them shared unless said otherwise, that nothing keeps back. */
function openSlots(given: { readonly shared?: number; readonly limits?: Record<Lane, LaneLimits> } = {}) {
  const clock = new FakeClock();
  const limits = given.limits ?? lanesOf(UNLIMITED);
  const lanes = eachLane((name) => new LaneState(name, limits[name]));
  const now = { shared: given.shared ?? 2, from: new Map<Lane, number>(), freed: 0 };
  const slots = new Slots({
    ...{ lanes, clock, patienceMs: 10_000 },
    shared: () => now.shared,
    admitsFrom: (lane) => now.from.get(lane) ?? Number.NEGATIVE_INFINITY,
    onFree: () => {
      now.freed += 1;
    },
  });
  const gate = new Gate();
  const enter = (lane: Lane, ...names: string[]) => {
    for (const name of names) {
      void slots.enter(lane, name, async () => {
        await gate.task(name)();
        slots.leave(lane);
      });
    }
  };
  return { slots, lanes, clock, now, gate, enter };
}

describe('the slots', () => {
  test('are given in the instant that a task enters, while there are any', () => {
    const { slots, lanes, gate, enter } = openSlots();
    enter('push', 'a', 'b', 'c');
    slots.fill();
    expect(gate.order).toEqual(['a', 'b']);
    expect([slots.sharedInUse, slots.isFull, lanes.push.running, lanes.push.waiting]).toEqual([
      2,
      true,
      2,
      1,
    ]);
  });

  test('that are shared are had by confirm, push and audit together, the others by one lane each', async () => {
    const { slots, gate, enter } = openSlots({ limits: lanesOf({ ...UNLIMITED, concurrency: 1 }) });
    for (const lane of ['audit', 'push', 'confirm', 'mirror', 'interactive'] as const)
      enter(lane, lane, `${lane} 2`);
    slots.fill();
    expect(gate.order.toSorted()).toEqual(['audit', 'interactive', 'mirror', 'push']);
    expect(slots.sharedInUse).toBe(2);
    gate.end('audit');
    await settle();
    expect(gate.order.at(-1)).toBe('confirm');
  });

  test('pass to the next when the work of a task is over, which is told', async () => {
    const { slots, now, gate, enter } = openSlots({ shared: 1 });
    enter('push', 'a', 'b');
    gate.end('a');
    await settle();
    expect(gate.order).toEqual(['a', 'b']);
    expect([now.freed, slots.sharedInUse]).toEqual([1, 1]);
    gate.end('b');
    await settle();
    expect([now.freed, slots.sharedInUse]).toEqual([2, 0]);
  });

  test('are taken in turns by push and the others where there is but one', async () => {
    const { gate, enter } = openSlots({ shared: 1 });
    enter('push', 'push 1', 'push 2');
    enter('confirm', 'confirm 1', 'confirm 2');
    for (let i = 0; i < 4; i += 1) {
      gate.end(gate.running[0] ?? '');
      await settle();
    }
    expect(gate.order).toEqual(['push 1', 'confirm 1', 'push 2', 'confirm 2']);
  });

  test('that became more, or a lane that is kept back no more, are seen when they are filled', () => {
    const { slots, now, gate, enter } = openSlots({ shared: 1 });
    now.from.set('audit', 5_000);
    now.from.set('mirror', 5_000);
    enter('push', 'a', 'b');
    enter('audit', 'c');
    enter('mirror', 'd');
    now.shared = 5;
    expect(gate.order).toEqual(['a']);
    slots.fill();
    expect(gate.order).toEqual(['a', 'b']);
    now.from.clear();
    slots.fill();
    expect(gate.order).toEqual(expect.arrayContaining(['a', 'b', 'c', 'd']));
  });

  test('know whether a task that waits may start', async () => {
    const { slots, now, gate, enter } = openSlots({ shared: 1 });
    enter('push', 'a');
    expect(slots.mayStart('push')).toBe(false);
    enter('push', 'b');
    expect(slots.mayStart('push')).toBe(false);
    now.shared = 2;
    expect(slots.mayStart('push')).toBe(true);
    now.from.set('push', 1);
    expect(slots.mayStart('push')).toBe(false);
    now.from.set('mirror', 1);
    enter('mirror', 'c');
    expect(slots.mayStart('mirror')).toBe(false);
    now.from.clear();
    now.shared = 1;
    // Its slots are its own.
    expect([slots.mayStart('mirror'), slots.mayStart('push')]).toEqual([true, false]);
    gate.end('a');
  });

  test('have room in a lane for as many as could start together, for one where its rate is spent, and none where it is kept back', async () => {
    const limits = lanesOf({ requestsPerSecond: 1, concurrency: 3 });
    const { slots, now, clock, enter } = openSlots({ shared: 2, limits });
    const room = () => (['push', 'mirror'] as const).map((lane) => slots.room(lane, clock.monotonic()));
    expect(room()).toEqual([2, 3]);
    for (const lane of ['push', 'mirror'] as const) enter(lane, lane);
    expect(room()).toEqual([1, 1]);
    for (const lane of ['push', 'mirror'] as const) enter(lane, `${lane} 2`);
    expect(room()).toEqual([0, 0]);
    await clock.advance(1_000);
    slots.fill();
    await clock.advance(1_000);
    expect(room()).toEqual([2, 3]);
    now.from.set('push', clock.monotonic() + 1);
    expect(room()).toEqual([0, 3]);
  });
});
