import { lstat, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Config, FolderConfig } from '../config/config.js';
import { EXIT, messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import { sentence } from '../lib/text.js';
import { TROUBLE_WORDS } from '../queue/breaker.js';
import type { Entry, Evidence, HistoryEntry, Trouble } from '../state/entry.js';
import type { StateView } from '../state/state.js';
import { isRemembered } from '../state/transitions.js';
import { FolderRules, trouble as watchTrouble } from '../watch/rules.js';
import { locate } from './items.js';
import type { Live } from './status.js';

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
  readonly url?: string | undefined;
  readonly collection?: string | undefined;
  readonly version?: {
    readonly size: number;
    readonly mtimeMs: number;
    readonly sha256?: string | undefined;
  };
  /** Set when the text was converted for the peer. */
  readonly conversion?: string | undefined;
  readonly attempts?: number | undefined;
  readonly evidence?: Evidence | undefined;
  readonly trouble?: Trouble | undefined;
  readonly history: readonly HistoryEntry[];
  /** What happens next, and when. */
  readonly next: string;
  readonly nextAt?: number | undefined;
}

type Next = Pick<WhyReport, 'next' | 'nextAt'>;

/** What stands at a path and is no file. A link is one that is not followed. */
type NoFile = 'directory' | 'link' | 'other';

/** `held`: absent, as everything is while the root of its folder is missing or doubtful. */
type OnDisk = 'file' | 'absent' | 'held' | NoFile | { readonly unreadable: string };

/** Explains one path, wherever it is: in which folder, by which rule, how far it came and what happens next. */
export async function explain(
  file: string,
  config: Config,
  state: StateView,
  live: Live | undefined,
): Promise<WhyReport> {
  const absolute = resolve(file);
  const { folder, path = '' } = (await locate(config, absolute)) ?? {};
  if (folder === undefined) return outside(absolute, config);
  if (path === '')
    throw new PeersyncError({
      code: 'NOT_A_FILE',
      message: `${absolute} is the folder ${folder.name} itself.`,
      hint: 'Name a file in it, or see `peersync status`.',
      exitCode: EXIT.usage,
    });
  const watch = live?.parts.watcher.status().find(({ name }) => name === folder.name);
  const isHeld = watch?.state === 'held' || (await lookAt(folder.path, true)) === 'absent';
  const found = await lookAt(absolute, folder.followSymlinks);
  const onDisk = isHeld && found === 'absent' ? 'held' : found;
  const rules = new FolderRules(folder);
  await rules.readIgnoreFiles(path);
  const decision = rules.decide(path);
  const rule = sentence(decision.rule.charAt(0).toUpperCase() + decision.rule.slice(1));
  const entry = state.get(folder.name, path);
  const base = { file: absolute, folder: folder.name, path, history: entry?.history ?? [] };
  if (entry !== undefined) {
    const { since, status, version } = entry;
    const { size, mtimeMs } = version;
    const item = status === 'passed' ? undefined : entry;
    const isElsewhere =
      status === 'pending' && onDisk === 'file' && decision.take && decision.url !== entry.url;
    return {
      ...{ ...base, verdict: status, rule, since },
      version: { size, mtimeMs, sha256: 'sha256' in version ? version.sha256 : undefined },
      conversion: conversionOf(entry),
      ...{ url: item?.url, collection: item?.collection, attempts: item?.attempts },
      evidence: status === 'confirmed' ? entry.evidence : undefined,
      trouble: entry.trouble,
      ...(isElsewhere ? { next: ELSEWHERE } : nextOf(entry, onDisk, live, state.failure)),
    };
  }
  const problem = live?.parts.watcher
    .problems()
    .find((p) => absolute === p.path || absolute.startsWith(`${p.path}/`));
  if (typeof onDisk === 'object')
    return {
      ...{ ...base, verdict: 'unknown' },
      rule: 'Whether a rule takes it is not known, for it cannot be looked at.',
      trouble: problem?.trouble ?? watchTrouble.unreadable(onDisk.unreadable),
      next: 'It is taken up by the next scan after it can be read.',
    };
  // What a rule keeps out is told of a link or a pipe first, for it is not looked at; of a directory its own rule is told.
  if (onDisk === 'directory' || (decision.take && (onDisk === 'link' || onDisk === 'other')))
    return { ...base, verdict: 'ignored', kind: onDisk, ...noFile(onDisk, folder, rules.closed(path)) };
  if (!decision.take)
    return { ...base, verdict: 'ignored', rule, next: 'Nothing, unless the rule is changed.' };
  const unknown = { ...base, verdict: 'unknown', rule, trouble: problem?.trouble } as const;
  // It has no URL as long as its name is the problem.
  if (problem?.path === absolute)
    return { ...unknown, next: 'It is taken up by the next scan after that is mended.' };
  const { url, collection } = decision;
  return { ...unknown, url, collection, next: nextOfUnknown(onDisk, live !== undefined) };
}

/** What is said of everything that is in no folder, whether it exists or not. */
function outside(file: string, { folders }: Pick<Config, 'folders'>): WhyReport {
  return {
    ...{ file, verdict: 'outside', history: [] },
    rule: `It is in none of the watched folders (${folders.map(({ path }) => path).join(', ')}).`,
    next: 'Nothing, unless it is moved into one of them or its directory is added to `folders`.',
  };
}

const HELD = 'Its folder is held, and nothing is concluded from that; it goes on when the folder is back.';
const ELSEWHERE =
  'Its folder has another URL now: the next scan gives it the new one, and it is pushed there.';

function nextOfUnknown(onDisk: OnDisk, isRunning: boolean): string {
  if (onDisk === 'held') return HELD;
  if (onDisk === 'absent')
    return 'Nothing: there is no such file, and there never was one that peersync saw.';
  return isRunning
    ? 'It was not seen at rest yet; it is taken up once it has not changed for `settle`, at the latest by the next scan.'
    : 'It is taken up by the scan when the daemon starts (`peersync run`) or by `peersync once`.';
}

function nextOf(
  entry: Entry,
  onDisk: OnDisk,
  live: Live | undefined,
  unrecorded: Pick<Trouble, 'message' | 'hint'> | undefined,
): Next {
  const { status } = entry;
  if (status === 'gone')
    return {
      next: entry.sent
        ? 'Nothing: the peer keeps the document, for its interface has no way to remove one.'
        : 'Nothing.',
    };
  if (onDisk === 'held') return { next: HELD };
  if (onDisk === 'absent') return { next: 'The file is not there any more; the next scan marks it as gone.' };
  if (status === 'confirmed') return { next: 'Nothing, until the file changes.' };
  if (status === 'quarantined')
    return { next: 'Nothing, until the file changes or `peersync retry` asks for another try.' };
  if (status === 'passed') return { next: 'Nothing, until the file or the rule changes.' };
  if (unrecorded !== undefined)
    return { next: `It waits. ${sentence(unrecorded.message)} ${unrecorded.hint}` };
  if (live === undefined) {
    const what = status === 'pending' ? 'pushed' : 'looked up in the peer';
    return { next: `It is ${what} when the daemon runs (\`peersync run\`) or by \`peersync once\`.` };
  }
  const isInFlight = live.parts.uplink.isInFlight(entry);
  const isDoubtful = status === 'pending' && entry.doubt !== undefined && !isInFlight;
  const waiting = waitingForPeer(live.parts, status === 'accepted' || isDoubtful ? 'confirm' : 'push');
  if (waiting !== undefined) return waiting;
  const look = live.parts.uplink.nextLook(entry);
  if (isDoubtful) {
    const next =
      'Its push was never answered: it is looked up in the peer, and pushed again if it is not there.';
    return { next, nextAt: look?.at };
  }
  if (status === 'pending')
    return isInFlight
      ? { next: 'It is on its way to the peer at this moment.' }
      : { next: 'It is pushed.', nextAt: entry.notBefore };
  const soFar = look?.lastAnswer === undefined ? '' : ` (so far: ${look.lastAnswer})`;
  const next = isRemembered(entry)
    ? `The peer was sent this before: it is looked up${soFar}, and pushed if it is not there.`
    : `It is looked up in the peer${soFar}.`;
  return { next, nextAt: look?.at };
}

/** What keeps requests of this lane from the peer, if anything does. */
function waitingForPeer({ client, queue }: Live['parts'], lane: 'push' | 'confirm'): Next | undefined {
  const { circuit, paused, pausedUntil } = queue.status();
  if (paused !== undefined)
    return {
      next: 'It waits, for peersync is paused: `peersync resume` lets it go on.',
      nextAt: paused.until,
    };
  const { reason, held, nextProbeAt } = circuit;
  // Nothing is sent before the dialect is known: the trouble of finding that out keeps every lane.
  if (reason !== undefined && (held.includes(lane) || client.dialect === undefined)) {
    const next = `It waits for the peer, which ${TROUBLE_WORDS[reason.kind]}: ${sentence(reason.message)}`;
    return { next: nextProbeAt === undefined ? `${next} It is tried again now.` : next, nextAt: nextProbeAt };
  }
  if (pausedUntil === undefined) return undefined;
  return { next: 'It waits, for the peer asked to be left alone for a while.', nextAt: pausedUntil };
}

function conversionOf({ version }: Entry): string | undefined {
  if (!('encoding' in version) || version.encoding === 'utf-8' || version.encoding === 'binary')
    return undefined;
  return `The file is ${version.encoding}; its text travels as UTF-8.`;
}

async function lookAt(path: string, followSymlinks: boolean): Promise<OnDisk> {
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

/** What holds for what is no file. @param closed the rule that keeps a directory out with all that is in it */
function noFile(
  kind: NoFile,
  { name }: FolderConfig,
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
