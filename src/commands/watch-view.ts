import { durationText } from '../lib/units.js';
import { TROUBLE_WORDS } from '../queue/breaker.js';
import type { LiveLine, RecentEvent } from '../report/answers.js';
import type { Sample } from '../report/statistics.js';
import type { StatusReport } from '../report/status.js';
import { rateText } from './progress.js';
import { conditionLines, peerTrouble, statusSections } from './status.js';
import { type Span, type Style, type StyledLine, styled } from './terminal.js';
import { clockText, counted, displayWidth, numberText, safe } from './text.js';

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
/** Of the lines, so much is for the status where there are many events. */
const STATUS_SHARE = 2 / 3;
/** So long the last line tells what became of a key, in ms. */
const NOTE_MS = 4_000;

/** What the whole window shows, at most `rows` lines; those that are too long are cut when they are drawn. */
export function watchView(
  model: WatchModel,
  { columns, rows }: { readonly columns: number; readonly rows: number },
  now: number,
  keys: string,
): StyledLine[] {
  const { note, status } = model;
  const head = headLine(model, now);
  if (rows < 2) return [head];
  const isNoted = note !== undefined && now - note.at < NOTE_MS;
  const room = rows - 1;
  const events = eventLines(model, room);
  // The latest events are worth more than the end of a long status.
  const most = Math.max(room - events.length, Math.ceil(room * STATUS_SHARE));
  const body = cutTo(most, [
    [head],
    ...(status === undefined ? [] : statusParts(model, status, columns, now)),
  ]);
  const lines = [...body, ...events].slice(0, room);
  const blank = Array.from({ length: room - lines.length }, () => []);
  return [...lines, ...blank, isNoted ? [note.text] : [styled('dim', keys)]];
}

/** What `status` tells, with the mirrors in trouble alone; under each other what stands together. */
function statusParts(model: WatchModel, status: StatusReport, columns: number, now: number): StyledLine[][] {
  const mirrors = status.mirrors.filter(({ alarm, conflicts = [], failure }) => {
    return (alarm ?? failure) !== undefined || conflicts.length > 0;
  });
  return [
    [...lastWord(model, now), ...peerLines(model, status, now)],
    [totals(status), speed(model, status, columns, now)],
    conditionLines(status, now).map((line) => [/^ /.test(line) ? line : styled('red', line)]),
    ...statusSections({ ...status, mirrors }, now).map(([first = '', ...rest]) => [
      [styled('bold', first)],
      ...rest.map((line) => [line]),
    ]),
  ];
}

/** The parts in at most so many lines, with blank lines between them where there is room for those. */
function cutTo(most: number, parts: readonly StyledLine[][]): StyledLine[] {
  // The first two stand together.
  const spaced = parts.flatMap((part, i) => (i > 1 && part.length > 0 ? [[], ...part] : part));
  const lines = spaced.length <= most ? spaced : parts.flat();
  if (lines.length <= most || most < 3) return lines.slice(0, most);
  const more = `  and ${counted(lines.length - most + 1, 'line')} more: \`peersync status\``;
  return [...lines.slice(0, most - 1), [styled('dim', more)]];
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
  const trouble = queue.circuit.reason === undefined ? [] : peerTrouble(status, now);
  return [first, ...trouble.map((line) => [`          ${line}`])];
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

const LEVEL_STYLES: Readonly<Record<string, Style>> = { warn: 'yellow', error: 'red' };

/** The latest stands first, so that what is cut away is old. */
function eventLines({ events }: WatchModel, rows: number): StyledLine[] {
  const last = events.slice(-rows).reverse();
  if (last.length === 0) return [];
  return [
    [],
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
