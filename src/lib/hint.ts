import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { shellWord } from './text.js';

// Texts for people name commands between backticks: `peersync retry --all`. They are written
// without the configuration. The caller that shows a text knows the configuration and completes the
// commands. In a checkout, where the command is not installed, they begin with `npx`.

/** Matches a command in a text. Between single quotes, a backtick is part of a name. */
const COMMAND = /`((?:sudo -u [\w-]+ )?peersync) ((?:'[^'\n]*'|\\'|[^`'\n])+)`/g;
/**
 * Matches a command that needs no configuration, or names one. The ellipsis stands for the command
 * that was given.
 */
const NEEDS_NONE =
  /^(?:…|help|schema|completion)(?= |$)|(?:^| )(?:--help|--version|-c|--config)(?=[ =]|$)/;
/** Matches the end of the part of a command line in which options may stand. */
const END_OF_OPTIONS = / (?:--|\||>)(?= |$)/;

/**
 * Matches the directories that npm and npx add to the PATH of a program. A shell does not have
 * them.
 */
const OF_NPM = /[\\/]node_modules[\\/]\.bin[\\/]?$/;

/**
 * Returns a text with `-c FILE` in each command that needs it; unchanged if `config` is undefined.
 * Commands begin with `npx` if a shell would not find them otherwise.
 */
export function withConfig(
  text: string,
  config: string | undefined,
  env: NodeJS.ProcessEnv = process.env,
): string {
  if (!text.includes('`peersync ') && !text.includes('`sudo ')) return text;
  const needsNpx = isOnlyInCheckout(env);
  return text.replace(COMMAND, (_, program: string, line: string) => {
    const typed = needsNpx && program === 'peersync' ? 'npx peersync' : program;
    return `\`${typed} ${lineWithConfig(line, config)}\``;
  });
}

function lineWithConfig(line: string, config: string | undefined): string {
  if (config === undefined || NEEDS_NONE.test(line)) return line;
  const end = line.search(END_OF_OPTIONS);
  const at = end === -1 ? line.length : end;
  return `${line.slice(0, at)} -c ${shellWord(config)}${line.slice(at)}`;
}

/** Whether npm or npx started this process, and a shell would not find the command. */
function isOnlyInCheckout({ npm_execpath: npm = '', PATH = '' }: NodeJS.ProcessEnv): boolean {
  if (npm === '') return false;
  const directories = PATH.split(delimiter).filter((path) => path !== '' && !OF_NPM.test(path));
  return !directories.some((path) => existsSync(join(path, 'peersync')));
}

/**
 * Returns a text with the name of a file in commands that are written for any: `` `peersync retry
 * PATH` ``.
 */
export function withFile(text: string, file: string): string {
  // Earlier versions stored hints without the word PATH.
  const command = /`peersync (retry|why)(?: PATH)?`/g;
  return text.replace(command, (_, name: string) => `\`peersync ${name} ${shellWord(file)}\``);
}

/** The fields of answers and log lines that contain sentences. */
const SENTENCES: ReadonlySet<string> = new Set(['hint', 'message', 'next', 'note', 'rule', 'why']);

/** Returns a value as JSON, with complete commands in its sentences (see `withConfig`). */
export function jsonWithConfig(value: unknown, config: string | undefined): string {
  return JSON.stringify(value, (key, each) =>
    typeof each === 'string' && SENTENCES.has(key) ? withConfig(each, config) : each,
  );
}
