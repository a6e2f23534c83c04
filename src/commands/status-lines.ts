import { type Line, type Style, styled } from '../cli/terminal.js';
import {
  columns,
  counted,
  displayWidth,
  dueText,
  numberText,
  safe,
  timeText,
} from '../cli/text.js';
import { amountText, sentence } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import { PEER_FAILURE_WORDS } from '../queue/breaker.js';
import { fleetText, idleText, noPushText } from '../report/fleet.js';
import type { Percentiles, StatisticsReport, TimeToSearch } from '../report/statistics.js';
import {
  type Condition,
  paceText,
  readingSpeedText,
  type StatusReport,
} from '../report/status-report.js';
import type { MissingState } from './ask.js';
import { mirrorLines } from './mirror.js';

/** Why no daemon answers, as far as the state directory shows it. */
export interface Absence {
  /** Set if nothing has run yet. */
  readonly missing?: MissingState | undefined;
  /** The process that uses the state and takes no commands. */
  readonly pid?: number | undefined;
}

/** Returns whether peersync runs and, if it does not, how to start it. */
function firstLines(
  { folders, pid, running, startedAt }: StatusReport,
  now: number,
  absence: Absence,
): Line[] {
  if (running && startedAt !== undefined)
    return [styled('green', `peersync runs (pid ${pid}, for ${durationText(now - startedAt)})`)];
  const { missing, pid: holder } = absence;
  if (missing !== undefined)
    return [
      styled('yellow', safe(missing.message)),
      `  \`peersync run\` starts to sync ${counted(folders.length, 'folder')}.`,
      `  ${missing.moved}`,
    ];
  if (holder !== undefined)
    return [
      styled(
        'yellow',
        `peersync takes no commands now (pid ${holder}): it starts or stops, or it is \`peersync once\`. This is what the state says:`,
      ),
    ];
  return [
    styled(
      'yellow',
      'peersync does not run; `peersync run` starts it. This is what the state says:',
    ),
  ];
}

/**
 * Returns a status as lines for a person.
 *
 * @param absence why no daemon made the status
 * @param width of the terminal
 */
export function statusLines(
  report: StatusReport,
  now: number,
  absence: Absence = {},
  width?: number,
): Line[] {
  return [...firstLines(report, now, absence), ...reportLines(report, now, width)];
}

/** Returns the lines below the first ones, which tell whether peersync runs. */
export function reportLines(report: StatusReport, now: number, width?: number): Line[] {
  return [
    ...summaryLines(report, now),
    ...conditionLines(report, now),
    ...sections(report, now, width).flatMap(([first = '', ...rest]) => [
      '',
      styled('bold', first),
      ...rest,
    ]),
  ];
}

/** A document that is read for a shorter time is not named, in ms. */
const WORTH_NAMING_MS = 5_000;

/** Returns the lines of the peer, its failure, the files and the page. */
function summaryLines(report: StatusReport, now: number): Line[] {
  const { figures, pace, page } = report;
  const { dialect, url } = report.peer;
  const words = report.running ? `${peerWords(report, now)}  ` : '';
  const speaks = dialect === undefined ? '(its dialect is not known yet)' : `(speaks ${dialect})`;
  const last = figures?.lastConfirmedAt;
  // While files are confirmed, the last one is always recent.
  const ago =
    last === undefined || pace !== undefined
      ? ''
      : `, the last one ${durationText(Math.max(0, now - last))} ago`;
  const isWell = report.peer.queue?.circuit.reason === undefined;
  const peer = `peer     ${words}${safe(url)} ${speaks}`;
  return [
    isWell ? peer : styled('red', peer),
    ...peerFailureLines(report, now).map((line) => `         ${line}`),
    `files    ${countsText(report)}${speedText(report)}${ago}`,
    ...readingLines(report, now),
    ...(report.fleet === undefined ? [] : [`fleet    ${fleetText(report.fleet, now)}`]),
    ...(page === undefined ? [] : [`page     ${page}`]),
  ];
}

/** Returns the documents that are read before they are pushed; none if there are none. */
function readingLines({ uplink }: StatusReport, now: number): string[] {
  const { longest, perMinute, reading = 0, waiting = 0 } = uplink?.documents ?? {};
  if (reading + waiting === 0) return [];
  const numbers = `${counted(reading, 'document')} being read, ${numberText(waiting)} waiting`;
  const speed = perMinute === undefined ? '' : `, ${readingSpeedText(perMinute)}`;
  const ms = longest === undefined ? 0 : now - longest.since;
  const slowest =
    ms < WORTH_NAMING_MS ? '' : `, ${safe(longest?.file ?? '')} for ${durationText(ms)}`;
  const page = slowest === '' ? '' : pageText(longest ?? {});
  return [`reading  ${numbers}${speed}${slowest}${page}`];
}

/** Returns how far a document is read, to follow its name: ` (page 37 of 500)`. */
function pageText({ page, pages }: { readonly page?: number; readonly pages?: number }): string {
  if (page === undefined || pages === undefined) return '';
  return ` (page ${numberText(page)} of ${numberText(pages)})`;
}

/** Returns the files by status: `12 confirmed, 3 pending, 0 accepted`. */
export function countsText({ items }: StatusReport): string {
  const { pending, accepted, confirmed, quarantined } = items;
  const more = quarantined > 0 ? `, ${numberText(quarantined)} quarantined` : '';
  return `${numberText(confirmed)} confirmed, ${numberText(pending)} pending, ${numberText(accepted)} accepted${more}`;
}

/** Returns the speed and the time that is left, to follow the counts; empty if nothing moves. */
export function speedText({ pace }: StatusReport): string {
  return pace === undefined ? '' : `, ${paceText(pace)}`;
}

/** Returns what the peer does, as the end of a sentence whose subject is the peer. */
export function peerWords({ peer: { queue } }: StatusReport, now: number): string {
  if (queue === undefined) return 'is not asked';
  const { circuit, paused, retryAfterUntil } = queue;
  if (paused !== undefined) {
    const more = (until: number) => `, for ${durationText(Math.max(0, until - now))} more`;
    const end = paused.until === undefined ? '' : more(paused.until);
    return `is left alone: paused for ${durationText(now - paused.since)}${end}`;
  }
  if (circuit.reason !== undefined)
    return `${PEER_FAILURE_WORDS[circuit.reason.kind]}, for ${durationText(now - circuit.since)}`;
  const isBusy = retryAfterUntil !== undefined && retryAfterUntil > now;
  return isBusy ? `asks to wait, for ${durationText(retryAfterUntil - now)} more` : 'answers';
}

/** Returns the sections of a report. The first line of each is its heading. */
function sections(report: StatusReport, now: number, width?: number): string[][] {
  const all = [
    folderLines(report, width),
    figuresLines(report.figures, now, width),
    quarantineLines(report),
    mirrorLines(report.mirrors, report.mirrorRoot, now, width),
    workerLines(report.fleet, now, width),
    problemLines(report),
    report.repairs.map((repair) => `state: ${safe(repair)}`),
  ];
  return all.filter((lines) => lines.length > 0);
}

/** Columns that are shown only if they have a number. */
const LEAVING = ['removing', 'removed'] as const;
const COLUMNS = [
  'pending',
  'accepted',
  'confirmed',
  'quarantined',
  'gone',
  ...LEAVING,
  'skipped',
] as const;

function folderLines(report: StatusReport, width?: number): string[] {
  const { folders, items, uplink } = report;
  const rows = [
    ['folder', ...COLUMNS, ''],
    ...folders.map(({ items: counts, name, watch }) => {
      return [safe(name), ...COLUMNS.map((status) => counts[status]), watch?.state ?? ''];
    }),
  ];
  const former = report.formerFolders.flatMap(({ hint, message }) => [
    safe(message),
    `  ${safe(hint)}`,
  ]);
  const lines = [...columns(withoutZeros(rows, width), width), ...former];
  const { timeToVisibleMs } = uplink ?? {};
  if (timeToVisibleMs === undefined || items.accepted === 0) return lines;
  return [
    ...lines,
    `The peer shows a document about ${durationText(timeToVisibleMs)} after a push.`,
  ];
}

/**
 * Drops columns that contain only zeros: those of removed files always, others only until the rows
 * fit, the last first.
 */
function withoutZeros(rows: readonly (string | number)[][], width = Number.POSITIVE_INFINITY) {
  const isZero = (column: readonly (string | number)[][], at: number) =>
    column.slice(1).every((row) => row[at] === 0);
  let shown = rows;
  for (const status of LEAVING) {
    const at = shown[0]?.indexOf(status) ?? -1;
    if (isZero(shown, at)) shown = shown.map((row) => row.toSpliced(at, 1));
  }
  for (let at = (rows[0]?.length ?? 0) - 1; at > 0; at -= 1) {
    if (Math.max(...columns(shown).map((line) => displayWidth(line))) <= width) break;
    if (isZero(shown, at)) shown = shown.map((row) => row.toSpliced(at, 1));
  }
  return shown;
}

function quarantineLines({ items, quarantined }: StatusReport): string[] {
  if (quarantined.length === 0) return [];
  return [
    `In quarantine (${numberText(items.quarantined)}):`,
    ...quarantined.map(({ file, message }) => `  ${safe(file)}: ${safe(message)}`),
    '  `peersync list --status quarantined` names all, `peersync why PATH` explains one, `peersync retry --all` tries again.',
  ];
}

function problemLines({ problems, truncated }: StatusReport): string[] {
  if (problems.length === 0) return [];
  const { total, shown } = truncated?.problems ?? { total: 0, shown: 0 };
  return [
    'Could not be looked at:',
    ...problems.map(
      ({ path, failure }) => `  ${safe(path)}: ${safe(failure.message)} ${failure.hint}`,
    ),
    ...(total > shown ? [`  and ${numberText(total - shown)} more`] : []),
  ];
}

/** The number of workers that are shown. */
const MAX_WORKERS = 50;

/** Returns a row for each worker; nothing if there is none. */
function workerLines(fleet: StatusReport['fleet'], now: number, width?: number): string[] {
  if (fleet === undefined || fleet.workers.length === 0) return [];
  const rows: (string | number)[][] = [
    ['worker', 'version', 'jobs', 'done', 'failed', 'documents/s', 'last seen', ''],
  ];
  for (const worker of fleet.workers.slice(0, MAX_WORKERS)) {
    const { active, done, failed, host, perSecond, pid, seenAt, slots, version } = worker;
    const name = `${safe(host)} (${pid})`;
    const speed = perSecond === undefined ? '-' : amountText(perSecond);
    const seen = `${durationText(Math.max(0, now - seenAt))} ago`;
    const jobs = `${active} of ${slots}`;
    const trouble = safe(idleText(worker) || noPushText(worker));
    rows.push([name, safe(version), jobs, done, failed, speed, seen, trouble]);
  }
  const more = fleet.workers.length - MAX_WORKERS;
  return [
    ...columns(rows, width),
    ...(more > 0 ? [`  and ${numberText(more)} more: \`peersync status --json\``] : []),
  ];
}

/** Conditions that the summary or a section shows. */
const IN_SECTIONS = /^(PEER|PAUSED|QUARANTINE|MIRROR_|PATH_|STATE_REPAIRED)/;
/** Labels by code or subject. */
const LABELS: Readonly<Record<string, string>> = {
  configuration: 'config',
  RESTART_NEEDED: 'restart',
  state: 'state',
  disk: 'disk',
  fleet: 'fleet',
  TIME_TO_SEARCH: 'ALERT',
  FOLDER_HELD: 'held',
  FOLDER_DEGRADED: 'degraded',
  WORKER_VERSION: 'worker',
  WORKER_FOLDERS: 'worker',
  WORKER_PROGRAMS: 'worker',
  WORKER_PEER: 'worker',
  WORKER_LOST: 'worker',
};

const SEVERITY_STYLES: Readonly<Record<Condition['severity'], Style>> = {
  critical: 'red',
  error: 'red',
  warning: 'yellow',
  info: 'dim',
};

/** Returns the conditions, and the end of a pause. */
function conditionLines({ conditions, paused, running }: StatusReport, now: number): Line[] {
  const lines: Line[] = [];
  for (const { code, hint, message, severity, since, subject } of conditions) {
    if (IN_SECTIONS.test(code)) continue;
    const label = LABELS[code] ?? LABELS[subject] ?? severity;
    const when = since === undefined ? '' : ` Since ${timeText(since, now)}.`;
    const line = `${label.padEnd(8)} ${safe(message)}${when}`;
    lines.push(styled(SEVERITY_STYLES[severity], line), `         ${safe(hint)}`);
  }
  if (paused !== undefined) {
    const end = paused.until === undefined ? '' : `, until ${dueText(paused.until, now)}`;
    const what = running
      ? 'nothing is sent to the peer, changes on disk are read and wait'
      : 'the next run begins so';
    const since = timeText(paused.since, now);
    lines.push(
      styled('yellow', `paused   since ${since}${end}: ${what}; \`peersync resume\` ends it`),
    );
  }
  return lines;
}

/** Returns the failure of the peer as lines. */
function peerFailureLines({ paused, peer: { queue } }: StatusReport, now: number): string[] {
  const { reason, nextProbeAt, tries = 0 } = queue?.circuit ?? {};
  if (reason === undefined) return [];
  const due = nextProbeAt === undefined ? 'now, or with the next work' : dueText(nextProbeAt, now);
  const next = paused === undefined ? due : 'when the pause ends';
  return [
    safe(sentence(reason.message)),
    ...(reason.hint === undefined ? [] : [safe(reason.hint)]),
    `Work waits and nothing is lost. Tried ${counted(tries, 'time')}; the next try: ${next}.`,
  ];
}

/** The number of collections that are shown. */
const MAX_COLLECTIONS = 20;

/** Returns the time to search of collections that have confirmed or waiting files. */
export function figuresLines(
  figures: StatisticsReport | undefined,
  now: number,
  width?: number,
): string[] {
  const collections = (figures?.timeToSearch ?? []).filter(
    ({ day, waiting }) => day.count > 0 || waiting > 0,
  );
  if (collections.length === 0) return [];
  const rows: (string | number)[][] = [
    ['time to search', 'last hour', 'p50', 'p95', 'p99', 'last 24 h', 'p50', 'p95', 'p99', ''],
  ];
  for (const row of collections.slice(0, MAX_COLLECTIONS))
    rows.push([safe(row.collection), ...cells(row.hour), ...cells(row.day), waitingText(row, now)]);
  const more = collections.length - MAX_COLLECTIONS;
  return [
    ...columns(rows, width),
    ...(more > 0 ? [`  and ${numberText(more)} more: \`peersync status --json\``] : []),
  ];
}

function cells({ count, p50Ms, p95Ms, p99Ms }: Percentiles): (string | number)[] {
  return [count, ...[p50Ms, p95Ms, p99Ms].map((ms) => (ms === undefined ? '-' : durationText(ms)))];
}

function waitingText({ waiting, oldestSince }: TimeToSearch, now: number): string {
  if (waiting === 0) return '';
  const oldest =
    oldestSince === undefined ? '' : `, the oldest for ${durationText(now - oldestSince)}`;
  return `${numberText(waiting)} waiting${oldest}`;
}
