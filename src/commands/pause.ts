import { systemClock } from '../lib/clock.js';
import { EXIT } from '../lib/errors.js';
import type { Paused } from '../queue/request-queue.js';
import { forgetPause, keepPause, LONGEST_PAUSE_MS, SHORTEST_PAUSE_MS } from '../report/pausing.js';
import { type Command, configOf, print, printJson, UsageError } from './context.js';
import { HEADS } from './heads.js';
import { askOr } from './offline.js';
import { withState } from './offline-state.js';
import { duration } from './option-values.js';
import { dueText } from './text.js';

interface PauseOptions {
  readonly for: string | undefined;
}

/** Nothing is sent to the peer any more, until it is resumed. */
export const pauseCommand: Command<PauseOptions> = {
  ...HEADS.pause,
  builder: (yargs) =>
    yargs
      .option('for', {
        type: 'string',
        describe: 'How long; until `resume` unless given',
        requiresArg: true,
      })
      .example('$0 pause --for 1h', 'Leave the peer alone for an hour')
      .example('$0 pause', 'Leave it alone until `peersync resume`, also across restarts'),
  run: async (options) => {
    const forMs = options.for === undefined ? undefined : duration('--for', options.for);
    if (forMs !== undefined && (forMs < SHORTEST_PAUSE_MS || forMs > LONGEST_PAUSE_MS))
      throw new UsageError(`--for: received "${options.for}".`, 'Give from "1s" to "3650d".');
    const { config } = await configOf(options);
    const parameters = forMs === undefined ? {} : { forMs };
    const offline = () => withState(config, options, (state) => keepPause(state, systemClock.now(), forMs));
    for await (const paused of askOr<Paused>(config, 'pause', parameters, offline)) {
      if (options.json) printJson(paused);
      else print(pausedLine(paused, systemClock.now()));
    }
    return EXIT.done;
  },
};

/** What a pause is, and until when. */
export function pausedLine({ until }: Paused, now: number): string {
  const end = until === undefined ? 'until `peersync resume`' : `until ${dueText(until, now)}`;
  return `Paused ${end}: nothing is sent to the peer, what changes on disk is read and waits.`;
}

/** The end of a pause. */
export const resumeCommand: Command<object> = {
  ...HEADS.resume,
  builder: (yargs) => yargs.example('$0 resume', 'Go on with what waits'),
  run: async (options) => {
    const { config } = await configOf(options);
    const offline = () =>
      withState(config, options, (state) => ({ wasPaused: forgetPause(state, systemClock.now()) }));
    for await (const report of askOr<{ readonly wasPaused: boolean }>(config, 'resume', {}, offline)) {
      if (options.json) printJson(report);
      else print(report.wasPaused ? 'Resumed: the work with the peer goes on.' : 'It was not paused.');
    }
    return EXIT.done;
  },
};
