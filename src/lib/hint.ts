import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { shellWord } from './text.js';

// Texts for people name commands between backticks: `peersync retry --all`. They are written
// without the configuration, and completed by whoever shows them, who knows which one it is. In a
// checkout, where the command is not installed, they begin with `npx`.

/** A command in a text; between single quotes a backtick is part of a name. */
const COMMAND = /`((?:sudo -u [\w-]+ )?peersync) ((?:'[^'\n]*'|\\'|[^`'\n])+)`/g;
/** Needs no configuration, or names one. The ellipsis stands for the command that was given. */
const NEEDS_NONE =
  /^(?:…|help|schema|completion)(?= |$)|(?:^| )(?:--help|--version|-c|--config)(?=[ =]|$)/;
/** Ends the part of a command line where options may stand. */
const END_OF_OPTIONS = / (?:--|\||>)(?= |$)/;

/** npm and npx add such directories to the PATH of what they start; a shell does not have them. */
const OF_NPM = /[\\/]node_modules[\\/]\.bin[\\/]?$/;

/**
 * The text with `-c FILE` in each command that needs it; as it is where commands find the
 * configuration without. Commands begin with `npx` where a shell would not find them otherwise.
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

/** Whether npm or npx started this process, and no shell finds the command. */
function isOnlyInCheckout({ npm_execpath: npm = '', PATH = '' }: NodeJS.ProcessEnv): boolean {
  if (npm === '') return false;
  const directories = PATH.split(delimiter).filter((path) => path !== '' && !OF_NPM.test(path));
  return !directories.some((path) => existsSync(join(path, 'peersync')));
}

/**
 * The text with the name of a file in commands that were written for any: `` `peersync retry PATH`
 * ``.
 */
export function withFile(text: string, file: string): string {
  // Earlier versions stored hints without the word PATH.
  const command = /`peersync (retry|why)(?: PATH)?`/g;
  return text.replace(command, (_, name: string) => `\`peersync ${name} ${shellWord(file)}\``);
}

/** The fields of answers and log lines that hold sentences. */
const SENTENCES: ReadonlySet<string> = new Set(['hint', 'message', 'next', 'note', 'rule', 'why']);

/** The value as JSON, its sentences as `withConfig` completes them. */
export function jsonWithConfig(value: unknown, config: string | undefined): string {
  return JSON.stringify(value, (key, each) =>
    typeof each === 'string' && SENTENCES.has(key) ? withConfig(each, config) : each,
  );
}
