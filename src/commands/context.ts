import { once } from 'node:events';
import { access } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import type { Argv, CommandModule, InferredOptionType, Options, PositionalOptions } from 'yargs';
import type { LoadedConfig } from '../config/load.js';
import { asErrorLines, isJournal, LOG_LEVELS, type Log, type LogLevel } from '../daemon/log.js';
import { type ErrorParts, EXIT, type ExitCode, messageOf, PeersyncError } from '../lib/errors.js';
import { jsonWithConfig, withConfig } from '../lib/hint.js';
import { writtenPath } from '../lib/home.js';
import { versionJson, versionText } from '../lib/process.js';
import {
  canDraw,
  type Line,
  painted,
  restoreTerminal,
  textOf,
  wantsColour,
  withText,
} from './terminal.js';
import { safe } from './text.js';
import { usageMessage, YARGS_WORDS } from './usage.js';

/** The options that every command has. */
export interface GlobalOptions {
  readonly config: string;
  readonly json: boolean;
  readonly logLevel: LogLevel | undefined;
}

export const DEFAULT_CONFIG = 'config.json';

/** Those of every command. */
export const GLOBAL_OPTIONS = {
  config: {
    alias: 'c',
    type: 'string',
    requiresArg: true,
    describe: 'The configuration file',
    defaultDescription: `$PEERSYNC_CONFIG or ${DEFAULT_CONFIG}`,
  },
  json: { type: 'boolean', default: false, describe: 'Answer in JSON' },
  color: {
    type: 'boolean',
    default: true,
    describe: 'Colours on a terminal; --no-color or NO_COLOR=1: none',
  },
  'log-level': { choices: LOG_LEVELS, requiresArg: true, describe: 'How much to log' },
} as const;

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

/** The configuration of a command that names none. */
export function usualConfig({ PEERSYNC_CONFIG }: NodeJS.ProcessEnv = process.env): string {
  return PEERSYNC_CONFIG ?? DEFAULT_CONFIG;
}

/**
 * The configuration that commands in hints have to name, as it was given; undefined where they find
 * it without.
 */
export function configToName({ config }: Pick<GlobalOptions, 'config'>): string | undefined {
  return config === usualConfig() ? undefined : config;
}

/** The same for whoever reads what a daemon says, perhaps in another directory. */
export function daemonConfig({ config }: Pick<GlobalOptions, 'config'>): string | undefined {
  return config === DEFAULT_CONFIG ? undefined : writtenPath(config);
}

/** Lines for a person, whose commands name the configuration where that is needed. */
export function completed(options: Pick<GlobalOptions, 'config'>, lines: readonly Line[]): Line[] {
  const config = configToName(options);
  return lines.map((line) => withText(line, withConfig(textOf(line), config)));
}

/** Options or arguments by name. */
export type OptionTable = Readonly<Record<string, Options & PositionalOptions>>;

/**
 * What a command takes and does. Its arguments to yargs, its help, completion and the manual page
 * are made from this.
 */
export interface CommandBody {
  readonly positionals?: OptionTable;
  readonly options?: OptionTable;
  /** A command line, beginning with `$0`, and what it is good for. */
  readonly examples?: readonly (readonly [line: string, what: string])[];
  /** Those below it. */
  readonly commands?: readonly Command[];
  /** Returns the exit code; missing where only those below it do something. */
  run?(options: GlobalOptions): Promise<ExitCode>;
}

/** How a command is called, and what the help shows of it. */
export interface Command extends CommandBody {
  /**
   * With its arguments: `why <path>`. What `[words..]` takes may also stand behind `--`, where it
   * may begin with a dash.
   */
  readonly usage: string;
  readonly describe: string;
}

type CamelCase<Name extends string> = Name extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name;

/** What yargs makes of a table of options. */
export type Given<T extends OptionTable> = {
  readonly [name in keyof T & string as CamelCase<name>]: InferredOptionType<T[name]>;
};

/**
 * One command; `run` gets its options and arguments by the names that they have here, in camel
 * case.
 */
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

/** Where the help of the command stands that was given. */
function helpHint([command = ''] = process.argv.slice(2)): string {
  return /^[a-z][a-z-]*$/.test(command)
    ? `See \`peersync ${command} --help\`.`
    : 'See `peersync --help`.';
}

/** The command line was wrong. */
export class UsageError extends PeersyncError {
  constructor(message: string, hint = helpHint()) {
    super({
      code: 'USAGE',
      message: message.replace(/\s*\n\s*/g, ' '),
      hint,
      exitCode: EXIT.usage,
    });
  }
}

/** The command line was wrong before it was known which command it is. */
export function wrongUsage(message: string): UsageError {
  const args = process.argv.slice(2);
  const options = [...Object.keys(GLOBAL_OPTIONS), 'help', 'version'];
  return new UsageError(usageMessage(message, { usage: 'peersync', options, commands: [], args }));
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
      yargs.options(options).group(Object.keys(options), 'Options:');
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

/** The name of a command in the way it is called: `why` of `why <path>`. */
function nameOf(usage: string): string {
  return usage.replace(/ .*/, '');
}

function nameOne(name: string, commands: readonly Command[]): string {
  const names = commands.map(
    ({ usage }, i) => `\`${i === 0 ? `${name} ` : ''}${usage.split(' ')[0]}\``,
  );
  const last = names.pop();
  return `Name what to do: ${names.length === 0 ? last : `${names.join(', ')} or ${last}`}.`;
}

/** The options with the words behind `--`, which yargs gives to nobody. */
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

/** The same error with other words. */
export function restated(error: PeersyncError, parts: Partial<ErrorParts>): PeersyncError {
  const { code, details, exitCode, hint, message } = error;
  return new PeersyncError({ code, message, hint, details, exitCode, cause: error, ...parts });
}

/** Says what happened and what to do on stderr; returns the exit code. */
export function reportError(
  error: unknown,
  options: Pick<GlobalOptions, 'config' | 'json'>,
): ExitCode {
  if (error instanceof AggregateError) {
    const codes = error.errors.map((each: unknown) => reportError(each, options));
    return codes[0] ?? EXIT.failure;
  }
  const { code, message, hint, details, exitCode } = asPeersyncError(error);
  const config = configToName(options);
  complain(
    options.json
      ? `${jsonWithConfig({ error: { code, message, hint, ...details } }, config)}\n`
      : safeLines(withConfig(`peersync: ${message}\n  ${hint}\n`, config)),
  );
  if (code === 'BUG' && process.env.PEERSYNC_DEBUG !== undefined && error instanceof Error)
    complain(safeLines(`${error.stack}\n`));
  return exitCode;
}

function asPeersyncError(error: unknown): PeersyncError {
  if (error instanceof PeersyncError) return error;
  if (error instanceof Error && error.name === 'YError') return wrongUsage(error.message);
  const message = `This should not have happened: ${messageOf(error)}`;
  const hint = 'Please report it, with the output of PEERSYNC_DEBUG=1.';
  return new PeersyncError({ code: 'BUG', message, hint });
}

/** What the peer says, or a file is called, is not to act on a terminal. */
function safeLines(text: string): string {
  return text.split('\n').map(safe).join('\n');
}

/** On stderr. */
export function complain(text: string): void {
  process.stderr.write(isJournal(2, process.env) ? asErrorLines(text) : text);
}

/**
 * The configuration, its path and the log of a command; to the standard output goes what the
 * configuration wants logged.
 */
export async function prepare(
  options: GlobalOptions,
  fd: 1 | 2 = 2,
): Promise<LoadedConfig & { readonly log: Log }> {
  const loaded = await configOf(options);
  const level = fd === 1 ? loaded.config.log.level : 'warn';
  return { ...loaded, log: await openLog(options, fd, level) };
}

/**
 * The configuration alone, for a command that logs nothing. Its code is loaded here: the help is
 * quicker without it.
 */
export async function configOf(options: GlobalOptions): Promise<LoadedConfig> {
  const { loadConfig } = await import('../config/load.js');
  return await loadConfig(options.config);
}

/**
 * A log of its own for a command, with the level that was asked for; its code is loaded here as
 * well.
 */
export async function openLog(
  options: Pick<GlobalOptions, 'config' | 'logLevel'>,
  fd: 1 | 2,
  level: LogLevel,
): Promise<Log> {
  const { createLog } = await import('../daemon/log.js');
  const stream = fd === 1 ? process.stdout : process.stderr;
  return await createLog({
    level: options.logLevel ?? level,
    fd,
    terminal: stream.isTTY === true,
    // What a daemon writes is read elsewhere, in another directory and without its environment.
    config: fd === 1 ? daemonConfig(options) : configToName(options),
  });
}

export async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Answers with one JSON object, or with lines for a person. */
export function answer(
  options: GlobalOptions,
  value: unknown,
  lines: () => readonly Line[],
): ExitCode {
  if (options.json) printJson(options, value);
  else for (const line of completed(options, lines())) printLine(line);
  return EXIT.done;
}

/** In its colour where that is wanted. */
function printLine(line: Line): void {
  const { env, stdout } = process;
  print(canDraw(stdout, env) && wantsColour(env) ? painted(line) : textOf(line));
}

export function printJson(options: Pick<GlobalOptions, 'config'>, value: unknown): void {
  print(jsonWithConfig(value, configToName(options)));
}

/** Of the embedded peer and of YaCy. */
const HASH_WITH_DASH = /^-[\w-]{11}$/;

/** A word to leave out, as `-milk`; `-c`, `-c./FILE`, `-h` and `-V` are options. */
const LEFT_OUT = /^-(?![chV]$|c[=./~]|-)./;
const TAKES_VALUE = /^(?:-c|--(?:collection|config|limit|log-level|sort))$/;
/** Stands before a word that begins with a dash; no argument of a process can hold it. */
const NO_OPTION = '\0';

/** The words of a query as they were typed; see `asOptions`. */
export function typedWords(words: readonly string[]): string[] {
  return words.map((word) => (word.startsWith(NO_OPTION) ? word.slice(1) : word));
}

/**
 * The arguments with `--c` as `--group`: the specification calls the group `c`, and yargs would
 * take that for `-c`, the configuration. A hash may begin with a dash, and yargs would take it for
 * an option, as it would a word that `search` is to leave out. `help COMMAND` and `version` are
 * options to yargs, too. Nothing at all asks for the help.
 */
export function asOptions(args: readonly string[]): string[] {
  const [first, ...rest] = args;
  if (first === undefined) return ['--help'];
  if (first === 'help') return [...rest, '--help'];
  if (first === 'version') return ['--version'];
  const end = args.indexOf('--');
  const isSearch = args.find((arg) => !arg.startsWith('-')) === 'search';
  return args.flatMap((arg, i) => {
    if (end !== -1 && i > end) return [arg];
    if (isSearch && LEFT_OUT.test(arg) && !TAKES_VALUE.test(args[i - 1] ?? ''))
      return [`${NO_OPTION}${arg}`];
    if (arg === '--hash' && HASH_WITH_DASH.test(args[i + 1] ?? ''))
      return [`--hash=${args[i + 1]}`];
    if (args[i - 1] === '--hash' && HASH_WITH_DASH.test(arg)) return [];
    return [arg === '--c' || arg.startsWith('--c=') ? `--group${arg.slice(3)}` : arg];
  });
}

/**
 * Writes pieces as fast as the reader takes them, so that memory does not grow with what is
 * written. On a terminal what would act there is shown as escapes.
 */
export async function writeAll(
  out: Writable & { readonly isTTY?: boolean },
  pieces: AsyncIterable<string | Uint8Array>,
): Promise<void> {
  const decoder = new TextDecoder();
  for await (const piece of pieces) {
    const text = () =>
      typeof piece === 'string' ? piece : decoder.decode(piece, { stream: true });
    // Between the characters that part lines and columns, which stay.
    const shown = () =>
      text()
        .split(/(\r?\n|\t)/)
        .map((part, i) => (i % 2 === 0 ? safe(part) : part))
        .join('');
    if (!out.write(out.isTTY === true ? shown() : piece)) await once(out, 'drain');
  }
}

/** Calls `stop` at the first SIGTERM or SIGINT; the second ends the process as the signal would. */
export function onSignals(stop: (signal: NodeJS.Signals) => void, atOnce = () => {}): () => void {
  let asked = false;
  const listener = (signal: NodeJS.Signals) => {
    if (asked) {
      atOnce();
      restoreTerminal();
      unlisten();
      process.kill(process.pid, signal);
      return;
    }
    asked = true;
    stop(signal);
  };
  const unlisten = () => {
    process.off('SIGTERM', listener);
    process.off('SIGINT', listener);
  };
  process.on('SIGTERM', listener);
  process.on('SIGINT', listener);
  return unlisten;
}

/**
 * Lets `use` work until it is done, or called off by the first SIGTERM or SIGINT; what else it
 * started ends with it.
 */
export async function untilStopped<T>(use: (ending: AbortController) => Promise<T>): Promise<T> {
  const ending = new AbortController();
  const unlisten = onSignals(() => ending.abort());
  try {
    return await use(ending);
  } finally {
    ending.abort();
    unlisten();
  }
}
