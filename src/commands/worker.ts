import { define } from '../cli/command.js';
import { prepare } from '../cli/global-options.js';
import { onSignals } from '../cli/signals.js';
import { ProgramFinder } from '../content/helpers/finder.js';
import { configuredPeer } from '../daemon/configured-peer.js';
import { systemClock } from '../lib/clock.js';
import { EXIT, messageOf } from '../lib/errors.js';
import { WorkThread } from '../lib/work-thread.js';
import type { PeerClient } from '../peer/client.js';
import { isDialect } from '../peer/dialects/dialects.js';
import { usualConcurrency } from '../uplink/document-processes.js';
import { noFleet } from './check-fleet.js';

/** The program that reads one document after the other; see `document-process.ts`. */
const PROGRAM = new URL('../document-process.js', import.meta.url);

/** Helps another machine with its work until SIGTERM or SIGINT. */
export const workerCommand = define({
  examples: [['$0 worker -c config.json', 'Help the peersync that runs with this configuration']],
  run: async (options) => {
    const { config, log } = await prepare(options, 1);
    const { fleet } = config;
    if (fleet === undefined) throw noFleet();
    const { FleetWorker } = await import('../fleet/worker.js');
    const { WorkerReaders } = await import('../fleet/worker-readers.js');
    const clock = systemClock;
    const programs = new ProgramFinder(() => config.documents);
    await programs.refresh();
    const readers = await WorkerReaders.open(PROGRAM, clock, log);
    const thread = new WorkThread(new URL('../file-thread.js', import.meta.url), (error) =>
      log.error({ err: error }, `a thread broke down: ${messageOf(error)}; it starts anew`),
    );
    const peers = new Map<string, Promise<PeerClient>>();
    const newPeer = (dialect: string) => {
      if (!isDialect(dialect)) throw new Error(`no dialect has the name ${dialect}`);
      const peer = { ...config.peer, dialect };
      const state = { ...config.state, dir: readers.directory };
      return configuredPeer({ peer, state }, { clock, log });
    };
    const peerOf = (dialect: string) => {
      const peer = peers.get(dialect) ?? newPeer(dialect);
      peers.set(dialect, peer);
      return peer;
    };
    const { concurrency = usualConcurrency() } = config.documents;
    const worker = await FleetWorker.open({
      config: { ...config, fleet },
      clock,
      log,
      programs,
      readers,
      pack: (order) => thread.ask('pack', order),
      peerOf,
      slots: fleet.concurrency ?? concurrency,
    });
    const stopped = new Promise<void>((resolve) => {
      onSignals((signal) => {
        log.info({ event: 'stopping', signal }, `${signal}: stopping (once more to stop at once)`);
        resolve();
      });
    });
    log.info({ event: 'worker', redis: fleet.redis }, `waiting for work at ${fleet.redis}`);
    worker.start();
    await stopped;
    await worker.stop();
    for (const peer of await Promise.allSettled(peers.values()))
      if (peer.status === 'fulfilled') await peer.value.close();
    await thread.close();
    await readers.remove();
    log.info({ event: 'stopped' }, 'stopped');
    return EXIT.done;
  },
});
