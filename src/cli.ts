#!/usr/bin/env node
import yargs from 'yargs';
import { hideBin } from 'yargs/helpers';
import { ABOUT, EXIT_WORDS, FIRST_EXAMPLES } from './cli/about.js';
import { asOptions } from './cli/arguments.js';
import { withGlobalOptions } from './cli/command.js';
import { usualConfig } from './cli/global-options.js';
import { print, reportError } from './cli/output.js';
import { wrongUsage } from './cli/usage.js';
import { commandsFor, completesOf } from './commands/commands.js';
import { EXIT } from './lib/errors.js';

// A reader that closes the pipe (`peersync list | head`) is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT.done);
  throw error;
});

/** Returns the arguments before `--`, which may be options. */
function optionsOf(args: readonly string[]): readonly string[] {
  const end = args.indexOf('--');
  return end === -1 ? args : args.slice(0, end);
}

const exitCodes = Object.entries(EXIT_WORDS)
  .map(([code, words]) => `${code} ${words}`)
  .join(', ');

const commandLine = async (args: string[]) => {
  const commands = await commandsFor(args);
  const {
    _: words,
    help,
    version,
  } = await withGlobalOptions(yargs(args))
    .command([...commands])
    .scriptName('peersync')
    .usage(`$0 <command>\n\n${ABOUT}`)
    .example(FIRST_EXAMPLES)
    .epilogue(`Exit codes: ${exitCodes}.`)
    .strict()
    .wrap(Math.min(110, process.stdout.columns ?? 110))
    .exitProcess(false)
    .fail((message, error) => {
      // Yargs would run the command if this function returned.
      throw error ?? wrongUsage(message);
    })
    .parseAsync();
  const isAnswered = help === true || version === true;
  if (words.length === 0 && !isAnswered) throw wrongUsage('Name a command.');
};

try {
  const args = hideBin(process.argv);
  // All output that can have colours reads this variable.
  if (optionsOf(args).includes('--no-color')) process.env.NO_COLOR = '1';
  const completions =
    args[0] === '--get-yargs-completions'
      ? await (await import('./commands/completion.js')).completionsFor(
          args,
          process.env,
          completesOf,
        )
      : undefined;
  if (completions === undefined) await commandLine(asOptions(args));
  else for (const completion of completions) print(completion);
  // A script that calls peersync without a command must notice it. git fails as well.
  if (args.length === 0) process.exitCode = EXIT.usage;
} catch (error) {
  process.exitCode = reportError(error, {
    config: usualConfig(),
    json: process.argv.includes('--json'),
  });
}
