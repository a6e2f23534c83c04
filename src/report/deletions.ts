import type { Config, FolderConfig } from '../config/config.js';
import { documentUrl } from '../config/url.js';
import type { Clock } from '../lib/clock.js';
import { counted, quoted } from '../lib/text.js';
import {
  type Entry,
  isAway,
  isExcluded,
  isItem,
  mayHaveDocument,
  type Sent,
} from '../state/entry.js';
import type { State } from '../state/state.js';
import { gone, removing } from '../state/transitions.js';
import { approveDeletes, type MassDeletion, massDeletion } from '../watch/mass-deletions.js';
import { knownFolder, wrongly } from './items.js';

// What a person decides about the documents of files that are not there, or not taken, any more.

export interface DeletionDeps {
  readonly config: Config;
  readonly state: State;
  readonly clock: Clock;
}

/**
 * The documents of the held files of a folder are to be removed; on disk before it is answered.
 *
 * @param files how many a person was shown
 * @throws PeersyncError NOTHING_TO_APPROVE; DELETES_CHANGED where there are more by now
 */
export async function approve(
  { config, state }: DeletionDeps,
  { folder, files }: { readonly folder: string; readonly files: number },
): Promise<MassDeletion> {
  knownFolder(config, folder);
  const held = massDeletion(state, folder);
  if (held === undefined) throw nothingHeld(folder);
  if (held.files > files) throw changed(held.files, files);
  approveDeletes(state, folder);
  await state.commit('person');
  return held;
}

export function nothingHeld(folder: string) {
  const message = `No removed files of the folder ${quoted(folder)} wait for your approval.`;
  return wrongly('NOTHING_TO_APPROVE', message, '`peersync status` says what waits.');
}

/** What `forget` does, or would do. */
export interface Forgetting {
  readonly folder: string;
  /** How many records it is about, each of a file. */
  readonly records: number;
  /** How many documents are removed from the peer. */
  readonly documents: number;
  /** How many documents are being removed already. */
  readonly leaving: number;
  /** The files of some of them. */
  readonly examples: readonly string[];
  readonly isDone: boolean;
}

interface ForgetRequest {
  readonly folder: string;
  /** Whether documents are removed from the peer. */
  readonly remove: boolean;
  /**
   * How many documents, or else records, a person was shown; nothing is done where it is not given.
   */
  readonly atMost?: number | undefined;
}

const EXAMPLES = 3;

/**
 * Forgets a folder that left the configuration; with `remove`, its documents are removed from the
 * peer. Of a configured folder it is about the documents that its rules, its URL or the content of
 * its files do not account for any more. On disk before it is answered.
 *
 * @throws PeersyncError FOLDER_CONFIGURED, UNKNOWN_FOLDER; DELETES_CHANGED where there are more by
 *   now
 */
export async function forget(
  { config, state, clock }: DeletionDeps,
  { folder, remove, atMost }: ForgetRequest,
): Promise<Forgetting> {
  const configured = config.folders.find(({ name }) => name === folder);
  if (configured !== undefined && !remove)
    throw wrongly(
      'FOLDER_CONFIGURED',
      `The folder ${quoted(folder)} is in the configuration, so nothing of it is forgotten.`,
      'Take it out there first, or give --remove to remove the documents of files that are skipped now.',
    );
  const each = async (work: (entry: Entry, sent: Sent | undefined) => void) => {
    for await (const slice of state.entries.slices({ folder }))
      for (const entry of slice)
        if (configured === undefined || isLeftOver(entry, configured))
          work(entry, remove ? documentOf(entry, state) : undefined);
  };
  const examples: string[] = [];
  let [records, documents, leaving] = [0, 0, 0];
  await each(({ path, status }, sent) => {
    records += 1;
    leaving += status === 'removing' ? 1 : 0;
    if (sent === undefined && remove) return;
    documents += sent === undefined ? 0 : 1;
    if (examples.length < EXAMPLES) examples.push(path);
  });
  if (configured === undefined && records === 0) knownFolder(config, folder);
  const told = { folder, records, documents, leaving, examples };
  if (atMost === undefined) return { ...told, isDone: false };
  const found = remove ? documents : records;
  if (found > atMost) throw changed(found, atMost);
  await each((entry, sent) => {
    const now = clock.now();
    if (sent !== undefined && mayHaveDocument(entry) && entry.status !== 'removing') {
      // A file that is there and kept out by its content is skipped again afterwards.
      const isKeptOut =
        configured !== undefined && entry.status === 'skipped' && !isExcluded(entry);
      const isOut = isAway(entry) || isKeptOut;
      const item = isOut ? entry : gone(entry, now, 'nobody asks for it any more');
      state.put(removing(item, now, 'asked for by a person'));
    } else if (!remove || (entry.status !== 'removing' && entry.status !== 'removed'))
      state.remove(folder, entry.path);
  });
  await state.commit('person');
  return { ...told, isDone: true };
}

/** Whether the record of a configured folder is of a document that nothing else would remove. */
function isLeftOver(entry: Entry, { url }: FolderConfig): boolean {
  if (entry.status === 'skipped') return entry.sent !== undefined;
  return (
    entry.status === 'gone' &&
    entry.sent !== undefined &&
    entry.sent.url !== documentUrl(url, entry.path)
  );
}

/** The document that the peer has, or may have, of a record, unless it is another file's. */
function documentOf(entry: Entry, state: State): Sent | undefined {
  if (entry.status === 'removing' || entry.status === 'removed') return undefined;
  const sent =
    (entry.status === 'pending' && isItem(entry) ? entry.inFlight : undefined) ?? entry.sent;
  return sent === undefined || state.entries.ownerOf(sent.url, entry) ? undefined : sent;
}

function changed(found: number, shown: number) {
  return wrongly(
    'DELETES_CHANGED',
    `There are ${counted(found, 'file')} by now, and ${shown} were shown; nothing was removed.`,
    'Look at them again, then approve that number.',
  );
}
