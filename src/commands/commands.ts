import type { CommandModule } from 'yargs';
import { checkCommand } from './check.js';
import { citationCommand } from './citation.js';
import { type GlobalOptions, moduleOf } from './context.js';
import { docCommand } from './doc.js';
import { initCommand } from './init.js';
import { listCommand } from './list.js';
import { mirrorCommand } from './mirror.js';
import { onceCommand } from './once.js';
import { peerCommand } from './peer.js';
import { pushCommand } from './push.js';
import { rescanCommand } from './rescan.js';
import { retryCommand } from './retry.js';
import { runCommand } from './run.js';
import { schemaCommand } from './schema.js';
import { shareCommand } from './share.js';
import { statusCommand } from './status.js';
import { tableCommand } from './table.js';
import { verifyCommand } from './verify.js';
import { whyCommand } from './why.js';

/** Every command, in the order in which the help names them. The manual page is made from the same list. */
export const COMMANDS: readonly CommandModule<GlobalOptions>[] = [
  moduleOf(runCommand),
  moduleOf(onceCommand),
  moduleOf(statusCommand),
  moduleOf(listCommand),
  moduleOf(whyCommand),
  moduleOf(retryCommand),
  moduleOf(verifyCommand),
  moduleOf(rescanCommand),
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
];
