import { resolve } from 'node:path';
import type { Config } from '../config/config.js';
import { systemClock } from '../lib/clock.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import { scopesOf } from '../report/items.js';
import { retryItems } from '../uplink/retry.js';
import { type Command, configOf, type GlobalOptions, print, printJson } from './context.js';
import { HEADS } from './heads.js';
import { askOr } from './offline.js';
import { withState } from './offline-state.js';
import { counted } from './text.js';

interface RetryOptions {
  readonly path: string[];
  readonly all: boolean;
}

interface Retried {
  readonly retried: number;
  readonly lookedAt: number;
}

/** Another try for what is in quarantine or waits for its next attempt. */
export const retryCommand: Command<RetryOptions> = {
  ...HEADS.retry,
  rest: 'path',
  builder: (yargs) =>
    yargs
      .positional('path', {
        type: 'string',
        array: true,
        default: [],
        describe: 'Files, or directories with all below',
      })
      .option('all', { type: 'boolean', default: false, describe: 'Everything' })
      .example('$0 retry data/inbox/report.md', 'One file')
      .example('$0 retry --all', 'Everything that is stuck'),
  run: async (options) => {
    const { config } = await configOf(options);
    if (options.all === options.path.length > 0)
      throw new PeersyncError({
        code: 'USAGE',
        message: options.all ? 'Both paths and --all were given.' : 'Neither a path nor --all was given.',
        hint: 'Name the files to try again, or give --all.',
        exitCode: EXIT.usage,
      });
    const paths = options.all ? undefined : options.path.map((path) => resolve(path));
    const parameters = paths === undefined ? { all: true } : { paths };
    for await (const report of askOr<Retried>(config, 'retry', parameters, () =>
      retryOffline(config, paths, options),
    )) {
      if (options.json) printJson(report);
      else print(retriedText(report));
    }
    return EXIT.done;
  },
};

/** What a retry did, for a person. */
export function retriedText({ retried, lookedAt }: Retried): string {
  const said = [
    ...(retried > 0 ? [`${counted(retried, 'item')} ${retried === 1 ? 'is' : 'are'} pending again`] : []),
    ...(lookedAt > 0
      ? [`${counted(lookedAt, 'file')} ${lookedAt === 1 ? 'is' : 'are'} looked at again`]
      : []),
  ];
  if (said.length === 0)
    return 'Nothing there is in quarantine, waits for its next attempt, or was passed over.';
  return `${said.join(', ')}.`;
}

async function retryOffline(
  config: Config,
  paths: readonly string[] | undefined,
  options: GlobalOptions,
): Promise<Retried[]> {
  const scopes = paths && (await scopesOf(config, paths));
  return await withState(config, options, async (state) => {
    const { retried, lookedAt } = await retryItems(state, scopes, systemClock);
    return { retried, lookedAt: lookedAt.length };
  });
}
