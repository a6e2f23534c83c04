import type { Argv, CommandModule, InferredOptionType, Options, PositionalOptions } from 'yargs';
import type { ZodType } from 'zod';
import type { ExitCode } from '../lib/errors.js';
import { versionJson, versionText } from '../lib/process.js';
import { GLOBAL_OPTIONS, type GlobalOptions, usualConfig } from './global-options.js';
import { reportError } from './output.js';
import { UsageError, usageMessage, YARGS_WORDS } from './usage.js';

export function withGlobalOptions(yargs: Argv): Argv<GlobalOptions> {
  return yargs
    .locale('en')
    .updateStrings(YARGS_WORDS as unknown as Record<string, string>)
    .version(process.argv.includes('--json') ? versionJson() : versionText())
    .alias({ help: 'h', version: 'V' })
    .options(GLOBAL_OPTIONS)
    .group([...Object.keys(GLOBAL_OPTIONS), 'help', 'version'], 'General options:')
    .default(
      'config',
      usualConfig(),
      GLOBAL_OPTIONS.config.defaultDescription,
    ) as unknown as Argv<GlobalOptions>;
}

/** Options or arguments by name. */
export type OptionTable = Readonly<Record<string, Options & PositionalOptions>>;

/** The kind of names that a command takes, if the shell can complete them. */
export type Completes = 'files' | 'folders' | 'folders to forget' | 'mirrors';

/**
 * The arguments, options and work of a command. Its yargs module, its help, its completion and the
 * manual page follow from this.
 */
export interface CommandBody {
  readonly positionals?: OptionTable;
  readonly options?: OptionTable;
  /** A command line that begins with `$0`, and its purpose. */
  readonly examples?: readonly (readonly [line: string, what: string])[];
  /** The shape of one line of the answer with --json. @default the command answers no JSON */
  readonly output?: ZodType;
  /** The shapes of command lines with an option that changes the answer, by option. */
  readonly outputWith?: Readonly<Record<string, ZodType>>;
  /** The commands below it. */
  readonly commands?: readonly Command[];
  /** Returns the exit code; missing where only those below it do something. */
  run?(options: GlobalOptions): Promise<ExitCode>;
}

/** A command with its usage and its line in the help. */
export interface Command extends CommandBody {
  /**
   * The name with its arguments: `why <path>`. The words of `[words..]` may also follow `--`, and
   * may then begin with a dash.
   */
  readonly usage: string;
  readonly describe: string;
}

type CamelCase<Name extends string> = Name extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name;

/** The values that yargs parses for a table of options. */
export type Given<T extends OptionTable> = {
  readonly [name in keyof T & string as CamelCase<name>]: InferredOptionType<T[name]>;
};

/** Defines a command. `run` gets the options and arguments by their names, in camel case. */
export function define<
  const P extends OptionTable = Record<never, never>,
  const O extends OptionTable = Record<never, never>,
>(
  command: Omit<CommandBody, 'run'> & {
    readonly positionals?: P;
    readonly options?: O;
    run?(options: GlobalOptions & Given<P> & Given<O>): Promise<ExitCode>;
  },
): CommandBody {
  return command;
}

/**
 * Makes a yargs module of a command; an error becomes two sentences and an exit code, never a stack
 * trace.
 */
export function moduleOf(
  command: Command,
  above = '',
): CommandModule<GlobalOptions, GlobalOptions> {
  const {
    usage,
    describe,
    positionals = {},
    options = {},
    examples = [],
    commands = [],
    run,
  } = command;
  const name = `${above}${nameOf(usage)}`;
  return {
    command: usage,
    describe,
    builder: (yargs) => {
      for (const [argument, words] of Object.entries(positionals))
        yargs.positional(argument, words);
      // The commands below have options of their own.
      for (const [option, words] of Object.entries(options))
        yargs.option(option, { ...words, global: false });
      yargs.group(Object.keys(options), 'Options:');
      yargs.example(examples.map(([line, what]) => [line, what]));
      yargs.fail((message, error) => {
        if (error !== undefined && error.name !== 'YError') throw error;
        const text = usageMessage(message ?? error.message, {
          usage: `${above}${usage}`,
          options: [...Object.keys(options), ...Object.keys(GLOBAL_OPTIONS)],
          commands: commands.map((below) => nameOf(below.usage)),
          args: process.argv.slice(2),
        });
        throw new UsageError(text, `See \`peersync ${name} --help\`.`);
      });
      for (const below of commands) yargs.command(moduleOf(below, `${name} `));
      return run === undefined ? yargs.demandCommand(1, nameOne(name, commands)) : yargs;
    },
    handler: async (argv) => {
      try {
        if (run === undefined) throw new UsageError(nameOne(name, commands));
        process.exitCode = await run(withRest(usage, argv));
      } catch (error) {
        process.exitCode = reportError(error, argv);
      }
    },
  };
}

/** Returns the name of a command: `why` of `why <path>`. */
export function nameOf(usage: string): string {
  return usage.replace(/ .*/, '');
}

function nameOne(name: string, commands: readonly Command[]): string {
  const names = commands.map(
    ({ usage }, i) => `\`${i === 0 ? `${name} ` : ''}${usage.split(' ')[0]}\``,
  );
  const last = names.pop();
  return `Name what to do: ${names.length === 0 ? last : `${names.join(', ')} or ${last}`}.`;
}

/** Returns the options with the words behind `--`, which yargs ignores. */
function withRest(usage: string, options: GlobalOptions): GlobalOptions {
  const at = process.argv.indexOf('--');
  const words = at === -1 ? [] : process.argv.slice(at + 1);
  if (words.length === 0) return options;
  const rest = /\[(\w+)\.\.\]/.exec(usage)?.[1];
  const before = Object.entries(options).find(([name]) => name === rest)?.[1];
  if (rest === undefined || !Array.isArray(before))
    throw new UsageError(
      `"${words.join(' ')}" stands behind "--", where this command takes nothing.`,
      'Leave out the "--"; a file whose name begins with a dash is written ./-name.',
    );
  return { ...options, [rest]: [...before, ...words] };
}
