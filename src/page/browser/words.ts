import {
  amountText as amount,
  numberText as count,
  counted,
  escapeInvisible,
  sentence,
} from '../../lib/text.js';
import { durationText, wallClockText } from '../../lib/units.js';
import type { Conflict, MirrorReport } from '../../mirror/record.js';
import type { RecentEvent } from '../../report/live.js';
import type { Sample } from '../../report/statistics.js';
import { paceText, type StatusReport } from '../../report/status-report.js';

/*
 * The texts and numbers of the page. Nothing here uses the DOM, so that tests need no browser.
 */

/** Formats a duration like `durationText`, with tenths of a second below 10 s. */
export function duration(ms: number): string {
  return ms >= 1_000 && ms < 9_950 ? `${amount(ms / 1_000)}s` : durationText(ms);
}

/** Formats a duration in one unit, so that the text does not change each second. */
export function roughDuration(ms: number): string {
  return durationText(ms).split(' ', 1)[0] ?? '';
}

/** Formats a time in the past, in one unit. */
export function timeAgo(at: number, now: number): string {
  return now - at < 4_500 ? 'just now' : `${roughDuration(now - at)} ago`;
}

/** Formats a time in the future, in one unit. */
export function timeUntil(at: number, now: number): string {
  return at - now < 500 ? 'now' : `in ${roughDuration(Math.max(1_000, at - now))}`;
}

/** Formats the time of day in hours and minutes, with the date if it is another day. */
export function timeOfDay(at: number, now: number): string {
  const text = wallClockText(at);
  return Math.abs(now - at) < 43_200_000 ? text.slice(11, 16) : text.slice(5, 16);
}

/** Joins texts as sentences. Missing texts are omitted. */
export function joinSentences(...texts: readonly (string | undefined | false)[]): string {
  return texts.flatMap((text) => (text ? sentence(text) : [])).join(' ');
}

/**
 * The level of a summary. `ok`: nothing to do. `busy`: files are on the way. `warn`: something
 * waits or needs attention. `bad`: something fails.
 */
export type Level = 'ok' | 'busy' | 'warn' | 'bad';

export interface Summary {
  readonly level: Level;
  /** The numbers of files that are searchable, that wait, and that need a person. */
  readonly sentence: string;
  /** The consequence, or the remedy. May be empty. */
  readonly detail: string;
  /** A short form for the title of the window. */
  readonly title: string;
  /** The gravest condition. The detail contains its text. */
  readonly condition?: ShownCondition | undefined;
}

/** Returns the number of files that are not yet confirmed. */
export function waitingOf({ items }: StatusReport): number {
  return items.pending + items.accepted;
}

/** Returns the number of files confirmed in the last hour, by this run and earlier ones. */
export function confirmedInHour({ figures }: StatusReport): number {
  return (figures?.timeToSearch ?? []).reduce((sum, { hour }) => sum + hour.count, 0);
}

/** Returns how documents are being read, as a short note; empty if none are. */
export function readingText(documents: DocumentsRead | undefined): string {
  const { longest, perMinute, reading = 0 } = documents ?? {};
  if (reading === 0) return '';
  const { page, pages } = longest ?? {};
  if (reading === 1 && page !== undefined && pages !== undefined)
    return `reading page ${count(page)} of ${count(pages)}`;
  if (perMinute === undefined || perMinute.pages === 0) return `${count(reading)} being read`;
  return `${count(reading)} being read, ${amount(perMinute.pages)} pages/min`;
}

/** Summarises a status: numbers first, then the gravest condition. */
export function summaryOf(status: StatusReport, now: number): Summary {
  const { folders, items, pace, peer } = status;
  const { circuit, paused, retryAfterUntil = 0 } = peer.queue ?? {};
  const [condition] = shownConditions(status);
  const isOfPeer = condition?.key.startsWith('PEER ');
  const [waiting, stuck] = [waitingOf(status), items.quarantined];
  const hasNotAnswered = peer.dialect === undefined && circuit?.reason === undefined;
  const isBad = condition?.level === 'bad' && !(isOfPeer && hasNotAnswered);
  const asksToWait = retryAfterUntil > now && waiting > 0;
  const until =
    paused?.until === undefined ? 'until you resume' : `until ${timeOfDay(paused.until, now)}`;
  const moves = isBad || paused || asksToWait ? (waiting === 1 ? 'waits' : 'wait') : 'on the way';
  const needs = stuck === 1 ? 'needs' : 'need';
  const firstFolder = items.confirmed + waiting + stuck === 0 ? folders[0] : undefined;
  return {
    condition,
    level: isBad ? 'bad' : condition || paused || asksToWait ? 'warn' : waiting > 0 ? 'busy' : 'ok',
    sentence: joinSentences(
      searchableText(status),
      waiting > 0 && `${count(waiting)} ${moves}`,
      stuck > 0 && `${count(stuck)} ${needs} you`,
      paused && `Paused ${until}`,
    ),
    detail: joinSentences(
      condition?.text,
      condition?.since !== undefined && `Since ${timeOfDay(condition.since, now)}`,
      isOfPeer && circuit?.reason && `Next try ${timeUntil(circuit.nextProbeAt ?? now, now)}`,
      asksToWait && `The peer asked to wait; requests continue ${timeUntil(retryAfterUntil, now)}`,
      pace && paceText(pace),
      !condition &&
        firstFolder &&
        `Put a file into ${firstFolder.path} and watch it become searchable`,
    ),
    title:
      [
        isBad && `attention: ${condition.about}`,
        paused && 'paused',
        waiting > 0 && `${count(waiting)} waiting`,
        stuck > 0 && `${count(stuck)} ${needs} you`,
      ]
        .filter(Boolean)
        .join(' · ') || (items.confirmed > 0 ? 'all searchable' : 'nothing yet'),
  };
}

/** Returns the number of searchable files. Includes documents of removed files until approval. */
function searchableText({ folders, items }: StatusReport): string {
  const held = folders.reduce((sum, { massDeletion }) => sum + (massDeletion?.files ?? 0), 0);
  if (held > 0) {
    const documents = counted(items.confirmed + held, 'document');
    return `${documents} searchable, ${count(held)} of them of removed files`;
  }
  if (items.confirmed === 0) return 'Nothing is searchable yet';
  return `${counted(items.confirmed, 'file')} searchable`;
}

/** Returns the summary while the daemon does not answer. */
export function lostSummary(lostAt: number, now: number, waiting: number | undefined): Summary {
  return {
    level: 'bad',
    sentence: 'peersync does not answer.',
    detail: `The page shows the status of ${roughDuration(now - lostAt)} ago. peersync may be stopped or restarting. This page reconnects by itself.`,
    title: waiting === undefined ? 'no answer' : `no answer · ${count(waiting)} waited`,
  };
}

/** The documents that are being read, as a status has them. */
type DocumentsRead = NonNullable<StatusReport['uplink']>['documents'];

/** A condition as the page shows it. */
export interface ShownCondition {
  readonly key: string;
  readonly level: 'warn' | 'bad';
  /** Its subject, in a word or a name. */
  readonly about: string;
  readonly text: string;
  /** The section of the page that says more. */
  readonly href: string;
  readonly since?: number | undefined;
}

/** The section with more information, by the beginning of the code. */
const SECTIONS: readonly (readonly [code: string, href: string])[] = [
  ['TIME_TO_SEARCH', '#time-to-search'],
  ['FOLDER_', '#folders'],
  ['DELETES_AWAIT_APPROVAL', '#folders'],
  ['PATH_', '#folders'],
  ['QUARANTINE', '#files=quarantined'],
  ['MIRROR_', '#mirrors'],
  ['FLEET_', '#workers'],
  ['WORKER_', '#workers'],
];

/**
 * The predicates of sentences about mirrors, by the code of their condition. The table of mirrors
 * shows the reasons and hints.
 */
const MIRROR_PREDICATES: Readonly<Record<string, (names: readonly string[]) => string>> = {
  MIRROR_CONDITION: ({ length }) => (length === 1 ? 'needs you' : 'need you'),
  MIRROR_FAILS: ({ length }) =>
    length === 1 ? 'fails, and is tried again' : 'fail, and are tried again',
  MIRROR_CONFLICTS: () => 'changed in the peer and here',
};
/** Number of mirrors that are named in the sentence. */
const MIRRORS_NAMED = 3;

function textOfMirrors(code: string, { mirrors }: StatusReport): string | undefined {
  const isIn = ({ condition, conflicts = [], failure }: MirrorReport) =>
    code === 'MIRROR_CONDITION'
      ? condition
      : code === 'MIRROR_FAILS'
        ? !condition && failure
        : conflicts.length > 0;
  const names = mirrors.filter(isIn).map(({ name }) => name);
  const more = names.length - MIRRORS_NAMED;
  const named =
    names.slice(0, MIRRORS_NAMED).join(', ') + (more > 0 ? ` and ${count(more)} more` : '');
  return MIRROR_PREDICATES[code] && `${named} ${MIRROR_PREDICATES[code](names)}`;
}

/**
 * Returns the conditions, the gravest first. The pause is omitted, because a button shows it.
 * Conditions of mirrors with the same code are combined.
 */
export function shownConditions(status: StatusReport): readonly ShownCondition[] {
  return status.conditions
    .filter(
      ({ code }, i, all) =>
        code !== 'PAUSED' && !(code in MIRROR_PREDICATES && all[i - 1]?.code === code),
    )
    .map(({ code, hint, message, severity, since, subject }) => ({
      key: `${code} ${subject} ${code.startsWith('PATH_') ? message : ''}`,
      level: severity === 'critical' || severity === 'error' ? 'bad' : 'warn',
      about: code in MIRROR_PREDICATES ? 'mirrors' : escapeInvisible(subject),
      text: joinSentences(textOfMirrors(code, status) ?? joinSentences(message, hint)),
      href: SECTIONS.find(([start]) => code.startsWith(start))?.[1] ?? '#peer',
      since,
    }));
}

/** Number of cells in conflict that are named for each file. */
const CELLS_NAMED = 4;

/** Returns the texts about one mirror that a person should know. */
export function mirrorConditions(
  mirror: MirrorReport,
  root: string,
): readonly { level: string; text: string }[] {
  const { condition, failure, absentSince, conflicts = [], notes = [] } = mirror;
  const files = [...new Set(conflicts.map(({ file }) => file))];
  const cellsOf = (name: string) => conflicts.filter(({ file }) => file === name);
  const absent = 'The peer does not have it; the file comes back when the peer has it again.';
  const all = [
    { level: 'bad', text: joinSentences(condition?.message, condition?.hint) },
    { level: 'warn', text: joinSentences(failure?.message, failure?.hint) },
    ...files.map((name) => ({
      level: 'warn',
      text: conflictText(cellsOf(name), `${root}/${name}`),
    })),
    { level: 'info', text: absentSince === undefined ? '' : absent },
    ...notes.map((note) => ({ level: 'info', text: sentence(note) })),
  ];
  return all.filter(({ text }) => text !== '');
}

function conflictText(cells: readonly Conflict[], file: string): string {
  const named = cells.slice(0, CELLS_NAMED).map(({ pk, column = '' }) => `${pk} ${column}`.trim());
  const more = cells.length > CELLS_NAMED ? ` and ${count(cells.length - CELLS_NAMED)} more` : '';
  if (named.every((name) => name === ''))
    return `Somebody edited the file. It is as the peer has it again; the edited one is ${file}, which you can remove when you are done.`;
  const which = ` (${named.join(', ')}${more})`;
  return `${counted(cells.length, 'cell')} changed on both sides${which}. The peer's value was kept; yours is in ${file}, which you can remove when you are done.`;
}

/** Number of samples in an hour. */
const MAX_SAMPLES = 360;

/**
 * Appends new samples and keeps those of the last hour. Earlier samples with later times are
 * dropped: they are from before the clock of the daemon was set back.
 */
export function withSamples(known: readonly Sample[], added: readonly Sample[]): readonly Sample[] {
  const [first] = added;
  if (first === undefined) return known;
  return [...known.filter(({ at }) => at < first.at), ...added].slice(-MAX_SAMPLES);
}

/**
 * Combines consecutive events of the same kind into the newest of them and the number of the
 * others. The events are sorted, newest first.
 */
export function groupedEvents(
  events: readonly RecentEvent[],
): readonly (RecentEvent & { readonly more: number })[] {
  const groups: (RecentEvent & { more: number })[] = [];
  for (const event of events) {
    const last = groups.at(-1);
    const isAlike =
      last?.level === event.level &&
      (last.event ?? last.message) === (event.event ?? event.message);
    if (last && isAlike) last.more += 1;
    else groups.push({ ...event, more: 0 });
  }
  return groups;
}
