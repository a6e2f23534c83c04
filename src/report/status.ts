import type { Config } from '../config/config.js';
import { systemClock, wallAheadMs } from '../lib/clock.js';
import { VERSION } from '../lib/process.js';
import { counted, numberText } from '../lib/text.js';
import { wallClockText } from '../lib/units.js';
import { mirrorReports } from '../mirror/plan.js';
import type { DialectName } from '../peer/dialects/dialect.js';
import { rememberedDialect, rememberedEmbedded } from '../peer/remembered.js';
import type { StateView } from '../state/state.js';
import { unseenAddresses } from '../uplink/reach.js';
import { repairAuditProgress } from '../uplink/repair-audit.js';
import { unapprovedMassDeletion } from '../watch/mass-deletions.js';
import { conditionsOf } from './conditions.js';
import type { Live } from './live.js';
import {
  formerFolders,
  paceOf,
  type QuarantinedFile,
  type StatusFacts,
  type StatusReport,
  savedPause,
} from './status-report.js';

/**
 * Returns the status of a daemon, or of a state where no daemon runs.
 *
 * @param now used only where no daemon runs, in ms since the epoch. @default the present
 */
export function statusReport(
  config: Config,
  state: StateView,
  live: Live | undefined,
  now = systemClock.now(),
): StatusReport {
  const facts = factsOf(config, state, live, now);
  return { ...facts, conditions: conditionsOf(facts) };
}

/** The number of quarantined items that a status names. */
const MAX_QUARANTINED = 5;

function factsOf(
  config: Config,
  state: StateView,
  live: Live | undefined,
  now: number,
): StatusFacts {
  const { parts, watchdog } = live ?? {};
  const watched = parts?.watcher.status() ?? [];
  const problems = parts?.watcher.problems() ?? [];
  const unnamed = watched.reduce((sum, { unnamedProblems = 0 }) => sum + unnamedProblems, 0);
  const counts = state.counts();
  const quarantined: QuarantinedFile[] = [];
  for (const { folder, path, failure } of state.entries.quarantined()) {
    if (quarantined.length === MAX_QUARANTINED) break;
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
  const paceAt = live?.clock.now() ?? now;
  return {
    version: VERSION,
    running: live !== undefined,
    pid: live && process.pid,
    startedAt: live?.startedAt,
    wallAheadMs: (live && Math.round(wallAheadMs(live.clock) / 1_000) * 1_000) || undefined,
    uplink: parts?.uplink.status(),
    figures,
    configuration: live?.current.report,
    paused: live === undefined ? savedPause(state, now) : queue?.paused,
    restart: live?.current.restart.length ? live.current.restart : undefined,
    page: live?.page?.url,
    peer: {
      url: parts?.peerUrl ?? config.peer.url,
      ...(config.peer.url === 'embedded' && { embedded: true }),
      dialect: parts === undefined ? knownDialect(config.peer, state) : parts.client.dialect,
      queue,
    },
    fleet: parts?.fleet?.owner.status(),
    items: counts,
    pace: paceOf({ items: counts, confirmedPerSecond, queue, isScanning }, paceAt),
    folders: config.folders.map(({ name, path, collection, onDelete }) => {
      const watch = watched.find((folder) => folder.name === name);
      const held = onDelete === 'keep' ? undefined : unapprovedMassDeletion(state, name);
      const folder = { name, path, collection, items: state.counts(name), watch };
      return { ...folder, ...(held && { massDeletion: held }) };
    }),
    formerFolders: formerFolders(config, state),
    unseenAddresses: unseenAddresses(state),
    mirrorRoot: config.mirror.root,
    mirrors: parts?.mirrors.status() ?? mirrorReports(config.mirror, state),
    quarantined,
    problems,
    truncated: Object.keys(truncated).length === 0 ? undefined : truncated,
    stateFailure: failure && { code: failure.code, message: failure.message, hint: failure.hint },
    diskFailure: watchdog?.diskFailure,
    stuck: watchdog?.stuck ?? [],
    repairs: state.repairs,
    repairAudit: parts === undefined ? repairAuditProgress(state) : parts.audit.repairProgress,
  };
}

/** The name under which the state saves whether the peer is an embedded one. */
export const EMBEDDED_META = 'embedded-peer';

/**
 * Returns whether the peer is an embedded one, without asking it; undefined if that is not known.
 */
export function knownEmbedded({ url }: Config['peer'], state: StateView): boolean | undefined {
  return url === 'embedded' || rememberedEmbedded(state.meta(EMBEDDED_META), url);
}

/** Returns the dialect of the peer, without asking it; undefined if that is not known. */
export function knownDialect(
  { url, dialect }: Config['peer'],
  state: StateView,
): DialectName | undefined {
  if (url === 'embedded') return 'standard';
  return dialect === 'auto' ? rememberedDialect(state.meta('dialect'), url) : dialect;
}

/** The number of conditions that the sentence names. */
const MAX_IN_SENTENCE = 5;

/**
 * Returns one sentence about the daemon for `systemctl status`. It contains times of day and no
 * durations, because systemd shows it until something changes.
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
  const more = named.length - MAX_IN_SENTENCE;
  const end = paused?.until === undefined ? '' : ` until ${text(paused.until)}`;
  const asked = peer.queue?.retryAfterUntil;
  const all = [
    counts.filter(Boolean).join(', '),
    paused !== undefined && `paused since ${text(paused.since)}${end}`,
    ...named.slice(0, MAX_IN_SENTENCE).map(({ message, since }) => {
      return `${message.replace(/\.$/, '')}${since === undefined ? '' : ` (since ${text(since)})`}`;
    }),
    more > 0 && `and ${numberText(more)} more: \`peersync status\``,
    asked !== undefined && `the peer asked to wait until ${text(asked)}`,
  ];
  return all.filter(Boolean).join('; ');
}
