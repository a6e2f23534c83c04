import { access, constants, statfs } from 'node:fs/promises';
import { messageOf } from '../lib/errors.js';
import type { Stuck } from '../lib/health.js';
import { sentence } from '../lib/sentence.js';
import type { MirrorReport } from '../mirror/record.js';
import { TROUBLE_WORDS } from '../queue/breaker.js';
import type { Paused, QueueStatus } from '../queue/request-queue.js';
import type { Trouble } from '../state/entry.js';
import type { FolderStatus, PathProblem } from '../watch/watcher.js';
import type { Alert } from './alerts.js';
import type { ConfigurationReport, DiskTrouble } from './live.js';

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
  readonly since?: number;
}

/** What of a status report conditions follow from. */
interface Status {
  readonly running: boolean;
  readonly stuck?: readonly Stuck[];
  readonly stateTrouble?: Trouble;
  readonly diskTrouble?: DiskTrouble;
  readonly repairs: readonly string[];
  readonly peer: { readonly dialect?: string; readonly queue?: Pick<QueueStatus, 'circuit'> };
  readonly folders: readonly { readonly name: string; readonly watch?: FolderStatus }[];
  readonly figures?: { readonly alerts: readonly Alert[] };
  readonly items: { readonly quarantined: number };
  readonly quarantined: readonly { readonly message: string }[];
  readonly mirrors: readonly MirrorReport[];
  readonly problems: readonly PathProblem[];
  readonly configuration?: ConfigurationReport;
  readonly restart?: readonly string[];
  readonly paused?: Paused;
}

/** Conditions of one kind are named one by one up to this many, then counted. */
const NAMED = 3;

/** All conditions of a status, the gravest first. Every face renders this list, so that they cannot disagree. */
export function conditionsOf(status: Status): readonly Condition[] {
  const all = [
    ...stuck(status),
    ...state(status),
    ...peer(status),
    ...alerts(status),
    ...folders(status),
    ...quarantine(status),
    ...mirrors(status),
    ...paths(status),
    ...repairs(status),
    ...configuration(status),
    ...paused(status),
  ];
  return all.sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));
}

function* stuck({ stuck: all = [] }: Status): Generator<Condition> {
  for (const { name, since, what } of all)
    yield {
      ...{ code: 'STUCK', severity: 'critical', subject: name, since },
      message: sentence(`It stands still: ${what}`),
      hint: 'Start peersync again, and tell its makers what the log says.',
    };
}

function* state({ diskTrouble, stateTrouble }: Status): Generator<Condition> {
  if (stateTrouble !== undefined) {
    const { code, hint, message } = stateTrouble;
    yield { code, severity: 'critical', subject: 'state', message: sentence(message), hint: sentence(hint) };
  }
  if (diskTrouble !== undefined) {
    const { code, hint, message, since } = diskTrouble;
    yield { code, severity: 'critical', subject: 'disk', message, hint, since };
  }
}

function* repairs({ repairs: all }: Status): Generator<Condition> {
  if (all.length > 0)
    yield {
      ...{ code: 'STATE_REPAIRED', severity: 'warning', subject: 'state' },
      message: 'The state was repaired when peersync started.',
      hint: '`peersync status` says what was mended.',
    };
}

function* peer({ peer: { dialect, queue }, running }: Status): Generator<Condition> {
  const about = { code: 'PEER', severity: 'critical', subject: 'peer' } as const;
  if (queue?.circuit.reason !== undefined && queue.circuit.state !== 'closed') {
    const { reason, since } = queue.circuit;
    yield {
      ...{ ...about, since },
      message: `The peer ${TROUBLE_WORDS[reason.kind]}: ${sentence(reason.message)}`,
      hint: sentence(reason.hint ?? 'It is tried again by itself; what is to be pushed waits.'),
    };
  } else if (running && dialect === undefined) {
    yield {
      ...about,
      message: 'The peer has not answered yet since peersync started.',
      hint: 'It is asked again by itself; see peer.url if this stays so.',
    };
  }
}

function* folders({ folders: all }: Status): Generator<Condition> {
  for (const { name, watch } of all) {
    const { since, state: how, trouble } = watch ?? {};
    const isHeld = how === 'held';
    if (how === undefined || (trouble === undefined && !isHeld)) continue;
    yield {
      ...{ severity: isHeld ? 'critical' : 'warning', subject: name },
      code: isHeld ? 'FOLDER_HELD' : 'FOLDER_DEGRADED',
      message: sentence(`The folder ${name} is ${how}: ${trouble?.message ?? 'it is not there'}`),
      hint: sentence(trouble?.hint ?? 'Mount it or bring it back, or mend its path in the configuration.'),
      ...(since === undefined ? {} : { since }),
    };
  }
}

function* alerts({ figures }: Status): Generator<Condition> {
  for (const { code, collection, hint, message, since } of figures?.alerts ?? [])
    yield { code, severity: 'error', subject: collection, message: sentence(message), hint, since };
}

function* quarantine({ items, quarantined }: Status): Generator<Condition> {
  const total = items.quarantined;
  const [only] = quarantined;
  if (total === 0) return;
  const why = total === 1 && only !== undefined ? ` ${sentence(only.message)}` : '';
  yield {
    ...{ code: 'QUARANTINE', severity: 'warning', subject: 'quarantine' },
    message: `${counted(total, 'file')} cannot be delivered without a change.${why}`,
    hint: '`peersync list --status quarantined` says why, and `peersync retry` tries again.',
  };
}

function* mirrors({ mirrors: all }: Status): Generator<Condition> {
  const alarmed = all.filter(({ alarm }) => alarm !== undefined);
  const failing = all.filter(({ alarm, failure }) => failure !== undefined && alarm === undefined);
  yield* namedOrCounted(alarmed, 'MIRROR_ALARM', 'error', 'have an alarm', ({ alarm }) => alarm);
  yield* namedOrCounted(
    failing,
    'MIRROR_FAILS',
    'warning',
    'fail, and are tried again',
    (mirror) => mirror.failure,
  );
  const inConflict = all.filter(({ conflicts = [] }) => conflicts.length > 0);
  if (inConflict.length === 0) return;
  const cells = inConflict.reduce((sum, { conflicts = [] }) => sum + conflicts.length, 0);
  yield {
    ...{ code: 'MIRROR_CONFLICTS', severity: 'warning', subject: 'conflicts' },
    message: `${counted(cells, 'cell')} of ${counted(inConflict.length, 'edited table')} changed on both sides; the peer's value was kept, yours is in a file beside it.`,
    hint: 'Look at that file, and edit the table again where your value is the right one.',
  };
}

function* namedOrCounted(
  of: readonly MirrorReport[],
  code: string,
  severity: Condition['severity'],
  what: string,
  trouble: (mirror: MirrorReport) => MirrorReport['alarm'],
): Generator<Condition> {
  if (of.length > NAMED) {
    const message = `${number(of.length)} mirrors ${what}.`;
    yield { code, severity, subject: 'mirrors', message, hint: '`peersync status` names them.' };
    return;
  }
  for (const mirror of of) {
    const { hint = '', message = '', since } = trouble(mirror) ?? {};
    const dated = since === undefined ? {} : { since };
    yield {
      code,
      severity,
      subject: mirror.name,
      message: sentence(message),
      hint: sentence(hint),
      ...dated,
    };
  }
}

function* paths({ problems }: Status): Generator<Condition> {
  const [first] = problems;
  if (first === undefined) return;
  const isGrouped = problems.length > NAMED;
  const isOneFolder = problems.every(({ folder }) => folder === first.folder);
  for (const { folder, path, trouble } of isGrouped ? [first] : problems) {
    const words = `${path}: ${sentence(trouble.message)}`;
    yield {
      ...{ code: `PATH_${trouble.code}`, severity: 'warning' },
      subject: !isGrouped || isOneFolder ? folder : 'folders',
      message: isGrouped
        ? `${counted(problems.length, 'path')} could not be looked at, the first of them ${words}`
        : words,
      hint: sentence(trouble.hint),
    };
  }
}

function* configuration({ configuration: file, restart = [] }: Status): Generator<Condition> {
  const about = { severity: 'warning', subject: 'configuration' } as const;
  if (file?.refused !== undefined) {
    const { at, hint, message } = file.refused;
    yield {
      ...{ ...about, code: 'CONFIG_REFUSED', since: at },
      message: `The changed configuration was refused, and the one before holds: ${sentence(message)}`,
      hint: sentence(hint),
    };
  }
  if (restart.length > 0)
    yield {
      ...{ ...about, code: 'RESTART_NEEDED' },
      message: `A restart is needed for the new ${restart.length === 1 ? 'value' : 'values'} of ${restart.join(', ')}.`,
      hint: 'The values before hold until then.',
    };
}

function* paused({ paused: pause }: Status): Generator<Condition> {
  if (pause === undefined) return;
  yield {
    ...{ code: 'PAUSED', severity: 'info', subject: 'peersync', since: pause.since },
    message: 'A person paused the work with the peer; changes on disk are read and wait.',
    hint: '`peersync resume` ends the pause.',
  };
}

/** What keeps the state from being written now, asked of its disk; empty where nothing does. */
export async function stateDirConditions(dir: string): Promise<readonly Condition[]> {
  const about = { severity: 'critical', subject: 'state' } as const;
  try {
    await access(dir, constants.R_OK | constants.W_OK | constants.X_OK);
    const { bavail } = await statfs(dir);
    if (bavail > 0) return [];
    return [
      {
        ...{ ...about, code: 'STATE_FULL' },
        message: `No space is left on the disk of the state in ${dir}.`,
        hint: 'Free some space there; nothing is lost, and the work goes on by itself.',
      },
    ];
  } catch (error) {
    return [
      {
        ...{ ...about, code: 'STATE_UNWRITABLE' },
        message: `The state in ${dir} cannot be written (${messageOf(error)}).`,
        hint: 'Make the directory writable for the user that runs peersync, or check its disk.',
      },
    ];
  }
}

function counted(count: number, what: string): string {
  return `${number(count)} ${what}${count === 1 ? '' : 's'}`;
}

function number(value: number): string {
  return value.toLocaleString('en-US');
}
