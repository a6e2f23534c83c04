import { LONGEST_PAUSE_MS, pause, resume, SHORTEST_PAUSE_MS } from '../api/pause.js';
import { define } from '../cli/command.js';
import * as option from '../cli/option.js';
import { answer } from '../cli/output.js';
import { dueText } from '../cli/text.js';
import { UsageError } from '../cli/usage.js';
import { systemClock } from '../lib/clock.js';
import type { Paused } from '../queue/request-queue.js';
import { ask, configToAsk, runningStatus } from './ask.js';

/** Stops the work with the peer until a time or until `resume`. */
export const pauseCommand = define({
  options: { for: option.value('How long; until `resume` unless given') },
  output: pause.line,
  examples: [
    ['$0 pause --for 1h', 'Leave the peer alone for an hour'],
    ['$0 pause', 'Leave it alone until `peersync resume`, also across restarts'],
  ],
  run: async (options) => {
    const forMs = options.for === undefined ? undefined : option.duration('--for', options.for);
    if (forMs !== undefined && (forMs < SHORTEST_PAUSE_MS || forMs > LONGEST_PAUSE_MS))
      throw new UsageError(`--for: received "${options.for}".`, 'Give from "1s" to "3650d".');
    const config = await configToAsk(options);
    const paused = await ask(options, config, pause, { forMs });
    const isRunning = (await runningStatus(config.state.dir)) !== undefined;
    return answer(options, paused, () => [pausedLine(paused, systemClock.now(), isRunning)]);
  },
});

/** Describes a pause and its end. */
export function pausedLine({ until }: Paused, now: number, isRunning: boolean): string {
  const end = until === undefined ? 'until `peersync resume`' : `until ${dueText(until, now)}`;
  if (!isRunning)
    return `Paused ${end}. No daemon runs now: the next \`peersync run\` or \`peersync once\` reads what changes on disk, and sends nothing to the peer.`;
  return `Paused ${end}: nothing is sent to the peer, what changes on disk is read and waits.`;
}

/** Ends a pause. */
export const resumeCommand = define({
  output: resume.line,
  examples: [['$0 resume', 'Go on with what waits']],
  run: async (options) => {
    const config = await configToAsk(options);
    const { wasPaused } = await ask(options, config, resume, {});
    const isRunning = (await runningStatus(config.state.dir)) !== undefined;
    return answer(options, { wasPaused }, () => [resumedLine(wasPaused, isRunning)]);
  },
});

/** Describes what happens after a pause. */
function resumedLine(wasPaused: boolean, isRunning: boolean): string {
  if (isRunning)
    return wasPaused ? 'Resumed: the work with the peer goes on.' : 'It was not paused.';
  const what = wasPaused ? 'The pause is over' : 'It was not paused';
  return `${what}. No daemon runs now: \`peersync run\` or \`peersync once\` does what waits.`;
}
