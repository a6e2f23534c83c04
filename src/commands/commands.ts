import type { CommandModule } from 'yargs';
import {
  type Command,
  type CommandBody,
  type Completes,
  moduleOf,
  nameOf,
} from '../cli/command.js';
import type { GlobalOptions } from '../cli/global-options.js';
import { UsageError } from '../cli/usage.js';
import { nearest } from '../lib/text.js';

/**
 * A row of the command table. The module of a command is loaded only if the command line may mean
 * it, so that other commands start fast.
 */
interface CommandEntry {
  /** The name with its arguments; see `Command`. */
  readonly usage: string;
  readonly describe: string;
  /** The kind of names that the arguments take. @default nothing to complete */
  readonly completes?: Completes;
  load(): Promise<CommandBody>;
}

/** All commands, in the order of the help. */
const COMMANDS: readonly CommandEntry[] = [
  {
    usage: 'run',
    describe: 'Watch the folders, push and confirm, until SIGTERM or SIGINT',
    load: async () => (await import('./run.js')).runCommand,
  },
  {
    usage: 'once',
    describe:
      'Scan the folders, push and confirm what is new, bring the mirrors up to date, then exit',
    load: async () => (await import('./once.js')).onceCommand,
  },
  {
    usage: 'worker',
    describe: 'Help the peersync of another machine, until SIGTERM or SIGINT',
    load: async () => (await import('./worker.js')).workerCommand,
  },
  {
    usage: 'status',
    describe: 'Tell how everything stands',
    load: async () => (await import('./status.js')).statusCommand,
  },
  {
    usage: 'watch',
    describe:
      'Show what the running daemon does as it does it: folders, speed, the peer, conditions, latest events',
    load: async () => (await import('./watch.js')).watchCommand,
  },
  {
    usage: 'list',
    describe: 'List the known files',
    load: async () => (await import('./list.js')).listCommand,
  },
  {
    usage: 'why <path>',
    describe: 'Explain one file: rule, status, history, evidence or error, and what happens next',
    completes: 'files',
    load: async () => (await import('./why.js')).whyCommand,
  },
  {
    usage: 'retry [path..]',
    describe: 'Try again what is in quarantine, waits for its next attempt, or was skipped',
    completes: 'files',
    load: async () => (await import('./retry.js')).retryCommand,
  },
  {
    usage: 'verify',
    describe: 'Look up in the peer once more what is confirmed, and tell what is missing',
    load: async () => (await import('./verify.js')).verifyCommand,
  },
  {
    usage: 'rescan [folder]',
    describe: 'Let the running daemon scan its folders now',
    completes: 'folders',
    load: async () => (await import('./rescan.js')).rescanCommand,
  },
  {
    usage: 'reload',
    describe: 'Let the running daemon take up its changed configuration, as SIGHUP does',
    load: async () => (await import('./reload.js')).reloadCommand,
  },
  {
    usage: 'pause',
    describe: 'Send nothing to the peer for a while; what changes on disk is still read, and waits',
    load: async () => (await import('./pause.js')).pauseCommand,
  },
  {
    usage: 'resume',
    describe: 'End a pause: the work with the peer goes on',
    load: async () => (await import('./pause.js')).resumeCommand,
  },
  {
    usage: 'approve-deletes <folder>',
    describe: 'Let the documents of very many removed files be removed from the peer',
    completes: 'folders',
    load: async () => (await import('./approve-deletes.js')).approveDeletesCommand,
  },
  {
    usage: 'forget <folder>',
    describe:
      'Forget a folder that left the configuration, or remove documents of files that are skipped now',
    completes: 'folders to forget',
    load: async () => (await import('./forget.js')).forgetCommand,
  },
  {
    usage: 'mirror [names..]',
    describe: "Bring the files that follow the peer's tables and shared objects up to date now",
    completes: 'mirrors',
    load: async () => (await import('./mirror.js')).mirrorCommand,
  },
  {
    usage: 'check',
    describe:
      'Check configuration, folders, watch limit, state, ports, peer, access, what is mirrored, and Redis',
    load: async () => (await import('./check.js')).checkCommand,
  },
  {
    usage: 'init [folder]',
    describe: 'Write a first configuration for a folder; never overwrites one',
    load: async () => (await import('./init.js')).initCommand,
  },
  {
    usage: 'schema',
    describe: 'Print the JSON Schema of the configuration, for editors, or of the answers in JSON',
    load: async () => (await import('./schema.js')).schemaCommandOf(allCommands),
  },
  {
    usage: 'search [words..]',
    describe: 'Search the peer, and list what it finds',
    load: async () => (await import('./search.js')).searchCommand,
  },
  {
    usage: 'doc [url]',
    describe: 'Show what the peer has of one document',
    load: async () => (await import('./doc.js')).docCommand,
  },
  {
    usage: 'citation [url]',
    describe: 'Show which sentences of a document stand in others too, and who cites it',
    load: async () => (await import('./citation.js')).citationCommand,
  },
  {
    usage: 'push [file..]',
    describe:
      'Push single files, outside of all folders, and wait until the peer shows them; or remove them again',
    completes: 'files',
    load: async () => (await import('./push.js')).pushCommand,
  },
  {
    usage: 'share',
    describe: 'List and fetch shared objects of the peer',
    load: async () => (await import('./share.js')).shareCommand,
  },
  {
    usage: 'table',
    describe: 'Show and change tables of the peer',
    load: async () => (await import('./table.js')).tableCommand,
  },
  {
    usage: 'peer',
    describe: 'Run the embedded peer alone, until SIGTERM or SIGINT',
    load: async () => (await import('./peer.js')).peerCommand,
  },
  {
    usage: 'service',
    describe: 'Let systemd run the daemon, from every start of the machine on',
    load: async () => (await import('./service/service.js')).serviceCommand,
  },
  {
    usage: 'completion [shell]',
    describe: 'Print the script for bash, zsh or fish that completes commands in your shell',
    load: async () => (await import('./completion.js')).completionCommand,
  },
];

async function loaded({ usage, describe, load }: CommandEntry): Promise<Command> {
  return { usage, describe, ...(await load()) };
}

/** Returns all commands, with their modules loaded. */
export async function allCommands(): Promise<readonly Command[]> {
  return await Promise.all(COMMANDS.map(loaded));
}

/**
 * Returns the kind of names that the arguments of a command take; undefined if the shell cannot
 * complete them.
 */
export function completesOf(command: string): Completes | undefined {
  return COMMANDS.find(({ usage }) => nameOf(usage) === command)?.completes;
}

/**
 * Returns the commands for a command line. Those that it may mean are loaded; the others have only
 * what help and completion need.
 *
 * @throws UsageError if it names no known command
 */
export async function commandsFor(
  args: readonly string[],
): Promise<readonly CommandModule<GlobalOptions, GlobalOptions>[]> {
  const [first = ''] = args;
  const names = COMMANDS.map(({ usage }) => nameOf(usage));
  const isCommand = names.includes(first);
  if (!isCommand && /^\w/.test(first)) {
    const meant = nearest(first, names);
    throw new UsageError(
      `There is no command "${first}".${meant === undefined ? '' : ` Did you mean ${meant}?`}`,
      'See `peersync --help`.',
    );
  }
  return await Promise.all(
    COMMANDS.map(async (command) => {
      const { describe, usage } = command;
      const isMeant = isCommand ? nameOf(usage) === first : args.includes(nameOf(usage));
      if (isMeant) return moduleOf(await loaded(command));
      return { command: usage, describe, handler: () => {} };
    }),
  );
}
