import { resolve } from 'node:path';
import type { Config, FolderConfig } from '../config/config.js';
import { badRequest } from '../lib/errors.js';
import { type Encoding, joinPath } from '../lib/file.js';
import { withFile } from '../lib/hint.js';
import { counted, escapeInvisible, isWithin, quoted, sentence, shellWord } from '../lib/text.js';
import { PEER_FAILURE_WORDS } from '../queue/breaker.js';
import {
  type Entry,
  type Evidence,
  EXCLUDED,
  type Failure,
  type GoneItem,
  type HistoryEntry,
  hasContent,
  isExcluded,
  isItem,
  keptOutFor,
  type Sent,
  type SkippedFile,
} from '../state/entry.js';
import { isAcceptedWithoutPush, renameOf } from '../state/history.js';
import type { StateView } from '../state/state.js';
import { isToBeRemoved, removesDocuments } from '../watch/deletion-candidates.js';
import { isAbsence, look } from '../watch/lister.js';
import { unapprovedMassDeletion } from '../watch/mass-deletions.js';
import { mountsAway } from '../watch/mounts.js';
import { failures } from '../watch/rules/failures.js';
import { FolderRules } from '../watch/rules/folder-rules.js';
import { locate } from './items.js';
import type { Live } from './live.js';
import { explainMirrored } from './mirrored.js';
import { knownEmbedded } from './status.js';

/** The explanation of one path. Times are in ms since the epoch. */
export interface WhyReport {
  readonly file: string;
  readonly folder?: string;
  readonly path?: string;
  /**
   * The status of the file. Without a record it is `ignored` if a path rule excludes it or it is no
   * regular file, `unknown` if not, and `outside` if no folder has the path.
   */
  readonly status: Entry['status'] | 'ignored' | 'unknown' | 'outside';
  /**
   * Set where it is no regular file, `absent` where nothing is there and nothing is known of it,
   * and `mirrored` below the mirror root.
   */
  readonly kind?: NoFile | 'absent' | 'mirrored';
  /** The rule that takes, excludes or skips the file. */
  readonly rule: string;
  readonly since?: number;
  readonly url?: string | undefined;
  readonly collection?: string | undefined;
  readonly version?: {
    readonly size: number;
    readonly mtimeMs: number;
    readonly sha256?: string | undefined;
  };
  /** The other name of a renamed file: `renamed to FOLDER/path`, `renamed from FOLDER/path`. */
  readonly renamed?: string | undefined;
  /** Set when the text was converted for the peer. */
  readonly conversion?: string | undefined;
  /** The reader that extracted the text of a document, and the number of words. */
  readonly extracted?: Sent['extracted'];
  readonly attempts?: number | undefined;
  readonly evidence?: Evidence | undefined;
  readonly failure?: Failure | undefined;
  readonly history: readonly HistoryEntry[];
  /** The next step, and when it happens. */
  readonly next: string;
  readonly nextAt?: number | undefined;
  /** When a mirrored file was last known to be as the peer has it. */
  readonly upToDateAt?: number | undefined;
}

/** A path at which there is no regular file. `link` is a link that is not followed. */
type NoFile = 'directory' | 'link' | 'other';

/**
 * `held`: the root of the folder, or a mount below it, is missing or another one, so the path is
 * not looked at.
 */
type OnDisk = 'file' | 'absent' | 'held' | NoFile | { readonly unreadable: string };

/** Explains one path: its folder, the rule that applies, its progress and the next step. */
export async function explain(
  file: string,
  config: Config,
  state: StateView,
  live: Live | undefined,
): Promise<WhyReport> {
  const absolute = resolve(file);
  const { folder, path = '' } = (await locate(config, absolute)) ?? {};
  const mirrored =
    folder === undefined ? await explainMirrored(absolute, config, state, live) : undefined;
  if (mirrored !== undefined)
    return { file: absolute, status: 'outside', kind: 'mirrored', history: [], ...mirrored };
  if (folder === undefined)
    return {
      file: absolute,
      status: 'outside',
      history: [],
      rule: `It is in none of the watched folders (${config.folders.map((one) => one.path).join(', ')}).`,
      next: 'Nothing, unless it is moved into one of them or its directory is added to `folders`.',
    };
  const hint = 'Name a file in it, or see `peersync status`.';
  if (path === '')
    throw badRequest(
      'NOT_A_FILE',
      `${absolute} is the folder ${quoted(folder.name)} itself.`,
      hint,
    );
  const watch = live?.parts.watcher.status().find(({ name }) => name === folder.name);
  const isHeld = watch?.state === 'held' || (await lookAt(folder.path, true)) === 'absent';
  const unmounted = (await mountsAway(folder, state)).find((mount) => path.startsWith(`${mount}/`));
  const held = isHeld ? HELD : unmounted && heldMount(joinPath(folder.path, unmounted));
  const onDisk = held !== undefined ? 'held' : await lookAt(absolute, folder.followSymlinks);
  const rules = new FolderRules(folder);
  await rules.ignoreFiles.readAllAbove(path);
  const decision = rules.decide(path);
  const rule = sentence(decision.rule.charAt(0).toUpperCase() + decision.rule.slice(1));
  const entry = state.get(folder.name, path);
  const base = { file: absolute, folder: folder.name, path, rule, history: entry?.history ?? [] };
  if (entry !== undefined) {
    const isEmbedded = embedded(config, state, live);
    const report = {
      ...base,
      ...known(entry),
      ...nextOf(entry, onDisk, live, { state, folder, held, isEmbedded }),
    };
    const { next, failure } = report;
    return {
      ...report,
      rule: (decision.take ? skippingRule(entry, folder.name) : undefined) ?? rule,
      next: withFile(next, absolute),
      failure: failure && { ...failure, hint: withFile(failure.hint, absolute) },
    };
  }
  const problem = live?.parts.watcher.problems().find((one) => isWithin(absolute, one.path));
  if (typeof onDisk === 'object')
    return {
      ...base,
      status: 'unknown',
      rule: 'Whether a rule takes it is not known, for it cannot be looked at.',
      failure: problem?.failure ?? failures.unreadable(onDisk.unreadable),
      next: 'It is taken up by the next scan after it can be read.',
    };
  // A link or a pipe is explained by the rule that excludes it, if there is one. A directory is
  // explained by its own rule.
  if (onDisk === 'directory' || (decision.take && (onDisk === 'link' || onDisk === 'other')))
    return {
      ...base,
      status: 'ignored',
      kind: onDisk,
      ...noFile(onDisk, folder, rules.closedBy(`${path}/`)),
    };
  if (!decision.take) return { ...base, status: 'ignored', next: UNLESS_RULE };
  const unknown = { ...base, status: 'unknown', failure: problem?.failure } as const;
  // A file whose name is the problem has no URL.
  if (problem?.path === absolute)
    return { ...unknown, next: 'It is taken up by the next scan after that is mended.' };
  const { url, collection } = decision;
  const next = held ?? nextOfUnknown(onDisk, live !== undefined);
  return { ...unknown, ...(onDisk === 'absent' && { kind: onDisk }), url, collection, next };
}

/** The rules that skip files, by the code of the failure. */
const SKIPPING_RULES: Readonly<Record<string, (folder: string) => string>> = {
  EMPTY: (folder) => `Folder ${quoted(folder)} takes its name; empty files are skipped.`,
  TOO_LARGE: (folder) => `maxFileSize of folder ${quoted(folder)} keeps it out.`,
  PRIVATE_KEY: (folder) => `ignoreDefaults of folder ${quoted(folder)} keeps private keys out.`,
  NOT_TEXT: (folder) =>
    `Folder ${quoted(folder)} takes its name; files that are neither text nor readable documents are skipped.`,
  UNKNOWN_ENCODING: (folder) =>
    `Folder ${quoted(folder)} takes its name; text in an encoding that is not recognised is skipped.`,
  NO_WORDS: (folder) =>
    `Folder ${quoted(folder)} takes its name; files without a word are skipped.`,
};

/** Returns the rule that skips a file that path rules take; undefined if none does. */
function skippingRule(entry: Entry, folder: string): string | undefined {
  const failure = keptOutFor(entry);
  if (failure === undefined || failure.code === EXCLUDED) return undefined;
  return (
    SKIPPING_RULES[failure.code]?.(folder) ??
    `Its content keeps it out: ${sentence(failure.message)}`
  );
}

function embedded({ peer }: Config, state: StateView, live: Live | undefined): boolean | undefined {
  if (live === undefined) return knownEmbedded(peer, state);
  return peer.url === 'embedded' || live.parts.client.isEmbedded;
}

const UNLESS_RULE = 'Nothing, unless the rule is changed.';
const HELD =
  'Its folder is held, and nothing counts as removed because of that; it goes on when the folder is back.';
const heldMount = (path: string) =>
  `The file system that was mounted on ${escapeInvisible(path)} is not there, and nothing counts as removed because of that; it goes on when that is mounted.`;

/** Returns what the state records about a file. */
function known(entry: Entry) {
  const { since, status, version } = entry;
  const failure = entry.failure ?? keptOutFor(entry);
  const { size, mtimeMs } = version;
  const { sha256, encoding = 'utf-8' } = hasContent(version) ? version : {};
  const { url, collection, attempts } = isItem(entry) ? entry : {};
  return {
    status,
    since,
    failure,
    version: { size, mtimeMs, sha256 },
    url,
    collection,
    attempts,
    renamed: renameOf(entry),
    conversion: conversionOf(encoding, entry.sent),
    extracted: entry.sent?.extracted,
    evidence: status === 'confirmed' ? entry.evidence : undefined,
  };
}

/**
 * Describes the text that is pushed in place of the file's bytes; undefined if those are pushed.
 */
function conversionOf(encoding: Encoding, sent: Sent | undefined): string | undefined {
  if (encoding === 'utf-8' || encoding === 'binary' || encoding === 'unknown-8bit')
    return undefined;
  if (encoding !== 'document') return `The file is ${encoding}; its text travels as UTF-8.`;
  const { extracted } = sent ?? {};
  return (
    extracted &&
    `Its text travels: the ${extracted.reader} reader found ${counted(extracted.words, 'word')}.`
  );
}

function nextOfUnknown(onDisk: OnDisk, isRunning: boolean): string {
  if (onDisk === 'absent')
    return 'Nothing: there is no such file, and there never was one that peersync saw.';
  return isRunning
    ? 'It was not seen at rest yet; it is taken up once it has not changed for `settle`, at the latest by the next scan.'
    : 'It is taken up by the scan when the daemon starts (`peersync run`) or by `peersync once`.';
}

type Next = Pick<WhyReport, 'next' | 'nextAt'>;
const say = (next: string, nextAt?: number): Next => ({ next, nextAt });

function nextOf(
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
): Next {
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
    const { readersFailure: unreadable } = uplink.status();
    const extraction = uplink.extractionOf(entry);
    if (extraction !== undefined && unreadable !== undefined)
      return say(`It waits to be read. ${unreadable.message} ${unreadable.hint}`);
    if (extraction === 'waits')
      return say('It waits to be read, and is pushed after that.', entry.notBefore);
    if (extraction !== undefined)
      return say('It is being read at this moment, and is pushed after that.');
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

/** Returns the next step of a skipped file, and of the older version that the peer may have. */
function nextOfSkipped(
  file: SkippedFile,
  folder: FolderConfig,
  state: StateView,
  isEmbedded: boolean | undefined,
): string {
  const { history, sent } = file;
  const nothing = 'Nothing, until the file or the rule changes.';
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
): Next | undefined {
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

async function lookAt(path: string, followSymlinks: boolean): Promise<OnDisk> {
  const found = await look(path, followSymlinks);
  if ('kind' in found) return found.kind;
  return isAbsence(found.code) ? 'absent' : { unreadable: found.code };
}

/**
 * Explains a path that is no regular file.
 *
 * @param closed the rule that excludes a directory with everything in it
 */
function noFile(kind: NoFile, { name }: FolderConfig, closed: string | undefined) {
  if (kind === 'link')
    return {
      rule: `A symbolic link is not followed: followSymlinks of folder ${quoted(name)} is false.`,
      next: 'Nothing, unless `followSymlinks` is set to true: then it is followed to what stands in the same folder.',
    };
  if (kind === 'other')
    return { rule: 'Only regular files are taken: no socket, pipe or device.', next: 'Nothing.' };
  if (closed !== undefined)
    return { rule: `A rule keeps it out with everything in it: ${closed}.`, next: UNLESS_RULE };
  return {
    rule: `No rule keeps it out: each file in it is taken or not by the rules of folder ${quoted(name)}.`,
    next: 'Nothing for the directory itself: ask about a file in it; `peersync list` names those that are known.',
  };
}
