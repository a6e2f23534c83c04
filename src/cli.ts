#!/usr/bin/env node
import yargs from 'yargs';
import { hideBin } from 'yargs/helpers';
import { COMMANDS } from './commands/commands.js';
import { withoutShell } from './commands/completion.js';
import { globalOptions, reportError, UsageError } from './commands/context.js';
import { withoutShortGroup } from './commands/share.js';
import { EXIT } from './lib/errors.js';
import { VERSION } from './lib/version.js';

// A reader that went away (`peersync list | head`) is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT.done);
  throw error;
});

const commandLine = (args: string[]) =>
  globalOptions(yargs(args))
    .scriptName('peersync')
    .usage('$0 <command>\n\nKeeps folders on disk and a search peer in step.')
    .command([...COMMANDS])
    .completion(
      'completion',
      'Print the script that completes commands in your shell; `completion zsh` for another one (bash, zsh, fish)',
    )
    .example('$0 init', 'Write a first configuration')
    .example('$0 run -c config.json', 'Watch, push and confirm until stopped')
    .example('$0 why ~/notes/plan.md', 'Tell everything about one file')
    .epilogue(
      'Exit codes: 0 done, 1 failure, 2 wrong usage or configuration, 3 done but items are quarantined or missing in the peer, or a mirror raised an alarm, 4 peer unreachable.',
    )
    .demandCommand(1, 'Name a command.')
    .recommendCommands()
    .strict()
    .version(VERSION)
    .alias('help', 'h')
    .wrap(Math.min(110, process.stdout.columns ?? 110))
    .exitProcess(false)
    .fail((message, error) => {
      // Yargs goes on to the command after a failure that is only returned from.
      throw error ?? new UsageError(message);
    });

try {
  await commandLine(withoutShell(withoutShortGroup(hideBin(process.argv)), process.env)).parseAsync();
} catch (error) {
  process.exitCode = reportError(error, process.argv.includes('--json'));
}
