import { access, constants } from 'node:fs/promises';
import { messageOf } from '../lib/errors.js';
import { counted, escapeInvisible, numberText, quoted, sentence } from '../lib/text.js';
import type { MirrorReport } from '../mirror/record.js';
import { PEER_FAILURE_WORDS } from '../queue/breaker.js';
import type { Failure } from '../state/entry.js';
import { massDeletionCondition } from '../watch/mass-deletions.js';
import { fleetConditions } from './fleet.js';
import {
  type Condition,
  SEVERITIES,
  type Severity,
  type StatusFacts,
  type StatusReport,
} from './status-report.js';

/** If there are more conditions of one kind, one condition names the first and their number. */
const MAX_OF_A_KIND = 3;

/**
 * Returns all conditions of a status, the most severe first. Every interface renders this list, so
 * that no two of them disagree.
 */
export function conditionsOf(status: StatusFacts): readonly Condition[] {
  const { configuration, diskFailure, items, mirrors, paused, restart, stateFailure } = status;
  const all: Condition[] = [];
  type Text = Pick<Condition, 'message' | 'hint' | 'since'>;
  const add = (severity: Severity, code: string, subject: string, { message, hint, since }: Text) =>
    all.push({ code, severity, subject, message: sentence(message), hint: sentence(hint), since });
  const addMany = (
    severity: Severity,
    what: string,
    list: readonly (Text & { readonly code: string; readonly subject: string })[],
  ) => {
    const [first] = list;
    const message = `${numberText(list.length)} ${what}, the first of them ${first?.subject}: ${first?.message}`;
    if (first && list.length > MAX_OF_A_KIND)
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
  for (const slow of status.figures?.alerts ?? []) add('error', slow.code, slow.collection, slow);
  for (const { name, watch, massDeletion: held } of status.folders) {
    if (held !== undefined)
      add('warning', 'DELETES_AWAIT_APPROVAL', name, {
        ...massDeletionCondition(name, held),
        since: held.since,
      });
    if (watch?.failure === undefined) continue;
    const message = `The folder ${quoted(name)} is ${watch.state}: ${watch.failure.message}`;
    const text = { message, hint: watch.failure.hint, since: watch.since };
    if (watch.state === 'held') add('critical', 'FOLDER_HELD', name, text);
    else add('warning', 'FOLDER_DEGRADED', name, text);
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
  for (const [what, list] of status.fleet === undefined ? [] : fleetConditions(status.fleet))
    addMany('warning', what, list);
  const mirrorsWith = (
    code: string,
    failureOf: (mirror: MirrorReport) => Failure | false | undefined,
  ) =>
    mirrors.flatMap((mirror) => {
      const failure = failureOf(mirror);
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
      message: `The state lost changes, or the peer has another database than before, so that what the state says of some documents may be wrong: ${numberText(checked)} of ${counted(of, 'document')} were compared with the peer since.`,
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

/** Returns the conditions that keep new files from becoming searchable. */
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
