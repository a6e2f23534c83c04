import { expect, test } from 'vitest';
import type { RequestQueue } from '../../src/queue/request-queue.js';
import { Gate, openQueue, settle, slots } from './queue-setup.js';

/** A queue with two slots a lane, whose peer has shown that it bears two pushes. */
async function openSlots() {
  const { queue } = openQueue({ lanes: slots(2) });
  await queue.run('push', async () => {});
  await settle();
  return { queue, gate: new Gate() };
}

function enter(
  queue: RequestQueue,
  gate: Gate,
  lane: Parameters<RequestQueue['run']>[0],
  ...names: string[]
) {
  for (const name of names) void queue.run(lane, gate.task(name));
}

test('slots are taken in the instant that a request enters, while there are any', async () => {
  const { queue, gate } = await openSlots();
  enter(queue, gate, 'push', 'a', 'b', 'c');
  expect(gate.order).toEqual(['a', 'b']);
  expect(queue.status().concurrency).toEqual({ running: 2, limit: 3, max: 4 });
  expect(queue.status().lanes.push).toMatchObject({ running: 2, waiting: 1 });
});

test('each lane has its own slots', async () => {
  const { queue, gate } = await openSlots();
  for (const lane of ['push', 'confirm', 'mirror', 'audit', 'interactive'] as const)
    enter(queue, gate, lane, lane, `${lane} 2`, `${lane} 3`);
  expect(gate.order).toEqual([
    ...[
      'push',
      'push 2',
      'confirm',
      'mirror',
      'mirror 2',
      'audit',
      'audit 2',
      'interactive',
      'interactive 2',
    ],
  ]);
  // The peer has not shown yet that it bears two look-ups.
  expect(queue.status().concurrency).toEqual({ running: 3, limit: 3, max: 4 });
  gate.end('push');
  await settle();
  expect(gate.order.at(-1)).toBe('push 3');
});

test('there is room in a lane for as many as could start together, and none while it is paused', async () => {
  const { queue, gate } = await openSlots();
  const roomFor = async (lane: 'push' | 'mirror') => {
    let released = 0;
    for (; queue.hasRoom(lane); released += 1) enter(queue, gate, lane, `${lane} ${released}`);
    return released;
  };
  // As many run, and as many more wait.
  expect(await roomFor('push')).toBe(4);
  expect(await roomFor('mirror')).toBe(4);
  gate.end('push 0');
  await settle();
  expect(queue.hasRoom('push')).toBe(true);
  queue.pause({ since: 0 });
  expect(queue.hasRoom('push')).toBe(false);
});
