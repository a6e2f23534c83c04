import { define } from '../cli/command.js';
import type { GlobalOptions } from '../cli/global-options.js';
import { answer, completed, printJson } from '../cli/output.js';
import { untilStopped } from '../cli/signals.js';
import {
  canDraw,
  type Line,
  listenToKeys,
  Screen,
  type Style,
  styled,
  wantsColour,
} from '../cli/terminal.js';
import { clockText, counted, safe } from '../cli/text.js';
import type { Config } from '../config/config.js';
import { askDaemon } from '../daemon/control.js';
import { systemClock } from '../lib/clock.js';
import { EXIT, messageOf, PeersyncError } from '../lib/errors.js';
import { durationText } from '../lib/units.js';
import type { LiveLine } from '../report/answers.js';
import type { RecentEvent, StatusReport } from '../report/status.js';
import { configToAsk } from './daemon-access.js';
import {
  conditionLines,
  countsText,
  peerWords,
  speedText,
  statusSections,
  summaryLines,
} from './status.js';

/** Between two pictures, in ms. */
const PICTURE_MS = 1_000;
/** Between two plain lines, in ms. */
const LINE_MS = 5_000;
/** Between two tries to find the daemon, in ms. */
const RETRY_MS = 1_000;
/** How long a daemon may take to begin, in ms. */
const PATIENCE_MS = 15_000;

/**
 * The running daemon, as it works: the whole window of a terminal, or a plain line now and then.
 */
export const watchCommand = define({
  examples: [
    ['$0 watch', 'q ends it, p pauses peersync and resumes it'],
    ['$0 watch | tee log', 'One plain line every few seconds, as also under NO_COLOR or TERM=dumb'],
    ['$0 watch --json', 'Everything the daemon tells, one JSON object a line'],
  ],
  run: async (options) => {
    const config = await configToAsk(options);
    const { env, stdout } = process;
    await untilStopped(async (ending) => {
      const { signal } = ending;
      if (options.json)
        return await follow(
          config,
          signal,
          (line) => printJson(options, line),
          () => {},
        );
      const model = new WatchModel();
      const take = (line: LiveLine) => model.take(line, timeOf(model));
      const followed = follow(config, signal, take, (why) => model.lose(why));
      const isDrawn = canDraw(stdout, env) && wantsColour(env);
      await Promise.race([
        followed,
        isDrawn ? show(options, config, model, ending) : tell(options, model, signal),
      ]);
    });
    return EXIT.done;
  },
});

/**
 * Follows the daemon until `signal` aborts, from one to the next where it is started anew.
 *
 * @param away the daemon does not run, or went away; it is looked for until it is back
 * @throws PeersyncError what a daemon answers that cannot be followed
 */
async function follow(
  config: Config,
  signal: AbortSignal,
  take: (line: LiveLine) => void,
  away: (why: string) => void,
): Promise<void> {
  let wasThere = false;
  while (!signal.aborted) {
    try {
      const question = { ask: 'live', parameters: {} };
      const lines = await askDaemon(config.state.dir, question, {
        patienceMs: PATIENCE_MS,
        signal,
      });
      for await (const each of lines ?? []) take(each as LiveLine);
      wasThere ||= lines !== undefined;
      const why = wasThere
        ? 'the daemon went away'
        : 'no daemon runs: start it with `peersync run`';
      away(`${why}; waiting for it`);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof PeersyncError) || error.code !== 'CONTROL_FAILED') throw error;
      wasThere = true;
      away(`${messageOf(error)} Trying again`);
    }
    await systemClock.sleep(RETRY_MS, signal);
  }
}

/** In the time of the daemon, whose clock is a steady one. */
function timeOf({ status }: WatchModel): number {
  return systemClock.now() - (status?.wallAheadMs ?? 0);
}

/** Plain lines, one now and then while a daemon runs. */
async function tell(options: GlobalOptions, model: WatchModel, signal: AbortSignal): Promise<void> {
  // The daemon's first word comes at once.
  while (!signal.aborted && model.status === undefined && model.away === undefined)
    await systemClock.sleep(50, signal);
  let told: string | undefined;
  while (!signal.aborted) {
    const { away } = model;
    // That the daemon is away is told once, and again when there is another reason.
    if (away === undefined || away !== told)
      answer(options, undefined, () => [watchLine(model, timeOf(model))]);
    told = away;
    await systemClock.sleep(LINE_MS, signal);
  }
}

/**
 * The whole window, drawn anew once a second, and when a key is pressed or the window gets another
 * size.
 */
async function show(
  options: GlobalOptions,
  config: Config,
  model: WatchModel,
  ending: AbortController,
): Promise<void> {
  const { signal } = ending;
  const { stdin, stdout } = process;
  const screen = new Screen(stdout);
  const keys = stdin.isTTY ? 'q quit   p pause or resume   Ctrl-L draw anew' : 'Ctrl-C quits';
  const draw = () =>
    screen.draw(completed(options, watchView(model, screen.rows, timeOf(model), keys)));
  const redraw = () => {
    screen.wipe();
    draw();
  };
  const note = (text: string) => {
    model.note = { text, at: timeOf(model) };
    draw();
  };
  screen.open();
  const closeKeys = listenToKeys(stdin, {
    q: () => ending.abort(),
    p: () => void pauseOrResume(config, model).then(note, (error) => note(messageOf(error))),
    redraw,
  });
  stdout.on('resize', redraw);
  try {
    while (!signal.aborted) {
      draw();
      // The first picture with something on it is not waited for.
      await systemClock.sleep(model.heardAt === undefined ? PICTURE_MS / 10 : PICTURE_MS, signal);
    }
  } finally {
    stdout.off('resize', redraw);
    closeKeys();
    screen.close();
  }
}

/** @returns what was done, for the last line */
async function pauseOrResume(config: Config, { status }: WatchModel): Promise<string> {
  const ask = status?.peer.queue?.paused === undefined ? 'pause' : 'resume';
  const lines = await askDaemon(
    config.state.dir,
    { ask, parameters: {} },
    { patienceMs: PATIENCE_MS },
  );
  if (lines === undefined) return 'no daemon runs: start it with `peersync run`';
  for await (const _ of lines);
  return ask === 'pause' ? 'paused: files are watched, the peer is left alone' : 'resumed';
}

const KEPT_EVENTS = 100;

/**
 * What is known of the daemon that is watched; its size does not depend on how many files there
 * are.
 */
export class WatchModel {
  /** What it said last, also when it is away since. */
  status: StatusReport | undefined;
  /** When that was, in ms since the epoch. */
  heardAt: number | undefined;
  /** Why nothing comes, in a sentence; undefined while something does. */
  away: string | undefined;
  /** Oldest first. */
  events: RecentEvent[] = [];
  /** What became of the last key, and when it was pressed, in ms since the epoch. */
  note: { readonly text: string; readonly at: number } | undefined;

  take(line: LiveLine, now: number): void {
    this.away = undefined;
    this.heardAt = now;
    if (line.kind === 'status') this.status = line.status;
    if (line.kind === 'recents')
      this.events = [...this.events, ...line.recents].slice(-KEPT_EVENTS);
  }

  /** The daemon went away; what it did is told anew when it is back. */
  lose(why: string): void {
    this.away = why;
    this.events = [];
  }
}

/** A daemon says something at least every 15 s; in ms. */
const QUIET_MS = 20_000;
/** Of the lines, so much is for the status where there are many events. */
const STATUS_SHARE = 2 / 3;
/** So long the last line tells what became of a key, in ms. */
const NOTE_MS = 4_000;

/**
 * What the whole window shows, at most `rows` lines; those that are too long are cut when they are
 * drawn.
 */
export function watchView(model: WatchModel, rows: number, now: number, keys: string): Line[] {
  const { note } = model;
  const room = Math.max(1, rows - 1);
  const events = eventLines(model, room);
  // The latest events are worth more than the end of a long status.
  const most = Math.max(room - events.length, Math.ceil(room * STATUS_SHARE));
  const lines = [
    ...cutTo(most, [headLine(model, now), ...statusLines(model, now)]),
    ...events,
  ].slice(0, room);
  while (lines.length < room) lines.push('');
  const isNoted = note !== undefined && now - note.at < NOTE_MS;
  return rows < 2 ? lines : [...lines, isNoted ? note.text : styled('dim', keys)];
}

/** What `status` tells, with the mirrors in trouble alone. */
function statusLines({ away, heardAt = 0, status }: WatchModel, now: number): Line[] {
  if (status === undefined) return [];
  const mirrors = status.mirrors.filter(
    ({ alarm, conflicts = [], failure }) =>
      (alarm ?? failure) !== undefined || conflicts.length > 0,
  );
  const sections = statusSections({ ...status, mirrors }, now);
  return [
    ...(away === undefined
      ? summaryLines(status, now)
      : [styled('dim', `what it said last, ${durationText(now - heardAt)} ago:`)]),
    ...conditionLines(status, now),
    ...sections.flatMap(([first = '', ...rest]) => ['', styled('bold', first), ...rest]),
  ];
}

/** At most so many lines; where they are too many, blank ones go first. */
function cutTo(most: number, all: readonly Line[]): Line[] {
  const lines = all.length <= most ? all : all.filter((line) => line !== '');
  if (lines.length <= most || most < 3) return lines.slice(0, most);
  const more = `  and ${counted(lines.length - most + 1, 'line')} more: \`peersync status\``;
  return [...lines.slice(0, most - 1), styled('dim', more)];
}

/** The same in one line of plain text. */
export function watchLine({ away, status }: WatchModel, now: number): string {
  const time = clockText(now);
  if (away !== undefined || status === undefined) return `${time} ${away ?? 'Asking the daemon.'}`;
  const troubles = status.conditions.filter(({ severity }) => severity !== 'info').length;
  const more = troubles === 0 ? '' : `, ${counted(troubles, 'trouble')}: see \`peersync status\``;
  return `${time} ${countsText(status)}${speedText(status)}, the peer ${peerWords(status, now)}${more}`;
}

function headLine({ away, heardAt, status }: WatchModel, now: number): Line {
  const line = (style: Style, words: string) =>
    styled(style, `peersync  ${words}  ${clockText(now)}`);
  if (away !== undefined) return line('red', away);
  if (status === undefined || heardAt === undefined) return line('bold', 'asking the daemon');
  if (now - heardAt > QUIET_MS)
    return line('yellow', `no word from the daemon for ${durationText(now - heardAt)}`);
  const since =
    status.startedAt === undefined ? '' : ` for ${durationText(now - status.startedAt)}`;
  return line('bold', `runs${since} (version ${status.version}, pid ${status.pid})`);
}

const LEVEL_STYLES: Readonly<Record<string, Style>> = { warn: 'yellow', error: 'red' };

/** The latest stands first, so that what is cut away is old. */
function eventLines({ events }: WatchModel, rows: number): Line[] {
  if (events.length === 0) return [];
  const lines = events.slice(-rows).map(({ at, level, message }): Line => {
    const text = `  ${clockText(at)}  ${safe(message)}`;
    const style = LEVEL_STYLES[level];
    return style === undefined ? text : styled(style, text);
  });
  return ['', styled('bold', 'latest events'), ...lines.reverse()];
}
