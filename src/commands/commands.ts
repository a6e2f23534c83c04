import type { CommandModule } from 'yargs';
import type { ExitCode } from '../lib/errors.js';
import { checkCommand } from './check.js';
import { citationCommand } from './citation.js';
import { type GlobalOptions, moduleOf } from './context.js';
import type { Definition } from './definitions.js';
import { docCommand } from './doc.js';
import { initCommand } from './init.js';
import { listCommand } from './list.js';
import { mirrorCommand } from './mirror.js';
import { onceCommand } from './once.js';
import { pauseCommand } from './pause.js';
import { peerCommand } from './peer.js';
import { pushCommand } from './push.js';
import { reloadCommand } from './reload.js';
import { rescanCommand } from './rescan.js';
import { resumeCommand } from './resume.js';
import { retryCommand } from './retry.js';
import { runCommand } from './run.js';
import { schemaCommand } from './schema.js';
import { serviceCommand } from './service.js';
import { shareCommand } from './share.js';
import { statusCommand } from './status.js';
import { tableCommand } from './table.js';
import { verifyCommand } from './verify.js';
import { watchCommand } from './watch.js';
import { whyCommand } from './why.js';

/** Every command, in the order in which the help names them. The manual page is made from the same list. */
export const COMMANDS: readonly CommandModule<GlobalOptions>[] = [
  moduleOf(runCommand),
  moduleOf(onceCommand),
  moduleOf(statusCommand),
  moduleOf(watchCommand),
  moduleOf(listCommand),
  moduleOf(whyCommand),
  moduleOf(retryCommand),
  moduleOf(verifyCommand),
  moduleOf(rescanCommand),
  moduleOf(reloadCommand),
  moduleOf(pauseCommand),
  moduleOf(resumeCommand),
  moduleOf(mirrorCommand),
  moduleOf(checkCommand),
  moduleOf(initCommand),
  moduleOf(schemaCommand),
  moduleOf(docCommand),
  moduleOf(citationCommand),
  moduleOf(pushCommand),
  moduleOf(shareCommand),
  moduleOf(tableCommand),
  moduleOf(peerCommand),
  moduleOf(serviceCommand),
];

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
