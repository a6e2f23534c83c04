import { EXIT, PeersyncError } from '../lib/errors.js';
import { nearest } from '../lib/text.js';
import { GLOBAL_OPTIONS } from './global-options.js';

/**
 * The messages of yargs for a wrong command line, each a key with values. `usageMessage` turns them
 * into a sentence that shows the arguments as they were typed.
 */
export const YARGS_WORDS = {
  'Not enough non-option arguments: got %s, need at least %s': { one: 'few %s', other: 'few %s' },
  'Not enough arguments following: %s': 'value %s',
  'Unknown argument: %s': { one: 'unknown %s', other: 'unknown %s' },
  'Missing required argument: %s': { one: 'missing %s', other: 'missing %s' },
  'Invalid values:': 'choices',
  'Argument: %s, Given: %s, Choices: %s': '%s|%s|%s',
};

/** The command of a wrong command line, as far as it is known. */
export interface UsageContext {
  /** The usage with its arguments: `table get <table>`. */
  readonly usage: string;
  readonly options: readonly string[];
  /** The names of those below it. */
  readonly commands: readonly string[];
  /** The arguments as they were typed. */
  readonly args: readonly string[];
}

/** Returns a sentence that explains a wrong command line. Other texts are returned unchanged. */
export function usageMessage(text: string, context: UsageContext): string {
  const [, key, values = ''] = /^(few|value|unknown|missing|choices)\s+([\s\S]*)$/.exec(text) ?? [];
  const names = values.split(', ');
  if (key === 'few') return `${missingArguments(context.usage, Number(values))} missing.`;
  if (key === 'value') return `A value is missing after ${dashed(values, context.args)}.`;
  if (key === 'missing') {
    const options = names.map((name) => `--${name}`);
    return `${options.join(' and ')} ${isOrAre(options)} missing.`;
  }
  if (key === 'choices') return values.split('\n').map(choiceText).join(' ');
  if (key === 'unknown') return unknownText(names, context);
  return text;
}

function isOrAre({ length }: readonly string[]): string {
  return length === 1 ? 'is' : 'are';
}

/** @param given how many there are */
function missingArguments(usage: string, given: number): string {
  const missing = Array.from(usage.matchAll(/<[^>]+>/g), ([name]) => name.replace('..', '')).slice(
    given,
  );
  const noun = missing.length === 1 ? 'The argument' : 'The arguments';
  return `${noun} ${missing.join(' and ')} ${isOrAre(missing)}`;
}

function choiceText(line: string): string {
  const [option = '', given = '', choices = ''] = line.trim().split('|');
  return `--${option}: received ${given}; give ${choices.replaceAll('"', '').replace(/, (?=[^,]*$)/, ' or ')}.`;
}

/** An option as it was typed: `-c` or `--config`. */
function dashed(name: string, args: readonly string[]): string {
  const isLong = args.some((arg) => arg === `--${name}` || arg.startsWith(`--${name}=`));
  return name.length === 1 && !isLong ? `-${name}` : `--${name}`;
}

function unknownText(
  names: readonly string[],
  { args, commands, options, usage }: UsageContext,
): string {
  const isOption = (name: string) =>
    args.some(
      (arg) => arg.startsWith('-') && (name.length === 1 ? arg.includes(name) : isNamed(arg, name)),
    );
  const unknown = names.filter(isOption);
  const [option = ''] = unknown;
  if (unknown.length > 1)
    return `There are no options ${unknown.map((name) => dashed(name, args)).join(', ')}.`;
  if (unknown.length === 1) {
    const meant = nearest(option, options);
    return `There is no option ${dashed(option, args)}.${meant === undefined ? '' : ` Did you mean --${meant}?`}`;
  }
  const [word = ''] = names;
  const [command = ''] = usage.split(/ [<[]/);
  if (commands.length > 0 && !usage.includes('[')) {
    const meant = nearest(word, commands);
    return `There is no command "${command} ${word}".${meant === undefined ? '' : ` Did you mean "${command} ${meant}"?`}`;
  }
  const words = names.map((name) => `"${name}"`).join(' and ');
  const takes = usage === command ? `${command} takes none` : `the command is peersync ${usage}`;
  return names.length === 1
    ? `${words} is an argument too many: ${takes}.`
    : `${words} are arguments too many: ${takes}.`;
}

function isNamed(arg: string, name: string): boolean {
  return arg === `--${name}` || arg.startsWith(`--${name}=`) || arg === `--no-${name}`;
}

/** Returns a hint to the help of the command that was given. */
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
