import type { Conflict, MirrorReport } from '../../mirror/record.js';
import { count, counted, sentences } from './words.js';

export interface MirrorTroubleWords {
  readonly level: 'bad' | 'warn' | 'info';
  readonly text: string;
}

/** Of the cells in conflict, so many are named for each file. */
const NAMED = 4;

/** What a person has to know, or to do, about one mirror. */
export function mirrorTroubles(mirror: MirrorReport, root: string): readonly MirrorTroubleWords[] {
  const { alarm, failure, absentSince, conflicts = [], notes = [] } = mirror;
  const words: MirrorTroubleWords[] = [];
  if (alarm !== undefined) words.push({ level: 'bad', text: sentences(alarm.message, alarm.hint) });
  if (failure !== undefined) words.push({ level: 'warn', text: sentences(failure.message, failure.hint) });
  for (const file of new Set(conflicts.map((conflict) => conflict.file))) {
    words.push({
      level: 'warn',
      text: conflictText(
        conflicts.filter((c) => c.file === file),
        `${root}/${file}`,
      ),
    });
  }
  if (absentSince !== undefined) {
    words.push({
      level: 'info',
      text: 'The peer does not have it, as was accepted; the file comes back when the peer has it again.',
    });
  }
  for (const note of notes) words.push({ level: 'info', text: sentences(note) });
  return words;
}

function conflictText(cells: readonly Conflict[], file: string): string {
  const named = cells
    .slice(0, NAMED)
    .map(({ pk, column }) => (column === undefined ? pk : `${pk} ${column}`));
  const more = cells.length > NAMED ? ` and ${count(cells.length - NAMED)} more` : '';
  const which = named.every((name) => name === '') ? '' : ` (${named.join(', ')}${more})`;
  return `${counted(cells.length, 'cell')} changed on both sides${which}. The peer's value was kept; yours is in ${file}, which you can remove when you are done.`;
}
