import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../lib/clock.js';
import type { FromWorker, ToWorker } from './embedded-peer.js';
import { openPeerInstance, type PeerOptions } from './peer-instance.js';

const say = (message: FromWorker): void => parentPort?.postMessage(message);
const logAt =
  (level: 'debug' | 'info' | 'warn' | 'error') =>
  (fields: object, message: string): void =>
    say({ type: 'log', level, fields, message });
const log = {
  debug: logAt('debug'),
  info: logAt('info'),
  warn: logAt('warn'),
  error: logAt('error'),
};

// The thread in which a peer lives; it ends with its process, however that ends.
const peer = await openPeerInstance(workerData as PeerOptions, systemClock, log);
parentPort?.on('message', (message: ToWorker) => {
  if (message === 'close') void peer.close().then(() => parentPort?.close());
  else peer.linkTo(message.statusUrl);
});
const { url, socketPath, credentials } = peer;
say({ type: 'ready', url, socketPath, credentials });
