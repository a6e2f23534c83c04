import { askDaemon, askDaemonOnce } from '../api/client.js';
import { live } from '../api/live.js';
import type { LiveLine } from '../api/live-feed.js';
import { pause, resume } from '../api/pause.js';
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
import { systemClock } from '../lib/clock.js';
import { EXIT, messageOf, PeersyncError } from '../lib/errors.js';
import { durationText } from '../lib/units.js';
import type { RecentEvent } from '../report/live.js';
import type { StatusReport } from '../report/status-report.js';
import { configToAsk } from './ask.js';
import { countsText, peerWords, reportLines, speedText } from './status-lines.js';

/** The interval between two pictures, in ms. */
const PICTURE_MS = 1_000;
/** The interval between two plain lines, in ms. */
const LINE_MS = 5_000;
/** The interval between two tries to find the daemon, in ms. */
const RETRY_MS = 1_000;
/** The longest time until a daemon begins to answer, in ms. */
const PATIENCE_MS = 15_000;

/** Follows the running daemon: in the whole window of a terminal, or a plain line now and then. */
export const watchCommand = define({
  output: live.line,
  examples: [
    ['$0 watch', 'q ends it, p pauses peersync and resumes it'],
    ['$0 watch | tee log', 'One plain line every few seconds, as also under NO_COLOR or TERM=dumb'],
    ['$0 watch --json', 'Everything the daemon sends, one JSON object a line'],
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
      const onLine = (line: LiveLine) => model.receive(line, timeOf(model));
      const followed = follow(config, signal, onLine, (why) => model.disconnect(why));
      const isDrawn = canDraw(stdout, env) && wantsColour(env);
      await Promise.race([
        followed,
        isDrawn ? drawWindow(options, config, model, ending) : printLines(options, model, signal),
      ]);
    });
    return EXIT.done;
  },
});

/**
 * Follows the daemon until `signal` aborts. When the daemon ends, it follows the next one.
 *
 * @param onLine called with each line of the daemon
 * @param onAbsence called with the reason when no daemon answers; it is tried again
 * @throws PeersyncError the error of a daemon that cannot be followed
 */
async function follow(
  config: Config,
  signal: AbortSignal,
  onLine: (line: LiveLine) => void,
  onAbsence: (why: string) => void,
): Promise<void> {
  let wasThere = false;
  while (!signal.aborted) {
    try {
      const asking = { patienceMs: PATIENCE_MS, signal };
      const lines = await askDaemon(config.state.dir, live, {}, asking);
      for await (const line of lines ?? []) onLine(line);
      wasThere ||= lines !== undefined;
      const why = wasThere
        ? 'the daemon went away'
        : 'no daemon runs: start it with `peersync run`';
      onAbsence(`${why}; waiting for it`);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof PeersyncError) || error.code !== 'CONTROL_FAILED') throw error;
      wasThere = true;
      onAbsence(`${messageOf(error)} Trying again`);
    }
    await systemClock.sleep(RETRY_MS, signal);
  }
}

/** Returns the time by the steady clock of the daemon. */
function timeOf({ status }: WatchModel): number {
  return systemClock.now() - (status?.wallAheadMs ?? 0);
}

/** Prints a plain line every few seconds while a daemon runs. */
async function printLines(
  options: GlobalOptions,
  model: WatchModel,
  signal: AbortSignal,
): Promise<void> {
  // The first line of the daemon comes at once.
  while (!signal.aborted && model.status === undefined && model.absence === undefined)
    await systemClock.sleep(50, signal);
  let printed: string | undefined;
  while (!signal.aborted) {
    const { absence } = model;
    // The reason of an absence is printed once, until there is another reason.
    if (absence === undefined || absence !== printed)
      answer(options, undefined, () => [watchLine(model, timeOf(model))]);
    printed = absence;
    await systemClock.sleep(LINE_MS, signal);
  }
}

/** Draws the whole window once a second, and when a key is pressed or the window is resized. */
async function drawWindow(
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
      // The first picture with a status is drawn at once.
      await systemClock.sleep(
        model.receivedAt === undefined ? PICTURE_MS / 10 : PICTURE_MS,
        signal,
      );
    }
  } finally {
    stdout.off('resize', redraw);
    closeKeys();
    screen.close();
  }
}

/** @returns what was done, for the last line */
async function pauseOrResume({ state }: Config, { status }: WatchModel): Promise<string> {
  const isPaused = status?.peer.queue?.paused !== undefined;
  const asking = { patienceMs: PATIENCE_MS };
  const answer = isPaused
    ? await askDaemonOnce(state.dir, resume, {}, asking)
    : await askDaemonOnce(state.dir, pause, {}, asking);
  if (answer === undefined) return 'no daemon runs: start it with `peersync run`';
  return isPaused ? 'resumed' : 'paused: files are watched, the peer is left alone';
}

const MAX_EVENTS = 100;

/** The knowledge about the followed daemon. Its size does not depend on the number of files. */
export class WatchModel {
  /** The last status, also if the daemon is away now. */
  status: StatusReport | undefined;
  /** When the last line was received, in ms since the epoch. */
  receivedAt: number | undefined;
  /** The reason why no lines arrive, in a sentence; undefined while they do. */
  absence: string | undefined;
  /** Oldest first. */
  events: RecentEvent[] = [];
  /** The result of the last key, and when it was pressed, in ms since the epoch. */
  note: { readonly text: string; readonly at: number } | undefined;

  receive(line: LiveLine, now: number): void {
    this.absence = undefined;
    this.receivedAt = now;
    if (line.kind === 'status') this.status = line.status;
    if (line.kind === 'recents') this.events = [...this.events, ...line.recents].slice(-MAX_EVENTS);
  }

  /** The daemon went away. It sends its recent events again when it is back. */
  disconnect(why: string): void {
    this.absence = why;
    this.events = [];
  }
}

/** A daemon sends a status at least every 15 s. After this time it counts as silent. */
const SILENT_MS = 20_000;
/** The share of the lines that the status has if there are many events. */
const STATUS_SHARE = 2 / 3;
/** The time that the last line shows the result of a key, in ms. */
const NOTE_MS = 4_000;

/** Returns the lines of the window, at most `rows`. Lines that are too long are cut when drawn. */
export function watchView(model: WatchModel, rows: number, now: number, keys: string): Line[] {
  const { note } = model;
  const room = Math.max(1, rows - 1);
  const events = eventLines(model, room);
  // The latest events matter more than the end of a long status.
  const most = Math.max(room - events.length, Math.ceil(room * STATUS_SHARE));
  const lines = [
    ...cutTo(most, [headLine(model, now), ...statusView(model, now)]),
    ...events,
  ].slice(0, room);
  while (lines.length < room) lines.push('');
  const isNoted = note !== undefined && now - note.at < NOTE_MS;
  return rows < 2 ? lines : [...lines, isNoted ? note.text : styled('dim', keys)];
}

/** Returns the lines that `status` prints. If the daemon is away, they are as it was last. */
function statusView({ absence, receivedAt = 0, status }: WatchModel, now: number): Line[] {
  if (status === undefined) return [];
  if (absence === undefined) return reportLines(status, now);
  return [
    styled('dim', `what it said last, ${durationText(now - receivedAt)} ago:`),
    ...reportLines({ ...status, running: false }, now),
  ];
}

/** Cuts lines to a number. Blank lines are dropped first. */
function cutTo(most: number, all: readonly Line[]): Line[] {
  const lines = all.length <= most ? all : all.filter((line) => line !== '');
  if (lines.length <= most || most < 3) return lines.slice(0, most);
  const more = `  and ${counted(lines.length - most + 1, 'line')} more: \`peersync status\``;
  return [...lines.slice(0, most - 1), styled('dim', more)];
}

/** Returns the state of the daemon as one line of plain text. */
export function watchLine({ absence, status }: WatchModel, now: number): string {
  const time = clockText(now);
  if (absence !== undefined || status === undefined)
    return `${time} ${absence ?? 'Asking the daemon.'}`;
  const count = status.conditions.filter(({ severity }) => severity !== 'info').length;
  const more = count === 0 ? '' : `, ${counted(count, 'condition')}: see \`peersync status\``;
  return `${time} ${countsText(status)}${speedText(status)}, the peer ${peerWords(status, now)}${more}`;
}

function headLine({ absence, receivedAt, status }: WatchModel, now: number): Line {
  const line = (style: Style, words: string) =>
    styled(style, `peersync  ${words}  ${clockText(now)}`);
  if (absence !== undefined) return line('red', absence);
  if (status === undefined || receivedAt === undefined) return line('bold', 'asking the daemon');
  if (now - receivedAt > SILENT_MS)
    return line('yellow', `no word from the daemon for ${durationText(now - receivedAt)}`);
  const since =
    status.startedAt === undefined ? '' : ` for ${durationText(now - status.startedAt)}`;
  return line('bold', `runs${since} (version ${status.version}, pid ${status.pid})`);
}

const LEVEL_STYLES: Readonly<Record<string, Style>> = { warn: 'yellow', error: 'red' };

/** Returns the latest event first, so that old ones are cut. */
function eventLines({ events }: WatchModel, rows: number): Line[] {
  if (events.length === 0) return [];
  const lines = events.slice(-rows).map(({ at, level, message }): Line => {
    const text = `  ${clockText(at)}  ${safe(message)}`;
    const style = LEVEL_STYLES[level];
    return style === undefined ? text : styled(style, text);
  });
  return ['', styled('bold', 'latest events'), ...lines.reverse()];
}
