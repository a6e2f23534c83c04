import type { FolderConfig } from '../config/config.js';
import { escapeInvisible, numberText, sentence, shellWord } from '../lib/text.js';
import { PEER_FAILURE_WORDS } from '../queue/breaker.js';
import {
  type Entry,
  type GoneItem,
  isExcluded,
  type PendingItem,
  type SkippedFile,
} from '../state/entry.js';
import { isAcceptedWithoutPush } from '../state/history.js';
import type { StateView } from '../state/state.js';
import type { ReadingProgress } from '../uplink/extraction.js';
import { isToBeRemoved, removesDocuments } from '../watch/deletion-candidates.js';
import { unapprovedMassDeletion } from '../watch/mass-deletions.js';
import type { Live } from './live.js';

/** The next step of a file. */
export interface NextStep {
  /** Whole sentences. */
  readonly next: string;
  /** When it happens, in ms since the epoch. */
  readonly nextAt?: number | undefined;
  /** Set while the file is a document that is being read. */
  readonly reading?: ReadingProgress | undefined;
}

/** A path at which there is no regular file. `link` is a link that is not followed. */
export type NoFile = 'directory' | 'link' | 'other';

/**
 * `held`: the root of the folder, or a mount below it, is missing or another one, so the path is
 * not looked at.
 */
export type OnDisk = 'file' | 'absent' | 'held' | NoFile | { readonly unreadable: string };

/** The next step in a folder whose root is missing or another one. */
export const HELD =
  'Its folder is held, and nothing counts as removed because of that; it goes on when the folder is back.';
/** Returns the next step below a mount that is missing. */
export const heldMount = (path: string) =>
  `The file system that was mounted on ${escapeInvisible(path)} is not there, and nothing counts as removed because of that; it goes on when that is mounted.`;

/** Returns the next step of a file without a record. */
export function nextOfUnknown(onDisk: OnDisk, isRunning: boolean): string {
  if (onDisk === 'absent')
    return 'Nothing: there is no such file, and there never was one that peersync saw.';
  return isRunning
    ? 'It was not seen at rest yet; it is taken up once it has not changed for `settle`, at the latest by the next scan.'
    : 'It is taken up by the scan when the daemon starts (`peersync run`) or by `peersync once`.';
}

const say = (next: string, nextAt?: number): NextStep => ({ next, nextAt });

/** Returns the next step of a file with a record. */
export function nextOf(
  entry: Entry,
  onDisk: OnDisk,
  live: Live | undefined,
  {
    state,
    folder,
    held,
    isEmbedded,
  }: {
    readonly state: StateView;
    readonly folder: FolderConfig;
    /** Whether the peer is an embedded one; undefined while that is not known. */
    readonly isEmbedded: boolean | undefined;
    /** The explanation if the folder, or a part of it, is held. */
    readonly held: string | undefined;
  },
): NextStep {
  const unrecorded = state.failure;
  const { status } = entry;
  if (status === 'gone') return say(nextOfGone(entry, folder, state, isEmbedded));
  if (status === 'removed') return say('Nothing: the document is gone from the peer, too.');
  if (held !== undefined && status !== 'removing') return say(held);
  if (onDisk === 'absent' && status !== 'removing')
    return say('The file is not there any more; the next scan marks it as gone.');
  if (status === 'confirmed') return say('Nothing, until the file changes.');
  if (status === 'quarantined')
    return say('Nothing, until the file changes or `peersync retry PATH` asks for another try.');
  if (status === 'skipped') return say(nextOfSkipped(entry, folder, state, isEmbedded));
  if (unrecorded !== undefined)
    return say(`It waits. ${sentence(unrecorded.message)} ${unrecorded.hint}`);
  if (live === undefined) {
    const words = {
      pending: 'pushed',
      accepted: 'looked up in the peer',
      removing: 'removed from the peer',
    };
    const what = words[status];
    return say(`It is ${what} when the daemon runs (\`peersync run\`) or by \`peersync once\`.`);
  }
  if (status === 'removing') {
    const { keptOut, notBefore, requestedAt } = entry;
    const waits = waitingForPeer(live.parts, requestedAt === undefined ? 'removal' : 'confirm');
    if (waits !== undefined) return waits;
    const what =
      keptOut === undefined ? 'document' : 'older version, which may still be searchable,';
    if (requestedAt === undefined) return say(`The ${what} is removed from the peer.`, notBefore);
    return say(
      'The peer was asked to remove the document: it is looked up until it is gone for good.',
    );
  }
  const { uplink } = live.parts;
  if (status === 'pending' && entry.inFlight === undefined) {
    const extraction = nextOfExtraction(entry, uplink);
    if (extraction !== undefined) return extraction;
  }
  const isInFlight = uplink.isInFlight(entry);
  const isUnanswered = status === 'pending' && entry.inFlight !== undefined && !isInFlight;
  const waiting = waitingForPeer(
    live.parts,
    status === 'accepted' || isUnanswered ? 'confirm' : 'push',
  );
  if (waiting !== undefined) return waiting;
  if (isInFlight) return say('It is on its way to the peer at this moment.');
  if (status === 'pending' && !isUnanswered) return say('It is pushed.', entry.notBefore);
  const { at, lastAnswer } = uplink.nextLookUp(entry) ?? {};
  if (isUnanswered)
    return say(
      'Its push was never answered: it is looked up, and pushed again if it is not there.',
      at,
    );
  const soFar = lastAnswer === undefined ? '' : ` (so far: ${lastAnswer})`;
  return status === 'accepted' && isAcceptedWithoutPush(entry)
    ? say(
        `The peer was sent this before: it is looked up${soFar}, and pushed if it is not there.`,
        at,
      )
    : say(`It is looked up in the peer${soFar}.`, at);
}

/** Returns the next step of a document that is not read yet; undefined for any other file. */
function nextOfExtraction(
  item: PendingItem,
  uplink: Live['parts']['uplink'],
): NextStep | undefined {
  const extraction = uplink.extractionOf(item);
  if (extraction === undefined) return undefined;
  const { readersFailure: unreadable } = uplink.status();
  if (unreadable !== undefined)
    return say(`It waits to be read. ${unreadable.message} ${unreadable.hint}`);
  if (extraction === 'waits')
    return say('It waits to be read, and is pushed after that.', item.notBefore);
  const { page, pages } = extraction;
  const where =
    page === undefined || pages === undefined
      ? ''
      : ` (page ${numberText(page)} of ${numberText(pages)})`;
  const next = `It is being read at this moment${where}, and is pushed after that.`;
  return { next, reading: extraction };
}

const AWAITS_HELPER =
  'Nothing, until the program is there: then it is taken up by the next scan, or by `peersync reload` at once.';
/** The next step of a skipped file to which a program may come, by the code of the failure. */
const NEXT_OF_SKIPPED: Readonly<Record<string, string>> = {
  NO_OCR:
    'Nothing, until OCR is there: then it is taken up by the next scan, or by `peersync reload` at once.',
  NO_HELPER: AWAITS_HELPER,
  NO_HELPER_BY_CONTENT: AWAITS_HELPER,
};

/** Returns the next step of a skipped file, and of the older version that the peer may have. */
function nextOfSkipped(
  file: SkippedFile,
  folder: FolderConfig,
  state: StateView,
  isEmbedded: boolean | undefined,
): string {
  const { history, sent } = file;
  const nothing =
    NEXT_OF_SKIPPED[file.failure.code] ?? 'Nothing, until the file or the rule changes.';
  if (sent === undefined)
    return history.some(({ status }) => status === 'removing')
      ? `${nothing} The older version was removed from the peer.`
      : nothing;
  if (state.entries.ownerOf(sent.url, file) !== undefined) return nothing;
  const searchable = 'The version that the peer was sent before is still searchable';
  const forget = `\`peersync forget ${shellWord(folder.name)} --remove\``;
  if (isExcluded(file)) return `${nothing} ${searchable}; ${forget} removes such documents.`;
  const kept = keptBecause(folder, isEmbedded);
  if (kept !== undefined)
    return `${nothing} ${searchable}, and stays, ${kept}; ${forget} removes such documents.`;
  if (!isToBeRemoved(file, folder, isEmbedded))
    return `${nothing} ${searchable}, and stays, for the folder had another URL then; ${forget} removes such documents.`;
  return isHeld(file, folder, state)
    ? `${searchable}. Very many files were removed or emptied at once: its document waits for \`peersync approve-deletes ${shellWord(folder.name)}\`.`
    : `${searchable}. A full scan of the folder is to show that the file is still like this; then the document is removed from the peer.`;
}

/** Returns whether its document waits for the approval of a person. */
function isHeld({ since }: Entry, { name }: FolderConfig, state: StateView): boolean {
  return since < (unapprovedMassDeletion(state, name)?.before ?? 0);
}

/**
 * Why documents of removed files stay in the peer, as the rest of a sentence; undefined where they
 * are removed.
 */
function keptBecause(folder: FolderConfig, isEmbedded: boolean | undefined): string | undefined {
  if (removesDocuments(folder, isEmbedded)) return undefined;
  if (folder.onDelete === 'keep') return 'as `onDelete` of the folder has it';
  return isEmbedded === false
    ? 'for the folder has no `onDelete`, and this is not the embedded peer'
    : 'as long as the peer has not answered whether it is the embedded one, for the folder has no `onDelete`';
}

function nextOfGone(
  item: GoneItem,
  folder: FolderConfig,
  state: StateView,
  isEmbedded: boolean | undefined,
): string {
  if (item.sent === undefined) return 'Nothing.';
  const keeps = 'Nothing: the peer keeps the document,';
  const kept = keptBecause(folder, isEmbedded);
  if (kept !== undefined) return `${keeps} ${kept}.`;
  if (!isToBeRemoved(item, folder, isEmbedded))
    return `${keeps} for the folder had another URL then; \`peersync forget ${shellWord(folder.name)} --remove\` removes it.`;
  if (state.entries.ownerOf(item.sent.url, item) !== undefined)
    return `${keeps} for it is that of another file now.`;
  return isHeld(item, folder, state)
    ? `Very many files were removed or emptied at once: its document waits for \`peersync approve-deletes ${shellWord(folder.name)}\`.`
    : 'A full scan of the folder is to show that the file is still not there; then the document is removed from the peer.';
}

/** Returns the reason why requests of this lane cannot reach the peer, if there is one. */
function waitingForPeer(
  { client, queue }: Live['parts'],
  lane: 'push' | 'confirm' | 'removal',
): NextStep | undefined {
  const { circuit, paused, retryAfterUntil } = queue.status();
  if (paused !== undefined)
    return say('It waits, for peersync is paused: `peersync resume` lets it go on.', paused.until);
  const { reason, held, nextProbeAt } = circuit;
  // Nothing is sent before the dialect is known, so a failure of its detection stops every lane.
  if (reason !== undefined && (held.includes(lane) || client.dialect === undefined)) {
    const next = `It waits for the peer, which ${PEER_FAILURE_WORDS[reason.kind]}: ${sentence(reason.message)}`;
    return say(nextProbeAt === undefined ? `${next} It is tried again now.` : next, nextProbeAt);
  }
  if (retryAfterUntil === undefined) return undefined;
  return say('It waits, for the peer asked to be left alone for a while.', retryAfterUntil);
}
