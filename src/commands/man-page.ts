import { ABOUT, COMPLETION, EXIT_WORDS, FIRST_EXAMPLES } from './commands.js';
import { type Command, GLOBAL_OPTIONS, type OptionTable } from './context.js';

type Words = OptionTable[string];

/** What peersync reads from its surroundings; a name and what it does. */
const ENVIRONMENT = [
  ['PEERSYNC_CONFIG', 'The configuration file where --config is not given.'],
  ['PEERSYNC_DEBUG', 'Set to anything: an error that should not have happened shows where it did.'],
  ['PEERSYNC_LOG', '`pretty`, `journal` or `json`: how the log is written, whatever it goes to.'],
  ['NO_COLOR', 'Set to anything: no colours, and `watch` prints plain lines.'],
  ['TERM', '`dumb`: nothing is drawn, progress is told in plain lines.'],
  ['CREDENTIALS_DIRECTORY', "Where systemd puts the credentials that the configuration's secrets may name."],
  ['NOTIFY_SOCKET', 'Where systemd is told that the daemon is ready, how it stands and that it lives.'],
] as const;

const LINE_WIDTH = 78;

const FILES = [
  [
    'config.json',
    'The configuration, where neither --config nor PEERSYNC_CONFIG names another. `peersync init` writes a first one.',
  ],
  [
    'state.dir (./data/state)',
    'What is remembered across restarts: a snapshot and a journal, a lock, and the socket at which the daemon answers the other commands.',
  ],
  ['peer.embedded.dir (./data/peer)', 'Index and password of the embedded peer, where it is used.'],
  ['mirror.root (./data/mirror)', 'The files that follow tables and shared objects of the peer.'],
] as const;

/**
 * The manual page peersync(1) in the language of man(7), from what the commands themselves define.
 *
 */
export function manPage(of: {
  readonly commands: readonly Command[];
  readonly version: string;
  /** Of the build, where it is known. */
  readonly date?: string | undefined;
}): string {
  const page = [
    `.TH PEERSYNC 1 "${of.date ?? ''}" ${quoted(`peersync ${of.version}`)} "User Commands"`,
    '.SH NAME',
    'peersync \\- keep folders on disk and a search peer in step',
    '.SH SYNOPSIS',
    '.B peersync',
    '.I command',
    '.RI [ options ]',
    '.SH DESCRIPTION',
    text(ABOUT),
    text(
      'Files that are dropped into watched folders become documents in the index of the peer, and none is called confirmed until the peer shows that very version of it. Tables and shared objects of the peer become files on disk. `peersync init` writes a first configuration, `peersync check` looks whether everything is in order, and `peersync run` is the daemon.',
    ),
    '.SH COMMANDS',
    ...of.commands.flatMap((each) => command(each)),
    ...command(COMPLETION),
    '.SH OPTIONS',
    'Every command takes these:',
    ...Object.entries(GLOBAL_OPTIONS).flatMap(option),
    ...tagged('.BR \\-h ", " \\-\\-help', 'Tell what the command does.'),
    ...tagged('.B \\-\\-version', 'Tell the version and the build.'),
    '.SH EXIT STATUS',
    ...Object.entries(EXIT_WORDS).flatMap(([code, words]) => tagged(`.B ${code}`, `${words}.`)),
    '.SH ENVIRONMENT',
    ...ENVIRONMENT.flatMap(([name, words]) => tagged(`.B ${escaped(name)}`, words)),
    '.SH FILES',
    ...FILES.flatMap(([name, words]) => tagged(`.I ${quoted(name)}`, words)),
    '.SH EXAMPLES',
    ...FIRST_EXAMPLES.flatMap(example).slice(1),
    '.SH SEE ALSO',
    'The README of the package explains the configuration;',
    '.B peersync schema',
    'prints its JSON Schema.',
  ];
  return `${page.join('\n')}\n`;
}

/** @param above the words that stand before a command below another one */
function command({ usage, describe, ...body }: Command, above = ''): string[] {
  const { options = {}, positionals = {}, examples = [], commands = [] } = body;
  return [
    `.SS ${quoted(`peersync ${above}${usage.replace(/\.\.(?=[\]>])/, '...')}`)}`,
    text(ended(describe, '.')),
    ...Object.entries(positionals).flatMap(positional),
    ...Object.entries(options).flatMap(option),
    ...examples.flatMap(example),
    ...commands.flatMap((each) => command(each, `${above}${usage.split(' ')[0]} `)),
  ];
}

function positional([name, words]: readonly [string, Words]): string[] {
  return tagged(`.I ${escaped(name)}`, details(words));
}

function option([name, words]: readonly [string, Words]): string[] {
  const aliases = [words.alias ?? []]
    .flat()
    .map((alias) => (alias.length === 1 ? `-${alias}` : `--${alias}`));
  const names = [...aliases, `--${name}`].map((each) => `\\fB${escaped(each)}\\fR`).join(', ');
  const value = words.type === 'boolean' ? '' : ` \\fI${escaped(valueName(name, words))}\\fR`;
  return ['.TP', `${names}${value}`, text(details(words))];
}

/** What stands for the value of an option: `FILE` for a configuration, else the choices or the option's own name. */
function valueName(name: string, { choices, type }: Words): string {
  if (choices !== undefined) return choices.join('|');
  if (type === 'number') return 'N';
  return name === 'config' || name === 'output' ? 'FILE' : (name.split('-').at(-1) ?? name).toUpperCase();
}

function details({ describe, description, default: value, defaultDescription, demandOption }: Words) {
  const said = describe ?? description ?? '';
  const notes = [
    ...(demandOption === true ? ['required'] : []),
    ...(defaultDescription !== undefined
      ? [`default: ${defaultDescription}`]
      : value === undefined || value === false || Array.isArray(value)
        ? []
        : [`default: ${value}`]),
  ];
  return ended(notes.length === 0 ? said : `${said} (${notes.join(', ')})`, '.');
}

function example([line, what]: readonly [string, string]): string[] {
  return [
    '.PP',
    text(ended(what, ':')),
    '.PP',
    '.RS 4',
    '.nf',
    unasked(escaped(line.replaceAll('$0', 'peersync'))),
    '.fi',
    '.RE',
  ];
}

function tagged(head: string, words: string): string[] {
  return ['.TP', head, text(words)];
}

/** Words as they are: nothing in them is a request, and a dash stays one that can be copied. Lines are short, as man(7) asks. */
function text(words: string): string {
  const lines: string[] = [];
  for (const word of marked(words).split(' ')) {
    const line = lines.at(-1);
    if (line === undefined || line.length + word.length >= LINE_WIDTH) lines.push(word);
    else lines[lines.length - 1] = `${line} ${word}`;
  }
  return lines.map(unasked).join('\n');
}

function marked(words: string): string {
  return escaped(words).replace(/`([^`]*)`/g, (_, code: string) => `\\fB${code}\\fR`);
}

/** A line that begins with a dot or a quote would be taken for a request. */
function unasked(line: string): string {
  return /^[.']/.test(line) ? `\\&${line}` : line;
}

function quoted(words: string): string {
  return `"${escaped(words).replaceAll('"', '\\(dq')}"`;
}

function escaped(words: string): string {
  return words
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/\s+/g, ' ')
    .replace(
      /[^\x20-\x7e]/gu,
      (c) => `\\[u${c.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}]`,
    );
}

/** Ended by a mark, unless it has one. */
function ended(words: string, mark: string): string {
  return /[.?!:]$/.test(words) ? words : `${words}${mark}`;
}
