import type { Config } from '../config/config.js';
import { askDaemon } from '../daemon/control.js';
import { type Clock, systemClock } from '../lib/clock.js';
import { EXIT, messageOf, PeersyncError } from '../lib/errors.js';
import type { LiveLine } from '../report/answers.js';
import { configOf, define, onSignals, print, printJson } from './context.js';
import { canDraw, listenToKeys, Screen, wantsColour } from './terminal.js';
import {
  NOTHING_KNOWN,
  type WatchModel,
  watchLine,
  watchView,
  withLine,
  withoutDaemon,
} from './watch-view.js';

/** Between two pictures, in ms. */
const PICTURE_MS = 1_000;
/** Between two plain lines, in ms. */
const LINE_MS = 5_000;
/** Between two tries to find the daemon, in ms. */
const RETRY_MS = 1_000;
/** How long a daemon may take to begin, in ms. */
const PATIENCE_MS = 15_000;
const KEY_WORDS = 'q quit   p pause or resume   Ctrl-L draw anew';

/** The running daemon, as it works: the whole window of a terminal, or a plain line now and then. */
export const watchCommand = define({
  examples: [
    ['$0 watch', 'q ends it, p pauses peersync and resumes it'],
    ['$0 watch | tee log', 'One plain line every few seconds, as also under NO_COLOR or TERM=dumb'],
    ['$0 watch --json', 'Everything the daemon tells, one JSON object a line'],
  ],
  run: async (options) => {
    const { config } = await configOf(options);
    const ending = new AbortController();
    const { signal } = ending;
    const unlisten = onSignals(() => ending.abort());
    const { env, stdout } = process;
    try {
      if (options.json) await follow(config, signal, { line: printJson, away: () => {} });
      else if (canDraw(stdout, env) && wantsColour(env)) await show(config, ending);
      else await tell(config, signal);
    } finally {
      ending.abort();
      unlisten();
    }
    return EXIT.done;
  },
});

interface Follower {
  line(line: LiveLine): void;
  /** The daemon does not run, or went away; it is looked for until it is back. */
  away(why: string): void;
}

/**
 * Follows the daemon until `signal` aborts, from one to the next where it is started anew.
 *
 * @throws PeersyncError what a daemon answers that cannot be followed
 */
async function follow(config: Config, signal: AbortSignal, { away, line }: Follower): Promise<void> {
  const clock: Clock = systemClock;
  let wasThere = false;
  while (!signal.aborted) {
    try {
      const question = { ask: 'live', parameters: {} };
      const answer = await askDaemon(config.state.dir, question, { patienceMs: PATIENCE_MS, signal });
      if (answer !== undefined) {
        for await (const each of answer) line(each as LiveLine);
        wasThere = true;
      }
      away(`the daemon ${wasThere ? 'went away' : 'does not run'}; waiting for it`);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof PeersyncError) || error.code !== 'CONTROL_FAILED') throw error;
      wasThere = true;
      away(`${messageOf(error)} Trying again`);
    }
    await clock.sleep(RETRY_MS, signal);
  }
}

/** What is known of the daemon now. */
interface Known {
  model: WatchModel;
}

/** In the time of the daemon, whose clock is a steady one. */
function timeOf({ status }: WatchModel): number {
  return systemClock.now() - (status?.wallAheadMs ?? 0);
}

/** Keeps up with the daemon while `show` shows it; until `signal` aborts, which ends `show`, or either fails. */
async function keepUp(
  config: Config,
  signal: AbortSignal,
  known: Known,
  show: () => Promise<void>,
): Promise<void> {
  const followed = follow(config, signal, {
    line: (line) => {
      known.model = withLine(known.model, line, timeOf(known.model));
    },
    away: (why) => {
      known.model = withoutDaemon(known.model, why);
    },
  });
  await Promise.race([followed, show()]);
}

/** Plain lines, one now and then. */
async function tell(config: Config, signal: AbortSignal): Promise<void> {
  const known: Known = { model: NOTHING_KNOWN };
  await keepUp(config, signal, known, async () => {
    // The daemon's first word comes at once.
    while (!signal.aborted && known.model.status === undefined && known.model.away === undefined)
      await systemClock.sleep(50, signal);
    while (!signal.aborted) {
      print(watchLine(known.model, timeOf(known.model)));
      await systemClock.sleep(LINE_MS, signal);
    }
  });
}

/** The whole window, drawn anew once a second, and when a key is pressed or the window gets another size. */
async function show(config: Config, ending: AbortController): Promise<void> {
  const { signal } = ending;
  const { stdin, stdout } = process;
  const screen = new Screen(stdout);
  const known: Known = { model: NOTHING_KNOWN };
  const keyWords = stdin.isTTY ? KEY_WORDS : 'Ctrl-C quits';
  const draw = () => screen.draw(watchView(known.model, screen, timeOf(known.model), keyWords));
  const redraw = () => {
    screen.wipe();
    draw();
  };
  const note = (text: string) => {
    known.model = { ...known.model, note: { text, at: timeOf(known.model) } };
    draw();
  };
  const work = {
    q: () => ending.abort(),
    p: () => void pauseOrResume(config, known.model).then(note, (error) => note(messageOf(error))),
    redraw,
    suspend: () => screen.close(),
    resume: () => {
      screen.open();
      redraw();
    },
  };
  screen.open();
  const closeKeys = listenToKeys(stdin, work);
  stdout.on('resize', redraw);
  try {
    await keepUp(config, signal, known, async () => {
      while (!signal.aborted) {
        draw();
        // The first picture with something on it is not waited for.
        await systemClock.sleep(known.model.heardAt === undefined ? PICTURE_MS / 10 : PICTURE_MS, signal);
      }
    });
  } finally {
    stdout.off('resize', redraw);
    closeKeys();
    screen.close();
  }
}

/** @returns what was done, for the last line */
async function pauseOrResume(config: Config, model: WatchModel): Promise<string> {
  const ask = model.status?.peer.queue?.paused === undefined ? 'pause' : 'resume';
  const answer = await askDaemon(config.state.dir, { ask, parameters: {} }, { patienceMs: PATIENCE_MS });
  if (answer === undefined) return 'the daemon does not run';
  for await (const _ of answer);
  return ask === 'pause' ? 'paused: files are watched, the peer is left alone' : 'resumed';
}
