import type { ReadOrder } from './content/open.js';
import { fingerprintNow } from './content/reader.js';
import { serve } from './lib/work-thread.js';
import { pack } from './uplink/documents.js';
import { list } from './watch/lister.js';

// What threads do: one reads files, for what comes in and what goes out, for each thread costs 10
// MB; others list directories.
serve({ list, read: (orders: readonly ReadOrder[]) => orders.map(fingerprintNow), pack });
