import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../lib/clock.js';
import type { FromWorker, ToWorker } from './embedded-peer.js';
import { openPeerInstance, type PeerOptions } from './peer-instance.js';

const send = (message: FromWorker): void => parentPort?.postMessage(message);
const logAt =
  (level: 'debug' | 'info' | 'warn' | 'error') =>
  (fields: object, message: string): void =>
    send({ type: 'log', level, fields, message });
const log = {
  debug: logAt('debug'),
  info: logAt('info'),
  warn: logAt('warn'),
  error: logAt('error'),
};

// The thread of a peer. It always ends with its process.
const peer = await openPeerInstance(workerData as PeerOptions, systemClock, log);
parentPort?.on('message', (message: ToWorker) => {
  if (message === 'close') void peer.close().then(() => parentPort?.close());
  else peer.linkTo(message.statusUrl);
});
const { url, socketPath, credentials } = peer;
send({ type: 'ready', url, socketPath, credentials });
