import { resolve } from 'node:path';
import type { Config, FolderConfig } from '../config/config.js';
import { badRequest } from '../lib/errors.js';
import { type Encoding, type ExtractedBy, joinPath } from '../lib/file.js';
import { withFile } from '../lib/hint.js';
import { counted, isWithin, quoted, sentence } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import {
  type Entry,
  type Evidence,
  EXCLUDED,
  type Failure,
  type HistoryEntry,
  hasContent,
  isItem,
  keptOutFor,
  type Sent,
} from '../state/entry.js';
import { renameOf } from '../state/history.js';
import type { StateView } from '../state/state.js';
import { isAbsence, look } from '../watch/lister.js';
import { mountsAway } from '../watch/mounts.js';
import { failures } from '../watch/rules/failures.js';
import { FolderRules } from '../watch/rules/folder-rules.js';
import { locate } from './items.js';
import type { Live } from './live.js';
import { explainMirrored } from './mirrored.js';
import {
  HELD,
  heldMount,
  type NextStep,
  type NoFile,
  nextOf,
  nextOfUnknown,
  type OnDisk,
} from './next-step.js';
import { knownEmbedded } from './status.js';

/** The explanation of one path. Times are in ms since the epoch. */
export interface WhyReport extends NextStep {
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
  /** How the text of a document was found. */
  readonly extracted?: Sent['extracted'];
  readonly attempts?: number | undefined;
  readonly evidence?: Evidence | undefined;
  readonly failure?: Failure | undefined;
  readonly history: readonly HistoryEntry[];
  /** When a mirrored file was last known to be as the peer has it. */
  readonly upToDateAt?: number | undefined;
}

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
  NO_OCR: (folder) =>
    `Folder ${quoted(folder)} takes its name; scans and pictures are skipped while there is no OCR.`,
  NO_HELPER: (folder) =>
    `Folder ${quoted(folder)} takes its name; files that only a program reads are skipped while it is not installed.`,
  NO_HELPER_BY_CONTENT: (folder) =>
    `Folder ${quoted(folder)} takes its name; files that only a program reads are skipped while it is not installed.`,
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
  const lacks = sent?.lacks ?? [];
  const sentences = [
    sent?.extracted && extractionText(sent.extracted),
    lacks.some((lack) => lack !== 'time') &&
      'A program that reads more of it was missing. It is read again by itself when that is there.',
    lacks.includes('time') && '`peersync retry PATH` has the rest read again.',
  ];
  return sentences.filter(Boolean).join(' ') || undefined;
}

/** Describes how the text of a document was found, in sentences. */
function extractionText(extracted: ExtractedBy): string {
  const { confidence, leftOut, ms, ocrPages = 0, pages, reader, unreadPages, words } = extracted;
  const read = pages === undefined ? 'Reading it' : `Reading ${counted(pages, 'page')}`;
  const certainty = confidence === undefined ? '' : `, with a mean confidence of ${confidence} %`;
  const sentences = [
    `Its text travels: the ${reader} reader found ${counted(words, 'word')}.`,
    ms !== undefined && `${read} took ${durationText(ms)}.`,
    ocrPages > 0 && `OCR read ${counted(ocrPages, 'page')}${certainty}.`,
    unreadPages && `Pages that could not be read: ${unreadPages}.`,
    leftOut && sentence(leftOut),
  ];
  return sentences.filter(Boolean).join(' ');
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
