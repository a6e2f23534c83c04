import type { Place } from './place.js';
import { quoted } from './quoted.js';

/** What had to be changed in names of the peer. */
export function placeNotes({ changed }: Place): string[] {
  return changed.map(({ from, to }) => `${quoted(from)} cannot be a file name as it is; it is called ${to}.`);
}
