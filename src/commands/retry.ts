import type { z } from 'zod';
import { retry } from '../api/retry.js';
import { define } from '../cli/command.js';
import * as option from '../cli/option.js';
import { answer } from '../cli/output.js';
import { counted } from '../cli/text.js';
import { UsageError } from '../cli/usage.js';
import { ask, configToAsk, runningStatus, typedPath } from './ask.js';

type RetryAnswer = z.output<typeof retry.line>;

/** Tries again what is in quarantine, waits for its next attempt or was skipped. */
export const retryCommand = define({
  positionals: { path: option.several('Files, or directories with all below') },
  options: { all: option.flag('Everything') },
  output: retry.line,
  examples: [
    ['$0 retry data/inbox/report.md', 'One file'],
    ['$0 retry --all', 'Everything that is stuck'],
  ],
  run: async (options) => {
    if (options.all === options.path.length > 0)
      throw new UsageError(
        options.all ? 'Both paths and --all were given.' : 'Neither a path nor --all was given.',
        'Name the files to try again, or give --all.',
      );
    const config = await configToAsk(options);
    const paths = await Promise.all(options.path.map((path) => typedPath(config, path)));
    const question = options.all ? { all: true as const } : { paths };
    const report = await ask(options, config, retry, question);
    const isRunning = (await runningStatus(config.state.dir)) !== undefined;
    return answer(options, report, () => [retriedText(report, isRunning)]);
  },
});

/** Describes the result for a person. */
function retriedText({ retried, toRead }: RetryAnswer, isRunning: boolean): string {
  const parts: string[] = [];
  if (retried > 0)
    parts.push(`${counted(retried, 'item')} ${retried === 1 ? 'is' : 'are'} pending again`);
  if (toRead > 0)
    parts.push(`${counted(toRead, 'file')} ${toRead === 1 ? 'is' : 'are'} looked at again`);
  if (parts.length === 0)
    return 'Nothing there is in quarantine, waits for its next attempt, or was skipped.';
  if (isRunning) return `${parts.join(', ')}.`;
  return `${parts.join(', ')}. No daemon runs now: the next \`peersync run\` or \`peersync once\` goes on with that.`;
}
