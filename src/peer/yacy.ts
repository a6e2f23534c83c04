import type { Dialect } from './dialect.js';
import { standard } from './standard.js';

/** YaCy, as a running 1.92 and the sources of later ones showed it. */
export const yacy: Dialect = {
  ...standard,
  name: 'yacy',
  content: { encoding: 'base64', takesBinary: true, maxBytes: 20_000_000 },
  holdMs: 20_000,
  pushPath: '/api/push_p.json',
  peerdocPath: '/api/yacydoc.xml',
};
