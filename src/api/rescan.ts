import { z } from 'zod';
import { knownFolder } from '../report/items.js';
import { manyLines } from './request.js';
import { scanReport } from './shapes.js';

/** A scan of one folder or of all folders now; one line a folder, when all scans are done. */
export const rescan = manyLines({
  name: 'rescan',
  field: 'scans',
  needs: 'daemon',
  question: z.object({ folder: z.string().optional() }),
  line: scanReport,
  async *lots({ live }, { folder }) {
    const { watcher } = live.parts;
    const known = knownFolder(live.current.config, folder);
    yield known === undefined ? await watcher.scanAll() : await watcher.scanAcceptingRoot(known);
  },
});
