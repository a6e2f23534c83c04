import { parentPort } from 'node:worker_threads';
import { type Order, pack } from './packing.js';

/** The thread behind ThreadPacker: answers each order with its delivery, in turn. */
parentPort?.on('message', (order: Order) => {
  const delivery = pack(order);
  parentPort?.postMessage(delivery, [delivery.bytes.buffer, delivery.figures.buffer]);
});
