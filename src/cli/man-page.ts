import yargs, { type Argv } from 'yargs';
import { pageInShell } from '../lib/documentation.js';
import { ABOUT, EXIT_WORDS, FIRST_EXAMPLES } from './about.js';
import { type Command, moduleOf, withGlobalOptions } from './command.js';
import type { GlobalOptions } from './global-options.js';

/** The environment variables that peersync reads, each with its effect. */
const ENVIRONMENT: Readonly<Record<string, string>> = {
  PEERSYNC_CONFIG: 'The configuration file where --config is not given.',
  PEERSYNC_DEBUG: 'Set to anything: an error that should not have happened shows where it did.',
  PEERSYNC_LOG: 'pretty, journal or json: how the log is written, whatever it goes to.',
  NO_COLOR: 'Set to anything: no colours, and watch prints plain lines.',
  TERM: 'dumb: nothing is drawn, progress is printed as plain lines.',
  CREDENTIALS_DIRECTORY:
    "Where systemd puts the credentials that the configuration's secrets may name.",
  NOTIFY_SOCKET:
    'The socket on which the daemon reports to systemd that it is ready, its status, and that it works.',
};

const FILES: Readonly<Record<string, string>> = {
  'config.json':
    'The configuration, where neither --config nor PEERSYNC_CONFIG names another. peersync init writes a first one.',
  'state.dir (./data/state)':
    'What is remembered across restarts: a snapshot and a journal, a lock, and the socket at which the daemon answers the other commands.',
  'peer.embedded.dir (./data/peer)': 'Index and password of the embedded peer, where it is used.',
  'mirror.root (./data/mirror)': 'The files that follow tables and shared objects of the peer.',
};

/** The help is set as it is, for a page of 80 columns. */
const WIDTH = 72;

/**
 * Returns the manual page peersync(1) in the language of man(7): the help of all commands, and an
 * introduction.
 */
export async function manPage(of: {
  readonly commands: readonly Command[];
  readonly version: string;
  /** The date of the build, if it is known. */
  readonly date?: string | undefined;
}): Promise<string> {
  const everyOption = await withGlobalOptions(yargs([])).usage('').wrap(WIDTH).getHelp();
  const commands = await Promise.all(of.commands.map((command) => sections(command, '')));
  const examples = FIRST_EXAMPLES.map(([line, what]) => [line.replaceAll('$0', 'peersync'), what]);
  return `.TH PEERSYNC 1 "${of.date ?? ''}" "${escaped(`peersync ${of.version}`)}" "User Commands"
.SH NAME
peersync \\- keep folders on disk and a search peer in step
.SH SYNOPSIS
.B peersync
.I command
.RI [ options ]
.SH DESCRIPTION
${ABOUT}
Files that are dropped into watched folders become documents in the index of the
peer, and none is called confirmed until the peer shows that very version of it.
Tables and shared objects of the peer become files on disk.
${tagged(Object.fromEntries(examples))}
.SH OPTIONS
Every command takes these:
${verbatim(everyOption)}
.SH COMMANDS
${commands.join('\n')}
.SH EXIT STATUS
${tagged(EXIT_WORDS)}
.SH ENVIRONMENT
${tagged(ENVIRONMENT)}
.SH FILES
${tagged(FILES)}
.SH SEE ALSO
The documentation is in the package.
.B less "${escaped(pageInShell('README.md'))}"
opens its first page,
.B less "${escaped(pageInShell('src/config/README.md'))}"
all keys of the configuration.
.B peersync schema
prints its JSON Schema.
`;
}

/**
 * @param above the words that stand before a command below another one, each with a blank behind it
 */
async function sections(command: Command, above: string): Promise<string> {
  const { commands = [], usage } = command;
  const [word = ''] = usage.split(' ');
  const help = await (yargs([word]) as unknown as Argv<GlobalOptions>)
    .command(moduleOf(command, above))
    .scriptName(`peersync ${above}`.trim())
    .help(false)
    .version(false)
    .wrap(WIDTH)
    .getHelp();
  // Its first line is the usage, which stands above.
  const own = `.SS "${escaped(`peersync ${above}${usage}`)}"\n${verbatim(help.slice(help.indexOf('\n')))}`;
  const below = await Promise.all(commands.map((each) => sections(each, `${above}${word} `)));
  return [own, ...below].join('\n');
}

function tagged(texts: Readonly<Record<string, string>>): string {
  // man(7) asks for short lines.
  const short = (text: string) =>
    (text.match(/.{1,70}(?: |$)/g) ?? []).map((line) => escaped(line.trim()));
  const tags = Object.entries(texts).map(([name, text]) => [
    '.TP',
    `.B ${escaped(name)}`,
    ...short(text),
  ]);
  return tags.flat().join('\n');
}

function verbatim(text: string): string {
  return ['.nf', ...text.trim().split('\n').map(escaped), '.fi'].join('\n');
}

/** Words as they are: nothing in them is a request, and a dash stays one that can be copied. */
function escaped(words: string): string {
  return words
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('"', '\\(dq')
    .replace(/^[.']/, '\\&$&')
    .replace(
      /[^\x20-\x7e]/gu,
      (c) => `\\[u${c.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}]`,
    );
}
