import { access, constants, statfs } from 'node:fs/promises';
import type { Config } from '../config/config.js';
import { type Clock, systemClock, wallAheadMs } from '../lib/clock.js';
import { messageOf, PeersyncError } from '../lib/errors.js';
import type { Stuck } from '../lib/health.js';
import { VERSION } from '../lib/process.js';
import { counted, numberText, sentence } from '../lib/text.js';
import { wallClockText } from '../lib/units.js';
import type { Mirrors } from '../mirror/mirrors.js';
import { mirrorReports } from '../mirror/plan.js';
import type { MirrorReport } from '../mirror/record.js';
import type { PeerClient } from '../peer/client.js';
import { type DialectName, rememberedDialect } from '../peer/dialect.js';
import { TROUBLE_WORDS } from '../queue/breaker.js';
import type { Paused, QueueStatus, RequestQueue } from '../queue/request-queue.js';
import type { Status, Trouble } from '../state/entry.js';
import type { StateView } from '../state/state.js';
import type { Uplink, UplinkStatus } from '../uplink/uplink.js';
import type { FolderStatus, PathProblem, Watcher } from '../watch/watcher.js';
import { keptPause } from './pausing.js';
import type { Statistics, StatisticsReport } from './statistics.js';

/** A disk that gives no answer, and what waits for it. */
export interface SilentDisk {
  readonly path: string;
  /** The beginning of a sentence. */
  readonly what: string;
  /** Since when it waits, in ms since the epoch. */
  readonly since: number;
}

/** What of a running daemon is told. */
export interface Live {
  /** In ms since the epoch. */
  readonly startedAt: number;
  /** All dates here are of its steady time. */
  readonly clock: Pick<Clock, 'now' | 'wall'>;
  readonly current: {
    /** The keys of the configuration whose new values wait for a restart. */
    readonly restart: readonly string[];
    readonly report: ConfigurationReport;
  };
  readonly parts: {
    /** Also of the embedded peer, which only has it while it runs. */
    readonly peerUrl: string;
    readonly client: Pick<PeerClient, 'dialect'>;
    readonly queue: Pick<RequestQueue, 'status'>;
    readonly uplink: Pick<Uplink, 'status' | 'isInFlight' | 'nextLook'>;
    readonly watcher: Pick<Watcher, 'status' | 'problems'>;
    readonly mirrors: Pick<Mirrors, 'status'>;
    readonly statistics: Pick<Statistics, 'report'>;
  };
  readonly page?: { readonly url: string | undefined } | undefined;
  readonly watchdog?:
    | { readonly silentDisk: SilentDisk | undefined; readonly stuck: readonly Stuck[] }
    | undefined;
}

/** What a reload of the configuration did. */
export interface ReloadReport {
  /** What takes effect from now on, a line each. */
  readonly changes: readonly string[];
  /** The keys whose new values wait for a restart. */
  readonly restart: readonly string[];
}

/** What is wrong with a changed configuration, of which nothing was taken; when that was, in ms since the epoch. */
export type Refused = Trouble & { readonly at: number };

/** How a running daemon stands to the file of its configuration. */
export interface ConfigurationReport {
  /** When the file was last taken up, by a start or a reload, in ms since the epoch. */
  readonly takenUpAt: number;
  /** Why the last reload took nothing of it; only where that is so. */
  readonly refused?: Refused | undefined;
}

/** What waits for a disk that does not answer, and since when in ms since the epoch. */
export type DiskTrouble = Trouble & { readonly since: number };

export type ItemCounts = Readonly<Record<Status, number>>;

export interface FolderReport {
  readonly name: string;
  readonly path: string;
  readonly collection: string;
  readonly items: ItemCounts;
  readonly passedOver: number;
  /** What the watcher is doing there; only while the daemon runs. */
  readonly watch?: FolderStatus | undefined;
}

/** The gravest first. */
const SEVERITIES = ['critical', 'error', 'warning', 'info'] as const;

/**
 * Something that a person should know.
 *
 * - `critical`: it keeps new files from becoming searchable; `/readyz` fails.
 * - `error`: a promise is broken, or nothing goes on without a person.
 * - `warning`: a part is left out, or waits for a person.
 * - `info`: as a person wanted it.
 */
export interface Condition {
  readonly code: string;
  readonly severity: (typeof SEVERITIES)[number];
  /** What it is about: `peer`, `state`, `disk`, `configuration`, or the name of a folder, a collection or a mirror. */
  readonly subject: string;
  /** Whole sentences. */
  readonly message: string;
  /** What to do, in whole sentences. */
  readonly hint: string;
  /** In ms since the epoch. */
  readonly since?: number | undefined;
}

/** Everything `status` says, also as JSON. Times are ms since the epoch. What only a daemon knows is there while it runs. */
export interface StatusReport {
  readonly version: string;
  readonly running: boolean;
  readonly pid?: number | undefined;
  readonly startedAt?: number | undefined;
  /**
   * How far the wall clock is ahead of the daemon's steady time, which all times here are of, in ms. Only where somebody has set the
   * clock since the daemon began.
   */
  readonly wallAheadMs?: number | undefined;
  readonly uplink?: UplinkStatus | undefined;
  readonly figures?: StatisticsReport | undefined;
  /** Whether the file of the configuration is what holds. */
  readonly configuration?: ConfigurationReport | undefined;
  /** What a person paused. */
  readonly paused?: Paused | undefined;
  /** The keys of the configuration whose new values wait for a restart, if any do. */
  readonly restart?: readonly string[] | undefined;
  /** Where the status page is; only while it is open. */
  readonly page?: string | undefined;
  readonly peer: {
    readonly url: string;
    readonly dialect?: DialectName | undefined;
    readonly queue?: QueueStatus | undefined;
  };
  readonly items: ItemCounts;
  readonly passedOver: number;
  readonly folders: readonly FolderReport[];
  /** The directory that the paths of mirrors are below. */
  readonly mirrorRoot: string;
  readonly mirrors: readonly MirrorReport[];
  /** The first ones. */
  readonly quarantined: readonly { readonly file: string; readonly code: string; readonly message: string }[];
  readonly problems: readonly PathProblem[];
  /** Of each list that is cut short: how many there are, and how many it shows. */
  readonly truncated?:
    | Partial<Record<'quarantined' | 'problems', { readonly total: number; readonly shown: number }>>
    | undefined;
  /** What keeps changes from being recorded: nothing is sent meanwhile. */
  readonly stateTrouble?: Trouble | undefined;
  /** A disk that does not answer; what it keeps waits. */
  readonly diskTrouble?: DiskTrouble | undefined;
  /** What does not go on by itself, if anything does not. */
  readonly stuck?: readonly Stuck[] | undefined;
  /** What opening the state repaired. */
  readonly repairs: readonly string[];
  /** What a person should know, the gravest first. */
  readonly conditions: readonly Condition[];
}

/** How many quarantined items a status names. */
const QUARANTINED_NAMED = 5;

/** @param now in ms since the epoch; looked at only where no daemon runs. @default the present */
export function statusReport(
  config: Config,
  state: StateView,
  live: Live | undefined,
  now = systemClock.now(),
): StatusReport {
  const parts = live?.parts;
  const watched = parts?.watcher.status() ?? [];
  const problems = parts?.watcher.problems() ?? [];
  const unnamed = watched.reduce((sum, { unnamedProblems = 0 }) => sum + unnamedProblems, 0);
  const counts = state.counts();
  const quarantined: StatusReport['quarantined'][number][] = [];
  for (const { folder, path, trouble } of state.entries.quarantined()) {
    if (quarantined.length === QUARANTINED_NAMED) break;
    quarantined.push({ file: `${folder}/${path}`, code: trouble.code, message: trouble.message });
  }
  const truncated = [
    ['quarantined', { total: counts.quarantined, shown: quarantined.length }] as const,
    ['problems', { total: problems.length + unnamed, shown: problems.length }] as const,
  ].filter(([, { total, shown }]) => total > shown);
  const queue = parts?.queue.status();
  const { failure } = state;
  const silent = live?.watchdog?.silentDisk;
  const report = {
    version: VERSION,
    running: live !== undefined,
    pid: live && process.pid,
    startedAt: live?.startedAt,
    // In whole seconds, so that a status changes only when something does.
    wallAheadMs: Math.round((live === undefined ? 0 : wallAheadMs(live.clock)) / 1_000) * 1_000 || undefined,
    uplink: parts?.uplink.status(),
    figures: parts?.statistics.report(),
    configuration: live?.current.report,
    paused: live === undefined ? keptPause(state, now) : queue?.paused,
    restart: someOf(live?.current.restart),
    page: live?.page?.url,
    peer: {
      url: parts?.peerUrl ?? config.peer.url,
      dialect: parts === undefined ? dialectOf(config.peer, state) : parts.client.dialect,
      queue,
    },
    items: itemCounts(counts),
    passedOver: counts.passed,
    folders: config.folders.map(({ name, path, collection }) => {
      const own = state.counts(name);
      const watch = watched.find((folder) => folder.name === name);
      return { name, path, collection, items: itemCounts(own), passedOver: own.passed, watch };
    }),
    mirrorRoot: config.mirror.root,
    mirrors: parts?.mirrors.status() ?? mirrorReports(config.mirror, state),
    quarantined,
    problems,
    truncated: truncated.length === 0 ? undefined : Object.fromEntries(truncated),
    stateTrouble: failure && { code: failure.code, message: failure.message, hint: failure.hint },
    diskTrouble: silent && {
      code: 'DISK_SILENT',
      message: sentence(`The disk of ${silent.path} does not answer: ${silent.what}`),
      hint: DISK_HINT,
      since: silent.since,
    },
    stuck: someOf(live?.watchdog?.stuck),
    repairs: state.repairs,
  };
  return { ...report, conditions: conditionsOf(report) };
}

function someOf<T>(list: readonly T[] = []): readonly T[] | undefined {
  return list.length === 0 ? undefined : list;
}

/** What the peer speaks, as far as is known without asking it. */
function dialectOf({ url, dialect }: Config['peer'], state: StateView): DialectName | undefined {
  if (url === 'embedded') return 'standard';
  return dialect === 'auto' ? rememberedDialect(state.meta('dialect'), url) : dialect;
}

export function itemCounts(counts: ItemCounts): ItemCounts {
  const { pending, accepted, confirmed, quarantined, gone } = counts;
  return { pending, accepted, confirmed, quarantined, gone };
}

const DISK_HINT =
  'Nothing is lost, and the work goes on by itself when it answers. See whether it is well: a server that is away, a device with errors (`dmesg`), a file system that was frozen.';
const HELD = 'Mount it or bring it back, or mend its path in the configuration.';

/** A folder could not be scanned, for its root is missing or doubtful. */
export function heldError({ name, trouble }: FolderStatus): PeersyncError {
  return new PeersyncError({
    code: 'FOLDER_HELD',
    message: `The folder ${name} was left out: ${trouble?.message ?? 'it is not there'}`,
    hint: trouble?.hint ?? HELD,
  });
}

/** Mirrors and paths in trouble are named one by one up to this many, then counted. */
const NAMED = 3;

/** All conditions of a status, the gravest first. Every face renders this list, so that they cannot disagree. */
export function conditionsOf(status: Omit<StatusReport, 'conditions'>): readonly Condition[] {
  const { configuration, diskTrouble, items, mirrors, paused, problems, repairs, stateTrouble } = status;
  const all: Condition[] = [];
  const add = (
    severity: Condition['severity'],
    code: string,
    subject: string,
    { message, hint, since }: Pick<Condition, 'message' | 'hint' | 'since'>,
  ) => all.push({ code, severity, subject, message: sentence(message), hint: sentence(hint), since });

  for (const { name, since, what } of status.stuck ?? []) {
    const hint = 'Start peersync again, and tell its makers what the log says.';
    add('critical', 'STUCK', name, { message: `It stands still: ${what}`, hint, since });
  }
  if (stateTrouble !== undefined) add('critical', stateTrouble.code, 'state', stateTrouble);
  if (diskTrouble !== undefined) add('critical', diskTrouble.code, 'disk', diskTrouble);
  const { circuit } = status.peer.queue ?? {};
  if (circuit?.reason !== undefined && circuit.state !== 'closed') {
    const { reason, since } = circuit;
    add('critical', 'PEER', 'peer', {
      message: `The peer ${TROUBLE_WORDS[reason.kind]}: ${reason.message}`,
      hint: reason.hint ?? 'It is tried again by itself; what is to be pushed waits.',
      since,
    });
  } else if (status.running && status.peer.dialect === undefined)
    add('critical', 'PEER', 'peer', {
      message: 'The peer has not answered yet since peersync started.',
      hint: 'It is asked again by itself; see peer.url if this stays so.',
    });
  for (const alert of status.figures?.alerts ?? []) add('error', alert.code, alert.collection, alert);
  for (const { name, watch } of status.folders) {
    const isHeld = watch?.state === 'held';
    if (watch === undefined || (watch.trouble === undefined && !isHeld)) continue;
    const { since, state, trouble = { message: 'it is not there', hint: HELD } } = watch;
    const message = `The folder ${name} is ${state}: ${trouble.message}`;
    const code = isHeld ? 'FOLDER_HELD' : 'FOLDER_DEGRADED';
    add(isHeld ? 'critical' : 'warning', code, name, { message, hint: trouble.hint, since });
  }
  if (items.quarantined > 0) {
    const [only] = items.quarantined === 1 ? status.quarantined : [];
    const why = only === undefined ? '' : ` ${only.message}`;
    add('warning', 'QUARANTINE', 'quarantine', {
      message: `${counted(items.quarantined, 'file')} cannot be delivered without a change.${why}`,
      hint: '`peersync list --status quarantined` says why, and `peersync retry` tries again.',
    });
  }
  const alarmed = mirrors.flatMap(({ alarm, name }) => (alarm ? { name, trouble: alarm } : []));
  const failing = mirrors.flatMap(({ alarm, failure, name }) =>
    failure && !alarm ? { name, trouble: failure } : [],
  );
  for (const [severity, code, of, what] of [
    ['error', 'MIRROR_ALARM', alarmed, 'have an alarm'],
    ['warning', 'MIRROR_FAILS', failing, 'fail, and are tried again'],
  ] as const) {
    const message = `${numberText(of.length)} mirrors ${what}.`;
    if (of.length > NAMED) add(severity, code, 'mirrors', { message, hint: '`peersync status` names them.' });
    else for (const { name, trouble } of of) add(severity, code, name, trouble);
  }
  const conflicts = mirrors.flatMap(({ conflicts: own = [] }) => (own.length > 0 ? [own.length] : []));
  if (conflicts.length > 0) {
    const cells = conflicts.reduce((sum, count) => sum + count, 0);
    add('warning', 'MIRROR_CONFLICTS', 'conflicts', {
      message: `${counted(cells, 'cell')} of ${counted(conflicts.length, 'edited table')} changed on both sides; the peer's value was kept, yours is in a file beside it.`,
      hint: 'Look at that file, and edit the table again where your value is the right one.',
    });
  }
  const grouped = problems.length > NAMED;
  const isOneFolder = problems.every(({ folder }) => folder === problems[0]?.folder);
  const counts = `${counted(problems.length, 'path')} could not be looked at, the first of them `;
  for (const { folder, path, trouble } of grouped ? problems.slice(0, 1) : problems)
    add('warning', `PATH_${trouble.code}`, grouped && !isOneFolder ? 'folders' : folder, {
      message: `${grouped ? counts : ''}${path}: ${trouble.message}`,
      hint: trouble.hint,
    });
  if (repairs.length > 0)
    add('warning', 'STATE_REPAIRED', 'state', {
      message: 'The state was repaired when peersync started.',
      hint: '`peersync status` says what was mended.',
    });
  if (configuration?.refused !== undefined) {
    const { at, hint, message } = configuration.refused;
    add('warning', 'CONFIG_REFUSED', 'configuration', {
      message: `The changed configuration was refused, and the one before holds: ${message}`,
      hint,
      since: at,
    });
  }
  if (status.restart !== undefined)
    add('warning', 'RESTART_NEEDED', 'configuration', {
      message: `A restart is needed for the new ${status.restart.length === 1 ? 'value' : 'values'} of ${status.restart.join(', ')}.`,
      hint: 'The values before hold until then.',
    });
  if (paused !== undefined)
    add('info', 'PAUSED', 'peersync', {
      message: 'A person paused the work with the peer; changes on disk are read and wait.',
      hint: '`peersync resume` ends the pause.',
      since: paused.since,
    });
  return all.sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));
}

/** What keeps new files from becoming searchable now; empty where nothing does. */
export async function readyReasons(
  { conditions }: StatusReport,
  stateDir: string,
): Promise<readonly Condition[]> {
  const reasons = conditions.filter(({ severity }) => severity === 'critical');
  // A disk that does not answer may be that of the state, and would keep the answer waiting.
  if (reasons.some(({ subject }) => subject === 'disk' || subject === 'state')) return reasons;
  const about = { severity: 'critical', subject: 'state' } as const;
  try {
    await access(stateDir, constants.R_OK | constants.W_OK | constants.X_OK);
    if ((await statfs(stateDir)).bavail > 0) return reasons;
    const message = `No space is left on the disk of the state in ${stateDir}.`;
    const hint = 'Free some space there; nothing is lost, and the work goes on by itself.';
    return [...reasons, { ...about, code: 'STATE_FULL', message, hint }];
  } catch (error) {
    const message = `The state in ${stateDir} cannot be written (${messageOf(error)}).`;
    const hint = 'Make the directory writable for the user that runs peersync, or check its disk.';
    return [...reasons, { ...about, code: 'STATE_UNWRITABLE', message, hint }];
  }
}

/** So many conditions are named in the sentence. */
const NAMED_IN_SENTENCE = 5;

/**
 * How the daemon is, in one sentence for `systemctl status`.
 *
 * It gives times of day and not how long ago something was: it stands until something changes.
 */
export function statusSentence(
  status: Pick<StatusReport, 'items' | 'figures' | 'conditions' | 'paused' | 'wallAheadMs' | 'peer'>,
): string {
  const { conditions, figures, items, paused, peer, wallAheadMs = 0 } = status;
  const text = (at: number) => wallClockText(at + wallAheadMs);
  const waiting = items.pending + items.accepted;
  const parts = [
    `${counted(items.confirmed, 'document')} confirmed`,
    waiting === 0 ? 'nothing waiting' : `${numberText(waiting)} waiting`,
  ];
  if (items.quarantined > 0) parts.push(`${numberText(items.quarantined)} in quarantine`);
  if (figures?.lastConfirmedAt !== undefined)
    parts.push(`last confirmation ${text(figures.lastConfirmedAt)}`);
  const said = [parts.join(', ')];
  if (paused !== undefined) {
    const until = paused.until === undefined ? '' : ` until ${text(paused.until)}`;
    said.push(`paused since ${text(paused.since)}${until}`);
  }
  const named = conditions.filter(({ code }) => code !== 'QUARANTINE' && code !== 'PAUSED');
  for (const { message, since } of named.slice(0, NAMED_IN_SENTENCE))
    said.push(`${message.replace(/\.$/, '')}${since === undefined ? '' : ` (since ${text(since)})`}`);
  const more = named.length - NAMED_IN_SENTENCE;
  if (more > 0) said.push(`and ${more} more: \`peersync status\``);
  const { pausedUntil } = peer.queue ?? {};
  if (pausedUntil !== undefined) said.push(`the peer asked to wait until ${text(pausedUntil)}`);
  return said.join('; ');
}
