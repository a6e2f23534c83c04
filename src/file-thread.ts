import { fingerprintNow, type ReadOrder } from './content/reader.js';
import { serve } from './lib/work-thread.js';
import { type PackOrder, pack } from './uplink/documents.js';
import { type ListOrder, list } from './watch/lister.js';

// What threads do: one reads files, for what comes in and what goes out, for each thread costs 10 MB; others list directories.
serve({
  list: (order: ListOrder) => ({ value: list(order) }),
  read: (orders: readonly ReadOrder[]) => ({ value: orders.map(fingerprintNow) }),
  pack: (order: PackOrder) => ({ value: pack(order) }),
});
