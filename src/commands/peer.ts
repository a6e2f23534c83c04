import { join, resolve } from 'node:path';
import { EXIT, PeersyncError } from '../lib/errors.js';
import { createLog } from '../service/log.js';
import type { Command } from './context.js';
import { onSignals } from './run.js';

interface PeerOptions {
  readonly data: string;
  readonly port: number;
}

/** The embedded peer alone, for several daemons, for a look at it, or for tests. Needs no configuration. */
export const peerCommand: Command<PeerOptions> = {
  command: ['peer'],
  describe: 'Run the embedded peer alone, until SIGTERM or SIGINT',
  builder: (yargs) =>
    yargs
      .option('data', {
        type: 'string',
        default: './data/peer',
        describe: 'Where it keeps its index and its administrator password',
        requiresArg: true,
      })
      .option('port', {
        type: 'number',
        default: 8386,
        describe: 'Port on loopback; 0 for any free one',
        requiresArg: true,
      })
      .example('$0 peer --data ./peer --port 8386', 'Then set peer.url to http://127.0.0.1:8386'),
  run: async (options) => {
    if (!Number.isInteger(options.port) || options.port < 0 || options.port > 65_535)
      throw new PeersyncError({
        code: 'USAGE',
        message: `--port: received ${options.port}.`,
        hint: 'Give a port from 1 to 65535, or 0 for any free one.',
        exitCode: EXIT.usage,
      });
    const log = createLog({
      level: options.logLevel ?? 'info',
      fd: 1,
      terminal: process.stdout.isTTY === true,
    });
    let stop: () => void = () => {};
    const stopped = new Promise<undefined>((done) => {
      stop = () => done(undefined);
    });
    const unlisten = onSignals(() => stop());
    try {
      const { startEmbeddedPeer } = await import('../embedded/embedded-peer.js');
      const peer = await startEmbeddedPeer({ dir: options.data, port: options.port, log });
      log.info({ event: 'peer', url: peer.url }, `the peer listens on ${peer.url}/ (its search page)`);
      const password = join(resolve(options.data), 'admin-password');
      log.info(
        { event: 'access' },
        `pushing needs the user "${peer.credentials.username}" with the password in ${password}`,
      );
      const failure = await Promise.race([peer.exited, stopped]);
      await peer.close();
      if (failure !== undefined) throw failure;
      return EXIT.done;
    } finally {
      unlisten();
    }
  },
};
