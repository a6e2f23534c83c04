import { sentence } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import type { MirrorReport } from '../mirror/record.js';
import { TROUBLE_WORDS } from '../queue/breaker.js';
import type { LiveLine, RecentEvent } from '../report/answers.js';
import type { Sample } from '../report/statistics.js';
import type { StatusReport } from '../report/status.js';
import { rateText } from './progress.js';
import { type Span, type Style, type StyledLine, styled } from './terminal.js';
import { clockText, counted, displayWidth, fitted, numberText, safe } from './text.js';

const KEPT_SAMPLES = 360;
const KEPT_EVENTS = 100;

/** What is known of the daemon that is watched; its size does not depend on how many files there are. */
export interface WatchModel {
  /** What it said last, also when it is away since. */
  readonly status?: StatusReport;
  /** When that was, in ms since the epoch. */
  readonly heardAt?: number;
  /** Why nothing comes, in a sentence; undefined while something does. */
  readonly away?: string;
  /** Oldest first. */
  readonly samples: readonly Sample[];
  /** Oldest first. */
  readonly events: readonly RecentEvent[];
  /** What became of the last key, and when it was pressed, in ms since the epoch. */
  readonly note?: { readonly text: string; readonly at: number };
}

export const NOTHING_KNOWN: WatchModel = { samples: [], events: [] };

/** The model after one more line of the daemon. */
export function withLine({ away: _, ...model }: WatchModel, line: LiveLine, now: number): WatchModel {
  const heard = { ...model, heardAt: now };
  switch (line.kind) {
    case 'status':
      return { ...heard, status: line.status };
    case 'samples':
      return { ...heard, samples: [...model.samples, ...line.samples].slice(-KEPT_SAMPLES) };
    case 'recents':
      return { ...heard, events: [...model.events, ...line.recents].slice(-KEPT_EVENTS) };
    default:
      // A daemon of a newer version may say more.
      return heard;
  }
}

/** The model when the daemon went away; what it did is told anew when it is back. */
export function withoutDaemon(model: WatchModel, away: string): WatchModel {
  return { ...model, away, samples: [], events: [] };
}

/** A daemon says something at least every 15 s; in ms. */
const QUIET_MS = 20_000;
/** So long the last line tells what became of a key, in ms. */
const NOTE_MS = 4_000;

/** What the whole window shows, at most `rows` lines; those that are too long are cut when they are drawn. */
export function watchView(
  model: WatchModel,
  size: { readonly columns: number; readonly rows: number },
  now: number,
  keys: string,
): StyledLine[] {
  const { note, status } = model;
  const foot: StyledLine =
    note !== undefined && now - note.at < NOTE_MS ? [note.text] : [styled('dim', keys)];
  if (size.rows < 2) return [headLine(model, now)];
  const parts: Section[] =
    status === undefined
      ? [{ rank: 0, least: 1, lines: [headLine(model, now)] }]
      : [
          {
            rank: 0,
            least: 2,
            lines: [
              headLine(model, now),
              ...lastWord(model, now),
              ...peerLines(model, status, now),
              ...restartLine(status),
            ],
          },
          { rank: 1, least: 2, lines: [totals(status), speed(model, status, size.columns, now)] },
          { rank: 2, least: 2, lines: conditionLines(status, now) },
          { rank: 3, least: 4, lines: folderLines(status, size.columns) },
          { rank: 4, least: 2, lines: searchTimes(status, size.columns, now) },
          { rank: 5, least: 3, lines: quarantineLines(status) },
          { rank: 6, least: 3, lines: mirrorTrouble(status.mirrors, now) },
          { rank: 7, least: 3, open: true, lines: eventLines(model, size.rows) },
        ];
  const body = laidOut(parts, size.rows - 1);
  const blank = Array.from({ length: size.rows - 1 - body.length }, () => []);
  return [...body, ...blank, foot];
}

/** The same in one line of plain text. */
export function watchLine(model: WatchModel, now: number): string {
  const { status } = model;
  const time = clockText(now);
  if (model.away !== undefined) return `${time} ${model.away}`;
  if (status === undefined) return `${time} Asking the daemon.`;
  const { pending, accepted, confirmed, quarantined } = status.items;
  const parts = [
    `${numberText(confirmed)} confirmed`,
    `${numberText(pending)} pending`,
    `${numberText(accepted)} accepted`,
    `${numberText(quarantined)} quarantined`,
    `${rateText(status.figures?.confirmedPerSecond ?? 0)}/s`,
    `the peer ${peerState(status, now).words}`,
  ];
  const alarms = status.mirrors.filter(({ alarm, failure }) => (alarm ?? failure) !== undefined).length;
  if (alarms > 0) parts.push(`${counted(alarms, 'mirror')} in trouble`);
  const alerts = status.figures?.alerts.length ?? 0;
  if (alerts > 0) parts.push(counted(alerts, 'alert'));
  return `${time} ${parts.join(', ')}`;
}

function headLine({ away, heardAt, status }: WatchModel, now: number): StyledLine {
  const name = styled('bold', 'peersync');
  const time = styled('dim', `  ${clockText(now)}`);
  if (away !== undefined) return [name, '  ', styled('red', away), time];
  if (status === undefined || heardAt === undefined) return [name, '  asking the daemon', time];
  if (now - heardAt > QUIET_MS)
    return [name, '  ', styled('yellow', `no word from the daemon for ${durationText(now - heardAt)}`), time];
  const since = status.startedAt === undefined ? '' : ` for ${durationText(now - status.startedAt)}`;
  const pid = styled('dim', ` (version ${status.version}, pid ${status.pid})`);
  return [name, '  ', styled('green', `runs${since}`), pid, time];
}

/** What the peer does, as the end of a sentence that begins with it. */
function peerState(status: StatusReport, now: number): { readonly words: string; readonly style: Style } {
  const { queue } = status.peer;
  if (queue === undefined) return { words: 'is not asked', style: 'dim' };
  const { circuit, paused, pausedUntil } = queue;
  if (paused !== undefined) {
    const end =
      paused.until === undefined ? '' : `, for ${durationText(Math.max(0, paused.until - now))} more`;
    return { words: `is left alone: paused for ${durationText(now - paused.since)}${end}`, style: 'yellow' };
  }
  if (circuit.reason !== undefined)
    return {
      words: `${TROUBLE_WORDS[circuit.reason.kind]}, for ${durationText(now - circuit.since)}`,
      style: 'red',
    };
  if (pausedUntil !== undefined && pausedUntil > now)
    return { words: `asks to wait, for ${durationText(pausedUntil - now)} more`, style: 'yellow' };
  return { words: 'answers', style: 'green' };
}

/** Of a daemon that is away, how old the rest is. */
function lastWord({ away, heardAt }: WatchModel, now: number): StyledLine[] {
  if (away === undefined || heardAt === undefined) return [];
  return [[styled('dim', `          what it said last, ${durationText(now - heardAt)} ago:`)]];
}

function peerLines({ away }: WatchModel, status: StatusReport, now: number): StyledLine[] {
  if (away !== undefined) return [];
  const { dialect, queue, url } = status.peer;
  const { words, style } = peerState(status, now);
  const first: Span[] = ['peer      ', styled(style, words), `  ${safe(url)}`];
  first.push(styled('dim', `  speaks ${dialect ?? 'a dialect not known yet'}`));
  if (queue === undefined) return [first];
  const { limit, running } = queue.concurrency;
  const latency = queue.lanes.push.p50LatencyMs ?? queue.lanes.confirm.p50LatencyMs;
  const slow = latency === undefined ? '' : `, answers in ${durationText(latency)}`;
  first.push(styled('dim', `, ${running} of ${limit} requests at once${slow}`));
  const { nextProbeAt, reason, tries } = queue.circuit;
  if (reason === undefined) return [first];
  const next =
    nextProbeAt === undefined || nextProbeAt <= now ? 'now' : `in ${durationText(nextProbeAt - now)}`;
  return [
    first,
    [
      `          ${safe(sentence(reason.message))}${reason.hint === undefined ? '' : ` ${safe(reason.hint)}`}`,
    ],
    [
      styled(
        'dim',
        `          Work waits and nothing is lost. Tried ${counted(tries, 'time')}; the next try: ${next}.`,
      ),
    ],
  ];
}

function restartLine({ restart }: StatusReport): StyledLine[] {
  if (restart === undefined) return [];
  const values = restart.length === 1 ? 'value' : 'values';
  return [['restart   ', styled('yellow', `needed for the new ${values} of ${restart.join(', ')}`)]];
}

function totals({ items, passedOver }: StatusReport): StyledLine {
  const { pending, accepted, confirmed, quarantined } = items;
  return [
    'files     ',
    styled('green', `${numberText(confirmed)} confirmed`),
    ...(quarantined > 0 ? ['  ', styled('red', `${numberText(quarantined)} quarantined`)] : []),
    `  ${numberText(pending)} pending  ${numberText(accepted)} accepted`,
    styled('dim', `  ${numberText(passedOver)} passed over`),
  ];
}

function speed({ samples }: WatchModel, { figures }: StatusReport, columns: number, now: number): StyledLine {
  const last = figures?.lastConfirmedAt;
  const words = `${rateText(figures?.confirmedPerSecond ?? 0)} documents/s`;
  const ago = last === undefined ? '' : `  last confirmed ${durationText(Math.max(0, now - last))} ago`;
  const room = Math.min(60, columns - displayWidth(`speed     ${words}  ${ago}`) - 1);
  const counts = samples.map(({ confirmed }) => confirmed);
  return ['speed     ', words, '  ', styled('green', sparkline(counts, room)), styled('dim', ago)];
}

/** Other sections tell these. */
const IN_SECTIONS = /^(PEER|PAUSED|RESTART_NEEDED|QUARANTINE|MIRROR_|STATE_REPAIRED)/;

/** What a person should do something about. */
function conditionLines({ conditions }: StatusReport, now: number): StyledLine[] {
  return conditions
    .filter(({ code }) => !IN_SECTIONS.test(code))
    .map(({ code, hint, message, severity, since }) => {
      const words = code === 'TIME_TO_SEARCH' ? `ALERT: ${message}` : message;
      const lasts = since === undefined ? '' : ` For ${durationText(Math.max(0, now - since))}.`;
      return [styled(severity === 'warning' ? 'yellow' : 'red', safe(words)), `${lasts} ${safe(hint)}`];
    });
}

const FOLDER_COLUMNS: readonly Column[] = [
  { head: 'folder' },
  { head: 'pending', align: 'right' },
  { head: 'accepted', align: 'right', rank: 2 },
  { head: 'confirmed', align: 'right' },
  { head: 'quarantined', align: 'right', rank: 1 },
  { head: 'passed over', align: 'right', rank: 4 },
  { head: '', rank: 3 },
];

function folderLines({ folders }: StatusReport, columns: number): StyledLine[] {
  const rows = folders.map(({ items, name, passedOver, watch }) => [
    safe(name),
    ...[items.pending, items.accepted, items.confirmed, items.quarantined, passedOver].map(numberText),
    watch?.state ?? '',
  ]);
  return table(FOLDER_COLUMNS, rows, columns);
}

const TIME_COLUMNS: readonly Column[] = [
  { head: 'time to search' },
  { head: 'p50', align: 'right' },
  { head: 'p95', align: 'right' },
  { head: 'p99', align: 'right', rank: 3 },
  { head: 'in 1 h', align: 'right', rank: 4 },
  { head: 'p95 in 24 h', align: 'right', rank: 5 },
  { head: 'waiting', align: 'right', rank: 2 },
  { head: 'longest', align: 'right', rank: 1 },
];

function searchTimes({ figures }: StatusReport, columns: number, now: number): StyledLine[] {
  const times = figures?.timeToSearch ?? [];
  if (times.length === 0) return [];
  const text = (ms: number | undefined) => (ms === undefined ? '–' : durationText(ms));
  const rows = times.map(({ collection, day, hour, oldestSince, waiting }) => [
    safe(collection),
    ...[hour.p50Ms, hour.p95Ms, hour.p99Ms].map(text),
    numberText(hour.count),
    text(day.p95Ms),
    numberText(waiting),
    text(oldestSince === undefined ? undefined : Math.max(0, now - oldestSince)),
  ]);
  return table(TIME_COLUMNS, rows, columns);
}

function quarantineLines({ items, quarantined }: StatusReport): StyledLine[] {
  if (items.quarantined === 0) return [];
  const more = items.quarantined - quarantined.length;
  return [
    [styled('bold', `in quarantine: ${numberText(items.quarantined)}`)],
    ...quarantined.map(({ file, message }) => [`  ${safe(file)}: `, styled('red', safe(message))]),
    ...(more > 0 ? [[styled('dim', `  and ${numberText(more)} more`)]] : []),
  ];
}

function mirrorTrouble(mirrors: readonly MirrorReport[], now: number): StyledLine[] {
  if (mirrors.length === 0) return [];
  const lines: StyledLine[] = [];
  for (const { alarm, conflicts = [], failure, name } of mirrors) {
    const trouble = alarm ?? failure;
    if (trouble !== undefined) {
      const words = `${alarm === undefined ? 'fails' : 'ALARM'} for ${durationText(now - trouble.since)}`;
      lines.push([`  ${safe(name)}: `, styled('red', `${words}: ${safe(sentence(trouble.message))}`)]);
    }
    if (conflicts.length > 0)
      lines.push([`  ${safe(name)}: `, styled('yellow', `${counted(conflicts.length, 'cell')} in conflict`)]);
  }
  const trouble = lines.length === 0 ? 'all well' : `${lines.length} in trouble`;
  return [[styled('bold', `mirrors: ${numberText(mirrors.length)}`), `, ${trouble}`], ...lines];
}

const LEVEL_STYLES: Readonly<Record<string, Style>> = { warn: 'yellow', error: 'red' };

/** The latest stands first, so that what is cut away is old. */
function eventLines({ events }: WatchModel, rows: number): StyledLine[] {
  const last = events.slice(-rows).reverse();
  if (last.length === 0) return [];
  return [
    [styled('bold', 'latest events')],
    ...last.map(({ at, level, message }) => {
      const style = LEVEL_STYLES[level];
      const text = safe(message);
      return [styled('dim', `  ${clockText(at)}  `), style === undefined ? text : styled(style, text)];
    }),
  ];
}

const BARS = '▂▃▄▅▆▇█';
const NOTHING = '▁';

/** The last numbers as bars beside each other, the tallest for the largest; more than fit are left out at the begin. */
export function sparkline(numbers: readonly number[], width: number): string {
  const last = width <= 0 ? [] : numbers.slice(-width);
  const most = Math.max(...last, 0);
  return last
    .map((n) => (n <= 0 ? NOTHING : BARS[Math.min(BARS.length - 1, Math.floor((n / most) * BARS.length))]))
    .join('');
}

/** A part of the view that can be shortened. */
export interface Section {
  /** What matters most has the lowest; it gets its lines first. */
  readonly rank: number;
  readonly lines: readonly StyledLine[];
  /** So many lines are worth more than anything of the parts with a higher rank. */
  readonly least: number;
  /** Whether nobody misses what is cut away, so that it is not counted. */
  readonly open?: boolean;
}

/** Between two columns of a table. */
const GAP = '  ';

/** Puts parts under each other in at most so many rows: those that matter less are shortened, or left out. */
export function laidOut(parts: readonly Section[], rows: number): StyledLine[] {
  const sections = parts.filter(({ lines }) => lines.length > 0);
  // Room between the parts is worth less than anything that would be cut away for it.
  const wanted = sections.map(({ least, lines, open }) => (open === true ? least : lines.length) + 1);
  const hasGaps = wanted.reduce((sum, n) => sum + n, -1) <= rows;
  const granted = new Map<Section, number>();
  let left = rows;
  const byRank = [...sections].sort((a, b) => a.rank - b.rank);
  const grant = (section: Section, count: number) => {
    const had = granted.get(section) ?? 0;
    const gap = had === 0 && hasGaps && granted.size > 0 ? 1 : 0;
    const more = Math.min(count - had, left - gap);
    if (more <= 0) return;
    granted.set(section, had + more);
    left -= more + gap;
  };
  for (const section of byRank) grant(section, Math.min(section.least, section.lines.length));
  for (const section of byRank) grant(section, section.lines.length);
  const result: StyledLine[] = [];
  for (const section of sections) {
    const count = granted.get(section) ?? 0;
    if (count === 0) continue;
    if (hasGaps && result.length > 0) result.push([]);
    result.push(...shortened(section, count));
  }
  return result;
}

function shortened({ lines, open }: Section, count: number): readonly StyledLine[] {
  if (lines.length <= count) return lines;
  if (count < 3 || open === true) return lines.slice(0, count);
  return [...lines.slice(0, count - 1), [styled('dim', `  and ${lines.length - count + 1} more`)]];
}

/** A column of a table. */
export interface Column {
  readonly head: string;
  readonly align?: 'left' | 'right';
  /** The first to go where there is no room has the highest; without one it stays. */
  readonly rank?: number;
}

/** Rows under a head, in at most so many columns of the terminal where that can be had by leaving columns out. */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number,
): StyledLine[] {
  const all = columns.map((column, i) => {
    const cells = [column.head, ...rows.map((row) => row[i] ?? '')];
    return { ...column, cells, width: Math.max(...cells.map(displayWidth)) };
  });
  const shown = new Set(all);
  const byRank = all.filter(({ rank }) => rank !== undefined).sort((a, b) => (b.rank ?? 0) - (a.rank ?? 0));
  for (const column of byRank) {
    const needed = [...shown].reduce((sum, each) => sum + each.width + GAP.length, -GAP.length);
    if (needed <= width) break;
    shown.delete(column);
  }
  const line = (row: number) =>
    [...shown]
      .map(({ align, cells, width }) => fitted(cells[row] ?? '', width, align))
      .join(GAP)
      .trimEnd();
  return [[styled('bold', line(0))], ...rows.map((_, i) => [line(i + 1)])];
}
