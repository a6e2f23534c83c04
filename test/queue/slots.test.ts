import { expect, test } from 'vitest';
import type { RequestQueue } from '../../src/queue/request-queue.js';
import { Gate, lanesOf, openQueue, settle, UNLIMITED } from './queue-setup.js';

/** A queue whose peer has shown that it bears as many requests as there are slots. */
async function openSlots(options: Parameters<typeof openQueue>[0] = {}) {
  const { queue } = openQueue({ maxConcurrency: 2, ...options });
  for (let i = 0; i < 2; i += 1) await queue.run('audit', async () => {});
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
  expect(queue.status().concurrency).toEqual({ running: 2, limit: 2, max: 2 });
  expect(queue.status().lanes.push).toMatchObject({ running: 2, waiting: 1 });
});

test('slots are shared by confirm, push and audit; the other lanes have their own', async () => {
  const { queue, gate } = await openSlots({ lanes: lanesOf({ ...UNLIMITED, concurrency: 1 }) });
  for (const lane of ['audit', 'push', 'confirm', 'mirror', 'interactive'] as const)
    enter(queue, gate, lane, lane, `${lane} 2`);
  expect(gate.order.toSorted()).toEqual(['audit', 'interactive', 'mirror', 'push']);
  expect(queue.status().concurrency.running).toBe(2);
  gate.end('audit');
  await settle();
  expect(gate.order.at(-1)).toBe('confirm');
});

test('there is room in a lane for as many as could start together, and none while it is paused', async () => {
  const { queue, gate } = await openSlots({ lanes: lanesOf({ ...UNLIMITED, concurrency: 3 }) });
  const roomFor = async (lane: 'push' | 'mirror') => {
    let released = 0;
    for (; queue.hasRoom(lane); released += 1) enter(queue, gate, lane, `${lane} ${released}`);
    return released;
  };
  // As many run, and as many more wait.
  expect(await roomFor('push')).toBe(4);
  expect(await roomFor('mirror')).toBe(6);
  gate.end('push 0');
  await settle();
  expect(queue.hasRoom('push')).toBe(true);
  queue.pause({ since: 0 });
  expect(queue.hasRoom('push')).toBe(false);
});
