import { z } from 'zod';
import { assertNotPaused, manyLines } from './request.js';
import { mirrorReport, names } from './shapes.js';

/** Brings mirrored files up to date now; one line a mirror, as soon as it is done. */
export const mirror = manyLines({
  name: 'mirror',
  path: 'mirrors/run',
  field: 'mirrors',
  needs: 'daemon',
  question: z.object({
    /** @default all mirrors */
    names: names.optional(),
  }),
  line: mirrorReport,
  async *lots({ live }, asked) {
    assertNotPaused(live);
    for await (const report of live.parts.mirrors.run(asked.names)) yield [report];
  },
});

/** Accepts the conditions of mirrors; one line a mirror, as soon as it is done. */
export const mirrorAccept = manyLines({
  name: 'mirror-accept',
  path: 'mirrors/accept',
  field: 'mirrors',
  needs: 'daemon',
  question: z.object({ names }),
  line: mirrorReport,
  async *lots({ live }, asked) {
    assertNotPaused(live);
    for (const name of asked.names) yield [await live.parts.mirrors.accept(name)];
  },
});
