/** A hash of the embedded peer or of YaCy that begins with a dash. */
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
