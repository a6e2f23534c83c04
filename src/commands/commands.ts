import type { CommandModule } from 'yargs';
import { type Command, type CommandBody, moduleOf } from '../cli/command.js';
import type { GlobalOptions } from '../cli/global-options.js';
import { UsageError } from '../cli/usage.js';
import { nearest } from '../lib/text.js';

/** How each is called and what it does, in the order of the help. */
const DESCRIPTIONS = {
  run: 'Watch the folders, push and confirm, until SIGTERM or SIGINT',
  once: 'Scan the folders, push and confirm what is new, bring the mirrors up to date, then exit',
  status: 'Tell how everything stands',
  watch:
    'Show what the running daemon does as it does it: folders, speed, the peer, trouble, latest events',
  list: 'List the known files',
  'why <path>': 'Explain one file: rule, status, history, evidence or error, and what happens next',
  'retry [path..]': 'Try again what is in quarantine, waits for its next attempt, or was skipped',
  verify: 'Look up in the peer once more what is confirmed, and tell what is missing',
  'rescan [folder]': 'Let the running daemon scan its folders now',
  reload: 'Let the running daemon take up its changed configuration, as SIGHUP does',
  pause: 'Send nothing to the peer for a while; what changes on disk is still read, and waits',
  resume: 'End a pause: the work with the peer goes on',
  'approve-deletes <folder>':
    'Let the documents of very many removed files be removed from the peer',
  'forget <folder>':
    'Forget a folder that left the configuration, or remove documents of files that are skipped now',
  'mirror [names..]':
    "Bring the files that follow the peer's tables and shared objects up to date now",
  check:
    'Check configuration, folders, watch limit, state, ports, peer, access and what is mirrored',
  'init [folder]': 'Write a first configuration for a folder; never overwrites one',
  schema: 'Print the JSON Schema of the configuration, for editors, or of the answers in JSON',
  'search [words..]': 'Search the peer, and list what it finds',
  'doc [url]': 'Show what the peer has of one document',
  'citation [url]': 'Show which sentences of a document stand in others too, and who cites it',
  'push [file..]':
    'Push single files, outside of all folders, and wait until the peer shows them; or remove them again',
  share: 'List and fetch shared objects of the peer',
  table: 'Show and change tables of the peer',
  peer: 'Run the embedded peer alone, until SIGTERM or SIGINT',
  service: 'Let systemd run the daemon, from every start of the machine on',
  'completion [shell]':
    'Print the script for bash, zsh or fish that completes commands in your shell',
};

/** Each is loaded by itself: a command is quick that needs little, and so is the help. */
const LOADERS: Readonly<Record<keyof typeof DESCRIPTIONS, () => Promise<CommandBody>>> = {
  run: async () => (await import('./run.js')).runCommand,
  once: async () => (await import('./once.js')).onceCommand,
  status: async () => (await import('./status.js')).statusCommand,
  watch: async () => (await import('./watch.js')).watchCommand,
  list: async () => (await import('./items.js')).listCommand,
  'why <path>': async () => (await import('./items.js')).whyCommand,
  'retry [path..]': async () => (await import('./items.js')).retryCommand,
  verify: async () => (await import('./items.js')).verifyCommand,
  'rescan [folder]': async () => (await import('./control.js')).rescanCommand,
  reload: async () => (await import('./control.js')).reloadCommand,
  pause: async () => (await import('./control.js')).pauseCommand,
  resume: async () => (await import('./control.js')).resumeCommand,
  'approve-deletes <folder>': async () => (await import('./deletions.js')).approveDeletesCommand,
  'forget <folder>': async () => (await import('./deletions.js')).forgetCommand,
  'mirror [names..]': async () => (await import('./mirror.js')).mirrorCommand,
  check: async () => (await import('./check.js')).checkCommand,
  'init [folder]': async () => (await import('./setup.js')).initCommand,
  schema: async () => (await import('./setup.js')).schemaCommand,
  'search [words..]': async () => (await import('./search.js')).searchCommand,
  'doc [url]': async () => (await import('./documents.js')).docCommand,
  'citation [url]': async () => (await import('./documents.js')).citationCommand,
  'push [file..]': async () => (await import('./push.js')).pushCommand,
  share: async () => (await import('./documents.js')).shareCommand,
  table: async () => (await import('./table.js')).tableCommand,
  peer: async () => (await import('./peer.js')).peerCommand,
  service: async () => (await import('./service/service.js')).serviceCommand,
  'completion [shell]': async () => (await import('./setup.js')).completionCommand,
};

const USAGES = Object.keys(DESCRIPTIONS) as (keyof typeof DESCRIPTIONS)[];

async function loaded(usage: keyof typeof DESCRIPTIONS): Promise<Command> {
  return { usage, describe: DESCRIPTIONS[usage], ...(await LOADERS[usage]()) };
}

/** Every command. The manual page is made from the same list. */
export async function allCommands(): Promise<readonly Command[]> {
  return await Promise.all(USAGES.map(loaded));
}

/**
 * The commands for a command line. Those that it may mean are loaded; of the others there is what
 * help and completion need.
 *
 * @throws UsageError where it names none that there is
 */
export async function commandsFor(
  args: readonly string[],
): Promise<readonly CommandModule<GlobalOptions, GlobalOptions>[]> {
  const [first = ''] = args;
  const names = USAGES.map(nameOf);
  const isCommand = names.includes(first);
  if (!isCommand && /^\w/.test(first)) {
    const meant = nearest(first, names);
    throw new UsageError(
      `There is no command "${first}".${meant === undefined ? '' : ` Did you mean ${meant}?`}`,
      'See `peersync --help`.',
    );
  }
  return await Promise.all(
    USAGES.map(async (usage) => {
      const isMeant = isCommand ? nameOf(usage) === first : args.includes(nameOf(usage));
      if (isMeant) return moduleOf(await loaded(usage));
      return { command: usage, describe: DESCRIPTIONS[usage], handler: () => {} };
    }),
  );
}

function nameOf(usage: string): string {
  return usage.replace(/ .*/, '');
}
