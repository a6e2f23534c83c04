import { access, constants } from 'node:fs/promises';
import type { Config } from '../config/config.js';
import { type Clock, systemClock, wallAheadMs } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Stuck } from '../lib/health.js';
import type { Logger } from '../lib/logger.js';
import { VERSION } from '../lib/process.js';
import { counted, escapeInvisible, numberText, quoted, sentence } from '../lib/text.js';
import { wallClockText } from '../lib/units.js';
import type { Mirrors } from '../mirror/mirrors.js';
import { mirrorReports } from '../mirror/plan.js';
import type { MirrorReport } from '../mirror/record.js';
import type { PeerClient } from '../peer/client.js';
import type { DialectName } from '../peer/dialects/dialect.js';
import { rememberedDialect, rememberedEmbedded } from '../peer/remembered.js';
import { PEER_FAILURE_WORDS } from '../queue/breaker.js';
import type { RequestQueue } from '../queue/request-queue.js';
import type { Failure } from '../state/entry.js';
import type { State, StateView } from '../state/state.js';
import type { Audit } from '../uplink/audit.js';
import type { DialectSource } from '../uplink/deps.js';
import { repairAuditProgress } from '../uplink/repair-audit.js';
import { unseenAddresses } from '../uplink/unseen-addresses.js';
import type { Uplink } from '../uplink/uplink.js';
import { massDeletionCondition, unapprovedMassDeletion } from '../watch/mass-deletions.js';
import type { Watcher } from '../watch/watcher.js';
import { formerFolders } from './former-folders.js';
import { paceOf } from './pace.js';
import { keptPause } from './pausing.js';
import type { Statistics } from './statistics.js';

/**
 * What waits for the disk of this directory, which does not answer, and since when in ms since the
 * epoch.
 */
export type DiskFailure = Failure & { readonly path: string; readonly since: number };

/** A line of the log that a person may want to see on the page. */
export interface RecentEvent {
  /** Grows by one with each. */
  readonly id: number;
  /** In ms since the epoch. */
  readonly at: number;
  readonly level: 'info' | 'warn' | 'error';
  readonly message: string;
  /** What kind of event it is, where it says so. */
  readonly event?: string | undefined;
}

/** How a running daemon stands to the file of its configuration. */
export interface ConfigurationReport {
  /** When the file was last taken up, by a start or a reload, in ms since the epoch. */
  readonly takenUpAt: number;
  /** The file, absolute. */
  readonly file?: string | undefined;
  /** Why the last reload took nothing of it, and when that was; only where that is so. */
  readonly refused?: (Failure & { readonly at: number }) | undefined;
}

/**
 * The configuration that holds now. Whoever runs longer than a moment keeps this and not a
 * `Config`: a reload replaces what is in it.
 */
export interface CurrentConfig {
  config: Config;
  /** The keys whose values in the file take effect only by a restart. */
  restart: readonly string[];
  report: ConfigurationReport;
}

/** What a reload of the configuration did. */
export interface ReloadReport {
  /** What takes effect from now on, a line each. */
  readonly changes: readonly string[];
  /** The keys whose new values wait for a restart. */
  readonly restart: readonly string[];
}

/** A running daemon, for whoever asks it or tells of it. */
export interface Live {
  /** In ms since the epoch. */
  readonly startedAt: number;
  /** All dates are of its steady time. */
  readonly clock: Clock;
  readonly log: Logger;
  readonly current: CurrentConfig;
  /** The file of the configuration, where commands have to name it with `-c`. */
  readonly configFile?: string | undefined;
  readonly parts: {
    readonly state: State;
    /** Also of the embedded peer, which only has it while it runs. */
    readonly peerUrl: string;
    readonly client: PeerClient;
    readonly dialect: DialectSource;
    readonly queue: RequestQueue;
    readonly uplink: Uplink;
    readonly audit: Pick<Audit, 'repairProgress'>;
    readonly watcher: Watcher;
    readonly mirrors: Mirrors;
    readonly statistics: Statistics;
  };
  /** What the log said lately, oldest first. */
  readonly recents: readonly RecentEvent[];
  readonly page?: { readonly url: string | undefined } | undefined;
  readonly watchdog?:
    | { readonly diskFailure: DiskFailure | undefined; readonly stuck: readonly Stuck[] }
    | undefined;
  /** Aborts when the daemon stops. */
  readonly stopping: AbortSignal;
  status(): StatusReport;
  /** Takes up the configuration as its file is now. */
  reload(): Promise<ReloadReport>;
}

/** The gravest first. */
const SEVERITIES = ['critical', 'error', 'warning', 'info'] as const;
type Severity = (typeof SEVERITIES)[number];

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
  readonly severity: Severity;
  /**
   * What it is about: `peer`, `state`, `disk`, `documents`, `configuration`, or the name of a
   * folder, a collection or a mirror.
   */
  readonly subject: string;
  /** Whole sentences. */
  readonly message: string;
  /** What to do, in whole sentences. */
  readonly hint: string;
  /** In ms since the epoch. */
  readonly since?: number | undefined;
}

/** Everything `status` says, also as JSON; see `factsOf`. */
export type StatusReport = StatusFacts & {
  /** What a person should know, the gravest first. */
  readonly conditions: readonly Condition[];
};
export type StatusFacts = ReturnType<typeof factsOf>;
export type FolderReport = StatusFacts['folders'][number];

/** @param now in ms since the epoch; looked at only where no daemon runs. @default the present */
export function statusReport(
  config: Config,
  state: StateView,
  live: Live | undefined,
  now = systemClock.now(),
): StatusReport {
  const facts = factsOf(config, state, live, now);
  return { ...facts, conditions: conditionsOf(facts) };
}

/** How many quarantined items a status names. */
const QUARANTINED_NAMED = 5;

/** Times are ms since the epoch. What only a daemon knows is there while it runs. */
function factsOf(config: Config, state: StateView, live: Live | undefined, now: number) {
  const { parts, watchdog } = live ?? {};
  const watched = parts?.watcher.status() ?? [];
  const problems = parts?.watcher.problems() ?? [];
  const unnamed = watched.reduce((sum, { unnamedProblems = 0 }) => sum + unnamedProblems, 0);
  const counts = state.counts();
  const quarantined: { readonly file: string; readonly code: string; readonly message: string }[] =
    [];
  for (const { folder, path, failure } of state.entries.quarantined()) {
    if (quarantined.length === QUARANTINED_NAMED) break;
    quarantined.push({ file: `${folder}/${path}`, code: failure.code, message: failure.message });
  }
  const [total, shown] = [counts.quarantined, quarantined.length];
  const truncated = {
    ...(total > shown && { quarantined: { total, shown } }),
    ...(unnamed > 0 && { problems: { total: problems.length + unnamed, shown: problems.length } }),
  };
  const queue = parts?.queue.status();
  const { failure } = state;
  const figures = parts?.statistics.report();
  const { confirmedPerSecond = 0 } = figures ?? {};
  const isScanning = watched.some((folder) => folder.state === 'scanning');
  return {
    version: VERSION,
    running: live !== undefined,
    pid: live && process.pid,
    startedAt: live?.startedAt,
    /**
     * How far the wall clock is ahead of the daemon's steady time, which all times here are of, in
     * ms. Only where somebody has set the clock since the daemon began. In whole seconds, so that a
     * status changes only when something does.
     */
    wallAheadMs: (live && Math.round(wallAheadMs(live.clock) / 1_000) * 1_000) || undefined,
    uplink: parts?.uplink.status(),
    figures,
    /** Whether the file of the configuration is what holds. */
    configuration: live?.current.report,
    /** What a person paused. */
    paused: live === undefined ? keptPause(state, now) : queue?.paused,
    /** The keys of the configuration whose new values wait for a restart, if any do. */
    restart: live?.current.restart.length ? live.current.restart : undefined,
    /** Where the status page is; only while it is open. */
    page: live?.page?.url,
    peer: {
      url: parts?.peerUrl ?? config.peer.url,
      /** Whether it is the embedded one, which has pages of its own. */
      ...(config.peer.url === 'embedded' && { embedded: true }),
      dialect: parts === undefined ? knownDialect(config.peer, state) : parts.client.dialect,
      queue,
    },
    items: counts,
    /** How fast what waits becomes searchable; only while it does. */
    pace: paceOf(
      { items: counts, confirmedPerSecond, queue, isScanning },
      live?.clock.now() ?? now,
    ),
    folders: config.folders.map(({ name, path, collection, onDelete }) => {
      const watch = watched.find((folder) => folder.name === name);
      const held = onDelete === 'keep' ? undefined : unapprovedMassDeletion(state, name);
      const folder = { name, path, collection, items: state.counts(name), watch };
      /** Removed files whose documents wait for `approve-deletes`. */
      return { ...folder, ...(held && { heldDeletes: held }) };
    }),
    /** Folders that left the configuration, and whose documents the peer may still have. */
    formerFolders: formerFolders(config, state),
    /** Why the peer may never show documents of some addresses. */
    unseenAddresses: unseenAddresses(state),
    /** The directory that the paths of mirrors are below. */
    mirrorRoot: config.mirror.root,
    mirrors: parts?.mirrors.status() ?? mirrorReports(config.mirror, state),
    /** The first ones. */
    quarantined,
    problems,
    /** Of each list that is cut short: how many there are, and how many it shows. */
    truncated: Object.keys(truncated).length === 0 ? undefined : truncated,
    /** What keeps changes from being recorded: nothing is sent meanwhile. */
    stateFailure: failure && { code: failure.code, message: failure.message, hint: failure.hint },
    /** A disk that does not answer; what it keeps waits. */
    diskFailure: watchdog?.diskFailure,
    /** What does not go on by itself. */
    stuck: watchdog?.stuck ?? [],
    /** What opening the state repaired. */
    repairs: state.repairs,
    /** How far the audit of everything is that follows on a repair; only until it is done. */
    repairAudit: parts === undefined ? repairAuditProgress(state) : parts.audit.repairProgress,
  };
}

/** Under this name the state keeps whether the peer is an embedded one. */
export const EMBEDDED_META = 'embedded-peer';

/** Whether the peer is an embedded one, as far as is known without asking it. */
export function knownEmbedded({ url }: Config['peer'], state: StateView): boolean | undefined {
  return url === 'embedded' || rememberedEmbedded(state.meta(EMBEDDED_META), url);
}

/** What the peer speaks, as far as is known without asking it. */
export function knownDialect(
  { url, dialect }: Config['peer'],
  state: StateView,
): DialectName | undefined {
  if (url === 'embedded') return 'standard';
  return dialect === 'auto' ? rememberedDialect(state.meta('dialect'), url) : dialect;
}

/** Where more of one kind are in trouble, the first stands for all of them. */
const NAMED = 3;

/**
 * All conditions of a status, the gravest first. Every face renders this list, so that they cannot
 * disagree.
 */
export function conditionsOf(status: StatusFacts): readonly Condition[] {
  const { configuration, diskFailure, items, mirrors, paused, restart, stateFailure } = status;
  const all: Condition[] = [];
  type Told = Pick<Condition, 'message' | 'hint' | 'since'>;
  const add = (severity: Severity, code: string, subject: string, { message, hint, since }: Told) =>
    all.push({ code, severity, subject, message: sentence(message), hint: sentence(hint), since });
  const addMany = (
    severity: Severity,
    what: string,
    list: readonly (Told & { readonly code: string; readonly subject: string })[],
  ) => {
    const [first] = list;
    const message = `${numberText(list.length)} ${what}, the first of them ${first?.subject}: ${first?.message}`;
    if (first && list.length > NAMED)
      add(severity, first.code, first.subject, { ...first, message });
    else for (const one of list) add(severity, one.code, one.subject, one);
  };

  for (const { name, since, what } of status.stuck) {
    const hint = 'Start peersync again, and tell its makers what the log says.';
    add('critical', 'STUCK', name, { message: `It stands still: ${what}`, hint, since });
  }
  if (stateFailure) add('critical', stateFailure.code, 'state', stateFailure);
  if (diskFailure) add('critical', diskFailure.code, 'disk', diskFailure);
  const { held: lanes = [], reason, since, state: circuit } = status.peer.queue?.circuit ?? {};
  if (reason !== undefined && circuit !== 'closed') {
    const {
      kind,
      message,
      hint = 'It is tried again by itself; what is to be pushed waits.',
    } = reason;
    const keepsFiles = lanes.includes('push') || lanes.includes('confirm');
    const words = `The peer ${PEER_FAILURE_WORDS[kind]}: ${message}`;
    add(keepsFiles ? 'critical' : 'warning', 'PEER', 'peer', { message: words, hint, since });
  } else if (status.running && status.peer.dialect === undefined)
    add('critical', 'PEER', 'peer', {
      message: 'The peer has not answered yet since peersync started.',
      hint: 'It is asked again by itself; see peer.url if this stays so.',
    });
  for (const unseen of status.unseenAddresses) add('error', unseen.code, 'peer', unseen);
  for (const alert of status.figures?.alerts ?? [])
    add('error', alert.code, alert.collection, alert);
  for (const { name, watch, heldDeletes: held } of status.folders) {
    if (held !== undefined)
      add('warning', 'DELETES_AWAIT_APPROVAL', name, {
        ...massDeletionCondition(name, held),
        since: held.since,
      });
    if (watch?.failure === undefined) continue;
    const message = `The folder ${quoted(name)} is ${watch.state}: ${watch.failure.message}`;
    const told = { message, hint: watch.failure.hint, since: watch.since };
    if (watch.state === 'held') add('critical', 'FOLDER_HELD', name, told);
    else add('warning', 'FOLDER_DEGRADED', name, told);
  }
  if (items.quarantined > 0) {
    const only = items.quarantined === 1 ? ` ${status.quarantined[0]?.message ?? ''}` : '';
    add('warning', 'QUARANTINE', 'quarantine', {
      message:
        `${counted(items.quarantined, 'file')} cannot be delivered without a change.${only}`.trim(),
      hint: '`peersync list --status quarantined` says why, and `peersync retry --all` tries again.',
    });
  }
  const unreadable = status.uplink?.readersFailure;
  if (unreadable !== undefined) add('error', unreadable.code, 'documents', unreadable);
  const failing = status.uplink?.removalsFailing;
  if (failing !== undefined) add('warning', 'REMOVALS_FAIL', 'removals', failing);
  const mirrorsWith = (
    code: string,
    troubleOf: (mirror: MirrorReport) => Failure | false | undefined,
  ) =>
    mirrors.flatMap((mirror) => {
      const failure = troubleOf(mirror);
      return failure ? { ...failure, code, subject: mirror.name } : [];
    });
  const conditions = mirrorsWith('MIRROR_CONDITION', ({ condition }) => condition);
  addMany('error', 'mirrors need you', conditions);
  const failures = mirrorsWith('MIRROR_FAILS', ({ condition, failure }) => !condition && failure);
  addMany('warning', 'mirrors fail, and are tried again', failures);
  const conflicts = mirrors.flatMap((mirror) => mirror.conflicts ?? []);
  const files = conflicts.filter(({ pk }) => pk === '').length;
  const cells = conflicts.length - files;
  const clashed = [
    cells > 0 ? `${counted(cells, 'cell')} of edited tables changed on both sides` : '',
    files > 0 ? `${counted(files, 'mirrored file')} had been edited` : '',
  ];
  if (conflicts.length > 0)
    add('warning', 'MIRROR_CONFLICTS', 'conflicts', {
      message: `${clashed.filter((text) => text !== '').join(', and ')}; what the peer has was kept, yours is in a file beside it.`,
      hint: '`peersync status` names that file. Look at it, make the change anew where yours is right, and remove it.',
    });
  const problems = status.problems.map(
    ({ folder: subject, path, failure: { code, hint, message } }) => {
      return {
        subject,
        code: `PATH_${code}`,
        message: `${escapeInvisible(path)}: ${message}`,
        hint,
      };
    },
  );
  addMany('warning', 'paths could not be looked at', problems);
  if (status.repairs.length > 0)
    add('warning', 'STATE_REPAIRED', 'state', {
      message: 'The state was repaired when peersync started.',
      hint: '`peersync status` says what was mended.',
    });
  if (status.repairAudit !== undefined) {
    const { checked, of, since } = status.repairAudit;
    add('warning', 'REPAIR_AUDIT', 'state', {
      message: `The state lost changes, so that what it says of some documents may be old: ${numberText(checked)} of ${counted(of, 'document')} were compared with the peer since.`,
      hint: status.running
        ? 'It goes on by itself; what differs is pushed, or removed, again.'
        : '`peersync once` or `peersync run` goes on with that; what differs is pushed, or removed, again.',
      since,
    });
  }
  if (configuration?.refused !== undefined) {
    const { at: since, hint, message } = configuration.refused;
    const words = `The changed configuration was refused, and the one before holds: ${message}`;
    add('warning', 'CONFIG_REFUSED', 'configuration', { message: words, hint, since });
  }
  if (restart !== undefined)
    add('warning', 'RESTART_NEEDED', 'configuration', {
      message: `A restart is needed for the new ${restart.length === 1 ? 'value' : 'values'} of ${restart.join(', ')}.`,
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
  const failure = await access(stateDir, constants.R_OK | constants.W_OK | constants.X_OK).catch(
    messageOf,
  );
  if (failure === undefined) return reasons;
  const message = `The state in ${stateDir} cannot be written (${failure}).`;
  const hint = 'Make the directory writable for the user that runs peersync, or check its disk.';
  return [
    ...reasons,
    { code: 'STATE_UNWRITABLE', severity: 'critical', subject: 'state', message, hint },
  ];
}

/** So many conditions are named in the sentence. */
const NAMED_IN_SENTENCE = 5;

/**
 * How the daemon is, in one sentence for `systemctl status`.
 *
 * It gives times of day and not how long ago something was: it stands until something changes.
 */
export function statusSentence(status: StatusReport): string {
  const { conditions, figures, items, paused, peer, wallAheadMs = 0 } = status;
  const text = (at: number) => wallClockText(at + wallAheadMs);
  const waiting = items.pending + items.accepted;
  const counts = [
    `${counted(items.confirmed, 'document')} confirmed`,
    waiting === 0 ? 'nothing waiting' : `${numberText(waiting)} waiting`,
    items.quarantined > 0 && `${numberText(items.quarantined)} in quarantine`,
    figures?.lastConfirmedAt !== undefined && `last confirmation ${text(figures.lastConfirmedAt)}`,
  ];
  const named = conditions.filter(({ code }) => code !== 'QUARANTINE' && code !== 'PAUSED');
  const more = named.length - NAMED_IN_SENTENCE;
  const end = paused?.until === undefined ? '' : ` until ${text(paused.until)}`;
  const asked = peer.queue?.pausedUntil;
  const all = [
    counts.filter(Boolean).join(', '),
    paused !== undefined && `paused since ${text(paused.since)}${end}`,
    ...named.slice(0, NAMED_IN_SENTENCE).map(({ message, since }) => {
      return `${message.replace(/\.$/, '')}${since === undefined ? '' : ` (since ${text(since)})`}`;
    }),
    more > 0 && `and ${numberText(more)} more: \`peersync status\``,
    asked !== undefined && `the peer asked to wait until ${text(asked)}`,
  ];
  return all.filter(Boolean).join('; ');
}
