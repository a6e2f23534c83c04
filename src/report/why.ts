import { lstat, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Config, FolderConfig } from '../config/config.js';
import { EXIT, messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import { sentence } from '../lib/sentence.js';
import { TROUBLE_WORDS } from '../queue/breaker.js';
import type { Entry, Evidence, HistoryEntry, Trouble, Version } from '../state/entry.js';
import type { StateView } from '../state/state.js';
import { isRemembered } from '../state/transitions.js';
import { type Decision, FolderRules } from '../watch/rules.js';
import { trouble } from '../watch/trouble.js';
import type { Live } from './live.js';
import { locate } from './locate.js';

/** Everything that is known of one path. Times are ms since the epoch. */
export interface WhyReport {
  readonly file: string;
  readonly folder?: string;
  readonly path?: string;
  /** In one word: a status, `passed` over, `ignored`, `unknown` or `outside`. */
  readonly verdict: Entry['status'] | 'ignored' | 'unknown' | 'outside';
  /** Set where it is no regular file. */
  readonly kind?: NoFile;
  /** Which rule takes the file or keeps it out. */
  readonly rule: string;
  readonly since?: number;
  readonly url?: string;
  readonly collection?: string;
  readonly version?: { readonly size: number; readonly mtimeMs: number; readonly sha256?: string };
  /** Set when the text was converted for the peer. */
  readonly conversion?: string;
  readonly attempts?: number;
  readonly evidence?: Evidence;
  readonly trouble?: Trouble;
  readonly history: readonly HistoryEntry[];
  /** What happens next, and when. */
  readonly next: string;
  readonly nextAt?: number;
}

/** What of a running daemon tells how a path goes on. */
export type LiveWork = Pick<Live, 'dialect' | 'queue' | 'folders' | 'problems' | 'isInFlight' | 'nextLook'>;

/** Explains one path, wherever it is: in which folder, by which rule, how far it came and what happens next. */
export async function explain(
  file: string,
  config: Config,
  state: StateView,
  live: LiveWork | undefined,
): Promise<WhyReport> {
  const absolute = resolve(file);
  const located = await locate(config, absolute);
  if (located === undefined) {
    const folders = config.folders.map((f) => f.path).join(', ');
    return {
      file: absolute,
      verdict: 'outside',
      rule: `It is in none of the watched folders (${folders}).`,
      history: [],
      next: 'Nothing, unless it is moved into one of them or its directory is added to `folders`.',
    };
  }
  const { folder, path } = located;
  if (path === '') {
    throw new PeersyncError({
      code: 'NOT_A_FILE',
      message: `${absolute} is the folder ${folder.name} itself.`,
      hint: 'Name a file in it, or see `peersync status`.',
      exitCode: EXIT.usage,
    });
  }
  const entry = state.get(folder.name, path);
  const watch = live?.folders().find((f) => f.name === folder.name);
  const isHeld = watch?.state === 'held' || (await lookAt(folder.path, true)) === 'absent';
  const [{ decision, closed }, found] = await Promise.all([
    decide(folder, path),
    lookAt(absolute, folder.followSymlinks),
  ]);
  const onDisk = isHeld && found === 'absent' ? 'held' : found;
  const base = { file: absolute, folder: folder.name, path, history: entry?.history ?? [] };
  if (entry === undefined) {
    const problem = live?.problems().find((p) => absolute === p.path || absolute.startsWith(`${p.path}/`));
    if (typeof onDisk === 'object') {
      return {
        ...base,
        verdict: 'unknown',
        rule: 'Whether a rule takes it is not known, for it cannot be looked at.',
        trouble: problem?.trouble ?? trouble.unreadable(onDisk.unreadable),
        next: 'It is taken up by the next scan after it can be read.',
      };
    }
    if (onDisk === 'directory')
      return { ...base, verdict: 'ignored', kind: onDisk, ...wordsOfNoFile(onDisk, folder, closed) };
    if (!decision.take) {
      return {
        ...base,
        verdict: 'ignored',
        rule: ruleText(decision.rule),
        next: 'Nothing, unless the rule is changed.',
      };
    }
    if (isNoFile(onDisk))
      return { ...base, verdict: 'ignored', kind: onDisk, ...wordsOfNoFile(onDisk, folder, closed) };
    if (problem?.path === absolute) {
      return {
        ...base,
        verdict: 'unknown',
        rule: ruleText(decision.rule),
        trouble: problem.trouble,
        next: 'It is taken up by the next scan after that is mended.',
      };
    }
    return {
      ...base,
      verdict: 'unknown',
      rule: ruleText(decision.rule),
      url: decision.url,
      collection: decision.collection,
      ...(problem ? { trouble: problem.trouble } : {}),
      next: nextOfUnknown(onDisk, live !== undefined),
    };
  }
  return {
    ...base,
    verdict: entry.status,
    rule: ruleText(decision.rule),
    since: entry.since,
    version: versionOf(entry),
    ...conversionOf(entry),
    ...('url' in entry ? { url: entry.url, collection: entry.collection, attempts: entry.attempts } : {}),
    ...(entry.status === 'confirmed' ? { evidence: entry.evidence } : {}),
    ...('trouble' in entry && entry.trouble ? { trouble: entry.trouble } : {}),
    ...(nextElsewhere(entry, decision, onDisk) ?? nextOf(entry, onDisk, live, state.failure)),
  };
}

/** What becomes of a file there, and the rule that keeps a directory there out. */
async function decide(
  folder: FolderConfig,
  path: string,
): Promise<{ readonly decision: Decision; readonly closed: string | undefined }> {
  const rules = new FolderRules(folder);
  await rules.readIgnoreFiles(dirname(path));
  return { decision: rules.decide(path), closed: rules.closed(path) };
}

const HELD = 'Its folder is held, and nothing is concluded from that; it goes on when the folder is back.';

function nextOfUnknown(onDisk: 'file' | 'absent' | 'held', running: boolean): string {
  if (onDisk === 'held') return HELD;
  if (onDisk === 'absent')
    return 'Nothing: there is no such file, and there never was one that peersync saw.';
  return running
    ? 'It was not seen at rest yet; it is taken up once it has not changed for `settle`, at the latest by the next scan.'
    : 'It is taken up by the scan when the daemon starts (`peersync run`) or by `peersync once`.';
}

function nextOf(
  entry: Entry,
  onDisk: OnDisk,
  live: LiveWork | undefined,
  unrecorded: Pick<Trouble, 'message' | 'hint'> | undefined,
): { readonly next: string; readonly nextAt?: number } {
  if (onDisk === 'held' && entry.status !== 'gone') return { next: HELD };
  if (onDisk === 'absent' && entry.status !== 'gone')
    return { next: 'The file is not there any more; the next scan marks it as gone.' };
  if (unrecorded !== undefined && (entry.status === 'pending' || entry.status === 'accepted'))
    return { next: `It waits. ${sentence(unrecorded.message)} ${unrecorded.hint}` };
  switch (entry.status) {
    case 'pending': {
      if (live === undefined)
        return { next: 'It is pushed when the daemon runs (`peersync run`) or by `peersync once`.' };
      const isInFlight = live.isInFlight(entry);
      const isLookedUp = entry.doubt !== undefined && !isInFlight;
      const waiting = waitingForPeer(live, isLookedUp ? 'confirm' : 'push');
      if (waiting !== undefined) return waiting;
      if (isInFlight) return { next: 'It is on its way to the peer at this moment.' };
      if (isLookedUp) {
        return {
          next: 'Its push was never answered: it is looked up in the peer, and pushed again if it is not there.',
          ...at(live.nextLook(entry)?.at),
        };
      }
      return { next: 'It is pushed.', nextAt: entry.notBefore };
    }
    case 'accepted': {
      if (live === undefined)
        return {
          next: 'It is looked up in the peer when the daemon runs (`peersync run`) or by `peersync once`.',
        };
      const waiting = waitingForPeer(live, 'confirm');
      if (waiting !== undefined) return waiting;
      const look = live.nextLook(entry);
      const lastAnswer = look?.lastAnswer === undefined ? '' : ` (so far: ${look.lastAnswer})`;
      if (isRemembered(entry)) {
        const next = `The peer was sent this before: it is looked up${lastAnswer}, and pushed if it is not there.`;
        return { next, ...at(look?.at) };
      }
      return { next: `It is looked up in the peer${lastAnswer}.`, ...at(look?.at) };
    }
    case 'confirmed':
      return { next: 'Nothing, until the file changes.' };
    case 'quarantined':
      return { next: 'Nothing, until the file changes or `peersync retry` asks for another try.' };
    case 'gone':
      return {
        next: entry.sent
          ? 'Nothing: the peer keeps the document, for its interface has no way to remove one.'
          : 'Nothing.',
      };
    case 'passed':
      return { next: 'Nothing, until the file or the rule changes.' };
  }
}

/** The configuration gave the folder another URL, and the scan has not come to the file yet. */
function nextElsewhere(
  entry: Entry,
  decision: Decision,
  onDisk: OnDisk,
): { readonly next: string } | undefined {
  if (onDisk !== 'file') return undefined;
  if (entry.status !== 'pending' || !decision.take || decision.url === entry.url) return undefined;
  return {
    next: 'Its folder has another URL now: the next scan gives it the new one, and it is pushed there.',
  };
}

/** What keeps requests of this lane from the peer, if anything does. */
function waitingForPeer(
  live: LiveWork,
  lane: 'push' | 'confirm',
): { readonly next: string; readonly nextAt?: number } | undefined {
  const { circuit, paused, pausedUntil } = live.queue();
  if (paused !== undefined) {
    const { until } = paused;
    const next = 'It waits, for peersync is paused';
    return until === undefined
      ? { next: `${next}: \`peersync resume\` lets it go on.` }
      : { next: `${next}; \`peersync resume\` lets it go on before the time is over.`, nextAt: until };
  }
  const { reason, held, nextProbeAt } = circuit;
  // Nothing is sent before the dialect is known: the trouble of finding that out keeps every lane.
  if (reason !== undefined && (held.includes(lane) || live.dialect() === undefined)) {
    const words = `${TROUBLE_WORDS[reason.kind]}: ${sentence(reason.message)}`;
    const next = `It waits for the peer, which ${words}`;
    return nextProbeAt === undefined
      ? { next: `${next} It is tried again now.` }
      : { next, nextAt: nextProbeAt };
  }
  if (pausedUntil === undefined) return undefined;
  return { next: 'It waits, for the peer asked to be left alone for a while.', nextAt: pausedUntil };
}

function at(ms: number | undefined): { readonly nextAt?: number } {
  return ms === undefined ? {} : { nextAt: ms };
}

function versionOf(entry: Entry): NonNullable<WhyReport['version']> {
  const { size, mtimeMs } = entry.version;
  return 'sha256' in entry.version ? { size, mtimeMs, sha256: entry.version.sha256 } : { size, mtimeMs };
}

function conversionOf(entry: Entry): { readonly conversion?: string } {
  if (!('encoding' in entry.version)) return {};
  const { encoding } = entry.version as Version;
  if (encoding === 'utf-8' || encoding === 'binary') return {};
  return { conversion: `The file is ${encoding}; its text travels as UTF-8.` };
}

function ruleText(rule: string): string {
  return sentence(rule.charAt(0).toUpperCase() + rule.slice(1));
}

/** What stands at a path and is no file. A link is one that is not followed. */
export type NoFile = 'directory' | 'link' | 'other';

/** `held`: absent, as everything is while the root of its folder is missing or doubtful. */
export type OnDisk = 'file' | 'absent' | 'held' | NoFile | { readonly unreadable: string };

export async function lookAt(path: string, followSymlinks: boolean): Promise<OnDisk> {
  try {
    const stats = await (followSymlinks ? stat(path) : lstat(path));
    if (stats.isFile()) return 'file';
    if (stats.isDirectory()) return 'directory';
    return stats.isSymbolicLink() ? 'link' : 'other';
  } catch (error) {
    const code = systemCode(error);
    return code === 'ENOENT' || code === 'ENOTDIR' ? 'absent' : { unreadable: code ?? messageOf(error) };
  }
}

export function isNoFile(onDisk: OnDisk): onDisk is NoFile {
  return onDisk === 'directory' || onDisk === 'link' || onDisk === 'other';
}

/** What holds for what is no file. @param closed the rule that keeps a directory out with all that is in it */
export function wordsOfNoFile(
  kind: NoFile,
  { name }: Pick<FolderConfig, 'name'>,
  closed: string | undefined,
): { readonly rule: string; readonly next: string } {
  if (kind === 'link')
    return {
      rule: `A symbolic link is not followed: followSymlinks of folder ${name} is false.`,
      next: 'Nothing, unless `followSymlinks` is set to true: then it is followed to what stands in the same folder.',
    };
  if (kind === 'other')
    return { rule: 'Only regular files are taken: no socket, pipe or device.', next: 'Nothing.' };
  if (closed !== undefined)
    return {
      rule: `A rule keeps it out with everything in it: ${closed}.`,
      next: 'Nothing, unless the rule is changed.',
    };
  return {
    rule: `No rule keeps it out: each file in it is taken or not by the rules of folder ${name}.`,
    next: 'Nothing for the directory itself: ask about a file in it; `peersync list` names those that are known.',
  };
}
