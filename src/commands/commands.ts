import type { CommandModule } from 'yargs';
import type { ExitCode } from '../lib/errors.js';
import { type Command, type CommandBody, type GlobalOptions, type Head, moduleOf } from './context.js';

type Module = CommandModule<GlobalOptions, GlobalOptions>;

/** In the order in which the help names them. Each is loaded by itself: a command is quick that needs little, and so is the help. */
const COMMANDS = {
  run: {
    describe: 'Watch the folders, push and confirm, until SIGTERM or SIGINT',
    load: async () => (await import('./run.js')).runCommand,
  },
  once: {
    describe: 'Scan the folders, push and confirm what is new, bring the mirrors up to date, then exit',
    load: async () => (await import('./once.js')).onceCommand,
  },
  status: {
    describe: 'Tell how everything stands',
    load: async () => (await import('./status.js')).statusCommand,
  },
  watch: {
    describe:
      'Show what the running daemon does as it does it: folders, speed, the peer, trouble, latest events',
    load: async () => (await import('./watch.js')).watchCommand,
  },
  list: {
    describe: 'List the known files',
    load: async () => (await import('./items.js')).listCommand,
  },
  why: {
    usage: 'why <path>',
    describe: 'Explain one file: rule, status, history, evidence or error, and what happens next',
    load: async () => (await import('./items.js')).whyCommand,
  },
  retry: {
    usage: 'retry [path..]',
    describe: 'Try again what is in quarantine, waits for its next attempt, or was passed over',
    load: async () => (await import('./items.js')).retryCommand,
  },
  verify: {
    describe: 'Look up in the peer once more what is confirmed, and tell what is missing',
    load: async () => (await import('./items.js')).verifyCommand,
  },
  rescan: {
    usage: 'rescan [folder]',
    describe: 'Let the running daemon scan its folders now',
    load: async () => (await import('./control.js')).rescanCommand,
  },
  reload: {
    describe: 'Let the running daemon take up its changed configuration, as SIGHUP does',
    load: async () => (await import('./control.js')).reloadCommand,
  },
  pause: {
    describe: 'Send nothing to the peer for a while; what changes on disk is still read, and waits',
    load: async () => (await import('./control.js')).pauseCommand,
  },
  resume: {
    describe: 'End a pause: the work with the peer goes on',
    load: async () => (await import('./control.js')).resumeCommand,
  },
  mirror: {
    usage: 'mirror [names..]',
    describe: "Bring the files that follow the peer's tables and shared objects up to date now",
    load: async () => (await import('./mirror.js')).mirrorCommand,
  },
  check: {
    describe:
      'Check the configuration, the folders, the watch limit, the state, the ports, the peer, the access to it and what is mirrored',
    load: async () => (await import('./check.js')).checkCommand,
  },
  init: {
    describe: 'Write a first configuration; never overwrites one',
    load: async () => (await import('./init.js')).initCommand,
  },
  schema: {
    describe: 'Print the JSON Schema of the configuration, so that editors complete it',
    load: async () => (await import('./init.js')).schemaCommand,
  },
  doc: {
    usage: 'doc [url]',
    describe: 'Show what the peer has of one document',
    load: async () => (await import('./documents.js')).docCommand,
  },
  citation: {
    usage: 'citation [url]',
    describe: 'Show which sentences of a document stand in others too, and who cites it',
    load: async () => (await import('./documents.js')).citationCommand,
  },
  push: {
    usage: 'push [file..]',
    describe: 'Push single files, outside of all folders, and wait until the peer shows them',
    load: async () => (await import('./push.js')).pushCommand,
  },
  share: {
    describe: 'Fetch a shared object of the peer',
    load: async () => (await import('./documents.js')).shareCommand,
  },
  table: {
    describe: 'Show and change tables of the peer',
    load: async () => (await import('./table.js')).tableCommand,
  },
  peer: {
    describe: 'Run the embedded peer alone, until SIGTERM or SIGINT',
    load: async () => (await import('./peer.js')).peerCommand,
  },
  service: {
    describe: 'Let systemd run the daemon, from every start of the machine on',
    load: async () => (await import('./service/service.js')).serviceCommand,
  },
  completion: {
    usage: 'completion [shell]',
    describe:
      'Print the script that completes commands in your shell, or in the one named: bash, zsh or fish',
    load: async () => (await import('./completion.js')).completionCommand,
  },
} satisfies Readonly<Record<string, Partial<Head> & { describe: string; load(): Promise<CommandBody> }>>;

type CommandName = keyof typeof COMMANDS;

const NAMES = Object.keys(COMMANDS).filter(isName);

function isName(word: string): word is CommandName {
  return Object.hasOwn(COMMANDS, word);
}

/** A command that takes no arguments is called by its name alone. */
function headOf(name: CommandName): Head {
  const { describe, usage = name }: Partial<Head> & { readonly describe: string } = COMMANDS[name];
  return { describe, usage };
}

async function loaded(name: CommandName): Promise<Command> {
  return { ...headOf(name), ...(await COMMANDS[name].load()) };
}

/** Every command. The manual page is made from the same list. */
export async function allCommands(): Promise<readonly Command[]> {
  return await Promise.all(NAMES.map(loaded));
}

/**
 * The commands for a command line. Those that it may mean are loaded; of the others there is what help, completion and guesses
 * need.
 */
export async function commandsFor(args: readonly string[]): Promise<readonly Module[]> {
  const meant = args.slice(0, args[0] !== undefined && isName(args[0]) ? 1 : undefined);
  return await Promise.all(
    NAMES.map(async (name) => {
      if (meant.includes(name)) return moduleOf(await loaded(name));
      const { describe, usage } = headOf(name);
      return { command: usage, describe, handler: () => {} };
    }),
  );
}

/** What peersync is, in a sentence. */
export const ABOUT = 'Keeps folders on disk and a search peer in step.';

/** How one begins. */
export const FIRST_EXAMPLES: readonly [line: string, what: string][] = [
  ['$0 init', 'Write a first configuration'],
  ['$0 run -c config.json', 'Watch, push and confirm until stopped'],
  ['$0 why ~/notes/plan.md', 'Tell everything about one file'],
];

/** What the exit codes say. */
export const EXIT_WORDS: Readonly<Record<ExitCode, string>> = {
  0: 'done',
  1: 'failure',
  2: 'wrong usage or configuration',
  3: 'done but items are quarantined or missing in the peer, or a mirror raised an alarm',
  4: 'peer unreachable',
};
