import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../lib/clock.js';
import { DistantFacts } from './daemon-link.js';
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
const facts = parentPort === null ? undefined : new DistantFacts(parentPort);
parentPort?.on('message', (message: ToWorker) => {
  if (message.type === 'close') void peer.close().then(() => parentPort?.close());
  else if (message.type === 'link') peer.linkTo(message.statusUrl);
  else if (message.type === 'connect') facts && peer.connect(facts);
  else facts?.answered(message);
});
const { url, socketPath, credentials, database } = peer;
send({ type: 'ready', url, socketPath, credentials, database });
