import { expect, test } from 'vitest';
import type { RequestQueue } from '../../src/queue/request-queue.js';
import { Gate, lanesOf, openQueue, settle, UNLIMITED } from './queue-setup.js';

/** A queue whose peer has shown that it bears as many requests as there are slots. */
async function openSlots(options: Parameters<typeof openQueue>[0] = {}) {
  const { queue } = openQueue({ maxConcurrency: 2, ...options });
  for (let i = 0; i < 2; i += 1) await queue.run('push', async () => {});
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

test('slots are shared by confirm and push; the other lanes have their own', async () => {
  const { queue, gate } = await openSlots({ lanes: lanesOf({ ...UNLIMITED, concurrency: 2 }) });
  for (const lane of ['push', 'confirm', 'mirror', 'audit', 'interactive'] as const)
    enter(queue, gate, lane, lane, `${lane} 2`);
  expect(gate.order).toEqual([
    ...['push', 'push 2', 'mirror', 'mirror 2', 'audit', 'audit 2', 'interactive', 'interactive 2'],
  ]);
  expect(queue.status().concurrency.running).toBe(2);
  gate.end('push');
  await settle();
  expect(gate.order.at(-1)).toBe('confirm');
});

test('the last free slots are kept for push until two of it run, or one where there are two slots', async () => {
  const many = await openSlots({ maxConcurrency: 4 });
  while (many.queue.status().concurrency.limit < 4)
    await Promise.all(['a', 'b', 'c', 'd'].map(() => many.queue.run('push', async () => {})));
  await settle();
  enter(many.queue, many.gate, 'push', 'p1');
  enter(many.queue, many.gate, 'confirm', 'c1', 'c2', 'c3', 'c4', 'c5');
  enter(many.queue, many.gate, 'push', 'p2', 'p3');
  expect(many.gate.order).toEqual(['p1', 'c1', 'c2', 'c3']);
  many.gate.end('c1');
  await settle();
  expect(many.gate.order.at(-1)).toBe('p2');
  many.gate.end('c2');
  await settle();
  expect(many.gate.order.at(-1)).toBe('c4');
  const { queue, gate } = await openSlots();
  enter(queue, gate, 'confirm', 'c1', 'c2', 'c3');
  enter(queue, gate, 'push', 'p1', 'p2');
  gate.end('c1');
  await settle();
  gate.end('c2');
  await settle();
  expect(gate.order).toEqual(['c1', 'c2', 'p1', 'c3']);
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

test('no slot is kept for push that it could not use', async () => {
  const one = { ...UNLIMITED, concurrency: 1 };
  const { queue, gate } = await openSlots({ maxConcurrency: 4, lanes: lanesOf(UNLIMITED, { push: one }) });
  while (queue.status().concurrency.limit < 4)
    await Promise.all(['a', 'b', 'c', 'd'].map(() => queue.run('confirm', async () => {})));
  await settle();
  enter(queue, gate, 'push', 'p1', 'p2');
  enter(queue, gate, 'confirm', 'c1', 'c2', 'c3', 'c4');
  expect(gate.order).toEqual(['p1', 'c1', 'c2', 'c3']);
});
