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
import { paceText } from '../../report/pace.js';
import type { Sample } from '../../report/statistics.js';
import type { StatusReport } from '../../report/status-report.js';

/*
 * What the page says, in words and numbers. Nothing here knows the document, so that it is tested
 * without one.
 */

/** As `durationText`, with tenths of a second where they mean something. */
export function duration(ms: number): string {
  return ms >= 1_000 && ms < 9_950 ? `${amount(ms / 1_000)}s` : durationText(ms);
}

/** How long it lasted, in one unit: a text that a person reads does not change each second. */
export function calm(ms: number): string {
  return durationText(ms).split(' ', 1)[0] ?? '';
}

export function ago(at: number, now: number): string {
  return now - at < 4_500 ? 'just now' : `${calm(now - at)} ago`;
}

/** When something will be, in one unit. */
export function ahead(at: number, now: number): string {
  return at - now < 500 ? 'now' : `in ${calm(Math.max(1_000, at - now))}`;
}

/** The time of day in hours and minutes; with the date where it is another day. */
export function hour(at: number, now: number): string {
  const text = wallClockText(at);
  return Math.abs(now - at) < 43_200_000 ? text.slice(11, 16) : text.slice(5, 16);
}

/** Texts as sentences, one after the other; each may be missing. */
export function sentences(...texts: readonly (string | undefined | false)[]): string {
  return texts.flatMap((text) => (text ? sentence(text) : [])).join(' ');
}

/**
 * How the world is: `ok` at rest, `busy` at work, `warn` waits or wants a look, `bad` is in
 * trouble.
 */
export type Level = 'ok' | 'busy' | 'warn' | 'bad';

export interface World {
  readonly level: Level;
  /** The numbers: what is searchable, what waits, what needs a person. */
  readonly sentence: string;
  /** What follows from it, or what to do. Empty where there is nothing to add. */
  readonly detail: string;
  /** In a few words, for the title of the window. */
  readonly title: string;
  /** The gravest of what a person should know: the detail says it. */
  readonly concern?: Condition | undefined;
}

/** How many files are on their way. */
export function waitingOf({ items }: StatusReport): number {
  return items.pending + items.accepted;
}

/** How many files were confirmed in the last hour, by this run and earlier ones. */
export function confirmedInHour({ figures }: StatusReport): number {
  return (figures?.timeToSearch ?? []).reduce((sum, { hour }) => sum + hour.count, 0);
}

/** What the top of the page says: numbers first, then the gravest of what a person should know. */
export function worldOf(status: StatusReport, now: number): World {
  const { folders, items, pace, peer } = status;
  const { circuit, paused, pausedUntil = 0 } = peer.queue ?? {};
  const [concern] = concernsOf(status);
  const isOfPeer = concern?.key.startsWith('PEER ');
  const [waiting, stuck] = [waitingOf(status), items.quarantined];
  const isUnasked = peer.dialect === undefined && circuit?.reason === undefined;
  const isBad = concern?.level === 'bad' && !(isOfPeer && isUnasked);
  const asksToWait = pausedUntil > now && waiting > 0;
  const until =
    paused?.until === undefined ? 'until you resume' : `until ${hour(paused.until, now)}`;
  const rests = isBad || paused || asksToWait ? (waiting === 1 ? 'waits' : 'wait') : 'on the way';
  const needs = stuck === 1 ? 'needs' : 'need';
  const untouched = items.confirmed + waiting + stuck === 0 ? folders[0] : undefined;
  return {
    concern,
    level: isBad ? 'bad' : concern || paused || asksToWait ? 'warn' : waiting > 0 ? 'busy' : 'ok',
    sentence: sentences(
      searchableText(status),
      waiting > 0 && `${count(waiting)} ${rests}`,
      stuck > 0 && `${count(stuck)} ${needs} you`,
      paused && `Paused ${until}`,
    ),
    detail: sentences(
      concern?.text,
      concern?.since !== undefined && `Since ${hour(concern.since, now)}`,
      isOfPeer && circuit?.reason && `Next try ${ahead(circuit.nextProbeAt ?? now, now)}`,
      asksToWait && `The peer asked to wait; it goes on ${ahead(pausedUntil, now)}`,
      pace && paceText(pace),
      !concern && untouched && `Put a file into ${untouched.path} and watch it become searchable`,
    ),
    title:
      [
        isBad && `${concern.about} in trouble`,
        paused && 'paused',
        waiting > 0 && `${count(waiting)} waiting`,
        stuck > 0 && `${count(stuck)} ${needs} you`,
      ]
        .filter(Boolean)
        .join(' · ') || (items.confirmed > 0 ? 'all searchable' : 'nothing yet'),
  };
}

/** How many files are searchable, with the documents of removed files that the peer still has. */
function searchableText({ folders, items }: StatusReport): string {
  const held = folders.reduce((sum, { heldDeletes }) => sum + (heldDeletes?.files ?? 0), 0);
  if (held > 0) {
    const documents = counted(items.confirmed + held, 'document');
    return `${documents} searchable, ${count(held)} of them of removed files`;
  }
  if (items.confirmed === 0) return 'Nothing is searchable yet';
  return `${counted(items.confirmed, 'file')} searchable`;
}

/** What is said while the daemon does not answer. */
export function lostWorld(lostAt: number, now: number, waiting: number | undefined): World {
  return {
    level: 'bad',
    sentence: 'peersync does not answer.',
    detail: `What you see below is how it stood ${calm(now - lostAt)} ago. It may be stopped, or starting again; this page connects by itself as soon as it is back.`,
    title: waiting === undefined ? 'no answer' : `no answer · ${count(waiting)} waited`,
  };
}

/** Something that a person should look at. */
export interface Condition {
  readonly key: string;
  readonly level: 'warn' | 'bad';
  /** What it is about, in a word or a name. */
  readonly about: string;
  readonly text: string;
  /** The section of the page that says more. */
  readonly href: string;
  readonly since?: number | undefined;
}

/** Where the page says more, by how the code begins. */
const PLACES: readonly (readonly [code: string, href: string])[] = [
  ['TIME_TO_SEARCH', '#time-to-search'],
  ['FOLDER_', '#folders'],
  ['DELETES_HELD', '#folders'],
  ['PATH_', '#folders'],
  ['QUARANTINE', '#files=quarantined'],
  ['MIRROR_', '#mirrors'],
];

/**
 * Of each trouble of mirrors, what those that have it do. The table of the mirrors says why, and
 * what to do.
 */
const OF_MIRRORS: Readonly<Record<string, (names: readonly string[]) => string>> = {
  MIRROR_ALARM: ({ length }) => (length === 1 ? 'has an alarm' : 'have an alarm'),
  MIRROR_FAILS: ({ length }) =>
    length === 1 ? 'fails, and is tried again' : 'fail, and are tried again',
  MIRROR_CONFLICTS: () => 'changed in the peer and here',
};
const MIRRORS_NAMED = 3;

function textOfMirrors(code: string, { mirrors }: StatusReport): string | undefined {
  const isIn = ({ alarm, conflicts = [], failure }: MirrorReport) =>
    code === 'MIRROR_ALARM'
      ? alarm
      : code === 'MIRROR_FAILS'
        ? !alarm && failure
        : conflicts.length > 0;
  const names = mirrors.filter(isIn).map(({ name }) => name);
  const more = names.length - MIRRORS_NAMED;
  const named =
    names.slice(0, MIRRORS_NAMED).join(', ') + (more > 0 ? ` and ${count(more)} more` : '');
  return OF_MIRRORS[code] && `${named} ${OF_MIRRORS[code](names)}`;
}

/**
 * Every condition but the pause, which a button of the page shows; the gravest first. Mirrors with
 * the same trouble are one concern.
 */
export function concernsOf(status: StatusReport): readonly Condition[] {
  return status.conditions
    .filter(
      ({ code }, i, all) => code !== 'PAUSED' && !(code in OF_MIRRORS && all[i - 1]?.code === code),
    )
    .map(({ code, hint, message, severity, since, subject }) => ({
      key: `${code} ${subject} ${code.startsWith('PATH_') ? message : ''}`,
      level: severity === 'critical' || severity === 'error' ? 'bad' : 'warn',
      about: code in OF_MIRRORS ? 'mirrors' : escapeInvisible(subject),
      text: sentences(textOfMirrors(code, status) ?? sentences(message, hint)),
      href: PLACES.find(([start]) => code.startsWith(start))?.[1] ?? '#peer',
      since,
    }));
}

/** Of the cells in conflict, so many are named for each file. */
const NAMED = 4;

/** What a person has to know, or to do, about one mirror. */
export function mirrorConditions(
  mirror: MirrorReport,
  root: string,
): readonly { level: string; text: string }[] {
  const { alarm, failure, absentSince, conflicts = [], notes = [] } = mirror;
  const files = [...new Set(conflicts.map(({ file }) => file))];
  const cellsOf = (name: string) => conflicts.filter(({ file }) => file === name);
  const absent = 'The peer does not have it; the file comes back when the peer has it again.';
  const all = [
    { level: 'bad', text: sentences(alarm?.message, alarm?.hint) },
    { level: 'warn', text: sentences(failure?.message, failure?.hint) },
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
  const named = cells.slice(0, NAMED).map(({ pk, column = '' }) => `${pk} ${column}`.trim());
  const more = cells.length > NAMED ? ` and ${count(cells.length - NAMED)} more` : '';
  if (named.every((name) => name === ''))
    return `Somebody edited the file. It is as the peer has it again; the edited one is ${file}, which you can remove when you are done.`;
  const which = ` (${named.join(', ')}${more})`;
  return `${counted(cells.length, 'cell')} changed on both sides${which}. The peer's value was kept; yours is in ${file}, which you can remove when you are done.`;
}

/** An hour of them. */
const KEPT = 360;

/**
 * What is known of the last hour with what came now. What would lie after that is from before the
 * daemon's clock was set back: a line would run backwards there.
 */
export function withSamples(known: readonly Sample[], came: readonly Sample[]): readonly Sample[] {
  const [first] = came;
  if (first === undefined) return known;
  return [...known.filter(({ at }) => at < first.at), ...came].slice(-KEPT);
}

/**
 * Events, the newest first, where those that follow each other and are alike stand once: the
 * newest, and how many more.
 */
export function grouped(
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
