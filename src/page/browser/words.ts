import type { Conflict, MirrorReport } from '../../mirror/record.js';
import type { Sample } from '../../report/statistics.js';
import type { Condition, StatusReport } from '../../report/status.js';

/*
 * Numbers, times and sizes for a person. Nothing here knows the page, so that it is tested without one.
 */
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const hundredths = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });
const clockTime = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const shortTime = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const dayTime = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
});
const DAY_MS = 86_400_000;

/** `1204311` is `1,204,311`. */
export function count(n: number): string {
  return whole.format(n);
}

/** `counted(1, 'file')` is `1 file`, of two `2 files`. */
export function counted(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** A rate or another small number with as many digits as mean something. */
export function amount(n: number): string {
  if (n === 0) return '0';
  if (n < 0.005) return 'under 0.01';
  if (n < 1) return hundredths.format(n);
  return n < 100 ? tenths.format(n) : count(n);
}

const UNITS = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
] as const;

/** `2 min 5 s`, `3 h`, `840 ms`: at most two units. */
export function duration(ms: number): string {
  const rounded = Math.max(0, Math.round(ms));
  if (rounded < 1000) return `${rounded} ms`;
  if (ms < 10_000) return `${tenths.format(ms / 1000)} s`;
  return rough(ms);
}

/** As `duration`, in whole seconds: what counts on screen does not show what nobody can read. */
export function rough(ms: number): string {
  let rest = Math.max(0, Math.round(ms / 1000));
  if (rest === 0) return 'a moment';
  const parts: string[] = [];
  for (const [unit, size] of UNITS) {
    const n = Math.floor(rest / size);
    if (n > 0) parts.push(`${n} ${unit}`);
    else if (parts.length > 0) break;
    rest -= n * size;
    if (parts.length === 2) break;
  }
  return parts.join(' ');
}

/** As `rough`, in minutes once there are some: a sentence that a person reads does not change each second. */
export function calm(ms: number): string {
  return rough(ms < 60_000 ? ms : Math.floor(ms / 60_000) * 60_000);
}

/** How long ago, in one unit. */
export function ago(at: number, now: number): string {
  const seconds = Math.round((now - at) / 1000);
  if (seconds < 5) return 'just now';
  for (const [unit, size] of UNITS) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit} ago`;
  }
  return 'just now';
}

/** When something will be: `in 12 s`, `now`. */
export function ahead(at: number, now: number): string {
  return at - now < 500 ? 'now' : `in ${rough(at - now)}`;
}

/** The time of day; with the date where it is another day. */
export function moment(at: number, now: number): string {
  return Math.abs(now - at) < DAY_MS / 2 ? clockTime.format(at) : dayTime.format(at);
}

/** The time of day in hours and minutes; with the date where it is another day. */
export function hour(at: number, now: number): string {
  return Math.abs(now - at) < DAY_MS / 2 ? shortTime.format(at) : dayTime.format(at);
}

const SIZES = ['B', 'KB', 'MB', 'GB', 'TB'] as const;

export function size(bytes: number): string {
  let rest = bytes;
  let unit = 0;
  while (rest >= 999.5 && unit < SIZES.length - 1) {
    rest /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? count(rest) : tenths.format(rest)} ${SIZES[unit]}`;
}

/** A text as a sentence of its own; where it begins with a path or an address, that stays as it is. */
export function sentence(text: string): string {
  const first = /^[a-z]+[ ,]/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
  return /[.!?…]$/.test(first) ? first : `${first}.`;
}

/** Keeps a figure and its unit on one line. */
export function together(text: string): string {
  return text.replaceAll(/(\d) (?=(?:d|h|min|s|ms)\b)/g, '$1\u00a0');
}

/** Two texts as sentences, one after the other; either may be missing. */
export function sentences(...texts: readonly (string | undefined)[]): string {
  return texts
    .filter((text) => text !== undefined && text !== '')
    .map((text) => sentence(text ?? ''))
    .join(' ');
}

export interface MirrorTroubleWords {
  readonly level: 'bad' | 'warn' | 'info';
  readonly text: string;
}

/** Of the cells in conflict, so many are named for each file. */
const NAMED = 4;

/** What a person has to know, or to do, about one mirror. */
export function mirrorTroubles(mirror: MirrorReport, root: string): readonly MirrorTroubleWords[] {
  const { alarm, failure, absentSince, conflicts = [], notes = [] } = mirror;
  const words: MirrorTroubleWords[] = [];
  if (alarm !== undefined) words.push({ level: 'bad', text: sentences(alarm.message, alarm.hint) });
  if (failure !== undefined) words.push({ level: 'warn', text: sentences(failure.message, failure.hint) });
  for (const file of new Set(conflicts.map((conflict) => conflict.file))) {
    words.push({
      level: 'warn',
      text: conflictText(
        conflicts.filter((c) => c.file === file),
        `${root}/${file}`,
      ),
    });
  }
  if (absentSince !== undefined) {
    words.push({
      level: 'info',
      text: 'The peer does not have it, as was accepted; the file comes back when the peer has it again.',
    });
  }
  for (const note of notes) words.push({ level: 'info', text: sentences(note) });
  return words;
}

function conflictText(cells: readonly Conflict[], file: string): string {
  const named = cells
    .slice(0, NAMED)
    .map(({ pk, column }) => (column === undefined ? pk : `${pk} ${column}`));
  const more = cells.length > NAMED ? ` and ${count(cells.length - NAMED)} more` : '';
  const which = named.every((name) => name === '') ? '' : ` (${named.join(', ')}${more})`;
  return `${counted(cells.length, 'cell')} changed on both sides${which}. The peer's value was kept; yours is in ${file}, which you can remove when you are done.`;
}

/** Something that a person should look at. */
export interface Concern {
  readonly key: string;
  readonly level: 'warn' | 'bad';
  /** What it is about, in a word or a name. */
  readonly about: string;
  readonly text: string;
  /** The section of the page that says more. */
  readonly href: string;
}

/** The top of the page says these. */
const ON_TOP: ReadonlySet<string> = new Set(['PEER', 'PAUSED']);

/** Where the page says more, by how the code begins. */
const PLACES: readonly (readonly [code: string, href: string])[] = [
  ['TIME_TO_SEARCH', '#time-to-search'],
  ['FOLDER_', '#folders'],
  ['QUARANTINE', '#files=quarantined'],
  ['MIRROR_', '#mirrors'],
  ['PATH_', '#problems'],
  ['STATE_REPAIRED', '#problems'],
  ['CONFIG_', '#peer'],
  ['RESTART_', '#peer'],
];

/** Every condition that the top of the page does not say, the gravest first. */
export function concernsOf({ conditions }: StatusReport): readonly Concern[] {
  return conditions.filter(({ code }) => !ON_TOP.has(code)).map(concernOf);
}

function concernOf({ code, hint, message, severity, subject }: Condition): Concern {
  const [, href = '#files=pending'] = PLACES.find(([start]) => code.startsWith(start)) ?? [];
  return {
    key: `${code} ${subject} ${code.startsWith('PATH_') ? message : ''}`,
    level: severity === 'warning' ? 'warn' : 'bad',
    about: subject,
    text: sentences(message, hint),
    href,
  };
}

/** An hour of them. */
const KEPT = 360;

/**
 * What is known of the last hour with what came now. What would lie after that is from before the daemon's clock was set back:
 * a line would run backwards there.
 */
export function withSamples(known: readonly Sample[], came: readonly Sample[]): readonly Sample[] {
  const [first] = came;
  if (first === undefined) return known;
  return [...known.filter(({ at }) => at < first.at), ...came].slice(-KEPT);
}
