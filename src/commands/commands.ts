import type { CommandModule } from 'yargs';
import type { ExitCode } from '../lib/errors.js';
import { type GlobalOptions, moduleOf } from './context.js';
import type { Definition } from './definitions.js';
import { type CommandName, HEADS } from './heads.js';

type Module = CommandModule<GlobalOptions>;

/** Each is loaded by itself: a command is quick that needs little. */
const LOAD: Readonly<Record<CommandName, () => Promise<Module>>> = {
  run: async () => moduleOf((await import('./run.js')).runCommand),
  once: async () => moduleOf((await import('./once.js')).onceCommand),
  status: async () => moduleOf((await import('./status.js')).statusCommand),
  watch: async () => moduleOf((await import('./watch.js')).watchCommand),
  list: async () => moduleOf((await import('./items.js')).listCommand),
  why: async () => moduleOf((await import('./items.js')).whyCommand),
  retry: async () => moduleOf((await import('./items.js')).retryCommand),
  verify: async () => moduleOf((await import('./verify.js')).verifyCommand),
  rescan: async () => moduleOf((await import('./control.js')).rescanCommand),
  reload: async () => moduleOf((await import('./control.js')).reloadCommand),
  pause: async () => moduleOf((await import('./control.js')).pauseCommand),
  resume: async () => moduleOf((await import('./control.js')).resumeCommand),
  mirror: async () => moduleOf((await import('./mirror.js')).mirrorCommand),
  check: async () => moduleOf((await import('./check.js')).checkCommand),
  init: async () => moduleOf((await import('./init.js')).initCommand),
  schema: async () => moduleOf((await import('./init.js')).schemaCommand),
  doc: async () => moduleOf((await import('./documents.js')).docCommand),
  citation: async () => moduleOf((await import('./documents.js')).citationCommand),
  push: async () => moduleOf((await import('./push.js')).pushCommand),
  share: async () => moduleOf((await import('./share.js')).shareCommand),
  table: async () => moduleOf((await import('./table.js')).tableCommand),
  peer: async () => moduleOf((await import('./peer.js')).peerCommand),
  service: async () => moduleOf((await import('./service/service.js')).serviceCommand),
};

const NAMES = Object.keys(HEADS) as CommandName[];

/** Every command. The manual page is made from the same list. */
export async function allCommands(): Promise<readonly Module[]> {
  const commands: Module[] = [];
  for (const name of NAMES) commands.push(await LOAD[name]());
  return commands;
}

/**
 * What a command line may mean: the command that it begins with, else any. Of those only the one that it seems to name is
 * loaded; of the others there is what help, completion and guesses need.
 */
export async function commandsFor(args: readonly string[]): Promise<readonly Module[]> {
  const named = args.find(isName);
  if (named !== undefined && named === args[0]) return [await LOAD[named]()];
  return await Promise.all(NAMES.map((name) => (name === named ? LOAD[name]() : unloaded(name))));
}

function isName(word: string): word is CommandName {
  return Object.hasOwn(HEADS, word);
}

/** A command that is loaded when it turns out to be the one. */
function unloaded(name: CommandName): Module {
  return {
    ...HEADS[name],
    builder: async (yargs) => {
      const { builder } = await LOAD[name]();
      return typeof builder === 'function' ? await builder(yargs) : yargs;
    },
    handler: async (argv) => await (await LOAD[name]()).handler(argv),
  };
}

/** The one command that yargs has itself. */
export const COMPLETION: Definition = {
  usage: 'completion [shell]',
  describe: 'Print the script that completes commands in your shell, or in the one named: bash, zsh or fish',
  options: [],
  positionals: [],
  examples: [
    [
      '$0 completion bash >> ~/.bashrc',
      'Complete commands, options and the names of folders and mirrors in bash',
    ],
  ],
  commands: [],
};

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
