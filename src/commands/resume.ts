import { systemClock } from '../lib/clock.js';
import { EXIT } from '../lib/errors.js';
import { forgetPause } from '../report/pausing.js';
import { type Command, configOf, print, printJson } from './context.js';
import { HEADS } from './heads.js';
import { askOr } from './offline.js';
import { withState } from './offline-state.js';

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
