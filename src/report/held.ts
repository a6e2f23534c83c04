import { PeersyncError } from '../lib/errors.js';
import type { FolderStatus } from '../watch/watcher.js';

/** A folder could not be scanned, for its root is missing or doubtful. */
export function heldError({ name, trouble }: FolderStatus): PeersyncError {
  return new PeersyncError({
    code: 'FOLDER_HELD',
    message: `The folder ${name} was left out: ${trouble?.message ?? 'it is not there'}`,
    hint: trouble?.hint ?? 'Mount it or bring it back, or mend its path in the configuration.',
  });
}
