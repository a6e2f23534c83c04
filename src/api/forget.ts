import { z } from 'zod';
import type { Config, FolderConfig } from '../config/config.js';
import { documentUrl } from '../config/url.js';
import type { Clock } from '../lib/clock.js';
import { badRequest } from '../lib/errors.js';
import { quoted } from '../lib/text.js';
import { knownFolder } from '../report/items.js';
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
import { deletesChanged } from './approve-deletes.js';
import { oneLine } from './request.js';

/** The effect of `forget`, or the effect that it would have. */
export interface Forgetting {
  readonly folder: string;
  /** The number of records concerned, each of a file. */
  readonly records: number;
  /** The number of documents that are removed from the peer. */
  readonly documents: number;
  /** The number of documents that are being removed already. */
  readonly leaving: number;
  /** The paths of some of these files. */
  readonly examples: readonly string[];
  readonly isDone: boolean;
}

const forgetLine: z.ZodType<Forgetting> = z.object({
  folder: z.string(),
  records: z.number(),
  documents: z.number(),
  leaving: z.number(),
  examples: z.array(z.string()),
  isDone: z.boolean(),
});

const forgetQuestion = z.object({
  folder: z.string(),
  /** Whether documents are removed from the peer. */
  remove: z.boolean().default(false),
  /**
   * The number of documents, or else of records, that a person was shown. If it is not given,
   * nothing is done.
   */
  atMost: z.number().int().min(0).optional(),
});

/** Forgets a folder that left the configuration, or removes documents that no file accounts for. */
export const forget = oneLine({
  name: 'forget',
  needs: 'writing',
  question: forgetQuestion,
  line: forgetLine,
  answer: async ({ clock, config, state }, asked) =>
    await forgetFolder({ clock, config, state }, asked),
});

export interface ForgetDeps {
  readonly config: Config;
  readonly state: State;
  readonly clock: Clock;
}

/** The number of files that an answer names. */
const MAX_EXAMPLES = 3;

/**
 * Forgets a folder that left the configuration; with `remove`, removes its documents from the peer.
 * In a configured folder it concerns only the documents that its rules, its URL or the content of
 * its files no longer account for. The effect is on disk when this resolves.
 *
 * @throws PeersyncError FOLDER_CONFIGURED, UNKNOWN_FOLDER; DELETES_CHANGED if there are more than
 *   `atMost`
 */
export async function forgetFolder(
  { config, state, clock }: ForgetDeps,
  { folder, remove, atMost }: z.output<typeof forgetQuestion>,
): Promise<Forgetting> {
  const configured = config.folders.find(({ name }) => name === folder);
  if (configured !== undefined && !remove)
    throw badRequest(
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
    if (examples.length < MAX_EXAMPLES) examples.push(path);
  });
  if (configured === undefined && records === 0) knownFolder(config, folder);
  const effect = { folder, records, documents, leaving, examples };
  if (atMost === undefined) return { ...effect, isDone: false };
  const found = remove ? documents : records;
  if (found > atMost) throw deletesChanged(found, atMost);
  await each((entry, sent) => {
    const now = clock.now();
    if (sent !== undefined && mayHaveDocument(entry) && entry.status !== 'removing') {
      // A file that exists and is kept out by its content is skipped again afterwards.
      const isKeptOut =
        configured !== undefined && entry.status === 'skipped' && !isExcluded(entry);
      const isOut = isAway(entry) || isKeptOut;
      const item = isOut ? entry : gone(entry, now, 'nobody asks for it any more');
      state.put(removing(item, now, 'asked for by a person'));
    } else if (!remove || (entry.status !== 'removing' && entry.status !== 'removed'))
      state.remove(folder, entry.path);
  });
  await state.commit('person');
  return { ...effect, isDone: true };
}

/** Returns whether a configured folder's record has a document that nothing else would remove. */
function isLeftOver(entry: Entry, { url }: FolderConfig): boolean {
  if (entry.status === 'skipped') return entry.sent !== undefined;
  return (
    entry.status === 'gone' &&
    entry.sent !== undefined &&
    entry.sent.url !== documentUrl(url, entry.path)
  );
}

/** Returns the document that the peer may have of a record, unless another file owns it. */
function documentOf(entry: Entry, state: State): Sent | undefined {
  if (entry.status === 'removing' || entry.status === 'removed') return undefined;
  const sent =
    (entry.status === 'pending' && isItem(entry) ? entry.inFlight : undefined) ?? entry.sent;
  return sent === undefined || state.entries.ownerOf(sent.url, entry) ? undefined : sent;
}
