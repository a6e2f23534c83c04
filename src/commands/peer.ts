import { join, resolve } from 'node:path';
import type { EmbeddedPeer, EmbeddedPeerOptions } from '../embedded/embedded-peer.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import { type Command, openLog } from './context.js';
import { HEADS } from './heads.js';
import { onSignals } from './signals.js';

interface PeerOptions {
  readonly data: string;
  readonly port: string;
  readonly 'require-auth': boolean;
}

/** The embedded peer alone, for several daemons, for a look at it, or for tests. Needs no configuration. */
export const peerCommand: Command<PeerOptions> = {
  ...HEADS.peer,
  builder: (yargs) =>
    yargs
      .option('data', {
        type: 'string',
        default: './data/peer',
        describe: 'Where it keeps its index and its administrator password',
        requiresArg: true,
      })
      .option('port', {
        type: 'string',
        default: '8386',
        describe: 'Port on loopback; 0 for any free one',
        requiresArg: true,
      })
      .option('require-auth', {
        type: 'boolean',
        default: false,
        describe: 'Let only the administrator see anything, the search page too',
      })
      .example('$0 peer --data ./peer --port 8386', 'Then set peer.url to http://127.0.0.1:8386'),
  run: async (options) => {
    const port = /^\d+$/.test(options.port) ? Number(options.port) : Number.NaN;
    if (!(port <= 65_535))
      throw new PeersyncError({
        code: 'USAGE',
        message: `--port: received "${options.port}".`,
        hint: 'Give a port from 1 to 65535, or 0 for any free one.',
        exitCode: EXIT.usage,
      });
    const log = await openLog(options, 1, 'info');
    let stop: () => void = () => {};
    const stopped = new Promise<undefined>((done) => {
      stop = () => done(undefined);
    });
    const unlisten = onSignals(() => stop());
    try {
      const peer = await startPeer({
        dir: options.data,
        port,
        requireAuthEverywhere: options['require-auth'],
        log,
      });
      log.info({ event: 'peer', url: peer.url }, `the peer listens on ${peer.url}/ (its search page)`);
      const password = join(resolve(options.data), 'admin-password');
      log.info(
        { event: 'access' },
        `pushing needs the user "${peer.credentials.username}" with the password in ${password}`,
      );
      const failure = await Promise.race([peer.exited, stopped]);
      await peer.close();
      if (failure !== undefined) throw failure;
      log.info({ event: 'stopped' }, 'stopped');
      return EXIT.done;
    } catch (error) {
      if (error instanceof PeersyncError && error.code === 'EMBEDDED_PORT_IN_USE')
        throw new PeersyncError({
          code: error.code,
          message: error.message,
          details: error.details,
          exitCode: error.exitCode,
          hint: 'Stop that program, or give another --port (0 takes any free one).',
          cause: error,
        });
      throw error;
    } finally {
      unlisten();
    }
  },
};

/** Starts an embedded peer; its code is loaded here, for the commands that need none are quicker without it. */
export async function startPeer(options: EmbeddedPeerOptions): Promise<EmbeddedPeer> {
  const { startEmbeddedPeer } = await import('../embedded/embedded-peer.js');
  return startEmbeddedPeer(options);
}
