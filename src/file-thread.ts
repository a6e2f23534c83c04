import { serve } from './lib/work-thread.js';
import { type Order, pack } from './uplink/packing.js';
import { type ReadingOrder, readNow } from './watch/reading.js';

// The thread that reads files: one for what comes in and what goes out, for each thread costs 10 MB.
serve({
  read: (orders: readonly ReadingOrder[]) => ({ value: orders.map(readNow) }),
  pack: (order: Order) => {
    const delivery = pack(order);
    return { value: delivery, transfer: [delivery.bytes.buffer, delivery.figures.buffer] };
  },
});
