import { shellWord } from './text.js';

// Texts for people name commands between backticks: `peersync retry --all`. They are written
// without the configuration, and completed by whoever shows them, who knows which one it is.

/** A command in a text; between single quotes a backtick is part of a name. */
const COMMAND = /`((?:sudo -u [\w-]+ )?peersync) ((?:'[^'\n]*'|\\'|[^`'\n])+)`/g;
/** Needs no configuration, or names one. The ellipsis stands for the command that was given. */
const NEEDS_NONE =
  /^(?:…|help|schema|completion)(?= |$)|(?:^| )(?:--help|--version|-c|--config)(?=[ =]|$)/;
/** Ends the part of a command line where options may stand. */
const END_OF_OPTIONS = / (?:--|\||>)(?= |$)/;

/**
 * The text with `-c FILE` in each command that needs it; as it is where commands find the
 * configuration without.
 */
export function withConfig(text: string, config: string | undefined): string {
  if (config === undefined || !text.includes('`')) return text;
  return text.replace(COMMAND, (whole, program: string, line: string) => {
    if (NEEDS_NONE.test(line)) return whole;
    const end = line.search(END_OF_OPTIONS);
    const at = end === -1 ? line.length : end;
    return `\`${program} ${line.slice(0, at)} -c ${shellWord(config)}${line.slice(at)}\``;
  });
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

/** The value as JSON, its sentences with `-c FILE` as `withConfig` has it. */
export function jsonWithConfig(value: unknown, config: string | undefined): string {
  if (config === undefined) return JSON.stringify(value);
  return JSON.stringify(value, (key, each) =>
    typeof each === 'string' && SENTENCES.has(key) ? withConfig(each, config) : each,
  );
}
