import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { define } from '../cli/command.js';
import { type GlobalOptions, openLog, prepare } from '../cli/global-options.js';
import * as option from '../cli/option.js';
import { restated } from '../cli/output.js';
import { untilStopped } from '../cli/signals.js';
import { UsageError } from '../cli/usage.js';
import type { Config } from '../config/config.js';
import type { EmbeddedAccess } from '../daemon/configured-peer.js';
import type { EmbeddedPeer, EmbeddedPeerOptions } from '../embedded/embedded-peer.js';
import { systemClock } from '../lib/clock.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import { writtenPath } from '../lib/home.js';
import type { Logger } from '../lib/logger.js';
import { nearest } from '../lib/text.js';
import type { PeerClient } from '../peer/client.js';
import { PeerError } from '../peer/errors.js';
import { runningStatus } from './ask.js';
import { peerBackup, peerCheck, peerRestore } from './peer-backup.js';

/**
 * The embedded peer alone, for several daemons, for a look at it, or for tests. Needs no
 * configuration.
 */
export const peerCommand = define({
  options: {
    data: option.preset('./data/peer', 'Where it keeps its index and its administrator password'),
    port: option.preset('8386', 'Port on loopback; 0 for any free one'),
    'require-auth': option.flag('Let only the administrator see anything, the search page too'),
  },
  examples: [
    ['$0 peer --data ./peer --port 8386', 'Then set peer.url to http://127.0.0.1:8386'],
    ['$0 peer backup /media/disk/peer.backup', 'Save a peer, which may run'],
  ],
  commands: [
    {
      usage: 'backup <file>',
      describe: 'Save documents, tables and shared objects of the embedded peer, which may run',
      ...peerBackup,
    },
    {
      usage: 'restore <file>',
      describe: 'Replace a stopped embedded peer by a backup',
      ...peerRestore,
    },
    {
      usage: 'check [file]',
      describe: 'Check that index and documents of a stopped embedded peer, or a backup, agree',
      ...peerCheck,
    },
  ],
  run: async (options) => {
    const port = /^\d+$/.test(options.port) ? Number(options.port) : Number.NaN;
    if (!(port <= 65_535))
      throw new UsageError(
        `--port: received "${options.port}".`,
        'Give a port from 1 to 65535, or 0 for any free one.',
      );
    const log = await openLog(options, 1, 'info');
    const { requireAuth: requireAuthEverywhere } = options;
    const data = writtenPath(options.data);
    return await untilStopped(async ({ signal }) => {
      const peer = await startPeer({ dir: data, port, requireAuthEverywhere, log });
      log.info(
        { event: 'peer', url: peer.url },
        `the peer listens on ${peer.url}/ (its search page)`,
      );
      log.info(
        { event: 'access' },
        `pushing needs the user "${peer.credentials.username}" with the password in ${join(data, 'admin-password')}`,
      );
      const failure = await Promise.race([peer.exited, signal.aborted || once(signal, 'abort')]);
      await peer.close();
      if (failure instanceof Error) throw failure;
      log.info({ event: 'stopped' }, 'stopped');
      return EXIT.done;
    }).catch((error: unknown) => {
      if (error instanceof PeersyncError && error.code === 'EMBEDDED_PORT_IN_USE')
        throw restated(error, {
          hint: 'Stop that program, or give another --port (0 takes any free one).',
        });
      throw error;
    });
  },
});

/**
 * Starts an embedded peer; its code is loaded here, for the commands that need none are quicker
 * without it.
 */
async function startPeer(options: EmbeddedPeerOptions): Promise<EmbeddedPeer> {
  const { startEmbeddedPeer } = await import('../embedded/embedded-peer.js');
  return startEmbeddedPeer(options);
}

/**
 * Runs `use` with a client of the configured peer. An embedded peer is that of the running daemon
 * or, without a daemon, one that is started for the command.
 *
 * @param use called with a signal that aborts at the first SIGINT or SIGTERM
 * @throws PeersyncError STOPPED if that signal came before `use` ended
 */
export async function withPeer<T>(
  config: Config,
  log: Logger,
  use: (client: PeerClient, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return await untilStopped(async ({ signal }) => {
    try {
      const running = await runningPeer(config, log);
      // Any port: nothing else connects to it, and the configured one may be in use.
      const { dir, requireAuth: requireAuthEverywhere } = config.peer.embedded;
      const own = running
        ? undefined
        : await startPeer({ dir, port: 0, requireAuthEverywhere, log });
      const client = running ?? (await clientFor(config, log, own));
      try {
        return await use(client, signal);
      } finally {
        await client.close();
        await own?.close();
      }
    } catch (error) {
      if (!signal.aborted) throw error;
      const message = 'Stopped before it was done.';
      throw new PeersyncError({
        code: 'STOPPED',
        message,
        hint: 'Run the command again.',
        cause: error,
      });
    }
  });
}

/** Runs `use` with a client, for a command that needs nothing else of the configuration. */
export async function askPeer<T>(
  options: GlobalOptions,
  use: Parameters<typeof withPeer<T>>[2],
): Promise<T> {
  const { config, log } = await prepare(options);
  return await withPeer(config, log, use);
}

/**
 * A client for the configured peer, or for the embedded one of the running daemon; none when that
 * is not running.
 */
export async function runningPeer(config: Config, log: Logger): Promise<PeerClient | undefined> {
  if (config.peer.url !== 'embedded') return await clientFor(config, log);
  const status = await runningStatus(config.state.dir);
  if (status === undefined) return undefined;
  const password = (
    await readFile(join(config.peer.embedded.dir, 'admin-password'), 'utf8')
  ).trim();
  // The password is sent to this machine only, whatever the answer contains.
  const url = `http://127.0.0.1:${new URL(status.peer.url).port}`;
  return await clientFor(config, log, { url, credentials: { username: 'admin', password } });
}

async function clientFor(
  config: Config,
  log: Logger,
  embedded?: EmbeddedAccess,
): Promise<PeerClient> {
  const { configuredPeer } = await import('../daemon/configured-peer.js');
  return await configuredPeer(config, { clock: systemClock, log }, embedded);
}

/** Throws the error again. If an answer was too large, it names the option for that. */
export function nameMaxSize(
  error: unknown,
  hint = 'Give a larger --max-size if that is expected.',
): never {
  if (!(error instanceof PeerError) || error.code !== 'PEER_ANSWER_TOO_LARGE') throw error;
  throw restated(error, { hint });
}

/** The peer has no such table; names the one that was probably meant. */
export async function noTable(
  client: PeerClient,
  table: string,
  signal: AbortSignal,
): Promise<PeersyncError> {
  // The list serves only a suggestion. Without it there is none.
  const tables = await client.tables.list({ signal }).catch((error: unknown) => {
    if (error instanceof PeerError) return [];
    throw error;
  });
  const meant = nearest(table, tables);
  return new PeersyncError({
    code: 'NOT_FOUND',
    message: `The peer has no table "${table}".`,
    hint:
      meant === undefined
        ? '`peersync table list` names the tables that it has.'
        : `Did you mean "${meant}"?`,
    details: { table },
  });
}
