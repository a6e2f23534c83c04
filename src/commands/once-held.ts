import { PeersyncError } from '../lib/errors.js';
import type { Live } from '../report/live.js';
import type { StateView } from '../state/state.js';
import type { FolderStatus } from '../watch/watcher.js';
import { counted, safe } from './text.js';

/** A folder that a run had to leave out, for its root is missing or doubtful. */
export interface HeldFolder {
  readonly folder: FolderStatus;
  /** How many of its files wait to be pushed. */
  readonly waiting: number;
}

export function heldFolders(live: Pick<Live, 'folders'>, state: Pick<StateView, 'counts'>): HeldFolder[] {
  return live
    .folders()
    .filter((folder) => folder.state === 'held')
    .map((folder) => ({ folder, waiting: state.counts(folder.name).pending }));
}

/** Everything is done but what is in these folders. */
export function leftOut(held: readonly HeldFolder[]): PeersyncError {
  return new PeersyncError({
    code: 'FOLDER_HELD',
    message: held.map(wordsOf).join('\n  '),
    hint: 'Mount or bring back what belongs there (create it only where nothing was yet), or mend the path in the configuration, then run again: nothing is lost, the next run goes on from here.',
    details: { folders: held.map(({ folder, waiting }) => ({ name: folder.name, waiting })) },
  });
}

function wordsOf({ folder, waiting }: HeldFolder): string {
  const words = `The folder ${safe(folder.name)} was left out: ${folder.trouble?.message ?? 'it is not there.'}`;
  if (waiting === 0) return words;
  return `${words} ${counted(waiting, 'file of it waits', 'files of it wait')} to be pushed.`;
}
