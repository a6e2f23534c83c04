import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config/config.js';
import { askDaemon } from '../daemon/control.js';
import { systemClock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { PeerClient } from '../peer/client.js';
import type { StatusReport } from '../report/status.js';
import { startPeer } from './peer.js';
import { onSignals } from './signals.js';

/**
 * Lets a command ask the configured peer. Where that is the embedded one, it is the running daemon's, and without a daemon
 * one that is started for the command.
 *
 * @param use is given a signal that aborts at the first SIGINT or SIGTERM
 * @throws PeersyncError STOPPED when that came before it was done
 */
export async function withPeer<T>(
  config: Config,
  log: Logger,
  use: (client: PeerClient, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const stopping = new AbortController();
  const unlisten = onSignals(() => stopping.abort());
  try {
    const { client, close } = await peerFor(config, log);
    try {
      return await use(client, stopping.signal);
    } finally {
      await close();
    }
  } catch (error) {
    throw stopping.signal.aborted ? stopped(error) : error;
  } finally {
    unlisten();
  }
}

/** A client for the configured peer, or for the embedded one of the running daemon; none when that is not running. */
export async function runningPeer(config: Config, log: Logger): Promise<PeerClient | undefined> {
  const { configuredPeer } = await import('../daemon/configured-peer.js');
  const parts = { clock: systemClock, log };
  if (config.peer.url !== 'embedded') return configuredPeer(config.peer, parts);
  const answer = await askDaemon(config.state.dir, { ask: 'status', parameters: {} });
  if (answer === undefined) return undefined;
  for await (const report of answer) {
    const password = (await readFile(join(config.peer.embedded.dir, 'admin-password'), 'utf8')).trim();
    const { url } = (report as StatusReport).peer;
    return configuredPeer(config.peer, parts, { url, credentials: { username: 'admin', password } });
  }
  return undefined;
}

async function peerFor(
  config: Config,
  log: Logger,
): Promise<{ readonly client: PeerClient; close(): Promise<void> }> {
  const running = await runningPeer(config, log);
  if (running !== undefined) return { client: running, close: () => running.close() };
  const { configuredPeer } = await import('../daemon/configured-peer.js');
  // Any port: nobody else needs to know it, and the configured one may be in use.
  const { dir, requireAuth } = config.peer.embedded;
  const peer = await startPeer({ dir, port: 0, requireAuthEverywhere: requireAuth, log });
  const client = await configuredPeer(config.peer, { clock: systemClock, log }, peer);
  return {
    client,
    close: async () => {
      await client.close();
      await peer.close();
    },
  };
}

function stopped(cause: unknown): PeersyncError {
  return new PeersyncError({
    code: 'STOPPED',
    message: 'Stopped before it was done.',
    hint: 'Run the command again.',
    cause,
  });
}
