import { serve } from '../lib/work-thread.js';
import { listWork } from './lister.js';

// A thread that lists directories.
serve(listWork);
