import { fingerprintNow, type ReadOrder } from './content/file-reader.js';
import { serve } from './lib/work-thread.js';
import { pack } from './uplink/documents.js';
import { list } from './watch/lister.js';

/*
 * The tasks of the worker threads. One thread reads files, both for the watcher and for the uplink,
 * because each thread costs 10 MB. Two more list directories.
 */
serve({ list, read: (orders: readonly ReadOrder[]) => orders.map(fingerprintNow), pack });
