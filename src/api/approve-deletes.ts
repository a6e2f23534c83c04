import { z } from 'zod';
import type { Config } from '../config/config.js';
import { badRequest, type PeersyncError } from '../lib/errors.js';
import { counted, quoted } from '../lib/text.js';
import { knownFolder } from '../report/items.js';
import type { State } from '../state/state.js';
import {
  type MassDeletion,
  massDeletion as massDeletionOf,
  approveDeletes as saveApproval,
} from '../watch/mass-deletions.js';
import { oneLine } from './request.js';
import { massDeletion } from './status.js';

/** Lets the documents of very many removed files be removed, as many as a person was shown. */
export const approveDeletes = oneLine({
  name: 'approve-deletes',
  needs: 'writing',
  question: z.object({ folder: z.string(), files: z.number().int().min(1) }),
  line: massDeletion,
  answer: async ({ config, live, state }, asked) => {
    const approved = await approve({ config, state }, asked);
    await live?.parts.watcher.scan(asked.folder);
    return approved;
  },
});

/**
 * Approves the removal of the documents of a folder's held files. That is on disk when this
 * resolves.
 *
 * @param files the number that a person was shown
 * @throws PeersyncError NOTHING_TO_APPROVE; DELETES_CHANGED if there are more files now
 */
export async function approve(
  { config, state }: { readonly config: Config; readonly state: State },
  { folder, files }: { readonly folder: string; readonly files: number },
): Promise<MassDeletion> {
  knownFolder(config, folder);
  const held = massDeletionOf(state, folder);
  if (held === undefined) throw nothingHeld(folder);
  if (held.files > files) throw deletesChanged(held.files, files);
  saveApproval(state, folder);
  await state.commit('person');
  return held;
}

export function nothingHeld(folder: string): PeersyncError {
  return badRequest(
    'NOTHING_TO_APPROVE',
    `No removed files of the folder ${quoted(folder)} wait for your approval.`,
    '`peersync status` says what waits.',
  );
}

/** More files are concerned than a person was shown. */
export function deletesChanged(found: number, shown: number): PeersyncError {
  return badRequest(
    'DELETES_CHANGED',
    `There are ${counted(found, 'file')} by now, and ${shown} were shown; nothing was removed.`,
    'Look at them again, then approve that number.',
  );
}
