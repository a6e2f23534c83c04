import { serve } from './lib/work-thread.js';
import { packDocument } from './uplink/documents.js';

// What reads documents (PDF, office, e-mail) has a thread of its own: a damaged one may take all its time and memory, and it is ended.
// Libraries that complain of such a file on the console say nothing that the item does not say.
console.log = console.warn = console.error = () => {};
// PDF.js leaves promises alone that a damaged file rejects, also where it reads the file.
process.on('unhandledRejection', () => {});
serve({ packDocument });
