import type { Place } from './place.js';

/** What had to be changed in names of the peer. */
export function placeNotes({ changed }: Place): string[] {
  return changed.map(
    ({ from, to }) => `${JSON.stringify(from)} cannot be a file name as it is; it is called ${to}.`,
  );
}
