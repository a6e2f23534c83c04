import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { FromWorker } from './embedded-peer.js';
import { EmbeddedError, failures } from './errors.js';
import { openPeerInstance, type PeerOptions } from './peer-instance.js';

/** The thread in which a peer lives; it ends with its process, however that ends. */
async function run(start: PeerOptions, say: (message: FromWorker) => void): Promise<void> {
  const logAt =
    (level: 'debug' | 'info' | 'warn' | 'error') =>
    (fields: object, message: string): void =>
      say({ type: 'log', level, fields, message });
  const log: Logger = {
    debug: logAt('debug'),
    info: logAt('info'),
    warn: logAt('warn'),
    error: logAt('error'),
  };
  try {
    const peer = await openPeerInstance(start, systemClock, log);
    parentPort?.once('message', () => {
      void peer.close().then(() => parentPort?.close());
    });
    say({ type: 'ready', url: peer.url, ...peer.credentials });
  } catch (error) {
    const failure =
      error instanceof EmbeddedError
        ? {
            code: error.code,
            message: error.message,
            hint: error.hint,
            exitCode: error.exitCode,
            details: error.details,
          }
        : failures.stopped(messageOf(error));
    say({ type: 'failed', failure });
  }
}

await run(workerData as PeerOptions, (message) => parentPort?.postMessage(message));
