import { fingerprintNow, type ReadOrder } from './content/reader.js';
import { serve } from './lib/work-thread.js';
import { type Order, pack } from './uplink/packing.js';

// The thread that reads files: one for what comes in and what goes out, for each thread costs 10 MB.
serve({
  read: (orders: readonly ReadOrder[]) => ({ value: orders.map(fingerprintNow) }),
  pack: (order: Order) => {
    const delivery = pack(order);
    return { value: delivery, transfer: [delivery.bytes.buffer, delivery.figures.buffer] };
  },
});
